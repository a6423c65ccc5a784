/* Light nodes on Hopper's 8-bit tensor cores; see light_hopper.cu. */
#pragma once

#include "irm/cuda/sweep.cuh"

/* Whether this build has code for compute capability 9.0a, and whether the kernels take this many clusters of the two
 * modes. */
int irm_wgmma_built(void);
int irm_wgmma_fits(int32_t k, int32_t k_other);
/* Bytes of tables.tiles; the tables in the kernel's order, from tables.planes. */
size_t irm_wgmma_bytes(int32_t k, int32_t k_other);
weft_status irm_wgmma_arrange(weft_ctx *ctx, const irm_device_tables &tables, cudaStream_t stream);
/* Draws the labels of a shard's light nodes. */
weft_status irm_wgmma_draw(weft_ctx *ctx, const irm_light_job &job, cudaStream_t stream);
