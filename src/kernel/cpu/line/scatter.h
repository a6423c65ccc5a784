/* Cells and their moments without an order, for few queries. */
#pragma once

#include "kernel/cpu/line/build.h"

/* The same for a form of weft_line_narrow_series(), with neither references nor blocks. *done = 0 where cells would be
 * too many, or too narrow beside the coordinates. Some weight is positive. */
weft_status weft_line_scatter(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, weft_line *line, int *done);
