/* Mutual information: the interface of the room. Structs in, structs out; no R and no CUDA types.
 *
 * Everything is counted exactly and scored in double. With f(k) = k log2 k and counts n_ac, margins n_a, n_c, n:
 *   I(A;C) = ((Σ f(n_ac) - Σ f(n_a)) - (Σ f(n_c) - f(n))) / n      H(A) = (f(n) - Σ f(n_a)) / n
 * Both back ends add in the same order (column_score.h), so that they give the same bits and the same ranks. */
#pragma once

#include "core/data/codes.h"
#include "core/call/context.h"
#include "mi/bins/kinds.h"
#include "mi/matrix/kinds.h"
#include "mi/networks/kinds.h"
#include "mi/select/kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attributes against one class. */
typedef struct weft_mi_data {
  size_t n, p; /* rows, attributes */
  const weft_column *columns;
  const uint16_t *classes; /* class of a row from 0; WEFT_NA_U16: the row does not count */
  uint32_t class_levels;
  int na_level; /* missing attribute values are one more level; else their rows are left out */
} weft_mi_data;

/* Per attribute, over the rows that count for it. In bits. */
typedef struct weft_mi_rank {
  double *mi, *entropy, *class_entropy, *n;
  int32_t *levels, *class_levels; /* levels that occur */
  double *missing;                /* attribute values missing, whatever the class */
} weft_mi_rank;

/* ---- numeric columns (mi_continuous*): every column with every other ---- */

typedef struct weft_mi_numeric {
  size_t n, p;     /* rows, columns */
  const double *x; /* n × p, column major; a pair is scored over the rows where neither is NaN */
  size_t split;    /* 0: all pairs; else columns before `split` with the columns from it on */
  weft_mi_numeric_kind estimator;
  int k; /* KSG: neighbours */
} weft_mi_numeric;

/* Bits. All pairs: out is p × p, symmetric, with zeros on the diagonal; else split × (p - split), column major. */
typedef weft_status weft_mi_numeric_op(weft_ctx *ctx, const weft_mi_numeric *data, double *out);

/* ---- networks (mi_network*): m and out are p × p and symmetric; m's diagonal does not matter, out's is zero ---- */

typedef struct weft_network_job {
  size_t p;
  const double *m;
  weft_network_method method;
  double eps,
      keep; /* ARACNE: an edge goes below min(s, keep × s) - eps, s the second weakest of a triangle; RELNET: m > eps */
  double least; /* values of m up to this one are rounding; see weft_network_rounding() */
} weft_network_job;

typedef weft_status weft_network_op(weft_ctx *ctx, const weft_network_job *job, double *out);

/* ---- cutting numeric columns (bins/bins.c) ---- */

typedef struct weft_bins_job {
  size_t n, p;
  const double *x; /* n × p; NaN is missing */
  weft_bins_method method;
  size_t bins;             /* by frequency */
  const uint16_t *classes; /* the others: class of a row from 0, WEFT_NA_U16 where it does not count */
  uint32_t class_levels;
} weft_bins_job;

/* Increasing cut points of column j at cuts + j × max_cuts, counts[j] of them: at most bins - 1 by frequency, else n
 * - 1. A value's bin is 1 + the cuts below it. */
weft_status weft_mi_cuts(weft_ctx *ctx, const weft_bins_job *job, size_t max_cuts, double *cuts, int32_t *counts);
/* Codes from 1, INT32_MIN where x is missing. Column j's cuts begin at cuts + starts[j] and end at starts[j + 1]. */
weft_status weft_mi_cut(weft_ctx *ctx, size_t n, size_t p, const double *x, const double *cuts, const double *starts,
                        int32_t *codes);

/* ---- genotypes (cpu/plink.c) ---- */

/* Reads the p variants `wanted` (from 0) of a .bed file: three bytes, then a block of (n + 3) / 4 bytes per variant.
 * out: n × p counts of the first allele, 2, 1, 0, or INT32_MIN where missing. */
weft_status weft_mi_genotypes(weft_ctx *ctx, const char *path, size_t n, const double *wanted, size_t p, int32_t *out);

/* Counts, for each of p columns of genotypes of n samples, the samples with 0, 1, 2 copies and missing (counts, 4 × p),
 * and tests Hardy-Weinberg proportions exactly (hwe, p-values; 1 where there is one allele or none). */
weft_status weft_mi_genotype_summary(weft_ctx *ctx, const weft_column *columns, size_t n, size_t p, double *counts,
                                     double *hwe);

/* ---- greedy selection (select/select.c) ---- */

/* The features in order of selection (from 0) and their scores, at most k; returns how many through `found`. */
weft_status weft_mi_select(weft_ctx *ctx, const weft_mi_data *data, weft_select_method method, size_t k,
                           int32_t *feature, double *score, size_t *found);

/* Pairs, triples and matrices: mi/search/search.h. */
struct weft_arena;
struct weft_mi_pack;
struct weft_mi_search;
struct weft_mi_found;
struct weft_mi_resident;
struct weft_mi_relabelling;
struct weft_transfer_data;
struct weft_transfer_engine;
struct weft_transfer_pass;
struct weft_scan_job;
struct weft_scan_screened;

typedef struct weft_mi_ops {
  weft_status (*rank)(weft_ctx *ctx, const weft_mi_data *data, const weft_mi_rank *out);
  weft_status (*search)(weft_ctx *ctx, const struct weft_mi_pack *pack, struct weft_mi_resident **device,
                        const struct weft_mi_search *search, struct weft_arena *mem, struct weft_mi_found *out);
  weft_status (*full)(weft_ctx *ctx, const struct weft_mi_pack *pack, struct weft_mi_resident **device, double *mi,
                      double *interaction);
  weft_status (*matrix)(weft_ctx *ctx, const struct weft_mi_pack *x, struct weft_mi_resident **device,
                        const struct weft_mi_pack *y, int estimator, double *out);
  void (*release)(weft_ctx *ctx, struct weft_mi_resident *device);
  weft_mi_numeric_op *numeric;
  weft_network_op *network;
  /* Exchanges rows where the planes lie (pack/pack.h); NULL: not here. */
  weft_status (*permute)(weft_ctx *ctx, const struct weft_mi_pack *pack, struct weft_mi_resident **device,
                         const uint32_t *perm, struct weft_mi_pack *moved, struct weft_mi_resident **out);
  /* Many label sets at once (permutations/both/permute_ternary.h); NULL: not here. */
  weft_status (*relabel)(weft_ctx *ctx, const struct weft_mi_pack *pack, struct weft_mi_resident **device,
                         const struct weft_mi_relabelling *how, int *done);
  /* Makes the planes and margins of a pack of genotypes (pack/pack.h), of which all that classes say is there, where
   * the back end keeps them. NULL in *out: it has no room for them. NULL: not here. */
  weft_status (*plant)(weft_ctx *ctx, struct weft_arena *mem, const weft_column *columns, int na_level,
                       struct weft_mi_pack *pack, struct weft_mi_resident **out);
  /* Rows of planes of such a pack, to the host. */
  weft_status (*planes)(weft_ctx *ctx, const struct weft_mi_pack *pack, const size_t *rows, size_t count,
                        uint64_t *bits);
  /* Transfer entropy: passes over all pairs of series (transfer/both/transfer.h). */
  weft_status (*transfer_open)(weft_ctx *ctx, const struct weft_transfer_data *data, struct weft_transfer_engine **out);
  weft_status (*transfer_pass)(weft_ctx *ctx, struct weft_transfer_engine *engine, struct weft_transfer_pass *pass);
  void (*transfer_close)(weft_ctx *ctx, struct weft_transfer_engine *engine);
  /* Screens pairs of variants in models with covariates (scan/scan.h); NULL: not here. */
  weft_status (*scan)(weft_ctx *ctx, const struct weft_scan_job *job, const double *counts, struct weft_arena *mem,
                      struct weft_scan_screened *out);
} weft_mi_ops;

extern const weft_mi_ops weft_mi_cpu;

#ifdef __cplusplus
}
#endif
