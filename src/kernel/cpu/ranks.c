/* Splitting points among ranks, and pruning references for the queries of other ranks.
 *
 * A split is by rank, exactly: the k-th least key of a group of ranks is found bit by bit from the top, 8 bits per
 * round, from counts summed over the group (a radix selection of doubles mapped to integers in the same order).
 *
 * Node v of the references is not needed by box b of queries when its largest kernel value there is at most
 * allowed_b, and one of its points may stand for all of them when its kernel values there differ by at most
 * allowed_b; in a leaf, each point is examined. Every reference is under one such node at most, so a query's errors add
 * up to no more than allowed_b times the total weight. */
#include <string.h>
#include "core/call/parallel.h"
#include "kernel/cpu/direct/block.h"
#include "kernel/cpu/ranks.h"
#include "kernel/cpu/direct/tile_portable.h"

/* ---- splits ---- */

static uint64_t in_order(double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits >> 63 ? ~bits : bits | (UINT64_C(1) << 63);
}

/* Finds the key at which to split byte by byte, as an unsigned number that sorts like the double: all ranks count how
 * many of their keys have each value of the next byte. Ties are counted at the end. */
weft_status weft_ranks_split(weft_ctx *ctx, const weft_mpi_messages *messages, int rank, int size, const double *key,
                             size_t n, double share, int *left)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  double all = (double) n, *counts, *ties;
  uint64_t known = 0, mask = 0;
  WEFT_TAKE(counts, &mem, 256);
  WEFT_TAKE0(ties, &mem, (size_t) size);
  WEFT_TRY(messages->all_reduce(ctx, &all, 1, WEFT_SUM));
  double wanted = floor(share * all + 0.5);
  if (wanted < 1 || wanted >= all) {
    for (size_t i = 0; i < n; i++) left[i] = wanted >= 1;
    goto done;
  }
  for (int shift = 56; shift >= 0; shift -= 8) {
    int byte = 0;
    memset(counts, 0, 256 * sizeof *counts);
    for (size_t i = 0; i < n; i++) {
      const uint64_t bits = in_order(key[i]);
      if ((bits & mask) == known) counts[(bits >> shift) & 255] += 1;
    }
    WEFT_TRY(messages->all_reduce(ctx, counts, 256, WEFT_SUM));
    while (byte < 255 && counts[byte] < wanted) wanted -= counts[byte++];
    known |= (uint64_t) byte << shift, mask |= UINT64_C(255) << shift;
  }
  /* `wanted` of the keys that equal the one found go left */
  for (size_t i = 0; i < n; i++) ties[rank] += in_order(key[i]) == known;
  WEFT_TRY(messages->all_reduce(ctx, ties, (size_t) size, WEFT_SUM));
  for (int r = 0; r < rank; r++) wanted -= ties[r];
  for (size_t i = 0; i < n; i++) {
    const uint64_t bits = in_order(key[i]);
    left[i] = bits < known || (bits == known && wanted >= 1);
    if (bits == known) wanted -= 1;
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- kernel values between boxes ---- */

/* Least and greatest kernel value between two boxes; what rounding may hide is counted in. */
static void values_between(const weft_reach *r, const double *box, const double *low, const double *high, double *least,
                           double *greatest)
{
  const size_t d = r->tree->points.d;
  const double scale = 1 / (r->h * r->h), slack = r->tree->points.lo ? 4e-16 * r->far : 0;
  double near = 0, far = 0;
  for (size_t j = 0; j < d; j++) {
    double right = low[j] - box[d + j], left = box[j] - high[j], gap = (right > left ? right : left) - 2 * slack;
    double one = high[j] - box[j], other = box[d + j] - low[j], reach = (one > other ? one : other) + 2 * slack;
    if (gap > 0) near += gap * gap;
    far += reach * reach;
  }
  *greatest = weft_kernel_of(r->kind, near * scale * (1 - 1e-9), 0);
  *least = weft_kernel_of(r->kind, far * scale * (1 + 1e-9), 0);
}

static void value_range(const weft_reach *reach, const double *box, size_t v, double *least, double *greatest)
{
  const double *node = reach->tree->box + v * 2 * reach->tree->points.d;
  values_between(reach, box, node, node + reach->tree->points.d, least, greatest);
}

/* Sums of weights under every node: nodes * m. */
static void sum_weights(const weft_reach *reach, double *sums)
{
  const weft_tree *tree = reach->tree;
  for (size_t node = tree->nodes; node-- > 0;)
    for (size_t c = 0; c < reach->m; c++) {
      double *to = sums + node * reach->m + c;
      *to = 0;
      if (tree->child[node] >= 0)
        *to =
            to[((size_t) tree->child[node] - node) * reach->m] + to[((size_t) tree->child[node] + 1 - node) * reach->m];
      else
        for (size_t i = (size_t) tree->first[node]; i < (size_t) (tree->first[node] + tree->count[node]); i++)
          *to += reach->weights[i * reach->m + c];
    }
}

#define LOOKS 4096 /* nodes that a lower bound may look at */

static void lower_of_box(const weft_reach *reach, const double *sums, const double *box, double *least)
{
  const weft_tree *tree = reach->tree;
  int32_t todo[128];
  size_t top = 0, looks = 0;
  todo[top++] = 0;
  while (top) {
    const size_t node = (size_t) todo[--top];
    double few, most;
    value_range(reach, box, node, &few, &most);
    if (!(most > 0)) continue;
    if (tree->child[node] < 0 || most - few <= 0.2 * few || ++looks > LOOKS) {
      for (size_t c = 0; c < reach->m; c++) least[c] += (1 - 1e-12) * few * sums[node * reach->m + c];
      continue;
    }
    double left, right, other;
    value_range(reach, box, (size_t) tree->child[node], &other, &left);
    value_range(reach, box, (size_t) tree->child[node] + 1, &other, &right);
    todo[top++] = tree->child[node] + (left > right); /* the nearer child is looked at first */
    todo[top++] = tree->child[node] + (left <= right);
  }
}

/* Threads share the boxes; each walks the tree from its root. */
weft_status weft_ranks_lower(weft_ctx *ctx, const weft_reach *reach, const double *boxes, size_t count, double *least)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t d = reach->tree->points.d, m = reach->m;
  double *sums;
  memset(least, 0, count * m * sizeof *least);
  if (!reach->tree->nodes) return st;
  WEFT_TAKE(sums, &mem, reach->tree->nodes * m);
  sum_weights(reach, sums);
  for (size_t start = 0; start < count; start += 256) {
    const size_t end = count - start < 256 ? count : start + 256;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) count));
    WEFT_PARALLEL_FOR(ctx->threads, guided)
    for (size_t box = start; box < end; box++) lower_of_box(reach, sums, boxes + box * 2 * d, least + box * m);
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- what is needed ---- */

typedef struct {
  const weft_reach *reach;
  const double *sums, *boxes, *allowed;
  int together, *one, *keep;
} needs;

/* The points of a leaf that some open box needs. */
static void decide_points(const needs *n, size_t node, uint64_t open, int wanted)
{
  const weft_tree *tree = n->reach->tree;
  const size_t d = tree->points.d;
  for (size_t i = (size_t) tree->first[node]; i < (size_t) (tree->first[node] + tree->count[node]); i++) {
    const double *x = tree->points.x + i * d;
    double few, most;
    n->keep[i] = wanted;
    for (size_t box = 0; box < WEFT_RANK_BOXES && !n->keep[i]; box++) {
      if (!(open >> box & 1)) continue;
      values_between(n->reach, n->boxes + box * 2 * d, x, x, &few, &most);
      n->keep[i] = most > n->allowed[box];
    }
  }
}

/* open: boxes for which the node is not decided above; wanted: for some box, one point suffices for all of it. */
static void decide(const needs *n, size_t node, uint64_t open, int wanted)
{
  const weft_reach *reach = n->reach;
  const weft_tree *tree = reach->tree;
  uint64_t left = 0;
  double weight = 0;
  for (size_t c = 0; c < reach->m; c++) weight += n->sums[node * reach->m + c];
  if (weight == 0) return;
  for (size_t box = 0; box < WEFT_RANK_BOXES; box++) {
    double few, most;
    if (!(open >> box & 1)) continue;
    value_range(reach, n->boxes + box * 2 * tree->points.d, node, &few, &most);
    if (most <= n->allowed[box]) continue;
    if (n->together && most - few <= n->allowed[box])
      wanted = 1;
    else
      left |= UINT64_C(1) << box;
  }
  if (!left)
    n->one[node] = wanted;
  else if (tree->child[node] < 0)
    decide_points(n, node, left, wanted);
  else {
    decide(n, (size_t) tree->child[node], left, wanted);
    decide(n, (size_t) tree->child[node] + 1, left, wanted);
  }
}

/* Decides from the root of the tree down; boxes in question are a mask of 64 bits. */
weft_status weft_ranks_needed(weft_ctx *ctx, const weft_reach *reach, const double *boxes, const double *allowed,
                              size_t count, int together, int *one, int *keep)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  double *sums;
  memset(one, 0, reach->tree->nodes * sizeof *one);
  memset(keep, 0, reach->tree->points.n * sizeof *keep);
  if (!reach->tree->nodes || !count) return st;
  WEFT_TAKE(sums, &mem, reach->tree->nodes * reach->m);
  WEFT_TRY(weft_poll(ctx, 0, 1));
  sum_weights(reach, sums);
  decide(&(needs){ reach, sums, boxes, allowed, together, one, keep }, 0,
         count < 64 ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0), 0);
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- a first lower bound of every query ---- */

static double box_gap(const weft_tree *a, size_t node, const weft_tree *b, size_t k)
{
  const size_t d = a->points.d;
  const double *one = a->box + node * 2 * d, *other = b->box + k * 2 * d;
  double square = 0;
  for (size_t j = 0; j < d; j++) {
    double gap = fmax(other[j] - one[d + j], one[j] - other[d + j]);
    if (gap > 0) square += gap * gap;
  }
  return square;
}

/* Sums of the queries of a leaf over the reference leaf that lies nearest by boxes, rounded down so that they are lower
 * bounds; 0 for steps. */
static void sum_nearest(const weft_kernel_task *task, const weft_tree *query, const weft_tree *reference,
                        weft_tile_sum tile, size_t leaf, double *memory, double *out)
{
  weft_block_query block = weft_block_in(memory, task->reference.d, task->m, task->reference.lo != NULL);
  const size_t first = (size_t) query->first[leaf], count = (size_t) query->count[leaf];
  size_t node = 0;
  while (reference->child[node] >= 0) {
    const size_t k = (size_t) reference->child[node];
    node = k + (box_gap(query, leaf, reference, k + 1) < box_gap(query, leaf, reference, k));
  }
  for (size_t from = 0; from < count; from += WEFT_TILE) {
    weft_block_load(&block, &task->query, first + from, count - from < WEFT_TILE ? count - from : WEFT_TILE, task->m);
    weft_block_add(&block, task, tile, (size_t) reference->first[node], (size_t) reference->count[node]);
    for (size_t lane = 0; lane < block.count; lane++)
      for (size_t c = 0; c < task->m; c++) {
        /* near its boundary, a compact kernel's whole value may be rounding error */
        const double value = block.total[c * WEFT_TILE + lane] -
                             2 * weft_distance_error(task->reference.d) * block.inside[c * WEFT_TILE + lane];
        out[block.first + lane + c * task->query.n] =
            value > 0 && !weft_kernel_step(task->kind) ? value * (1 - 1e-12) : 0;
      }
  }
}

/* Threads share the leaves of the query tree. */
weft_status weft_ranks_nearest(weft_ctx *ctx, const weft_kernel_task *task, const weft_tree *query,
                               const weft_tree *reference, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t size = weft_block_size(task->reference.d, task->m);
  double *memory;
  memset(out, 0, task->query.n * task->m * sizeof *out);
  if (!query->nodes || !reference->nodes) return st;
  WEFT_TAKE(memory, &mem, (size_t) ctx->threads * size);
  for (size_t start = 0; start < query->nodes; start += 16384) {
    const size_t end = query->nodes - start < 16384 ? query->nodes : start + 16384;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) query->nodes));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, (double) task->query.n * (double) (task->reference.d + 10) * 16))
    WEFT_FOR(dynamic)
    for (size_t node = start; node < end; node++)
      if (query->child[node] < 0)
        sum_nearest(task, query, reference, weft_tile_variant(), node, memory + (size_t) WEFT_THREAD() * size, out);
  }
done:
  weft_arena_end(&mem);
  return st;
}
