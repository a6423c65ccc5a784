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

#include "bn/bn.h"

/* Fewer nodes need no lanes: starts are enough for the threads; and there is time to thin out sets of parents. */
#define WEFT_BN_FEW_NODES 256

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

/* Searches; fills `out`, of whose arrays dag and the counts are 0 before. */
weft_status weft_bn_search_run(weft_ctx *ctx, const weft_bn_search *search, weft_bn_found *out);
