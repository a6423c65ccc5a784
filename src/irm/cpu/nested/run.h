/* Chains of nested groups; see run.c. */
#pragma once

#include "irm/irm.h"

weft_status weft_irm_nested_run(weft_ctx *ctx, const weft_irm_graph *graph, const weft_irm_model *model, int chains,
                                weft_irm_chain *chain, int64_t done, int64_t sweeps, weft_irm_trace *trace);
