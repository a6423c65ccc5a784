/* The graph on the device, in shards; see shards.cu. */
#pragma once

#include <vector>
#include "irm/cuda/sweep.cuh"

/* Links first .. last-1 of a shard, all of heavy node `slot`. */
struct irm_piece {
  uint32_t slot, first, last;
};

/* Nodes first .. first+count-1 of a mode, the first `light` in the order of work light. */
struct irm_shard {
  int mode;
  int64_t first, count, link_first, links, missing_first, missing_links;
  int64_t light, order_at, piece_at, pieces; /* into the mode's order and pieces */
  size_t bytes;
  uint8_t *resident;
};

/* Where a shard's parts are on the device. */
struct irm_shard_view {
  uint32_t *start, *missing_start;
  int32_t *to, *weight, *missing_to, *order;
  irm_piece *pieces;
};

struct irm_shards {
  weft_device_arena *mem;
  weft_arena *host;
  const weft_irm_graph *graph;
  int light_ok[2];          /* the mode may have light nodes */
  int64_t first[2], end[2]; /* the nodes of each mode that are this device's to draw */
  std::vector<irm_shard> *list;
  int32_t *order[2];
  irm_piece *pieces[2];
  uint8_t *streamed; /* room for the largest shard that does not stay */
};

/* Cuts both modes into shards and sends those that fit into `room` bytes; a part of `room` is kept for streaming the
 * others, if there are any. */
weft_status irm_shards_make(weft_ctx *ctx, irm_shards *shards, double room);
/* The shard's memory on the device: where it stays, or where it has just been sent. */
weft_status irm_shard_bring(irm_shards *shards, const irm_shard &shard, irm_shard_view *view);
