/* The positions of the walk's nodes relative to each other and to its queries, for the lists of groups, their series
 * and the tiles. */
#include "kernel/cpu/tree/walk.h"
#include "kernel/cpu/tree/walk_nodes.h"
#include "kernel/cpu/tree/walk_state.h"

#define NEGLIGIBLE 0.05 /* of the tolerance, for all nodes together that are left out for their smallness */

void weft_walk_range(const weft_walk *w, size_t q, size_t r, double *least, double *greatest)
{
  const size_t d = w->task->reference.d;
  const double *a = w->query->box + q * 2 * d, *b = w->reference->box + r * 2 * d,
               scale = 1 / (w->task->h * w->task->h);
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

int weft_walk_negligible(const weft_walk *w, size_t node, double most, const double *least, double *dropped)
{
  const size_t m = w->task->m, d = w->task->reference.d;
  const double *moments = w->moments + node * m * (d + 2);
  for (size_t c = 0; c < m; c++)
    if (w->column[c] * most > NEGLIGIBLE * least[c]) return 0;
  for (size_t c = 0; c < m; c++) dropped[c] += moments[c * (d + 2)] * most;
  return 1;
}

int weft_walk_holds_own(const weft_walk *w, size_t first_query, size_t count, size_t node)
{
  const double first = w->reference->first[node], last = first + w->reference->count[node];
  if (!w->task->leave_one_out || !w->task->own) return 0;
  for (size_t i = first_query; i < first_query + count; i++)
    if (w->task->own[i] >= first && w->task->own[i] < last) return 1;
  return 0;
}

int weft_walk_holds_nearest(const weft_walk *w, const weft_hands *hands, size_t node)
{
  const double first = w->reference->first[node], last = first + w->reference->count[node];
  if (weft_walk_holds_own(w, (size_t) w->query->first[hands->group], (size_t) w->query->count[hands->group], node))
    return 1;
  for (size_t k = 0; k < hands->near_leaves; k++)
    if (hands->near_first[k] >= first && hands->near_first[k] < last) return 1;
  return 0;
}

size_t weft_walk_nearest(const weft_walk *w, size_t leaf)
{
  const weft_tree *reference = w->reference;
  if (w->query->first == reference->first) return leaf;
  size_t node = 0;
  while (reference->child[node] >= 0) {
    double left, right, other;
    node = (size_t) reference->child[node];
    weft_walk_range(w, leaf, node, &left, &other);
    weft_walk_range(w, leaf, node + 1, &right, &other);
    node += right < left;
  }
  return node;
}
