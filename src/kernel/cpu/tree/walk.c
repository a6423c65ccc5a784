/* Kernel sums by two trees, within rel_error * f + abs_error for every query, for one or many bandwidths.
 *
 * A group is a node of the query tree with up to 1024 points. The reference leaf nearest to each of its leaves, its own
 * when references are the queries, is summed at once: a first lower bound. Boxes against boxes then raise it, and give
 * the group a list of reference nodes, without those out of a compact kernel's reach, those that add next to nothing to
 * the lower bound, and those that join its series (walk_series.c). Every 32 queries of a leaf of the group walk
 * from this list (walk_tile.c).
 *
 * Bandwidths are walked from the narrowest to the widest over the same trees and moments. No sum is below that of a
 * narrower bandwidth, which is the next one's first lower bound.
 *
 * A result depends on nothing but its group, so threads do not change it. Exact sums are the same with a tolerance of a
 * few roundings. Threads take a step at a time, 32 queries or a list, and stop between two steps for the poll. */
#include <stdatomic.h>
#include "core/call/parallel.h"
#include "kernel/cpu/tree/walk.h"
#include "kernel/cpu/direct/tile_portable.h"
#include "kernel/cpu/tree/walk_moments.h"
#include "kernel/cpu/tree/walk_nodes.h"
#include "kernel/cpu/tree/walk_series.h"
#include "kernel/cpu/tree/walk_state.h"
#include "kernel/cpu/tree/walk_tile.h"

#define GROUP 1024 /* fewer where references are so many that a group would take seconds */
#define GROUP_PAIRS 1e9
#define SERIES_GROUP \
  256 /* small beside the bandwidth, where series are to be short: 2 to 5 times as fast in two dimensions */
#define FEW_DIGITS 0.03   /* greater relative errors are met by bounds anyway */
#define SAMPLED_NODES 128 /* nodes of a list at first, where samples may stand for them */
#define SHARE 0.9         /* of the tolerance for bounds; the rest is for rounding */
#define FRONTIER_DOUBLES ((size_t) 1 << 20)
#define BETWEEN_POLLS 0.03 /* seconds */
#define SAMPLED_GROUPS \
  6 /* that a budget splits into groups of a 64th of the points, or of 128, to see early how much work the rest is */
#define PARTS 64
#define MIN_GROUP 128
#define BETWEEN_LOOKS 5e-4 /* seconds, while it is not known whether a budget is kept */

enum { IDLE, LOOK, LIST, SUM };

/* ---- lists ---- */

/* Visits the nodes that a group's list is made of: about as large as the group, never smaller, and larger where their
 * kernel values hardly differ. `raise`: only adds their lower bounds to hands->min_tolerance; nodes that hold a nearest
 * leaf have had theirs. */
static void visit_nodes(const weft_walk *w, weft_hands *hands, int raise)
{
  const weft_tree *reference = w->reference;
  const int kind = w->task->kind, compact = weft_kernel_compact(kind);
  const double half = fmax(w->query->count[hands->group] / 2, w->min_listed),
               part = (double) w->task->reference.n / SAMPLED_NODES;
  const double fine = !raise && !compact && w->task->confidence < 1 && part > half ? part : half;
  const size_t m = w->task->m, size = m * (w->task->reference.d + 2);
  size_t top = 0;
  hands->listed = 0;
  hands->stack[top++] = 0;
  while (top) {
    const size_t node = (size_t) hands->stack[--top];
    double least, greatest;
    weft_walk_range(w, hands->group, node, &least, &greatest);
    hands->effort.looks += 1;
    if (compact && least > 1 + 1e-9) continue;
    const double most = weft_kernel_of(kind, least, 0), fewest = weft_kernel_of(kind, greatest, 0);
    if (!raise && !compact && weft_walk_negligible(w, node, most, hands->min_tolerance, hands->dropped)) continue;
    if (!raise && w->series && weft_series_absorb(w, hands, node, least)) continue;
    if (reference->child[node] < 0 || reference->count[node] <= fine || most - fewest <= 0.5 * w->rel * fewest) {
      if (!raise)
        hands->list[hands->listed++] = (int32_t) node;
      else if (!weft_walk_holds_nearest(w, hands, node))
        for (size_t c = 0; c < m; c++)
          hands->min_tolerance[c] += w->rel * (1 - 1e-9) * w->moments[node * size + c * (size / m)] * fewest;
      continue;
    }
    if (raise && most < 1e-300) continue;
    hands->stack[top++] = reference->child[node] + 1;
    hands->stack[top++] = reference->child[node];
  }
}

static void list_nodes(const weft_walk *w, weft_hands *hands)
{
  hands->absorbed = 0;
  if (w->series) weft_series_begin(w, hands);
  if (!weft_kernel_compact(w->task->kind)) visit_nodes(w, hands, 1);
  visit_nodes(w, hands, 0);
}

/* ---- steps ---- */

static void begin_leaves(weft_hands *hands) { hands->todo[0] = hands->group, hands->top = 1, hands->leaf = SIZE_MAX; }

/* The group's next 32 queries into hands->leaf and hands->from, in LOOK with its nearest leaf noted; 0: there are no
 * more. The tree is no deeper than 64 levels: each halves the leaves. */
static int next_tile(const weft_walk *w, weft_hands *hands)
{
  const weft_tree *query = w->query;
  hands->from += WEFT_TILE;
  while (hands->leaf == SIZE_MAX || (double) hands->from >= query->count[hands->leaf]) {
    if (!hands->top) return 0;
    const size_t node = hands->todo[--hands->top];
    if (query->child[node] >= 0) {
      hands->todo[hands->top++] = (size_t) query->child[node] + 1;
      hands->todo[hands->top++] = (size_t) query->child[node];
      continue;
    }
    hands->leaf = node, hands->from = 0, hands->nearest = weft_walk_nearest(w, node);
    if (hands->phase == LOOK) hands->near_first[hands->near_leaves++] = w->reference->first[hands->nearest];
  }
  return 1;
}

/* Groups in the order in which they are taken; `before`: the points of those before each, and of all; `largest`: of the
 * largest before any was parted; `work`: of each, -1 until it is done; `judged`: the first few whose work, `spent`, has
 * been compared with the budget. */
typedef struct {
  int32_t *node;
  double *before, *work, largest, spent;
  size_t count, judged;
} group_list;

/* What the thread has done since it began its group, by the task's costs. Counts are whole numbers, so that their
 * difference is the same whatever the thread did before. */
static double work_since(const weft_walk *w, const weft_hands *hands)
{
  const double *cost = w->task->costs;
  double work = 0;
#define ADD_WORK(count) work += *cost++ * (hands->effort.count - hands->before.count);
  WEFT_WALK_COSTS(ADD_WORK)
#undef ADD_WORK
  return work;
}

/* Advances the thread's group, or the next one, by one step; 0: there are no more. */
static int take_step(const weft_walk *w, weft_hands *hands, group_list *groups, atomic_size_t *next)
{
  switch (hands->phase) {
  case IDLE: {
    const size_t group = atomic_fetch_add(next, 1);
    if (group >= groups->count) return 0;
    hands->place = group, hands->before = hands->effort;
    hands->group = (size_t) groups->node[group], hands->near_leaves = 0;
    for (size_t c = 0; c < w->task->m; c++) hands->min_tolerance[c] = INFINITY, hands->dropped[c] = 0;
    hands->phase = weft_kernel_compact(w->task->kind) ? LIST : LOOK;
    begin_leaves(hands);
    return 1;
  }
  case LOOK:
    if (next_tile(w, hands))
      weft_walk_look(w, hands);
    else
      hands->phase = LIST;
    return 1;
  case LIST:
    list_nodes(w, hands);
    hands->phase = SUM;
    begin_leaves(hands);
    return 1;
  default:
    if (next_tile(w, hands)) {
      weft_walk_sum(w, hands);
    } else {
      groups->work[hands->place] = w->task->costs ? work_since(w, hands) : 0;
      hands->phase = IDLE;
    }
    return 1;
  }
}

/* Whether what is left is more work than the budget, by the groups that were summed. They are judged one after another
 * in their order, however many are done by now, so that no thread's pace decides; the fewer they are, the more they may
 * differ from the others. */
static int exceeds_budget(const weft_walk *w, group_list *groups)
{
  const double all = groups->before[groups->count];
  while (groups->judged < groups->count && groups->work[groups->judged] >= 0) {
    groups->spent += groups->work[groups->judged++];
    const double done = groups->before[groups->judged], few = (double) groups->judged;
    if (done > all / 2)
      groups->judged = groups->count;
    else if (groups->spent / done * (all - done) > (1 + 2 / (few * few)) * w->task->budget)
      return 1;
  }
  return 0;
}

/* Sums all groups of queries for one bandwidth. Threads take steps for BETWEEN_POLLS seconds, then the user is asked
 * and the budget, if there is one, compared with the work: *given_up = 1 where that is more. */
static weft_status walk_groups(weft_ctx *ctx, const weft_walk *w, weft_hands *hands, group_list *groups, double done,
                               double total, double *given_up)
{
  weft_status st = WEFT_OK;
  atomic_size_t next = 0;
  int busy = 1;
  /* no walk does more than all pairs */
  const double pairs = (double) w->task->query.n * (double) w->task->reference.n;
  groups->judged = w->task->budget > 0 ? 0 : groups->count;
  groups->spent = 0;
  for (size_t k = 0; k < groups->count; k++) groups->work[k] = -1;
  for (int k = 0; k < ctx->threads; k++) hands[k].phase = IDLE;
  while (busy) {
    const double until = weft_seconds() + (groups->judged < groups->count ? BETWEEN_LOOKS : BETWEEN_POLLS);
    const size_t begun = atomic_load(&next) < groups->count ? atomic_load(&next) : groups->count;
    WEFT_TRY(weft_poll(ctx, done + groups->before[begun] / groups->before[groups->count], total));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, pairs * (double) (w->task->reference.d + 8) / 16))
    while (take_step(w, &hands[WEFT_THREAD()], groups, &next))
      if (weft_seconds() > until) break;
    if (exceeds_budget(w, groups)) {
      *given_up = 1;
      break;
    }
    busy = atomic_load(&next) < groups->count;
    for (int k = 0; k < ctx->threads; k++) busy |= hands[k].phase != IDLE;
  }
done:
  return st;
}

/* `some` of them, evenly spaced, to the front. */
static size_t pick_groups(int32_t *groups, size_t count, size_t some)
{
  if (count <= some) return count;
  for (size_t k = 0; k < some; k++) groups[k] = groups[(2 * k + 1) * count / (2 * some)];
  return some;
}

static size_t common_divisor(size_t a, size_t b)
{
  while (b) {
    const size_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* Reorders them so that the first few are spread over all. */
static weft_status mix_groups(weft_arena *mem, int32_t *groups, size_t count)
{
  weft_status st = WEFT_OK;
  size_t step = (size_t) (0.618 * (double) count) | 1;
  int32_t *old;
  WEFT_TAKE(old, mem, count);
  memcpy(old, groups, count * sizeof *old);
  while (common_divisor(step, count) > 1) step++;
  for (size_t k = 0; k < count; k++) groups[k] = old[k * step % count];
done:
  return st;
}

/* For a budget: replaces the first few groups, which come from everywhere, by small ones; one of each comes before the
 * others. */
static weft_status part_first_groups(weft_arena *mem, const weft_tree *query, double small, int32_t *groups,
                                     size_t *count)
{
  weft_status st = WEFT_OK;
  const size_t parted = *count < SAMPLED_GROUPS ? *count : SAMPLED_GROUPS, whole = *count - parted;
  size_t found = parted;
  int32_t *large, *parts;
  WEFT_TAKE(large, mem, *count);
  WEFT_TAKE(parts, mem, query->nodes);
  memcpy(large, groups, *count * sizeof *large);
  for (size_t k = 0; k < parted; k++) {
    const size_t several = weft_tree_top(query, (size_t) large[k], small, parts);
    groups[k] = parts[several / 2];
    for (size_t i = 0; i < several; i++)
      if (i != several / 2) groups[found++] = parts[i];
  }
  memcpy(groups + found, large + parted, whole * sizeof *large);
  *count = found + whole;
done:
  return st;
}

/* Groups of at most `most` points: all, or `trial` of them, or with a budget mixed and the first ones small. */
static weft_status list_groups(weft_arena *mem, const weft_kernel_task *task, const weft_tree *query, double most,
                               group_list *out)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(out->node, mem, query->nodes);
  WEFT_TAKE(out->before, mem, query->nodes + 1);
  WEFT_TAKE(out->work, mem, query->nodes);
  out->count = weft_tree_top(query, 0, most, out->node);
  if (task->trial) out->count = pick_groups(out->node, out->count, task->trial);
  out->largest = 0;
  for (size_t group = 0; group < out->count; group++) out->largest = fmax(out->largest, query->count[out->node[group]]);
  if (task->budget > 0) {
    WEFT_TRY(mix_groups(mem, out->node, out->count));
    WEFT_TRY(part_first_groups(mem, query, fmin(most, fmax(MIN_GROUP, (double) query->points.n / PARTS)), out->node,
                               &out->count));
  }
  out->before[0] = 0;
  for (size_t group = 0; group < out->count; group++)
    out->before[group + 1] = out->before[group] + query->count[out->node[group]];
done:
  return st;
}

static double greatest_coordinate(const weft_tree *tree)
{
  double most = 0;
  for (size_t j = 0; tree->nodes && j < 2 * tree->points.d; j++)
    most = fabs(tree->box[j]) > most ? fabs(tree->box[j]) : most;
  return most;
}

/* A thread's working memory, all of it in mem; series and samples only where the walk has them. */
static weft_status take_hands(weft_arena *mem, const weft_walk *w, weft_hands *hands)
{
  weft_status st = WEFT_OK;
  const size_t m = w->task->m, size = m * WEFT_TILE, nodes = w->reference->nodes, d = w->task->reference.d;
  const size_t stack = nodes > w->capacity ? nodes : w->capacity;
  memset(hands, 0, sizeof *hands);
  WEFT_TAKE(hands->block, mem, weft_block_size(d, m));
  WEFT_TAKE(hands->estimate, mem, w->capacity * size);
  WEFT_TAKE(hands->error, mem, w->capacity * size);
  WEFT_TAKE(hands->low, mem, w->capacity * size);
  WEFT_TAKE(hands->tolerance, mem, 9 * size);
  hands->kept = hands->tolerance + size, hands->settled = hands->kept + size, hands->floor = hands->settled + 3 * size,
  hands->batches = hands->floor + size;
  hands->certain = hands->batches + 2 * size;
  WEFT_TAKE(hands->min_tolerance, mem, 5 * m);
  hands->dropped = hands->min_tolerance + m, hands->min_tolerance_here = hands->dropped + m,
  hands->dropped_here = hands->min_tolerance_here + m, hands->local_error = hands->dropped_here + m;
  WEFT_TAKE(hands->priority, mem, w->capacity);
  WEFT_TAKE(hands->node, mem, w->capacity);
  WEFT_TAKE(hands->order, mem, w->capacity);
  WEFT_TAKE(hands->list, mem, nodes);
  WEFT_TAKE(hands->stack, mem, stack);
  WEFT_TAKE(hands->near_first, mem, GROUP + 1);
  if (w->task->confidence < 1) WEFT_TAKE(hands->drawn, mem, w->capacity * (2 * d + 1));
  if (w->series) {
    WEFT_TAKE(hands->local, mem, m * weft_series_terms(w->series));
    WEFT_TAKE(hands->powers, mem, weft_series_scratch(w->series));
  }
done:
  return st;
}

static weft_status running_weights(weft_ctx *ctx, const weft_kernel_task *task, double *running)
{
  weft_status st = WEFT_OK;
  const size_t n = task->reference.n, m = task->m;
  for (size_t c = 0; c < m; c++) {
    double *to = running + c * (n + 1);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    to[0] = 0;
    for (size_t i = 0; i < n; i++) to[i + 1] = to[i] + task->weights[i * m + c];
  }
done:
  return st;
}

/* The walk's variants, tolerances and sizes. Arrays are still missing; its tasks, moments and series follow in
 * weft_kernel_walk_many(). */
static weft_walk plan_walk(const weft_kernel_task *task, const weft_tree *query, const weft_tree *reference)
{
  const double most = greatest_coordinate(query), other = greatest_coordinate(reference);
  weft_walk w = { .task = task,
                  .query = query,
                  .reference = reference,
                  .tile = weft_tile_variant(),
                  .node = weft_node_variant(),
                  .rel = WEFT_EXACT,
                  .abs = SHARE * task->abs_error,
                  .capacity = FRONTIER_DOUBLES / (task->m * WEFT_TILE) };
  if (task->rel_error > WEFT_EXACT) w.rel = SHARE * task->rel_error;
  if (task->reference.lo) w.slack = 4e-16 * (most > other ? most : other);
  if (w.capacity < 16) w.capacity = 16;
  if (w.capacity > 4096) w.capacity = 4096;
  if (w.capacity > reference->nodes + 1) w.capacity = reference->nodes + 1;
  return w;
}

/* Takes moments, series, working memory and groups once, then walks all groups for each bandwidth in turn. Memory is
 * freed at the end; `effort` is added to. */
weft_status weft_kernel_walk_many(weft_ctx *ctx, const weft_kernel_task *task, const double *h, size_t bandwidths,
                                  const weft_tree *query, const weft_tree *reference, double *out,
                                  weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t m = task->m, d = task->reference.d;
  double *column, *running, group = GROUP_PAIRS / (double) (task->reference.n + 1);
  group_list groups;
  weft_hands *hands;
  weft_walk w = plan_walk(task, query, reference);
  group = group > GROUP ? GROUP : group < WEFT_TILE ? WEFT_TILE : group;
  const double *moments = reference->moments;
  if (!moments) {
    double *found;
    WEFT_TAKE(found, &mem, reference->nodes * m * (d + 2));
    WEFT_TRY(weft_kernel_moments(ctx, task, reference, found));
    moments = found;
  }
  WEFT_TAKE(column, &mem, m);
  WEFT_TAKE(hands, &mem, (size_t) ctx->threads);
  for (size_t c = 0; c < m; c++) column[c] = moments[c * (d + 2)];
  w.moments = moments, w.column = column;
  if (task->series)
    WEFT_TRY(weft_series_prepare(ctx, &mem, task, query, reference, w.rel, w.slack, h[bandwidths - 1], &w.series));
  if (task->confidence < 1) {
    WEFT_TAKE(running, &mem, m * (task->reference.n + 1));
    WEFT_TRY(running_weights(ctx, task, running));
    w.running = running;
  }
  if (w.series && w.rel < FEW_DIGITS) group = fmin(group, SERIES_GROUP);
  for (int k = 0; k < ctx->threads; k++) WEFT_TRY(take_hands(&mem, &w, &hands[k]));
  WEFT_TRY(list_groups(&mem, task, query, group, &groups));
  if (task->budget > 0) w.min_listed = groups.largest / 2; /* as without */
  for (size_t b = 0; b < bandwidths; b++) {
    weft_kernel_task one = *task;
    one.h = h[b];
    w.task = &one, w.out = out + b * m * task->query.n;
    w.narrower = b ? w.out - m * task->query.n : NULL;
    WEFT_TRY(walk_groups(ctx, &w, hands, &groups, (double) b, (double) bandwidths, &effort->given_up));
  }
  for (int k = 0; k < ctx->threads; k++) {
    effort->pairs += hands[k].effort.pairs;
    effort->nodes += hands[k].effort.nodes;
    effort->repeated += hands[k].effort.repeated;
    effort->series += hands[k].effort.series;
    effort->samples += hands[k].effort.samples;
    effort->looks += hands[k].effort.looks;
    effort->ordered += hands[k].effort.ordered;
    effort->products += hands[k].effort.products;
    effort->queries += hands[k].effort.queries;
  }
done:
  weft_arena_end(&mem);
  return st;
}
