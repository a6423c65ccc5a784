/* .Call entry points of the room of groups. Points are matrices with a column for each point. */
#include "core/r/record.h"
#include "clusters/clusters.h"

static weft_points points_of(SEXP x) { return (weft_points){ REAL_RO(x), (size_t) Rf_ncols(x), (size_t) Rf_nrows(x) }; }

static weft_clusters_search search_of(weft_record *given)
{
  return (weft_clusters_search){ weft_record_size(given, "means"), weft_record_size(given, "equal_means"),
                                 weft_record_key(given, "key") };
}

typedef struct {
  weft_points points;
  weft_clusters_search search;
  weft_clusters_rule rule;
  int *rows;
  weft_clusters_node *nodes;
  size_t count;
} tree_job;
WEFT_WORK(tree, tree_job,
          weft_clusters_tree(ctx, &job->points, &job->search, &job->rule, job->rows, job->nodes, &job->count))

/* A matrix with a row for each node, as clusters.h describes them. */
static void put_nodes(SEXP out, const tree_job *job)
{
  enum { COLUMNS = 11 };
  double *to = REAL(weft_result_put(out, "nodes", weft_glue_matrix(REALSXP, (double) job->count, COLUMNS)));
  for (size_t at = 0; at < job->count; at++) {
    const weft_clusters_node *node = job->nodes + at;
    const double row[COLUMNS] = { node->parent + 1,     node->left + 1,       node->right + 1, node->order,
                                  (double) node->first, (double) node->count, node->valley,    node->null_mean,
                                  node->null_sd,        node->p_value,        node->null_sets };
    for (size_t column = 0; column < COLUMNS; column++) to[column * job->count + at] = row[column];
  }
}

/* rule: list(means, equal_means, key, leaves, level, null_sets). list(rows: an order of the points, from 1; nodes). */
SEXP C_weft_clusters_tree(SEXP x, SEXP rule, SEXP control)
{
  weft_record given = weft_record_open(rule, "rule");
  tree_job job = { .points = points_of(x), .search = search_of(&given) };
  job.rule.leaves = weft_record_size(&given, "leaves");
  job.rule.level = weft_record_number(&given, "level");
  job.rule.null_sets = weft_record_integer(&given, "null_sets");
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("rows", "nodes"));
  job.rows = INTEGER(weft_result_put(out, "rows", weft_glue_vector(INTSXP, (double) job.points.n)));
  job.nodes = (weft_clusters_node *) R_alloc(2 * job.rule.leaves, sizeof *job.nodes);
  weft_glue_run(control, tree, &job);
  for (size_t i = 0; i < job.points.n; i++) job.rows[i]++;
  put_nodes(out, &job);
  UNPROTECT(1);
  return out;
}

typedef struct {
  weft_points points;
  size_t k;
  double *centres;
  int *labels;
} settle_job;
WEFT_WORK(settle, settle_job, weft_clusters_settle(ctx, &job->points, job->k, job->centres, job->labels))

/* centres: a matrix with a column for each group. list(centres, labels, from 1). */
SEXP C_weft_clusters_settle(SEXP x, SEXP centres, SEXP control)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("centres", "labels"));
  settle_job job = { points_of(x), (size_t) Rf_ncols(centres), NULL, NULL };
  job.centres = REAL(weft_result_put(out, "centres", Rf_duplicate(centres)));
  job.labels = INTEGER(weft_result_put(out, "labels", weft_glue_vector(INTSXP, (double) job.points.n)));
  weft_glue_run(control, settle, &job);
  for (size_t i = 0; i < job.points.n; i++) job.labels[i]++;
  UNPROTECT(1);
  return out;
}

static weft_clusters_resample resample_of(weft_record *given)
{
  return (weft_clusters_resample){ weft_record_size(given, "samples"), weft_record_size(given, "m"),
                                   weft_record_size(given, "k"), weft_record_size(given, "starts") };
}

typedef struct {
  weft_points points;
  weft_clusters_search search;
  weft_clusters_resample resample;
  weft_clusters_grown grown;
} grow_job;
WEFT_WORK(grow, grow_job, weft_clusters_grow(ctx, &job->points, &job->search, &job->resample, &job->grown))

/* resample: list(means, equal_means, key, samples, m, k, starts). list(rows, labels: points x subsamples, parents:
 * groups x subsamples, found), all from 0. */
SEXP C_weft_clusters_grow(SEXP x, SEXP resample, SEXP control)
{
  weft_record given = weft_record_open(resample, "resample");
  grow_job job = { .points = points_of(x), .search = search_of(&given), .resample = resample_of(&given) };
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("rows", "labels", "parents", "found"));
  const double samples = (double) job.resample.samples, m = (double) job.resample.m, k = (double) job.resample.k;
  job.grown.k = job.resample.k;
  job.grown.rows = INTEGER(weft_result_put(out, "rows", weft_glue_matrix(INTSXP, m, samples)));
  job.grown.labels = INTEGER(weft_result_put(out, "labels", weft_glue_matrix(INTSXP, m, samples)));
  job.grown.parents = INTEGER(weft_result_put(out, "parents", weft_glue_matrix(INTSXP, k, samples)));
  job.grown.found = INTEGER(weft_result_put(out, "found", weft_glue_vector(INTSXP, samples)));
  WEFT_RUN_RETURN(out, control, grow, &job);
}

typedef struct {
  weft_points points;
  uint64_t key;
  weft_clusters_resample resample;
  weft_clusters_grown grown;
  double *centres;
  int *found;
} subsamples_job;
WEFT_WORK(subsamples, subsamples_job,
          weft_clusters_subsamples(ctx, &job->points, job->key, &job->resample,
                                   job->resample.starts ? NULL : &job->grown, job->centres, job->found))

/* What C_weft_clusters_grow() returned of as many subsamples; these are only read. */
static weft_clusters_grown grown_of(SEXP grown, const weft_clusters_resample *resample)
{
  weft_record given = weft_record_open(grown, "grown");
  const double samples = (double) resample->samples, m = (double) resample->m;
  weft_clusters_grown out = { .k = (size_t) Rf_nrows(weft_record_field(&given, "parents")) };
  out.rows = (int *) weft_record_integers(&given, "rows", m * samples);
  out.labels = (int *) weft_record_integers(&given, "labels", m * samples);
  out.parents = (int *) weft_record_integers(&given, "parents", (double) out.k * samples);
  out.found = (int *) weft_record_integers(&given, "found", samples);
  weft_record_close(&given);
  return out;
}

/* resample: list(key, samples, m, k, starts); grown: what C_weft_clusters_grow() returned, where starts is 0.
 * list(centres: a column for each group of each subsample; found). */
SEXP C_weft_clusters_subsamples(SEXP x, SEXP resample, SEXP grown, SEXP control)
{
  weft_record given = weft_record_open(resample, "resample");
  subsamples_job job = { .points = points_of(x),
                         .key = weft_record_key(&given, "key"),
                         .resample = resample_of(&given) };
  weft_record_close(&given);
  if (!job.resample.starts) job.grown = grown_of(grown, &job.resample);
  SEXP out = PROTECT(WEFT_NAMED_LIST("centres", "found"));
  job.centres = REAL(weft_result_put(out, "centres",
                                     weft_glue_matrix(REALSXP, (double) job.points.d,
                                                      (double) (job.resample.k * job.resample.samples))));
  job.found = INTEGER(weft_result_put(out, "found", weft_glue_vector(INTSXP, (double) job.resample.samples)));
  WEFT_RUN_RETURN(out, control, subsamples, &job);
}

typedef struct {
  weft_points points;
  weft_clusters_resample resample;
  const double *centres;
  const int *found, *labels;
  int *votes;
  double *agreement;
} vote_job;
WEFT_WORK(vote, vote_job,
          weft_clusters_vote(ctx, &job->points, &job->resample, job->centres, job->found, job->labels, job->votes,
                             job->agreement))

/* labels: from 0; subsamples: list(centres, found, as above; k). list(votes: points x groups; agreement: groups x
 * subsamples). */
SEXP C_weft_clusters_vote(SEXP x, SEXP labels, SEXP subsamples, SEXP control)
{
  weft_record given = weft_record_open(subsamples, "subsamples");
  vote_job job = { .points = points_of(x), .labels = INTEGER_RO(labels) };
  job.resample.k = weft_record_size(&given, "k");
  job.centres = weft_record_doubles(&given, "centres", WEFT_ANY_LENGTH);
  job.resample.samples = (size_t) Rf_xlength(weft_record_field(&given, "found"));
  job.found = weft_record_integers(&given, "found", (double) job.resample.samples);
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("votes", "agreement"));
  job.votes =
      INTEGER(weft_result_put(out, "votes", weft_glue_matrix(INTSXP, (double) job.points.n, (double) job.resample.k)));
  job.agreement =
      REAL(weft_result_put(out, "agreement",
                           weft_glue_matrix(REALSXP, (double) job.resample.k, (double) job.resample.samples)));
  WEFT_RUN_RETURN(out, control, vote, &job);
}
