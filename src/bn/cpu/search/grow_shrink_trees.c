/* Grow-shrink trees; see search.h. The root of a node's tree is the set of its required parents. A stem that was
 * requested lists the candidates that raise its score, best first: whichever nodes come before, the set grows by the
 * first of these candidates that does. What is left after shrinking depends on the grown set alone.
 *
 * Trees of one start are forgotten when their room is used up. Trees that lanes share have a lock for each node: their
 * content depends on what is requested, not on which lane requests it first. They are forgotten before a climb or a
 * round of kicks when most of the room is used, so that the same sets are scored with any number of threads. If it is
 * used up before, what is missing is scored and not kept until the threads have met. */
#include <sched.h>
#include <string.h>
#include "bn/cpu/search/grow_shrink_trees.h"

#define NONE UINT32_MAX
#define SMALL_ROOM ((size_t) 1 << 14)
#define LARGE_ROOM ((size_t) 1 << 20)
#define WHOLE_ROOM ((size_t) 1 << 24) /* for all trees */
#define NO_ROOM SIZE_MAX
#define UNKNOWN INT64_MIN

static void forget_all(weft_bn_trees *trees)
{
  for (size_t i = 0; i < trees->problem->p; i++) trees->root[i].stem = NONE;
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
  for (size_t i = 0; i < trees->problem->p; i++)
    if (which[i]) trees->root[i].stem = NONE;
}

/* Takes `count` places of `most` and returns the first, or NO_ROOM when too few are left. */
static size_t take(size_t *used, size_t count, size_t most)
{
  const size_t at = __atomic_fetch_add(used, count, __ATOMIC_RELAXED);
  return at + count <= most ? at : NO_ROOM;
}

/* Returns its place; NONE when there is no room and `spare` is the stem. */
static uint32_t new_stem(weft_bn_trees *trees, int64_t score, weft_bn_stem *spare)
{
  const size_t at = take(&trees->stems, 1, trees->max_stems);
  *(at == NO_ROOM ? spare : &trees->stem[at]) = (weft_bn_stem){ .score = score, .shrunk = UNKNOWN, .count = NONE };
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

/* The branches of a stem, which are kept where there is room. */
static weft_bn_branch *grow(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_stem *stem,
                            const int32_t *set, size_t m, size_t *made)
{
  const int32_t *node = trees->near->node + trees->near->start[i];
  const size_t count = trees->near->start[i + 1] - trees->near->start[i];
  size_t at[WEFT_BN_MAX_PARENTS + 2], first;
  *made = 0;
  if (m < (size_t) trees->problem->max_parents[i]) {
    places_of(trees->near, i, set, m, at);
    weft_bn_scorer_near(scorer, trees->near, i, at, m, scorer->grown);
    for (size_t k = 0; k < count; k++) {
      if (scorer->grown[k] <= stem->score) continue;
      insert_branch(scorer->branch, (*made)++, (weft_bn_branch){ scorer->grown[k], node[k], NONE });
    }
  }
  if ((first = take(&trees->branches, *made, trees->max_branches)) == NO_ROOM) return scorer->branch;
  memcpy(trees->branch + first, scorer->branch, *made * sizeof *trees->branch);
  stem->first = (uint32_t) first;
  stem->count = (uint32_t) *made;
  return trees->branch + first;
}

/* Leaves out whatever raises the score most, while anything does; of `set`, the last m - required grew, one by one, and
 * the last of all does not raise it. */
static int64_t shrink(const weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, int64_t score, const int32_t *set,
                      size_t m, size_t required, size_t *parents, size_t *size)
{
  const int32_t *node = trees->near->node + trees->near->start[i];
  size_t at[WEFT_BN_MAX_PARENTS + 2];
  int32_t last = m > required ? set[m - 1] : -1;
  places_of(trees->near, i, set, m, at);
  while (m > required) {
    int64_t without[WEFT_BN_MAX_PARENTS + 2];
    size_t out = m;
    if (m == required + 1 && last >= 0) break;
    weft_bn_scorer_without(scorer, trees->near, i, at, m, without);
    for (size_t k = 0; k < m; k++) {
      const int32_t v = node[at[k]];
      if (v == last || (trees->problem->required && trees->problem->required[i + trees->problem->p * (size_t) v]))
        continue;
      if (without[k] > score) {
        score = without[k];
        out = k;
      }
    }
    if (out == m) break;
    memmove(at + out, at + out + 1, (m - out - 1) * sizeof *at);
    m--;
    last = -1;
  }
  if (!parents) return score;
  for (size_t k = 0; k < m; k++) parents[k] = (size_t) node[at[k]];
  *size = m;
  return score;
}

static int comes_before(const weft_bn_prefix *prefix, int32_t v)
{
  return v == prefix->moved ? prefix->before : prefix->place[v] < prefix->limit;
}

/* What shrinking leaves of the set that grows among the nodes before i. */
static int64_t grown_value(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, const weft_bn_prefix *prefix,
                           uint64_t *asked_for, size_t *parents, size_t *size)
{
  int32_t set[WEFT_BN_MAX_PARENTS + 2];
  size_t required[WEFT_BN_MAX_PARENTS + 2], first = weft_bn_required_of(trees->problem, i, required), m = first;
  for (size_t k = 0; k < m; k++) set[k] = (int32_t) required[k];
  if (!trees->shared && (trees->stems + WEFT_BN_MAX_PARENTS + 2 > trees->max_stems ||
                         trees->branches + (WEFT_BN_MAX_PARENTS + 1) * trees->near->widest > trees->max_branches))
    forget_all(trees);
  weft_bn_stem spare, *stem;
  uint32_t *to = &trees->root[i].stem; /* the place that refers to the next stem */
  int64_t score = *to == NONE ? weft_bn_scorer_value(scorer, i, required, m) : 0;
  for (;;) {
    if (*to == NONE) *to = new_stem(trees, score, &spare);
    stem = *to == NONE ? &spare : &trees->stem[*to];
    size_t count = stem->count;
    weft_bn_branch *branch = count == NONE ? grow(trees, scorer, i, stem, set, m, &count) : trees->branch + stem->first;
    const weft_bn_branch *end = branch + count;
    for (; branch < end; branch++) {
      *asked_for |= weft_bn_bit(branch->node);
      if (comes_before(prefix, branch->node)) break;
    }
    if (branch == end) break;
    set[m++] = branch->node;
    score = branch->score;
    to = &branch->to;
  }
  if (stem->shrunk == UNKNOWN || parents)
    stem->shrunk = shrink(trees, scorer, i, stem->score, set, m, first, parents, size);
  return stem->shrunk;
}

/* Holds the lock of node i's tree while it asks the tree; listed small sets that fit and score higher than the grown
 * set replace it. */
int64_t weft_bn_trees_value(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_prefix prefix,
                            uint64_t *asked_for, size_t *parents, size_t *size)
{
  const weft_bn_listed *listed = trees->listed;
  *asked_for = 0;
  while (__atomic_test_and_set(&trees->root[i].busy, __ATOMIC_ACQUIRE)) sched_yield();
  const int64_t grown = grown_value(trees, scorer, i, &prefix, asked_for, parents, size);
  __atomic_clear(&trees->root[i].busy, __ATOMIC_RELEASE);
  if (!listed->width) return grown;
  for (size_t k = listed->start[i]; k < listed->start[i + 1] && listed->score[k] > grown; k++) {
    const int32_t *member = listed->member + k * listed->width;
    size_t m = 0;
    for (; m < listed->width && member[m] >= 0; m++) {
      *asked_for |= weft_bn_bit(member[m]);
      if (!comes_before(&prefix, member[m])) break;
    }
    if (m < listed->width && member[m] >= 0) continue;
    for (size_t j = 0; j < m && parents; j++) parents[j] = (size_t) member[j];
    if (parents) *size = m;
    return listed->score[k];
  }
  return grown;
}
