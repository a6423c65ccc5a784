/* Triples of complete attributes of two to five levels on Hopper; see few_levels.cu. */
#pragma once

#include "mi/search/cuda/search.cuh"

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

/* Arranges the planes and takes the room for one fixed attribute after the other, from `mem`. */
weft_status weft_mi_levels_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                 const weft_mi_resident *resident, mi_levels *out);
/* Scores the triples of the attribute at place `fixed` and all pairs behind it. */
weft_status weft_mi_levels_triples(weft_ctx *ctx, const mi_levels *job, uint32_t fixed, const mi_threshold *threshold,
                                   const mi_hits *hits, cudaStream_t stream);
/* How many triples are scored in some milliseconds. */
double weft_mi_levels_max_pairs(const mi_levels *job);
