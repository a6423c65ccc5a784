/* .Call entry points for a store whose packed panels stay on devices (core/device/resident.h). */
#include "core/r/packed.h"
#include "core/r/record.h"

/* A forked child does not own its parent's device memory. */
static void release(void *object)
{
  if (!weft_forked()) weft_resident_end(object);
}

const weft_handle_kind weft_panels_kind = { "weft_panels", release };

typedef struct {
  weft_resident *to;
  size_t room, n, p;
} begin_job;
WEFT_WORK(run_begin, begin_job, weft_resident_begin(ctx, job->to, job->room, job->n, job->p))

/* sizes: panels, rows, columns. A handle. */
SEXP C_weft_panels_begin(SEXP sizes, SEXP control)
{
  SEXP handle = PROTECT(weft_glue_handle(&weft_panels_kind, sizeof(weft_resident)));
  if (TYPEOF(sizes) != REALSXP || Rf_xlength(sizes) != 3) weft_glue_fail(WEFT_ERR_INTERNAL, "Three sizes are needed.");
  const double *x = REAL(sizes);
  begin_job job = { weft_glue_handle_take(handle, &weft_panels_kind), (size_t) x[0], (size_t) x[1], (size_t) x[2] };
  WEFT_RUN_RETURN(handle, control, run_begin, &job);
}

typedef struct {
  weft_resident *to;
  const weft_packed *from;
  size_t part;
} add_job;
WEFT_WORK(run_add, add_job, weft_resident_add(ctx, backend->device, job->to, &job->from->panel, job->part))

/* Sends what C_weft_store_packed() returned for all columns, without a recipe, to the device of `control`. */
SEXP C_weft_panels_add(SEXP handle, SEXP packed, SEXP part, SEXP control)
{
  add_job job = { weft_glue_handle_take(handle, &weft_panels_kind), weft_glue_handle_take(packed, &weft_packed_kind),
                  (size_t) Rf_asReal(part) };
  weft_glue_run(control, run_add, &job);
  return R_NilValue;
}

/* list(n, p, starts, part, values, bytes): the sizes; of each panel its first row from 0, its part from 0, how many
 * values it has, and what it takes on the device. NULL where it is not there. */
SEXP C_weft_panels_about(SEXP handle)
{
  if (!weft_glue_handle_peek(handle, &weft_panels_kind)) return R_NilValue;
  const weft_resident *x = weft_glue_handle_take(handle, &weft_panels_kind);
  SEXP out = PROTECT(WEFT_NAMED_LIST("n", "p", "starts", "part", "values", "bytes"));
  weft_result_put(out, "n", Rf_ScalarReal((double) x->n));
  weft_result_put(out, "p", Rf_ScalarReal((double) x->p));
  double *to[4];
  const char *names[] = { "starts", "part", "values", "bytes" };
  for (int i = 0; i < 4; i++)
    to[i] = REAL(weft_result_put(out, names[i], Rf_allocVector(REALSXP, (R_xlen_t) x->panels)));
  for (size_t t = 0; t < x->panels; t++) {
    to[0][t] = (double) x->panel[t].row;
    to[1][t] = (double) x->part[t];
    to[2][t] = (double) x->panel[t].stored;
    to[3][t] = 8 * (double) x->there[t].n;
  }
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}

/* How many values columns have, which are places from 0, or NULL for all. */
SEXP C_weft_panels_counts(SEXP handle, SEXP columns)
{
  const weft_resident *x = weft_glue_handle_take(handle, &weft_panels_kind);
  const size_t count = columns == R_NilValue ? x->p : (size_t) Rf_xlength(columns);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) count));
  for (size_t j = 0; j < count; j++) {
    const size_t at = columns == R_NilValue ? j : (size_t) REAL(columns)[j];
    double sum = 0;
    for (size_t t = 0; t < x->panels && at < x->p; t++) {
      const weft_packed_panel *panel = &x->panel[t];
      const uint32_t *place = (const uint32_t *) (const void *) (panel->bytes + panel->at_place) + at;
      sum += place[panel->blocks * panel->p] - place[0];
    }
    REAL(out)[j] = sum;
  }
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}

SEXP C_weft_panels_free(SEXP handle)
{
  weft_glue_handle_free(handle, &weft_panels_kind);
  return R_NilValue;
}
