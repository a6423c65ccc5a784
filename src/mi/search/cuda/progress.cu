/* Collecting what kernels find, and choosing how much work comes next; see progress.cuh. */
#include <cmath>
#include <cstring>
#include "mi/search/cuda/progress.cuh"

#define FIRST_PAIRS 1e5    /* pairs before there is a threshold */
#define FIRST_BEHIND 3.2e6 /* with a threshold from single attributes: a tile for most multiprocessors */
#define GROWTH 8           /* then so many times more */

/* Fetches the hits of what ran, as many as there is room for; *count: how many there were. */
static weft_status fetch(weft_ctx *ctx, mi_collector *collector, unsigned long long *count, size_t *brought)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaMemcpyAsync(count, collector->hits.count, sizeof *count, cudaMemcpyDeviceToHost, collector->stream));
  WEFT_CUDA(cudaStreamSynchronize(collector->stream));
  *brought = *count > collector->hits.capacity ? collector->hits.capacity : (size_t) *count;
  if (*brought) {
    WEFT_CUDA(cudaMemcpyAsync(collector->buffer, collector->hits.items, *brought * sizeof *collector->buffer,
                              cudaMemcpyDeviceToHost, collector->stream));
    WEFT_CUDA(cudaStreamSynchronize(collector->stream));
  }
done:
  return st;
}

/* The threshold rises to the k-th best of what was fetched; these will come again, so the k-th itself still passes. */
static void raise_threshold(mi_collector *collector, size_t brought)
{
  weft_scored now;
  if (!collector->keeper.bounded || collector->keeper.best.k > brought || !collector->keeper.best.k) return;
  weft_scored_select(collector->buffer, brought, collector->keeper.best.k);
  const weft_scored kth = collector->buffer[collector->keeper.best.k - 1];
  now.score = collector->threshold.score;
  now.index = collector->threshold.index;
  if (!weft_scored_before(kth, now)) return;
  collector->threshold.score = kth.score;
  collector->threshold.index = kth.index + 1;
}

weft_status weft_mi_raise_threshold(weft_ctx *ctx, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  unsigned long long count;
  size_t brought;
  WEFT_TRY(fetch(ctx, collector, &count, &brought));
  raise_threshold(collector, brought);
done:
  return st;
}

/* Collects the hits of what ran; *overflow when there were more than fit, and then only a higher threshold is kept. */
static weft_status collect(weft_ctx *ctx, mi_collector *collector, int *overflow)
{
  weft_status st = WEFT_OK;
  unsigned long long count;
  size_t brought;
  WEFT_TRY(fetch(ctx, collector, &count, &brought));
  *overflow = count > collector->hits.capacity;
  if (*overflow) {
    raise_threshold(collector, brought);
    goto done;
  }
  for (size_t k = 0; k < brought; k++)
    weft_mi_keep(&collector->keeper, collector->buffer[k].score, collector->buffer[k].index);
  if (collector->keeper.st != WEFT_OK) {
    memcpy(ctx->message, collector->keeper.ctx.message, sizeof ctx->message);
    st = collector->keeper.st;
    goto done;
  }
  if (collector->keeper.bounded && collector->keeper.best.count >= collector->keeper.best.k) {
    weft_topk_shrink(&collector->keeper.best);
    weft_scored now;
    now.score = collector->threshold.score;
    now.index = collector->threshold.index;
    const weft_scored kth = collector->keeper.best.threshold;
    if (kth.index != UINT64_MAX && weft_scored_before(kth, now)) {
      collector->threshold.score = kth.score;
      collector->threshold.index = kth.index;
    }
  }
done:
  return st;
}

/* The most units from `first` on, at least one, with no more than `pairs` pairs. */
static uint64_t units_of(const mi_runner *runner, uint64_t first, double pairs)
{
  uint64_t lo = 1, hi = runner->units - first;
  const double before = runner->until(runner->job, first);
  while (lo < hi) {
    const uint64_t mid = lo + (hi - lo + 1) / 2;
    if (runner->until(runner->job, first + mid) - before <= pairs)
      lo = mid;
    else
      hi = mid - 1;
  }
  return lo;
}

/* Polls, runs as many units as the threshold suggests, and collects what they found. When the buffer of hits overflows,
 * only a higher threshold is kept and half of the units run again. */
weft_status weft_mi_run_all(weft_ctx *ctx, mi_collector *collector, const mi_runner *runner)
{
  weft_status st = WEFT_OK;
  const int full = collector->keeper.bounded && collector->keeper.best.count >= collector->keeper.best.k;
  uint64_t first = 0, halved = 0;
  while (first < runner->units) {
    const double seen = runner->until(runner->job, first),
                 start = collector->started && !runner->patient ? FIRST_BEHIND : FIRST_PAIRS;
    const double pairs = full || !collector->keeper.bounded ? runner->max_pairs : fmax(start, GROWTH * seen);
    uint64_t now = halved ? halved : units_of(runner, first, fmin(pairs, runner->max_pairs));
    int overflow = 0;
    WEFT_TRY(weft_poll(ctx, collector->before + collector->share * (double) first / (double) runner->units, 1));
    WEFT_CUDA(cudaMemsetAsync(collector->hits.count, 0, sizeof *collector->hits.count, collector->stream));
    WEFT_TRY(runner->run(ctx, runner->job, collector, first, now));
    WEFT_TRY(collect(ctx, collector, &overflow));
    if (!overflow) {
      first += now;
      halved = 0;
    } else
      halved = (now + 1) / 2;
  }
done:
  return st;
}

weft_status weft_mi_send_near(weft_device_arena *mem, const weft_mi_near *near, size_t columns, weft_mi_near *out)
{
  weft_status st = WEFT_OK;
  uint32_t *chromosome;
  double *position;
  if (!near->chromosome) goto done;
  WEFT_TRY(weft_device_send(mem, near->chromosome, columns, &chromosome));
  WEFT_TRY(weft_device_send(mem, near->position, columns, &position));
  out->chromosome = chromosome;
  out->position = position;
  out->distance = near->distance;
done:
  return st;
}
