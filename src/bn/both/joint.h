/* Counting in parallel: joint values, families, Gaussian determinants; see joint.c. */
#pragma once

#include "bn/both/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls task(data, t, thread) for every t < tasks in parallel, in portions of about 30 ms with a poll in between.
 * Progress goes from `from` to `to` of 1. */
typedef void weft_bn_task(void *data, size_t t, int thread);
weft_status weft_bn_run_tasks(weft_ctx *ctx, size_t threads, size_t tasks, weft_bn_task *task, void *data, double from,
                              double to);
/* All of them at once, then one poll; *took gets the seconds. For work that the caller has cut into portions. */
weft_status weft_bn_run_timed(weft_ctx *ctx, size_t threads, size_t tasks, weft_bn_task *task, void *data, double done,
                              double *took);

/* h(S) of every set of at most max_parents + 1 of the p nodes, by number. */
weft_status weft_bn_joint(weft_ctx *ctx, weft_bn_ready *ready, int64_t *joint, const uint64_t *offset);
/* Scores of all sets of the nodes' own candidates, counted child by child. */
weft_status weft_bn_count_nodes(weft_ctx *ctx, weft_bn_ready *ready, weft_bn_node *nodes, size_t count, double from,
                                double to);
/* One thread's cells of a set of parents, without and with the child: of each of its first members. */
typedef struct weft_bn_bench {
  weft_bn_cells *parents, *family;
  struct weft_bn_mixed *mixed; /* NULL where columns are of one kind */
} weft_bn_bench;
/* Work space for one thread, in `mem`. */
weft_status weft_bn_bench_make(weft_arena *mem, const weft_bn_ready *ready, weft_bn_bench *out);
/* Adds each of `more` to the set: out[k] = score(i | parents + more[k]). */
void weft_bn_extend(weft_bn_ready *ready, int thread, weft_bn_bench *bench, size_t i, const size_t *parents, size_t m,
                    const size_t *more, size_t count, int64_t *out);
/* score(i | no parents). */
int64_t weft_bn_alone(weft_bn_ready *ready, int thread, weft_bn_bench *bench, size_t i);

/* ln p of Gaussian data given the determinants: constant[m] + coefficient * ln|R_SS|. */
static inline double weft_bn_gauss_coefficient(const weft_bn_ready *ready, size_t group, size_t m)
{
  const weft_bn_problem *pr = ready->problem;
  return -0.5 * (pr->scatter_rows[group] + pr->alpha_w - (double) pr->p + (double) m);
}
/* ln p of the data of m nodes in units, given the logarithm of their determinant. */
int64_t weft_bn_gauss_value(const weft_bn_ready *ready, size_t group, size_t m, double log_determinant);
/* Adds row d of the Cholesky factor of the scatter matrix of member[0 .. d]; returns the logarithm of what the members
 * before leave of its variance. `factor` is row major with stride WEFT_BN_MAX_PARENTS + 2. */
double weft_bn_gauss_row(const double *scatter, size_t p, const size_t *member, size_t d, double *factor);

#ifdef __cplusplus
}
#endif
