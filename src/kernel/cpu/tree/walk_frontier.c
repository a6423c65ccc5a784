/* The frontier of 32 queries, the nodes that their sums are still bounded by: in the order of their errors, as many as
 * may keep their bounds, and the others separated from them. */
#include "kernel/cpu/tree/walk.h"

#define BUCKETS 128 /* of errors, by powers of two */

static int bucket_of(double priority, double greatest)
{
  int k = 0;
  frexp(priority / greatest, &k);
  k = BUCKETS - 1 + (k > 0 ? 0 : k);
  return k < 0 ? 0 : k;
}

void weft_walk_order(weft_hands *t)
{
  size_t start[BUCKETS + 1] = { 0 };
  double greatest = 1e-300;
  for (size_t f = 0; f < t->count; f++) greatest = t->priority[f] > greatest ? t->priority[f] : greatest;
  for (size_t f = 0; f < t->count; f++) start[bucket_of(t->priority[f], greatest) + 1]++;
  for (int k = 0; k < BUCKETS; k++) start[k + 1] += start[k];
  for (size_t f = 0; f < t->count; f++) t->order[start[bucket_of(t->priority[f], greatest)]++] = (int32_t) f;
}

/* Lower bounds of all parts give each query's tolerance; errors are then added up, least first, until one goes over. */
size_t weft_walk_count_kept(const weft_walk *w, weft_hands *t, const weft_block_query *b, double share)
{
  const size_t size = w->task->m * WEFT_TILE;
  memcpy(t->kept, b->total, size * sizeof *t->kept);
  for (size_t i = 0; i < size; i++) t->kept[i] += b->rest[i] + t->settled[2 * size + i];
  for (size_t f = 0; f < t->count; f++)
    for (size_t i = 0; i < size; i++) t->kept[i] += t->low[f * size + i];
  for (size_t i = 0; i < size; i++) {
    t->tolerance[i] = w->rel * fmax(t->kept[i], t->floor[i]) + w->abs;
    t->kept[i] = t->settled[size + i] + t->dropped_here[i / WEFT_TILE];
  }
  for (size_t f = 0; f < t->count; f++) {
    const double *error = t->error + (size_t) t->order[f] * size;
    int over = 0;
    for (size_t i = 0; i < size; i++) {
      t->kept[i] += error[i];
      over |= t->kept[i] > share * t->tolerance[i];
    }
    if (over) {
      for (size_t i = 0; i < size; i++) t->kept[i] -= error[i];
      return f;
    }
  }
  return t->count;
}

/* The rest are listed for their children to be considered; what is kept closes up, in its old order. */
size_t weft_walk_part(const weft_walk *w, weft_hands *t, size_t kept)
{
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
