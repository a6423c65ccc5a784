/* The blocked sweep of real values on the device; see real.cu. */
#pragma once

#include "irm/cuda/shards.cuh"

struct irm_real_device;

/* Where a chain's counts are on the device: sums, squares and pairs of its blocks, l * k[1] + m. */
struct irm_real_counts {
  unsigned long long *links, *values;
  long long *pairs;
};

/* Room for the tables of both modes, which all chains use in turn. */
weft_status irm_real_open(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const irm_state *state,
                          irm_real_device **out);
/* μ and τ of every block, as tables for both modes. */
weft_status irm_real_parameters(weft_ctx *ctx, irm_real_device *device, const irm_state *state,
                                const irm_real_counts &counts);
/* Which clusters of the other mode have nodes; `sizes` are theirs, on the device. Before a mode's shards are drawn. */
weft_status irm_real_begin(weft_ctx *ctx, irm_real_device *device, int mode, const unsigned long long *sizes);
/* New labels of a shard's nodes; `labels` are those of its mode, `other` and `sizes` the other mode's. */
weft_status irm_real_draw(weft_ctx *ctx, irm_real_device *device, const irm_state *state, const irm_shard &shard,
                          const irm_shard_view &view, const double *log_stick, const unsigned long long *sizes,
                          const uint16_t *other, uint16_t *labels);
/* Adds the values of a shard and their squares to the blocks. */
weft_status irm_real_count(weft_ctx *ctx, irm_real_device *device, const irm_shard &shard, const irm_shard_view &view,
                           const uint16_t *own, const uint16_t *other, const irm_real_counts &counts);
/* What each block contributes to the log posterior. */
weft_status irm_real_scores(weft_ctx *ctx, irm_real_device *device, const irm_state *state,
                            const irm_real_counts &counts, double *scores);
