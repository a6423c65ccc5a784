/* A search for the best graph of many nodes, without a table of all parent sets: best moves of single nodes through an
 * order, whose parents are grown and shrunk greedily among the nodes before each (Andrews and others 2023).
 *
 *   scorer.c             scores of single families; gauss.c: of Gaussian ones, many at once
 *   candidates.c         which nodes may be whose parents: what a greedy search over all nodes finds, and the strongest
 *                        ones
 *   grow_shrink_trees.c  grow-shrink trees: the parents of a node among those before it, remembered
 *   small_sets.c         beside these, all small sets of parents
 *   climb.c              moves of nodes in one order
 *   near_table.c         a table for bn_learn(): candidates, then the sets that settled orders ask for
 *   search.c             starts, kicks that are tried at once, and the whole
 *
 * Scores are whole numbers of 2^-bits nats (bn.h): the result depends neither on threads nor on the order of sums. */
#pragma once

#include "bn/both/internal.h"

typedef struct weft_bn_search {
  const weft_bn_problem *problem;
  size_t starts; /* random orders to begin with */
  size_t kicks;  /* per start: how often some nodes are moved at random and searched from again */
  double listed; /* how many small sets of parents may be listed in full; 0: none */
  size_t width;  /* candidates of a node by their own score, beside those that are found together */
  uint64_t key;
} weft_bn_search;

typedef struct weft_bn_found {
  int32_t *order;                           /* p: nodes */
  int32_t *dag;                             /* p × p, zero: [from, to] */
  double *node_score;                       /* p, nats */
  double *start_score;                      /* starts: what each came to, nats */
  double moves, scored, candidates, rounds; /* best moves, parent sets scored, pairs, widenings of the candidates */
} weft_bn_found;

/* The table of the sets that a search needs (near_table.c), the orders, p × WEFT_BN_NEAR_STARTS, where searches
 * ended that found these, and how many sets were scored. Of `search` the problem, width and key count. */
#define WEFT_BN_NEAR_STARTS 16
weft_status weft_bn_near_table(weft_ctx *ctx, const weft_bn_search *search, weft_arena *keep, weft_bn_table *out,
                               int32_t *order, double *scored);
weft_status weft_bn_search_run(weft_ctx *ctx, const weft_bn_search *search, weft_bn_found *out);

/* ---- shared by these files ---- */

/* One thread's work space for scoring sets. */
typedef struct weft_bn_scorer {
  weft_bn_ready *ready;
  weft_bn_bench bench;
  size_t *more;                  /* p */
  int64_t *value, *grown;        /* p */
  struct weft_bn_branch *branch; /* p */
  double *row;            /* Gaussian: covariances of the candidates with each parent, their own, with the node */
  double *penalty;        /* p: of a configuration of the parents, in units (shared) */
  size_t *required_count; /* p (shared) */
  int thread;
  double scored;
} weft_bn_scorer;

weft_status weft_bn_scorers_make(weft_arena *mem, weft_bn_ready *ready, weft_bn_scorer *out);
/* out[k] = score of i with the parents and more[k]; NEVER where there is none. `parents` ascend. */
void weft_bn_scorer_extend(weft_bn_scorer *scorer, size_t i, const size_t *parents, size_t m, const size_t *more,
                           size_t count, int64_t *out);
int64_t weft_bn_scorer_value(weft_bn_scorer *scorer, size_t i, const size_t *parents, size_t m);
/* The required parents of i, ascending; returns how many. */
size_t weft_bn_required_of(const weft_bn_problem *problem, size_t i, size_t *out);
/* Puts v into the ascending set. */
static inline void weft_bn_set_insert(size_t *set, size_t m, size_t v)
{
  while (m > 0 && set[m - 1] > v) {
    set[m] = set[m - 1];
    m--;
  }
  set[m] = v;
}

/* Which nodes may be whose parents: candidates of i are node[start[i] .. start[i + 1] - 1]; i is one of kid_start[i]
 * .. */
typedef struct weft_bn_near {
  uint8_t *is; /* [child, parent] */
  size_t *start, *kid_start;
  int32_t *node, *kid;
  uint8_t *grown; /* p: gets a candidate by widening */
  size_t pairs, widest;
  /* Gaussian, where there is room: of each node, rows of its candidates' covariances with each other and with it, a row
   * of its own with them, a row of their variances; and what each candidate adds as an edge. NULL elsewhere. */
  double *covariance;
  size_t *covariance_start;
  int64_t *share;
} weft_bn_near;

#define WEFT_BN_GAUSS_LANES 16
static inline size_t weft_bn_near_stride(const weft_bn_near *near, size_t i)
{
  return (near->start[i + 1] - near->start[i] + WEFT_BN_GAUSS_LANES) / WEFT_BN_GAUSS_LANES * WEFT_BN_GAUSS_LANES;
}

weft_status weft_bn_near_find(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, weft_bn_scorer *scorers,
                              weft_bn_near *out);
/* Adds, for each node, the best node before it that is no candidate, when it raises the score. *added: how many. */
weft_status weft_bn_near_widen(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, weft_bn_scorer *scorers,
                               const int32_t *order, const int32_t *dag, weft_bn_near *near, size_t *added);

/* Scores of i with parents and one more candidate, for each of them (NEVER for those that are parents), and with each
 * parent left out. Parents are places among the candidates of i, ascending. */
void weft_bn_scorer_near(weft_bn_scorer *scorer, const weft_bn_near *near, size_t i, const size_t *at, size_t m,
                         int64_t *out);
void weft_bn_scorer_without(weft_bn_scorer *scorer, const weft_bn_near *near, size_t i, const size_t *at, size_t m,
                            int64_t *out);

/* A matrix of covariances in which parents and `child` are rows. */
typedef struct weft_bn_covariances {
  const double *matrix;
  size_t stride, child, group;
} weft_bn_covariances;

static inline weft_bn_covariances weft_bn_near_covariances(const weft_bn_near *near, const weft_bn_problem *problem,
                                                           size_t i)
{
  return (weft_bn_covariances){ near->covariance + near->covariance_start[i], weft_bn_near_stride(near, i),
                                near->start[i + 1] - near->start[i], (size_t) problem->group[i] };
}

/* Raw scores of the child with the parents and each of `count` candidates, of which are given the covariances with each
 * parent, the variances, and the covariances with the child. These are read up to a multiple of LANES. */
void weft_bn_gauss_extend(const weft_bn_ready *ready, weft_bn_covariances covariances, const size_t *parents, size_t m,
                          const double *const *row, const double *left, const double *cross, size_t count,
                          int64_t *out);
/* Raw scores without each of the parents. */
void weft_bn_gauss_without(const weft_bn_ready *ready, weft_bn_covariances covariances, const size_t *parents, size_t m,
                           int64_t *out);

/* Parents of each node among those before it: grown from the best single one on, by the best each time, while the
 * score rises; then shrunk likewise. A branch is a node that raises the score of its stem's set. */
typedef struct weft_bn_branch {
  int64_t score;
  int32_t node;
  uint32_t to;
} weft_bn_branch;
typedef struct weft_bn_stem {
  int64_t score, shrunk;
  uint32_t first, count;
} weft_bn_stem;

/* All sets of few candidates that can be the best, best first: what greedy growth misses where only two parents
 * together are informative. Set k of node i, from start[i] on: member[width * k ..], -1 after the last. */
typedef struct weft_bn_listed {
  size_t *start, width;
  int64_t *score;
  int32_t *member;
} weft_bn_listed;

weft_status weft_bn_listed_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                                weft_bn_scorer *scorers, weft_bn_listed *out);

/* A node's tree, and whether a thread is using it; 64 bytes, so that threads that use other trees do not wait. */
typedef struct weft_bn_tree {
  uint32_t stem;
  uint8_t busy, apart[59];
} weft_bn_tree;

typedef struct weft_bn_trees {
  const weft_bn_near *near;
  const weft_bn_listed *listed; /* width 0: none */
  const weft_bn_problem *problem;
  weft_bn_tree *root; /* p */
  weft_bn_stem *stem;
  weft_bn_branch *branch;
  size_t stems, branches, max_stems, max_branches;
  int shared; /* by threads */
} weft_bn_trees;

/* Which nodes come before: those whose place is below `limit`; for `moved`, `before` says whether it does. */
typedef struct weft_bn_prefix {
  const int32_t *place;
  int32_t limit, moved;
  int before;
} weft_bn_prefix;

/* With a share of the room for trees. */
weft_status weft_bn_trees_make(weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                               const weft_bn_listed *listed, size_t shares, weft_bn_trees *out);
/* Forgets the trees of the marked nodes, whose candidates are others now. */
void weft_bn_trees_forget(weft_bn_trees *trees, const uint8_t *which);
/* Forgets shared trees when more than this part of their room is used. Call both only when no thread uses the trees. */
void weft_bn_trees_tidy(weft_bn_trees *trees, double filled);
/* The score of node i's parents; with `parents` (not NULL) also which they are, ascending, *m of them. *asked_for has
 * the bits of all nodes for which it mattered whether they come before: the score stays the same until that changes for
 * one of these. Nodes share bits, so that a bit may be set for another node. */
int64_t weft_bn_trees_value(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_prefix prefix,
                            uint64_t *asked_for, size_t *parents, size_t *m);
static inline uint64_t weft_bn_bit(int32_t node) { return UINT64_C(1) << (node & 63); }
