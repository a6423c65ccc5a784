/* Sums over the rows of the pairs of two blocks of variants, and the scores that follow from them; see tile.c. */
#pragma once

#include "mi/scan/scan.h"

enum { WEFT_SCAN_SIDE = 128 }; /* variants of a tile's side */

/* Some variants, and what does not depend on their partner. A variant has one column, its number of copies, or with
 * job->genotypes two: whether it is 1, and whether it is 2. */
typedef struct weft_scan_block {
  size_t first, count;
  double *value;    /* of each code, for each column of each variant: 0 where missing */
  size_t *start;    /* where its missing rows begin; count + 1 */
  uint32_t *absent; /* missing rows, ascending */
  double *own;      /* squares, sums with U, sums with e: 1 + k + outcomes for each column */
  double *lost;     /* sums over its missing rows: U'U (lower triangle), U'e, squares of e */
} weft_scan_block;

/* Each thread has its own. */
typedef struct weft_scan_workspace {
  double *gram, *sums, *squares, *scale; /* of U, a, b, z; with e; of e; squares before anything is taken off */
  double *both;                          /* as a block's `lost`, of the rows where both genotypes are missing */
  double *score;                         /* of one pair, for each outcome; NaN: none */
} weft_scan_workspace;

typedef struct weft_scan {
  const weft_scan_job *job;
  size_t k, outcomes, width, lost_width; /* width of `by_row`: root, U, e */
  size_t columns;                        /* of a variant: 1 or 2 */
  double *counts;                        /* of genotypes, WEFT_VARIANT_CODES for each variant */
  double *by_row;                        /* NULL where no genotype is missing */
  double *squares;                       /* of each outcome */
  double *left, *right, *plain;          /* rows of a tile: two columns a variant, times the root; b without it */
  double *four, *others;                 /* its sums: of these with each other; of a b with U and with e */
  weft_scan_block one, other;
  int team;
} weft_scan;

static inline double weft_scan_missing(const weft_scan *s, size_t j)
{
  return s->counts[j * WEFT_VARIANT_CODES + WEFT_GENOTYPE_MISSING];
}

/* Counts genotypes, and makes what all tiles share. */
weft_status weft_scan_prepare(weft_ctx *ctx, weft_arena *mem, weft_scan *s);
/* Memory for tiles of `side` variants a side; a thread's memory. */
weft_status weft_scan_take_tile(weft_arena *mem, size_t side, weft_scan *s);
weft_status weft_scan_take_workspace(const weft_scan *s, weft_arena *mem, weft_scan_workspace *out);
/* Variants first .. first + count - 1 become a block. Does not poll. */
void weft_scan_load(const weft_scan *s, size_t first, size_t count, weft_scan_block *part);
/* The sums of a tile of s->one and s->other, by products of matrices. */
weft_status weft_scan_sum_tile(weft_ctx *ctx, const weft_scan *s, double done, double total);
/* The same where both have one variant, in an order that depends on nothing else. Does not poll. */
void weft_scan_sum_pair(const weft_scan *s);
/* w->score of places i and j of the two blocks. Returns whether the first outcome has one. */
int weft_scan_score(const weft_scan *s, weft_scan_workspace *w, size_t i, size_t j);
