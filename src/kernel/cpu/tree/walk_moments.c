/* What bounds a node's sum for any query, column by column: total weight, mean relative to the node's first point, mean
 * square distance from it. Leaves first, then joined upwards. */
#include <string.h>
#include "core/call/parallel.h"
#include "kernel/cpu/tree/walk.h"
#include "kernel/cpu/tree/walk_moments.h"

/* Moments of each column over the points of a leaf: weight, mean square distance from the mean, mean relative to the
 * first point. */
static void leaf_moments(const weft_kernel_task *task, size_t first, size_t count, double *to)
{
  const weft_points *p = &task->reference;
  const size_t d = p->d, m = task->m;
  for (size_t c = 0; c < m; c++) {
    double *moments = to + c * (d + 2), weight = 0;
    memset(moments, 0, (d + 2) * sizeof *moments);
    for (size_t i = first; i < first + count; i++) weight += task->weights[i * m + c];
    moments[0] = weight;
    if (!(weight > 0)) continue;
    for (int pass = 0; pass < 2; pass++) /* the mean, then the square distance from it */
      for (size_t i = first; i < first + count; i++) {
        const double share = task->weights[i * m + c] / weight;
        double square = 0;
        for (size_t j = 0; j < d; j++) {
          double gap = p->x[i * d + j] - p->x[first * d + j];
          if (p->lo) gap += p->lo[i * d + j] - p->lo[first * d + j];
          if (pass)
            square += (gap - moments[2 + j]) * (gap - moments[2 + j]);
          else
            moments[2 + j] += share * gap;
        }
        if (pass) moments[1] += share * square;
      }
  }
}

/* Moments of a node from those of its two children, which are relative to the children's first points. */
static void join_moments(const weft_kernel_task *task, size_t left_first, size_t right_first, const double *left,
                         const double *right, double *to)
{
  const weft_points *p = &task->reference;
  const size_t d = p->d;
  for (size_t c = 0; c < task->m; c++) {
    const double *a = left + c * (d + 2), *b = right + c * (d + 2);
    double *moments = to + c * (d + 2), weight = a[0] + b[0], square = 0;
    memset(moments, 0, (d + 2) * sizeof *moments);
    moments[0] = weight;
    if (!(weight > 0)) continue;
    const double share = b[0] / weight;
    for (size_t j = 0; j < d; j++) {
      double gap = p->x[right_first * d + j] - p->x[left_first * d + j];
      if (p->lo) gap += p->lo[right_first * d + j] - p->lo[left_first * d + j];
      gap += b[2 + j] - a[2 + j];
      square += gap * gap;
      moments[2 + j] = a[2 + j] + share * gap;
    }
    moments[1] = (1 - share) * a[1] + share * b[1] + share * (1 - share) * square;
  }
}

/* Threads share the leaves; inner nodes follow from the last to the first, children before their parents. */
weft_status weft_kernel_moments(weft_ctx *ctx, const weft_kernel_task *task, const weft_tree *tree, double *moments)
{
  weft_status st = WEFT_OK;
  const size_t size = task->m * (task->reference.d + 2), at_once = 16384;
  for (size_t start = 0; start < tree->nodes; start += at_once) {
    const size_t end = tree->nodes - start < at_once ? tree->nodes : start + at_once;
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) task->reference.n * (double) size * 2), static)
    for (size_t node = start; node < end; node++)
      if (tree->child[node] < 0)
        leaf_moments(task, (size_t) tree->first[node], (size_t) tree->count[node], moments + node * size);
  }
  for (size_t node = tree->nodes; node-- > 0;) {
    const size_t k = (size_t) tree->child[node];
    if (node % 65536 == 0) WEFT_TRY(weft_poll(ctx, 0, 1));
    if (tree->child[node] >= 0)
      join_moments(task, (size_t) tree->first[k], (size_t) tree->first[k + 1], moments + k * size,
                   moments + (k + 1) * size, moments + node * size);
  }
done:
  return st;
}
