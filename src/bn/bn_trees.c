/* Grow-shrink trees; see bn_search.h. The root of a node's tree is the set of its required parents. A stem that was
 * asked for lists the candidates that raise its score, best first: whatever comes before the node, the set grows by the
 * first of them that does. What is left after shrinking depends on the grown set alone. When the room is used up all
 * trees are forgotten. */
#include <math.h>
#include <string.h>
#include "bn_search.h"

#define NONE UINT32_MAX
#define SMALL_ROOM ((size_t) 1 << 14)
#define LARGE_ROOM ((size_t) 1 << 20)
#define UNKNOWN INT64_MIN

/* ---- scoring ---- */

weft_status weft_bn_scorers_make(weft_arena *mem, weft_bn_ready *ready, weft_bn_scorer *out)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = ready->problem;
  const size_t p = problem->p;
  double *penalty;
  size_t *required;
  WEFT_TAKE(penalty, mem, p);
  WEFT_TAKE(required, mem, p);
  for (size_t i = 0; i < p; i++) {
    penalty[i] = weft_bn_penalty(problem, i) * ready->unit;
    required[i] = weft_bn_required(problem, i);
  }
  for (size_t t = 0; t < problem->threads; t++) {
    weft_bn_scorer *s = &out[t];
    *s = (weft_bn_scorer) { .ready = ready, .penalty = penalty, .required_count = required, .thread = (int) t };
    WEFT_TRY(weft_bn_bench_make(mem, ready, &s->bench));
    if (weft_bn_gauss(problem)) WEFT_TAKE(s->half, mem, (WEFT_BN_MOST_PARENTS + 2) * p);
  }
done:
  return st;
}

size_t weft_bn_required_of(const weft_bn_problem *problem, size_t i, size_t *out)
{
  size_t m = 0;
  for (size_t v = 0; v < problem->p && problem->required; v++) if (problem->required[i + problem->p * v]) out[m++] = v;
  return m;
}

/* All of `more` at once: rows of the Cholesky factor, a vector over `more` for each parent. */
static void extend_gauss(weft_bn_scorer *s, size_t i, const size_t *parents, size_t m, const size_t *more, size_t count,
                         int64_t *out)
{
  const weft_bn_problem *problem = s->ready->problem;
  const size_t p = problem->p, group = (size_t) problem->group[i];
  const double *scatter = problem->scatter + group * p * p;
  double factor[(WEFT_BN_MOST_PARENTS + 2) * (WEFT_BN_MOST_PARENTS + 2)], log_parents = 0;
  double *left = s->half + m * count, *cross = left + count;
  size_t member[WEFT_BN_MOST_PARENTS + 2];
  for (size_t k = 0; k < m; k++) {
    member[k] = parents[k];
    log_parents += weft_bn_gauss_row(scatter, p, member, k, factor);
  }
  member[m] = i;
  weft_bn_gauss_row(scatter, p, member, m, factor);
  const double *child = factor + m * (WEFT_BN_MOST_PARENTS + 2);
  const double child_left = child[m] * child[m];
  for (size_t k = 0; k < count; k++) {
    left[k] = scatter[more[k] * p + more[k]];
    cross[k] = scatter[i * p + more[k]];
  }
  for (size_t j = 0; j < m; j++) {
    const double *row = factor + j * (WEFT_BN_MOST_PARENTS + 2), *from = scatter + parents[j] * p;
    double *mine = s->half + j * count;
    for (size_t k = 0; k < count; k++) mine[k] = from[more[k]];
    for (size_t l = 0; l < j; l++) {
      const double *other = s->half + l * count, by = row[l];
      for (size_t k = 0; k < count; k++) mine[k] -= by * other[k];
    }
    for (size_t k = 0; k < count; k++) {
      mine[k] /= row[j];
      left[k] -= mine[k] * mine[k];
      cross[k] -= mine[k] * child[j];
    }
  }
  for (size_t k = 0; k < count; k++) {
    const double with = log_parents + log(left[k]), own = child_left - cross[k] * cross[k] / left[k];
    out[k] = weft_bn_gauss_value(s->ready, group, m + 2, with + log(own)) -
             weft_bn_gauss_value(s->ready, group, m + 1, with);
  }
}

void weft_bn_scorer_extend(weft_bn_scorer *s, size_t i, const size_t *parents, size_t m, const size_t *more,
                           size_t count, int64_t *out)
{
  size_t member[WEFT_BN_MOST_PARENTS + 2];
  s->scored += (double) count;
  if (weft_bn_gauss(s->ready->problem)) extend_gauss(s, i, parents, m, more, count, out);
  else weft_bn_extend(s->ready, s->thread, &s->bench, i, parents, m, more, count, out);
  memcpy(member, parents, m * sizeof *member);
  for (size_t k = 0; k < count; k++) {
    member[m] = more[k];
    const int64_t share = weft_bn_set_share(s->ready, i, member, m + 1, s->required_count[i], s->penalty[i]);
    out[k] = share == WEFT_BN_NEVER ? WEFT_BN_NEVER : out[k] + share;
  }
}

int64_t weft_bn_scorer_value(weft_bn_scorer *s, size_t i, const size_t *parents, size_t m)
{
  int64_t value;
  if (m) {
    weft_bn_scorer_extend(s, i, parents, m - 1, parents + m - 1, 1, &value);
    return value;
  }
  const int64_t share = weft_bn_set_share(s->ready, i, parents, 0, s->required_count[i], s->penalty[i]);
  s->scored++;
  return share == WEFT_BN_NEVER ? WEFT_BN_NEVER : weft_bn_alone(s->ready, s->thread, &s->bench, i) + share;
}

/* ---- trees ---- */

static void forget(weft_bn_trees *t)
{
  for (size_t i = 0; i < t->problem->p; i++) t->root[i] = NONE;
  t->stems = t->branches = 0;
}

weft_status weft_bn_trees_make(weft_arena *mem, const weft_bn_problem *problem, const weft_bn_near *near,
                               const weft_bn_listed *listed, weft_bn_trees *out)
{
  weft_status st = WEFT_OK;
  *out = (weft_bn_trees) { .near = near, .listed = listed, .problem = problem };
  const size_t room = 256 * near->pairs < LARGE_ROOM ? 256 * near->pairs : LARGE_ROOM;
  out->most_branches = SMALL_ROOM + room + 16 * near->pairs + 2 * (WEFT_BN_MOST_PARENTS + 1) * problem->p;
  out->most_stems = out->most_branches / 4;
  WEFT_TAKE(out->root, mem, problem->p);
  WEFT_TAKE(out->stem, mem, out->most_stems);
  WEFT_TAKE(out->branch, mem, out->most_branches);
  WEFT_TAKE(out->more, mem, problem->p);
  WEFT_TAKE(out->value, mem, problem->p);
  forget(out);
done:
  return st;
}

void weft_bn_trees_forget(weft_bn_trees *t, const uint8_t *which)
{
  for (size_t i = 0; i < t->problem->p; i++) if (which[i]) t->root[i] = NONE;
}

static uint32_t new_stem(weft_bn_trees *t, int64_t score)
{
  t->stem[t->stems] = (weft_bn_stem) { .score = score, .shrunk = UNKNOWN, .count = NONE };
  return (uint32_t) t->stems++;
}

/* Best first; of equal scores the first node. An insertion sort: few raise the score. */
static void insert_branch(weft_bn_branch *first, size_t count, weft_bn_branch made)
{
  for (; count > 0 && first[count - 1].score < made.score; count--) first[count] = first[count - 1];
  first[count] = made;
}

static void grow(weft_bn_trees *t, weft_bn_scorer *scorer, size_t i, weft_bn_stem *stem, const size_t *set, size_t m)
{
  const weft_bn_near *near = t->near;
  size_t count = 0;
  stem->first = (uint32_t) t->branches;
  stem->count = 0;
  if (m >= (size_t) t->problem->max_parents[i]) return;
  for (size_t k = near->start[i], at = 0; k < near->start[i + 1]; k++) { /* both ascend */
    const size_t v = (size_t) near->node[k];
    while (at < m && set[at] < v) at++;
    if (at >= m || set[at] != v) t->more[count++] = v;
  }
  weft_bn_scorer_extend(scorer, i, set, m, t->more, count, t->value);
  for (size_t k = 0; k < count; k++) {
    if (t->value[k] <= stem->score) continue;
    insert_branch(t->branch + stem->first, stem->count++, (weft_bn_branch) { t->value[k], (int32_t) t->more[k], NONE });
  }
  t->branches += stem->count;
}

/* Leaves out whatever raises the score most, while anything does. `last`: what the set grew by, which does not. */
static int64_t shrink(const weft_bn_trees *t, weft_bn_scorer *scorer, size_t i, int64_t score, size_t *set,
                      size_t *size, size_t last)
{
  const weft_bn_problem *problem = t->problem;
  size_t rest[WEFT_BN_MOST_PARENTS + 1], m = *size;
  while (m > 0) {
    size_t out = m;
    for (size_t k = 0; k < m; k++) {
      if (set[k] == last || (problem->required && problem->required[i + problem->p * set[k]])) continue;
      memcpy(rest, set, k * sizeof *rest);
      memcpy(rest + k, set + k + 1, (m - k - 1) * sizeof *rest);
      const int64_t without = weft_bn_scorer_value(scorer, i, rest, m - 1);
      if (without > score) { score = without; out = k; }
    }
    if (out == m) break;
    memmove(set + out, set + out + 1, (m - out - 1) * sizeof *set);
    m--;
    last = SIZE_MAX;
  }
  *size = m;
  return score;
}

static int comes_before(const weft_bn_prefix *prefix, int32_t v)
{
  return v == prefix->moved ? prefix->before : prefix->place[v] < prefix->limit;
}

/* What is left of the set that grows among the nodes before i. */
static int64_t grown_value(weft_bn_trees *t, weft_bn_scorer *scorer, size_t i, const weft_bn_prefix *prefix,
                           size_t *parents, size_t *size)
{
  size_t set[WEFT_BN_MOST_PARENTS + 2], m = weft_bn_required_of(t->problem, i, set), last = SIZE_MAX;
  if (t->stems + WEFT_BN_MOST_PARENTS + 2 > t->most_stems ||
      t->branches + (WEFT_BN_MOST_PARENTS + 1) * t->near->widest > t->most_branches) forget(t);
  if (t->root[i] == NONE) t->root[i] = new_stem(t, weft_bn_scorer_value(scorer, i, set, m));
  uint32_t at = t->root[i];
  for (;;) {
    weft_bn_stem *stem = &t->stem[at];
    if (stem->count == NONE) grow(t, scorer, i, stem, set, m);
    weft_bn_branch *b = t->branch + stem->first, *end = b + stem->count;
    while (b < end && !comes_before(prefix, b->node)) b++;
    if (b == end) break;
    if (b->to == NONE) b->to = new_stem(t, b->score);
    last = (size_t) b->node;
    weft_bn_set_insert(set, m++, last);
    at = b->to;
  }
  weft_bn_stem *leaf = &t->stem[at];
  if (leaf->shrunk != UNKNOWN && !parents) return leaf->shrunk;
  leaf->shrunk = shrink(t, scorer, i, leaf->score, set, &m, last);
  if (parents) {
    memcpy(parents, set, m * sizeof *set);
    *size = m;
  }
  return leaf->shrunk;
}

int64_t weft_bn_trees_value(weft_bn_trees *t, weft_bn_scorer *scorer, size_t i, weft_bn_prefix prefix, size_t *parents,
                            size_t *size)
{
  const weft_bn_listed *listed = t->listed;
  const int64_t grown = grown_value(t, scorer, i, &prefix, parents, size);
  if (!listed->width) return grown;
  for (size_t k = listed->start[i]; k < listed->start[i + 1] && listed->score[k] > grown; k++) {
    const int32_t *member = listed->member + k * listed->width;
    size_t m = 0;
    while (m < listed->width && member[m] >= 0 && comes_before(&prefix, member[m])) m++;
    if (m < listed->width && member[m] >= 0) continue;
    for (size_t j = 0; j < m && parents; j++) parents[j] = (size_t) member[j];
    if (parents) *size = m;
    return listed->score[k];
  }
  return grown;
}
