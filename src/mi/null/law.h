/* The distribution of a table's score when its margins are fixed: exactly, by a walk over all tables, or by a smooth
 * approximation. exact_test.c says which is used. */
#pragma once

#include "core/call/arena.h"
#include "core/numbers/math.h"

/* Margins of a table, the least first, and logarithms that depend on no table. */
typedef struct weft_mi_margins {
  const uint32_t *levels, *classes;
  uint32_t l, k;
  uint64_t n;
} weft_mi_margins;

typedef struct weft_mi_logs {
  double *factorial; /* log x!, x = 0 .. known - 1 */
  double *entropy;   /* x log x */
  size_t known;
} weft_mi_logs;

/* Distinct margins of a table: r and c, of which m levels and w classes have each. */
#define WEFT_MI_MAX_GROUPS 48  /* of classes, which have fewer groups than levels */
#define WEFT_MI_MAX_CELLS 2048 /* groups of levels by groups of classes: enough for any table of 1,000 rows */
typedef struct weft_mi_groups {
  uint32_t g_count, h_count;
  double n, r[WEFT_MI_MAX_CELLS], c[WEFT_MI_MAX_GROUPS], m[WEFT_MI_MAX_CELLS], w[WEFT_MI_MAX_GROUPS];
} weft_mi_groups;

/* Mean and variance of the sum of f over the cells of all tables (table_moments.c); the operations of the latter,
 * roughly. room_*: as many numbers as f. */
double weft_mi_mean(const weft_mi_groups *groups, const double *f);
double weft_mi_variance_work(const weft_mi_groups *groups);
double weft_mi_variance(const weft_mi_groups *groups, const double *f, double mean, double *room_p, double *room_inner);

/* The exact law; memory of one thread. */
typedef struct weft_mi_walk weft_mi_walk;
weft_mi_walk *weft_mi_walk_make(weft_arena *mem);
/* Whether a walk is worth trying: few tables, or few different ones. */
int weft_mi_walk_short(const weft_mi_margins *margins, const weft_mi_logs *logs);
/* tail[i]: the probability of at least scores[i] (sorted, the greatest first; fixed point, with f's values in `f`).
 * 0 where there were too many tables after all. */
int weft_mi_walk_run(weft_mi_walk *walk, const weft_mi_margins *margins, const weft_mi_logs *logs, const int64_t *f,
                     const int64_t *scores, size_t count, double *tail);

/* The smooth law; memory of one thread. */
#define WEFT_MI_TILTS 3
typedef struct weft_mi_smooth weft_mi_smooth;
weft_mi_smooth *weft_mi_smooth_make(weft_arena *mem, size_t known);
/* statistic[i]: what has the chi-squared distribution with (l - 1) (k - 1) degrees of freedom, for score scores[i] (in
 * nats, the greatest first). 0 where the margins are of more kinds than there is room for. `tilted`: whether the tilts
 * are needed if a score has a p-value below some .2. */
int weft_mi_smooth_run(weft_mi_smooth *law, const weft_mi_margins *margins, const weft_mi_logs *logs,
                       const double *scores, size_t count, int tilted, double *statistic);
/* Gives the same for any score, after weft_mi_smooth_run(). */
double weft_mi_smooth_statistic(const weft_mi_smooth *law, double score);
/* theta of a tilt, under which high scores are frequent; 0: there is none. tilts[i]: what a row of level (or class) i
 * adds to the logarithm of a table's weight, in the order of the margins. */
double weft_mi_smooth_tilt(const weft_mi_smooth *law, int which, int classes, double *tilts);

/* Random tables; memory of one thread. */
typedef struct weft_mi_sampler weft_mi_sampler;
weft_mi_sampler *weft_mi_sampler_make(weft_arena *mem);
/* How many tables a law may take; 0: none. */
uint32_t weft_mi_sampler_tables(const weft_mi_margins *margins);
/* Replaces each statistic of weft_mi_smooth_run() with a p-value below some .2 by that of random tables, and puts its
 * relative standard error in `error`, which stays as it is for others. */
void weft_mi_sampler_run(weft_mi_sampler *sampler, const weft_mi_margins *margins, const weft_mi_logs *logs,
                         const int64_t *f, double nat, const weft_mi_smooth *smooth, const int64_t *scores,
                         size_t count, double *statistic, double *error);
