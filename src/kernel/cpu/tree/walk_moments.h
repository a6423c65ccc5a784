/* What bounds the sum of a node, column by column. */
#pragma once

#include "kernel/cpu/tree/tree.h"

/* nodes * m * (d + 2): see weft_node_tile. */
weft_status weft_kernel_moments(weft_ctx *ctx, const weft_kernel_task *task, const weft_tree *reference,
                                double *moments);
