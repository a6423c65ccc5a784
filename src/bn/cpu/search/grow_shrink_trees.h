/* The parents of a node among those before it, remembered; see grow_shrink_trees.c. */
#pragma once

#include "bn/cpu/search/scorer.h"
#include "bn/cpu/search/small_sets.h"

/* Parents of each node among those before it: grown from the best single one on, by the best each time, while the
 * score rises; then shrunk likewise. A branch is a node that raises the score of its stem's set. */
typedef struct weft_bn_branch {
  int64_t score;
  int32_t node;
  uint32_t to;
} weft_bn_branch;
typedef struct weft_bn_stem {
  int64_t score, shrunk;
  uint32_t first, count; /* of its branches */
  uint64_t kept;         /* by bit: members that shrinking keeps, in the order in which they came */
  uint32_t again;        /* the stem of these, from which the set grows once more */
} weft_bn_stem;

/* A node's tree, and whether a thread is using it; 64 bytes, so that threads that use other trees do not wait. */
typedef struct weft_bn_tree {
  uint32_t stem;
  uint8_t busy, apart[59];
} weft_bn_tree;

/* Sets that thinning found (weft_bn_trees_thin()), best first: member[WEFT_BN_MAX_PARENTS * (FOUND * node + k) ..]. */
#define WEFT_BN_FOUND 32 /* of a node */
typedef struct weft_bn_thinned {
  size_t *count;
  int64_t *score;
  uint64_t *bits;
  uint8_t *size;
  int32_t *member;
} weft_bn_thinned;

typedef struct weft_bn_trees {
  const weft_bn_near *near;
  const weft_bn_listed *listed; /* width 0: none */
  const weft_bn_problem *problem;
  weft_bn_tree *root;    /* p */
  uint32_t *listed_stem; /* of each listed set, which grows, too; NULL: they stay as they are */
  weft_bn_stem *stem;
  weft_bn_branch *branch;
  size_t stems, branches, max_stems, max_branches;
  int shared;              /* by threads */
  weft_bn_thinned thinned; /* count NULL: none are looked for */
} weft_bn_trees;

/* Which nodes come before: those whose place is below `limit`; for `moved`, `before` says whether it does. bits[k]: the
 * bits of the nodes at places below k. */
typedef struct weft_bn_prefix {
  const int32_t *place;
  const uint64_t *bits;
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
/* Thins out all candidates of i among the nodes before it: the one that matters least is left out, again and again.
 * What this leaves, grown and shrunk, is remembered if its score is above `value`; returns whether it is. */
int weft_bn_trees_thin(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_prefix prefix, int64_t value);
/* The score of node i's parents; with `parents` (not NULL) also which they are, ascending, *m of them. *asked_for has
 * the bits of all nodes for which it mattered whether they come before: the score stays the same until that changes for
 * one of these. Nodes share bits, so that a bit may be set for another node. */
int64_t weft_bn_trees_value(weft_bn_trees *trees, weft_bn_scorer *scorer, size_t i, weft_bn_prefix prefix,
                            uint64_t *asked_for, size_t *parents, size_t *m);
