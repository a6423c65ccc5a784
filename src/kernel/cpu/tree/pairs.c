/* The sum of a radial function over all pairs of two trees' points, for criteria that need only this number: a kernel
 * convolved with itself. The function is given by values, slopes and curvatures: cubic pieces of equal width in r.
 *
 * As a function of s = r² its mean over the pairs of two nodes is its value at the mean of s, which moments give
 * exactly, but for half of its second derivative times the variance of s, at most (greatest s - mean)(mean - least s).
 * A pair of nodes is approximated in this way when that is within the tolerance: rel_error times a lower bound of the
 * mean over all pairs. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "kernel/kernel.h"
#include "kernel/cpu/tree/pairs.h"
#include "kernel/cpu/tree/tree.h"

#define GROUP_POINTS 128
#define COARSE 256 /* nodes on either side for the lower bound */

typedef struct {
  const weft_radial *radial;
  const weft_tree *query, *reference;
  /* d + 1 per node: mean relative to the first point, mean square from it */
  const double *query_moments, *reference_moments;
  double inv_h2, allowed;
} pairs;

static double value_at(const weft_radial *radial, double s)
{
  const double at = sqrt(s) * radial->per_unit;
  if (!(at < (double) radial->pieces)) return 0;
  const size_t k = (size_t) at;
  const double t = at - (double) k, *c = radial->coefficients + 4 * k;
  return c[0] + t * (c[1] + t * (c[2] + t * c[3]));
}

/* moments: nodes * (d + 1), the mean relative to a node's first point and the mean square distance from it;
 * unweighted. */
static void node_moments(const weft_tree *tree, double *moments)
{
  const size_t d = tree->points.d;
  for (size_t node = tree->nodes; node-- > 0;) {
    double *own = moments + node * (d + 1);
    const size_t first = (size_t) tree->first[node], count = (size_t) tree->count[node];
    memset(own, 0, (d + 1) * sizeof *own);
    if (tree->child[node] < 0) {
      for (size_t i = first; i < first + count; i++)
        for (size_t j = 0; j < d; j++)
          own[j] += (tree->points.x[i * d + j] - tree->points.x[first * d + j]) / (double) count;
      for (size_t i = first; i < first + count; i++)
        for (size_t j = 0; j < d; j++) {
          const double gap = tree->points.x[i * d + j] - tree->points.x[first * d + j] - own[j];
          own[d] += gap * gap / (double) count;
        }
      continue;
    }
    const size_t k = (size_t) tree->child[node], right = (size_t) tree->first[k + 1];
    const double *a = moments + k * (d + 1), *b = a + d + 1, share = tree->count[k + 1] / tree->count[node];
    double square = 0;
    for (size_t j = 0; j < d; j++) {
      const double gap = tree->points.x[right * d + j] - tree->points.x[first * d + j] + b[j] - a[j];
      own[j] = a[j] + share * gap;
      square += gap * gap;
    }
    own[d] = (1 - share) * a[d] + share * b[d] + share * (1 - share) * square;
  }
}

/* Least, mean and greatest s over the pairs of two nodes. */
static void range(const pairs *p, size_t query, size_t reference, double *least, double *mean, double *greatest)
{
  const size_t d = p->query->points.d, first_q = (size_t) p->query->first[query],
               first_r = (size_t) p->reference->first[reference];
  const double *a = p->query->box + query * 2 * d, *b = p->reference->box + reference * 2 * d;
  const double *u = p->query_moments + query * (d + 1), *v = p->reference_moments + reference * (d + 1);
  *least = *greatest = 0, *mean = u[d] + v[d];
  for (size_t j = 0; j < d; j++) {
    const double right = b[j] - a[d + j], left = a[j] - b[d + j], gap = fmax(fmax(right, left), 0),
                 reach = fmax(b[d + j] - a[j], a[d + j] - b[j]);
    const double middle = p->query->points.x[first_q * d + j] - p->reference->points.x[first_r * d + j] + u[j] - v[j];
    *least += gap * gap, *greatest += reach * reach, *mean += middle * middle;
  }
  *least *= p->inv_h2, *greatest *= p->inv_h2, *mean *= p->inv_h2;
  *mean = fmin(fmax(*mean, *least), *greatest);
}

/* The sum over all pairs of a point of leaf q of the query tree with one of leaf r of the reference tree. */
static double sum_leaves(const pairs *p, size_t query, size_t reference)
{
  const size_t d = p->query->points.d, first = (size_t) p->reference->first[reference],
               count = (size_t) p->reference->count[reference];
  double total = 0, s[64];
  for (size_t i = (size_t) p->query->first[query]; i < (size_t) (p->query->first[query] + p->query->count[query]);
       i++) {
    const double *a = p->query->points.x + i * d;
    double sum = 0;
    for (size_t from = 0; from < count; from += 64) {
      const size_t some = count - from < 64 ? count - from : 64;
      const double *b = p->reference->points.x + (first + from) * d;
      for (size_t k = 0; k < some; k++) {
        s[k] = 0;
        for (size_t j = 0; j < d; j++) s[k] += (a[j] - b[k * d + j]) * (a[j] - b[k * d + j]);
      }
      for (size_t k = 0; k < some; k++) sum += value_at(p->radial, s[k] * p->inv_h2);
    }
    total += sum;
  }
  return total;
}

/* Half the second derivative by s from `least` on, at most. */
static double bend(const weft_radial *radial, double least)
{
  const size_t k = (size_t) fmin(sqrt(least) * radial->per_unit, (double) radial->pieces);
  return radial->bend[k];
}

/* The sum over all pairs of a point below node `group` of the query tree with one of the reference tree. Two nodes
 * count as a whole where one of two bounds on the error is within p->allowed; otherwise the larger is split. stack: 4 *
 * 65. */
static double sum_group(const pairs *p, size_t group, int32_t *stack)
{
  const weft_tree *a = p->query, *b = p->reference;
  double total = 0;
  size_t top = 0;
  stack[top++] = (int32_t) group, stack[top++] = 0;
  while (top) {
    const size_t reference = (size_t) stack[--top], q = (size_t) stack[--top];
    double least, mean, greatest;
    range(p, q, reference, &least, &mean, &greatest);
    if (sqrt(least) * p->radial->per_unit >= (double) p->radial->pieces) continue;
    const double count = a->count[q] * b->count[reference];
    const double first_order = 0.5 * (value_at(p->radial, least) - value_at(p->radial, greatest));
    const double error = bend(p->radial, least) * (greatest - mean) * (mean - least);
    if (error <= p->allowed)
      total += count * value_at(p->radial, mean);
    else if (first_order <= p->allowed)
      total += count * (value_at(p->radial, greatest) + first_order);
    else if (a->child[q] < 0 && b->child[reference] < 0)
      total += sum_leaves(p, q, reference);
    else {
      const int split_query = b->child[reference] < 0 || (a->child[q] >= 0 && a->count[q] > b->count[reference]);
      for (int k = 0; k < 2; k++) {
        stack[top++] = split_query ? a->child[q] + k : (int32_t) q;
        stack[top++] = split_query ? (int32_t) reference : b->child[reference] + k;
      }
    }
  }
  return total;
}

/* A coarse pass over uppermost nodes gives a lower bound of the sum, from which the error that each pair of points may
 * have follows. Threads then share groups of queries, whose sums are added in their order. */
weft_status weft_kernel_pairs(weft_ctx *ctx, const weft_radial *radial, double h, double rel_error,
                              const weft_tree *query, const weft_tree *reference, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t d = query->points.d, depth = 4 * 65;
  double *moments, *totals, low = 0;
  int32_t *groups, *others, *stack;
  WEFT_TAKE(moments, &mem, (query->nodes + reference->nodes) * (d + 1));
  WEFT_TAKE(groups, &mem, query->nodes);
  WEFT_TAKE(others, &mem, reference->nodes);
  WEFT_TAKE(stack, &mem, depth * (size_t) ctx->threads);
  WEFT_TAKE(totals, &mem, query->nodes);
  WEFT_TRY(weft_poll(ctx, 0, 1));
  node_moments(query, moments);
  node_moments(reference, moments + query->nodes * (d + 1));
  pairs p = { radial, query, reference, moments, moments + query->nodes * (d + 1), 1 / (h * h), 0 };
  const size_t coarse = weft_tree_top(query, 0, (double) query->points.n / COARSE, groups);
  const size_t coarse_others = weft_tree_top(reference, 0, (double) reference->points.n / COARSE, others);
  for (size_t i = 0; i < coarse; i++)
    for (size_t k = 0; k < coarse_others; k++) {
      double least, mean, greatest;
      range(&p, (size_t) groups[i], (size_t) others[k], &least, &mean, &greatest);
      low += query->count[groups[i]] * reference->count[others[k]] * value_at(radial, greatest);
    }
  p.allowed =
      rel_error * fmax(low / ((double) query->points.n * (double) reference->points.n),
                       query->first == reference->first ? radial->coefficients[0] / (double) reference->points.n : 0);
  const size_t count = weft_tree_top(query, 0, GROUP_POINTS, groups), batch = 4 * (size_t) ctx->threads;
  for (size_t start = 0; start < count; start += batch) {
    const size_t end = count - start < batch ? count : start + batch;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) count));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, (double) query->points.n * (double) reference->points.n * 2))
    WEFT_FOR(dynamic)
    for (size_t i = start; i < end; i++)
      totals[i] = sum_group(&p, (size_t) groups[i], stack + (size_t) WEFT_THREAD() * depth);
  }
  *out = 0;
  for (size_t i = 0; i < count; i++) *out += totals[i];
done:
  weft_arena_end(&mem);
  return st;
}
