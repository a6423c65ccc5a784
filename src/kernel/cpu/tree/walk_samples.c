/* Samples for what is left of a frontier: batches of one reference drawn from every node, weighing what the node does,
 * are independent estimates of the frontier's sum for each of 32 queries. Nodes of little error keep their bounds. The
 * mean of the batches is taken once the interval of Student's t about it is within what the tolerance leaves, for every
 * query and column.
 *
 * Looks are taken at 32, 64, ... batches, with the probability of a failure shared among the looks of a tile.
 * References are drawn in proportion to their weights. Rare events that no batch has shown are accounted for, too: the
 * bounds of the nodes give the range R of a batch, and as many batches are taken as bring 3 R / batches, which such
 * events may add to the mean (the rule of three), down to a quarter of what the tolerance leaves. Draws are functions
 * of (key, query, batch, node), so threads do not change them. */
#include "core/numbers/draws.h"
#include "kernel/cpu/tree/walk.h"
#include "kernel/cpu/direct/tile_portable.h"
#include "kernel/cpu/tree/walk_frontier.h"
#include "kernel/cpu/tree/walk_samples.h"
#include "kernel/cpu/tree/walk_state.h"

#define STREAM_SAMPLES 0x6b740003u
#define FIRST_LOOK 32
#define LOOKS 8
#define ATTEMPTS 3  /* of a tile */
#define CERTAIN 0.5 /* of the tolerance, for nodes that are kept with their bounds */
#define RARE 12.0   /* batches for each time that the range of one is what the tolerance leaves */
#define WORTH 4.0   /* pairs that samples must save, for each that they take */

/* The upper q quantile of Student's t: Hill's expansion of the normal one (Algorithm 396, 1970), good to 1e-3 from 30
 * degrees on, after Acklam's tail for the normal; 2% are added. */
static double quantile(double q, double degrees)
{
  const double r = sqrt(-2 * log(q)), z = r - (2.515517 + r * (0.802853 + r * 0.010328)) /
                                                  (1 + r * (1.432788 + r * (0.189269 + r * 0.001308)));
  const double z3 = z * z * z, z5 = z3 * z * z;
  return 1.02 * (z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees));
}

/* A reference of the node with a probability in proportion to its weight in column c, by bisection of the running
 * sums. */
static size_t draw(const weft_walk *w, size_t node, size_t c, uint64_t index)
{
  const weft_rng rng = { w->task->key, STREAM_SAMPLES + ((uint32_t) c << 8) };
  const weft_u32x4 word = weft_draw_words(rng, index, (uint32_t) node);
  const double *running = w->running + c * (w->task->reference.n + 1);
  size_t low = (size_t) w->reference->first[node], high = low + (size_t) w->reference->count[node];
  const double goal = running[low] + weft_u01(word.v[0], word.v[1]) * (running[high] - running[low]);
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (running[middle] <= goal)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* False where the running sums have too few digits for a node's weights. */
static int drawable(const weft_walk *w, size_t node)
{
  const size_t n = w->task->reference.n, first = (size_t) w->reference->first[node],
               last = first + (size_t) w->reference->count[node];
  for (size_t c = 0; c < w->task->m; c++) {
    const double *running = w->running + c * (n + 1), weight = running[last] - running[first];
    if (w->moments[(node * w->task->m + c) * (w->task->reference.d + 2)] > 0 && !(weight > 1e-8 * running[last]))
      return 0;
  }
  return 1;
}

/* For each column a reference of every sampled node, with the node's weight; adds their sums to `total`. */
static void add_batch(const weft_walk *w, weft_hands *hands, const weft_block_query *block, size_t kept, uint32_t batch,
                      double *total)
{
  const weft_kernel_task *task = w->task;
  const size_t d = task->reference.d, m = task->m, count = hands->count - kept;
  double *x = hands->drawn, *lo = x + count * d, *weights = lo + count * d;
  memset(total, 0, m * WEFT_TILE * sizeof *total);
  for (size_t c = 0; c < m; c++) {
    for (size_t entry = 0; entry < count; entry++) {
      const size_t node = (size_t) hands->node[hands->order[kept + entry]],
                   i = draw(w, node, c, ((uint64_t) block->first << 24) ^ batch);
      memcpy(x + entry * d, task->reference.x + i * d, d * sizeof *x);
      if (task->reference.lo) memcpy(lo + entry * d, task->reference.lo + i * d, d * sizeof *lo);
      weights[entry] = w->moments[(node * m + c) * (d + 2)];
    }
    const weft_tile a = { block->q,
                          block->q_lo,
                          x,
                          task->reference.lo ? lo : NULL,
                          weights,
                          block->shift,
                          d,
                          1,
                          count,
                          1 / (task->h * task->h),
                          weft_distance_error(d),
                          total + c * WEFT_TILE,
                          block->inside };
    w->tile(&a, task->kind);
  }
  hands->effort.samples += (double) count * (double) block->count;
}

/* How many batches the range of one needs. */
static double batches_for_range(const weft_walk *w, const weft_hands *hands, size_t kept)
{
  const size_t size = w->task->m * WEFT_TILE;
  double most = FIRST_LOOK;
  for (size_t i = 0; i < size; i++) {
    const double left = hands->tolerance[i] - hands->certain[i];
    double range = 0;
    for (size_t entry = kept; entry < hands->count; entry++)
      range += 2 * hands->error[(size_t) hands->order[entry] * size + i];
    if (range > 0) most = fmax(most, left > 0 ? RARE * range / left : INFINITY);
  }
  return most;
}

/* How many batches the intervals of all queries and columns need, judged by those done. */
static double batches_needed(const weft_walk *w, const weft_hands *hands, double done)
{
  const size_t size = w->task->m * WEFT_TILE;
  const double *sum = hands->batches, *square = hands->batches + size,
               z = quantile((1 - w->task->confidence) / (2 * LOOKS * ATTEMPTS), done - 1);
  double most = 0;
  for (size_t i = 0; i < size; i++) {
    const double mean = sum[i] / done, spread = z * sqrt(fmax(square[i] / done - mean * mean, 0) / (done - 1));
    const double left = hands->tolerance[i] - hands->certain[i];
    if (spread > 0)
      most = fmax(most,
                  left > 0 ? done * (spread / left) * (spread / left) / 0.5625 : INFINITY); /* three quarters of it */
  }
  return most;
}

/* Batches of drawn points estimate the part of the frontier whose bounds are too wide, until a confidence interval fits
 * the tolerance. Gives up where batches would cost more than the pairs, or a node cannot be drawn from. */
int weft_walk_sample(const weft_walk *w, weft_hands *hands, const weft_block_query *block)
{
  const size_t m = w->task->m, size = m * WEFT_TILE, kept = weft_walk_count_kept(w, hands, block, CERTAIN);
  double pairs = 0, *total = hands->kept; /* count_kept() fills it anew */
  uint32_t done = 0;
  if (weft_kernel_compact(w->task->kind) || hands->attempts == ATTEMPTS) return 0;
  for (size_t entry = kept; entry < hands->count; entry++) {
    const size_t slot = (size_t) hands->order[entry];
    pairs += w->reference->count[hands->node[slot]];
    if (!drawable(w, (size_t) hands->node[slot])) return 0;
  }
  memcpy(hands->certain, hands->kept, size * sizeof *hands->kept);
  const double least = batches_for_range(w, hands, kept);
  if (!(WORTH * least * (double) (hands->count - kept) <= pairs)) return 0;
  hands->attempts++;
  memset(hands->batches, 0, 2 * size * sizeof *hands->batches);
  for (int look = 0; look < LOOKS; look++) {
    const uint32_t goal = (uint32_t) FIRST_LOOK << look;
    for (; done < goal; done++) {
      add_batch(w, hands, block, kept, done + hands->attempts * 65536u, total);
      for (size_t i = 0; i < size; i++) hands->batches[i] += total[i], hands->batches[size + i] += total[i] * total[i];
    }
    const double needed = fmax(least, batches_needed(w, hands, done));
    if (needed <= done) {
      for (size_t i = 0; i < size; i++) hands->settled[i] += hands->batches[i] / done;
      weft_walk_part(w, hands, kept);
      return 1;
    }
    if (WORTH * needed * (double) (hands->count - kept) > pairs) return 0;
  }
  return 0;
}
