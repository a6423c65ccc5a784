/* Joint values h(S) of all sets of at most s + 1 nodes, and the scores of single families.
 *
 * A set is reached from the member of most levels downwards. The rows are sorted by all members but two, and these two
 * are counted together (sorted_rows.h); where nodes have too many levels for that, the cells of {c_m}, of {c_m,
 * c_{m-1}} and so on are made instead (count.h). A task is a pair of first members.
 * Families (K2, BDs, interventions, candidate lists) carry two sets of cells along, with and without the child. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "bn/both/joint.h"
#include "bn/cpu/table/mixed.h"
#include "bn/cpu/table/sorted_rows.h"

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

typedef struct portion_job {
  weft_bn_task *task;
  void *data;
  size_t first;
} portion_job;

static void portion_task(void *data, size_t t, int thread)
{
  const portion_job *job = data;
  job->task(job->data, job->first + t, thread);
}

/* A portion's length follows the time that the last one took. */
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
    if (took < 0.015)
      portion *= took < 0.004 ? 4 : 2;
    else if (took > 0.05 && portion > threads)
      portion /= 2;
  }
  return st;
}

/* ---- Gaussian data ---- */

#define FACTOR_STRIDE (WEFT_BN_MAX_PARENTS + 2)

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

/* What a thread has of a set whose largest labels are chosen: its rows sorted, and its cells as far as they were asked
 * for. */
typedef struct joint_room {
  weft_bn_cells *cells;   /* size + 1 */
  weft_bn_sorted *sorted; /* size - 1; sorted[0] is the same for all threads */
  weft_bn_sorter sorter;
  size_t held; /* the label that sorted[1] has; SIZE_MAX: none */
} joint_room;

typedef struct joint_job {
  weft_bn_ready *ready;
  size_t size; /* of the largest sets */
  const uint64_t *offset;
  int64_t *joint;
  weft_bn_layout layout;
  joint_room *room; /* by thread */
} joint_job;

typedef struct joint_walk {
  joint_job *job;
  weft_bn_counter *counter;
  joint_room *room;
  size_t chosen[WEFT_BN_MAX_PARENTS + 2]; /* labels, descending */
  size_t refined;                         /* chosen members of which there are cells */
  /* numbers of the sets of m chosen members and one more node */
  size_t m, member[WEFT_BN_MAX_PARENTS + 2]; /* nodes, ascending */
  uint64_t base[WEFT_BN_MAX_PARENTS + 3];    /* by how many members are smaller than the additional node */
} joint_walk;

/* The parameter of f for the cells of a set: the share of a cell in the equivalent sample size, or none. */
static double joint_parameter(const weft_bn_problem *problem, double q)
{
  return weft_bn_masses_of(problem->score, problem->ess, q, q, 1).parents;
}

static size_t node_of(const joint_walk *w, size_t label) { return w->job->layout.node[label]; }
static double levels_of(const joint_walk *w, size_t label) { return w->job->ready->columns.levels[node_of(w, label)]; }

/* Prepares walk->base, so that store() finds the number of any set of the first m chosen and one more node by one
 * look-up. */
static void number_sets(joint_walk *w, size_t m)
{
  const weft_bn_binomials *binomials = &w->job->ready->binomials;
  w->m = m;
  for (size_t k = 0; k < m; k++) {
    const size_t v = node_of(w, w->chosen[k]);
    size_t j = k;
    for (; j > 0 && w->member[j - 1] > v; j--) w->member[j] = w->member[j - 1];
    w->member[j] = v;
  }
  uint64_t number = w->job->offset[m + 1];
  for (size_t k = 0; k < m; k++) number += weft_bn_choose(binomials, w->member[k], k + 2);
  w->base[0] = number;
  for (size_t k = 0; k < m; k++) {
    number -= weft_bn_choose(binomials, w->member[k], k + 2) - weft_bn_choose(binomials, w->member[k], k + 1);
    w->base[k + 1] = number;
  }
}

/* Stores the value of the set that has one more node than those numbered. */
static void store(joint_walk *w, size_t label, int64_t value)
{
  const size_t v = node_of(w, label);
  size_t below = 0;
  while (below < w->m && w->member[below] < v) below++;
  w->job->joint[w->base[below] + weft_bn_choose(&w->job->ready->binomials, v, below + 1)] = value;
}

/* The cells of the first m chosen. */
static weft_bn_cells *cells_of(joint_walk *w, size_t m)
{
  for (; w->refined < m; w->refined++)
    weft_bn_refine(w->counter, &w->room->cells[w->refined], node_of(w, w->chosen[w->refined]),
                   &w->room->cells[w->refined + 1]);
  return &w->room->cells[m];
}

static void choose(joint_walk *w, size_t m, size_t label)
{
  w->chosen[m] = label;
  if (w->refined > m) w->refined = m;
}

/* Values of the first m chosen and each one of labels from .. to - 1, counted in cells. */
static void leaves(joint_walk *w, size_t m, size_t from, size_t to)
{
  weft_bn_cells *cells = cells_of(w, m);
  for (size_t v = from; v < to; v++) {
    const double q = cells->q * levels_of(w, v);
    uint32_t occupied;
    store(w, v, weft_bn_leaf(w->counter, cells, node_of(w, v), joint_parameter(w->job->ready->problem, q), &occupied));
  }
}

/* All sets that add to the m chosen members some that lie below the last of them, counted in cells. */
static void joint_below(joint_walk *w, size_t m)
{
  number_sets(w, m);
  leaves(w, m, 0, w->chosen[m - 1]);
  for (size_t v = 1; m + 1 < w->job->size && v < w->chosen[m - 1]; v++) {
    choose(w, m, v);
    joint_below(w, m + 1);
  }
}

/* The table of f for sets with `q` cells, of which the largest has `most` rows. */
static const int64_t *function_of(joint_walk *w, double q, uint32_t most)
{
  return weft_bn_function(w->counter, joint_parameter(w->job->ready->problem, q), most);
}

static void store_lanes(joint_walk *w, const weft_bn_group *group, size_t below, const int64_t *value)
{
  for (size_t j = 0; j < group->count && group->first + j < below; j++)
    store(w, group->first + j, weft_bn_rounded(value[j]));
}

/* Values of the first m chosen, which are sorted, and one more; and of these, label c and one more below it. */
static void sorted_ones(joint_walk *w, size_t m, size_t below)
{
  const weft_bn_sorted *sorted = &w->room->sorted[m];
  const weft_bn_layout *layout = &w->job->layout;
  int64_t value[WEFT_BN_LANES];
  number_sets(w, m);
  for (size_t k = 0; k < layout->groups && layout->group[k].first < below; k++) {
    const weft_bn_group *group = &layout->group[k];
    weft_bn_sum_one(layout, sorted, k, function_of(w, sorted->q * (double) group->levels, sorted->most), value);
    store_lanes(w, group, below, value);
  }
}

/* Values of the first m chosen, label c, and each label below it: whole groups at a time in sorted rows, or in cells
 * where c has too many levels or walking the rows is faster. */
static void sorted_pairs(joint_walk *w, size_t m, size_t c)
{
  const weft_bn_sorted *sorted = &w->room->sorted[m];
  const weft_bn_layout *layout = &w->job->layout;
  int64_t value[WEFT_BN_LANES];
  choose(w, m, c);
  number_sets(w, m + 1);
  if (c >= layout->plain) {
    leaves(w, m + 1, 0, c);
    return;
  }
  for (size_t k = 0; k < layout->groups && layout->group[k].first < c; k++) {
    const weft_bn_group *group = &layout->group[k];
    if (!weft_bn_sort_pays(layout, sorted, c, k)) {
      leaves(w, m + 1, group->first, group->first + group->count < c ? group->first + group->count : c);
      continue;
    }
    weft_bn_sum_two(layout, sorted, c, k,
                    function_of(w, sorted->q * levels_of(w, c) * (double) group->levels, sorted->most), value);
    store_lanes(w, group, c, value);
  }
}

/* As joint_below(), of members whose rows are sorted. */
static void sorted_below(joint_walk *w, size_t m)
{
  const size_t below = w->chosen[m - 1];
  sorted_ones(w, m, below);
  for (size_t v = 1; v < below; v++) {
    if (m + 2 == w->job->size) {
      sorted_pairs(w, m, v);
    } else {
      choose(w, m, v);
      if (weft_bn_sort_more(&w->job->layout, &w->room->sorter, &w->room->sorted[m], v, &w->room->sorted[m + 1]))
        sorted_below(w, m + 1);
      else
        joint_below(w, m + 1);
    }
  }
}

/* Sorts the rows by c, unless they are. */
static int hold(joint_walk *w, size_t c)
{
  joint_room *room = w->room;
  choose(w, 0, c);
  if (room->held == c) return 1;
  room->held = SIZE_MAX;
  if (c >= w->job->layout.plain ||
      !weft_bn_sort_more(&w->job->layout, &room->sorter, &room->sorted[0], c, &room->sorted[1]))
    return 0;
  room->held = c;
  return 1;
}

/* Pairs of labels b < c and all sets that add members below b, from the largest down, for there the work is; then each
 * single label with one more. */
static void joint_task(void *data, size_t t, int thread)
{
  joint_job *job = data;
  const size_t p = job->ready->problem->p, pairs = job->size > 2 ? p * (p - 1) / 2 : 0;
  joint_walk w = { .job = job, .counter = &job->ready->counters[thread], .room = &job->room[thread] };
  if (t >= pairs) {
    sorted_pairs(&w, 0, p - 1 - (t - pairs));
    return;
  }
  const size_t number = pairs - 1 - t;
  size_t c = (size_t) ((1 + sqrt(1 + 8 * (double) number)) / 2);
  while (c * (c - 1) / 2 > number) c--;
  while (c * (c + 1) / 2 <= number) c++;
  const size_t b = number - c * (c - 1) / 2;
  const int sorted = hold(&w, c);
  choose(&w, 1, b);
  if (sorted && job->size == 3)
    sorted_pairs(&w, 1, b);
  else if (sorted && weft_bn_sort_more(&job->layout, &w.room->sorter, &w.room->sorted[1], b, &w.room->sorted[2]))
    sorted_below(&w, 2);
  else
    joint_below(&w, 2);
}

/* ---- all sets of Gaussian nodes ---- */

static void gauss_below(joint_job *job, size_t *chosen, size_t m, double *factor, double log_determinant)
{
  const weft_bn_problem *problem = job->ready->problem;
  for (size_t v = 0; v < chosen[m - 1]; v++) {
    uint64_t number = job->offset[m + 1];
    chosen[m] = v;
    for (size_t k = 0; k <= m; k++) number += weft_bn_choose(&job->ready->binomials, chosen[k], m + 1 - k);
    double grown = log_determinant + weft_bn_gauss_row(problem->scatter, problem->p, chosen, m, factor);
    job->joint[number] = weft_bn_gauss_value(job->ready, 0, m + 1, grown);
    if (m + 1 < job->size) gauss_below(job, chosen, m + 1, factor, grown);
  }
}

static void gauss_task(void *data, size_t t, int thread)
{
  joint_job *job = data;
  const weft_bn_problem *problem = job->ready->problem;
  double factor[FACTOR_STRIDE * FACTOR_STRIDE];
  size_t chosen[WEFT_BN_MAX_PARENTS + 2] = { problem->p - 1 - t };
  double log_determinant = weft_bn_gauss_row(problem->scatter, problem->p, chosen, 0, factor);
  (void) thread;
  job->joint[job->offset[1] + chosen[0]] = weft_bn_gauss_value(job->ready, 0, 1, log_determinant);
  if (job->size > 1) gauss_below(job, chosen, 1, factor, log_determinant);
}

/* Makes each thread's work space in `mem`; all share the rows sorted by nothing. */
static weft_status make_rooms(weft_arena *mem, joint_job *job, size_t threads)
{
  weft_status st = WEFT_OK;
  const weft_bn_columns *columns = &job->ready->columns;
  const size_t depths = job->size > 2 ? job->size - 1 : 1;
  weft_bn_sorted none;
  WEFT_TRY(weft_bn_layout_make(mem, columns, &job->layout));
  WEFT_TRY(weft_bn_sorted_make(mem, columns, &job->layout, 0, &none));
  weft_bn_sort_none(columns, &job->layout, &none);
  WEFT_TAKE(job->room, mem, threads);
  for (size_t t = 0; t < threads; t++) {
    joint_room *room = &job->room[t];
    room->held = SIZE_MAX;
    WEFT_TAKE(room->cells, mem, job->size + 1);
    for (size_t m = 0; m <= job->size; m++) WEFT_TRY(weft_bn_cells_make(mem, columns, &room->cells[m]));
    weft_bn_root(columns, NULL, &room->cells[0]);
    WEFT_TAKE(room->sorted, mem, depths);
    room->sorted[0] = none;
    for (size_t m = 1; m < depths; m++) WEFT_TRY(weft_bn_sorted_make(mem, columns, &job->layout, m, &room->sorted[m]));
    WEFT_TRY(weft_bn_sorter_make(mem, columns, &room->sorter));
  }
done:
  return st;
}

/* `joint` has offset[max_parents + 2] entries. Progress goes to 0.7. */
weft_status weft_bn_joint(weft_ctx *ctx, weft_bn_ready *ready, int64_t *joint, const uint64_t *offset)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_bn_problem *problem = ready->problem;
  const size_t p = problem->p, threads = problem->threads;
  joint_job job = { .ready = ready, .size = ready->max_parents + 1, .offset = offset, .joint = joint };
  if (weft_bn_gauss(problem)) {
    joint[0] = 0;
    WEFT_TRY(weft_bn_run_tasks(ctx, threads, p, gauss_task, &job, 0, 0.7));
    goto done;
  }
  WEFT_TRY(make_rooms(&mem, &job, threads));
  joint[0] = weft_bn_value(&ready->counters[0], &job.room[0].cells[0], joint_parameter(problem, 1));
  joint_walk alone = { .job = &job, .counter = &ready->counters[0], .room = &job.room[0] };
  number_sets(&alone, 0);
  leaves(&alone, 0, 0, p);
  if (job.size > 1)
    WEFT_TRY(weft_bn_run_tasks(ctx, threads, p + (job.size > 2 ? p * (p - 1) / 2 : 0), joint_task, &job, 0, 0.7));
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- families ---- */

weft_status weft_bn_bench_make(weft_arena *mem, const weft_bn_ready *ready, weft_bn_bench *out)
{
  weft_status st = WEFT_OK;
  const size_t depth = ready->max_parents + 2;
  WEFT_TAKE(out->parents, mem, depth);
  WEFT_TAKE(out->family, mem, depth);
  out->mixed = NULL;
  if (weft_bn_gauss(ready->problem)) return st;
  if (ready->problem->number) {
    WEFT_TAKE(out->mixed, mem, 1);
    WEFT_TRY(weft_bn_mixed_make(mem, ready, out->mixed));
  }
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
  size_t chosen[WEFT_BN_MAX_PARENTS + 2]; /* indices among the candidates, descending */
  size_t member[WEFT_BN_MAX_PARENTS + 2]; /* Gaussian: the nodes, and room for the child */
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
    if (m + 1 < node->max_parents) {
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
    if (m + 1 < node->max_parents) gauss_family_below(w, m + 1, grown);
  }
}

/* The sets of the first m chosen for a node that is a number among categories, and all that have more below them. */
static void mixed_family_below(family_walk *w, size_t m)
{
  weft_bn_node *node = w->node;
  node->score[family_number(w, m)] = weft_bn_mixed_value(w->ready, w->bench->mixed, node->node, w->member, m);
  for (size_t v = 0; m < node->max_parents && v < w->chosen[m - 1]; v++) {
    w->chosen[m] = v;
    w->member[m] = node->candidate[v];
    mixed_family_below(w, m + 1);
  }
}

/* Scores all sets of one node whose largest member is candidate task_top[t]; SIZE_MAX: the empty set. */
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
  if (weft_bn_is_number(problem, node->node)) {
    if (top == SIZE_MAX) {
      node->score[0] = weft_bn_mixed_value(job->ready, w.bench->mixed, node->node, w.member, 0);
    } else {
      w.chosen[0] = top;
      w.member[0] = node->candidate[top];
      mixed_family_below(&w, 1);
    }
    return;
  }
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
    if (node->max_parents > 1) gauss_family_below(&w, 1, row);
    return;
  }
  family_refine(w.counter, w.bench, 0, w.member[0]);
  node->score[family_number(&w, 1)] = family_value(job->ready, w.counter, w.bench, node->node, 1);
  if (node->max_parents > 1) family_below(&w, 1);
}

/* Fills nodes[k].score with raw scores of all sets of its candidates, by set number. */
weft_status weft_bn_count_nodes(weft_ctx *ctx, weft_bn_ready *ready, weft_bn_node *nodes, size_t count, double from,
                                double to)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t threads = ready->problem->threads;
  size_t tasks = 0, *task_node, *task_top;
  family_job job = { ready, nodes, NULL, NULL, NULL };
  for (size_t k = 0; k < count; k++) tasks += 1 + (nodes[k].max_parents ? nodes[k].universe : 0);
  WEFT_TAKE(task_node, &mem, tasks);
  WEFT_TAKE(task_top, &mem, tasks);
  WEFT_TAKE(job.bench, &mem, threads);
  for (size_t t = 0; t < threads; t++) WEFT_TRY(weft_bn_bench_make(&mem, ready, &job.bench[t]));
  tasks = 0;
  for (size_t k = 0; k < count; k++) { /* long tasks first */
    for (size_t v = nodes[k].max_parents ? nodes[k].universe : 0; v-- > 0; tasks++) {
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

/* Counts the set once and then each of `more` as one leaf. Takes no memory; `bench` is the thread's own. */
void weft_bn_extend(weft_bn_ready *ready, int thread, weft_bn_bench *bench, size_t i, const size_t *parents, size_t m,
                    const size_t *more, size_t count, int64_t *out)
{
  const weft_bn_problem *problem = ready->problem;
  if (weft_bn_gauss(problem)) {
    const double *scatter = problem->scatter + (size_t) problem->group[i] * problem->p * problem->p;
    double factor[FACTOR_STRIDE * FACTOR_STRIDE], log_determinant = 0;
    size_t member[WEFT_BN_MAX_PARENTS + 2];
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
  if (weft_bn_is_number(problem, i)) {
    size_t member[WEFT_BN_MAX_PARENTS + 2];
    memcpy(member, parents, m * sizeof *member);
    for (size_t k = 0; k < count; k++) {
      member[m] = more[k];
      out[k] = weft_bn_mixed_value(ready, bench->mixed, i, member, m + 1);
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
  if (weft_bn_is_number(ready->problem, i)) return weft_bn_mixed_value(ready, bench->mixed, i, NULL, 0);
  family_root(ready, &ready->counters[thread], bench, i);
  return family_value(ready, &ready->counters[thread], bench, i, 0);
}
