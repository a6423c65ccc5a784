/* Triples with rows sorted by the fixed attribute's level, on Hopper: what the kernel that counts and screens
 * (mi_triples_wgmma.cu) and all around it (mi_sorted_cuda.cu) have in common. */
#ifndef WEFT_MI_TRIPLES_CUH
#define WEFT_MI_TRIPLES_CUH

#include "mi_arrange.cuh"
extern "C" {
#include "mi_triples.h"
}

#define MOST_FIXED 32           /* attributes held fixed in one launch */

/* Triples that passed the screen: three positions in a number. */
struct mi_candidates {
  unsigned long long *items;
  uint32_t *count, capacity;    /* count: that passed, also when more than there is room for */
};

/* Some fixed attributes, and all pairs of attributes from position `base` on behind each of them. Attributes go by
 * position here, the strongest first. */
struct mi_sorted {
  const uint8_t *planes;        /* [fixed]: arranged, sorted for this one */
  size_t bytes;                 /* of one */
  const float4 *margins;        /* [fixed][level][attribute from base on]: weft_triples_side */
  size_t room;                  /* attributes in `margins` */
  const weft_triples_fixed *of; /* by position */
  uint32_t fixed[MOST_FIXED], fixed_count;
  uint32_t base, count;         /* count: of all attributes */
  tile_grid grid;               /* of attributes from base on */
  uint32_t tiles;               /* of one fixed attribute */
  uint32_t first, units;        /* of this launch: tiles of the first fixed attribute, then of the next */
  float bar_mi, bar_gain;       /* in n bits */
  const float *pairs;           /* what pairs say, in n bits, count × ld; NULL: no bar for the interaction */
  size_t ld;
  int many;                     /* more than WEFT_TRIPLES_FEW rows */
  uint32_t magic;               /* WEFT_TRIPLES_MAGIC */
  uint32_t apart;               /* nanoseconds from one warpgroup's start to the next's */
  mi_candidates passed;
};

weft_status weft_mi_sorted_screen(weft_ctx *ctx, const mi_sorted *t, cudaStream_t s);

#endif
