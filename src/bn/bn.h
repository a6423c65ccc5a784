/* Bayesian networks: the interface of the room. Structs in, structs out; no R types.
 *
 * n rows, p nodes. A local score is kept in fixed point: a whole number of units of 2^-bits nats that a double holds
 * exactly. Sums of such numbers do not depend on their order, so that tables, chains and exact answers are the same
 * with any number of threads and any instruction set, and graphs that are equivalent under the score tie exactly.
 *
 * A joint value h(S) belongs to a set S of nodes; a local score is score(i | P) = h(P + i) - h(P) with (s. count.h)
 *   BDeu        h(S) = Σ_cells lnΓ(N + ess/q) - lnΓ(ess/q),  q = number of cells of S
 *   BIC, AIC    h(S) = Σ_cells N ln N                        (less the penalty for q_P (r_i - 1) parameters)
 *   BGe         h(S) = ln p(data of S)
 * Numbers among categories (BIC-CG, AIC-CG) have no such h; see cpu/table/mixed.c.
 * K2 and BDs need a numerator and a denominator of their own for each child. score_kinds.h has a row for each. */
#pragma once

#include "core/call/arena.h"
#include "core/call/context.h"
#include "bn/score_kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Less than any score; p of them can be added without overflow. */
#define WEFT_BN_NEVER (-(INT64_C(1) << 53))

/* Matrices over [child, parent] are p × p, column major: entry child + p * parent. */
typedef struct weft_bn_problem {
  size_t n, p;
  double completions;    /* of each row of data among the n, each counts as 1 / completions; 1: they are the data */
  const int32_t *codes;  /* n × p levels from 0; NULL for BGe */
  const int32_t *levels; /* p; NULL for BGe */
  /* mixed columns: which nodes are numbers, which have one level each; n × p numbers of variance about 1, 0 for
   * categories; the logarithms of the units that they were divided by. NULL elsewhere */
  const int32_t *number;
  const double *numbers, *log_unit;
  const int32_t *set; /* n × p, nonzero where a row's node was set from outside; NULL: nowhere */
  weft_bn_score score;
  double ess;
  /* BGe: scatter matrices p × p × groups of the posterior Wishart, the rows behind each, the group of each node */
  const double *scatter, *scatter_rows;
  const int32_t *group;
  size_t groups;
  double alpha_mu, alpha_w;
  /* ln gamma plus the prior of each edge in nats, [child, parent]; NULL: none */
  const double *edge_prior;
  const int32_t *allowed;     /* [child, parent]: a candidate (the diagonal is 0) */
  const int32_t *required;    /* [child, parent], NULL: none */
  const int32_t *outside;     /* [child, parent]: may be the one parent that is no candidate; NULL: no plus one */
  const int32_t *max_parents; /* p */
  /* A set is dropped when one of its subsets is better by `slack` nats or more: whatever the order, it is then worth at
   * most exp(-slack) of that subset. 0 is enough for the best graph, Inf keeps all. */
  double slack;
  size_t threads;
} weft_bn_problem;

static inline int weft_bn_gauss(const weft_bn_problem *problem)
{
  return weft_bn_kind(problem->score)->data == WEFT_BN_GAUSS;
}

/* Whether node i is numbers among categories. */
static inline int weft_bn_is_number(const weft_bn_problem *problem, size_t i)
{
  return problem->number && problem->number[i];
}

/* Parent sets of all nodes: node i has sets start[i] .. start[i + 1] - 1, best first; equal scores: smaller sets first,
 * then by the last node that differs. */
typedef struct weft_bn_table {
  size_t p, words; /* 64-bit words per mask */
  int bits;
  int64_t *start; /* p + 1 */
  int64_t *score; /* units of 2^-bits nats */
  uint64_t *mask; /* words per set */
} weft_bn_table;

/* The table lives in `keep`. */
typedef weft_status weft_bn_scores_op(weft_ctx *ctx, const weft_bn_problem *problem, weft_arena *keep,
                                      weft_bn_table *out);

/* Mutual information in nats of every pair of nodes, p × p, over all rows. */
weft_status weft_bn_screen(weft_ctx *ctx, const weft_bn_problem *problem, double *information);

/* ---- chains over orders ---- */

/* A ladder is one chain with its heated copies; replica t of ladder c has number c * temperatures + t. */
typedef struct weft_bn_run {
  size_t ladders, temperatures, iterations, thin, burn_in, swap_every, best; /* best: how many graphs to keep */
  uint64_t first; /* iterations done before: the draws go on from there */
  size_t ladder0; /* the first ladder's number, which its draws depend on: the ladders may be a part of many */
  uint64_t key;
  const double *beta; /* temperatures: inverse temperatures, beta[0] is 1 */
  int sum;            /* 0: best graph of an order, 1: sum over the graphs of an order */
  int layers;         /* with sum: of an ordered partition (partitions.c) */
  int graphs;         /* with sum and layers: of a graph (graphs.c) */
} weft_bn_run;

/* Kinds of moves: of orders swap, adjacent, move; of layers see partitions.c, of graphs graphs.c. */
#define WEFT_BN_MAX_MOVES 6
static inline size_t weft_bn_moves(const weft_bn_run *run) { return run->graphs ? 5 : run->layers ? 6 : 3; }

typedef struct weft_bn_chains {
  int32_t *order;       /* p × replicas: in, the orders to start from (order[0] < 0: draw them); out, the last */
  double *trace;        /* saved × ladders: score of the coldest order at every thin-th iteration */
  int32_t *layer;       /* layers, p × replicas: each node's, from 0; in (layer[0] < 0: draw them) and out. graphs: the
                           number of each node's set instead */
  double *accepted;     /* (moves + 1) × replicas: accepted by kind of move; then all iterations */
  double *swapped;      /* (temperatures - 1) × ladders × 2: accepted, tried */
  int32_t *sampled;     /* sum: p × samples × ladders: index within the node's sets, from 0 */
  size_t samples;       /* a ladder */
  double *sample_score; /* sum: samples × ladders: the graph's own score */
  /* best graphs, best first: index within the node's sets of each node */
  int32_t *best_sets; /* p × best */
  double *best_score;
  size_t found;
} weft_bn_chains;

typedef weft_status weft_bn_chain_op(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_run *run,
                                     weft_bn_chains *out);

/* The ladders divided among the devices of the call: the same as one run. */
weft_status weft_bn_chain_spread(weft_ctx *ctx, weft_bn_chain_op *chain, const weft_bn_table *table,
                                 const weft_bn_run *run, weft_bn_chains *out);

/* ---- exact answers ---- */

/* The sets of a table that can be the best of an order: no subset of theirs is as good. number[k]: which of its node's
 * sets set k is. The new table lives in `mem`. */
weft_status weft_bn_undominated(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table, weft_bn_table *out,
                                int32_t **number);
/* The best graph, as each node's index within its sets. Takes 8 * 2^p bytes. */
typedef weft_status weft_bn_optimum_op(weft_ctx *ctx, const weft_bn_table *table, int32_t *best_sets, int64_t *score);
/* Posterior probability of every edge [from, to], p × p, uniform over orders or over graphs; *log_total gets the
 * logarithm of the sum of all graphs' weights (each times its number of orders when over orders). Over orders (s.
 * orders.h): `optimum` is the best graph's score; low_bits 0 lets the back end choose how it cuts subsets. */
typedef struct weft_bn_order_shape {
  int low_bits, mid_bits;
} weft_bn_order_shape;
typedef weft_status weft_bn_edges_orders_op(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum,
                                            const weft_bn_order_shape *shape, double *edges, double *log_total);
/* *error: how far the probabilities of a node's sets are from 1 in sum, at most (s. graphs.h). */
typedef weft_status weft_bn_edges_graphs_op(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum, double *edges,
                                            double *log_total, double *error);
/* Independent draws from the posterior that is uniform over graphs: p × draws numbers within the nodes' sets. */
weft_status weft_bn_draw_graphs(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum, uint64_t key, size_t draws,
                                int32_t *sampled);

/* Means of edges [from, to] over the graphs that chains drew (weft_bn_chains.sampled), and the greatest
 * difference between the means of two ladders. */
weft_status weft_bn_edge_means(weft_ctx *ctx, const weft_bn_table *table, const int32_t *sampled, size_t samples,
                               size_t ladders, double *edges, double *difference);

/* ---- both back ends: the same bits, but for sums over orders, which agree within rounding ---- */

typedef struct weft_bn_ops {
  weft_bn_scores_op *scores;
  weft_bn_chain_op *chain;
  weft_bn_optimum_op *optimum;
  weft_bn_edges_orders_op *edges_orders;
  weft_bn_edges_graphs_op *edges_graphs;
} weft_bn_ops;

extern const weft_bn_ops weft_bn_cpu;

weft_bn_scores_op weft_bn_scores_cpu;
weft_bn_chain_op weft_bn_chain_cpu;
weft_bn_optimum_op weft_bn_optimum_cpu;
weft_bn_edges_orders_op weft_bn_edges_orders_cpu;
weft_bn_edges_graphs_op weft_bn_edges_graphs_cpu;

#ifdef __cplusplus
}
#endif
