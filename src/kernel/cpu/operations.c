/* The table of operations of the CPU. */
#include "kernel/kernel.h"
#include "kernel/cpu/direct/direct.h"
#include "kernel/cpu/direct/single.h"
#include "kernel/cpu/direct/slopes.h"
#include "kernel/both/mesh.h"

static weft_status no_grid(weft_ctx *ctx, const weft_kernel_task *task, double reach, int *done, double *out,
                           weft_kernel_effort *effort)
{
  (void) ctx, (void) task, (void) reach, (void) out, (void) effort;
  *done = 0;
  return WEFT_OK;
}

const weft_kernel_ops weft_kernel_cpu = {
  weft_kernel_direct,   weft_kernel_direct_single, weft_kernel_slopes, weft_kernel_gaussian, no_grid,
  weft_kernel_mesh_sums
};
