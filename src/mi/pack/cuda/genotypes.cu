/* Genotypes of two bits to bit planes on the device. Their codes are sent as they lie in the file, which takes no
 * longer than sending planes, counted there, and written as planes in the order of the device: a warp makes 32 bits of
 * a row at a time, each lane looking up one sample. Within a class samples stay in order, so that what a warp reads of
 * a column lies in a few neighbouring bytes. */
#include <cstring>
#include "core/data/genotypes.h"
#include "core/call/parallel.h"
#include "mi/pack/cuda/pack.cuh"
#include "mi/pack/cuda/capacity.cuh"
extern "C" {
#include "mi/pack/pack.h"
#include "mi/pack/cuda/genotypes.h"
}

#define THREADS 256
#define COLUMNS 8          /* that one warp makes planes of: a lane for each and its four values */
#define STEPS_AT_ONCE 16   /* of a block's warps */
#define NOWHERE UINT32_MAX /* a sample behind the last of a class, a value without a plane */
#define CODES_SHARE 0.5    /* of the device's memory, at most, for codes */

/* ---- codes on the device ---- */

/* Columns `pitch` bytes apart: whole groups of 64 samples, missing past the last one. */
struct packed_columns {
  const weft_column *columns;
  size_t bytes, pitch;
};

static void fill_codes(const void *data, size_t first, size_t count, void *out, int threads)
{
  const packed_columns *from = (const packed_columns *) data;
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int64_t k = 0; k < (int64_t) count; k++) {
    uint8_t *to = (uint8_t *) out + (size_t) k * from->pitch;
    memcpy(to, from->columns[first + (size_t) k].values, from->bytes);
    memset(to + from->bytes, 0, from->pitch - from->bytes);
  }
}

/* ---- how many samples of a column have each value ---- */

/* A column's counts: samples with 0, 1 and 2 copies and missing ones, of all and of those that count. */
struct counts_of {
  uint32_t all[4], counting[4];
};

__device__ static inline void count_values(uint32_t codes, uint32_t there, uint32_t *counts)
{
  const uint32_t low = codes & there, high = codes >> 1 & there;
  counts[0] += (uint32_t) __popc(low & high);
  counts[1] += (uint32_t) __popc(high & ~low);
  counts[2] += (uint32_t) __popc(there & ~(low | high));
  counts[3] += (uint32_t) __popc(low & ~high);
}

/* A block per column. exists, counting: for each word of 16 samples a bit at the lower of a sample's two places. */
__global__ static void __launch_bounds__(THREADS)
    count_columns(const uint8_t *codes, size_t pitch, const uint32_t *exists, const uint32_t *counting, counts_of *out)
{
  const uint32_t *column = (const uint32_t *) (codes + blockIdx.x * pitch);
  __shared__ counts_of sum;
  uint32_t own[8] = { 0 };
  if (threadIdx.x < 8) ((uint32_t *) &sum)[threadIdx.x] = 0;
  __syncthreads();
  for (size_t w = threadIdx.x; w < pitch / 4; w += THREADS) {
    count_values(column[w], exists[w], own);
    count_values(column[w], counting[w], own + 4);
  }
  for (int k = 0; k < 8; k++) {
    for (int d = 16; d; d /= 2) own[k] += __shfl_xor_sync(0xffffffffu, own[k], d);
    if (threadIdx.x % 32 == 0) atomicAdd((uint32_t *) &sum + k, own[k]);
  }
  __syncthreads();
  if (threadIdx.x < 8) ((uint32_t *) (out + blockIdx.x))[threadIdx.x] = ((uint32_t *) &sum)[threadIdx.x];
}

/* ---- planes ---- */

struct planes_args {
  const uint8_t *codes;
  size_t pitch, columns, plane_rows;
  const uint32_t *from, *class_word; /* of each bit of a row of planes, the sample; NOWHERE */
  uint32_t words, classes;
  const uint32_t *row; /* row of planes of a column's value, [column][4]; NOWHERE */
  uint32_t *planes, *margins;
};

/* Samples of one word with so many copies, or missing; see weft_genotype_at(). */
__device__ static inline uint32_t with_value(uint32_t value, uint32_t low, uint32_t high, uint32_t there)
{
  return there & (value == 0 ? high & low : value == 1 ? high & ~low : value == 2 ? ~(high | low) : low & ~high);
}

/* A warp makes steps of eight words, of four rows of planes for each of COLUMNS columns. */
__global__ static void __launch_bounds__(THREADS) write_planes(planes_args args)
{
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = args.words / STEP_WORDS;
  const size_t first = (size_t) blockIdx.x * COLUMNS
  , mine = first + lane / 4;
  const uint32_t row = mine < args.columns ? args.row[4 * mine + lane % 4] : NOWHERE;
  const uint32_t step0 = blockIdx.y * (STEPS_AT_ONCE * (THREADS / 32));
  uint32_t c = 0, count = 0;
  for (uint32_t k = warp; k < STEPS_AT_ONCE * (THREADS / 32) && step0 + k < steps; k += THREADS / 32) {
    const uint32_t word = (step0 + k) * STEP_WORDS;
    uint32_t made[STEP_WORDS];
    while (word >= args.class_word[c + 1]) {
      if (count) atomicAdd(&args.margins[c * args.plane_rows + row], count);
      count = 0;
      c++;
    }
#pragma unroll
    for (uint32_t w = 0; w < STEP_WORDS; w++) {
      const uint32_t sample = args.from[(size_t) (word + w) * 32 + lane];
      const bool there = sample != NOWHERE;
      const uint32_t which = __ballot_sync(0xffffffffu, there);
      uint32_t low = 0, high = 0;
#pragma unroll
      for (uint32_t q = 0; q < COLUMNS; q++) {
        uint32_t code = 0;
        if (there && first + q < args.columns)
          code = args.codes[(first + q) * args.pitch + sample / 4] >> 2 * (sample % 4);
        const uint32_t lows = __ballot_sync(0xffffffffu, code & 1), highs = __ballot_sync(0xffffffffu, code & 2);
        if (q == lane / 4) {
          low = lows;
          high = highs;
        }
      }
      made[w] = with_value(lane % 4, low, high, which);
      if (row != NOWHERE) count += (uint32_t) __popc(made[w]);
    }
    if (row == NOWHERE) continue;
    uint4 *to = (uint4 *) (args.planes + (size_t) row * args.words + word);
    to[0] = make_uint4(made[0], made[1], made[2], made[3]);
    to[1] = make_uint4(made[4], made[5], made[6], made[7]);
  }
  if (count) atomicAdd(&args.margins[c * args.plane_rows + row], count);
}

/* ---- a pack whose planes are on the device ---- */

/* Makes masks for words of 16 samples of two bits: the lower bit of each sample that exists, and of each that counts.
 */
static weft_status mark_rows(weft_arena *mem, const weft_mi_pack *p, size_t words, uint32_t **exists,
                             uint32_t **counting)
{
  weft_status st = WEFT_OK;
  uint32_t *all, *some;
  WEFT_TAKE0(all, mem, words);
  WEFT_TAKE0(some, mem, words);
  for (size_t i = 0; i < p->rows_in; i++) all[i / 16] |= 1u << 2 * (i % 16);
  for (size_t row = 0; row < p->n; row++) some[p->order[row] / 16] |= 1u << 2 * (p->order[row] % 16);
  *exists = all;
  *counting = some;
done:
  return st;
}

/* Levels and missing values of every column, and the groups that follow. */
static weft_status group_columns(weft_arena *mem, int na_level, const counts_of *counts, weft_mi_pack *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(mem->ctx);
  uint32_t *levels;
  uint8_t *missing;
  WEFT_TAKE(levels, &own, out->p);
  WEFT_TAKE(missing, &own, out->p);
  for (size_t j = 0; j < out->p; j++) {
    const uint32_t *seen = counts[j].counting;
    levels[j] = (seen[0] > 0) + (seen[1] > 0) + (seen[2] > 0) + (na_level && seen[WEFT_GENOTYPE_MISSING]);
    missing[j] = !na_level && seen[WEFT_GENOTYPE_MISSING];
    out->missing[j] = counts[j].all[WEFT_GENOTYPE_MISSING];
  }
  WEFT_TRY(weft_mi_pack_group(mem, levels, missing, out));
done:
  weft_arena_end(&own);
  return st;
}

/* The row of planes of every value of every column: values that occur, missing as the last. A column without any known
 * value has one plane, of the first value, which no row that counts has. */
static weft_status place_values(weft_arena *mem, const weft_mi_pack *p, int na_level, const counts_of *counts,
                                uint32_t **out)
{
  weft_status st = WEFT_OK;
  uint32_t *rows;
  WEFT_TAKE(rows, mem, 4 * p->p);
  for (size_t j = 0; j < p->p; j++) {
    const size_t place = p->place[j];
    const weft_mi_group *group = &p->groups[p->group_of[place]];
    const uint32_t *seen = counts[j].counting;
    const int empty = !seen[0] && !seen[1] && !seen[2] && !(na_level && seen[WEFT_GENOTYPE_MISSING]);
    uint32_t q = 0;
    for (int value = 0; value < 4; value++) {
      const int occurs = empty ? value == 0 : seen[value] && (value != WEFT_GENOTYPE_MISSING || na_level);
      const int has = occurs && q < group->shape.planes;
      rows[4 * j + (size_t) value] = has ? (uint32_t) weft_mi_plane_row(group, place, q++) : NOWHERE;
    }
  }
  *out = rows;
done:
  return st;
}

/* The sample of every bit of a row of planes. */
static weft_status place_samples(weft_arena *mem, const weft_mi_pack *p, uint32_t **out)
{
  weft_status st = WEFT_OK;
  const size_t bits = (size_t) weft_mi_resident_words(p, p->classes) * 32;
  const uint32_t *next = p->order;
  uint32_t *samples;
  WEFT_TAKE(samples, mem, bits);
  memset(samples, 255, bits * sizeof *samples);
  for (uint32_t c = 0; c < p->classes; c++) {
    memcpy(samples + (size_t) weft_mi_resident_words(p, c) * 32, next, p->class_rows[c] * sizeof *next);
    next += p->class_rows[c];
  }
  *out = samples;
done:
  return st;
}

/* Sends the two-bit codes, counts their values, groups the attributes on the host, and writes planes and margins on the
 * device. *out stays NULL where codes or planes do not fit; the host gets the margins. */
extern "C" weft_status weft_mi_plant_cuda(weft_ctx *ctx, weft_arena *mem, const weft_column *columns, int na_level,
                                          weft_mi_pack *pack, weft_mi_resident **out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena device = weft_device_begin(ctx);
  const size_t bytes = weft_genotype_bytes(pack->rows_in), pitch = (bytes + 15) / 16 * 16;
  const packed_columns from = { columns, bytes, pitch };
  planes_args args;
  weft_mi_resident *resident = NULL;
  counts_of *counts, *d_counts;
  uint32_t *exists, *counting, *rows, *samples, *d_exists, *d_counting, *d_rows, *d_samples;
  uint8_t *codes;
  mi_block_plan plan;
  *out = NULL;
  if ((double) pack->p * (double) pitch > CODES_SHARE * weft_device_available(ctx)) goto done;
  WEFT_DEVICE_TAKE(codes, &device, pack->p * pitch);
  WEFT_TRY(weft_device_upload(&device, codes, pack->p, pitch, fill_codes, &from));
  WEFT_TRY(mark_rows(&host, pack, pitch / 4, &exists, &counting));
  WEFT_TRY(weft_device_send(&device, exists, pitch / 4, &d_exists));
  WEFT_TRY(weft_device_send(&device, counting, pitch / 4, &d_counting));
  WEFT_TAKE(counts, &host, pack->p);
  WEFT_DEVICE_TAKE(d_counts, &device, pack->p);
  count_columns<<<(unsigned) pack->p, THREADS, 0, device.stream>>>(codes, pitch, d_exists, d_counting, d_counts);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(counts, d_counts, pack->p * sizeof *counts, cudaMemcpyDeviceToHost, device.stream));
  WEFT_CUDA(cudaStreamSynchronize(device.stream));
  WEFT_TRY(group_columns(mem, na_level, counts, pack));
  if (!weft_mi_device_holds(ctx, pack, 0, &plan)) goto done;
  WEFT_TRY(place_values(&host, pack, na_level, counts, &rows));
  WEFT_TRY(place_samples(&host, pack, &samples));
  WEFT_TRY(weft_device_send(&device, rows, 4 * pack->p, &d_rows));
  WEFT_TRY(weft_mi_resident_open(ctx, pack, &resident));
  WEFT_TRY(weft_device_send(&device, samples, (size_t) resident->words * 32, &d_samples));
  WEFT_CUDA(cudaMemsetAsync(resident->margins, 0, pack->plane_rows * pack->classes * sizeof *resident->margins,
                            device.stream));
  args.codes = codes;
  args.pitch = pitch;
  args.columns = pack->p;
  args.plane_rows = pack->plane_rows;
  args.from = d_samples;
  args.class_word = resident->class_word;
  args.words = resident->words;
  args.classes = pack->classes;
  args.row = d_rows;
  args.planes = resident->planes;
  args.margins = resident->margins;
  if (pack->plane_rows) {
    const unsigned steps = STEPS_AT_ONCE * (THREADS / 32);
    write_planes<<<dim3((unsigned) ((pack->p + COLUMNS - 1) / COLUMNS),
                        (resident->words / STEP_WORDS + steps - 1) / steps),
                   THREADS, 0, device.stream>>>(args);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaMemcpyAsync(pack->margins, resident->margins,
                              pack->plane_rows * pack->classes * sizeof *resident->margins, cudaMemcpyDeviceToHost,
                              device.stream));
  }
  WEFT_CUDA(cudaStreamSynchronize(device.stream));
  WEFT_TRY(weft_mi_resident_close(ctx, pack, resident));
  *out = resident;
done:
  if (st != WEFT_OK && resident) weft_mi_resident_release(ctx, resident);
  weft_device_end(&device);
  weft_arena_end(&host);
  return st;
}

/* ---- planes back to the host ---- */

/* out: rows of planes as they lie on the device, next to each other; a thread per 16 bytes. */
__global__ static void gather_rows(const uint32_t *planes, uint32_t words, const size_t *rows, size_t count, uint4 *out)
{
  const size_t pieces = words / 4, k = (size_t) blockIdx.x * THREADS + threadIdx.x;
  if (k < count * pieces) out[k] = ((const uint4 *) (planes + rows[k / pieces] * words))[k % pieces];
}

/* Gathers the wanted rows of planes, brings them back in batches, and drops the device's padding of the classes. */
extern "C" weft_status weft_mi_planes_cuda(weft_ctx *ctx, const weft_mi_pack *pack, const size_t *rows, size_t count,
                                           uint64_t *bits)
{
  weft_status st = WEFT_OK;
  const weft_mi_resident *resident = pack->away.at;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const size_t bytes = (size_t) resident->words * 4, at_once = 1 + ((size_t) 1 << 28) / (bytes + 1);
  size_t *d_rows;
  uint4 *gathered;
  uint32_t *fetched;
  if (!count || !resident->words) goto done;
  WEFT_TRY(weft_device_send(&mem, rows, count, &d_rows));
  WEFT_DEVICE_TAKE(gathered, &mem, (count < at_once ? count : at_once) * (bytes / 16));
  WEFT_TAKE(fetched, &host, (count < at_once ? count : at_once) * resident->words);
  for (size_t first = 0; first < count; first += at_once) {
    const size_t now = count - first < at_once ? count - first : at_once;
    const int threads = weft_threads_worth(ctx->threads, (double) now * (double) bytes / 8);
    gather_rows<<<(unsigned) ((now * (bytes / 16) + THREADS - 1) / THREADS), THREADS, 0, mem.stream>>>(resident->planes,
                                                                                                       resident->words,
                                                                                                       d_rows + first,
                                                                                                       now, gathered);
    WEFT_CUDA(cudaGetLastError());
    WEFT_TRY(weft_device_download(&mem, fetched, gathered, now * bytes));
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t k = 0; k < (int64_t) now; k++) {
      const uint32_t *from = fetched + (size_t) k * resident->words;
      for (uint32_t c = 0; c < pack->classes; c++) {
        memcpy(bits + (first + (size_t) k) * pack->words + pack->class_word[c], from,
               (pack->class_word[c + 1] - pack->class_word[c]) * sizeof *bits);
        from += mi_padded_words(pack->class_rows[c]);
      }
    }
  }
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
