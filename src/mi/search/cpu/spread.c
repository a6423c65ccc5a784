/* Searches divided among the devices of a call; see mi/search/search.h and core/together/spread.h. Each device finds
 * the best of its own tuples; the order of scores is total, so the best of these are what one search finds. */
#include "mi/search/both/pair_tiles.h"
#include "mi/permutations/cpu/permute.h"
#include "mi/search/cpu/spread.h"

static weft_mi_search part_of(const weft_mi_search *whole, size_t part, size_t parts)
{
  weft_mi_search own = *whole;
  own.part = whole->part * parts + part;
  own.parts = whole->parts * parts;
  return own;
}

/* ---- tuples ---- */

typedef struct {
  const weft_mi_ops *ops;
  const weft_mi_pack *pack;
  weft_mi_resident **devices;
  const weft_mi_search *search;
  weft_ctx *ctx;   /* the call's */
  weft_arena *mem; /* of each part */
  weft_mi_found *found;
} search_job;

static weft_status search_part(weft_ctx *ctx, size_t part, void *data)
{
  search_job *job = data;
  const weft_mi_search own = part_of(job->search, part, (size_t) job->ctx->device_count);
  job->mem[part].ctx = ctx;
  const weft_status st =
      job->ops->search(ctx, job->pack, &job->devices[part], &own, &job->mem[part], &job->found[part]);
  job->mem[part].ctx = job->ctx;
  return st;
}

/* Merges what the parts found, each best first. */
static weft_status merge(weft_arena *mem, const weft_mi_found *found, size_t parts, size_t top, weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  size_t total = 0, at[WEFT_MOST_DEVICES] = { 0 };
  for (size_t k = 0; k < parts; k++) total += found[k].count;
  out->count = total < top ? total : top;
  WEFT_TAKE(out->items, mem, out->count);
  for (size_t i = 0; i < out->count; i++) {
    size_t best = parts;
    for (size_t k = 0; k < parts; k++)
      if (at[k] < found[k].count &&
          (best == parts || weft_scored_before(found[k].items[at[k]], found[best].items[at[best]])))
        best = k;
    out->items[i] = found[best].items[at[best]++];
  }
done:
  return st;
}

/* Divides a search among the call's devices and merges what they found; with one device, just searches there. */
weft_status weft_mi_search_spread(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                  weft_mi_resident **devices, const weft_mi_search *search, weft_arena *mem,
                                  weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  const size_t parts = (size_t) ctx->device_count;
  weft_arena own[WEFT_MOST_DEVICES];
  weft_mi_found found[WEFT_MOST_DEVICES] = { { NULL, 0 } };
  search_job job = { ops, pack, devices, search, ctx, own, found };
  if (parts == 1) return ops->search(ctx, pack, devices, search, mem, out);
  for (size_t k = 0; k < parts; k++) own[k] = weft_arena_begin(ctx);
  WEFT_TRY(weft_spread(ctx, search_part, &job));
  WEFT_TRY(merge(mem, found, parts, search->top, out));
done:
  for (size_t k = 0; k < parts; k++) weft_arena_end(&own[k]);
  return st;
}

/* ---- permutations ---- */

typedef struct {
  const weft_mi_ops *ops;
  const weft_mi_pack *pack;
  const weft_mi_search *search;
  const uint32_t *columns;
  size_t count, permutations, parts;
  uint64_t key;
  double *at_least; /* count × parts */
  double *greatest;
} permute_job;

static weft_status permute_part(weft_ctx *ctx, size_t part, void *data)
{
  permute_job *job = data;
  const weft_mi_search own = part_of(job->search, part, job->parts);
  return weft_mi_permute_pairs(ctx, job->ops, job->pack, &own, job->columns, job->count, job->permutations, job->key,
                               job->at_least + part * job->count, job->greatest);
}

/* Deals permutations to the call's devices and adds up what each has counted. */
weft_status weft_mi_permute_spread(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                   const weft_mi_search *search, const uint32_t *columns, size_t count,
                                   size_t permutations, uint64_t key, double *at_least, double *greatest)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t parts = (size_t) ctx->device_count;
  permute_job job = { ops, pack, search, columns, count, permutations, parts, key, NULL, greatest };
  WEFT_TAKE0(job.at_least, &mem, count * parts);
  WEFT_TRY(weft_spread(ctx, permute_part, &job));
  for (size_t k = 0; k < count; k++) {
    at_least[k] = 0;
    for (size_t part = 0; part < parts; part++) at_least[k] += job.at_least[part * count + k];
  }
done:
  weft_arena_end(&mem);
  return st;
}
