/* Trees over points: one builder for four ways to split.
 *
 *   kd    by the widest coordinate                 ball  along the line through two far points
 *   vp    by the distance from a vantage point     rp    along a random direction
 *
 * Each gives every point of a node a key; a quickselect brings the lower keys to the front, moving the points
 * themselves. The split is by rank, at a multiple of the leaf size, so that all leaves but one are full and the shape
 * is known beforehand. Levels are built one after another, the nodes of a level in parallel. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include "core/numbers/draws.h"
#include "core/call/parallel.h"
#include "kernel/both/scalar.h"
#include "kernel/cpu/tree/tree.h"

enum { STREAM_RP = 0x6b740001 }; /* random directions */
#define BATCH_POINTS ((size_t) 1 << 20)
#define SWAPS (1u << 18) /* between two polls */

/* Points of the left child. */
static size_t left_count(size_t n, size_t leaf_size)
{
  size_t leaves = (n + leaf_size - 1) / leaf_size;
  return leaves / 2 * leaf_size;
}

size_t weft_tree_nodes(size_t n, size_t leaf_size) { return n ? 2 * ((n + leaf_size - 1) / leaf_size) - 1 : 0; }

/* No tree is deeper than 64 levels: each halves the leaves. */
size_t weft_tree_top(const weft_tree *tree, size_t from, double most, int32_t *nodes)
{
  size_t found = 0, todo[65], top = 0;
  todo[top++] = from;
  while (top) {
    const size_t node = todo[--top];
    if (tree->count[node] <= most || tree->child[node] < 0)
      nodes[found++] = (int32_t) node;
    else
      todo[top++] = (size_t) tree->child[node] + 1, todo[top++] = (size_t) tree->child[node];
  }
  return found;
}

/* first, count and child of every node. */
static void lay_out(const weft_tree_build *build)
{
  size_t next = 1;
  build->first[0] = 0, build->count[0] = (double) build->n;
  for (size_t node = 0; node < build->nodes; node++) {
    const size_t count = (size_t) build->count[node];
    if (count <= build->leaf_size) {
      build->child[node] = -1;
      continue;
    }
    const size_t left = left_count(count, build->leaf_size);
    build->child[node] = (int32_t) next;
    build->first[next] = build->first[node], build->count[next] = (double) left;
    build->first[next + 1] = build->first[node] + (double) left, build->count[next + 1] = (double) (count - left);
    next += 2;
  }
}

/* low: 2d numbers, least and greatest coordinates. */
static void bound_box(const weft_tree_build *build, size_t node, double *low)
{
  const size_t d = build->d, first = (size_t) build->first[node], last = first + (size_t) build->count[node];
  double *high = low + d;
  memcpy(low, build->x + first * d, d * sizeof *low);
  memcpy(high, low, d * sizeof *high);
  for (size_t i = first + 1; i < last; i++)
    for (size_t j = 0; j < d; j++) {
      const double x = build->x[i * d + j];
      low[j] = x < low[j] ? x : low[j];
      high[j] = x > high[j] ? x : high[j];
    }
}

/* The mean relative to the first point, and the radius about it, rounded up. middle: d + 1 numbers. */
static void bound_ball(const weft_tree_build *build, size_t node, double *middle)
{
  const size_t d = build->d, first = (size_t) build->first[node], count = (size_t) build->count[node];
  double radius = 0;
  memset(middle, 0, d * sizeof *middle);
  for (size_t i = first; i < first + count; i++)
    for (size_t j = 0; j < d; j++) middle[j] += (build->x[i * d + j] - build->x[first * d + j]) / (double) count;
  for (size_t i = first; i < first + count; i++) {
    double square = 0;
    for (size_t j = 0; j < d; j++) {
      double gap = build->x[i * d + j] - build->x[first * d + j] - middle[j];
      square += gap * gap;
    }
    if (square > radius) radius = square;
  }
  middle[d] = sqrt(radius) * (1 + 1e-13);
}

static size_t farthest(const weft_tree_build *build, size_t node, size_t from)
{
  const size_t d = build->d, first = (size_t) build->first[node], last = first + (size_t) build->count[node];
  size_t found = first;
  double most = -1;
  for (size_t i = first; i < last; i++) {
    double square = 0;
    for (size_t j = 0; j < d; j++) {
      double gap = build->x[i * d + j] - build->x[from * d + j];
      square += gap * gap;
    }
    if (square > most) most = square, found = i;
  }
  return found;
}

static size_t widest(const double *box, size_t d)
{
  size_t best = 0;
  for (size_t j = 1; j < d; j++)
    if (box[d + j] - box[j] > box[d + best] - box[best]) best = j;
  return best;
}

/* `line`: d doubles of scratch. */
static void set_keys(const weft_tree_build *build, size_t node, double *key, double *line)
{
  const size_t d = build->d, first = (size_t) build->first[node], last = first + (size_t) build->count[node];
  if (build->type == WEFT_TREE_KD) {
    const size_t j = widest(build->box + node * 2 * d, d);
    for (size_t i = first; i < last; i++) key[i] = build->x[i * d + j];
    return;
  }
  if (build->type == WEFT_TREE_VP) {
    const double *vantage = build->x + farthest(build, node, first) * d;
    for (size_t i = first; i < last; i++) {
      key[i] = 0;
      for (size_t j = 0; j < d; j++) key[i] += (build->x[i * d + j] - vantage[j]) * (build->x[i * d + j] - vantage[j]);
    }
    return;
  }
  const weft_rng rng = { build->key, STREAM_RP };
  const size_t one = build->type == WEFT_TREE_BALL ? farthest(build, node, first) : first;
  const size_t other = build->type == WEFT_TREE_BALL ? farthest(build, node, one) : first;
  for (size_t j = 0; j < d; j++)
    line[j] = build->type == WEFT_TREE_BALL ? build->x[other * d + j] - build->x[one * d + j]
                                            : weft_draw_normal(rng, (uint64_t) node * d + j);
  for (size_t i = first; i < last; i++) {
    key[i] = 0;
    for (size_t j = 0; j < d; j++) key[i] += (build->x[i * d + j] - build->x[first * d + j]) * line[j];
  }
}

/* Exchanges points i and k: coordinates, low parts, rows and keys. */
static void swap_points(const weft_tree_build *build, double *key, size_t i, size_t k)
{
  const size_t d = build->d;
  double t = key[i];
  key[i] = key[k], key[k] = t;
  int32_t o = build->order[i];
  build->order[i] = build->order[k], build->order[k] = o;
  for (size_t j = 0; j < d; j++) {
    double *p = build->x + i * d + j, *q = build->x + k * d + j;
    t = *p, *p = *q, *q = t;
  }
  for (size_t j = 0; build->lo && j < d; j++) {
    double *p = build->lo + i * d + j, *q = build->lo + k * d + j;
    t = *p, *p = *q, *q = t;
  }
}

static double middle_of(double a, double b, double c)
{
  return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

/* The `left` least keys of first .. last - 1 to the front (Hoare's find). Pivots are medians of three places taken by a
 * linear congruence, which no order of the data foils. */
static weft_status select_rank(const weft_tree_build *build, double *key, size_t first, size_t last, size_t left,
                               weft_ctx *ctx)
{
  weft_status st = WEFT_OK;
  const size_t goal = first + left;
  uint64_t place = first * UINT64_C(2654435761) + left;
  size_t low = first, high = last - 1;
  while (low < high) {
    double sample[3];
    for (int k = 0; k < 3; k++) {
      place = place * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      sample[k] = key[low + (size_t) (place >> 33) % (high - low + 1)];
    }
    const double pivot = middle_of(sample[0], sample[1], sample[2]);
    size_t i = low, k = high;
    if (ctx) WEFT_TRY(weft_poll(ctx, 0, 1));
    for (uint32_t swaps = 1;; swaps++) {
      if (ctx && swaps % SWAPS == 0) WEFT_TRY(weft_poll(ctx, 0, 1));
      while (key[i] < pivot) i++;
      while (key[k] > pivot) k--;
      if (i <= k) {
        if (i < k) swap_points(build, key, i, k);
        i++;
        if (k == 0) break;
        k--;
      }
      if (i > k) break;
    }
    if (goal <= k)
      high = k;
    else if (goal >= i)
      low = i;
    else
      return WEFT_OK;
  }
done:
  return st;
}

/* `ctx`: NULL for nodes that take negligible time; others poll in between. */
static weft_status grow_node(const weft_tree_build *build, size_t node, double *key, double *line, weft_ctx *ctx)
{
  weft_status st = WEFT_OK;
  const size_t first = (size_t) build->first[node], count = (size_t) build->count[node];
  if (ctx) WEFT_TRY(weft_poll(ctx, 0, 1));
  bound_box(build, node, build->box + node * 2 * build->d);
  if (build->child[node] < 0) goto done;
  if (ctx) WEFT_TRY(weft_poll(ctx, 0, 1));
  set_keys(build, node, key, line);
  WEFT_TRY(select_rank(build, key, first, first + count, (size_t) build->count[build->child[node]], ctx));
done:
  return st;
}

/* Nodes in batches of about a million points, in parallel. `key` NULL: balls, which are relative to a node's first
 * point and so must wait until the points no longer move. */
static weft_status grow_nodes(weft_ctx *ctx, const weft_tree_build *build, size_t first, size_t last, double *key,
                              double *lines, double done, double total)
{
  weft_status st = WEFT_OK;
  for (size_t start = first, end; start < last; start = end) {
    double points = 0;
    for (end = start; end < last && points < (double) BATCH_POINTS; end++) points += build->count[end];
    WEFT_TRY(weft_poll(ctx, done, total));
    if (build->count[start] >= (double) BATCH_POINTS &&
        key) { /* a large node by itself, which can stop in the middle */
      WEFT_TRY(grow_node(build, start, key, lines, ctx));
      continue;
    }
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, points * (double) (build->d + 8) * 3), dynamic)
    for (size_t node = start; node < end; node++) {
      if (key)
        (void) grow_node(build, node, key, lines + (size_t) WEFT_THREAD() * build->d, NULL);
      else
        bound_ball(build, node, build->centre + node * (build->d + 1));
    }
  }
done:
  return st;
}

/* Level by level, so that threads share the nodes of a level; middles and radii of other trees than kd follow at the
 * end. */
weft_status weft_tree_grow(weft_ctx *ctx, const weft_tree_build *build)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  double *key, *lines, done = 0, levels = 1;
  for (size_t i = 0; i < build->n; i++) build->order[i] = (int32_t) i;
  if (!build->n) return WEFT_OK;
  WEFT_TAKE(key, &mem, build->n);
  WEFT_TAKE(lines, &mem, build->d * (size_t) ctx->threads);
  lay_out(build);
  for (size_t left = build->nodes; left > 1; left /= 2) levels += 1;
  for (size_t level = 0, end = 1; level < build->nodes; done += 1) {
    /* The nodes level .. end - 1; their children are the next level */
    size_t next_end = end;
    for (size_t node = level; node < end; node++)
      if (build->child[node] >= 0) next_end = (size_t) build->child[node] + 2;
    WEFT_TRY(grow_nodes(ctx, build, level, end, key, lines, done, levels));
    level = end, end = next_end;
  }
  if (build->centre) WEFT_TRY(grow_nodes(ctx, build, 0, build->nodes, NULL, lines, levels, levels));
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- trees from elsewhere ---- */

/* order[] has every row once. */
static weft_status check_order(weft_ctx *ctx, const weft_tree_build *build, int *right)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  unsigned char *seen;
  WEFT_TAKE0(seen, &mem, build->n);
  for (size_t i = 0; i < build->n && *right; i++) {
    if (i % BATCH_POINTS == 0) WEFT_TRY(weft_poll(ctx, 0, 1));
    *right = build->order[i] >= 0 && (size_t) build->order[i] < build->n && !seen[build->order[i]];
    if (*right) seen[build->order[i]] = 1;
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* first, count and child are what lay_out() makes of n and the leaf size. */
static weft_status check_layout(weft_ctx *ctx, const weft_tree_build *build, const char **wrong)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_tree_build own = *build;
  WEFT_TAKE(own.first, &mem, build->nodes);
  WEFT_TAKE(own.count, &mem, build->nodes);
  WEFT_TAKE(own.child, &mem, build->nodes);
  lay_out(&own);
  for (size_t node = 0; node < build->nodes && !*wrong; node++)
    *wrong = build->first[node] != own.first[node]   ? "first"
             : build->count[node] != own.count[node] ? "count"
             : build->child[node] != own.child[node] ? "child"
                                                     : NULL;
done:
  weft_arena_end(&mem);
  return st;
}

/* A leaf's box is that of its points, another node's that of its children's boxes. box: 2d numbers. */
static int has_its_box(const weft_tree_build *build, size_t node, double *box)
{
  const size_t d = build->d;
  const double *known = build->box + node * 2 * d;
  if (build->child[node] < 0)
    bound_box(build, node, box);
  else {
    const double *left = build->box + (size_t) build->child[node] * 2 * d, *right = left + 2 * d;
    for (size_t j = 0; j < d; j++) box[j] = fmin(left[j], right[j]), box[d + j] = fmax(left[d + j], right[d + j]);
  }
  for (size_t j = 0; j < 2 * d; j++)
    if (!(known[j] == box[j])) return 0;
  return 1;
}

static int has_its_ball(const weft_tree_build *build, size_t node, double *middle)
{
  bound_ball(build, node, middle);
  for (size_t j = 0; j <= build->d; j++)
    if (!(build->centre[node * (build->d + 1) + j] == middle[j])) return 0;
  return 1;
}

/* Everything but the points and their order follows from these, by sums in a fixed order: so it is computed again. */
weft_status weft_tree_check(weft_ctx *ctx, const weft_tree_build *build, const char **wrong)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t size = 2 * build->d + 1;
  int right = 1;
  atomic_int boxes = 1, balls = 1;
  double *scratch;
  *wrong = NULL;
  for (size_t i = 0; i < build->n * build->d && right; i++) {
    if (i % BATCH_POINTS == 0) WEFT_TRY(weft_poll(ctx, 0, 1));
    right = build->x[i] - build->x[i] == 0 && (!build->lo || build->lo[i] - build->lo[i] == 0);
  }
  if (!right) *wrong = "x";
  if (!*wrong) WEFT_TRY(check_order(ctx, build, &right));
  if (!right && !*wrong) *wrong = "order";
  if (!*wrong && build->nodes) WEFT_TRY(check_layout(ctx, build, wrong));
  if (*wrong) goto done;
  WEFT_TAKE(scratch, &mem, size * (size_t) ctx->threads);
  for (size_t start = 0, end; start < build->nodes; start = end) {
    double points = 0;
    for (end = start; end < build->nodes && points < (double) BATCH_POINTS; end++) points += build->count[end];
    WEFT_TRY(weft_poll(ctx, (double) start, (double) build->nodes));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, points * (double) build->d * 3), dynamic)
    for (size_t node = start; node < end; node++) {
      double *own = scratch + (size_t) WEFT_THREAD() * size;
      if (!has_its_box(build, node, own)) atomic_store(&boxes, 0);
      if (build->centre && !has_its_ball(build, node, own)) atomic_store(&balls, 0);
    }
  }
  *wrong = !boxes ? "box" : !balls ? "centre" : NULL;
done:
  weft_arena_end(&mem);
  return st;
}
