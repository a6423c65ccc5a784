/* Panels of a tiling on the device: pairs of attributes of two groups, in parts whose counts fit a buffer. */
#pragma once

#include "mi/search/cuda/search.cuh"
extern "C" {
#include "mi/search/both/pair_tiles.h"
}

#define COUNT_TILE 64 /* planes per side of a block */

/* One product of bit matrices: na × nb counts. */
struct product {
  size_t row_a, row_b;
  uint32_t first_word, steps;
  size_t out;
};

/* A part of a panel: members i0 .. i0+na-1 of one group against j0 .. j0+nb-1 of another. */
struct part {
  weft_mi_counts counts;
  weft_mi_log f;
  size_t na, nb, place_a, place_b, columns;
  uint32_t classes, per; /* per: of a stratum */
  uint64_t n;
  int64_t class_fixed;
  int same;
  const uint32_t *column;
  const int64_t *alone;
};

/* The groups whose members meet, of packs x and y. */
struct mi_panel_sides {
  const weft_mi_pack *x, *y;
  const weft_mi_group *group_a, *group_b;
  int same;
};

static inline mi_panel_sides mi_sides_of(const weft_mi_pack *x, const weft_mi_pack *y, const weft_mi_panel *panel)
{
  return { x, y, panel->group_a, panel->group_b, panel->same };
}

struct mi_panel : mi_panel_sides {
  const weft_mi_resident *rx, *ry;
  size_t rows, columns, across; /* attributes of a part each way; parts per row */
  uint64_t parts;
  uint32_t *counts;
  product *products, *host_products;
};

/* Parts of at most `pairs` pairs. */
weft_status weft_mi_panel_plan(weft_device_arena *mem, weft_arena *host, const weft_mi_pack *x,
                               const weft_mi_resident *rx, const weft_mi_pack *y, const weft_mi_resident *ry,
                               const weft_mi_panel *panel, size_t pairs, mi_panel *out);
/* Gives back what weft_mi_panel_plan() took. */
void weft_mi_panel_drop(weft_device_arena *mem, weft_arena *host, mi_panel *panel);
/* Counts part `index` and describes it; out->na is 0 when there is nothing in it. */
weft_status weft_mi_panel_count(weft_ctx *ctx, mi_panel *panel, uint64_t index, cudaStream_t stream, part *out);
