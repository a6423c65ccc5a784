/* A pack on the device: planes with classes padded to whole steps of the tensor cores, margins, and the table of f. */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include "core/call/parallel.h"
#include "mi/pack/cuda/pack.cuh"
#include "mi/pack/cuda/capacity.cuh"
extern "C" {
#include "mi/pack/pack.h"
#include "mi/search/both/pair_tiles.h"
}

/* Fills a buffer for upload with rows of planes in the device's layout, in which each class is padded to whole steps of
 * the tensor cores. */
static void fill_planes(const void *data, size_t first, size_t count, void *out, int threads)
{
  const weft_mi_pack *p = (const weft_mi_pack *) data;
  const size_t words = weft_mi_resident_words(p, p->classes);
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int64_t k = 0; k < (int64_t) count; k++) {
    uint32_t *to = (uint32_t *) out + (size_t) k * words;
    memset(to, 0, words * sizeof *to);
    for (uint32_t c = 0; c < p->classes; c++) {
      memcpy(to, weft_mi_pack_row(p, first + (size_t) k) + p->class_word[c],
             (p->class_word[c + 1] - p->class_word[c]) * sizeof *p->bits);
      to += mi_padded_words(p->class_rows[c]);
    }
  }
}

extern "C" void weft_mi_resident_release(weft_ctx *ctx, weft_mi_resident *resident)
{
  int before = 0;
  (void) ctx;
  cudaGetDevice(&before);
  cudaSetDevice(resident->own.device);
  weft_device_end(&resident->mem);
  cudaSetDevice(before);
  free(resident);
}

#define SEND(field, source, items) \
  do { \
    WEFT_DEVICE_TAKE(resident->field, &resident->mem, (items)); \
    WEFT_TRY(weft_device_upload(&resident->mem, resident->field, (items) * sizeof *resident->field, 1, \
                                weft_fill_bytes, (source))); \
  } while (0)

/* Makes the copy of a pack on the device without its contents: room for planes and margins, and where classes begin.
 * The caller owns it; NULL in *out when it fails. */
weft_status weft_mi_resident_open(weft_ctx *ctx, const weft_mi_pack *p, weft_mi_resident **out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_mi_resident *resident = (weft_mi_resident *) calloc(1, sizeof *resident);
  uint32_t *class_word;
  *out = NULL;
  if (!resident) {
    st = weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough memory.");
    goto done;
  }
  resident->own = *ctx;
  resident->own.poll = NULL;
  resident->mem = weft_device_begin(ctx);
  WEFT_TAKE(class_word, &host, p->classes + 1);
  for (uint32_t c = 0; c <= p->classes; c++) class_word[c] = weft_mi_resident_words(p, c);
  resident->words = class_word[p->classes];
  WEFT_DEVICE_TAKE(resident->planes, &resident->mem, p->plane_rows * resident->words);
  WEFT_DEVICE_TAKE(resident->margins, &resident->mem, p->plane_rows * p->classes);
  SEND(class_word, class_word, (size_t) p->classes + 1);
  WEFT_CUDA(cudaStreamSynchronize(resident->mem.stream));
  *out = resident;
done:
  weft_arena_end(&host);
  if (resident && st != WEFT_OK) {
    weft_device_end(&resident->mem);
    free(resident);
  }
  return st;
}

/* Completes the copy once margins are known: what attributes say alone, the strongest of them, and tables. From here on
 * its memory belongs to its own context, which outlives the call. */
weft_status weft_mi_resident_close(weft_ctx *ctx, const weft_mi_pack *p, weft_mi_resident *resident)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  int64_t *alone;
  WEFT_TAKE(alone, &host, p->p);
  weft_mi_marginals(p, alone);
  for (size_t g = 0; g < p->group_count; g++)
    if (!p->groups[g].coded && !p->groups[g].shape.missing) resident->complete += p->groups[g].count;
  std::partial_sort_copy(alone, alone + p->p, resident->strongest, resident->strongest + MI_STRONGEST,
                         std::greater<int64_t>());
  SEND(column, p->column, p->p);
  SEND(class_rows, p->class_rows, (size_t) p->classes);
  SEND(table, p->f.table, p->f.known);
  SEND(alone, alone, p->p);
  resident->f = p->f;
  resident->f.table = resident->table;
  WEFT_CUDA(cudaStreamSynchronize(resident->mem.stream)); /* searches have streams of their own */
done:
  weft_arena_end(&host);
  resident->mem.ctx = &resident->own;
  return st;
}

/* Sends a whole pack to the device, planes through pinned buffers. */
weft_status weft_mi_resident_make(weft_ctx *ctx, const weft_mi_pack *p, weft_mi_resident **out)
{
  weft_status st = WEFT_OK;
  weft_mi_resident *resident = NULL;
  *out = NULL;
  WEFT_TRY(weft_mi_resident_open(ctx, p, &resident));
  if (p->plane_rows && resident->words)
    WEFT_TRY(weft_device_upload(&resident->mem, resident->planes, p->plane_rows,
                                resident->words * sizeof *resident->planes, fill_planes, p));
  WEFT_TRY(weft_device_upload(&resident->mem, resident->margins, p->plane_rows * p->classes * sizeof *resident->margins,
                              1, weft_fill_bytes, p->margins));
  WEFT_TRY(weft_mi_resident_close(ctx, p, resident));
  *out = resident;
done:
  if (resident && st != WEFT_OK) weft_mi_resident_release(ctx, resident);
  return st;
}

/* ---- rows exchanged ---- */

#define ROWS_AT_ONCE 8 /* of planes, that one block moves: what it reads of `from` serves them all */
#define MOVE_THREADS 256
#define NOWHERE UINT32_MAX /* a bit behind the last row of a class */

/* A warp makes words of ROWS_AT_ONCE rows of planes, a lane a bit, and counts them by class. */
__global__ static void __launch_bounds__(MOVE_THREADS)
    move_rows(const uint32_t *in, uint32_t words, const uint32_t *from, const uint32_t *class_word, uint32_t classes,
              size_t rows, uint32_t *out, uint32_t *margins)
{
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t first = (size_t) blockIdx.x * ROWS_AT_ONCE, row = first + lane;
  const bool writes = lane < ROWS_AT_ONCE && row < rows;
  for (uint32_t c = 0; c < classes; c++) {
    uint32_t count = 0;
    for (uint32_t w = class_word[c] + warp; w < class_word[c + 1]; w += MOVE_THREADS / 32) {
      const uint32_t bit = from[(size_t) w * 32 + lane];
      uint32_t own = 0;
#pragma unroll
      for (uint32_t q = 0; q < ROWS_AT_ONCE; q++) {
        uint32_t set = 0;
        if (first + q < rows && bit != NOWHERE) set = in[(first + q) * words + bit / 32] >> bit % 32 & 1;
        const uint32_t word = __ballot_sync(0xffffffffu, set);
        if (lane == q) own = word;
      }
      if (writes) out[row * words + w] = own;
      count += (uint32_t) __popc(own);
    }
    if (writes && count) atomicAdd(&margins[c * rows + row], count);
  }
}

/* A copy of what `home` holds, with planes, margins and own information of its own. */
static weft_status begin_moved(weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_resident *home,
                               weft_mi_resident **out)
{
  weft_status st = WEFT_OK;
  weft_mi_resident *resident = (weft_mi_resident *) malloc(sizeof *resident);
  if (!resident) return weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough memory.");
  *resident = *home;
  resident->own = *ctx;
  resident->own.poll = NULL;
  resident->tiles = NULL;
  resident->mem = weft_device_begin(ctx);
  WEFT_DEVICE_TAKE(resident->planes, &resident->mem, p->plane_rows * resident->words);
  WEFT_DEVICE_TAKE(resident->margins, &resident->mem, p->plane_rows * p->classes);
  WEFT_DEVICE_TAKE(resident->alone, &resident->mem, p->p);
  WEFT_DEVICE_TAKE(resident->from, &resident->mem, (size_t) resident->words * 32);
  resident->mem.ctx = &resident->own;
  *out = resident;
done:
  if (st != WEFT_OK) {
    weft_device_end(&resident->mem);
    free(resident);
  }
  return st;
}

/* For every bit of a row of planes on the device, the bit that comes there; see weft_mi_pack_permute(). */
static weft_status plan_moves(weft_arena *mem, const weft_mi_pack *p, const uint32_t *perm, uint32_t **out)
{
  weft_status st = WEFT_OK;
  const size_t bits = (size_t) weft_mi_resident_words(p, p->classes) * 32;
  uint32_t *bit, *class_of, *next, *from;
  WEFT_TAKE(bit, mem, p->n);
  WEFT_TAKE(class_of, mem, p->n);
  WEFT_TAKE(next, mem, p->classes);
  WEFT_TAKE(from, mem, bits);
  memset(from, 255, bits * sizeof *from);
  for (uint32_t c = 0, row = 0; c < p->classes; c++) {
    const uint32_t first = weft_mi_resident_words(p, c) * 32;
    next[c] = first;
    for (uint32_t k = 0; k < p->class_rows[c]; k++, row++) {
      bit[row] = first + k;
      class_of[row] = c;
    }
  }
  for (size_t row = 0; row < p->n; row++) from[next[class_of[perm[row]]]++] = bit[row];
  *out = from;
done:
  return st;
}

/* Makes the copy with exchanged rows when it is asked for the first time, where it fits; then moves the bits there, and
 * fetches the new margins. */
extern "C" weft_status weft_mi_permute_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                            const uint32_t *perm, weft_mi_pack *moved, weft_mi_resident **out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const size_t margins = pack->plane_rows * pack->classes;
  uint32_t *const kept = moved->margins, *from;
  mi_block_plan plan;
  weft_mi_resident *resident;
  int64_t *alone;
  if (!*out) {
    for (size_t g = 0; g < pack->group_count; g++)
      if (pack->groups[g].coded) goto done;
    if (!pack->plane_rows || !pack->n || !weft_mi_device_holds(ctx, pack, 2, &plan)) goto done;
    if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
    WEFT_TRY(begin_moved(ctx, pack, *device, out));
  }
  resident = *out;
  WEFT_TAKE(alone, &host, pack->p);
  WEFT_TRY(plan_moves(&host, pack, perm, &from));
  WEFT_CUDA(cudaMemcpyAsync(resident->from, from, (size_t) resident->words * 32 * sizeof *from, cudaMemcpyHostToDevice,
                            resident->mem.stream));
  WEFT_CUDA(cudaMemsetAsync(resident->margins, 0, margins * sizeof *resident->margins, resident->mem.stream));
  move_rows<<<(unsigned) ((pack->plane_rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE), MOVE_THREADS, 0,
              resident->mem.stream>>>((*device)->planes, resident->words, resident->from, resident->class_word,
                                      pack->classes, pack->plane_rows, resident->planes, resident->margins);
  WEFT_CUDA(cudaGetLastError());
  *moved = *pack;
  moved->margins = kept;
  WEFT_CUDA(
      cudaMemcpyAsync(kept, resident->margins, margins * sizeof *kept, cudaMemcpyDeviceToHost, resident->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(resident->mem.stream));
  weft_mi_marginals(moved, alone);
  std::partial_sort_copy(alone, alone + pack->p, resident->strongest, resident->strongest + MI_STRONGEST,
                         std::greater<int64_t>());
  WEFT_CUDA(
      cudaMemcpyAsync(resident->alone, alone, pack->p * sizeof *alone, cudaMemcpyHostToDevice, resident->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(resident->mem.stream)); /* searches have streams of their own */
  if (resident->tiles) weft_device_drop(&resident->mem, resident->tiles);
  resident->tiles = NULL;
done:
  weft_arena_end(&host);
  return st;
}
