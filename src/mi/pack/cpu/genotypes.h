/* Genotypes of two bits, and byte codes of few levels, to bit planes sorted by class.
 *
 * Rows stay in order within a class, so 64 rows of the input give each class a run of bits: those where the row has the
 * class, pushed together. These rows are the same for every column, and so are the steps that push them. */
#pragma once

#include "mi/pack/pack.h"

#define WEFT_MI_SORTED_CLASSES 8u /* more: row by row */

/* How the rows of one class among 64 move: bits of step[k] go down by 2^k, and then stand at bit `at` of the class. */
typedef struct weft_mi_move {
  uint64_t rows, step[6];
  uint32_t count;
  size_t at;
} weft_mi_move;

typedef struct weft_mi_sorter {
  size_t n, words;     /* of the input; words of 64 rows */
  uint32_t classes;    /* 0: not made, because there are too many classes or too few columns without a genotype */
  uint64_t *counting;  /* rows of any class */
  int some;            /* not all rows count */
  weft_mi_move *moves; /* moves[word * classes + class] */
} weft_mi_sorter;

/* Plans how rows of `columns` are sorted into classes; without classes where no column needs it. Memory from `mem`. */
weft_status weft_mi_sorter_make(weft_arena *mem, const weft_mi_pack *pack, const weft_column *columns, size_t p,
                                const uint16_t *classes, weft_mi_sorter *out);

/* Levels of a column over the rows that count; *missing: whether any of these is, *all_missing: how many rows are. */
uint32_t weft_mi_genotypes_learn(const weft_mi_sorter *sorter, const uint8_t *packed, int na_level, int *missing,
                                 size_t *all_missing);
/* Planes and margins of the attribute at `place` of group g. `halves`: twice the words of a plane. */
void weft_mi_genotypes_write(const weft_mi_sorter *sorter, const weft_mi_pack *pack, const uint8_t *packed,
                             int na_level, const weft_mi_group *group, size_t place, uint64_t *halves);

/* Two bits of every row of the input, in its order, to those of the rows that count, sorted by class. */
void weft_mi_sort_bits(const weft_mi_sorter *sorter, const weft_mi_pack *pack, const uint64_t *low,
                       const uint64_t *high, uint64_t *lows, uint64_t *highs);
