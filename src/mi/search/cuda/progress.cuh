/* How a search on the device goes through its work: few units at first, more as the bar rises. */
#pragma once

#include "mi/search/cuda/search.cuh"

/* What a search has found so far, and the device's buffer of more. */
struct mi_collector {
  const weft_mi_search *search;
  weft_mi_keeper keeper;
  mi_bar bar;
  mi_hits hits;
  weft_scored *buffer; /* on the host */
  cudaStream_t stream;
  int started;          /* the bar is from single attributes */
  double before, share; /* of the whole search, 0 to 1: what lies behind, and what this part of it is */
};

/* Work in units, those dealt to this part of the search: `run` does the part's units first .. first+count-1; `until` is
 * roughly how many pairs (triples) come before one. Few at first, more as the bar rises. */
struct mi_runner {
  void *job;
  uint64_t units;
  double max_pairs; /* between two polls */
  weft_status (*run)(weft_ctx *ctx, void *job, mi_collector *c, uint64_t first, uint64_t count);
  double (*until)(const void *job, uint64_t units);
  int patient; /* tables have many cells: single attributes give no bar worth a large start */
};

/* Runs all units: what they append to the hits is collected, and raises the bar. */
weft_status weft_mi_run_all(weft_ctx *ctx, mi_collector *collector, const mi_runner *runner);

/* Sends the list by which neighbours are recognised, for so many columns, to the device. */
weft_status weft_mi_send_near(weft_device_arena *mem, const weft_mi_near *near, size_t columns, weft_mi_near *out);

/* All pairs of a pack on the device: pairs.cu. */
weft_status weft_mi_search_panels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, mi_collector *collector);

/* ---- planes that exceed the device: blocks.cu ---- */

weft_status weft_mi_search_blocks(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const mi_block_plan *plan, mi_collector *collector);

static inline uint64_t units_dealt(const mi_collector *collector, uint64_t units)
{
  return weft_dealt(units, collector->search->part, collector->search->parts);
}
static inline uint64_t unit_dealt(const mi_collector *collector, uint64_t k)
{
  return weft_dealt_unit(k, collector->search->part, collector->search->parts);
}

/* ---- on Hopper: search_hopper.cu ---- */

/* Whether a group's pairs go by 1-bit wgmma: binary attributes with two classes; at most three levels, two to eight
 * classes. */
int weft_mi_fits_binary(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *group);
int weft_mi_fits_planar(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *group);

/* Pairs of a panel whose groups fit, and triples of a pack of one group that does. */
weft_status weft_mi_hopper_binary(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, const weft_mi_panel *panel, mi_collector *collector);
weft_status weft_mi_hopper_planar(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, const weft_mi_panel *panel, mi_collector *collector);
weft_status weft_mi_hopper_products(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                    const weft_mi_resident *resident, const weft_mi_panel *panel,
                                    mi_collector *collector);
weft_status weft_mi_hopper_triples(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *resident, mi_collector *collector);
/* Triples of attributes of at most three levels and two classes. *done: 0 where the device has no room. */
int weft_mi_sorted_fit(const weft_ctx *ctx, const weft_mi_pack *p);
weft_status weft_mi_hopper_sorted(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *resident, mi_collector *collector, int *done);
/* Triples of a pack that weft_mi_levels_fit(). */
weft_status weft_mi_hopper_levels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *resident, mi_collector *collector);
