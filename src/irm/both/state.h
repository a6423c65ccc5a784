/* The state of one chain while it runs: labels, cluster sizes, and links and observed pairs of every block.
 *
 *   links[0][l * k[1] + m]   N_lm, contiguous in m: what a node of mode 0 reads
 *   links[1][m * k[0] + l]   the same transposed: what a node of mode 1 reads
 *   pairs[0], pairs[1]       P_lm likewise
 *   values[0], values[1]     Q_lm, squares of real values, in units like N_lm
 *
 * A one-mode graph has mode 0 only: links[1] is then the transpose for incoming links, and the very same array as
 * links[0] when the graph is undirected (both triangles are kept; the diagonal counts every pair once). */
#pragma once

#include "core/call/arena.h"
#include "core/numbers/draws.h"
#include "irm/irm.h"
#include "irm/both/score.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Links and observed pairs of one node with each cluster of the other side; [1]: a directed graph's incoming ones. */
typedef struct irm_profile {
  int64_t *links[2], *pairs[2];
  int64_t *values; /* of real values, their squares */
  int64_t self_links, self_pairs;
} irm_profile;

typedef struct irm_trial irm_trial;

/* Each cluster's best partner in the mode that is joined, the gain of their union, the cluster that it went into, and
 * whether it has changed. */
typedef struct irm_joins {
  double *gain;
  int32_t *best, *into;
  uint8_t *changed;
} irm_joins;

/* A sweep's proposals in a mode: `next` is the first without an outcome; those below `begun` have been evaluated, for
 * some earlier state; those below `end` have slots, number n the slot of n modulo their number. */
typedef struct irm_queue {
  int next, begun, end, changed;
} irm_queue;

typedef struct irm_state {
  const weft_irm_graph *graph;
  const weft_irm_model *model;
  weft_irm_chain *chain;
  int one_mode, directions, modes; /* directions: 2 for a node of a directed graph */
  int32_t k[2];                    /* clusters of mode 0 and of what it meets: k[1] == k[0] in a one-mode graph */
  int32_t *z[2];
  int64_t *sizes[2];
  int32_t *active[2], active_count[2], *place[2]; /* occupied clusters; place in active, or -1 */
  int64_t *links[2], *pairs[2];
  int64_t *values[2]; /* Σ of squares of real values, like links; else NULL */
  int64_t *tallies;   /* blocks of each thread, when counting is shared out; or NULL */
  irm_tables tables;
  int on_device, on_host; /* where labels and blocks are as they are now, in a run that leaves them there */
  int best_on_device;
  int index, threads; /* of the chain in this run; for work that is shared out */
  irm_profile profile;
  double *scores;    /* of the clusters of a mode, for one node; also similarities */
  uint64_t *squares; /* Σ_i n_im² of each cluster and one of the other mode, modulo 2^64; see split_choice.c */
  int64_t *reached, *sampled_nodes, *begins, stride;
  double *spreads, *row_now; /* T of each cluster, and Σ f over its blocks */
  int32_t *order;
  irm_trial *trials; /* split-merge proposals that are evaluated at once, and room for a large one */
  int trial_count;
  irm_queue queue;
  int32_t *changes[2];  /* how often proposals have changed each cluster */
  int32_t before[2];    /* occupied clusters before the sweep */
  double *log_stick[2]; /* log μ of the sweep */
  double *block_now;    /* f of the blocks of a bipartite graph, by mode and cluster: greedy_ascent.c */
  double *block_sums;   /* of the rows of blocks, in the log posterior */
  double *rates;        /* of a cluster's blocks, k for each direction */
  int32_t *sampled[2];  /* the labels that irm_ascend() started from */
  irm_joins joins;
  int64_t sweep;
  uint64_t counter; /* of the draws of sequential code, from 0 in every sweep */
} irm_state;

weft_status irm_state_make(weft_ctx *ctx, weft_arena *arena, const weft_irm_graph *graph, const weft_irm_model *model,
                           weft_irm_chain *chain, int threads, irm_state *out);

/* Active clusters, ascending, from the sizes. */
void irm_state_count_active(irm_state *state, int mode);

/* Sizes, active clusters and pairs from the labels; then the links of slices of mode 0's nodes, and what follows from
 * them. */
void irm_state_count_begin(irm_state *state);
void irm_state_count_slice(irm_state *state, int64_t first, int64_t last);
void irm_state_count_end(irm_state *state);
/* All of this, with polls in between; poll may be NULL. */
weft_status irm_count_blocks(weft_ctx *poll, irm_state *state, double done, double total);

/* A cluster gains or loses nodes: its size, and its place among the active ones. */
void irm_change_size(irm_state *state, int mode, int32_t l, int64_t by);

/* Counts node i's links and observed pairs with each active cluster of the other mode into state->profile. */
void irm_profile_node(irm_state *state, int mode, int64_t i);

/* Takes node i out of its cluster; the profile is then the node's. Unassigned neighbours (label -1) do not count. */
void irm_take_out(irm_state *state, int mode, int64_t i);
/* Puts the node of the profile into cluster l. */
void irm_put_in(irm_state *state, int mode, int64_t i, int32_t l);
/* Gain in Σ f of putting the node of the profile into cluster l. */
double irm_gain(const irm_state *state, int mode, int32_t l);
/* Gain in Σ f of making one cluster of a and b. */
double irm_merge_gain(const irm_state *state, int mode, int32_t a, int32_t b);
/* The which-th empty cluster of a mode, from 0; -1 when there are fewer. */
int32_t irm_free_cluster(const irm_state *state, int mode, int32_t which);

/* The log posterior from the sums of the rows of blocks; and these sums. */
double irm_state_log_posterior(const irm_state *state);
void irm_state_block_sums(irm_state *state);

/* ---- draws: index = sweep, then what the stream's own index is ---- */

enum { IRM_DRAW_STICK, IRM_DRAW_ETA, IRM_DRAW_ROW, IRM_DRAW_COL, IRM_DRAW_SEQUENCE, IRM_DRAW_PURPOSES };

static inline weft_rng irm_rng(const irm_state *state, int purpose)
{
  weft_rng rng = { state->model->key, (uint32_t) purpose + state->chain->number * IRM_DRAW_PURPOSES };
  return rng;
}

static inline uint64_t irm_index(const irm_state *state, uint64_t within)
{
  return ((uint64_t) state->sweep << 36) + within;
}

/* The next uniform of sequential code. */
static inline double irm_next(irm_state *state)
{
  return weft_draw_uniform(irm_rng(state, IRM_DRAW_SEQUENCE), irm_index(state, state->counter++));
}

static inline int64_t irm_next_below(irm_state *state, int64_t n)
{
  return (int64_t) weft_draw_below(irm_rng(state, IRM_DRAW_SEQUENCE), irm_index(state, state->counter++), (uint64_t) n);
}

/* f of the block at this place, as the state has it. */
static inline double irm_block_now(const irm_state *state, int turned, size_t at)
{
  return state->pairs[turned][at]
             ? irm_f_block(&state->tables, state->links[turned][at],
                           state->values[turned] ? state->values[turned][at] : 0, state->pairs[turned][at])
             : 0;
}

static inline int irm_other(const irm_state *state, int mode) { return state->one_mode ? 0 : 1 - mode; }

/* The end of the slice of nodes that starts at `first`: `per_node` + `per_link` x links adds up to at most `budget`. */
static inline int64_t irm_slice_end(const weft_irm_lists *lists, int64_t first, int64_t n, double per_node,
                                    double per_link, double budget)
{
  int64_t last = first;
  double work = 0;
  while (last < n && (last == first || work < budget)) {
    work += per_node + per_link * (double) (lists->start[last + 1] - lists->start[last]);
    last++;
  }
  return last;
}

/* The first node of a mode that is part `part`'s of `parts`; part `parts` starts behind the last. Shares are about
 * equal in links and in what a node costs besides, its product with a table. */
static inline int64_t irm_share_start(const weft_irm_graph *graph, int mode, const int32_t k[2], int part, int parts)
{
  const int64_t *start = graph->links[mode].start;
  const double each = 1 + (double) k[0] * k[1] / 1500;
  const double target = ((double) start[graph->n[mode]] + each * (double) graph->n[mode]) * part / parts;
  int64_t low = 0, high = graph->n[mode];
  if (part == parts) return high;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if ((double) start[middle] + each * (double) middle < target)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

#ifdef __cplusplus
}
#endif
