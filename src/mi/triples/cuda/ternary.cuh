/* Triples with rows sorted by the fixed attribute's level, on Hopper: what the kernel that counts and screens
 * (ternary_hopper.cu), exact scores (ternary_score.cu) and the search (ternary.cu) have in common. */
#pragma once

#include "mi/search/cuda/arrange.cuh"
extern "C" {
#include "mi/triples/cuda/ternary_screen.cuh"
}

#define MAX_FIXED 32    /* attributes held fixed in one launch */
#define FEW_THREADS 128 /* of blocks that have room beside one that screens */
#define TRIPLE_LEVELS 3

/* Triples that passed the screen: three positions in a number. */
struct mi_candidates {
  unsigned long long *items;
  uint32_t *count, capacity; /* count: that passed, also when more than there is room for */
};

/* Some fixed attributes, and all pairs of attributes from position `base` on behind each of them. Attributes go by
 * position here, the strongest first. */
struct mi_sorted {
  const uint8_t *planes;          /* [fixed]: arranged, sorted for this one */
  size_t bytes;                   /* of one */
  const weft_words_side *margins; /* [fixed][level][attribute from base on] */
  size_t room;                    /* attributes in `margins` */
  const weft_triples_fixed *of;   /* by position */
  uint32_t fixed[MAX_FIXED], fixed_count;
  uint32_t base, count;               /* count: of all attributes */
  tile_grid grid;                     /* of attributes from base on */
  uint32_t tiles;                     /* of one fixed attribute */
  uint32_t first, units;              /* of this launch: tiles of the first fixed attribute, then of the next */
  float threshold_mi, threshold_gain; /* in n bits */
  const float *pairs; /* what pairs say, in n bits, count × ld; NULL: no threshold for the interaction */
  size_t ld;
  int many;       /* more than WEFT_WORDS_FEW rows */
  uint32_t magic; /* WEFT_WORDS_MAGIC */
  mi_candidates passed;
};

/* A pack's planes by position. */
struct mi_placed {
  const uint32_t *planes;
  uint32_t words;
  const uint32_t *plane_row; /* [plane][position], UINT32_MAX where there is none */
  uint32_t count;
  uint32_t first[2], last[2]; /* words of a class */
  uint32_t class_rows[2];
};

/* A plane's word; rows of a class that are there, in a word of it. */
__device__ static inline uint32_t plane_word(const mi_placed &p, uint32_t position, uint32_t plane, uint32_t word)
{
  const uint32_t row = position < p.count ? __ldg(&p.plane_row[plane * p.count + position]) : UINT32_MAX;
  return row == UINT32_MAX ? 0 : __ldg(&p.planes[(size_t) row * p.words + word]);
}
__device__ static inline uint32_t valid_rows(const mi_placed &p, uint32_t c, uint32_t word)
{
  const uint32_t before = (word - p.first[c]) * 32;
  if (before >= p.class_rows[c]) return 0;
  return p.class_rows[c] - before >= 32 ? UINT32_MAX : (1u << (p.class_rows[c] - before)) - 1;
}

struct mi_collector;
/* Searches triples of attributes of at most three levels and two classes. *done: 0 where the device has no room. */
weft_status weft_mi_hopper_sorted(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *resident, mi_collector *collector, int *done);
