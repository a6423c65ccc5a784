/* Principal components: the interface of the room. Structs in, structs out; no R and no CUDA types.
 *
 * The matrix that is decomposed is X[i, j] = (data[i, j] - center[j]) factor[j] row[i]: never formed, where a back end
 * can apply it on the fly. X = U diag(d) V'; loadings are V, scores U d.
 *
 * The algorithms are written once (engines/block.c, power_iteration.c) in terms of the operations below. A back end
 * says where vectors live and how products are taken; all decisions (tests of convergence, ranks, small decompositions)
 * are taken on the host, so that both back ends take the same course. */
#pragma once

#include "core/call/context.h"
#include "core/call/backend.h"
#include "core/numbers/draws.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The columns of a file in PLINK's format (core/data/genotypes.h): column j is number place[j] from 0 of those that
 * begin at `bytes`, `stride` bytes each. */
typedef struct weft_pca_genotypes {
  const uint8_t *bytes;
  size_t stride;
  const double *place;
} weft_pca_genotypes;

/* Rows row .. row+n-1 and columns column .. column+p-1 of the data: dense, column major, or
 * compressed columns with row numbers from 0 at the panel's first row, or genotypes. */
typedef struct weft_pca_panel {
  size_t row, column, n, p;
  size_t ld; /* rows of the array that `dense` lies in */
  const double *dense;
  const double *values;
  const int32_t *rows, *starts; /* starts: p + 1 */
  const weft_pca_genotypes *genotypes;
} weft_pca_panel;

struct weft_packed_panel;
struct weft_resident_choice;

/* The data as panels that tile it by rows or by columns. `fetch` gives one, valid until the next is asked for, or for
 * ever when `stays`; `packed`, where it is not NULL, gives the same one for a device to unpack
 * (core/device/packed.h). */
typedef struct weft_pca_data {
  size_t n, p, panels;
  weft_status (*fetch)(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out);
  void *source;
  int stays, sparse, coded;           /* coded: one panel of genotypes */
  const weft_device_matrix *resident; /* instead of panels */
  const struct weft_pca_ranks *ranks; /* who has the other rows; NULL: all are here */
  weft_status (*packed)(weft_ctx *ctx, void *source, size_t index, const struct weft_packed_panel **out);
  const struct weft_resident_choice *kept; /* where packed panels stay on devices: the `source` */
} weft_pca_data;

/* The rows of X shared among ranks, each with its own as `data`; see engines/ranks.c. Calls that every rank makes. A
 * rank is a process, or a host thread with a device of its own (engines/spread.c). */
typedef struct weft_pca_ranks {
  int parts;          /* of a call on several devices, which add up where the numbers are; otherwise processes */
  size_t size;        /* ranks */
  const size_t *rows; /* of each */
  size_t all, first;  /* rows of all ranks; of those before this one */
  /* x becomes the sum over the ranks, the same bits on all */
  weft_status (*add)(weft_ctx *ctx, double *x, size_t count);
  /* rank r's sizes[r] bytes to all[r] */
  weft_status (*gather)(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all);
} weft_pca_ranks;

typedef struct weft_pca_form {
  const double *center, *factor; /* p each */
  const double *row;             /* n, or NULL */
  const double *missing;         /* p: what stands for missing genotypes */
  int single;                    /* keep X as floats, sum in double; weft_pca_ops.refine() ends it */
  int own;      /* X becomes a matrix of its own, to be deflated: for the operations on what is observed */
  int refilled; /* cells and the numbers above will change, by refill(): a dense matrix on the host in one panel */
} weft_pca_form;

/* Cells of a dense matrix, column after column, and their values in the units of the data. */
typedef struct weft_pca_cells {
  size_t rows, columns, count;
  const int32_t *row, *column, *starts; /* starts: columns + 1; NULL where there are too many */
  const double *values;
} weft_pca_cells;

/* Over the observed values of each column, weighted. */
typedef struct weft_pca_moments {
  double *mean;     /* the value itself when all are equal */
  double *norm;     /* square root of the sum of squares about the mean; 0 when all are equal */
  double *weight;   /* of the observed values */
  double *missing;  /* how many are NaN */
  double *infinite; /* how many are infinite */
} weft_pca_moments;

/* What the user wants of it; `weights` of columns, or NULL. */
typedef struct weft_pca_scaling {
  int centred, scaled;          /* by the moments */
  const double *center, *scale; /* p each, instead; or NULL */
  const double *weights;
} weft_pca_scaling;

/* A power of two brings the whole near 1, so that squares neither overflow nor vanish: what comes back is multiplied
 * by 2^exponent. (data - center) / divide is what loadings belong to. */
typedef struct weft_pca_made {
  double *center, *factor, *divide;
  int *constant;          /* without a standard deviation, by which `scaled` divides */
  double exponent, total; /* the sum of the squares of X */
} weft_pca_made;

void weft_pca_form_of(size_t p, const weft_pca_moments *of, const weft_pca_scaling *by, weft_pca_made *out);

typedef struct weft_pca_space weft_pca_space;

/* Pointers called `s_` are in the space's memory (host or device), the others on the host. All matrices are column
 * major and packed (leading dimension = rows) where no leading dimension is given. */
typedef struct weft_pca_ops {
  weft_status (*moments)(weft_ctx *ctx, const weft_pca_data *data, const double *weights, const weft_pca_moments *out);
  /* How many values of each row are not NaN: n counts, of a dense matrix. */
  weft_status (*seen)(weft_ctx *ctx, const weft_pca_data *data, double *out);
  weft_status (*open)(weft_ctx *ctx, const weft_pca_data *data, const weft_pca_form *form, weft_pca_space **out);
  void (*close)(weft_pca_space *space);
  /* `cells` have other values (the data has them already), the same cells in every call; so may the numbers have that
   * the form points to. */
  weft_status (*refill)(weft_pca_space *space, const weft_pca_cells *cells);
  weft_status (*take)(weft_pca_space *space, size_t count, double **s_out);
  void (*drop)(weft_pca_space *space, double *s_block);
  weft_status (*put)(weft_pca_space *space, double *s_to, const double *from, size_t count);
  weft_status (*get)(weft_pca_space *space, double *to, const double *s_from, size_t count);
  weft_status (*copy)(weft_pca_space *space, double *s_to, const double *s_from, size_t count);
  /* Draws first .. first + count - 1 of a stream, uniform between -1 and 1. */
  weft_status (*random)(weft_pca_space *space, weft_rng rng, uint64_t first, double *s_to, size_t count);
  /* out = X v (v: p × b), or X' v (v: n × b) */
  weft_status (*product)(weft_pca_space *space, int transposed, const double *s_v, size_t b, double *s_out);
  /* out = X'X v (v: p × b) of sparse X, in one reading where it can be; NULL where that takes two. */
  weft_status (*twice)(weft_pca_space *space, const double *s_v, size_t b, double *s_out);
  /* c = alpha op(a) op(b) + beta c; op(a) is m × k, op(b) k × n */
  weft_status (*gemm)(weft_pca_space *space, int ta, int tb, size_t m, size_t n, size_t k, double alpha,
                      const double *s_a, size_t lda, const double *s_b, size_t ldb, double beta, double *s_c,
                      size_t ldc);
  /* Whether a Gram matrix of this order can be computed in one reading of X, and there is room for it. */
  int (*squares)(const weft_pca_space *space, size_t order);
  /* Whether it can be made with errors in a fraction of the time. NULL: never. */
  int (*rough)(const weft_pca_space *space, size_t order);
  /* g = X'X, or XX' when `rows`, both triangles; and its diagonal. `coarse`: errors of 1e-6 of the largest entry will
   * do. */
  weft_status (*square)(weft_pca_space *space, int rows, int coarse, double *s_g, double *s_diagonal);
  /* out = alpha g v + beta out, b vectors */
  weft_status (*by_square)(weft_pca_space *space, const double *s_g, size_t order, size_t b, double alpha,
                           const double *s_v, double beta, double *s_out);
  /* g[i, i] = diagonal[i] - by */
  weft_status (*shift)(weft_pca_space *space, double *s_g, size_t order, const double *s_diagonal, double by);
  /* g += m v' + v m' (m, v: order × b), and its diagonal; NULL with rough(). */
  weft_status (*correct)(weft_pca_space *space, double *s_g, size_t order, const double *s_m, const double *s_v,
                         size_t b, double *s_diagonal);
  /* The k leading eigenvectors (order × k) of the symmetric g, which is destroyed. */
  weft_status (*eigen)(weft_pca_space *space, double *s_g, size_t order, size_t k, double *s_vectors);
  /* One step of GS-PCA from the unit vector v, orthogonal to the k columns of `s_found` (p × k):
   * u = X v, w = X'u freed of `s_found`, twice where needed; out = { |u|, |w|, |w / |u| - |u| v| }; v = w / |w|. */
  weft_status (*step)(weft_pca_space *space, const double *s_found, size_t k, double *s_v, double *s_u, double *s_w,
                      double out[3]);
  void (*refine)(weft_pca_space *space);
  /* x becomes the sum over the parts of a call on several devices. */
  weft_status (*join)(weft_pca_space *space, double *s_x, size_t count);
  /* Over the cells of X that are observed (form->own; vectors on the host):
   * loads[j] = sum_i x_ij t_i / sum_i t_i^2, then t[i] = sum_j x_ij loads[j] / sum_j loads[j]^2; and each alone. */
  weft_status (*observed)(weft_pca_space *space, double *t, double *loads);
  weft_status (*observed_loads)(weft_pca_space *space, const double *t, double *loads);
  weft_status (*observed_scores)(weft_pca_space *space, const double *loads, double *t);
  /* X -= t loads' */
  weft_status (*deflate)(weft_pca_space *space, const double *t, const double *loads);
} weft_pca_ops;

extern const weft_pca_ops weft_pca_cpu;

/* The methods by their names in R. */
#define WEFT_PCA_METHODS(X) X(GS, "gs") X(NIPALS, "nipals") X(KRYLOV, "krylov") X(GRAM, "gram")
#define WEFT_PCA_METHOD(id, name) WEFT_PCA_##id,
typedef enum { WEFT_PCA_METHODS(WEFT_PCA_METHOD) WEFT_PCA_METHOD_COUNT } weft_pca_method;

typedef struct weft_pca_job {
  weft_pca_method method;
  size_t k;
  double tol; /* largest |X v - d u|, |X'u - d v|, relative to the largest d; the paper's epsilon when `paper` */
  int paper;  /* stop by the paper's test: d changed by at most tol */
  size_t max_iterations; /* (of a component, or of the block) */
  size_t block;          /* vectors in a block; 0: chosen */
  uint64_t key;          /* of the random start */
  const double *start;   /* p × k initial guess, or NULL */
  int choose;            /* gram only where the Gram matrix is cheap, else krylov */
  /* gram filters from these p × weft_pca_filter_width(k) vectors on the host where it has `begun`, else from random
   * ones, and leaves there what it found; or NULL. uncorrected: these are what is returned, with U from one reading of
   * X, as exact as rounding of the Gram matrix leaves them and without residuals */
  double *filtered;
  int begun, uncorrected;
  /* Krylov is replaced by gram when more blocks are left than gram takes: the time of `gram_blocks` blocks, and
   * `gram_steps` for each block that krylov takes in all. gram_blocks 0: never. */
  double gram_blocks, gram_steps;
} weft_pca_job;

typedef struct weft_pca_result {
  double *d;        /* k; exactly 0 beyond the numerical rank */
  double *u, *v;    /* n × k, p × k; over ranks u has this one's rows where p is at most the rows of all, else all */
  size_t ld;        /* rows of the array that u lies in, for krylov and gram; 0: n */
  double *cross;    /* k × k: u'u, where it is not NULL and rows are the far side on a device; else untouched */
  double *residual; /* k: as `tol` */
  int32_t *iterations;    /* k */
  int32_t *converged;     /* k */
  double rank;            /* numerical rank, as far as k */
  double passes;          /* times X was read */
  weft_pca_method method; /* that was used */
} weft_pca_result;

weft_status weft_pca(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_data *data, const weft_pca_form *form,
                     const weft_pca_job *job, weft_pca_result *out);

/* The same in an open space. */
weft_status weft_pca_in(weft_ctx *ctx, const weft_pca_ops *ops, weft_pca_space *space, const weft_pca_data *data,
                        const weft_pca_form *form, const weft_pca_job *job, weft_pca_result *out);

/* The same with the rows dealt over the call's devices, for krylov and gram; engines/spread.c. */
weft_status weft_pca_spread(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_data *data,
                            const weft_pca_form *form, const weft_pca_job *job, weft_pca_result *out);

/* NIPALS and GS-PCA over what is observed (NaN elsewhere) in a dense matrix; form->own is set. */
weft_status weft_pca_missing(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_data *data,
                             const weft_pca_form *form, const weft_pca_job *job, weft_pca_result *out);

/* The least-squares fit of what is observed, by EM; em.c. */
typedef struct weft_pca_em {
  const double *x; /* n × p, NaN where nothing is observed: `gaps` cells */
  size_t n, p, gaps;
  const double *first;         /* what the gaps are filled with to begin with, column by column */
  const double *spread;        /* p: what a cell's change is compared with */
  const double *weights, *row; /* of rows, and their square roots; or NULL */
  weft_pca_scaling scaling;
  double fall;         /* ends when the squares of what is observed fall by at most this share of themselves; or -1 */
  double *cells;       /* out: the gaps' fits */
  weft_pca_made *made; /* out: of the matrix that was decomposed last */
} weft_pca_em;

/* job->tol: the largest change of a cell. */
weft_status weft_pca_by_em(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_em *em, const weft_pca_job *job,
                           weft_pca_result *out);

#ifdef __cplusplus
}
#endif
