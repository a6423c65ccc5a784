/* Joint values h(S) of all sets of at most s + 1 nodes, and the scores of single families.
 *
 * A set is reached from its largest member downwards: the cells of {c_m}, of {c_m, c_{m-1}} and so on, so that the last
 * step runs over the least member and writes values side by side. A task is a pair of largest members.
 * Families (K2, BDs, interventions, candidate lists) carry two sets of cells along, with and without the child. */
#include <math.h>
#include "../base/parallel.h"
#include "bn_internal.h"

/* ---- tasks ---- */

weft_status weft_bn_run_timed(weft_ctx *ctx, size_t threads, size_t tasks, weft_bn_task *task, void *data, double done,
                              double *took)
{
  const double started = weft_seconds();
  WEFT_PARALLEL_FOR((int) (threads < tasks ? threads : tasks), dynamic)
  for (size_t t = 0; t < tasks; t++) task(data, t, WEFT_THREAD());
  *took = weft_seconds() - started;
  return weft_poll(ctx, done, 1);
}

typedef struct portion_job { weft_bn_task *task; void *data; size_t first; } portion_job;

static void portion_task(void *data, size_t t, int thread)
{
  const portion_job *job = data;
  job->task(job->data, job->first + t, thread);
}

weft_status weft_bn_run_tasks(weft_ctx *ctx, size_t threads, size_t tasks, weft_bn_task *task, void *data, double from,
                              double to)
{
  weft_status st = WEFT_OK;
  portion_job job = { task, data, 0 };
  size_t portion = 4 * threads;
  while (job.first < tasks && st == WEFT_OK) {
    const size_t count = portion < tasks - job.first ? portion : tasks - job.first;
    double took;
    st = weft_bn_run_timed(ctx, threads, count, portion_task, &job,
                           from + (to - from) * (double) job.first / (double) tasks, &took);
    job.first += count;
    if (took < 0.015) portion *= took < 0.004 ? 4 : 2;
    else if (took > 0.05 && portion > threads) portion /= 2;
  }
  return st;
}

/* ---- Gaussian data ---- */

#define FACTOR_STRIDE (WEFT_BN_MOST_PARENTS + 2)

double weft_bn_gauss_row(const double *scatter, size_t p, const size_t *member, size_t d, double *factor)
{
  double *row = factor + d * FACTOR_STRIDE, left = scatter[member[d] * p + member[d]];
  for (size_t j = 0; j < d; j++) {
    const double *other = factor + j * FACTOR_STRIDE;
    double dot = scatter[member[d] * p + member[j]];
    for (size_t k = 0; k < j; k++) dot -= row[k] * other[k];
    row[j] = dot / other[j];
    left -= row[j] * row[j];
  }
  row[d] = sqrt(left);
  return log(left);
}

int64_t weft_bn_gauss_value(const weft_bn_ready *ready, size_t group, size_t m, double log_determinant)
{
  const double constant = ready->gauss_constant[group * (ready->problem->p + 1) + m];
  return (int64_t) rint((constant + weft_bn_gauss_coefficient(ready, group, m) * log_determinant) * ready->unit);
}

/* ---- all sets ---- */

typedef struct joint_job {
  weft_bn_ready *ready;
  size_t size;                /* of the largest sets */
  weft_bn_cells *cells;       /* size + 1 per thread */
  const uint64_t *offset;
  int64_t *joint;
} joint_job;

typedef struct joint_walk {
  joint_job *job;
  weft_bn_counter *counter;
  weft_bn_cells *cells;
  size_t chosen[WEFT_BN_MOST_PARENTS + 2]; /* descending */
} joint_walk;

/* The parameter of f for the cells of a set: the share of a cell in the equivalent sample size, or none. */
static double joint_parameter(const weft_bn_problem *problem, double q)
{
  return weft_bn_masses_of(problem->score, problem->ess, q, q, 1).parents;
}

/* Number of the set of the first m chosen, within its size. */
static uint64_t number_of(const joint_walk *w, size_t m)
{
  uint64_t number = 0;
  for (size_t k = 0; k < m; k++) number += weft_bn_choose(&w->job->ready->binomials, w->chosen[k], m - k);
  return number;
}

/* Adds v as member m (from 0, in descending order) and stores the value of the set. */
static void add_member(joint_walk *w, size_t m, size_t v)
{
  w->chosen[m] = v;
  weft_bn_refine(w->counter, &w->cells[m], v, &w->cells[m + 1]);
  w->job->joint[w->job->offset[m + 1] + number_of(w, m + 1)] =
    weft_bn_value(w->counter, &w->cells[m + 1], joint_parameter(w->job->ready->problem, w->cells[m + 1].q));
}

/* All sets that add to the m chosen members some that lie below the last of them. */
static void joint_below(joint_walk *w, size_t m)
{
  const joint_job *job = w->job;
  const size_t below = w->chosen[m - 1];
  if (m + 1 < job->size) {
    for (size_t v = 0; v < below; v++) {
      add_member(w, m, v);
      joint_below(w, m + 1);
    }
    return;
  }
  uint64_t base = job->offset[m + 1];
  for (size_t k = 0; k < m; k++) base += weft_bn_choose(&job->ready->binomials, w->chosen[k], m + 1 - k);
  for (size_t v = 0; v < below; v++) {
    uint32_t occupied;
    double q = w->cells[m].q * job->ready->columns.levels[v];
    job->joint[base + v] =
        weft_bn_leaf(w->counter, &w->cells[m], v, joint_parameter(job->ready->problem, q), &occupied);
  }
}

/* Pairs (c, b), b < c, from the largest down, for there the work is; then single nodes. */
static void joint_task(void *data, size_t t, int thread)
{
  joint_job *job = data;
  const size_t p = job->ready->problem->p, pairs = job->size > 2 ? p * (p - 1) / 2 : 0;
  joint_walk w = { job, &job->ready->counters[thread], job->cells + (size_t) thread * (job->size + 1), { 0 } };
  if (t >= pairs) {
    add_member(&w, 0, p - 1 - (t - pairs));
    if (job->size == 2) joint_below(&w, 1);
    return;
  }
  const size_t number = pairs - 1 - t;
  size_t c = (size_t) ((1 + sqrt(1 + 8 * (double) number)) / 2);
  while (c * (c - 1) / 2 > number) c--;
  while (c * (c + 1) / 2 <= number) c++;
  w.chosen[0] = c;
  weft_bn_refine(w.counter, &w.cells[0], c, &w.cells[1]);
  add_member(&w, 1, number - c * (c - 1) / 2);
  joint_below(&w, 2);
}

static void gauss_below(joint_job *job, size_t *chosen, size_t m, double *factor, double log_determinant)
{
  const weft_bn_problem *problem = job->ready->problem;
  joint_walk w = { job, NULL, NULL, { 0 } };
  for (size_t k = 0; k < m; k++) w.chosen[k] = chosen[k];
  for (size_t v = 0; v < chosen[m - 1]; v++) {
    w.chosen[m] = chosen[m] = v;
    double grown = log_determinant + weft_bn_gauss_row(problem->scatter, problem->p, chosen, m, factor);
    job->joint[job->offset[m + 1] + number_of(&w, m + 1)] = weft_bn_gauss_value(job->ready, 0, m + 1, grown);
    if (m + 1 < job->size) gauss_below(job, chosen, m + 1, factor, grown);
  }
}

static void gauss_task(void *data, size_t t, int thread)
{
  joint_job *job = data;
  const weft_bn_problem *problem = job->ready->problem;
  double factor[FACTOR_STRIDE * FACTOR_STRIDE];
  size_t chosen[WEFT_BN_MOST_PARENTS + 2] = { problem->p - 1 - t };
  double log_determinant = weft_bn_gauss_row(problem->scatter, problem->p, chosen, 0, factor);
  (void) thread;
  job->joint[job->offset[1] + chosen[0]] = weft_bn_gauss_value(job->ready, 0, 1, log_determinant);
  if (job->size > 1) gauss_below(job, chosen, 1, factor, log_determinant);
}

weft_status weft_bn_joint(weft_ctx *ctx, weft_bn_ready *ready, int64_t *joint, const uint64_t *offset)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_bn_problem *problem = ready->problem;
  const size_t p = problem->p, threads = problem->threads;
  joint_job job = { ready, ready->most_parents + 1, NULL, offset, joint };
  if (weft_bn_gauss(problem)) {
    joint[0] = 0;
    WEFT_TRY(weft_bn_run_tasks(ctx, threads, p, gauss_task, &job, 0, 0.7));
    goto done;
  }
  WEFT_TAKE(job.cells, &mem, threads * (job.size + 1));
  for (size_t k = 0; k < threads * (job.size + 1); k++)
    WEFT_TRY(weft_bn_cells_make(&mem, &ready->columns, &job.cells[k]));
  for (size_t t = 0; t < threads; t++) weft_bn_root(&ready->columns, NULL, &job.cells[t * (job.size + 1)]);
  joint[0] = weft_bn_value(&ready->counters[0], &job.cells[0], joint_parameter(problem, 1));
  WEFT_TRY(weft_bn_run_tasks(ctx, threads, p + (job.size > 2 ? p * (p - 1) / 2 : 0), joint_task, &job, 0, 0.7));
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- families ---- */

weft_status weft_bn_bench_make(weft_arena *mem, const weft_bn_ready *ready, weft_bn_bench *out)
{
  weft_status st = WEFT_OK;
  const size_t depth = ready->most_parents + 2;
  WEFT_TAKE(out->parents, mem, depth);
  WEFT_TAKE(out->family, mem, depth);
  if (weft_bn_gauss(ready->problem)) return st;
  for (size_t d = 0; d < depth; d++) {
    WEFT_TRY(weft_bn_cells_make(mem, &ready->columns, &out->parents[d]));
    WEFT_TRY(weft_bn_cells_make(mem, &ready->columns, &out->family[d]));
  }
done:
  return st;
}

/* The child alone, and with it in front: where every chain of refinements starts. */
static void family_root(weft_bn_ready *ready, weft_bn_counter *counter, weft_bn_bench *bench, size_t i)
{
  const weft_bn_problem *problem = ready->problem;
  weft_bn_root(&ready->columns, problem->set ? problem->set + i * problem->n : NULL, &bench->parents[0]);
  weft_bn_refine(counter, &bench->parents[0], i, &bench->family[0]);
}

static void family_refine(weft_bn_counter *counter, weft_bn_bench *bench, size_t m, size_t v)
{
  weft_bn_refine(counter, &bench->parents[m], v, &bench->parents[m + 1]);
  weft_bn_refine(counter, &bench->family[m], v, &bench->family[m + 1]);
}

static int64_t family_value(weft_bn_ready *ready, weft_bn_counter *counter, weft_bn_bench *bench, size_t i, size_t m)
{
  const weft_bn_cells *parents = &bench->parents[m];
  const weft_bn_problem *problem = ready->problem;
  const weft_bn_masses mass = weft_bn_masses_of(problem->score, problem->ess, parents->q,
                                                (double) parents->cells + parents->ones, ready->columns.levels[i]);
  return weft_bn_value(counter, &bench->family[m], mass.family) - weft_bn_value(counter, parents, mass.parents);
}

static int64_t family_leaf(weft_bn_ready *ready, weft_bn_counter *counter, weft_bn_bench *bench, size_t i, size_t m,
                           size_t v)
{
  const double r = ready->columns.levels[i], q = bench->parents[m].q * ready->columns.levels[v];
  const weft_bn_problem *problem = ready->problem;
  uint32_t occupied = 0;
  if (weft_bn_kind(problem->score)->occupied) weft_bn_leaf(counter, &bench->parents[m], v, 1, &occupied);
  const weft_bn_masses mass = weft_bn_masses_of(problem->score, problem->ess, q, occupied, r);
  const int64_t below = weft_bn_leaf(counter, &bench->parents[m], v, mass.parents, &occupied);
  return weft_bn_leaf(counter, &bench->family[m], v, mass.family, &occupied) - below;
}

/* The Gaussian family: parents chosen[0 .. m - 1] have their factor; the child is one more row. */
static int64_t gauss_family(const weft_bn_ready *ready, size_t i, size_t *chosen, size_t m, double *factor,
                            double log_determinant)
{
  const weft_bn_problem *problem = ready->problem;
  const size_t group = (size_t) problem->group[i];
  chosen[m] = i;
  double row = weft_bn_gauss_row(problem->scatter + group * problem->p * problem->p, problem->p, chosen, m, factor);
  return weft_bn_gauss_value(ready, group, m + 1, log_determinant + row) -
         (m ? weft_bn_gauss_value(ready, group, m, log_determinant) : 0);
}

typedef struct family_job {
  weft_bn_ready *ready;
  weft_bn_node *nodes;
  const size_t *task_node, *task_top; /* per task: which node, and the largest member as a candidate's index */
  weft_bn_bench *bench;
} family_job;

typedef struct family_walk {
  weft_bn_ready *ready;
  weft_bn_node *node;
  weft_bn_counter *counter;
  weft_bn_bench *bench;
  size_t chosen[WEFT_BN_MOST_PARENTS + 2]; /* indices among the candidates, descending */
  size_t member[WEFT_BN_MOST_PARENTS + 2]; /* Gaussian: the nodes, and room for the child */
  double factor[FACTOR_STRIDE * FACTOR_STRIDE];
} family_walk;

static uint64_t family_number(const family_walk *w, size_t m)
{
  uint64_t number = w->node->offset[m];
  for (size_t k = 0; k < m; k++) number += weft_bn_choose(&w->ready->binomials, w->chosen[k], m - k);
  return number;
}

static void family_below(family_walk *w, size_t m)
{
  weft_bn_node *node = w->node;
  for (size_t v = 0; v < w->chosen[m - 1]; v++) {
    w->chosen[m] = v;
    const uint64_t number = family_number(w, m + 1);
    if (m + 1 < node->most_parents) {
      family_refine(w->counter, w->bench, m, node->candidate[v]);
      node->score[number] = family_value(w->ready, w->counter, w->bench, node->node, m + 1);
      family_below(w, m + 1);
    } else {
      node->score[number] = family_leaf(w->ready, w->counter, w->bench, node->node, m, node->candidate[v]);
    }
  }
}

static void gauss_family_below(family_walk *w, size_t m, double log_determinant)
{
  const weft_bn_problem *problem = w->ready->problem;
  weft_bn_node *node = w->node;
  const double *scatter = problem->scatter + (size_t) problem->group[node->node] * problem->p * problem->p;
  const size_t below = m ? w->chosen[m - 1] : 0;
  for (size_t v = 0; v < below; v++) {
    w->chosen[m] = v;
    w->member[m] = node->candidate[v];
    double grown = log_determinant + weft_bn_gauss_row(scatter, problem->p, w->member, m, w->factor);
    node->score[family_number(w, m + 1)] = gauss_family(w->ready, node->node, w->member, m + 1, w->factor, grown);
    if (m + 1 < node->most_parents) gauss_family_below(w, m + 1, grown);
  }
}

static void family_task(void *data, size_t t, int thread)
{
  family_job *job = data;
  const weft_bn_problem *problem = job->ready->problem;
  const int gauss = weft_bn_gauss(problem);
  family_walk w;
  w.ready = job->ready;
  w.node = &job->nodes[job->task_node[t]];
  w.counter = gauss ? NULL : &job->ready->counters[thread];
  w.bench = &job->bench[thread];
  weft_bn_node *node = w.node;
  const size_t top = job->task_top[t];
  if (!gauss) family_root(job->ready, w.counter, w.bench, node->node);
  if (top == SIZE_MAX) { /* the empty set */
    node->score[0] = gauss ? gauss_family(job->ready, node->node, w.member, 0, w.factor, 0)
                           : family_value(job->ready, w.counter, w.bench, node->node, 0);
    return;
  }
  w.chosen[0] = top;
  w.member[0] = node->candidate[top];
  if (gauss) {
    const double *scatter = problem->scatter + (size_t) problem->group[node->node] * problem->p * problem->p;
    double row = weft_bn_gauss_row(scatter, problem->p, w.member, 0, w.factor);
    node->score[family_number(&w, 1)] = gauss_family(job->ready, node->node, w.member, 1, w.factor, row);
    if (node->most_parents > 1) gauss_family_below(&w, 1, row);
    return;
  }
  family_refine(w.counter, w.bench, 0, w.member[0]);
  node->score[family_number(&w, 1)] = family_value(job->ready, w.counter, w.bench, node->node, 1);
  if (node->most_parents > 1) family_below(&w, 1);
}

weft_status weft_bn_count_nodes(weft_ctx *ctx, weft_bn_ready *ready, weft_bn_node *nodes, size_t count, double from,
                                double to)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t threads = ready->problem->threads;
  size_t tasks = 0, *task_node, *task_top;
  family_job job = { ready, nodes, NULL, NULL, NULL };
  for (size_t k = 0; k < count; k++) tasks += 1 + (nodes[k].most_parents ? nodes[k].universe : 0);
  WEFT_TAKE(task_node, &mem, tasks);
  WEFT_TAKE(task_top, &mem, tasks);
  WEFT_TAKE(job.bench, &mem, threads);
  for (size_t t = 0; t < threads; t++) WEFT_TRY(weft_bn_bench_make(&mem, ready, &job.bench[t]));
  tasks = 0;
  for (size_t k = 0; k < count; k++) { /* long tasks first */
    for (size_t v = nodes[k].most_parents ? nodes[k].universe : 0; v-- > 0; tasks++) {
      task_node[tasks] = k;
      task_top[tasks] = v;
    }
    task_node[tasks] = k;
    task_top[tasks++] = SIZE_MAX;
  }
  job.task_node = task_node;
  job.task_top = task_top;
  WEFT_TRY(weft_bn_run_tasks(ctx, threads, tasks, family_task, &job, from, to));
done:
  weft_arena_end(&mem);
  return st;
}

void weft_bn_extend(weft_bn_ready *ready, int thread, weft_bn_bench *bench, size_t i, const size_t *parents, size_t m,
                    const size_t *more, size_t count, int64_t *out)
{
  const weft_bn_problem *problem = ready->problem;
  if (weft_bn_gauss(problem)) {
    const double *scatter = problem->scatter + (size_t) problem->group[i] * problem->p * problem->p;
    double factor[FACTOR_STRIDE * FACTOR_STRIDE], log_determinant = 0;
    size_t member[WEFT_BN_MOST_PARENTS + 2];
    for (size_t k = 0; k < m; k++) {
      member[k] = parents[k];
      log_determinant += weft_bn_gauss_row(scatter, problem->p, member, k, factor);
    }
    for (size_t k = 0; k < count; k++) {
      member[m] = more[k];
      double row = weft_bn_gauss_row(scatter, problem->p, member, m, factor);
      out[k] = gauss_family(ready, i, member, m + 1, factor, log_determinant + row);
    }
    return;
  }
  weft_bn_counter *counter = &ready->counters[thread];
  family_root(ready, counter, bench, i);
  for (size_t k = 0; k < m; k++) family_refine(counter, bench, k, parents[k]);
  for (size_t k = 0; k < count; k++) out[k] = family_leaf(ready, counter, bench, i, m, more[k]);
}

int64_t weft_bn_alone(weft_bn_ready *ready, int thread, weft_bn_bench *bench, size_t i)
{
  if (weft_bn_gauss(ready->problem)) {
    double factor[FACTOR_STRIDE];
    size_t member[1];
    return gauss_family(ready, i, member, 0, factor, 0);
  }
  family_root(ready, &ready->counters[thread], bench, i);
  return family_value(ready, &ready->counters[thread], bench, i, 0);
}
