/* The bits of all planes by row of data: arrange.cuh. */
#include <cstring>
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/triples/cuda/few_levels.cuh"

/* Row `row` of the arranged planes as a row of the pack's, UINT32_MAX where there is none. */
__device__ static inline uint32_t pack_row_of(const arranged_planes &arranged, size_t row)
{
  const size_t place = weft_planes_attribute(row);
  return place < arranged.count ? arranged.plane_row[weft_planes_plane(row) * arranged.count + place] : UINT32_MAX;
}

/* A warp 32 rows of planes over 32 bits. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) gather_bits(const __grid_constant__ arranged_planes arranged)
{
  const size_t warp = ((size_t) blockIdx.x * ARRANGE_THREADS + threadIdx.x) / 32;
  const size_t across = ARRANGED_PLANES * arranged.room / 32, word = warp / across, block = warp % across;
  const uint32_t lane = threadIdx.x % 32;
  if (word >= arranged.words) return;
  const uint32_t row = pack_row_of(arranged, block * 32 + lane);
  arranged.by_bit[(word * 32 + lane) * across + block] =
      transposed(row == UINT32_MAX ? 0 : arranged.planes[(size_t) row * arranged.words + word]);
}

weft_status weft_mi_arranged_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *resident, arranged_planes *out)
{
  return weft_mi_arranged_in_order(ctx, mem, pack, resident, NULL, out);
}

/* Makes the bits of all planes by row of data, for attributes in the given order (NULL: as they are in the pack).
 * Memory is from `mem`. */
weft_status weft_mi_arranged_in_order(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                      const weft_mi_resident *resident, const uint32_t *order, arranged_planes *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  uint32_t *rows, *ordered, *plane_row;
  size_t warps;
  memset(out, 0, sizeof *out);
  out->planes = resident->planes;
  out->words = resident->words;
  out->count = pack->p;
  out->room = (pack->p + WEFT_PLANES_B - 1) / WEFT_PLANES_B * WEFT_PLANES_B;
  warps = (size_t) resident->words * (ARRANGED_PLANES * out->room / 32);
  WEFT_TAKE(rows, &host, ARRANGED_PLANES * pack->p);
  WEFT_TAKE(ordered, &host, ARRANGED_PLANES * pack->p);
  weft_mi_plane_rows(pack, ARRANGED_PLANES, rows);
  for (size_t q = 0; q < ARRANGED_PLANES; q++)
    for (size_t k = 0; k < pack->p; k++) ordered[q * pack->p + k] = rows[q * pack->p + (order ? order[k] : k)];
  WEFT_DEVICE_TAKE(plane_row, mem, ARRANGED_PLANES * pack->p);
  WEFT_DEVICE_TAKE(out->by_bit, mem, warps * 32);
  WEFT_CUDA(cudaMemcpyAsync(plane_row, ordered, ARRANGED_PLANES * pack->p * sizeof *ordered, cudaMemcpyHostToDevice,
                            mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream)); /* `ordered` ends here */
  out->plane_row = plane_row;
  gather_bits<<<(unsigned) ((warps + ARRANGE_WARPS - 1) / ARRANGE_WARPS), ARRANGE_THREADS, 0, mem->stream>>>(*out);
  WEFT_CUDA(cudaGetLastError());
done:
  weft_arena_end(&host);
  return st;
}
