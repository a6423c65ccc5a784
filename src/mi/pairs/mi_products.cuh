/* Attributes of any planes on Hopper: searches over a panel of two groups. See mi_products_wgmma.cu. */
#ifndef WEFT_MI_PRODUCTS_CUH
#define WEFT_MI_PRODUCTS_CUH

#include "mi_pairs_cuda.cuh"
extern "C" {
#include "mi_products.h"
#include "mi_tiles.h"
}

struct mi_products {
  const weft_mi_pack *pack;
  const weft_mi_resident *r;
  const weft_mi_panel *panel;
  uint8_t *sides[2];          /* arranged planes; [1] is [0] where the panel is one group */
  uint32_t *counts;           /* [tile of a batch][word of classes][plane of a][plane of b][row][column] */
  tile_grid grid;
  uint64_t tiles;
  uint32_t batch;             /* tiles counted before they are scored */
  int packed;                 /* a word has the counts of two classes */
};

/* Whether a panel of these groups can be searched here. */
int weft_mi_products_fit(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *g, const weft_mi_group *h);
weft_status weft_mi_products_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *r, const weft_mi_panel *panel, mi_products *out);
void weft_mi_products_end(weft_device_arena *mem, mi_products *job);
/* Scores tiles first .. first+count-1, of 128 × 256 pairs. */
weft_status weft_mi_products_pairs(weft_ctx *ctx, const mi_products *job, const mi_bar *bar, const mi_hits *hits,
                                   uint64_t first, uint64_t count, cudaStream_t s);
/* How many pairs take a moment. */
double weft_mi_products_most(const mi_products *job);

#endif
