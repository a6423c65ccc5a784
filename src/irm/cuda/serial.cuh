/* Labels drawn one node after another on the device; see serial.cu. Everything else of such a sweep is the
 * host's. */
#pragma once

#include "irm/cuda/sweep.cuh"

struct irm_serial;

/* The graph and room for one chain, from the arenas. */
weft_status irm_serial_open(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const irm_state *state,
                            irm_serial **out);
/* New labels of all modes in the state, from its blocks and, for the blocked sampler, its log μ. */
weft_status irm_serial_labels(weft_ctx *ctx, irm_serial *serial, irm_state *state, double done, double total);
