/* The screen of triples with sorted rows; see ternary_hopper.cu. */
#pragma once

#include "mi/triples/cuda/ternary.cuh"

/* Launches the screen of the fixed attributes in `sorted`, and lists what passes. */
weft_status weft_mi_sorted_screen(weft_ctx *ctx, const mi_sorted *sorted, cudaStream_t stream);
