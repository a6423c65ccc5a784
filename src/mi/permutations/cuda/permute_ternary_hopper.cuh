/* The search of all pairs under many label sets; see permute_ternary_hopper.cu. */
#pragma once

#include "mi/permutations/cuda/permute_ternary.cuh"

/* Raises the greatest scores by tiles args->first .. args->first+args->tiles-1. */
weft_status weft_mi_search_labels(weft_ctx *ctx, const label_args *args, cudaStream_t stream);
