/* Pairs that are counted from codes on the device: those of attributes of many levels. One block per pair, its table in
 * shared memory; a table that does not fit is left to the CPU, whose functions for these pairs are at the end of
 * pair_tiles.h. */
#pragma once

#include "mi/search/cuda/panel.cuh"

/* What a pair's block does with its table. */
struct codes_out {
  mi_threshold threshold; /* with hits.items: offers the pair */
  mi_hits hits;
  double *mi, *interaction; /* else writes pair (i, j) to [i * nj + j]; without interaction, information of the two */
  int estimator;            /* in that case */
};

/* A panel in tiles of codes, and the tile that is on the device. */
struct mi_codes : mi_panel_sides {
  const weft_mi_resident *resident; /* for columns and the table of f */
  int classes;                      /* count by class */
  size_t side, across;
  uint64_t tiles, loaded; /* loaded: the row of tiles whose codes are there, plus one */
  uint32_t words;         /* of the largest table that is counted here */
  uint16_t *a, *b, *row_class, *host_codes;
  uint32_t *levels, *host_levels;
  size_t i0, ni, j0, nj; /* of the tile last counted */
};

/* Words of shared memory for a table of la × lb levels by class, with its margins. */
static inline uint64_t mi_codes_words(uint64_t la, uint64_t lb, uint64_t classes)
{
  return (la * lb + la + lb) * classes;
}
/* Words of shared memory that a block has for a pair's table; larger tables are left to the CPU. */
uint32_t weft_mi_codes_limit(weft_ctx *ctx);

/* Cuts a panel of x and y into tiles and takes memory for one. by_class: tables by class, else of the two attributes
 * alone. */
weft_status weft_mi_codes_plan(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const weft_mi_pack *x,
                               const weft_mi_resident *resident, const weft_mi_pack *y, const weft_mi_panel *panel,
                               int by_class, mi_codes *out);
/* Gives back what weft_mi_codes_plan() took. */
void weft_mi_codes_drop(weft_device_arena *mem, weft_arena *host, mi_codes *codes);
/* Counts tile `index`; codes->ni is 0 when there is nothing in it. */
weft_status weft_mi_codes_tile(weft_ctx *ctx, weft_device_arena *mem, mi_codes *codes, uint64_t index,
                               const codes_out *out);
