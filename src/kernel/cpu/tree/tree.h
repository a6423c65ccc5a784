/* Trees over points: how they are built, checked and kept. */
#pragma once

#include "kernel/kernel.h"

typedef enum { WEFT_TREE_KD, WEFT_TREE_BALL, WEFT_TREE_VP, WEFT_TREE_RP } weft_tree_type;

/* Nodes in breadth-first order; a node's points are a run. The shape depends on n and the leaf size alone: each split
 * is by rank, at a multiple of the leaf size. */
typedef struct weft_tree {
  weft_points points;   /* in the tree's order */
  const int32_t *order; /* order[i]: the row, from 0, of the tree's point i */
  size_t nodes, leaf_size;
  const double *first, *count; /* of points, per node; doubles, as R keeps them */
  const int32_t *child;        /* the left child, the right one follows; -1: a leaf */
  const double *box;           /* nodes * 2d: least, then greatest coordinates */
  const double *centre;  /* ball, vp, rp: nodes * (d + 1): middle relative to the node's first point, radius; or NULL */
  const double *moments; /* NULL, or weft_kernel_moments() of the weights, where many walks share them */
} weft_tree;

/* Nodes of a tree over n points. */
size_t weft_tree_nodes(size_t n, size_t leaf_size);
/* The uppermost nodes of the subtree at `from` with at most `most` points, or leaves, from left to right. Room for all
 * nodes. */
size_t weft_tree_top(const weft_tree *tree, size_t from, double most, int32_t *nodes);

/* Fills order, points (moved in place), nodes. All arrays are the caller's. */
typedef struct weft_tree_build {
  weft_tree_type type;
  size_t n, d, leaf_size, nodes;
  uint64_t key;
  double *x, *lo; /* moved into the tree's order */
  int32_t *order;
  double *first, *count, *box, *centre;
  int32_t *child;
} weft_tree_build;
weft_status weft_tree_grow(weft_ctx *ctx, const weft_tree_build *build);
/* For trees that were kept elsewhere: *wrong is NULL, or the array that weft_tree_grow() cannot have made. Arrays must
 * have their sizes. */
weft_status weft_tree_check(weft_ctx *ctx, const weft_tree_build *build, const char **wrong);
