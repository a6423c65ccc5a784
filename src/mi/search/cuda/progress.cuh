/* How a search on the device goes through its work: few units at first, more as the threshold rises. */
#pragma once

#include "mi/search/cuda/search.cuh"
extern "C" {
#include "mi/search/both/pair_tiles.h"
}

/* What a search has found so far, and the device's buffer of more. */
struct mi_collector {
  const weft_mi_search *search;
  weft_mi_keeper keeper;
  mi_threshold threshold;
  mi_hits hits;
  weft_scored *buffer; /* on the host */
  cudaStream_t stream;
  int started;          /* the threshold is from single attributes */
  double before, share; /* of the whole search, 0 to 1: what lies behind, and what this part of it is */
};

/* Work in units, those dealt to this part of the search: `run` does the part's units first .. first+count-1; `until` is
 * roughly how many pairs (triples) come before one. Few at first, more as the threshold rises. */
struct mi_runner {
  void *job;
  uint64_t units;
  double max_pairs; /* between two polls */
  weft_status (*run)(weft_ctx *ctx, void *job, mi_collector *collector, uint64_t first, uint64_t count);
  double (*until)(const void *job, uint64_t units);
  int patient; /* tables have many cells: single attributes give no threshold worth a large start */
};

/* Runs all units: what they append to the hits is collected, and raises the threshold. */
weft_status weft_mi_run_all(weft_ctx *ctx, mi_collector *collector, const mi_runner *runner);

/* Raises the threshold to the last of the best among what was appended to the hits, and keeps none of these: they will
 * come again. */
weft_status weft_mi_raise_threshold(weft_ctx *ctx, mi_collector *collector);

/* Sends the positions of all columns, by which neighbours are recognised, to the device. */
weft_status weft_mi_send_near(weft_device_arena *mem, const weft_mi_near *near, size_t columns, weft_mi_near *out);

/* How many of all units are dealt to this part of the search, and which of all its k-th one is. */
static inline uint64_t units_dealt(const mi_collector *collector, uint64_t units)
{
  return weft_dealt(units, collector->search->part, collector->search->parts);
}
static inline uint64_t unit_dealt(const mi_collector *collector, uint64_t k)
{
  return weft_dealt_unit(k, collector->search->part, collector->search->parts);
}
