/* What the network methods share. */
#ifndef WEFT_MI_NETWORK_H
#define WEFT_MI_NETWORK_H

#include "../base/arena.h"
#include "mi.h"

#ifdef __cplusplus
extern "C" {
#endif

weft_network_op weft_network_cpu, weft_network_cuda;

/* An error unless m is symmetric (to 1e-8 of its greatest entry) and has no NaN or infinity off the diagonal. */
weft_status weft_network_check(weft_ctx *ctx, const weft_network_job *job);

#ifdef __cplusplus
}
#endif
#endif
