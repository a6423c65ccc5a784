/* Collecting what kernels find, and choosing how much work comes next; see progress.cuh. */
#include <cmath>
#include <cstring>
#include "mi/search/cuda/progress.cuh"

#define FIRST_PAIRS 1e5    /* pairs before there is a bar */
#define FIRST_BARRED 3.2e6 /* with a bar from single attributes: a tile for most multiprocessors */
#define GROWTH 8           /* then so many times more */

/* Fetches the hits of what ran; *overflow when there were more than fit, and then only a higher bar is kept. */
static weft_status collect(weft_ctx *ctx, mi_collector *c, int *overflow)
{
  weft_status st = WEFT_OK;
  unsigned long long count;
  size_t brought;
  WEFT_CUDA(cudaMemcpyAsync(&count, c->hits.count, sizeof count, cudaMemcpyDeviceToHost, c->stream));
  WEFT_CUDA(cudaStreamSynchronize(c->stream));
  *overflow = count > c->hits.capacity;
  brought = *overflow ? c->hits.capacity : (size_t) count;
  if (brought) {
    WEFT_CUDA(
        cudaMemcpyAsync(c->buffer, c->hits.items, brought * sizeof *c->buffer, cudaMemcpyDeviceToHost, c->stream));
    WEFT_CUDA(cudaStreamSynchronize(c->stream));
  }
  if (*overflow) {
    /* the bar may rise to the k-th best of what was seen, but these pairs will come again */
    if (c->keeper.bounded && c->keeper.best.k <= brought) {
      weft_scored_select(c->buffer, brought, c->keeper.best.k);
      const weft_scored kth = c->buffer[c->keeper.best.k - 1];
      weft_scored now;
      now.score = c->bar.score;
      now.index = c->bar.index;
      if (weft_scored_before(kth, now)) {
        c->bar.score = kth.score;
        c->bar.index = kth.index + 1;
      }
    }
    goto done;
  }
  for (size_t k = 0; k < brought; k++) weft_mi_keep(&c->keeper, c->buffer[k].score, c->buffer[k].index);
  if (c->keeper.st != WEFT_OK) {
    memcpy(ctx->message, c->keeper.ctx.message, sizeof ctx->message);
    st = c->keeper.st;
    goto done;
  }
  if (c->keeper.bounded && c->keeper.best.count >= c->keeper.best.k) {
    weft_topk_shrink(&c->keeper.best);
    weft_scored now;
    now.score = c->bar.score;
    now.index = c->bar.index;
    const weft_scored kth = c->keeper.best.bar;
    if (kth.index != UINT64_MAX && weft_scored_before(kth, now)) {
      c->bar.score = kth.score;
      c->bar.index = kth.index;
    }
  }
done:
  return st;
}

/* The most units from `first` on, at least one, with no more than `pairs` pairs. */
static uint64_t units_of(const mi_runner *r, uint64_t first, double pairs)
{
  uint64_t lo = 1, hi = r->units - first;
  const double before = r->until(r->job, first);
  while (lo < hi) {
    const uint64_t mid = lo + (hi - lo + 1) / 2;
    if (r->until(r->job, first + mid) - before <= pairs)
      lo = mid;
    else
      hi = mid - 1;
  }
  return lo;
}

/* Polls, runs as many units as the bar suggests, and collects what they found. When the buffer of hits overflows, only
 * a higher bar is kept and half of the units run again. */
weft_status weft_mi_run_all(weft_ctx *ctx, mi_collector *c, const mi_runner *r)
{
  weft_status st = WEFT_OK;
  const int barred = c->keeper.bounded && c->keeper.best.count >= c->keeper.best.k;
  uint64_t first = 0, halved = 0;
  while (first < r->units) {
    const double seen = r->until(r->job, first), start = c->started && !r->patient ? FIRST_BARRED : FIRST_PAIRS;
    const double pairs = barred || !c->keeper.bounded ? r->most : fmax(start, GROWTH * seen);
    uint64_t now = halved ? halved : units_of(r, first, fmin(pairs, r->most));
    int overflow = 0;
    WEFT_TRY(weft_poll(ctx, c->before + c->share * (double) first / (double) r->units, 1));
    WEFT_CUDA(cudaMemsetAsync(c->hits.count, 0, sizeof *c->hits.count, c->stream));
    WEFT_TRY(r->run(ctx, r->job, c, first, now));
    WEFT_TRY(collect(ctx, c, &overflow));
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
