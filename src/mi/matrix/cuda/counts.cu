/* Information between all pairs of categorical attributes on the device: attributes with planes are counted by products
 * of bit matrices and scored one thread per pair, those with codes one block per pair (coded.cuh). Compiled without
 * contraction, so that scores from planes have the same bits as the CPU's. */
/* Build: exact. */
#include <cstring>
#include "core/call/parallel.h"
#include "mi/pairs/cuda/coded.cuh"
#include "mi/matrix/both/estimate.h"
#include "mi/pack/cuda/pack.cuh"
extern "C" {
#include "mi/matrix/both/counts.h"
#include "mi/pack/pack.h"
}

#define SCORE_THREADS 128
#define PART_PAIRS ((size_t) 1 << 20)

/* Cell (x, y) over all classes. */
__device__ static inline uint64_t cell(const part &p, size_t i, size_t j, uint32_t x, uint32_t y)
{
  uint64_t k = 0;
  for (uint32_t c = 0; c < p.counts.parts; c++) k += weft_mi_cell(&p.counts, c, i, j, x, y);
  return k;
}

/* Entropies of a, b and both (0, 1, 2), cells in the CPU's order. */
__device__ static double entropy(const part &p, size_t i, size_t j, int of, int estimator, double *occupied)
{
  const uint32_t la = p.counts.a.levels, lb = p.counts.b.levels;
  weft_mi_estimate estimate;
  memset(&estimate, 0, sizeof estimate);
  for (int turn = 0; turn < weft_mi_turns(estimator); turn++) {
    for (uint32_t x = 0; x < (of == 1 ? lb : la); x++) {
      uint64_t sum = 0;
      for (uint32_t y = 0; y < (of == 1 ? la : lb); y++) {
        const uint64_t k = of == 1 ? cell(p, i, j, y, x) : cell(p, i, j, x, y);
        if (of == 2) weft_mi_estimate_add(&estimate, &p.f, estimator, turn, k);
        sum += k;
      }
      if (of < 2) weft_mi_estimate_add(&estimate, &p.f, estimator, turn, sum);
    }
    weft_mi_estimate_turn(&estimate, estimator, turn);
  }
  *occupied = estimate.cells;
  return weft_mi_estimate_nats(&estimate, &p.f, estimator);
}

/* of_a, of_b: Σ f over the levels of complete attributes, by place. */
__global__ static void __launch_bounds__(SCORE_THREADS)
    score_information(part p, const int64_t *of_a, const int64_t *of_b, int estimator, double *out)
{
  const size_t j = (size_t) blockIdx.x * SCORE_THREADS + threadIdx.x, i = blockIdx.y;
  if (j >= p.nb || (p.same && p.place_b + j <= p.place_a + i)) return;
  double value = 0, ma, mb, mab;
  if (weft_mi_whole(estimator)) {
    const uint32_t la = p.counts.a.levels, lb = p.counts.b.levels;
    int64_t fixed = 0;
    uint64_t n = 0;
    for (uint32_t x = 0; x < la; x++) {
      uint64_t level = 0;
      for (uint32_t y = 0; y < lb; y++) {
        const uint64_t k = cell(p, i, j, x, y);
        fixed += weft_mi_fixed(&p.f, k);
        level += k;
      }
      n += level;
      if (p.counts.vary) fixed -= weft_mi_fixed(&p.f, level);
    }
    if (p.counts.vary) {
      for (uint32_t y = 0; y < lb; y++) {
        uint64_t level = 0;
        for (uint32_t x = 0; x < la; x++) level += cell(p, i, j, x, y);
        fixed -= weft_mi_fixed(&p.f, level);
      }
    } else {
      fixed -= of_a[p.place_a + i] + of_b[p.place_b + j];
    }
    fixed += weft_mi_fixed(&p.f, n);
    value = fixed > 0 ? weft_mi_bits(fixed, p.f.unit, n) : 0;
  } else {
    const double a = entropy(p, i, j, 0, estimator, &ma), b = entropy(p, i, j, 1, estimator, &mb);
    if (ma >= 2 && mb >= 2) value = (a + b - entropy(p, i, j, 2, estimator, &mab)) / WEFT_MI_LN2;
  }
  out[i * p.nb + j] = value;
}

/* ---- host ---- */

struct matrix_job {
  weft_ctx *ctx;
  const weft_mi_pack *x, *y;
  int symmetric;
  double *scores, *host, *out;
  cudaStream_t stream;
};

/* Fetches na × nb scores and puts them where they belong. */
static weft_status bring(const matrix_job *job, size_t place_a, size_t na, size_t place_b, size_t nb, int same)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = job->ctx;
  const size_t rows = job->x->columns;
  WEFT_CUDA(cudaMemcpyAsync(job->host, job->scores, na * nb * sizeof *job->host, cudaMemcpyDeviceToHost, job->stream));
  WEFT_CUDA(cudaStreamSynchronize(job->stream));
  WEFT_PARALLEL(weft_threads_worth(ctx->threads, 4 * (double) na * (double) nb))
  WEFT_FOR(static)
  for (int64_t b = 0; b < (int64_t) nb; b++) {
    const size_t j = job->y->column[place_b + (size_t) b];
    for (size_t a = 0; a < na && !(same && place_a + a >= place_b + (size_t) b); a++) {
      const size_t i = job->x->column[place_a + a];
      const double value = job->host[a * nb + (size_t) b];
      job->out[j * rows + i] = value;
      if (job->symmetric) job->out[i * rows + j] = value;
    }
  }
done:
  return st;
}

/* weft_mi_ops.matrix on the device, panel by panel: attributes with planes by products of bit matrices, those with
 * codes pair by pair. The CPU adds large tables and the diagonal. */
extern "C" weft_status weft_mi_matrix_cuda(weft_ctx *ctx, const weft_mi_pack *x, weft_mi_resident **device,
                                           const weft_mi_pack *y, int estimator, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  weft_mi_resident *other = NULL;
  weft_mi_tiling tiling;
  matrix_job job = { ctx, x, y ? y : x, !y, NULL, NULL, out, mem.stream };
  int64_t *sums, *of_x, *of_y;
  int coded = 0;
  const weft_mi_pack *second = y ? y : x;
  if (!x->p || !second->p) goto done;
  WEFT_TRY(weft_mi_tiling_make(&host, x, y, &tiling));
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, x, device));
  if (y) WEFT_TRY(weft_mi_resident_make(ctx, y, &other));
  WEFT_TAKE(sums, &host, x->p > second->p ? x->p : second->p);
  WEFT_DEVICE_TAKE(of_x, &mem, x->p);
  weft_mi_sums_of_levels(x, sums);
  WEFT_TRY(weft_device_upload(&mem, of_x, x->p * sizeof *of_x, 1, weft_fill_bytes, sums));
  of_y = of_x;
  if (y) {
    WEFT_DEVICE_TAKE(of_y, &mem, y->p);
    weft_mi_sums_of_levels(y, sums);
    WEFT_TRY(weft_device_upload(&mem, of_y, y->p * sizeof *of_y, 1, weft_fill_bytes, sums));
  }
  WEFT_DEVICE_TAKE(job.scores, &mem, PART_PAIRS);
  WEFT_CUDA(cudaMemsetAsync(job.scores, 0, PART_PAIRS * sizeof *job.scores,
                            mem.stream)); /* what is skipped travels back too */
  WEFT_TAKE(job.host, &host, PART_PAIRS);
  for (size_t k = 0; k < tiling.panel_count; k++) {
    const weft_mi_panel *panel = &tiling.panels[k];
    if (panel->group_a->coded || panel->group_b->coded) {
      mi_codes codes;
      codes_out to;
      memset(&to, 0, sizeof to);
      to.mi = job.scores;
      to.estimator = estimator;
      coded = 1;
      WEFT_TRY(weft_mi_codes_plan(ctx, &mem, &host, x, *device, second, panel, 0, &codes));
      for (uint64_t tile = 0; tile < codes.tiles; tile++) {
        WEFT_TRY(weft_poll(ctx, (double) k + (double) tile / (double) codes.tiles, (double) tiling.panel_count));
        WEFT_TRY(weft_mi_codes_tile(ctx, &mem, &codes, tile, &to));
        if (codes.ni)
          WEFT_TRY(bring(&job, panel->group_a->first + codes.i0, codes.ni, panel->group_b->first + codes.j0, codes.nj,
                         !y && panel->same));
      }
      weft_mi_codes_drop(&mem, &host, &codes);
    } else {
      mi_panel planes;
      WEFT_TRY(weft_mi_panel_plan(&mem, &host, x, *device, second, y ? other : *device, panel, PART_PAIRS, &planes));
      for (uint64_t index = 0; index < planes.parts; index++) {
        part p;
        WEFT_TRY(weft_poll(ctx, (double) k + (double) index / (double) planes.parts, (double) tiling.panel_count));
        WEFT_TRY(weft_mi_panel_count(ctx, &planes, index, mem.stream, &p));
        if (!p.na) continue;
        score_information<<<dim3((unsigned) ((p.nb + SCORE_THREADS - 1) / SCORE_THREADS), (unsigned) p.na),
                            SCORE_THREADS, 0, mem.stream>>>(p, of_x, of_y, estimator, job.scores);
        WEFT_CUDA(cudaGetLastError());
        WEFT_TRY(bring(&job, p.place_a, p.na, p.place_b, p.nb, p.same));
      }
      weft_mi_panel_drop(&mem, &host, &planes);
    }
  }
  if (coded) WEFT_TRY(weft_mi_matrix_large(ctx, x, y, estimator, weft_mi_codes_limit(ctx), out));
  if (!y) WEFT_TRY(weft_mi_own_entropies(ctx, x, estimator, out));
done:
  weft_device_end(&mem);
  if (other) weft_mi_resident_release(ctx, other);
  weft_arena_end(&host);
  return st;
}
