/* .Call entry points of scans over pairs of variants. */
#include "mi/r/glue.h"
#include "mi/scan/scan.h"

/* x: a matrix, a list of columns or genotypes; use: list(rows, columns), numbers from 0 of those that are used. */
static weft_variants variants_of(SEXP x, SEXP use)
{
  weft_record given = weft_record_open(use, "use");
  SEXP rows = weft_record_field(&given, "rows"), columns = weft_record_field(&given, "columns");
  weft_variants variants = { .n = (size_t) Rf_xlength(rows), .p = (size_t) Rf_xlength(columns) };
  variants.rows = (const uint32_t *) weft_record_integers(&given, "rows", WEFT_ANY_LENGTH);
  const int *wanted = weft_record_integers(&given, "columns", WEFT_ANY_LENGTH);
  weft_record_close(&given);
  weft_column *all = (weft_column *) R_alloc(weft_glue_ncol(x), sizeof *all);
  weft_column *used = (weft_column *) R_alloc(variants.p, sizeof *used);
  weft_glue_columns(x, all);
  for (size_t j = 0; j < variants.p; j++) used[j] = all[wanted[j]];
  variants.columns = used;
  return variants;
}

typedef struct counts_job {
  weft_variants variants;
  double *counts;
} counts_job;
WEFT_WORK(count_variants, counts_job, weft_variant_counts(ctx, &job->variants, job->counts))

/* How often each variant has 0, 1 and 2 copies, is missing, and has something else: 5 × variants. */
SEXP C_weft_mi_variant_counts(SEXP x, SEXP use, SEXP control)
{
  counts_job job = { .variants = variants_of(x, use) };
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, WEFT_VARIANT_CODES, (double) job.variants.p));
  job.counts = REAL(out);
  WEFT_RUN_RETURN(out, control, count_variants, &job);
}

typedef struct scan_job {
  weft_scan_job scan;
  weft_arena *keep;
  weft_scan_found out;
} scan_job;
WEFT_WORK(scan_pairs, scan_job, weft_mi_scan(ctx, backend->mi, &job->scan, job->keep, &job->out))

static SEXP numbers_at(SEXP result, const char *name, size_t length)
{
  return weft_result_put(result, name, weft_glue_vector(REALSXP, (double) length));
}

/* model: list(basis, root, outcomes, estimated, genotypes, side, chromosome, position, distance, max_missing, top,
 * min_score); see
 * weft_scan_job. list(first, second: variants from 1; score, greatest, tested). */
SEXP C_weft_mi_scan(SEXP x, SEXP use, SEXP model, SEXP control)
{
  weft_record given = weft_record_open(model, "model");
  scan_job job = { .scan.variants = variants_of(x, use) };
  weft_scan_job *scan = &job.scan;
  const double n = (double) scan->variants.n, p = (double) scan->variants.p;
  SEXP basis = weft_record_field(&given, "basis"), outcomes = weft_record_field(&given, "outcomes"),
       side = weft_record_field(&given, "side");
  scan->k = (size_t) Rf_ncols(basis);
  scan->basis = weft_record_doubles(&given, "basis", n * (double) scan->k);
  scan->root = weft_record_doubles(&given, "root", n);
  scan->outcomes = (size_t) Rf_ncols(outcomes);
  scan->outcome = weft_record_doubles(&given, "outcomes", n * (double) scan->outcomes);
  scan->estimated = weft_record_flag(&given, "estimated");
  scan->genotypes = weft_record_flag(&given, "genotypes");
  scan->side = side == R_NilValue ? NULL : RAW_RO(side);
  scan->near.chromosome = (const uint32_t *) weft_record_integers_or_null(&given, "chromosome", p);
  scan->near.position = weft_record_doubles_or_null(&given, "position", p);
  scan->near.distance = weft_record_number(&given, "distance");
  scan->max_missing = weft_record_number(&given, "max_missing");
  scan->top = weft_record_size(&given, "top");
  scan->min_score = weft_record_number(&given, "min_score");
  weft_record_close(&given);
  SEXP holder = PROTECT(weft_glue_arena(&job.keep));
  SEXP out = PROTECT(WEFT_NAMED_LIST("first", "second", "score", "greatest", "tested"));
  job.out.greatest = REAL(numbers_at(out, "greatest", scan->outcomes));
  weft_glue_run(control, scan_pairs, &job);
  const weft_mi_found *found = &job.out.found;
  int *first = INTEGER(weft_result_put(out, "first", weft_glue_vector(INTSXP, (double) found->count)));
  int *second = INTEGER(weft_result_put(out, "second", weft_glue_vector(INTSXP, (double) found->count)));
  double *score = REAL(numbers_at(out, "score", found->count));
  REAL(numbers_at(out, "tested", 1))[0] = job.out.tested;
  for (size_t i = 0; i < found->count; i++) {
    first[i] = (int) (found->items[i].index / scan->variants.p) + 1;
    second[i] = (int) (found->items[i].index % scan->variants.p) + 1;
    score[i] = found->items[i].score;
  }
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

typedef struct refit_job {
  weft_refit_job refit;
  weft_refit_fits out;
} refit_job;
WEFT_WORK(refit_pairs, refit_job, weft_mi_refit(ctx, &job->refit, &job->out))

/* model: list(basis, y, start, genotypes, pairs: 2 × count, variants from 0); see weft_refit_job. */
SEXP C_weft_mi_refit(SEXP x, SEXP use, SEXP model, SEXP control)
{
  weft_record given = weft_record_open(model, "model");
  refit_job job = { .refit.variants = variants_of(x, use) };
  weft_refit_job *refit = &job.refit;
  const double n = (double) refit->variants.n;
  SEXP basis = weft_record_field(&given, "basis"), pairs = weft_record_field(&given, "pairs");
  refit->k = (size_t) Rf_ncols(basis);
  refit->basis = weft_record_doubles(&given, "basis", n * (double) refit->k);
  refit->y = weft_record_doubles(&given, "y", n);
  refit->start = weft_record_doubles_or_null(&given, "start", n);
  refit->genotypes = weft_record_flag(&given, "genotypes");
  refit->count = (size_t) Rf_ncols(pairs);
  refit->pairs = (const uint32_t *) weft_record_integers(&given, "pairs", 2 * (double) refit->count);
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("rows", "estimate", "error", "statistic", "freedom", "residual", "reason"));
  weft_refit_fits *fits = &job.out;
  fits->rows = REAL(numbers_at(out, "rows", refit->count));
  fits->estimate = REAL(numbers_at(out, "estimate", refit->count));
  fits->error = REAL(numbers_at(out, "error", refit->count));
  fits->statistic = REAL(numbers_at(out, "statistic", refit->count));
  fits->freedom = REAL(numbers_at(out, "freedom", refit->count));
  fits->residual = REAL(numbers_at(out, "residual", refit->count));
  fits->reason = INTEGER(weft_result_put(out, "reason", weft_glue_vector(INTSXP, (double) refit->count)));
  WEFT_RUN_RETURN(out, control, refit_pairs, &job);
}
