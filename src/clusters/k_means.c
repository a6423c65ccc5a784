/* k-means: random starts far from each other, and Lloyd's iteration. */
#include <string.h>
#include "core/call/parallel.h"
#include "clusters/internal.h"

/* The first centre is a point at random; each further one a point chosen with a probability that is proportional to its
 * squared distance from the nearest centre so far. Points that all coincide with centres give more of the same. */
void weft_clusters_start(const weft_points *points, size_t k, weft_rng rng, uint64_t first, weft_clusters_space *space)
{
  const size_t n = points->n, d = points->d;
  size_t chosen = (size_t) weft_draw_below(rng, first, n);
  for (size_t i = 0; i < n; i++) space->distance[i] = WEFT_INFINITY;
  for (size_t group = 0; group < k; group++) {
    double *centre = space->centres + group * d, total = 0;
    memcpy(centre, points->x + chosen * d, d * sizeof *centre);
    for (size_t i = 0; i < n; i++) {
      double square;
      (void) weft_clusters_nearest(points->x + i * d, centre, 1, d, &square);
      if (square < space->distance[i]) space->distance[i] = square;
      total += space->distance[i];
    }
    const double target = weft_draw_uniform(rng, first + 1 + group) * total;
    double reached = 0;
    for (chosen = 0; chosen + 1 < n; chosen++) {
      reached += space->distance[chosen];
      if (target < reached) break;
    }
  }
}

/* One round: labels of all points, and the means of those with the same one. Returns how many labels changed. */
static size_t round_of(const weft_points *points, size_t k, weft_clusters_space *space)
{
  const size_t d = points->d;
  size_t changed = 0;
  memset(space->moved, 0, k * d * sizeof *space->moved);
  memset(space->sizes, 0, k * sizeof *space->sizes);
  for (size_t i = 0; i < points->n; i++) {
    const double *x = points->x + i * d;
    double square;
    const int group = (int) weft_clusters_nearest(x, space->centres, k, d, &square);
    changed += space->labels[i] != group;
    space->labels[i] = group;
    space->sizes[group]++;
    for (size_t j = 0; j < d; j++) space->moved[(size_t) group * d + j] += x[j];
  }
  for (size_t group = 0; group < k; group++)
    for (size_t j = 0; j < d && space->sizes[group]; j++)
      space->centres[group * d + j] = space->moved[group * d + j] / space->sizes[group];
  return changed;
}

void weft_clusters_iterate(const weft_points *points, size_t k, int rounds, weft_clusters_space *space)
{
  for (size_t i = 0; i < points->n; i++) space->labels[i] = -1;
  for (int round = 0; round < rounds; round++)
    if (!round_of(points, k, space)) break;
}

/* Takes rounds of k-means until no point changes its group, at most ROUNDS. */
weft_status weft_clusters_settle(weft_ctx *ctx, const weft_points *points, size_t k, double *centres, int *labels)
{
  enum { ROUNDS = 100 };
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_clusters_space space = { .centres = centres, .labels = labels };
  WEFT_TAKE(space.moved, &mem, k * points->d);
  WEFT_TAKE(space.sizes, &mem, k);
  for (size_t i = 0; i < points->n; i++) labels[i] = -1;
  for (int round = 0; round < ROUNDS; round++) {
    WEFT_TRY(weft_poll(ctx, round, ROUNDS));
    if (!round_of(points, k, &space)) break;
  }
done:
  weft_arena_end(&mem);
  return st;
}
