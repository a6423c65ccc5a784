/* Searches over pairs of a pack whose planes exceed the device's memory: blocks.h, with one threshold for all parts. */
#include "mi/search/cuda/progress.cuh"
#include "mi/pack/cuda/capacity.cuh"
#include "mi/pack/cuda/pack.cuh"
#include "mi/search/cuda/blocks.cuh"
#include "mi/pairs/cuda/pairs.cuh"
extern "C" {
#include "mi/search/both/blocks.h"
#include "mi/pack/pack.h"
}

struct blocks_job {
  weft_device_arena *mem;
  mi_collector *c;
};

static weft_status search_part(weft_ctx *ctx, void *data, const weft_mi_pack *part, double before, double share)
{
  weft_status st = WEFT_OK;
  const blocks_job *job = (const blocks_job *) data;
  weft_mi_resident *resident = NULL;
  WEFT_TRY(weft_mi_resident_make(ctx, part, &resident));
  job->c->before = before;
  job->c->share = share;
  WEFT_TRY(weft_mi_search_panels(ctx, job->mem, part, resident, job->c));
done:
  if (resident) weft_mi_resident_release(ctx, resident);
  return st;
}

weft_status weft_mi_search_blocks(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const mi_block_plan *plan, mi_collector *collector)
{
  blocks_job job = { mem, collector };
  if (plan->max_bytes <= 0)
    return weft_fail_memory(ctx, "device", -4 * plan->max_bytes, weft_device_available(ctx), "tiles");
  return weft_mi_blocks_each(ctx, pack, plan->plane, plan->max_bytes, search_part, &job);
}
