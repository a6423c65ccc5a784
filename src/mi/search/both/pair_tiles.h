/* The pairs of a pack's attributes, or of two packs', cut into tiles; counting a tile; and keeping the best. */
#pragma once

#include "mi/search/search.h"

/* Tiles of one pair of groups. */
typedef struct weft_mi_panel {
  const weft_mi_group *group_a, *group_b;
  int coded;            /* counted from codes */
  int same;             /* one group: only pairs i < j, or with the diagonal too */
  size_t rows, columns; /* attributes per tile */
  size_t across, first; /* tiles per row of tiles; index of the first tile */
} weft_mi_panel;

typedef struct weft_mi_tiling {
  const weft_mi_pack *x, *y;
  weft_mi_panel *panels;
  size_t panel_count, tiles;
  size_t both, cells, codes; /* what the largest tile needs: counts, cells of one table, attributes from codes */
} weft_mi_tiling;

/* A tile: members i0 .. i0+ni-1 of panel->group_a against j0 .. j0+nj-1 of panel->group_b. */
typedef struct weft_mi_tile {
  const weft_mi_panel *panel;
  size_t i0, ni, j0, nj;
} weft_mi_tile;

/* Cuts the pairs of x's attributes (y NULL), or of x's with y's, into tiles; panels are from `mem`. */
weft_status weft_mi_tiling_make(weft_arena *mem, const weft_mi_pack *x, const weft_mi_pack *y, weft_mi_tiling *out);
/* 0 when there is nothing in tile `index` (below the diagonal). */
int weft_mi_tile_at(const weft_mi_tiling *tiling, size_t index, weft_mi_tile *out);
/* Counts a tile that is not coded into `both`. */
void weft_mi_tile_count(const weft_mi_tiling *tiling, const weft_mi_tile *tile, uint32_t *both, weft_mi_counts *out);

/* ---- scores of one table ---- */

/* Fixed-point joint information of a table of complete attributes. `area`: cells of a part. */
int64_t weft_mi_joint(const weft_mi_pack *pack, const uint32_t *cells, uint32_t groups, size_t area);
/* Fixed-point information about the class of the attributes in `mask` (bit 0: the groups, 1: a, 2: b), over the rows in
 * the table; *n: how many these are. `work`: room for as many words as the table has. */
int64_t weft_mi_of_table(const weft_mi_pack *pack, const uint32_t *cells, uint32_t groups, uint32_t la, uint32_t lb,
                         int mask, uint32_t *work, uint64_t *n);

/* ---- keeping ---- */

/* What a thread has found: the best `top`, or all. */
typedef struct weft_mi_keeper {
  weft_ctx ctx; /* a thread's own, so that it can take memory */
  weft_arena mem;
  weft_status st;
  int bounded;
  weft_topk best;
  weft_scored *all;
  size_t count, capacity;
} weft_mi_keeper;

/* Begins a thread's keeper of the best `top` of `possible` tuples; SIZE_MAX: of all. weft_mi_keepers_end() frees it. */
weft_status weft_mi_keeper_begin(weft_ctx *ctx, weft_mi_keeper *k, size_t top, size_t possible);
/* Adds a tuple. When memory is short, the keeper's status says so. */
void weft_mi_keep(weft_mi_keeper *k, double score, uint64_t index);
/* The threshold that a score must reach to be worth keeping. */
static inline double weft_mi_keeper_threshold(const weft_mi_keeper *k)
{
  return k->bounded ? k->best.threshold.score : -INFINITY;
}
/* Merges all threads' into `out`, best first; ends the keepers. */
weft_status weft_mi_keepers_end(weft_ctx *ctx, weft_mi_keeper *keepers, int threads, weft_arena *mem,
                                weft_mi_found *out);
/* The same when `st` is WEFT_OK; otherwise frees the first `begun` keepers and returns `st`. */
weft_status weft_mi_keepers_close(weft_ctx *ctx, weft_status st, weft_mi_keeper *keepers, int begun, weft_arena *mem,
                                  weft_mi_found *out);

/* ---- pacing ---- */

/* How many tiles to run between two polls: some 30 ms of work, found by the clock. */
typedef struct weft_mi_pace {
  size_t batch;
  double started;
} weft_mi_pace;
/* Before and after a batch: takes the time, and chooses the next batch's size by it. */
void weft_mi_pace_start(weft_mi_pace *p);
void weft_mi_pace_next(weft_mi_pace *p);

/* For each place, its attribute's information about the class, over the pack's rows; 0 for attributes with missing
 * values. */
void weft_mi_marginals(const weft_mi_pack *pack, int64_t *out);
