/* Attributes of any planes on Hopper: what searches over pairs and over triples by products of planes have in common.
 * See counted_hopper.cu. "products" in these names means this engine, which lets fused_hopper.cu do what it can
 * (src/mi/README.md, Names). */
#pragma once

#include "mi/search/cuda/arrange.cuh"
#include "mi/pairs/cuda/fused_hopper.cuh"
extern "C" {
#include "mi/pairs/cuda/counted.cuh"
#include "mi/search/both/pair_tiles.h"
}

#define COUNTS_BYTES ((size_t) WEFT_MI_COUNTED_PRODUCTS * AREA * 4) /* of a batch of tiles: at least one */
#define MAX_BATCH 4096                                              /* tiles */

/* Counts of tiles: [tile][stratum][word of classes][plane of a][plane of b][row][column]. The strata of pairs are runs
 * of k-steps; those of triples, the levels of the fixed attribute, are copies of side a. */
struct mi_counting {
  const uint8_t *a, *b;                       /* arranged planes */
  size_t plane_a, plane_b;                    /* bytes of one plane of all attributes */
  size_t stratum_a;                           /* bytes from one stratum's side a to the next's */
  int steps;                                  /* k-steps of a row */
  int class_step[WEFT_MI_PLANAR_CLASSES + 1]; /* first k-step of each class */
  uint32_t stratum_classes;                   /* classes from one stratum's k-steps to the next's */
  uint32_t per, words;                        /* classes of a stratum, and words these take */
  uint32_t planes_a, planes_b, products;
  int packed; /* a word has the counts of two classes, the first in its high half */
  tile_grid grid;
  const uint32_t *low_a, *high_b; /* of each row and column of tiles: counted where low is below high; NULL: all are */
  tile_walk start;                /* where a walk to tile `first` has come */
  uint64_t first;
  uint32_t units; /* tiles × products */
  uint32_t *out;
};

/* Launches the counting of units->units units of work. */
weft_status weft_mi_count_products(weft_ctx *ctx, const mi_counting *units, cudaStream_t stream);
/* Whether the classes' counts fit half a word, and the words that a stratum takes then. */
int weft_mi_counts_pack(const weft_mi_pack *p);
uint32_t weft_mi_counts_words(const weft_mi_pack *p);
/* Fills what comes from the classes: steps, class_step, per, words, packed. */
void weft_mi_counting_classes(const weft_mi_pack *p, mi_counting *args);

/* ---- pairs ---- */

struct mi_products {
  const weft_mi_pack *pack;
  const weft_mi_resident *resident;
  const weft_mi_panel *panel;
  weft_device_arena *mem;
  uint8_t *sides[2]; /* arranged planes; [1] is [0] where the panel is one group */
  int order;         /* theirs: 0 none yet, 1 plane by plane, 2 for fused_hopper.cu */
  mi_screened screened;
  uint32_t *counts; /* taken when first used */
  tile_grid grid;
  uint64_t tiles;
  uint32_t batch; /* tiles counted before they are scored */
};

/* Prepares the search of a panel. *out must be given to weft_mi_products_end(), also after an error. */
weft_status weft_mi_products_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *resident, const weft_mi_panel *panel, mi_products *out);
/* Gives back what the search of a panel took. */
void weft_mi_products_end(mi_products *job);
/* Scores tiles first .. first+count-1, of 128 × 256 pairs. */
weft_status weft_mi_products_pairs(weft_ctx *ctx, mi_products *job, const mi_threshold *threshold, const mi_hits *hits,
                                   uint64_t first, uint64_t count, cudaStream_t stream);
/* How many pairs are scored in some milliseconds. */
double weft_mi_products_max_pairs(const mi_products *job);
