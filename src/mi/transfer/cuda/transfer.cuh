/* Shared by the kernels of transfer entropy: the data and a pass on the device, and how a score is recorded. */
#pragma once

#include "core/device/device.cuh"
#include "mi/transfer/both/transfer.h"

/* All pointers are the device's. */
struct transfer_pass {
  weft_transfer_data data;
  weft_transfer_pass goal;
  unsigned long long *found;
};

/* How planes lie. Rows of products are in the order of tiles_hopper.cuh: `each` rows for a gene, `genes` genes in 256
 * rows of side b, or 0: side a, one gene after another. */
struct transfer_planes {
  uint32_t *words;
  uint32_t count;  /* of planes for each gene */
  uint32_t length; /* words of a plane */
  int products;
  uint32_t each, genes, steps; /* products; steps of 256 bits */
  size_t stride;               /* 0: plane after plane, gene after gene; else genes side by side, `stride` of them */
};

/* Whether Hopper's kernel has these levels, here. */
int weft_transfer_products_fit(uint32_t levels, int device);
/* Sides of the products, without memory; the rows that they need. */
transfer_planes weft_transfer_product_planes(uint32_t levels, uint32_t steps, int of_targets);
size_t weft_transfer_product_rows(uint32_t levels, size_t genes, int of_targets);
weft_status weft_transfer_products(weft_ctx *ctx, const transfer_pass *pass, const transfer_planes *targets,
                                   const transfer_planes *sources, cudaStream_t stream);

/* Takes a score of a pair that has one; SUMS: returns G / df, in parts, which the caller adds up. */
__device__ static inline int64_t take_score(const transfer_pass &pass, uint32_t i, uint32_t j, int64_t fixed)
{
  const double ratio = weft_transfer_ratio(fixed, pass.goal.of_source[i], pass.goal.of_target[j]);
  if (pass.goal.goal == WEFT_TRANSFER_SUMS) return weft_transfer_part(ratio);
  const uint32_t bin = weft_transfer_bin(weft_transfer_z(ratio, pass.data.source_df[i] * pass.data.target_df[j]));
  if (pass.goal.goal == WEFT_TRANSFER_COUNT) {
    atomicAdd((unsigned long long *) pass.goal.counts + bin, 1ull);
  } else if (bin >= pass.goal.bin) {
    const unsigned long long at = atomicAdd(pass.found, 1ull);
    if (at < pass.goal.capacity) {
      pass.goal.pairs[at] = (uint64_t) i * pass.data.target_count + j;
      pass.goal.scores[at] = fixed;
    }
  }
  return 0;
}

/* Adds a warp's parts to a gene's sum. */
__device__ static inline void add_of_warp(int64_t *sums, size_t gene, int64_t part)
{
  for (int half = 16; half; half /= 2) part += __shfl_down_sync(0xffffffffu, part, half);
  if (threadIdx.x % 32 == 0 && part) atomicAdd((unsigned long long *) sums + gene, (unsigned long long) part);
}

__device__ static inline void add_own(int64_t *sums, size_t gene, int64_t part)
{
  if (part) atomicAdd((unsigned long long *) sums + gene, (unsigned long long) part);
}
