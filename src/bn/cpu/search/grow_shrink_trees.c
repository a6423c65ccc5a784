/* Grow-shrink trees; see search.h. The root of a node's tree is the set of its required parents. A stem that was
 * requested lists the candidates that raise its score, best first: whichever nodes come before, the set grows by the
 * first of these candidates that does. What is left after shrinking depends on the grown set alone; from there the set
 * grows again.
 *
 * Among few Gaussian nodes, sets that growth from nothing cannot reach are found from the other end: all nodes before
 * one are its parents, and are thinned out. Such a set is remembered, and taken wherever it fits and is better.
 *
 * Trees of one start are forgotten when their room is used up. Trees that lanes share have a lock for each node: their
 * content depends on what is requested, not on which lane requests it first. They are forgotten before a climb or a
 * round of kicks when most of the room is used, so that the same sets are scored with any number of threads. If it is
 * used up before, what is missing is scored and not kept until the threads have met. */
#include <math.h>
#include <sched.h>
#include <string.h>
#include "bn/cpu/search/gauss.h"
#include "bn/cpu/search/grow_shrink_trees.h"

#define NONE UINT32_MAX
#define SMALL_ROOM ((size_t) 1 << 14)
#define LARGE_ROOM ((size_t) 1 << 20)
#define WHOLE_ROOM ((size_t) 1 << 24) /* for all trees */
#define NO_ROOM SIZE_MAX
#define UNKNOWN INT64_MIN

static void forget_all(weft_bn_trees *trees)
{
  const size_t p = trees->problem->p;
  for (size_t i = 0; i < p; i++) trees->root[i].stem = NONE;
  for (size_t k = 0; trees->listed_stem && k < trees->listed->start[p]; k++) trees->listed_stem[k] = NONE;
  trees->stems = trees->branches = 0;
}

/* Makes empty trees in `mem`: room for 256 branches for each candidate of each node, but no more than this share of
 * WHOLE_ROOM or, where that is less, LARGE_ROOM. */
weft_status weft_bn_trees_make(weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                               const weft_bn_listed *listed, size_t shares, weft_bn_trees *out)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = search->problem;
  const size_t share = WHOLE_ROOM / shares, most = share > LARGE_ROOM ? share : LARGE_ROOM;
  const size_t room = 256 * near->pairs < most ? 256 * near->pairs : most;
  *out = (weft_bn_trees){ .near = near, .listed = listed, .problem = problem };
  out->max_branches = SMALL_ROOM + room + 16 * near->pairs + 2 * (WEFT_BN_MAX_PARENTS + 1) * problem->p;
  out->max_stems = out->max_branches / 8;
  WEFT_TAKE0(out->root, mem, problem->p);
  if (near->covariance && problem->p < WEFT_BN_FEW_NODES) {
    const size_t sets = problem->p * WEFT_BN_FOUND;
    WEFT_TAKE0(out->thinned.count, mem, problem->p);
    WEFT_TAKE(out->thinned.score, mem, sets);
    WEFT_TAKE(out->thinned.bits, mem, sets);
    WEFT_TAKE(out->thinned.size, mem, sets);
    WEFT_TAKE(out->thinned.member, mem, sets * WEFT_BN_MAX_PARENTS);
  }
  if (listed->width && !weft_bn_gauss(problem)) WEFT_TAKE(out->listed_stem, mem, listed->start[problem->p] + 1);
  WEFT_TAKE(out->stem, mem, out->max_stems);
  WEFT_TAKE(out->branch, mem, out->max_branches);
  forget_all(out);
done:
  return st;
}

void weft_bn_trees_tidy(weft_bn_trees *trees, double filled)
{
  if (trees->shared && ((double) trees->stems > filled * (double) trees->max_stems ||
                        (double) trees->branches > filled * (double) trees->max_branches))
    forget_all(trees);
}

void weft_bn_trees_forget(weft_bn_trees *trees, const uint8_t *which)
{
  for (size_t i = 0; i < trees->problem->p; i++) {
    if (!which[i]) continue;
    trees->root[i].stem = NONE;
    if (!trees->listed_stem) continue;
    for (size_t k = trees->listed->start[i]; k < trees->listed->start[i + 1]; k++) trees->listed_stem[k] = NONE;
  }
}

/* Takes `count` places of `most` and returns the first, or NO_ROOM when too few are left. */
static size_t take(size_t *used, size_t count, size_t most)
{
  const size_t at = __atomic_fetch_add(used, count, __ATOMIC_RELAXED);
  return at + count <= most ? at : NO_ROOM;
}

/* Returns its place; NONE when there is no room and `spare` is the stem. `shrunk`: UNKNOWN, or the score when nothing
 * can be left out. */
static uint32_t new_stem(weft_bn_trees *trees, int64_t score, int64_t shrunk, weft_bn_stem *spare)
{
  const size_t at = take(&trees->stems, 1, trees->max_stems);
  *(at == NO_ROOM ? spare : &trees->stem[at]) =
      (weft_bn_stem){ .score = score, .shrunk = shrunk, .count = NONE, .again = NONE };
  return at == NO_ROOM ? NONE : (uint32_t) at;
}

/* Best first; of equal scores the first node. An insertion sort: few raise the score. */
static void insert_branch(weft_bn_branch *first, size_t count, weft_bn_branch made)
{
  for (; count > 0 && first[count - 1].score < made.score; count--) first[count] = first[count - 1];
  first[count] = made;
}

/* Places of the nodes among the candidates of i, ascending. */
static void places_of(const weft_bn_near *near, size_t i, const int32_t *node, size_t m, size_t *out)
{
  const int32_t *list = near->node + near->start[i];
  for (size_t j = 0; j < m; j++) {
    size_t low = 0, high = near->start[i + 1] - near->start[i];
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      if (list[middle] <= node[j])
        low = middle;
      else
        high = middle;
    }
    weft_bn_set_insert(out, j, low);
  }
}

/* Lists the candidates that raise a set's score in scorer->branch, best first; returns how many. */
static size_t grow_list(const weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, int64_t score, const int32_t *set,
                        size_t m)
{
  const int32_t *node = trees->near->node + trees->near->start[i];
  const size_t count = trees->near->start[i + 1] - trees->near->start[i];
  size_t at[WEFT_BN_MAX_PARENTS + 2], made = 0;
  if (m >= (size_t) trees->problem->max_parents[i]) return 0;
  places_of(trees->near, i, set, m, at);
  weft_bn_scorer_near(scorer, trees->near, i, at, m, scorer->grown);
  for (size_t k = 0; k < count; k++) {
    if (scorer->grown[k] <= score) continue;
    insert_branch(scorer->branch, made++, (weft_bn_branch){ scorer->grown[k], node[k], NONE });
  }
  return made;
}

/* The branches of a stem, which are kept where there is room. */
static weft_bn_branch *grow(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_stem *stem,
                            const int32_t *set, size_t m, size_t *made)
{
  *made = grow_list(trees, scorer, i, stem->score, set, m);
  const size_t first = take(&trees->branches, *made, trees->max_branches);
  if (first == NO_ROOM) return scorer->branch;
  memcpy(trees->branch + first, scorer->branch, *made * sizeof *trees->branch);
  stem->first = (uint32_t) first;
  stem->count = (uint32_t) *made;
  return trees->branch + first;
}

/* Leaves out whatever raises the score most, while anything does; of `set`, the last m - required grew, one by one, and
 * the last of all does not raise it. Fills in what the stem knows of it. */
static void shrink(const weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_stem *stem, const int32_t *set,
                   size_t m, size_t required)
{
  const int32_t *node = trees->near->node + trees->near->start[i];
  size_t at[WEFT_BN_MAX_PARENTS + 2], left = m;
  int32_t last = m > required ? set[m - 1] : -1;
  int64_t score = stem->score;
  places_of(trees->near, i, set, m, at);
  while (left > required) {
    int64_t without[WEFT_BN_MAX_PARENTS + 2];
    size_t out = left;
    if (left == required + 1 && last >= 0) break;
    weft_bn_scorer_without(scorer, trees->near, i, at, left, without);
    for (size_t k = 0; k < left; k++) {
      const int32_t v = node[at[k]];
      if (v == last || (trees->problem->required && trees->problem->required[i + trees->problem->p * (size_t) v]))
        continue;
      if (without[k] > score) {
        score = without[k];
        out = k;
      }
    }
    if (out == left) break;
    memmove(at + out, at + out + 1, (left - out - 1) * sizeof *at);
    left--;
    last = -1;
  }
  stem->kept = 0;
  for (size_t j = 0; j < m; j++)
    for (size_t k = 0; k < left; k++)
      if (node[at[k]] == set[j]) stem->kept |= UINT64_C(1) << j;
  stem->shrunk = score;
}

static int comes_before(const weft_bn_prefix *prefix, int32_t v)
{
  return v == prefix->moved ? prefix->before : prefix->place[v] < prefix->limit;
}

/* The set that grows among the nodes before i and shrinks, until neither raises the score; returns its score. It begins
 * with the required parents, or with the listed set of number `from` (not NO_ROOM). */
static int64_t grown_value(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, size_t from,
                           const weft_bn_prefix *prefix, uint64_t *asked_for, size_t *parents, size_t *size)
{
  int32_t set[WEFT_BN_MAX_PARENTS + 2];
  size_t required[WEFT_BN_MAX_PARENTS + 2], first = weft_bn_required_of(trees->problem, i, required), m = first;
  for (size_t k = 0; k < m; k++) set[k] = (int32_t) required[k];
  if (from != NO_ROOM) {
    const int32_t *member = trees->listed->member + from * trees->listed->width;
    for (m = 0; m < trees->listed->width && member[m] >= 0; m++) set[m] = member[m];
  }
  if (!trees->shared && (trees->stems + WEFT_BN_MAX_PARENTS + 2 > trees->max_stems ||
                         trees->branches + (WEFT_BN_MAX_PARENTS + 1) * trees->near->widest > trees->max_branches))
    forget_all(trees);
  weft_bn_stem spare, *stem;
  uint32_t *to = from == NO_ROOM ? &trees->root[i].stem : &trees->listed_stem[from]; /* refers to the next stem */
  int64_t shrunk = UNKNOWN, score = *to != NONE       ? 0
                                    : from != NO_ROOM ? trees->listed->score[from]
                                                      : weft_bn_scorer_value(scorer, i, required, m);
  for (;;) {
    if (*to == NONE) *to = new_stem(trees, score, shrunk, &spare);
    stem = *to == NONE ? &spare : &trees->stem[*to];
    size_t count = stem->count;
    weft_bn_branch *branch = count == NONE ? grow(trees, scorer, i, stem, set, m, &count) : trees->branch + stem->first;
    const weft_bn_branch *end = branch + count;
    for (; branch < end; branch++) {
      *asked_for |= weft_bn_bit(branch->node);
      if (comes_before(prefix, branch->node)) break;
    }
    if (branch < end) {
      set[m++] = branch->node;
      score = branch->score;
      shrunk = UNKNOWN;
      to = &branch->to;
      continue;
    }
    if (stem->shrunk == UNKNOWN) shrink(trees, scorer, i, stem, set, m, first);
    if (stem->shrunk == stem->score) break;
    size_t left = 0;
    for (size_t k = 0; k < m; k++)
      if (stem->kept >> k & 1) set[left++] = set[k];
    m = left;
    score = shrunk = stem->shrunk;
    to = &stem->again;
  }
  for (size_t k = 0; parents && k < m; k++) weft_bn_set_insert(parents, k, (size_t) set[k]);
  if (parents) *size = m;
  return stem->score;
}

/* The bits of all nodes that come before. A node that is moved away may share its bit with another one. */
static uint64_t bits_before(const weft_bn_prefix *prefix, size_t p)
{
  const uint64_t bits = prefix->bits[prefix->limit], bit = prefix->moved < 0 ? 0 : weft_bn_bit(prefix->moved);
  if (prefix->moved < 0 || prefix->before) return bits | bit;
  for (size_t v = (size_t) prefix->moved % 64; v < p; v += 64)
    if (comes_before(prefix, (int32_t) v)) return bits;
  return bits & ~bit;
}

/* Whether m members all come before: by their bits, of which `lacking` do not, then one by one. */
static inline int set_fits(const weft_bn_prefix *prefix, const int32_t *member, size_t m, uint64_t lacking,
                           uint64_t *asked_for)
{
  *asked_for |= lacking & -lacking;
  if (lacking) return 0;
  for (size_t k = 0; k < m && member[k] >= 0; k++) {
    *asked_for |= weft_bn_bit(member[k]);
    if (!comes_before(prefix, member[k])) return 0;
  }
  return 1;
}

static void copy_set(const int32_t *member, size_t m, size_t *parents, size_t *size)
{
  size_t count = 0;
  if (!parents) return;
  for (; count < m && member[count] >= 0; count++) parents[count] = (size_t) member[count];
  *size = count;
}

/* Holds the lock of node i's tree while it asks the tree; sets that were listed or thinned, fit and score higher than
 * the grown set replace it. */
int64_t weft_bn_trees_value(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_prefix prefix,
                            uint64_t *asked_for, size_t *parents, size_t *size)
{
  const weft_bn_listed *listed = trees->listed;
  const weft_bn_thinned *thinned = &trees->thinned;
  *asked_for = 0;
  while (__atomic_test_and_set(&trees->root[i].busy, __ATOMIC_ACQUIRE)) sched_yield();
  int64_t score = grown_value(trees, scorer, i, NO_ROOM, &prefix, asked_for, parents, size);
  __atomic_clear(&trees->root[i].busy, __ATOMIC_RELEASE);
  const size_t from = listed->width ? listed->start[i] : 0, end = listed->width ? listed->start[i + 1] : 0;
  const size_t first = WEFT_BN_FOUND * i, last = first + (thinned->count ? thinned->count[i] : 0);
  if (!(from < end && listed->score[from] > score) && !(first < last && thinned->score[first] > score)) return score;
  const uint64_t before = bits_before(&prefix, trees->problem->p);
  for (size_t k = from; k < end && listed->score[k] > score; k++) {
    const int32_t *member = listed->member + k * listed->width;
    if (!set_fits(&prefix, member, listed->width, listed->bits[k] & ~before, asked_for)) continue;
    copy_set(member, listed->width, parents, size);
    score = listed->score[k];
    if (trees->listed_stem) score = grown_value(trees, scorer, i, k, &prefix, asked_for, parents, size);
  }
  for (size_t k = first; k < last && thinned->score[k] > score; k++) {
    const int32_t *member = thinned->member + k * WEFT_BN_MAX_PARENTS;
    if (!set_fits(&prefix, member, thinned->size[k], thinned->bits[k] & ~before, asked_for)) continue;
    copy_set(member, thinned->size[k], parents, size);
    score = thinned->score[k];
  }
  return score;
}

/* Inserts a set at its place by its score, after equal ones, unless it is there; the last one makes room. */
static int remember(weft_bn_trees *trees, size_t i, int64_t score, const int32_t *set, size_t m)
{
  weft_bn_thinned *to = &trees->thinned;
  const size_t first = WEFT_BN_FOUND * i, count = to->count[i];
  uint64_t bits = 0;
  size_t at = count, kept = count < WEFT_BN_FOUND ? count : WEFT_BN_FOUND - 1;
  for (size_t k = 0; k < m; k++) bits |= weft_bn_bit(set[k]);
  while (at > 0 && to->score[first + at - 1] < score) at--;
  for (size_t k = at; k > 0 && to->score[first + k - 1] == score; k--)
    if (to->bits[first + k - 1] == bits) return 0;
  if (at == WEFT_BN_FOUND) return 0;
#define SHIFT(array, width) \
  memmove(to->array + (first + at + 1) * (width), to->array + (first + at) * (width), \
          (kept - at) * (width) * sizeof *to->array)
  SHIFT(score, 1);
  SHIFT(bits, 1);
  SHIFT(size, 1);
  SHIFT(member, WEFT_BN_MAX_PARENTS);
#undef SHIFT
  to->score[first + at] = score;
  to->bits[first + at] = bits;
  to->size[first + at] = (uint8_t) m;
  memcpy(to->member + (first + at) * WEFT_BN_MAX_PARENTS, set, m * sizeof *set);
  to->count[i] = kept + 1;
  return 1;
}

/* The set that grows from a thinned one and shrinks, until neither raises the score: without a tree, for it is asked
 * for once. */
static int64_t settle_set(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, const weft_bn_prefix *prefix,
                          int32_t *set, size_t *size)
{
  size_t required[WEFT_BN_MAX_PARENTS + 2], m = *size, first = weft_bn_required_of(trees->problem, i, required);
  size_t named[WEFT_BN_MAX_PARENTS + 2];
  for (size_t k = 0; k < m; k++) named[k] = (size_t) set[k];
  weft_bn_stem stem = { .score = weft_bn_scorer_value(scorer, i, named, m) };
  for (;;) {
    const int64_t from = stem.score;
    shrink(trees, scorer, i, &stem, set, m, first);
    size_t left = 0;
    for (size_t k = 0; k < m; k++)
      if (stem.kept >> k & 1) set[left++] = set[k];
    m = left;
    stem.score = stem.shrunk;
    for (;;) {
      const size_t count = grow_list(trees, scorer, i, stem.score, set, m);
      size_t k = 0;
      while (k < count && !comes_before(prefix, scorer->branch[k].node)) k++;
      if (k == count) break;
      stem.score = scorer->branch[k].score;
      set[m++] = scorer->branch[k].node;
    }
    if (stem.score == from) break;
  }
  *size = m;
  return stem.score;
}

/* A parent that does not lower the residual variance by the factor of half the logarithm of the rows is not worth it by
 * any score. Required parents are not thinned: no set is looked for where there are any. */
int weft_bn_trees_thin(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_prefix prefix, int64_t value)
{
  const weft_bn_near *near = trees->near;
  const weft_bn_problem *problem = trees->problem;
  const double rows = problem->scatter_rows[problem->group[i]], factor = rows > 1 ? exp(log(rows) / rows) : 2;
  const size_t from = near->start[i], most = (size_t) problem->max_parents[i];
  size_t m = 0, *at = scorer->more;
  int32_t set[WEFT_BN_MAX_PARENTS + 2];
  if (!near->covariance || problem->required) return 0;
  for (size_t k = from; k < near->start[i + 1]; k++)
    if (comes_before(&prefix, near->node[k])) at[m++] = k - from;
  scorer->scored += (double) m;
  scorer->swept += (double) m * (double) m * (double) m;
  m = weft_bn_gauss_thin(weft_bn_near_covariances(near, problem, i), at, m, most, factor, scorer->whole);
  if (m < 2) return 0;
  for (size_t k = 0; k < m; k++) set[k] = near->node[from + at[k]];
  const int64_t score = settle_set(trees, scorer, i, &prefix, set, &m);
  return score > value && remember(trees, i, score, set, m);
}
