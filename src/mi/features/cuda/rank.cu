/* mi_rank on the device. The host codes the columns (it must read them anyway, and codes are a quarter of the bytes),
 * the device counts and scores, one block per column, in chunks that fit its memory. Wide columns are left to
 * cpu/columns.c. */
#include <cstring>
#include "core/device/device.cuh"
#include "core/call/parallel.h"
#include "mi/search/search.h"
#include "mi/matrix/both/numeric.h"
#include "mi/networks/network.h"
#include "mi/transfer/both/transfer.h"
#include "mi/scan/scan.h"
extern "C" {
#include "mi/pairs/both/pairs.h"
#include "mi/matrix/both/counts.h"
#include "mi/permutations/both/permute_ternary.h"
#include "mi/pack/pack.h"
#include "mi/pack/cuda/genotypes.h"
#include "mi/features/both/column_score.h"
#include "mi/features/both/columns.h"
}

#define THREADS 256
#define SHARED_CELLS 10240u              /* 40 KB: three blocks per multiprocessor at least */
#define HOST_BUFFER ((size_t) 256 << 20) /* codes made before they are sent; bounds the time between polls */
#define FULL 0xffffffffu

/* One column of a chunk on the device. */
struct column_job {
  size_t codes, table;
  uint32_t levels;
  int width;
};

/* ---- kernel ---- */

/* Adds one to table[cell]; copies > 1: each lane group has its own table, which avoids conflicts on small ones. */
__device__ static void count_rows(const column_job &job, const uint8_t *codes, const uint16_t *classes, size_t n,
                                  uint32_t class_levels, uint32_t *table, uint32_t copies)
{
  uint32_t *own = table + (threadIdx.x % copies);
  for (size_t i = threadIdx.x; i < n; i += THREADS) {
    uint32_t code = job.width == 1 ? codes[i] : ((const uint16_t *) codes)[i], c = classes[i];
    if (code < job.levels && c < class_levels) atomicAdd(own + (size_t) (code * class_levels + c) * copies, 1u);
  }
}

/* The halving tree of column_score.h over a warp's lanes; right in lane 0. */
__device__ static double tree(double v)
{
  for (int half = 16; half; half /= 2) v = weft_add(v, __shfl_down_sync(FULL, v, half));
  return v;
}

/* Whole numbers: any order will do. */
__device__ static double total(double v)
{
  for (int half = 16; half; half /= 2) v += __shfl_xor_sync(FULL, v, half);
  return v;
}

/* The first warp scores a finished table. A lane visits cells lane, lane + 32, ... in increasing order. */
__device__ static void score(const uint32_t *table, uint32_t levels, uint32_t classes, const weft_mi_rank &out,
                             size_t j)
{
  const uint32_t lane = threadIdx.x;
  double joint = 0, attribute = 0, by_class = 0, n = 0;
  int seen = 0, classes_seen = 0;
  for (uint32_t cell = lane; cell < levels * classes; cell += 32)
    if (table[cell]) joint = weft_add(joint, weft_mi_f((double) table[cell]));
  for (uint32_t a = lane; a < levels; a += 32) {
    uint32_t margin = 0;
    for (uint32_t c = 0; c < classes; c++) margin += table[a * classes + c];
    if (!margin) continue;
    attribute = weft_add(attribute, weft_mi_f((double) margin));
    n += margin;
    seen++;
  }
  for (uint32_t c = lane; c < classes; c += 32) {
    uint32_t margin = 0;
    for (uint32_t a = 0; a < levels; a++) margin += table[a * classes + c];
    if (!margin) continue;
    by_class = weft_add(by_class, weft_mi_f((double) margin));
    classes_seen++;
  }
  weft_mi_sums sums = { tree(joint), tree(attribute),   tree(by_class),
                        total(n),    (int) total(seen), (int) total(classes_seen) };
  if (lane == 0) weft_mi_store(&sums, &out, j);
}

/* Block j counts and scores column j. Small tables live in shared memory, large ones in `tables`, zeroed before. */
__global__ static void __launch_bounds__(THREADS)
    rank_columns(const column_job *jobs, const uint8_t *codes, const uint16_t *classes, size_t n, uint32_t class_levels,
                 uint32_t *tables, weft_mi_rank out)
{
  __shared__ uint32_t fast[SHARED_CELLS];
  const column_job job = jobs[blockIdx.x];
  const uint32_t cells = job.levels * class_levels;
  const bool in_shared = cells <= SHARED_CELLS;
  uint32_t copies = 1;
  if (in_shared) {
    while (copies < 32 && cells * copies * 2 <= SHARED_CELLS) copies *= 2;
    for (uint32_t i = threadIdx.x; i < cells * copies; i += THREADS) fast[i] = 0;
    __syncthreads();
  }
  uint32_t *table = in_shared ? fast : tables + job.table;
  count_rows(job, codes + job.codes, classes, n, class_levels, table, copies);
  __syncthreads();
  if (copies >
      1) { /* sum the copies into the front; a cell's copies are read before any later cell's are overwritten */
    for (uint32_t base = 0; base < cells; base += THREADS) {
      uint32_t cell = base + threadIdx.x, sum = 0;
      if (cell < cells)
        for (uint32_t k = 0; k < copies; k++) sum += fast[cell * copies + k];
      __syncthreads();
      if (cell < cells) fast[cell] = sum;
      __syncthreads();
    }
  }
  if (threadIdx.x < 32) score(table, job.levels, class_levels, out, blockIdx.x);
}

/* ---- host ---- */

/* Plans and codes columns first .. first+count-1 into slots of `slot` bytes, with all threads. */
static void encode_columns(const weft_mi_data *data, size_t first, size_t count, weft_mi_code *codes, uint8_t *buffer,
                           size_t slot, uint8_t *scratch, const weft_mi_rank *out, int threads)
{
  WEFT_PARALLEL(threads)
  {
    uint8_t *own = scratch + WEFT_THREAD() * slot;
    WEFT_FOR(guided)
    for (int64_t k = 0; k < (int64_t) count; k++) {
      const weft_column *x = &data->columns[first + k];
      codes[k] = weft_mi_code_plan(data, first + k);
      if (codes[k].result != WEFT_CODES_OK) continue;
      out->missing[first + k] = (double) codes[k].plan.missing;
      weft_encode_all(x, data->n, data->na_level, &codes[k].plan, buffer + k * slot, own);
    }
  }
}

/* weft_mi_ops.rank on the device, in chunks of columns that fit its memory: the host codes a chunk and sends it, the
 * device counts and scores it, one block per column. */
static weft_status rank(weft_ctx *ctx, const weft_mi_data *data, const weft_mi_rank *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const size_t slot = (2 * data->n + 15) / 16 * 16, classes = data->class_levels;
  size_t chunk, at_once, table_words;
  weft_mi_code *codes;
  column_job *jobs, *d_jobs;
  uint8_t *buffer, *scratch, *d_codes;
  uint16_t *d_classes;
  uint32_t *d_tables;
  double *d_numbers;
  int32_t *d_levels;
  if (!data->p || !data->n) {
    st = weft_mi_cpu.rank(ctx, data, out);
    goto done;
  }

  /* a column needs its codes, at most a table, and six results */
  at_once = HOST_BUFFER / slot;
  at_once = at_once < 1 ? 1 : at_once > data->p ? data->p : at_once;
  chunk = weft_device_chunk(ctx, at_once, (double) slot + 4.0 * WEFT_MI_TABLE_CELLS + sizeof *jobs + 40,
                            2.0 * data->n + 4096);
  if (!chunk) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_TAKE(codes, &host, chunk);
  WEFT_TAKE(jobs, &host, chunk);
  WEFT_TAKE(buffer, &host, chunk * slot);
  WEFT_TAKE(scratch, &host, ctx->threads * slot);
  WEFT_DEVICE_TAKE(d_classes, &mem, data->n);
  WEFT_DEVICE_TAKE(d_codes, &mem, chunk * slot);
  WEFT_DEVICE_TAKE(d_jobs, &mem, chunk);
  WEFT_DEVICE_TAKE(d_numbers, &mem, 4 * chunk);
  WEFT_DEVICE_TAKE(d_levels, &mem, 2 * chunk);
  WEFT_TRY(weft_device_upload(&mem, d_classes, data->n * sizeof *d_classes, 1, weft_fill_bytes, data->classes));

  for (size_t first = 0; first < data->p; first += chunk) {
    const size_t count = data->p - first < chunk ? data->p - first : chunk;
    weft_mi_rank on_device = {
      d_numbers, d_numbers + chunk, d_numbers + 2 * chunk, d_numbers + 3 * chunk, d_levels, d_levels + chunk, NULL
    };
    WEFT_TRY(weft_poll(ctx, (double) first, (double) data->p));
    encode_columns(data, first, count, codes, buffer, slot, scratch, out, ctx->threads);
    WEFT_TRY(weft_mi_check(ctx, codes, first, count));
    table_words = 0;
    for (size_t k = 0; k < count; k++) {
      const bool counted = codes[k].result == WEFT_CODES_OK;
      jobs[k].codes = k * slot;
      jobs[k].levels = counted ? codes[k].plan.levels : 0;
      jobs[k].width = codes[k].plan.width;
      jobs[k].table = table_words;
      if (jobs[k].levels * classes > SHARED_CELLS) table_words += jobs[k].levels * classes;
    }
    WEFT_DEVICE_TAKE(d_tables, &mem, table_words);
    WEFT_CUDA(cudaMemsetAsync(d_tables, 0, table_words * sizeof *d_tables, mem.stream));
    WEFT_TRY(weft_device_upload(&mem, d_codes, count * slot, 1, weft_fill_bytes, buffer));
    WEFT_TRY(weft_device_upload(&mem, d_jobs, count * sizeof *jobs, 1, weft_fill_bytes, jobs));
    rank_columns<<<(unsigned) count, THREADS, 0, mem.stream>>>(d_jobs, d_codes, d_classes, data->n, data->class_levels,
                                                               d_tables, on_device);
    WEFT_CUDA(cudaGetLastError());
#define BRING(field) \
  WEFT_CUDA(cudaMemcpyAsync(out->field + first, on_device.field, count * sizeof *out->field, cudaMemcpyDeviceToHost, \
                            mem.stream))
    BRING(mi);
    BRING(entropy);
    BRING(class_entropy);
    BRING(n);
    BRING(levels);
    BRING(class_levels);
#undef BRING
    WEFT_CUDA(cudaStreamSynchronize(mem.stream));
    weft_device_drop(&mem, d_tables);
    WEFT_TRY(weft_mi_rank_wide(ctx, data, codes, first, count, out));
  }
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}

extern "C" {
extern const weft_mi_ops weft_mi_cuda;
const weft_mi_ops weft_mi_cuda = { rank,
                                   weft_mi_search_cuda,
                                   weft_mi_full_cuda,
                                   weft_mi_matrix_cuda,
                                   weft_mi_resident_release,
                                   weft_mi_numeric_cuda,
                                   weft_network_cuda,
                                   weft_mi_permute_cuda,
                                   weft_mi_relabel_cuda,
                                   weft_mi_plant_cuda,
                                   weft_mi_planes_cuda,
                                   weft_transfer_open_cuda,
                                   weft_transfer_pass_cuda,
                                   weft_transfer_close_cuda,
                                   weft_mi_scan_cuda };
}
