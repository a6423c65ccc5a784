/* Attributes of any planes on Hopper: what searches over pairs and over triples by products of planes have in common.
 * See counted_hopper.cu. */
#pragma once

#include "mi/search/cuda/arrange.cuh"
extern "C" {
#include "mi/pairs/both/counted.h"
}

#define AREA (ROWS_A * ROWS_B)            /* pairs per tile */
#define COUNTS_BYTES ((size_t) 256 << 20) /* of a batch of tiles */
#define MAX_BATCH 4096                    /* tiles */

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
  tile_walk start; /* where a walk to tile `first` has come */
  uint64_t first;
  uint32_t units; /* tiles × products */
  uint32_t *out;
};

weft_status weft_mi_count_products(weft_ctx *ctx, const mi_counting *units, cudaStream_t stream);
/* Whether the classes' counts fit half a word, and the words that a stratum takes then. */
int weft_mi_counts_pack(const weft_mi_pack *p);
uint32_t weft_mi_counts_words(const weft_mi_pack *p);
/* Fills what comes from the classes: steps, class_step, per, words, packed. */
void weft_mi_counting_classes(const weft_mi_pack *p, mi_counting *args);

/* ---- pairs that are counted and screened at once: fused_hopper.cu ---- */

/* Members of the two groups that passed: more may have than were listed. */
struct mi_passed {
  uint2 *pairs;
  uint32_t *count, capacity;
};

struct mi_screened {
  const weft_mi_pack *pack; /* NULL: not for this */
  weft_mi_shape a, b;
  const uint8_t *planes[2];
  size_t count[2], room[2];
  float *side[2];
  tile_grid grid;
  mi_passed passed;
};

int weft_mi_screened_fit(const weft_mi_pack *p, const weft_mi_group *group_a, const weft_mi_group *group_b);
/* Arranges a group's planes, in as much room as those of the other order take. */
weft_status weft_mi_screened_arrange(weft_ctx *ctx, const weft_mi_resident *resident, const weft_mi_group *group,
                                     size_t room, uint8_t *out, cudaStream_t stream);
/* How much memory a side takes, and the function that makes it. */
size_t weft_mi_screened_floats(const weft_mi_pack *p, const weft_mi_group *group, size_t room);
weft_status weft_mi_screened_side(weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_resident *resident,
                                  const weft_mi_group *group, size_t room, float *out, cudaStream_t stream);
/* Lists what passes of tiles first .. first+tiles-1, of 128 × 256 pairs. */
weft_status weft_mi_screen_pairs(weft_ctx *ctx, const mi_screened *job, const mi_bar *bar, uint64_t first,
                                 uint32_t tiles, cudaStream_t stream);

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

/* Whether a panel of these groups can be searched here. */
int weft_mi_products_fit(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *group_a,
                         const weft_mi_group *group_b);
weft_status weft_mi_products_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *resident, const weft_mi_panel *panel, mi_products *out);
void weft_mi_products_end(mi_products *job);
/* Scores tiles first .. first+count-1, of 128 × 256 pairs. */
weft_status weft_mi_products_pairs(weft_ctx *ctx, mi_products *job, const mi_bar *bar, const mi_hits *hits,
                                   uint64_t first, uint64_t count, cudaStream_t stream);
/* How many pairs are scored in some milliseconds. */
double weft_mi_products_max_pairs(const mi_products *job);

/* ---- triples of complete attributes of two to five levels: few_levels.cu ---- */

/* Rows of the pack's planes by plane and place, UINT32_MAX where there is none. */
void weft_mi_plane_rows(const weft_mi_pack *p, uint32_t planes, uint32_t *out);

struct mi_levels {
  const weft_mi_pack *pack;
  const weft_mi_resident *resident;
  uint32_t levels;          /* the most of an attribute; one with fewer has empty planes */
  size_t plane;             /* bytes of an arranged plane of all attributes, in order of place */
  uint8_t *tiles, *masked;  /* planes; those within each level of the fixed attribute */
  uint32_t *plane_row;      /* [plane][place]: row of the pack's planes, UINT32_MAX where there is none */
  uint32_t *margins, *rows; /* within each level: [level and class][plane][place], [level and class] */
  uint32_t *counts, batch;
};

int weft_mi_levels_fit(const weft_ctx *ctx, const weft_mi_pack *p);
weft_status weft_mi_levels_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                 const weft_mi_resident *resident, mi_levels *out);
/* Scores the triples of the attribute at place `fixed` and all pairs behind it. */
weft_status weft_mi_levels_triples(weft_ctx *ctx, const mi_levels *job, uint32_t fixed, const mi_bar *bar,
                                   const mi_hits *hits, cudaStream_t stream);
double weft_mi_levels_max_pairs(const mi_levels *job);
