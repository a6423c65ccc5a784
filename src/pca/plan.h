/* The one place that chooses among the room's methods and predicts what they take; engines.h has the engines. How a
 * method runs is chosen from what is found on the way, in engines/block.c. */
#pragma once

#include "core/call/plan.h"
#include "pca/engines.h"
#include "pca/limits.h"

/* Blocks are dense, of rows that are read for each pass. */
typedef enum {
  WEFT_PCA_DENSE,
  WEFT_PCA_RESIDENT,
  WEFT_PCA_SPARSE,
  WEFT_PCA_STORED,
  WEFT_PCA_BLOCKS,
  WEFT_PCA_GENOTYPES
} weft_pca_kind;

#define WEFT_PCA_KIND_NAMES "dense", "resident", "sparse", "stored", "blocks", "genotypes"

/* The method asked for: one of them, the quickest, or (for predictions only) the quickest on the CPU. */
typedef enum {
  WEFT_PCA_BY_KRYLOV,
  WEFT_PCA_BY_GRAM,
  WEFT_PCA_BY_GS,
  WEFT_PCA_BY_NIPALS,
  WEFT_PCA_BY_AUTO,
  WEFT_PCA_BY_CHEAPEST
} weft_pca_wish;

#define WEFT_PCA_WISH_NAMES "krylov", "gram", "gs", "nipals", "auto", "cheapest"

/* clang-format off */
#define WEFT_PCA_SIZES(SIZE) \
  SIZE(n) SIZE(p) \
  SIZE(cells)  /* stored values */ \
  SIZE(k)      /* components */ \
  SIZE(shared) /* 1: ranks have other rows */ \
  SIZE(again)  /* 1: EM decomposes the matrix again and again */ \
  SIZE(threads)
/* clang-format on */

typedef struct weft_pca_sizes {
#define WEFT_PCA_SIZE_FIELD(name) double name;
  WEFT_PCA_SIZES(WEFT_PCA_SIZE_FIELD)
#undef WEFT_PCA_SIZE_FIELD
} weft_pca_sizes;

/* A plan, the methods on the CPU and on a device, and, for weft_pca_job, what gram costs in blocks of krylov, where
 * krylov begins on the CPU and may give way; 0: it does not. */
typedef struct weft_pca_plans {
  weft_plan plan;
  weft_pca_wish cpu, cuda;
  double gram_blocks, gram_steps;
} weft_pca_plans;

weft_pca_plans weft_pca_plan(weft_pca_kind kind, weft_pca_wish wish, const weft_pca_sizes *sizes,
                             const weft_slowness *slow);
