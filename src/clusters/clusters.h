/* Groups of samples by their principal components: samples are divided in two, again and again, where their density has
 * a valley that data without groups hardly ever have (tree.c); subsamples are divided into as many groups, and
 * tell how sure each sample's group is (resample.c).
 *
 * Points are stored row by row: coordinate j of point i is x[i * d + j]. Labels are counted from 0. */
#pragma once

#include "core/call/context.h"
#include "core/numbers/draws.h"

typedef struct weft_points {
  const double *x;
  size_t n, d;
} weft_points;

/* The fewest points of a group, and of a set that is examined. */
enum { WEFT_CLUSTERS_SMALLEST = 4, WEFT_CLUSTERS_DIVISIBLE = 8 };

/* How a set of points is searched for a valley: directions are the first ten principal axes, and the lines between
 * the centres of 2 .. `means` groups by k-means, and of 2 .. `equal_means` in units in which axes vary more equally:
 * there a factor that groups share does not lead k-means astray. Last comes the discriminant direction of the two sides
 * of the deepest valley, as long as it finds a deeper one. */
typedef struct weft_clusters_search {
  size_t means, equal_means;
  uint64_t key;
} weft_clusters_search;

/* A set of points: all, or one side of a valley. */
typedef struct weft_clusters_node {
  int parent, left, right; /* -1: none */
  int order;               /* 1 for the first division; 0: was not divided */
  size_t first, count;     /* its points are rows[first .. first + count - 1] */
  double valley;           /* depth of the deepest valley, in standard errors; NaN: too few points */
  double null_mean, null_sd, p_value;
  int null_sets; /* how many null data sets were drawn; 0: the valley was not tested */
} weft_clusters_node;

/* Divides the points until there are `leaves` sets. With `level` > 0 only valleys that are significant divide: of a
 * share s of the points, at level * s. null_sets is the largest number of null data sets for each valley. rows (n)
 * becomes an order in which each set's points are neighbours; nodes has room for 2 * leaves - 1, the first is all
 * points; *count becomes how many there are. */
typedef struct weft_clusters_rule {
  size_t leaves;
  double level;
  int null_sets;
} weft_clusters_rule;
weft_status weft_clusters_tree(weft_ctx *ctx, const weft_points *points, const weft_clusters_search *search,
                               const weft_clusters_rule *rule, int *rows, weft_clusters_node *nodes, size_t *count);

/* Moves centres (k x d) to the means of the points nearest to them until no point changes its group. A centre without
 * points stays where it is. */
weft_status weft_clusters_settle(weft_ctx *ctx, const weft_points *points, size_t k, double *centres, int *labels);

/* Subsamples: how many, and of how many points; the number of groups, and of k-means from random starts. */
typedef struct weft_clusters_resample {
  size_t samples, m, k, starts;
} weft_clusters_resample;

/* Draws subsamples and divides each at its valleys into up to k groups. For each subsample, rows (m) become its points
 * in ascending order, labels (m) their groups, parents (k) the group that each was divided from: dividing into fewer
 * groups gives back the last ones to their parents. found says how many groups there are. */
typedef struct weft_clusters_grown {
  size_t k;
  int *rows, *labels, *parents, *found;
} weft_clusters_grown;
weft_status weft_clusters_grow(weft_ctx *ctx, const weft_points *points, const weft_clusters_search *search,
                               const weft_clusters_resample *resample, const weft_clusters_grown *grown);

/* k-means of each subsample: from the groups of `grown`, which may be more than k, or where that is NULL, the best of
 * `starts` from random starts. centres (samples x k x d) become the groups' means. `found` says how many groups there
 * are, fewer where points are few; the other centres are NaN. */
weft_status weft_clusters_subsamples(weft_ctx *ctx, const weft_points *points, uint64_t key,
                                     const weft_clusters_resample *resample, const weft_clusters_grown *grown,
                                     double *centres, int *found);

/* Each point's vote in each subsample is the group of the nearest of that subsample's centres, which are matched to the
 * groups of `labels` (k) by the largest Jaccard index first. votes (n x k, by columns) become counts of votes, and
 * agreement (k x samples) the Jaccard index of each group with its match, 0 where there is none. */
weft_status weft_clusters_vote(weft_ctx *ctx, const weft_points *points, const weft_clusters_resample *resample,
                               const double *centres, const int *found, const int *labels, int *votes,
                               double *agreement);
