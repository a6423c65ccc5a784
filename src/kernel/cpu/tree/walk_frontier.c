/* The frontier of 32 queries, the nodes that their sums are still bounded by: in the order of their errors, as many as
 * may keep their bounds, and the others separated from them. */
#include "kernel/cpu/tree/walk.h"
#include "kernel/cpu/tree/walk_frontier.h"
#include "kernel/cpu/tree/walk_state.h"

#define BUCKETS 128 /* of errors, by powers of two */

static int bucket_of(double priority, double greatest)
{
  int k = 0;
  frexp(priority / greatest, &k);
  k = BUCKETS - 1 + (k > 0 ? 0 : k);
  return k < 0 ? 0 : k;
}

void weft_walk_order(weft_hands *hands)
{
  size_t start[BUCKETS + 1] = { 0 };
  double greatest = 1e-300;
  for (size_t entry = 0; entry < hands->count; entry++)
    greatest = hands->priority[entry] > greatest ? hands->priority[entry] : greatest;
  for (size_t entry = 0; entry < hands->count; entry++) start[bucket_of(hands->priority[entry], greatest) + 1]++;
  for (int k = 0; k < BUCKETS; k++) start[k + 1] += start[k];
  for (size_t entry = 0; entry < hands->count; entry++)
    hands->order[start[bucket_of(hands->priority[entry], greatest)]++] = (int32_t) entry;
}

/* Lower bounds of all parts give each query's tolerance; errors are then added up, least first, until one goes over. */
size_t weft_walk_count_kept(const weft_walk *w, weft_hands *hands, const weft_block_query *block, double share)
{
  const size_t size = w->task->m * WEFT_TILE;
  memcpy(hands->kept, block->total, size * sizeof *hands->kept);
  for (size_t i = 0; i < size; i++) hands->kept[i] += block->rest[i] + hands->settled[2 * size + i];
  for (size_t entry = 0; entry < hands->count; entry++)
    for (size_t i = 0; i < size; i++) hands->kept[i] += hands->low[entry * size + i];
  for (size_t i = 0; i < size; i++) {
    hands->tolerance[i] = w->rel * fmax(hands->kept[i], hands->floor[i]) + w->abs;
    hands->kept[i] = hands->settled[size + i] + hands->dropped_here[i / WEFT_TILE];
  }
  for (size_t entry = 0; entry < hands->count; entry++) {
    const double *error = hands->error + (size_t) hands->order[entry] * size;
    int over = 0;
    for (size_t i = 0; i < size; i++) {
      hands->kept[i] += error[i];
      over |= hands->kept[i] > share * hands->tolerance[i];
    }
    if (over) {
      for (size_t i = 0; i < size; i++) hands->kept[i] -= error[i];
      return entry;
    }
  }
  return hands->count;
}

/* The rest are listed for their children to be considered; what is kept closes up, in its old order. */
size_t weft_walk_part(const weft_walk *w, weft_hands *hands, size_t kept)
{
  const size_t size = w->task->m * WEFT_TILE;
  size_t expanded = hands->count - kept, hole = 0;
  for (size_t entry = kept; entry < hands->count; entry++) {
    hands->stack[entry - kept] = hands->node[hands->order[entry]];
    hands->node[hands->order[entry]] = -1;
  }
  for (size_t entry = 0; entry < hands->count; entry++) {
    if (hands->node[entry] < 0) continue;
    if (entry != hole) {
      hands->node[hole] = hands->node[entry], hands->priority[hole] = hands->priority[entry];
      memcpy(hands->estimate + hole * size, hands->estimate + entry * size, size * sizeof(double));
      memcpy(hands->error + hole * size, hands->error + entry * size, size * sizeof(double));
      memcpy(hands->low + hole * size, hands->low + entry * size, size * sizeof(double));
    }
    hole++;
  }
  hands->count = hole;
  return expanded;
}
