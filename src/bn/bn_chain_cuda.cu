/* Chains on the device. */
#include "../base/device.cuh"
#include "bn_cuda.cuh"

extern "C" weft_status weft_bn_chain_cuda(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_run *run, weft_bn_chains *out)
{
  return weft_bn_chain_cpu(ctx, table, run, out);
}
