/* .Call entry point of transfer entropy. */
#include <string.h>
#include "mi/r/glue.h"
#include "mi/transfer/cpu/run.h"

typedef struct {
  weft_transfer_job job;
  weft_arena *keep;
  weft_transfer_edges out;
} transfer_job;
WEFT_WORK(transfer, transfer_job, weft_mi_transfer(ctx, backend->mi, &job->job, job->keep, &job->out))

static void put_numbers(SEXP result, const char *name, const double *from, size_t count)
{
  double *to = REAL(weft_result_put(result, name, weft_glue_vector(REALSXP, (double) count)));
  if (count) memcpy(to, from, count * sizeof *to);
}

static void put_places(SEXP result, const char *name, const uint32_t *from, size_t count)
{
  int *to = INTEGER(weft_result_put(result, name, weft_glue_vector(INTSXP, (double) count)));
  for (size_t k = 0; k < count; k++) to[k] = (int) from[k] + 1;
}

/* x: a matrix, a list of columns or a sparse matrix with n rows. how: list(n, order, starts, lag, bins, sources,
 * targets, permutations, key, fdr, top), numbers of rows and columns from 0; see weft_transfer_job. list(source,
 * target: places among sources and targets from 1; te, usual, z, p, q; about: pairs tested and significant, steps,
 * levels). */
SEXP C_weft_mi_transfer(SEXP x, SEXP how, SEXP control)
{
  weft_record given = weft_record_open(how, "how");
  transfer_job job = { .job = { .n = weft_record_size(&given, "n"), .genes = weft_glue_ncol(x) } };
  weft_transfer_job *to = &job.job;
  SEXP order = weft_record_field(&given, "order"), starts = weft_record_field(&given, "starts"),
       sources = weft_record_field(&given, "sources"), targets = weft_record_field(&given, "targets");
  to->order = (const uint32_t *) weft_record_integers(&given, "order", WEFT_ANY_LENGTH);
  to->starts = (const uint32_t *) weft_record_integers(&given, "starts", WEFT_ANY_LENGTH);
  to->sources = (const uint32_t *) weft_record_integers(&given, "sources", WEFT_ANY_LENGTH);
  to->targets = (const uint32_t *) weft_record_integers(&given, "targets", WEFT_ANY_LENGTH);
  to->samples = (size_t) Rf_xlength(order);
  to->series = (size_t) Rf_xlength(starts) - 1;
  to->source_count = (size_t) Rf_xlength(sources);
  to->target_count = (size_t) Rf_xlength(targets);
  to->lag = (uint32_t) weft_record_size(&given, "lag");
  to->bins = (uint32_t) weft_record_size(&given, "bins");
  to->permutations = weft_record_size(&given, "permutations");
  to->key = weft_record_key(&given, "key");
  to->fdr = weft_record_number(&given, "fdr");
  to->top = weft_record_number(&given, "top");
  weft_record_close(&given);
  weft_column *columns = (weft_column *) R_alloc(to->genes, sizeof *columns);
  weft_glue_columns(x, columns);
  to->columns = columns;
  SEXP holder = PROTECT(weft_glue_arena(&job.keep));
  SEXP out = PROTECT(WEFT_NAMED_LIST("source", "target", "te", "usual", "z", "p", "q", "about"));
  weft_glue_run(control, transfer, &job);
  const weft_transfer_edges *edges = &job.out;
  const double about[] = { edges->tested, edges->significant, edges->steps, edges->levels };
  put_places(out, "source", edges->source, edges->count);
  put_places(out, "target", edges->target, edges->count);
  put_numbers(out, "te", edges->te, edges->count);
  put_numbers(out, "usual", edges->usual, edges->count);
  put_numbers(out, "z", edges->z, edges->count);
  put_numbers(out, "p", edges->p, edges->count);
  put_numbers(out, "q", edges->q, edges->count);
  put_numbers(out, "about", about, sizeof about / sizeof *about);
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}
