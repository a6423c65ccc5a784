/* Searches over pairs and triples on the device: where the threshold starts, and which kernels search a pack. */
#include <cmath>
#include <cstring>
#include "mi/plan.h"
#include "mi/pairs/cuda/binary_hopper.cuh"
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/search/cuda/progress.cuh"
#include "mi/pack/cuda/capacity.cuh"
#include "mi/pack/cuda/pack.cuh"
#include "mi/triples/cuda/few_levels.cuh"
#include "mi/triples/cuda/quadruples.cuh"
#include "mi/search/cuda/search_hopper.cuh"
#include "mi/search/cuda/blocks.cuh"
#include "mi/pairs/cuda/pairs.cuh"
#include "mi/triples/cuda/ternary.cuh"
extern "C" {
#include "mi/search/cpu/tuples.h"
}

#define HITS (2 * (uint64_t) WEFT_MI_TRIPLES_KEPT)
#define SLACK_UNITS ((int64_t) 1 << 20) /* with four per row, more than the rounding of f adds up to */

/* A tuple of complete attributes has at least the information of each of its members alone. When the r strongest
 * attributes are in enough tuples to fill what is kept, no tuple that scores less than the r-th will be kept. */
static void start_threshold(const weft_mi_pack *pack, const weft_mi_resident *resident, const weft_mi_search *search,
                            mi_collector *collector)
{
  const double p = (double) resident->complete;
  if (!collector->keeper.bounded || search->by_interaction || search->min_gain > -INFINITY) return;
  if (search->near.chromosome) return; /* the number of tuples that are left is not known */
  for (size_t g = 0; g < pack->group_count; g++)
    if (pack->groups[g].side != 3) return;
  for (size_t k = 0; k < MI_STRONGEST && k < resident->complete; k++) {
    const double left = p - (double) k - 1;
    if (weft_mi_choose(p, search->order) - weft_mi_choose(left, search->order) < (double) collector->keeper.best.k)
      continue;
    const int64_t sure = resident->strongest[k] - SLACK_UNITS - 4 * (int64_t) pack->n;
    if (sure <= 0) return;
    collector->threshold.score = weft_mi_bits(sure, resident->f.unit, pack->n);
    collector->started = 1;
    return;
  }
}

/* The tests' build sorts rows for few attributes alone, so that tests see both engines of binary triples. */
#ifdef WEFT_TESTS
#  define SORTED_BINARY 150
#else
#  define SORTED_BINARY WEFT_MI_SORTED_BINARY
#endif

/* weft_mi_ops.search on the device: takes the buffer of hits, starts the threshold, and chooses the engine of pairs or
 * triples; pairs of a pack that does not fit are searched in blocks. */
extern "C" weft_status weft_mi_search_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                           const weft_mi_search *search, weft_arena *out_mem, weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const double possible = weft_mi_choose((double) pack->p, search->order);
  mi_collector collector;
  mi_block_plan blocks;
  const weft_mi_facts facts = weft_mi_facts_of(pack, weft_mi_wgmma_ready(ctx->device));
  const weft_mi_engine engine = weft_mi_triples_engine(&facts, SORTED_BINARY);
  int begun = 0;
  memset(&collector, 0, sizeof collector);
  if ((search->order == 3 && (search->top > WEFT_MI_TRIPLES_KEPT || engine == WEFT_MI_TRIPLES)) ||
      (search->order > 3 && !weft_mi_fits_quadruples(&facts, search))) {
    st = weft_fail(ctx, WEFT_ERR_DEVICE,
                   "This device cannot search these tuples; see ?mi_triples."); /* R has asked the plan before */
    goto done;
  }
  collector.search = search;
  collector.share = 1;
  collector.threshold.score = -INFINITY;
  collector.threshold.index = UINT64_MAX;
  collector.threshold.min_mi = search->min_mi;
  collector.threshold.min_gain = search->min_gain;
  collector.threshold.by_interaction = search->by_interaction;
  collector.stream = mem.stream;
  collector.hits.capacity = HITS;
  WEFT_DEVICE_TAKE(collector.hits.items, &mem, collector.hits.capacity);
  WEFT_DEVICE_TAKE(collector.hits.count, &mem, 1);
  WEFT_TAKE(collector.buffer, &host, collector.hits.capacity);
  WEFT_TRY(weft_mi_keeper_begin(ctx, &collector.keeper, search->top, possible < 1 ? 1 : (size_t) fmin(possible, 1e15)));
  begun = 1;
  collector.threshold.columns = pack->columns;
  WEFT_TRY(weft_mi_send_near(&mem, &search->near, pack->columns, &collector.threshold.near));
  if (search->order == 2 && !*device && !weft_mi_device_holds(ctx, pack, 0, &blocks)) {
    WEFT_TRY(weft_mi_search_blocks(ctx, &mem, pack, &blocks, &collector));
    goto done;
  }
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
  start_threshold(pack, *device, search, &collector);
  if (search->order == 2)
    WEFT_TRY(weft_mi_search_panels(ctx, &mem, pack, *device, &collector));
  else if (search->order == 4)
    WEFT_TRY(weft_mi_quadruples(ctx, &mem, pack, *device, &collector));
  else if (engine == WEFT_MI_BINARY_TRIPLES)
    WEFT_TRY(weft_mi_hopper_triples(ctx, &mem, pack, *device, &collector));
  else {
    int searched = 0;
    if (engine == WEFT_MI_SORTED_TRIPLES)
      WEFT_TRY(weft_mi_hopper_sorted(ctx, &mem, pack, *device, &collector, &searched));
    if (!searched) WEFT_TRY(weft_mi_hopper_levels(ctx, &mem, pack, *device, &collector));
  }
done:
  if (begun && st == WEFT_OK)
    st = weft_mi_keepers_end(ctx, &collector.keeper, 1, out_mem, out);
  else if (begun)
    weft_arena_end(&collector.keeper.mem);
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
