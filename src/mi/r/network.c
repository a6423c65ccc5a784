/* .Call entry points of networks: from information to weights, and what is read from, and removed from, large networks.
 * Matrices are read through read-only pointers: R may have wrapped one to change its attributes, and would copy it to
 * provide a writable pointer. */
#include "mi/r/glue.h"
#include "mi/networks/cpu/edges.h"

/* ---- from information to weights ---- */

typedef struct {
  weft_network_job job;
  double *out;
} network_job;
WEFT_WORK(network, network_job, backend->mi->network(ctx, &job->job, job->out))

static network_job job_of(SEXP m, SEXP how)
{
  weft_record given = weft_record_open(how, "how");
  network_job job = { .out = NULL };
  job.job.m = weft_glue_square(m, "m", &job.job.p);
  job.job.method = (weft_network_method) weft_record_kind(&given, "method", weft_network_names, WEFT_NETWORK_METHODS);
  job.job.eps = weft_record_number(&given, "eps");
  job.job.keep = weft_record_number(&given, "keep");
  job.job.least = weft_record_number(&given, "least");
  weft_record_close(&given);
  return job;
}

/* m: a square matrix. how: list(method, eps, keep, least), as in mi.h. */
SEXP C_weft_mi_network(SEXP m, SEXP how, SEXP control)
{
  network_job job = job_of(m, how);
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, (double) job.job.p, (double) job.job.p));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, network, &job);
}

/* thresholds: list(kind, threshold), kinds from 0 of all columns, and the thresholds of two kinds, a symmetric matrix.
 */
static weft_edge_thresholds thresholds_of(SEXP thresholds, size_t p)
{
  weft_record given = weft_record_open(thresholds, "thresholds");
  weft_edge_thresholds b = { weft_record_integers(&given, "kind", (double) p), 0, NULL };
  b.threshold = weft_glue_square(weft_record_field(&given, "threshold"), "threshold", &b.kinds);
  weft_record_close(&given);
  for (size_t i = 0; i < p; i++)
    if (b.of[i] < 0 || (size_t) b.of[i] >= b.kinds)
      weft_glue_fail(WEFT_ERR_INTERNAL, "Column %zu has no thresholds.", i + 1);
  return b;
}

typedef struct {
  weft_network_job job;
  weft_edge_thresholds thresholds;
  double *m;
} over_job;

static weft_status network_over(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  over_job *job = data;
  WEFT_TRY(backend->mi->network(ctx, &job->job, job->m));
  if (job->thresholds.threshold) WEFT_TRY(weft_edges_cut_thresholds(ctx, job->job.p, job->m, job->m, &job->thresholds));
done:
  return st;
}

/* The same on the CPU, in place of m, which nobody else holds; only of ARACNE. With thresholds, only edges that reach
 * theirs stay. */
SEXP C_weft_mi_network_over(SEXP m, SEXP how, SEXP thresholds, SEXP control)
{
  over_job job = { job_of(m, how).job, { NULL, 0, NULL }, REAL(m) };
  job.job.m = job.m;
  if (thresholds != R_NilValue) job.thresholds = thresholds_of(thresholds, job.job.p);
  weft_glue_run(control, network_over, &job);
  return m;
}

/* ---- edges ---- */

static weft_edges edges_of(SEXP w)
{
  weft_edges edges;
  edges.w = weft_glue_square(w, "x", &edges.p);
  return edges;
}

/* Information beside the weights `edges`. */
static const double *information_of(SEXP m, const weft_edges *edges)
{
  size_t p;
  const double *numbers = weft_glue_square(m, "mi", &p);
  if (p != edges->p)
    weft_glue_fail(WEFT_ERR_INPUT, "The information of a network must have its size, %zu; it has %zu.", edges->p, p);
  return numbers;
}

typedef struct {
  weft_edges edges;
  double threshold;
  int whole;
  double *counts;
} reaching_job;
WEFT_WORK(reaching, reaching_job, weft_edges_reaching(ctx, &job->edges, job->threshold, job->whole, job->counts))

/* How many entries of each column reach `threshold`. */
SEXP C_weft_mi_reaching(SEXP w, SEXP threshold, SEXP whole, SEXP control)
{
  weft_edges edges = edges_of(w);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) edges.p));
  reaching_job job = { edges, Rf_asReal(threshold), Rf_asLogical(whole), REAL(out) };
  WEFT_RUN_RETURN(out, control, reaching, &job);
}

typedef struct {
  weft_edges edges;
  const double *m;
  double cut, k, value;
} greatest_job;
WEFT_WORK(greatest, greatest_job, weft_edges_greatest(ctx, &job->edges, job->m, job->cut, job->k, &job->value))

/* The k-th greatest weight of edges with more information than `cut` in m. */
SEXP C_weft_mi_greatest(SEXP w, SEXP m, SEXP cut, SEXP k, SEXP control)
{
  const weft_edges edges = edges_of(w);
  greatest_job job = { edges, information_of(m, &edges), Rf_asReal(cut), Rf_asReal(k), 0 };
  weft_glue_run(control, greatest, &job);
  return Rf_ScalarReal(job.value);
}

typedef struct {
  size_t p;
  double *w;
  const double *m;
  double cut, threshold;
} cut_job;
WEFT_WORK(cut_edges, cut_job, weft_edges_cut(ctx, job->p, job->w, job->m, job->cut, job->threshold))

/* w with its light and insignificant edges set to 0: w itself when only the caller holds it, else a copy. */
SEXP C_weft_mi_cut_edges(SEXP w, SEXP m, SEXP cut, SEXP threshold, SEXP control)
{
  SEXP out = PROTECT(MAYBE_SHARED(w) ? Rf_duplicate(w) : w);
  const weft_edges edges = edges_of(out);
  cut_job job = { edges.p, REAL(out), information_of(m, &edges), Rf_asReal(cut), Rf_asReal(threshold) };
  WEFT_RUN_RETURN(out, control, cut_edges, &job);
}

typedef struct {
  weft_edges edges;
  weft_edge_thresholds thresholds;
  double *counts;
} reaching_thresholds_job;
WEFT_WORK(reaching_thresholds, reaching_thresholds_job,
          weft_edges_reaching_thresholds(ctx, &job->edges, &job->thresholds, job->counts))

/* How many entries above the diagonal of each column reach their thresholds. */
SEXP C_weft_mi_reaching_thresholds(SEXP w, SEXP thresholds, SEXP control)
{
  weft_edges edges = edges_of(w);
  const weft_edge_thresholds each = thresholds_of(thresholds, edges.p);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) edges.p));
  reaching_thresholds_job job = { edges, each, REAL(out) };
  WEFT_RUN_RETURN(out, control, reaching_thresholds, &job);
}

typedef struct {
  size_t p;
  double *w;
  const double *m;
  weft_edge_thresholds thresholds;
} cut_thresholds_job;
WEFT_WORK(cut_thresholds, cut_thresholds_job, weft_edges_cut_thresholds(ctx, job->p, job->w, job->m, &job->thresholds))

/* w with the edges set to 0 whose information in m does not reach its threshold: w itself when only the caller holds
 * it. */
SEXP C_weft_mi_cut_thresholds(SEXP w, SEXP m, SEXP thresholds, SEXP control)
{
  SEXP out = PROTECT(MAYBE_SHARED(w) ? Rf_duplicate(w) : w);
  const weft_edges edges = edges_of(out);
  cut_thresholds_job job = { edges.p, REAL(out), information_of(m, &edges), thresholds_of(thresholds, edges.p) };
  WEFT_RUN_RETURN(out, control, cut_thresholds, &job);
}

typedef struct {
  weft_edges edges;
  const double *starts;
  int *from, *to;
} list_job;
WEFT_WORK(list_edges, list_job, weft_edges_list(ctx, &job->edges, job->starts, job->from, job->to))

/* list(from, to) of the positive edges, from 1. starts: where each column's begin, from 0, and the end. */
SEXP C_weft_mi_edge_list(SEXP w, SEXP starts, SEXP control)
{
  const weft_edges edges = edges_of(w);
  if (TYPEOF(starts) != REALSXP || (size_t) Rf_xlength(starts) != edges.p + 1)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Starts do not fit the matrix.");
  const double *at = REAL_RO(starts);
  for (size_t j = 0; j < edges.p; j++)
    if (!(at[j] >= 0 && at[j] <= at[j + 1] && at[j + 1] - at[j] <= (double) j))
      weft_glue_fail(WEFT_ERR_INTERNAL, "Starts do not rise.");
  SEXP out = PROTECT(WEFT_NAMED_LIST("from", "to"));
  list_job job = { edges, at, INTEGER(weft_result_put(out, "from", weft_glue_vector(INTSXP, at[edges.p]))),
                   INTEGER(weft_result_put(out, "to", weft_glue_vector(INTSXP, at[edges.p]))) };
  WEFT_RUN_RETURN(out, control, list_edges, &job);
}
