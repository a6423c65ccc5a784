/* What the host side of the kernel room's device code shares: grids, uploads, and launches of tiles in slices short
 * enough to poll between them. */
#pragma once

#include <cmath>
#include <cstring>
#include <ctime>
#include "core/call/parallel.h"
#include "kernel/cuda/direct/tiles.cuh"

/* Queries whose chunks are summed together: whole tiles of 64, 128, 384 and 512. */
#ifdef WEFT_TESTS
#  define QUERY_SLAB 1536
#else
#  define QUERY_SLAB 66048
#endif

static inline int grid_for(double count)
{
  double blocks = (count + 255) / 256;
  return blocks < 1 ? 1 : blocks > 65536 ? 65536 : (int) blocks;
}

/* References of a block: few enough that small problems fill the device, and a function of the sizes alone. */
static inline int64_t chunk_rows(int64_t nq, int64_t n, int tile)
{
  const int64_t blocks = (nq + tile - 1) / tile;
  int64_t rows = n / (2048 / (blocks < 2048 ? blocks : 2048) + 1);
  rows = (rows + tile - 1) / tile * tile;
  return rows < 1024 ? 1024 : rows > 65536 ? 65536 : rows;
}

template <typename Real> struct tile_launch {
  weft_ctx *ctx;
  cudaStream_t stream;
  int kind, chunks, blocks; /* blocks of queries, from args.first_block on */
  tile_args<Real> args;
};

template <typename Real, typename Kernel>
static cudaError_t launch_tiles(Kernel kernel, const tile_launch<Real> &tiles, int cols, bool pairs)
{
  const size_t bytes = tile_bytes<Real>(tiles.args.d, cols, pairs);
  const cudaError_t e = weft_device_allow_shared((const void *) kernel, bytes);
  if (e != cudaSuccess) return e;
  kernel<<<dim3((unsigned) tiles.chunks, (unsigned) tiles.blocks), TILE_THREADS, bytes, tiles.stream>>>(tiles.args);
  return cudaGetLastError();
}
