/* Co-clustering by the infinite relational model: the interface of the room. Structs in, structs out; no R types.
 *
 * Rows i and columns j of a 0/1 (or count) matrix A fall into clusters; every pair of a row cluster l and a column
 * cluster m has a link probability (or rate) η_lm of its own:
 *
 *   z ~ Chinese restaurant process(α)     η_lm ~ Beta(β⁺, β⁻)        A_ij ~ Bernoulli(η_{z_i z_j})
 *                                         η_lm ~ Gamma(β⁺, rate β⁻)  A_ij ~ Poisson(η_{z_i z_j})
 *                         τ_lm ~ Gamma(β⁺, rate β⁻), μ_lm ~ N(0, 1 / τ_lm)  A_ij ~ N(μ_{z_i z_j}, 1 / τ_{z_i z_j})
 *
 * Real values, the last line, come standardised and as whole multiples of a unit, a power of two, so that their sums
 * and sums of squares are whole numbers too and no order of adding them makes a difference. A value of 0 is no link;
 * all pairs that are not missing are observed.
 *
 * Mode 0 are the rows, mode 1 the columns. A one-mode graph has one partition for both: its state is mode 0 only.
 * With η integrated out, a block with N links in P observed pairs contributes f(N, P), or with squares Q of its values
 * f(N, Q, P) (score.h), and
 *
 *   log posterior = Σ_lm f(N_lm, P_lm) + log CRP(z)   (+ log CRP of the other mode)
 *
 * which is the scale of every log posterior that leaves this room, whatever the sampler. */
#pragma once

#include "core/call/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { WEFT_IRM_BIPARTITE, WEFT_IRM_DIRECTED, WEFT_IRM_UNDIRECTED } weft_irm_type;

/* Neighbours of node i: to[start[i]] .. to[start[i + 1] - 1], ascending. weight is NULL when all are 1. */
typedef struct weft_irm_lists {
  const int64_t *start;
  const int32_t *to, *weight;
} weft_irm_lists;

/* Links and missing pairs in both orders. A bipartite graph: [0] by rows, [1] by columns. A directed one: [0] outgoing,
 * [1] incoming. An undirected one: [0] both ways, [1] the same. One-mode lists leave the diagonal out; it is in
 * self_*. */
typedef struct weft_irm_graph {
  weft_irm_type type;
  int64_t n[2];
  weft_irm_lists links[2], missing[2];
  int64_t link_count[2], missing_count[2]; /* entries of the lists */
  const int32_t *self_weight;              /* NULL without self links */
  const uint8_t *self_pair;                /* 1 where the pair (i, i) is observed */
  double unit;                             /* of real values; 0 for links and counts */
  double log_factorials;                   /* Σ log A_ij!, for counts; P / 2 log 2π + P log(their scale) for values */
} weft_irm_graph;

/* A canonical list as R keeps it: sorted by row, then column, without duplicates; one-mode undirected: i <= j. */
typedef struct weft_irm_edges {
  int64_t n[2], count;
  const double *start;        /* n[0] + 1 */
  const int32_t *to, *weight; /* from 0; weight may be NULL */
} weft_irm_edges;

typedef struct weft_irm_model {
  int poisson, collapsed;
  int nested, degrees; /* groups of groups, and degrees of the nodes' own: cpu/nested/levels.h */
  int32_t k[2];        /* most clusters; k[1] is 0 in a one-mode graph */
  int attempts;        /* split-merge proposals per sweep and mode */
  int sample_alpha, sample_beta;
  double alpha_prior[2], beta_prior[2]; /* shape and rate of their gamma priors */
  uint64_t key;
} weft_irm_model;

/* One chain: everything that the next sweep depends on, and the best sample so far. */
typedef struct weft_irm_chain {
  int32_t *z[2];
  double alpha[2], beta[2];
  uint32_t number;
  double best;
  int32_t *best_z[2];
  double best_alpha[2], best_beta[2];
  int32_t *upper, *best_upper; /* of nested groups: the levels above z, weft_irm_nested_words() each */
  int32_t *drawn;              /* and the counts of missing pairs, in the order of the list by row */
} weft_irm_chain;

/* The stages of a device's sweep, for measuring where the time goes. */
enum {
  WEFT_IRM_STAGE_PARAMETERS,
  WEFT_IRM_STAGE_ROWS,
  WEFT_IRM_STAGE_COLUMNS,
  WEFT_IRM_STAGE_BLOCKS,
  WEFT_IRM_STAGE_OTHER,
  WEFT_IRM_STAGES
};

/* Per sweep and chain, sweeps fastest. The labels of every thin-th sweep are kept, counted over the chain's life. */
typedef struct weft_irm_trace {
  double *log_posterior; /* sweeps x chains */
  int32_t *clusters[2];
  int32_t *full[2];               /* 1 where the limit of clusters took effect: see chains.c */
  double *alpha, *beta;           /* sweeps x 2 x chains */
  int64_t thin, kept;             /* samples per chain */
  int32_t *samples[2];            /* n x kept x chains, labels from 0 by first appearance */
  int64_t block;                  /* sweeps, counted likewise, */
  double *expected;               /* over which, and over chains, the expected counts of missing pairs are summed */
  double stages[WEFT_IRM_STAGES]; /* seconds */
} weft_irm_trace;

/* A sweep's operations, chain after chain. A device runs the blocked sampler on bipartite graphs of links and counts,
 * and keeps labels and blocks between sweeps: `fetch` and `put` bring them to the state and back. One-mode graphs and
 * the collapsed sampler, which draw node after node, and real values run on the CPU alone. Both back ends draw the same
 * labels.
 *
 * When the context is a part's of several that meet (core/together/exchange.h), `open` takes its share of the nodes of
 * blocked bipartite graphs, `labels` draws these and `count` counts their links; all parts have all labels and blocks
 * afterwards. */
struct irm_state;
struct irm_engine;
typedef struct weft_irm_ops {
  int stays; /* labels and blocks do, between sweeps */
  weft_status (*open)(const struct weft_irm_ops *ops, weft_ctx *ctx, struct irm_state *const *states, int chains,
                      int threads, struct irm_engine **out);
  void (*close)(struct irm_engine *engine);
  /* New labels of all modes from the blocks and, blocked, the drawn log μ; sizes go to the state, and from the
   * collapsed sampler blocks and active clusters too. poll may be NULL on the CPU. */
  weft_status (*labels)(weft_ctx *poll, struct irm_engine *engine, struct irm_state *state, double done, double total);
  /* Gives every label l of a mode the name place[mode][l] (when `rename`), then counts the blocks. Sizes go to the
   * state too. */
  weft_status (*count)(weft_ctx *poll, struct irm_engine *engine, struct irm_state *state, int rename, double done,
                       double total);
  /* rows[l]: what the blocks of row cluster l contribute to the log posterior, k[0] of them. */
  weft_status (*block_sums)(weft_ctx *poll, struct irm_engine *engine, struct irm_state *state, double *rows);
  /* Labels, and blocks when asked for, to the state; and both from it. */
  weft_status (*fetch)(weft_ctx *poll, struct irm_engine *engine, struct irm_state *state, int blocks);
  weft_status (*put)(weft_ctx *poll, struct irm_engine *engine, struct irm_state *state);
  /* Marks the present labels as the best so far; copies the best ones to the chain. */
  weft_status (*keep)(weft_ctx *poll, struct irm_engine *engine, struct irm_state *state);
  weft_status (*fetch_best)(weft_ctx *poll, struct irm_engine *engine, struct irm_state *state);
  /* Seconds per stage since open; zeros on the CPU. */
  void (*stages)(struct irm_engine *engine, double seconds[WEFT_IRM_STAGES]);
} weft_irm_ops;

extern const weft_irm_ops weft_irm_cpu;

/* Runs `sweeps` more sweeps of every chain, which have had `done` each. */
weft_status weft_irm_run(weft_ctx *ctx, const weft_irm_ops *ops, const weft_irm_graph *graph,
                         const weft_irm_model *model, int chains, weft_irm_chain *chain, int64_t done, int64_t sweeps,
                         weft_irm_trace *trace);

/* weft_irm_run() on all devices of the call: each runs some of the chains or, where there are fewer chains than
 * devices, its share of every sweep (irm/cpu/spread.c). */
weft_status weft_irm_run_spread(weft_ctx *ctx, const weft_irm_ops *ops, const weft_irm_graph *graph,
                                const weft_irm_model *model, int chains, weft_irm_chain *chain, int64_t done,
                                int64_t sweeps, weft_irm_trace *trace);

/* Words of the levels above the groups of a nested model with these limits; and where chain `number` of one starts. */
int64_t weft_irm_nested_words(const int32_t k[2]);
weft_status weft_irm_nested_start(weft_ctx *ctx, const weft_irm_graph *graph, int degrees, uint64_t key,
                                  const int32_t k[2], uint32_t number, int32_t *const z[2], int32_t *upper);
/* Where all chains start, chain after chain, and the counts of missing pairs that they start with, `drawn`. */
weft_status weft_irm_nested_starts(weft_ctx *ctx, const weft_irm_graph *graph, const weft_irm_model *model, int chains,
                                   int32_t *const z[2], int32_t *upper, int32_t *drawn);
/* Description length of a partition whose groups, and groups of groups, are `upper`'s (NULL: one for each type), in
 * model->k groups. With missing pairs, an estimate: minus the log of the sum over all their counts. */
weft_status weft_irm_nested_length(weft_ctx *ctx, const weft_irm_graph *graph, const weft_irm_model *model,
                                   int32_t *const z[2], const int32_t *upper, double *length);

/* N and P of the blocks, rows fastest (l + m * k[0]). For undirected graphs both triangles. Real values:
 * sums and squares in the data's units; `squares` may be NULL for links and counts. */
weft_status weft_irm_blocks(weft_ctx *ctx, const weft_irm_graph *graph, int32_t *const z[2], const int32_t k[2],
                            double *links, double *pairs, double *squares);

#ifdef __cplusplus
}
#endif
