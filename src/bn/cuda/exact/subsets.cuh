/* A word for each subset of the nodes, for the exact answers (best_graph.cu, orders.cu): 8 × 2^p bytes, 137 GB for 34
 * nodes. Where the call's device does not hold them, they are cut into parts by the highest nodes; the other devices of
 * the call take what parts they have room for, then the host, whose memory the device reads and writes through the bus.
 * One device does the work, so that results are the same wherever the words are. */
#pragma once

#include "core/device/device.cuh"

#define WEFT_BN_SUBSET_PARTS 64
#define WEFT_BN_SUBSET_PART_BITS 10 /* a part has 2^10 words at least: blocks of kernels lie within one */

/* The arguments of kernels. */
struct weft_bn_subsets {
  int part_bits;
  uint64_t *part[WEFT_BN_SUBSET_PARTS];
};

/* The word of a subset; those that differ in the lowest WEFT_BN_SUBSET_PART_BITS nodes alone follow each other. */
static __host__ __device__ inline uint64_t *weft_bn_subset_at(const weft_bn_subsets &subsets, uint64_t subset)
{
  return subsets.part[subset >> subsets.part_bits] + (subset & (((uint64_t) 1 << subsets.part_bits) - 1));
}

/* Who owns the parts. */
struct weft_bn_subset_store {
  weft_bn_subsets subsets;
  weft_device_arena *mem;
  weft_arena host;
  uint64_t *pinned[WEFT_BN_SUBSET_PARTS]; /* host memory that the device may use */
  weft_ctx *others;                       /* contexts of the other devices */
  weft_device_arena *arenas;              /* and their memory */
  int other_count, pinned_count;
};

/* Takes words for 2^p subsets, without any contents. The store is ended before `mem`, whether this succeeded or not. */
weft_status weft_bn_subsets_take(weft_device_arena *mem, int p, weft_bn_subset_store *out);
/* Waits for the work on them, then gives everything back. A store of zeros is left alone. */
void weft_bn_subsets_end(weft_bn_subset_store *store);
