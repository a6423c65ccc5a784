/* .Call entry points for numeric columns, networks, selection, binning and genotypes. */
#include <string.h>
#include "../base/glue.h"
#include "mi.h"

/* ---- all pairs of numeric columns ---- */

typedef struct { weft_mi_numeric data; double *out; } numeric_job;

static weft_status numeric(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  numeric_job *job = data;
  return backend->mi->numeric(ctx, &job->data, job->out);
}

/* x: double matrix; split: 0, or the number of columns that are compared with the rest. */
SEXP C_weft_mi_numeric(SEXP x, SEXP split, SEXP estimator, SEXP k, SEXP control)
{
  const int n = Rf_nrows(x), p = Rf_ncols(x), first = Rf_asInteger(split);
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, first ? first : p, first ? p - first : p));
  numeric_job job = { { (size_t) n, (size_t) p, REAL(x), (size_t) first, (weft_mi_numeric_kind) Rf_asInteger(estimator),
                        Rf_asInteger(k) }, REAL(out) };
  weft_glue_run(control, numeric, &job);
  UNPROTECT(1);
  return out;
}

/* ---- networks ---- */

typedef struct { weft_network_job job; double *out; } network_job;

static weft_status network(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  network_job *job = data;
  return backend->mi->network(ctx, &job->job, job->out);
}

SEXP C_weft_mi_network(SEXP m, SEXP method, SEXP eps, SEXP keep, SEXP least, SEXP control)
{
  size_t p;
  const double *numbers = weft_glue_square(m, "m", &p);
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, (double) p, (double) p));
  network_job job = { { p, numbers, (weft_network_method) Rf_asInteger(method), Rf_asReal(eps), Rf_asReal(keep),
                        Rf_asReal(least) },
                      REAL(out) };
  weft_glue_run(control, network, &job);
  UNPROTECT(1);
  return out;
}

/* ---- greedy selection ---- */

typedef struct { weft_mi_data data; weft_select_method method; size_t k, found; int32_t *feature; double *score; } select_job;

static weft_status select_features(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  select_job *job = data;
  (void) backend;
  return weft_mi_select(ctx, &job->data, job->method, job->k, job->feature, job->score, &job->found);
}

/* list(feature from 1, score), shorter than k when the selection stopped. */
SEXP C_weft_mi_select(SEXP x, SEXP class_codes, SEXP class_levels, SEXP na_level, SEXP method, SEXP k, SEXP control)
{
  const char *fields[] = { "feature", "score", "" };
  const size_t p = weft_glue_ncol(x), n = (size_t) Rf_xlength(class_codes);
  const int *codes = INTEGER(class_codes), most = Rf_asInteger(k);
  weft_column *columns = (weft_column *) R_alloc(p, sizeof *columns);
  uint16_t *classes = (uint16_t *) R_alloc(n, sizeof *classes);
  int32_t *feature = (int32_t *) R_alloc((size_t) most, sizeof *feature);
  double *score = (double *) R_alloc((size_t) most, sizeof *score);
  for (size_t i = 0; i < n; i++) classes[i] = codes[i] == NA_INTEGER ? WEFT_NA_U16 : (uint16_t) codes[i];
  weft_glue_columns(x, columns);
  select_job job = { { n, p, columns, classes, (uint32_t) Rf_asInteger(class_levels), Rf_asLogical(na_level) },
                     (weft_select_method) Rf_asInteger(method), (size_t) most, 0, feature, score };
  weft_glue_run(control, select_features, &job);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(INTSXP, (R_xlen_t) job.found));
  SET_VECTOR_ELT(out, 1, Rf_allocVector(REALSXP, (R_xlen_t) job.found));
  for (size_t i = 0; i < job.found; i++) {
    INTEGER(VECTOR_ELT(out, 0))[i] = feature[i] + 1;
    REAL(VECTOR_ELT(out, 1))[i] = score[i];
  }
  UNPROTECT(1);
  return out;
}

/* ---- cutting into bins ---- */

typedef struct { weft_bins_job job; size_t most; double *cuts; int32_t *counts; weft_arena *held; } cuts_job;

static weft_status find_cuts(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  cuts_job *job = data;
  weft_status st = WEFT_OK;
  (void) backend;
  WEFT_TAKE(job->cuts, job->held, job->job.p * job->most);
  st = weft_mi_cuts(ctx, &job->job, job->most, job->cuts, job->counts);
done:
  return st;
}

/* A list of p vectors of cut points. class_codes: integers from 0, NA where the row does not count. */
SEXP C_weft_mi_cuts(SEXP x, SEXP method, SEXP bins, SEXP class_codes, SEXP class_levels, SEXP control)
{
  const size_t n = (size_t) Rf_nrows(x), p = (size_t) Rf_ncols(x);
  const int by_class = Rf_asInteger(method) != WEFT_BINS_FREQUENCY, *codes = by_class ? INTEGER(class_codes) : NULL;
  uint16_t *classes = (uint16_t *) R_alloc(by_class ? n : 0, sizeof *classes);
  int32_t *counts = (int32_t *) R_alloc(p, sizeof *counts);
  weft_arena *held;
  SEXP holder = PROTECT(weft_glue_arena(&held));
  for (size_t i = 0; by_class && i < n; i++) classes[i] = codes[i] == NA_INTEGER ? WEFT_NA_U16 : (uint16_t) codes[i];
  cuts_job job = { { n, p, REAL(x), (weft_bins_method) Rf_asInteger(method), (size_t) Rf_asInteger(bins), classes,
                     (uint32_t) Rf_asInteger(class_levels) },
                   by_class ? n : (size_t) Rf_asInteger(bins), NULL, counts, held };
  weft_glue_run(control, find_cuts, &job);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t) p));
  for (size_t j = 0; j < p; j++) {
    SEXP cuts = Rf_allocVector(REALSXP, counts[j]);
    SET_VECTOR_ELT(out, (R_xlen_t) j, cuts);
    if (counts[j]) memcpy(REAL(cuts), job.cuts + j * job.most, (size_t) counts[j] * sizeof(double));
  }
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

typedef struct { size_t n, p; const double *x, *cuts, *starts; int32_t *codes; } cut_job;

static weft_status cut_values(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  cut_job *job = data;
  (void) backend;
  return weft_mi_cut(ctx, job->n, job->p, job->x, job->cuts, job->starts, job->codes);
}

/* An integer matrix of bins from 1. cuts: all columns' one after another; starts: where each begins, from 0, and the end. */
SEXP C_weft_mi_cut(SEXP x, SEXP cuts, SEXP starts, SEXP control)
{
  SEXP out = PROTECT(weft_glue_matrix(INTSXP, Rf_nrows(x), Rf_ncols(x)));
  cut_job job = { (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), REAL(x), REAL(cuts), REAL(starts), INTEGER(out) };
  weft_glue_run(control, cut_values, &job);
  UNPROTECT(1);
  return out;
}

/* ---- genotypes ---- */

typedef struct { const char *path; size_t n, p; const double *wanted; int32_t *out; } genotypes_job;

static weft_status genotypes(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  genotypes_job *job = data;
  (void) backend;
  return weft_mi_genotypes(ctx, job->path, job->n, job->wanted, job->p, job->out);
}

/* wanted: numbers of variants, from 0. */
SEXP C_weft_mi_genotypes(SEXP path, SEXP n, SEXP wanted, SEXP control)
{
  SEXP out = PROTECT(weft_glue_matrix(INTSXP, Rf_asReal(n), (double) Rf_xlength(wanted)));
  genotypes_job job = { Rf_translateChar(STRING_ELT(path, 0)), (size_t) Rf_asReal(n), (size_t) Rf_xlength(wanted), REAL(wanted), INTEGER(out) };
  weft_glue_run(control, genotypes, &job);
  UNPROTECT(1);
  return out;
}
