/* What the files of the room share and no one else sees. */
#pragma once

#include "core/numbers/topk.h"
#include "bn/both/count.h"
#include "bn/both/sets.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A prepared problem: fixed point, binomials, columns, one counter per thread. */
typedef struct weft_bn_ready {
  const weft_bn_problem *problem;
  int bits;
  double unit; /* 2^bits */
  size_t max_parents;
  weft_bn_binomials binomials;
  weft_bn_columns columns;
  weft_bn_counter *counters; /* one per thread */
  double *gauss_constant;    /* groups × (p + 1): the part of ln p(data of S) that depends on |S| alone */
} weft_bn_ready;

/* The nodes of a batch and the raw scores of all sets of each one's candidates. */
typedef struct weft_bn_node {
  size_t node, universe, max_parents;
  size_t *candidate; /* ascending */
  uint64_t offset[WEFT_BN_MAX_PARENTS + 2];
  int64_t *score; /* by set number */
  /* what is kept */
  size_t kept;
  int64_t *kept_score;
  uint64_t *kept_mask;
} weft_bn_node;

weft_status weft_bn_ready_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_problem *problem, weft_bn_ready *out);

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
/* Score without penalty and prior of child i with parents: counted from nothing. Work space of its own. */
typedef struct weft_bn_bench {
  weft_bn_cells *parents, *family;
} weft_bn_bench;
weft_status weft_bn_bench_make(weft_arena *mem, const weft_bn_ready *ready, weft_bn_bench *out);
/* Adds each of `more` to the set: out[k] = score(i | parents + more[k]). */
void weft_bn_extend(weft_bn_ready *ready, int thread, weft_bn_bench *bench, size_t i, const size_t *parents, size_t m,
                    const size_t *more, size_t count, int64_t *out);
/* score(i | no parents). */
int64_t weft_bn_alone(weft_bn_ready *ready, int thread, weft_bn_bench *bench, size_t i);

/* Scores and prunes the sets of all nodes: kept, kept_score and kept_mask of each are filled, in `keep`. */
typedef weft_status weft_bn_prune(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes,
                                  double to);
weft_bn_prune weft_bn_prune_cpu;
/* The whole table with one way or the other of pruning. */
weft_status weft_bn_table_make(weft_ctx *ctx, const weft_bn_problem *problem, weft_bn_prune *prune, weft_arena *keep,
                               weft_bn_table *out);
/* Sorts what is kept of each node, best first, and turns set numbers into masks; list[k] has nodes[k].kept entries. */
weft_status weft_bn_collect(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes, size_t count,
                            weft_scored **list, double done);
/* Whether one count of each set serves all its children. */
int weft_bn_joint_pays(const weft_bn_ready *ready, const weft_bn_node *nodes, const uint64_t *offset);
static inline uint64_t weft_bn_sets_of(const weft_bn_node *node) { return node->offset[node->max_parents + 1]; }

/* What a set adds to its raw score (set_terms.h): -penalty × parent configurations + edges, NEVER when a required
 * parent is missing.
 * weft_bn_penalty() gives the penalty of one configuration in nats; the functions below take it in units. */
typedef struct weft_bn_share {
  int64_t edges;
  size_t lacking;
  double q;
} weft_bn_share;
double weft_bn_penalty(const weft_bn_problem *problem, size_t i);
size_t weft_bn_required(const weft_bn_problem *problem, size_t i);
int64_t weft_bn_edge_share(const weft_bn_ready *ready, size_t i, size_t v);
weft_bn_share weft_bn_share_begin(size_t required);
void weft_bn_share_add(const weft_bn_ready *ready, size_t i, size_t v, double penalty, weft_bn_share *share);
int64_t weft_bn_set_share(const weft_bn_ready *ready, size_t i, const size_t *parents, size_t m, size_t required,
                          double penalty);
int64_t weft_bn_slack(const weft_bn_ready *ready);
/* Progress goes from `from` to 1. */
weft_status weft_bn_add_outsiders(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes,
                                  double from);

/* ln p of Gaussian data given the determinants: constant[m] + coefficient * ln|R_SS|. */
static inline double weft_bn_gauss_coefficient(const weft_bn_ready *ready, size_t group, size_t m)
{
  const weft_bn_problem *pr = ready->problem;
  return -0.5 * (pr->scatter_rows[group] + pr->alpha_w - (double) pr->p + (double) m);
}
int64_t weft_bn_gauss_value(const weft_bn_ready *ready, size_t group, size_t m, double log_determinant);
/* Adds row d of the Cholesky factor of the scatter matrix of member[0 .. d]; returns the logarithm of what the members
 * before leave of its variance. `factor` is row major with stride WEFT_BN_MAX_PARENTS + 2. */
double weft_bn_gauss_row(const double *scatter, size_t p, const size_t *member, size_t d, double *factor);

#ifdef __cplusplus
}
#endif
