/* Permutation tests of pairs on Hopper: what permute_ternary.cu tells the kernel of permute_ternary_hopper.cu. */
#pragma once

#include "mi/search/cuda/search.cuh"
extern "C" {
#include "mi/search/cuda/hopper_layout.cuh"
#include "mi/search/cuda/screen_words.cuh"
}

/* A search for the greatest score of every set. */
struct label_args {
  uint32_t sets;
  int steps_all, steps;          /* k-steps of all rows, of a set's */
  const uint8_t *whole, *planes; /* of all rows; [set] */
  size_t bytes, count, room;
  tile_grid grid;
  uint64_t first, tiles; /* of this launch */
  const weft_words_side *sides;
  const float *own;
  const int64_t *alone;
  long long *start, *best; /* [set], in fixed point */
  int by_interaction;
  double base, scale;  /* a score's threshold: base + score * scale */
  uint32_t all, magic; /* packed rows; WEFT_WORDS_MAGIC */
  int many;            /* more than WEFT_WORDS_FEW rows */
  weft_mi_log f;
  int64_t class_fixed;
  const uint8_t *side; /* [place]: in which of two sets of attributes */
  const uint32_t *column;
  weft_mi_near near;
};
