/* Kernel sums by two trees, within rel_error * f + abs_error for every query.
 *
 * A group is a node of the query tree with up to 1024 points. The reference leaf nearest to each of its leaves, its own when
 * references are the queries, is summed at once: a first lower bound. Boxes against boxes give the group a list of
 * reference nodes, without those out of a compact kernel's reach and those that add next to nothing to the lower bound.
 * Each leaf of the group (a tile of 32 queries) starts from its nearest leaf and this list:
 *
 *   bound every node of the frontier for every query of the leaf (kernel_tile.h)
 *   repeat
 *     tolerance = rel_error * (exact part + lower bounds) + abs_error, for every query by itself
 *     keep the nodes of least error, as many as the tolerance allows for every query and column
 *     expand the others: leaves are summed exactly, inner nodes replaced by their children
 *   until none is expanded; the estimates of the kept ones join the exact part
 *
 * Lower bounds only grow, so what was kept stays within the tolerance. A leaf's result depends on nothing but the leaf, so
 * threads do not change it. Exact sums are the same with a tolerance of a few roundings. */
#include <time.h>
#include "../base/parallel.h"
#include "kernel_block.h"

#define GROUP 1024       /* fewer where references are so many that a group would take seconds */
#define GROUP_PAIRS 1e9
#define EXACT 3e-13      /* relative tolerance of exact sums, which promise 1e-12 */
#define SHARE 0.9        /* of the tolerance for bounds; the rest is for rounding */
#define NEGLIGIBLE 0.05  /* of the tolerance, for all nodes together that are left out for their smallness */
#define LOG_LEAST 1e-280
#define BUCKETS 128      /* of errors, by powers of two */
#define FRONTIER_DOUBLES ((size_t) 1 << 20)

typedef struct {
  const weft_kernel_task *task;
  const weft_tree *query, *reference;
  const double *moments;   /* nodes * m * (d + 2) */
  const double *column;    /* m: total weight */
  weft_tile_sum tile;
  weft_tile_node node;
  double rel, abs, slack;
  size_t capacity;         /* of a frontier */
  double *out;
} walk;

/* One thread's. */
typedef struct {
  double *block, *estimate, *error, *low; /* capacity * m * WEFT_TILE each */
  double *tolerance, *kept, *settled;     /* m * WEFT_TILE; settled: 3 of them: estimate, error, low of finished nodes */
  double *priority;                       /* capacity */
  double *least, *dropped;                /* m: least tolerance of the group's queries; error of what its list leaves out */
  double *least_here, *dropped_here;      /* m: the same of a leaf */
  size_t nearest;                         /* the reference leaf that is summed already */
  size_t leaf;                            /* of the query tree */
  int32_t *node, *order, *list, *stack;   /* capacity, capacity, nodes, nodes */
  size_t count, listed;
  weft_kernel_effort effort;
} hands;

/* ---- moments ---- */

static void leaf_moments(const weft_kernel_task *task, size_t first, size_t count, double *to) {
  const weft_points *p = &task->reference;
  const size_t d = p->d, m = task->m;
  for (size_t c = 0; c < m; c++) {
    double *o = to + c * (d + 2), weight = 0;
    memset(o, 0, (d + 2) * sizeof *o);
    for (size_t i = first; i < first + count; i++) weight += task->weights[i * m + c];
    o[0] = weight;
    if (!(weight > 0)) continue;
    for (int pass = 0; pass < 2; pass++) /* the mean, then the square distance from it */
      for (size_t i = first; i < first + count; i++) {
        const double share = task->weights[i * m + c] / weight;
        double square = 0;
        for (size_t j = 0; j < d; j++) {
          double gap = p->x[i * d + j] - p->x[first * d + j];
          if (p->lo) gap += p->lo[i * d + j] - p->lo[first * d + j];
          if (pass) square += (gap - o[2 + j]) * (gap - o[2 + j]);
          else o[2 + j] += share * gap;
        }
        if (pass) o[1] += share * square;
      }
  }
}

static void join_moments(const weft_kernel_task *task, size_t left_first, size_t right_first, const double *left,
                         const double *right, double *to) {
  const weft_points *p = &task->reference;
  const size_t d = p->d;
  for (size_t c = 0; c < task->m; c++) {
    const double *a = left + c * (d + 2), *b = right + c * (d + 2);
    double *o = to + c * (d + 2), weight = a[0] + b[0], square = 0;
    memset(o, 0, (d + 2) * sizeof *o);
    o[0] = weight;
    if (!(weight > 0)) continue;
    const double share = b[0] / weight;
    for (size_t j = 0; j < d; j++) {
      double gap = p->x[right_first * d + j] - p->x[left_first * d + j];
      if (p->lo) gap += p->lo[right_first * d + j] - p->lo[left_first * d + j];
      gap += b[2 + j] - a[2 + j];
      square += gap * gap;
      o[2 + j] = a[2 + j] + share * gap;
    }
    o[1] = (1 - share) * a[1] + share * b[1] + share * (1 - share) * square;
  }
}

weft_status weft_kernel_moments(weft_ctx *ctx, const weft_kernel_task *task, const weft_tree *t, double *moments) {
  weft_status st = WEFT_OK;
  const size_t size = task->m * (task->reference.d + 2), at_once = 16384;
  for (size_t start = 0; start < t->nodes; start += at_once) {
    const size_t end = t->nodes - start < at_once ? t->nodes : start + at_once;
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL(ctx->threads)
    WEFT_FOR(static)
    for (size_t v = start; v < end; v++)
      if (t->child[v] < 0) leaf_moments(task, (size_t) t->first[v], (size_t) t->count[v], moments + v * size);
  }
  for (size_t v = t->nodes; v-- > 0;) {
    const size_t k = (size_t) t->child[v];
    if (t->child[v] >= 0)
      join_moments(task, (size_t) t->first[k], (size_t) t->first[k + 1], moments + k * size, moments + (k + 1) * size,
                   moments + v * size);
  }
done:
  return st;
}

/* ---- one leaf of queries ---- */

static void sum_exactly(const walk *w, hands *t, weft_block_query *b, size_t v) {
  const weft_tree *r = w->reference;
  weft_block_add(b, w->task, w->tile, (size_t) r->first[v], (size_t) r->count[v]);
  t->effort.pairs += r->count[v] * (double) b->count;
}

/* The estimates of a node that needs no second look. */
static void settle(const walk *w, hands *t, size_t slot) {
  const size_t size = w->task->m * WEFT_TILE;
  for (size_t i = 0; i < size; i++) {
    t->settled[i] += t->estimate[slot * size + i];
    t->settled[size + i] += t->error[slot * size + i];
    t->settled[2 * size + i] += t->low[slot * size + i];
  }
}

/* Least and greatest s between two boxes. */
static void box_range(const walk *w, size_t q, size_t r, double *least, double *greatest) {
  const size_t d = w->task->reference.d;
  const double *a = w->query->box + q * 2 * d, *b = w->reference->box + r * 2 * d, scale = 1 / (w->task->h * w->task->h);
  *least = *greatest = 0;
  for (size_t j = 0; j < d; j++) {
    double right = b[j] - a[d + j], left = a[j] - b[d + j], gap = right > left ? right : left;
    double one = b[d + j] - a[j], other = a[d + j] - b[j], reach = (one > other ? one : other) + 2 * w->slack;
    gap -= 2 * w->slack;
    if (gap > 0) *least += gap * gap;
    *greatest += reach * reach;
  }
  *least *= scale * (1 - 1e-12), *greatest *= scale * (1 + 1e-12);
}

/* True when all of node v's weight at the kernel value `most` is negligible; its error is then added to `dropped`. */
static int negligible(const walk *w, size_t v, double most, const double *least, double *dropped) {
  const size_t m = w->task->m, d = w->task->reference.d;
  const double *moments = w->moments + v * m * (d + 2);
  for (size_t c = 0; c < m; c++)
    if (w->column[c] * most > NEGLIGIBLE * least[c]) return 0;
  for (size_t c = 0; c < m; c++) dropped[c] += moments[c * (d + 2)] * most;
  return 1;
}

/* True when node v holds a reference that a query of the block leaves out, apart from its own place in the tree. */
static int holds_own(const walk *w, const weft_block_query *b, size_t v) {
  const double first = w->reference->first[v], last = first + w->reference->count[v];
  int held = 0;
  if (!w->task->leave_one_out || !w->task->own) return 0;
  for (size_t l = 0; l < b->count; l++) held |= w->task->own[b->first + l] >= first && w->task->own[b->first + l] < last;
  return held;
}

/* Bounds node v and puts it into the frontier, unless it is out of reach, negligible or settled by its bounds. Of a node that
 * holds the leaf summed already its children are considered. */
static void consider(const walk *w, hands *t, weft_block_query *b, size_t v) {
  const weft_kernel_task *task = w->task;
  const weft_tree *r = w->reference;
  const size_t d = task->reference.d, m = task->m, size = m * WEFT_TILE, first = (size_t) r->first[v];
  const double done = r->first[t->nearest];
  if (done >= r->first[v] && done < r->first[v] + r->count[v]) {
    if (r->child[v] < 0) return;
    consider(w, t, b, (size_t) r->child[v]);
    consider(w, t, b, (size_t) r->child[v] + 1);
    return;
  }
  double nearest, farthest;
  box_range(w, t->leaf, v, &nearest, &farthest);
  if (weft_kernel_compact(task->kind) ? nearest > 1 + 1e-9
                                      : negligible(w, v, weft_kernel_of(task->kind, nearest, 0), t->least_here, t->dropped_here)) return;
  if (holds_own(w, b, v) && r->child[v] >= 0) {
    consider(w, t, b, (size_t) r->child[v]);
    consider(w, t, b, (size_t) r->child[v] + 1);
    return;
  }
  if (t->count == w->capacity || holds_own(w, b, v)) {
    sum_exactly(w, t, b, v);
    return;
  }
  const size_t slot = t->count;
  double *error = t->error + slot * size, *estimate = t->estimate + slot * size, *low = t->low + slot * size;
  weft_node_tile a = {b->q, b->q_lo, r->box + v * 2 * d, task->reference.x + first * d,
                      task->reference.lo ? task->reference.lo + first * d : NULL, r->centre ? r->centre + v * (d + 1) : NULL,
                      w->moments + v * m * (d + 2), d, m, 1 / (task->h * task->h), weft_distance_error(d), w->slack,
                      estimate, error, low};
  w->node(&a, task->kind);
  t->effort.nodes += 1;
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
    settle(w, t, slot);
    return;
  }
  t->node[slot] = (int32_t) v;
  t->priority[slot] = most;
  t->count++;
}

static int bucket_of(double priority, double greatest) {
  int k = 0;
  frexp(priority / greatest, &k);
  k = BUCKETS - 1 + (k > 0 ? 0 : k);
  return k < 0 ? 0 : k;
}

/* t->order: the frontier from least to greatest error, to within a factor of two. */
static void order_frontier(hands *t) {
  size_t start[BUCKETS + 1] = {0};
  double greatest = 1e-300;
  for (size_t f = 0; f < t->count; f++) greatest = t->priority[f] > greatest ? t->priority[f] : greatest;
  for (size_t f = 0; f < t->count; f++) start[bucket_of(t->priority[f], greatest) + 1]++;
  for (int k = 0; k < BUCKETS; k++) start[k + 1] += start[k];
  for (size_t f = 0; f < t->count; f++) t->order[start[bucket_of(t->priority[f], greatest)]++] = (int32_t) f;
}

/* How many of t->order can be kept. */
static size_t count_kept(const walk *w, hands *t, const weft_block_query *b) {
  const size_t size = w->task->m * WEFT_TILE;
  memcpy(t->kept, b->total, size * sizeof *t->kept);
  for (size_t i = 0; i < size; i++) t->kept[i] += b->rest[i] + t->settled[2 * size + i];
  for (size_t f = 0; f < t->count; f++)
    for (size_t i = 0; i < size; i++) t->kept[i] += t->low[f * size + i];
  for (size_t i = 0; i < size; i++) {
    t->tolerance[i] = w->rel * t->kept[i] + w->abs;
    t->kept[i] = t->settled[size + i] + t->dropped_here[i / WEFT_TILE];
  }
  for (size_t f = 0; f < t->count; f++) {
    const double *error = t->error + (size_t) t->order[f] * size;
    int over = 0;
    for (size_t i = 0; i < size; i++) {
      t->kept[i] += error[i];
      over |= t->kept[i] > t->tolerance[i];
    }
    if (over) return f;
  }
  return t->count;
}

/* The first `kept` of t->order to the front of the frontier; the nodes of the others into t->stack. Returns their number. */
static size_t part_frontier(const walk *w, hands *t, size_t kept) {
  const size_t size = w->task->m * WEFT_TILE;
  size_t expanded = t->count - kept, hole = 0;
  for (size_t f = kept; f < t->count; f++) {
    t->stack[f - kept] = t->node[t->order[f]];
    t->node[t->order[f]] = -1;
  }
  for (size_t f = 0; f < t->count; f++) {
    if (t->node[f] < 0) continue;
    if (f != hole) {
      t->node[hole] = t->node[f], t->priority[hole] = t->priority[f];
      memcpy(t->estimate + hole * size, t->estimate + f * size, size * sizeof(double));
      memcpy(t->error + hole * size, t->error + f * size, size * sizeof(double));
      memcpy(t->low + hole * size, t->low + f * size, size * sizeof(double));
    }
    hole++;
  }
  t->count = hole;
  return expanded;
}

/* ---- queries that need more digits or a shifted exponent, one by one ---- */

static double box_distance(const walk *w, const double *q, size_t v) {
  const size_t d = w->task->reference.d;
  const double *low = w->reference->box + v * 2 * d, *high = low + d;
  double square = 0;
  for (size_t j = 0; j < d; j++) {
    double gap = low[j] > q[j] ? low[j] - q[j] : q[j] > high[j] ? q[j] - high[j] : 0;
    gap = gap > w->slack ? gap - w->slack : 0;
    square += gap * gap;
  }
  return square;
}

/* The exponent of the nearest reference that weighs something in column c, and its weight. */
static double nearest_exponent(const walk *w, hands *t, size_t i, size_t c, double *weight) {
  const weft_kernel_task *task = w->task;
  const weft_tree *r = w->reference;
  const double *q = task->query.x + i * task->query.d;
  double least = INFINITY;
  size_t top = 0;
  t->stack[top++] = 0;
  *weight = 0;
  while (top) {
    const size_t v = (size_t) t->stack[--top];
    if (box_distance(w, q, v) >= least) continue;
    if (r->child[v] >= 0) {
      const size_t k = (size_t) r->child[v];
      const int right_nearer = box_distance(w, q, k + 1) < box_distance(w, q, k);
      t->stack[top++] = (int32_t) (right_nearer ? k : k + 1);
      t->stack[top++] = (int32_t) (right_nearer ? k + 1 : k);
      continue;
    }
    for (size_t k = (size_t) r->first[v]; k < (size_t) (r->first[v] + r->count[v]); k++) {
      if (weft_left_out(task, i, k) || !(task->weights[k * task->m + c] > 0)) continue;
      double s = weft_square_distance(&task->query, i, &task->reference, k);
      if (s < least) least = s, *weight = task->weights[k * task->m + c];
    }
  }
  return least < INFINITY ? weft_kernel_exponent(task->kind, least / (task->h * task->h)) : INFINITY;
}

/* Column c of query i, every pair by itself; exponents relative to `shift`. A compact kernel visits the boxes in reach; an
 * exponential one those that could add 1e-15 of the term of the nearest reference, whose weight is given. */
static double sum_pairs(const walk *w, hands *t, size_t i, size_t c, double shift, double weight) {
  const weft_kernel_task *task = w->task;
  const weft_tree *r = w->reference;
  const double *q = task->query.x + i * task->query.d, square = task->h * task->h;
  const size_t size = task->m * (task->reference.d + 2);
  double total = 0, rest = 0;
  size_t top = 0;
  t->stack[top++] = 0;
  while (top) {
    const size_t v = (size_t) t->stack[--top];
    const double s = box_distance(w, q, v) / square;
    if (weft_kernel_compact(task->kind) ? s > 1 + 1e-9
                                        : w->moments[v * size + c * (task->reference.d + 2)] * weft_kernel_of(task->kind, s, shift) <
                                            1e-15 * weight * r->count[v] / (double) task->reference.n) continue;
    if (r->child[v] >= 0) {
      t->stack[top++] = r->child[v];
      t->stack[top++] = r->child[v] + 1;
      continue;
    }
    for (size_t k = (size_t) r->first[v]; k < (size_t) (r->first[v] + r->count[v]); k++) {
      if (weft_left_out(task, i, k)) continue;
      double value = weft_kernel_pair(task->kind, &task->query, i, &task->reference, k, task->h, shift);
      weft_add_to(&total, &rest, value * task->weights[k * task->m + c]);
    }
  }
  return total + rest;
}

static void finish(const walk *w, hands *t, weft_block_query *b) {
  const weft_kernel_task *task = w->task;
  const size_t m = task->m, size = m * WEFT_TILE, nq = task->query.n;
  const double allowed = w->rel > EXACT ? 0.05 * w->rel : 2e-13;
  for (size_t i = 0; i < size; i++) b->total[i] += b->rest[i] + t->settled[i];
  for (size_t f = 0; f < t->count; f++)
    for (size_t i = 0; i < size; i++) b->total[i] += t->estimate[f * size + i];
  for (size_t l = 0; l < b->count; l++) {
    const size_t i = b->first + l;
    const int doubtful = weft_block_doubtful(b, task, l, allowed);
    t->effort.repeated += doubtful;
    for (size_t c = 0; c < m; c++) {
      double *to = w->out + i + c * nq, sum = b->total[c * WEFT_TILE + l];
      if (doubtful) sum = sum_pairs(w, t, i, c, 0, 0);
      *to = task->logarithm ? log(sum) : sum;
      if (!task->logarithm || !weft_kernel_exponential(task->kind) || sum >= LOG_LEAST) continue;
      double weight, shift = nearest_exponent(w, t, i, c, &weight);
      *to = shift < INFINITY ? log(sum_pairs(w, t, i, c, shift, weight)) - shift : -INFINITY;
      t->effort.repeated += 1;
    }
  }
}

/* The reference leaf that lies nearest to a leaf of queries, box to box from the root down. */
static size_t find_nearest(const walk *w, size_t leaf) {
  const weft_tree *r = w->reference;
  if (w->query->first == r->first) return leaf;
  size_t v = 0;
  while (r->child[v] >= 0) {
    double left, right, other;
    v = (size_t) r->child[v];
    box_range(w, leaf, v, &left, &other);
    box_range(w, leaf, v + 1, &right, &other);
    v += right < left;
  }
  return v;
}

/* Sets least[c] to the least tolerance of the block's queries, from what is summed so far. */
static void least_tolerance(const walk *w, const weft_block_query *b, double *least) {
  for (size_t c = 0; c < w->task->m; c++) {
    double low = INFINITY;
    for (size_t l = 0; l < b->count; l++) low = fmin(low, b->total[c * WEFT_TILE + l]);
    least[c] = w->column[c] > 0 ? w->rel * low + w->abs : INFINITY;
  }
}

static void sum_leaf(const walk *w, hands *t, size_t leaf) {
  const weft_kernel_task *task = w->task;
  weft_block_query b = weft_block_in(t->block, task->reference.d, task->m, task->reference.lo != NULL);
  const size_t first = (size_t) w->query->first[leaf], count = (size_t) w->query->count[leaf];
  t->leaf = leaf, t->nearest = find_nearest(w, leaf);
  for (size_t from = 0; from < count; from += WEFT_TILE) {
    weft_block_load(&b, &task->query, first + from, count - from < WEFT_TILE ? count - from : WEFT_TILE, task->m);
    memset(t->settled, 0, 3 * task->m * WEFT_TILE * sizeof *t->settled);
    memcpy(t->dropped_here, t->dropped, task->m * sizeof *t->dropped);
    t->count = 0;
    sum_exactly(w, t, &b, t->nearest);
    least_tolerance(w, &b, t->least_here);
    for (size_t k = 0; k < t->listed; k++) consider(w, t, &b, (size_t) t->list[k]);
    while (t->count) {
      order_frontier(t);
      const size_t kept = count_kept(w, t, &b);
      if (kept == t->count) break;
      const size_t expanded = part_frontier(w, t, kept);
      for (size_t k = 0; k < expanded; k++) {
        const size_t v = (size_t) t->stack[k];
        if (w->reference->child[v] < 0) sum_exactly(w, t, &b, v);
        else consider(w, t, &b, (size_t) w->reference->child[v]), consider(w, t, &b, (size_t) w->reference->child[v] + 1);
      }
    }
    finish(w, t, &b);
  }
}

/* ---- groups of leaves ---- */

/* The list of a group: nodes about as large as the group, smaller ones nowhere, larger ones where their kernel values
 * hardly differ. */
static void list_nodes(const walk *w, hands *t, size_t group) {
  const weft_tree *r = w->reference;
  const int kind = w->task->kind;
  const double fine = w->query->count[group] / 2;
  size_t top = 0;
  t->listed = 0;
  t->stack[top++] = 0;
  while (top) {
    const size_t v = (size_t) t->stack[--top];
    double least, greatest;
    box_range(w, group, v, &least, &greatest);
    if (weft_kernel_compact(kind) && least > 1 + 1e-9) continue;
    const double most = weft_kernel_of(kind, least, 0), fewest = weft_kernel_of(kind, greatest, 0);
    if (!weft_kernel_compact(kind) && negligible(w, v, most, t->least, t->dropped)) continue;
    if (r->child[v] < 0 || r->count[v] <= fine || most - fewest <= 0.5 * w->rel * fewest) {
      t->list[t->listed++] = (int32_t) v;
      continue;
    }
    t->stack[top++] = r->child[v] + 1;
    t->stack[top++] = r->child[v];
  }
}

/* The least tolerance of a leaf's queries joins that of the group. */
static void look_at_leaf(const walk *w, hands *t, size_t leaf) {
  const weft_kernel_task *task = w->task;
  weft_block_query b = weft_block_in(t->block, task->reference.d, task->m, task->reference.lo != NULL);
  const size_t first = (size_t) w->query->first[leaf], count = (size_t) w->query->count[leaf];
  t->nearest = find_nearest(w, leaf);
  for (size_t from = 0; from < count; from += WEFT_TILE) {
    weft_block_load(&b, &task->query, first + from, count - from < WEFT_TILE ? count - from : WEFT_TILE, task->m);
    sum_exactly(w, t, &b, t->nearest);
    least_tolerance(w, &b, t->least_here);
    for (size_t c = 0; c < task->m; c++) t->least[c] = fmin(t->least[c], t->least_here[c]);
  }
}

/* Calls work() for every leaf below `group` of the query tree. It is no deeper than 64 levels: each halves the leaves. */
static void for_leaves(const walk *w, hands *t, size_t group, void (*work)(const walk *, hands *, size_t)) {
  const weft_tree *q = w->query;
  size_t todo[65], top = 0;
  todo[top++] = group;
  while (top) {
    const size_t v = todo[--top];
    if (q->child[v] < 0) {
      work(w, t, v);
      continue;
    }
    todo[top++] = (size_t) q->child[v] + 1;
    todo[top++] = (size_t) q->child[v];
  }
}

static void sum_group(const walk *w, hands *t, size_t group) {
  for (size_t c = 0; c < w->task->m; c++) t->least[c] = INFINITY, t->dropped[c] = 0;
  if (!weft_kernel_compact(w->task->kind)) for_leaves(w, t, group, look_at_leaf);
  list_nodes(w, t, group);
  for_leaves(w, t, group, sum_leaf);
}

/* The uppermost nodes of the query tree with at most `most` points. */
static size_t find_groups(const weft_tree *q, double most, int32_t *groups) {
  size_t found = 0, todo[65], top = 0;
  todo[top++] = 0;
  while (top) {
    const size_t v = todo[--top];
    if (q->count[v] <= most || q->child[v] < 0) {
      groups[found++] = (int32_t) v;
      continue;
    }
    todo[top++] = (size_t) q->child[v] + 1;
    todo[top++] = (size_t) q->child[v];
  }
  return found;
}

static double greatest_coordinate(const weft_tree *t) {
  double most = 0;
  for (size_t j = 0; t->nodes && j < 2 * t->points.d; j++) most = fabs(t->box[j]) > most ? fabs(t->box[j]) : most;
  return most;
}

static weft_status take_hands(weft_arena *mem, const walk *w, hands *t) {
  weft_status st = WEFT_OK;
  const size_t size = w->task->m * WEFT_TILE, nodes = w->reference->nodes;
  const size_t stack = nodes > w->capacity ? nodes : w->capacity;
  WEFT_TAKE(t->block, mem, weft_block_size(w->task->reference.d, w->task->m));
  WEFT_TAKE(t->estimate, mem, w->capacity * size);
  WEFT_TAKE(t->error, mem, w->capacity * size);
  WEFT_TAKE(t->low, mem, w->capacity * size);
  WEFT_TAKE(t->tolerance, mem, size);
  WEFT_TAKE(t->kept, mem, size);
  WEFT_TAKE(t->settled, mem, 3 * size);
  WEFT_TAKE(t->least, mem, 4 * w->task->m);
  t->dropped = t->least + w->task->m, t->least_here = t->dropped + w->task->m, t->dropped_here = t->least_here + w->task->m;
  WEFT_TAKE(t->priority, mem, w->capacity);
  WEFT_TAKE(t->node, mem, w->capacity);
  WEFT_TAKE(t->order, mem, w->capacity);
  WEFT_TAKE(t->list, mem, nodes);
  WEFT_TAKE(t->stack, mem, stack);
  memset(&t->effort, 0, sizeof t->effort);
done:
  return st;
}

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static weft_status walk_groups(weft_ctx *ctx, const walk *w, hands *t, const int32_t *groups, size_t count) {
  weft_status st = WEFT_OK;
  size_t batch = (size_t) ctx->threads;
  for (size_t start = 0, end; start < count; start = end) {
    const double began = now();
    WEFT_TRY(weft_poll(ctx, (double) start, (double) count));
    end = count - start < batch ? count : start + batch;
    WEFT_PARALLEL(ctx->threads)
    WEFT_FOR(dynamic)
    for (size_t g = start; g < end; g++) sum_group(w, &t[WEFT_THREAD()], (size_t) groups[g]);
    const double took = now() - began;
    if (took < 0.03) batch *= 2;
    else if (took > 0.1 && batch > (size_t) ctx->threads) batch /= 2;
  }
done:
  return st;
}

weft_status weft_kernel_walk(weft_ctx *ctx, const weft_kernel_task *task, const weft_tree *query,
                             const weft_tree *reference, double *out, weft_kernel_effort *effort) {
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t m = task->m, n = task->reference.n, d = task->reference.d;
  double *column, most = greatest_coordinate(query), other = greatest_coordinate(reference);
  int32_t *groups;
  hands *t;
  walk w = {task, query, reference, NULL, NULL, weft_tile_variant(), weft_node_variant(), EXACT, SHARE * task->abs_error,
            0, FRONTIER_DOUBLES / (m * WEFT_TILE), out};
  if (task->rel_error > EXACT) w.rel = SHARE * task->rel_error;
  if (task->reference.lo) w.slack = 4e-16 * (most > other ? most : other);
  if (w.capacity < 16) w.capacity = 16;
  if (w.capacity > 4096) w.capacity = 4096;
  if (w.capacity > reference->nodes + 1) w.capacity = reference->nodes + 1;
  double group = GROUP_PAIRS / (double) (n + 1);
  group = group > GROUP ? GROUP : group < WEFT_TILE ? WEFT_TILE : group;
  const double *moments = reference->moments;
  if (!moments) {
    double *found;
    WEFT_TAKE(found, &mem, reference->nodes * m * (d + 2));
    WEFT_TRY(weft_kernel_moments(ctx, task, reference, found));
    moments = found;
  }
  WEFT_TAKE(column, &mem, m);
  WEFT_TAKE(groups, &mem, query->nodes);
  WEFT_TAKE(t, &mem, (size_t) ctx->threads);
  for (int k = 0; k < ctx->threads; k++) WEFT_TRY(take_hands(&mem, &w, &t[k]));
  for (size_t c = 0; c < m; c++) column[c] = moments[c * (d + 2)];
  w.moments = moments, w.column = column;
  WEFT_TRY(walk_groups(ctx, &w, t, groups, find_groups(query, group, groups)));
  for (int k = 0; k < ctx->threads; k++) {
    effort->pairs += t[k].effort.pairs;
    effort->nodes += t[k].effort.nodes;
    effort->repeated += t[k].effort.repeated;
  }
done:
  weft_arena_end(&mem);
  return st;
}
