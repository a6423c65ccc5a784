/* A walk for 32 queries. Each tile of queries starts from its nearest leaf, which is summed, and its group's list of
 * nodes:
 *
 *   bound every node of the frontier for every query of the tile (tile.h)
 *   repeat
 *     tolerance = rel_error * (exact part + lower bounds) + abs_error, for every query by itself
 *     keep the nodes of least error, as many as the tolerance allows for every query and column
 *     expand the others: leaves are summed exactly, inner nodes replaced by their children
 *   until none is expanded; the estimates of the kept ones join the exact part
 *
 * Lower bounds only grow, so what was kept stays within the tolerance. With samples allowed, what is left of a frontier
 * may be estimated by these instead. */
#include "kernel/cpu/tree/walk.h"
#include "kernel/cpu/direct/tile_portable.h"
#include "kernel/cpu/tree/walk_frontier.h"
#include "kernel/cpu/tree/walk_nodes.h"
#include "kernel/cpu/tree/walk_samples.h"
#include "kernel/cpu/tree/walk_series.h"
#include "kernel/cpu/tree/walk_state.h"
#include "kernel/cpu/tree/walk_tile.h"

#define LOG_MIN 1e-280

static void sum_exactly(const weft_walk *w, weft_hands *hands, weft_block_query *block, size_t node)
{
  const weft_tree *reference = w->reference;
  weft_block_add(block, w->task, w->tile, (size_t) reference->first[node], (size_t) reference->count[node]);
  hands->effort.pairs += reference->count[node] * (double) block->count;
}

/* The estimates of a node that needs no second look. */
static void settle(const weft_walk *w, weft_hands *hands, size_t slot)
{
  const size_t size = w->task->m * WEFT_TILE;
  for (size_t i = 0; i < size; i++) {
    hands->settled[i] += hands->estimate[slot * size + i];
    hands->settled[size + i] += hands->error[slot * size + i];
    hands->settled[2 * size + i] += hands->low[slot * size + i];
  }
}

/* Bounds the node and puts it into the frontier, unless it is out of reach, negligible or settled by its bounds. If the
 * node holds the leaf that has been summed already, its children are considered instead. */
static void consider(const weft_walk *w, weft_hands *hands, weft_block_query *block, size_t node)
{
  const weft_kernel_task *task = w->task;
  const weft_tree *reference = w->reference;
  const size_t d = task->reference.d, m = task->m, size = m * WEFT_TILE, first = (size_t) reference->first[node];
  const double done = reference->first[hands->nearest];
  if (done >= reference->first[node] && done < reference->first[node] + reference->count[node]) {
    if (reference->child[node] < 0) return;
    consider(w, hands, block, (size_t) reference->child[node]);
    consider(w, hands, block, (size_t) reference->child[node] + 1);
    return;
  }
  double nearest, farthest;
  weft_walk_range(w, hands->leaf, node, &nearest, &farthest);
  hands->effort.looks += 1;
  if (weft_kernel_compact(task->kind) ? nearest > 1 + 1e-9
                                      : weft_walk_negligible(w, node, weft_kernel_of(task->kind, nearest, 0),
                                                             hands->min_tolerance_here, hands->dropped_here))
    return;
  const int own = weft_walk_holds_own(w, block->first, block->count, node);
  if (own && reference->child[node] >= 0) {
    consider(w, hands, block, (size_t) reference->child[node]);
    consider(w, hands, block, (size_t) reference->child[node] + 1);
    return;
  }
  if (own || hands->count == w->capacity) {
    sum_exactly(w, hands, block, node);
    return;
  }
  const size_t slot = hands->count;
  double *error = hands->error + slot * size, *estimate = hands->estimate + slot * size,
         *low = hands->low + slot * size;
  weft_node_tile a = { block->q,
                       block->q_lo,
                       reference->box + node * 2 * d,
                       task->reference.x + first * d,
                       task->reference.lo ? task->reference.lo + first * d : NULL,
                       reference->centre ? reference->centre + node * (d + 1) : NULL,
                       w->moments + node * m * (d + 2),
                       d,
                       m,
                       1 / (task->h * task->h),
                       weft_distance_error(d),
                       w->slack,
                       estimate,
                       error,
                       low };
  w->node(&a, task->kind);
  hands->effort.nodes += 1;
  double most = 0, reach = 0;
  int certain = 1;
  for (size_t c = 0; c < m; c++) {
    double greatest = 0;
    for (size_t i = c * WEFT_TILE; i < (c + 1) * WEFT_TILE; i++) {
      greatest = error[i] > greatest ? error[i] : greatest;
      reach = estimate[i] > reach ? estimate[i] : reach;
      certain &= error[i] <= 1e-13 * low[i];
    }
    greatest = w->column[c] > 0 ? greatest / w->column[c] : 0;
    most = greatest > most ? greatest : most;
  }
  if (most == 0 && reach == 0) return;
  if (certain) {
    settle(w, hands, slot);
    return;
  }
  hands->node[slot] = (int32_t) node;
  hands->priority[slot] = most;
  hands->count++;
}

/* ---- queries that need more digits or a shifted exponent, one by one ---- */

static double box_distance(const weft_walk *w, const double *q, size_t node)
{
  const size_t d = w->task->reference.d;
  const double *low = w->reference->box + node * 2 * d, *high = low + d;
  double square = 0;
  for (size_t j = 0; j < d; j++) {
    double gap = low[j] > q[j] ? low[j] - q[j] : q[j] > high[j] ? q[j] - high[j] : 0;
    gap = gap > w->slack ? gap - w->slack : 0;
    square += gap * gap;
  }
  return square;
}

/* The exponent of the nearest reference that weighs something in column c, and its weight. */
static double nearest_exponent(const weft_walk *w, weft_hands *hands, size_t i, size_t c, double *weight)
{
  const weft_kernel_task *task = w->task;
  const weft_tree *reference = w->reference;
  const double *q = task->query.x + i * task->query.d;
  double least = INFINITY;
  size_t top = 0;
  hands->stack[top++] = 0;
  *weight = 0;
  while (top) {
    const size_t node = (size_t) hands->stack[--top];
    if (box_distance(w, q, node) >= least) continue;
    if (reference->child[node] >= 0) {
      const size_t k = (size_t) reference->child[node];
      const int right_nearer = box_distance(w, q, k + 1) < box_distance(w, q, k);
      hands->stack[top++] = (int32_t) (right_nearer ? k : k + 1);
      hands->stack[top++] = (int32_t) (right_nearer ? k + 1 : k);
      continue;
    }
    for (size_t k = (size_t) reference->first[node]; k < (size_t) (reference->first[node] + reference->count[node]);
         k++) {
      if (weft_left_out(task, i, k) || !(task->weights[k * task->m + c] > 0)) continue;
      double s = weft_square_distance(&task->query, i, &task->reference, k);
      if (s < least) least = s, *weight = task->weights[k * task->m + c];
    }
  }
  return least < INFINITY ? weft_kernel_exponent(task->kind, least / (task->h * task->h)) : INFINITY;
}

/* Column c of query i, every pair by itself; exponents relative to `shift`. A compact kernel visits the boxes in reach;
 * an exponential one those that could add 1e-15 of the term of the nearest reference, whose weight is given. */
static double sum_pairs(const weft_walk *w, weft_hands *hands, size_t i, size_t c, double shift, double weight)
{
  const weft_kernel_task *task = w->task;
  const weft_tree *reference = w->reference;
  const double *q = task->query.x + i * task->query.d, square = task->h * task->h;
  const size_t size = task->m * (task->reference.d + 2);
  double total = 0, rest = 0;
  size_t top = 0;
  hands->stack[top++] = 0;
  while (top) {
    const size_t node = (size_t) hands->stack[--top];
    const double s = box_distance(w, q, node) / square;
    if (weft_kernel_compact(task->kind)
            ? s > 1 + 1e-9
            : w->moments[node * size + c * (task->reference.d + 2)] * weft_kernel_of(task->kind, s, shift) <
                  1e-15 * weight * reference->count[node] / (double) task->reference.n)
      continue;
    if (reference->child[node] >= 0) {
      hands->stack[top++] = reference->child[node];
      hands->stack[top++] = reference->child[node] + 1;
      continue;
    }
    for (size_t k = (size_t) reference->first[node]; k < (size_t) (reference->first[node] + reference->count[node]);
         k++) {
      if (weft_left_out(task, i, k)) continue;
      double value = weft_kernel_pair(task->kind, &task->query, i, &task->reference, k, task->h, shift);
      weft_add_to(&total, &rest, value * task->weights[k * task->m + c]);
    }
  }
  return total + rest;
}

/* Writes the sums of the tile's queries, the frontier's estimates included. Sums that rounding may have spoilt, and
 * logarithms of sums below LOG_MIN, are computed again pair by pair. */
static void finish(const weft_walk *w, weft_hands *hands, weft_block_query *block)
{
  const weft_kernel_task *task = w->task;
  const size_t m = task->m, size = m * WEFT_TILE, nq = task->query.n;
  const double allowed = w->rel > WEFT_EXACT ? 0.05 * w->rel : 2e-13;
  for (size_t i = 0; i < size; i++) block->total[i] += block->rest[i] + hands->settled[i];
  for (size_t entry = 0; entry < hands->count; entry++)
    for (size_t i = 0; i < size; i++) block->total[i] += hands->estimate[entry * size + i];
  for (size_t lane = 0; lane < block->count; lane++) {
    const size_t i = block->first + lane;
    const int doubtful = weft_block_doubtful(block, task, lane, allowed);
    hands->effort.repeated += doubtful;
    for (size_t c = 0; c < m; c++) {
      double *to = w->out + i + c * nq, sum = fmax(block->total[c * WEFT_TILE + lane], 0);
      if (doubtful) sum = sum_pairs(w, hands, i, c, 0, 0);
      *to = task->logarithm ? log(sum) : sum;
      if (!task->logarithm || !weft_kernel_exponential(task->kind) || sum >= LOG_MIN) continue;
      double weight, shift = nearest_exponent(w, hands, i, c, &weight);
      *to = shift < INFINITY ? log(sum_pairs(w, hands, i, c, shift, weight)) - shift : -INFINITY;
      hands->effort.repeated += 1;
    }
  }
}

/* Loads the queries, sums their nearest leaf, and sets hands->floor and hands->min_tolerance_here: the least tolerance
 * by what is known. */
static void begin_tile(const weft_walk *w, weft_hands *hands, weft_block_query *block)
{
  const weft_kernel_task *task = w->task;
  const size_t first = (size_t) w->query->first[hands->leaf] + hands->from,
               rest = (size_t) w->query->count[hands->leaf] - hands->from;
  *block = weft_block_in(hands->block, task->reference.d, task->m, task->reference.lo != NULL);
  weft_block_load(block, &task->query, first, rest < WEFT_TILE ? rest : WEFT_TILE, task->m);
  sum_exactly(w, hands, block, hands->nearest);
  for (size_t c = 0; c < task->m; c++) {
    double low = INFINITY, *floor = hands->floor + c * WEFT_TILE;
    for (size_t lane = 0; lane < WEFT_TILE; lane++) {
      const size_t i = first + (lane < block->count ? lane : block->count - 1) + c * task->query.n;
      const double before = !w->narrower ? 0 : task->logarithm ? exp(w->narrower[i]) : w->narrower[i];
      floor[lane] = (before - task->abs_error) / (1 + task->rel_error) * (1 - 1e-11);
      low = fmin(low, fmax(block->total[c * WEFT_TILE + lane], floor[lane]));
    }
    hands->min_tolerance_here[c] = w->column[c] > 0 ? w->rel * low + w->abs : INFINITY;
  }
}

void weft_walk_look(const weft_walk *w, weft_hands *hands)
{
  weft_block_query block;
  begin_tile(w, hands, &block);
  for (size_t c = 0; c < w->task->m; c++)
    hands->min_tolerance[c] = fmin(hands->min_tolerance[c], hands->min_tolerance_here[c]);
}

/* Considers the nodes of the list, then splits those of the frontier whose errors are too large, down to leaves, which
 * are summed; at last finish() writes the sums. */
void weft_walk_sum(const weft_walk *w, weft_hands *hands)
{
  const size_t m = w->task->m;
  weft_block_query block;
  begin_tile(w, hands, &block);
  for (size_t c = 0; c < m; c++)
    if (!weft_kernel_compact(w->task->kind))
      hands->min_tolerance_here[c] = fmax(hands->min_tolerance_here[c], hands->min_tolerance[c]);
  memset(hands->settled, 0, 3 * m * WEFT_TILE * sizeof *hands->settled);
  memcpy(hands->dropped_here, hands->dropped, m * sizeof *hands->dropped);
  hands->count = 0, hands->attempts = 0;
  if (hands->absorbed) weft_series_evaluate(w, hands, &block);
  for (size_t k = 0; k < hands->listed; k++) consider(w, hands, &block, (size_t) hands->list[k]);
  while (hands->count) {
    weft_walk_order(hands);
    hands->effort.ordered += (double) hands->count;
    const size_t kept = weft_walk_count_kept(w, hands, &block, 1);
    if (kept == hands->count || (w->task->confidence < 1 && weft_walk_sample(w, hands, &block))) break;
    const size_t expanded = weft_walk_part(w, hands, kept);
    for (size_t k = 0; k < expanded; k++) {
      const size_t node = (size_t) hands->stack[k];
      if (w->reference->child[node] < 0)
        sum_exactly(w, hands, &block, node);
      else
        consider(w, hands, &block, (size_t) w->reference->child[node]),
            consider(w, hands, &block, (size_t) w->reference->child[node] + 1);
    }
  }
  finish(w, hands, &block);
  hands->effort.queries += (double) block.count;
}
