/* Candidate parents for a search of many nodes; see search.h. Each node's own greedy search over all nodes finds
 * what belongs around it: its parents, its children, and parents of these. Nodes that score or fit best alone join
 * them. If one node is a candidate of another, the other becomes a candidate of the first, too, where that is allowed.
 */
#include <string.h>
#include "core/numbers/topk.h"
#include "bn/cpu/search/candidates.h"
#include "bn/both/set_terms.h"

typedef struct near_job {
  const weft_bn_search *search;
  weft_bn_scorer *scorers;
  weft_bn_near *near;
  size_t *more; /* a thread: p */
  int64_t *value;
  weft_scored *list;     /* a thread: p */
  const int32_t *dag;    /* widening: a network, */
  const uint64_t *below; /* each node's descendants in it, p × words */
  size_t words;
  int32_t *found; /* p: which node raises the score most, -1: none */
} near_job;

static weft_status make_job(weft_arena *mem, const weft_bn_search *search, weft_bn_scorer *scorers, weft_bn_near *near,
                            near_job *out)
{
  weft_status st = WEFT_OK;
  const size_t p = search->problem->p, threads = search->problem->threads;
  *out = (near_job){ .search = search, .scorers = scorers, .near = near };
  WEFT_TAKE(out->more, mem, threads * p);
  WEFT_TAKE(out->value, mem, threads * p);
  WEFT_TAKE(out->list, mem, threads * p);
  WEFT_TAKE(out->found, mem, p);
done:
  return st;
}

/* The `width` nodes that score best alone, even those that do not raise the score by themselves: two may together. */
static void mark_single(const near_job *job, size_t i, const size_t *more, const int64_t *value, size_t count,
                        weft_scored *list)
{
  const size_t p = job->search->problem->p;
  size_t found = 0;
  for (size_t k = 0; k < count; k++)
    if (value[k] > WEFT_BN_NEVER) list[found++] = (weft_scored){ (double) value[k], more[k] };
  weft_scored_sort(list, found);
  for (size_t k = 0; k < found && k < job->search->width; k++) job->near->is[i + p * list[k].index] = 1;
}

/* Those that fit best alone by the AIC. A score that punishes many configurations of the parents hides nodes of many
 * levels, two of which may explain a third one. */
static void mark_fitting(const near_job *job, int thread, size_t i, const size_t *more, size_t count)
{
  const weft_bn_problem *problem = job->search->problem;
  const size_t p = problem->p;
  weft_bn_scorer *scorer = &job->scorers[thread];
  int64_t *value = job->value + (size_t) thread * p;
  weft_bn_problem fit = *problem;
  weft_bn_ready ready = *scorer->ready;
  fit.score = WEFT_BN_AIC;
  ready.problem = &fit;
  weft_bn_extend(&ready, thread, &scorer->bench, i, NULL, 0, more, count, value);
  for (size_t k = 0; k < count; k++)
    value[k] -= (int64_t) ((problem->levels[i] - 1.0) * (problem->levels[more[k]] - 1.0) * ready.unit);
  scorer->scored += (double) count;
  mark_single(job, i, more, value, count, job->list + (size_t) thread * p);
}

/* Marks the candidates of node i: required parents, the `width` best single parents, and all that a greedy search
 * over the allowed nodes adds to its set. */
static void near_task(void *data, size_t i, int thread)
{
  near_job *job = data;
  const weft_bn_problem *problem = job->search->problem;
  const size_t p = problem->p;
  weft_bn_scorer *scorer = &job->scorers[thread];
  size_t *more = job->more + (size_t) thread * p, set[WEFT_BN_MAX_PARENTS + 1], m, count = 0;
  int64_t *value = job->value + (size_t) thread * p;
  m = weft_bn_required_of(problem, i, set);
  for (size_t parent = 0; parent < p; parent++)
    if (parent != i && problem->allowed[i + p * parent] && !(problem->required && problem->required[i + p * parent]))
      more[count++] = parent;
  for (size_t k = 0; k < m; k++) job->near->is[i + p * set[k]] = 1;
  int64_t score = weft_bn_scorer_value(scorer, i, set, m);
  if (weft_bn_kind(problem->score)->data == WEFT_BN_COUNTS && job->search->width < count)
    mark_fitting(job, thread, i, more, count);
  for (int first = 1; m < (size_t) problem->max_parents[i] && count; first = 0) {
    size_t best = count;
    weft_bn_scorer_extend(scorer, i, set, m, more, count, value);
    if (first) mark_single(job, i, more, value, count, job->list + (size_t) thread * p);
    for (size_t k = 0; k < count; k++)
      if (value[k] > score) {
        score = value[k];
        best = k;
      }
    if (best == count) break;
    job->near->is[i + p * more[best]] = 1;
    weft_bn_set_insert(set, m++, more[best]);
    memmove(more + best, more + best + 1, (count - best - 1) * sizeof *more);
    count--;
  }
}

#define MAX_COVARIANCES ((size_t) 1 << 27) /* beyond them they are looked up in the scatter matrix: 1 GiB */

/* The part of the scatter matrix that scores of a node with its candidates need, side by side; see near.h. */
static weft_status copy_covariances(weft_arena *mem, const weft_bn_ready *ready, weft_bn_near *near)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = ready->problem;
  const size_t p = problem->p;
  weft_arena_drop(mem, near->covariance);
  weft_arena_drop(mem, near->share);
  near->covariance = NULL;
  near->share = NULL;
  if (!weft_bn_gauss(problem)) goto done;
  near->covariance_start[0] = 0;
  for (size_t i = 0; i < p; i++)
    near->covariance_start[i + 1] =
        near->covariance_start[i] + (near->start[i + 1] - near->start[i] + 2) * weft_bn_near_stride(near, i);
  if (near->covariance_start[p] > MAX_COVARIANCES) goto done;
  WEFT_TAKE(near->share, mem, near->pairs + 1);
  WEFT_TAKE0(near->covariance, mem, near->covariance_start[p]);
  for (size_t i = 0; i < p; i++) {
    const double *scatter = problem->scatter + (size_t) problem->group[i] * p * p;
    const int32_t *node = near->node + near->start[i];
    const size_t count = near->start[i + 1] - near->start[i], stride = weft_bn_near_stride(near, i);
    double *to = near->covariance + near->covariance_start[i];
    for (size_t j = 0; j <= count; j++) {
      const double *from = scatter + (j < count ? (size_t) node[j] : i) * p;
      for (size_t k = 0; k < count; k++) to[j * stride + k] = from[node[k]];
      to[j * stride + count] = from[i];
    }
    for (size_t k = 0; k < count; k++) {
      to[(count + 1) * stride + k] = to[k * stride + k];
      near->share[near->start[i] + k] = weft_bn_edge_share(ready, i, (size_t) node[k]);
    }
  }
done:
  return st;
}

/* Both ways, and as lists. */
static void finish(const weft_bn_problem *problem, weft_bn_near *near)
{
  const size_t p = problem->p;
  for (size_t parent = 0; parent < p; parent++)
    for (size_t i = 0; i < parent; i++) {
      uint8_t *there = &near->is[i + p * parent], *back = &near->is[parent + p * i];
      if (*there && !*back && problem->allowed[parent + p * i]) *back = near->grown[parent] = 1;
      if (*back && !*there && problem->allowed[i + p * parent]) *there = near->grown[i] = 1;
    }
  near->pairs = near->widest = 0;
  memset(near->kid_start, 0, (p + 1) * sizeof *near->kid_start);
  for (size_t parent = 0; parent < p; parent++)
    for (size_t i = 0; i < p; i++) near->kid_start[parent + 1] += near->is[i + p * parent];
  for (size_t parent = 0; parent < p; parent++) near->kid_start[parent + 1] += near->kid_start[parent];
}

/* Makes the lists of candidates and of kids from the matrix `is`, in `mem`, in place of older ones. */
static weft_status list_near(weft_arena *mem, const weft_bn_ready *ready, weft_bn_near *near)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = ready->problem;
  const size_t p = problem->p;
  size_t kids = 0;
  weft_arena_drop(mem, near->node);
  weft_arena_drop(mem, near->kid);
  near->node = near->kid = NULL;
  finish(problem, near);
  near->pairs = near->kid_start[p];
  WEFT_TAKE(near->node, mem, near->pairs + 1);
  WEFT_TAKE(near->kid, mem, near->pairs + 1);
  for (size_t parent = 0; parent < p; parent++)
    for (size_t i = 0; i < p; i++)
      if (near->is[i + p * parent]) near->kid[kids++] = (int32_t) i;
  kids = 0;
  for (size_t i = 0; i < p; i++) {
    near->start[i] = kids;
    for (size_t parent = 0; parent < p; parent++)
      if (near->is[i + p * parent]) near->node[kids++] = (int32_t) parent;
    if (kids - near->start[i] > near->widest) near->widest = kids - near->start[i];
  }
  near->start[p] = kids;
  WEFT_TRY(copy_covariances(mem, ready, near));
done:
  return st;
}

/* Finds the candidates of all nodes from nothing; `out` lives in `mem`. */
weft_status weft_bn_near_find(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, weft_bn_scorer *scorers,
                              weft_bn_near *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t p = search->problem->p;
  near_job job;
  *out = (weft_bn_near){ 0 };
  WEFT_TAKE0(out->is, mem, p * p);
  WEFT_TAKE0(out->grown, mem, p);
  WEFT_TAKE(out->start, mem, p + 1);
  WEFT_TAKE(out->kid_start, mem, p + 1);
  WEFT_TAKE(out->covariance_start, mem, p + 1);
  WEFT_TRY(make_job(&own, search, scorers, out, &job));
  WEFT_TRY(weft_bn_run_tasks(ctx, search->problem->threads, p, near_task, &job, 0, 0.3));
  WEFT_TRY(list_near(mem, scorers->ready, out));
done:
  weft_arena_end(&own);
  return st;
}

/* Finds the node, no candidate yet and no descendant of i, that raises the score of i's parents most: job->found[i], or
 * -1. */
static void widen_task(void *data, size_t i, int thread)
{
  near_job *job = data;
  const weft_bn_problem *problem = job->search->problem;
  const size_t p = problem->p;
  weft_bn_scorer *scorer = &job->scorers[thread];
  size_t *more = job->more + (size_t) thread * p, set[WEFT_BN_MAX_PARENTS + 1], m = 0, count = 0;
  int64_t *value = job->value + (size_t) thread * p;
  job->found[i] = -1;
  for (size_t parent = 0; parent < p; parent++) {
    if (job->dag[parent + p * i])
      set[m++] = parent;
    else if (parent != i && problem->allowed[i + p * parent] && !job->near->is[i + p * parent] &&
             !(job->below[i * job->words + parent / 64] >> parent % 64 & 1))
      more[count++] = parent;
  }
  if (m >= (size_t) problem->max_parents[i] || !count) return;
  int64_t score = weft_bn_scorer_value(scorer, i, set, m);
  weft_bn_scorer_extend(scorer, i, set, m, more, count, value);
  for (size_t k = 0; k < count; k++)
    if (value[k] > score) {
      score = value[k];
      job->found[i] = (int32_t) more[k];
    }
}

/* `order` and `dag` are one start's network. New lists take the place of the old ones in `mem`; what points into the
 * old ones must be made anew. */
weft_status weft_bn_near_widen(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, weft_bn_scorer *scorers,
                               const int32_t *order, const int32_t *dag, weft_bn_near *near, size_t *added)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t p = search->problem->p;
  const size_t words = (p + 63) / 64;
  near_job job;
  uint64_t *below;
  *added = 0;
  WEFT_TRY(make_job(&own, search, scorers, near, &job));
  WEFT_TAKE0(below, &own, p * words);
  for (size_t k = p; k-- > 0;) {
    const size_t child = (size_t) order[k];
    for (size_t parent = 0; parent < p; parent++) {
      if (!dag[parent + p * child]) continue;
      uint64_t *of = below + parent * words;
      for (size_t w = 0; w < words; w++) of[w] |= below[child * words + w];
      of[child / 64] |= UINT64_C(1) << child % 64;
    }
  }
  job.dag = dag;
  job.below = below;
  job.words = words;
  WEFT_TRY(weft_bn_run_tasks(ctx, search->problem->threads, p, widen_task, &job, 0.9, 0.95));
  for (size_t i = 0; i < p; i++) {
    if (job.found[i] < 0) continue;
    near->is[i + p * (size_t) job.found[i]] = near->grown[i] = 1;
    ++*added;
  }
  if (*added) WEFT_TRY(list_near(mem, scorers->ready, near));
done:
  weft_arena_end(&own);
  return st;
}
