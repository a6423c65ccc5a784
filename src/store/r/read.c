/* .Call entry points that read stores; write.c has those that write them. What R hands over was checked by
 * R/store.R; it is checked again where a wrong number would lead out of bounds. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "core/r/packed.h"
#include "core/r/record.h"
#include "store/file/device_blocks.h"
#include "store/store.h"
#include "store/file/read.h"
#include "store/file/pass.h"

static void release(void *object)
{
  weft_store *store = object;
  weft_store_close(store);
}

static const weft_handle_kind kind = { "weft_store", release };

/* ---- opening ---- */

typedef struct {
  const char *path;
  weft_store *to;
} open_job;
WEFT_WORK(run_open, open_job, weft_store_open(ctx, job->path, job->to))

SEXP C_weft_store_open(SEXP path, SEXP control)
{
  SEXP handle = PROTECT(weft_glue_handle(&kind, sizeof(weft_store)));
  open_job job = { Rf_translateChar(STRING_ELT(path, 0)), weft_glue_handle_take(handle, &kind) };
  WEFT_RUN_RETURN(handle, control, run_open, &job);
}

static const char *const type_names[] = { "", "text", "numbers", "integers" };
static const char *const kind_names[] = { "", "whole", "single", "double" };

static void describe_blocks(SEXP out, const weft_store *store)
{
  const R_xlen_t count = (R_xlen_t) store->blocks;
  double *rows = REAL(weft_result_put(out, "rows", Rf_allocVector(REALSXP, count)));
  double *values = REAL(weft_result_put(out, "block_values", Rf_allocVector(REALSXP, count)));
  double *bytes = REAL(weft_result_put(out, "block_bytes", Rf_allocVector(REALSXP, count)));
  SEXP kinds = weft_result_put(out, "kinds", Rf_allocVector(STRSXP, count));
  for (R_xlen_t k = 0; k < count; k++) {
    rows[k] = (double) store->block[k].rows;
    values[k] = (double) store->block[k].values;
    bytes[k] = (double) store->block[k].bytes;
    SET_STRING_ELT(kinds, k, Rf_mkChar(kind_names[store->block[k].kind]));
  }
}

static void describe_vectors(SEXP out, const weft_store *store)
{
  const R_xlen_t count = (R_xlen_t) store->sections;
  SEXP names = weft_result_put(out, "vectors", Rf_allocVector(STRSXP, count));
  SEXP types = weft_result_put(out, "types", Rf_allocVector(STRSXP, count));
  double *counts = REAL(weft_result_put(out, "lengths", Rf_allocVector(REALSXP, count)));
  for (R_xlen_t k = 0; k < count; k++) {
    SET_STRING_ELT(names, k, Rf_mkCharCE(store->section[k].name, CE_UTF8));
    SET_STRING_ELT(types, k, Rf_mkChar(type_names[store->section[k].type]));
    counts[k] = (double) store->section[k].count;
  }
}

/* What the directory says; NULL for a handle that leads nowhere: one from another session, or none at all. */
SEXP C_weft_store_about(SEXP handle)
{
  const char *fields[] = { "n",           "p",     "values",  "bytes", "crc",     "rows", "block_values",
                           "block_bytes", "kinds", "vectors", "types", "lengths", "" };
  const weft_store *store = weft_glue_handle_peek(handle, &kind);
  if (!store || !store->file) return R_NilValue;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  const double sizes[] = { (double) store->n, (double) store->p, (double) store->values, (double) store->size,
                           (double) store->crc };
  for (int i = 0; i < 5; i++) weft_result_put(out, fields[i], Rf_ScalarReal(sizes[i]));
  describe_blocks(out, store);
  describe_vectors(out, store);
  UNPROTECT(1);
  return out;
}

/* ---- vectors ---- */

typedef struct {
  const weft_store *store;
  size_t index;
  uint8_t *out;
} vector_job;
WEFT_WORK(run_vector, vector_job, weft_store_section_bytes(ctx, job->store, job->index, job->out))

/* Lengths of 4 bytes each (all ones: missing), and the texts one after another. */
static SEXP as_text(const uint8_t *bytes, const weft_store_section *vector, const char *file)
{
  SEXP out = PROTECT(weft_glue_vector(STRSXP, (double) vector->count));
  uint64_t at = 4 * vector->count;
  for (uint64_t i = 0; i < vector->count; i++) {
    const uint64_t length = weft_store_get(bytes + 4 * i, 4);
    if (length == UINT32_MAX) {
      SET_STRING_ELT(out, (R_xlen_t) i, NA_STRING);
      continue;
    }
    if (length > INT_MAX || length > vector->bytes - at || memchr(bytes + at, 0, (size_t) length))
      weft_glue_fail(WEFT_ERR_INPUT, "'%s' is damaged: string %.0f of \"%.200s\" cannot be read.", file, (double) i + 1,
                     vector->name);
    SET_STRING_ELT(out, (R_xlen_t) i, Rf_mkCharLenCE((const char *) bytes + at, (int) length, CE_UTF8));
    at += length;
  }
  if (at != vector->bytes)
    weft_glue_fail(WEFT_ERR_INPUT, "'%s' is damaged: \"%.200s\" is longer than its strings.", file, vector->name);
  UNPROTECT(1);
  return out;
}

static SEXP as_numbers(const uint8_t *bytes, const weft_store_section *vector)
{
  const int whole = vector->type == WEFT_STORE_INTEGERS;
  SEXP out = PROTECT(weft_glue_vector(whole ? INTSXP : REALSXP, (double) vector->count));
  for (uint64_t i = 0; i < vector->count; i++) {
    if (whole)
      INTEGER(out)[i] = (int) (int32_t) weft_store_get(bytes + 4 * i, 4);
    else
      REAL(out)[i] = weft_store_get_double(bytes + 8 * i);
  }
  UNPROTECT(1);
  return out;
}

/* index: from 1 */
SEXP C_weft_store_vector(SEXP handle, SEXP index, SEXP control)
{
  const weft_store *store = weft_glue_handle_take(handle, &kind);
  const double at = Rf_asReal(index) - 1;
  if (!(at >= 0 && at < (double) store->sections)) weft_glue_fail(WEFT_ERR_INTERNAL, "There is no vector %g.", at + 1);
  const weft_store_section *vector = &store->section[(size_t) at];
  SEXP bytes = PROTECT(weft_glue_vector(RAWSXP, (double) vector->bytes));
  vector_job job = { store, (size_t) at, RAW(bytes) };
  weft_glue_run(control, run_vector, &job);
  SEXP out = PROTECT(vector->type == WEFT_STORE_TEXT ? as_text(RAW(bytes), vector, store->name)
                                                     : as_numbers(RAW(bytes), vector));
  UNPROTECT(2);
  return out;
}

/* ---- recipes ---- */

/* size: a number per row, or NULL; log1p: a flag */
static weft_store_recipe recipe_of(SEXP list, const weft_store *store)
{
  weft_record given = weft_record_open(list, "recipe");
  const weft_store_recipe recipe = { weft_record_doubles_or_null(&given, "size", (double) store->n),
                                     weft_record_flag(&given, "log1p") };
  weft_record_close(&given);
  return recipe;
}

/* ---- choices ---- */

/* Rising whole numbers from 0, below `end`; NULL: all. */
static const double *places_of(SEXP x, uint64_t end, size_t *count)
{
  *count = (size_t) end;
  if (x == R_NilValue) return NULL;
  if (TYPEOF(x) != REALSXP) weft_glue_fail(WEFT_ERR_INTERNAL, "Places must be doubles.");
  const double *at = REAL(x);
  double least = 0;
  *count = (size_t) Rf_xlength(x);
  for (size_t i = 0; i < *count; i++) {
    if (!(at[i] >= least && at[i] < (double) end) || at[i] != (double) (uint64_t) at[i])
      weft_glue_fail(WEFT_ERR_INTERNAL, "Places must rise, and lie within the store.");
    least = at[i] + 1;
  }
  return at;
}

typedef struct {
  const weft_store *store;
  weft_store_choice choice;
  weft_store_recipe recipe;
  double *starts;
  int32_t *rows;
  double *values;
} select_job;
WEFT_WORK(run_count, select_job, weft_store_count(ctx, job->store, &job->choice, job->starts))

WEFT_WORK(run_select, select_job,
          weft_store_select(ctx, job->store, &job->choice, &job->recipe, job->starts, job->rows, job->values))

/* A vector of at least `count` numbers, called `name`: an earlier result's where it is long enough, since touching new
 * pages takes as long as reading into them. */
static SEXP slot_of(SEXP room, const char *name, SEXPTYPE type, double count)
{
  SEXP before = room == R_NilValue ? R_NilValue : weft_glue_element(room, name);
  if ((SEXPTYPE) TYPEOF(before) == type && (double) Rf_xlength(before) >= count) return before;
  return weft_glue_vector(type, room == R_NilValue ? count : count + floor(count / 8));
}

/* list(p, i, x), the slots of a dgCMatrix. most: values that it may have. room: NULL, or what the last call returned,
 * which this one overwrites (list() in the first): i and x are then longer than what they hold. */
SEXP C_weft_store_select(SEXP handle, SEXP rows, SEXP columns, SEXP recipe, SEXP most, SEXP room, SEXP control)
{
  const weft_store *store = weft_glue_handle_take(handle, &kind);
  select_job job = { .store = store, .recipe = recipe_of(recipe, store) };
  job.choice.rows = places_of(rows, store->n, &job.choice.row_count);
  job.choice.columns = places_of(columns, store->p, &job.choice.column_count);
  const size_t p = job.choice.column_count;
  SEXP out = PROTECT(WEFT_NAMED_LIST("p", "i", "x")), starts = PROTECT(weft_glue_vector(REALSXP, (double) p + 1));
  job.starts = REAL(starts);
  weft_glue_run(control, run_count, &job);
  store = weft_glue_handle_take(handle, &kind); /* R's code in between may have freed it */
  job.store = store;
  const double values = job.starts[p];
  if (values > Rf_asReal(most))
    weft_glue_fail(WEFT_ERR_INPUT, "%s: %.0f values requested, but only %.0f fit. Use fewer rows or columns.",
                   store->name, values, Rf_asReal(most));
  int *p_slot = INTEGER(weft_result_put(out, "p", weft_glue_vector(INTSXP, (double) p + 1)));
  job.rows = INTEGER(weft_result_put(out, "i", slot_of(room, "i", INTSXP, values)));
  job.values = REAL(weft_result_put(out, "x", slot_of(room, "x", REALSXP, values)));
  for (size_t j = 0; j <= p; j++) p_slot[j] = (int) job.starts[j];
  weft_glue_run(control, run_select, &job);
  UNPROTECT(2);
  return out;
}

/* ---- for a device ---- */

typedef struct {
  const weft_store *store;
  size_t first, count;
  weft_store_choice choice;
  weft_store_recipe recipe;
  double most;
  weft_packed *to;
} pack_job;
WEFT_WORK(run_pack, pack_job,
          weft_store_pack_panel(ctx, job->store, job->first, job->count, &job->choice, &job->recipe, job->most,
                                job->to))

/* The block that begins with a row; that behind the last for n. */
static size_t block_from(const weft_store *store, double row)
{
  size_t low = 0, high = store->blocks;
  while (low < high) {
    const size_t mid = low + (high - low) / 2;
    if ((double) store->block[mid].first < row)
      low = mid + 1;
    else
      high = mid;
  }
  if ((low < store->blocks ? (double) store->block[low].first : (double) store->n) != row)
    weft_glue_fail(WEFT_ERR_INTERNAL, "No block begins with row %g.", row);
  return low;
}

/* rows: from, and to before which, where blocks begin. room: NULL, or what the last call returned, which this one
 * overwrites. A handle (core/r/packed.h). */
SEXP C_weft_store_packed(SEXP handle, SEXP rows, SEXP columns, SEXP recipe, SEXP most, SEXP room, SEXP control)
{
  SEXP out = PROTECT(room == R_NilValue ? weft_glue_handle(&weft_packed_kind, sizeof(weft_packed)) : room);
  const weft_store *store = weft_glue_handle_take(handle, &kind);
  pack_job job = { .store = store,
                   .recipe = recipe_of(recipe, store),
                   .most = Rf_asReal(most),
                   .to = weft_glue_handle_take(out, &weft_packed_kind) };
  if (TYPEOF(rows) != REALSXP || Rf_xlength(rows) != 2) weft_glue_fail(WEFT_ERR_INTERNAL, "Rows must be two numbers.");
  job.first = block_from(store, REAL(rows)[0]);
  job.count = block_from(store, REAL(rows)[1]) - job.first;
  if (REAL(rows)[1] <= REAL(rows)[0]) weft_glue_fail(WEFT_ERR_INTERNAL, "No rows are asked for.");
  job.choice.columns = places_of(columns, store->p, &job.choice.column_count);
  WEFT_RUN_RETURN(out, control, run_pack, &job);
}

/* ---- sums ---- */

typedef struct {
  const weft_store *store;
  weft_store_choice choice;
  weft_store_recipe recipe;
  weft_store_sums out;
  double *range;
} sum_job;
WEFT_WORK(run_sum, sum_job, weft_store_sum(ctx, job->store, &job->choice, &job->recipe, &job->out, job->range))

/* .Call: sums and counts of stored values by chosen columns and by rows, and their range, as a named list. */
SEXP C_weft_store_sums(SEXP handle, SEXP columns, SEXP recipe, SEXP skip_missing, SEXP control)
{
  const char *fields[] = { "columns", "column_counts", "rows", "row_counts", "range", "" };
  const weft_store *store = weft_glue_handle_take(handle, &kind);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  sum_job job = { .store = store, .recipe = recipe_of(recipe, store) };
  job.choice.row_count = (size_t) store->n;
  job.choice.columns = places_of(columns, store->p, &job.choice.column_count);
  double **const to[] = { &job.out.columns, &job.out.column_counts, &job.out.rows, &job.out.row_counts };
  for (int i = 0; i < 4; i++) {
    const double count = i < 2 ? (double) job.choice.column_count : (double) store->n;
    *to[i] = REAL(weft_result_put(out, fields[i], weft_glue_vector(REALSXP, count)));
  }
  job.range = REAL(weft_result_put(out, "range", Rf_allocVector(REALSXP, 2)));
  job.out.skip_missing = Rf_asLogical(skip_missing) == 1;
  WEFT_RUN_RETURN(out, control, run_sum, &job);
}

/* ---- sums by groups of rows ---- */

typedef struct {
  const weft_store *store;
  const weft_store_recipe *recipe;
  weft_store_groups *groups;
  size_t count;
} group_job;
WEFT_WORK(run_groups, group_job, weft_store_sum_groups(ctx, job->store, job->recipe, job->groups, job->count))

/* The group of each row, from 1, or NA. */
static const int *groups_of(SEXP of, size_t count, const weft_store *store)
{
  if (TYPEOF(of) != INTSXP || (uint64_t) Rf_xlength(of) != store->n || count > INT_MAX || store->p > INT_MAX)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Groups must be whole numbers, one per row.");
  for (uint64_t i = 0; i < store->n; i++)
    if (INTEGER(of)[i] != NA_INTEGER && (INTEGER(of)[i] < 1 || (size_t) INTEGER(of)[i] > count))
      weft_glue_fail(WEFT_ERR_INTERNAL, "Group %d of %.0f.", INTEGER(of)[i], (double) count);
  return INTEGER(of);
}

/* groups: a list of list(of: the group of each row, from 1, or NA; count; seen: whether to count values other than 0
 * instead of adding them). A list of matrices, groups in rows and columns of the store. */
SEXP C_weft_store_groups(SEXP handle, SEXP groups, SEXP control)
{
  const weft_store *store = weft_glue_handle_take(handle, &kind);
  const size_t count = (size_t) Rf_xlength(groups);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t) count));
  group_job job = { store, NULL, (weft_store_groups *) R_alloc(count + 1, sizeof(weft_store_groups)), count };
  for (size_t g = 0; g < count; g++) {
    weft_record given = weft_record_open(VECTOR_ELT(groups, (R_xlen_t) g), "groups");
    const SEXP of = weft_record_field(&given, "of");
    const size_t rows = weft_record_size(&given, "count");
    const int seen = weft_record_flag(&given, "seen");
    weft_record_close(&given);
    const int *groups_here = groups_of(of, rows, store);
    SEXP sums = Rf_allocMatrix(REALSXP, (int) rows, (int) store->p);
    SET_VECTOR_ELT(out, (R_xlen_t) g, sums);
    const weft_store_groups to = { groups_here, rows, seen, REAL(sums), NULL, NULL };
    job.groups[g] = to;
  }
  WEFT_RUN_RETURN(out, control, run_groups, &job);
}

/* Sums of the values as the recipe has them, of their squares and cubes, over the rows of each of `count` groups:
 * list(sums, squares, cubes), matrices with groups in rows and columns of the store. */
SEXP C_weft_store_moments(SEXP handle, SEXP of, SEXP count, SEXP recipe, SEXP control)
{
  const weft_store *store = weft_glue_handle_take(handle, &kind);
  const weft_store_recipe values = recipe_of(recipe, store);
  const size_t rows = (size_t) Rf_asInteger(count);
  SEXP out = PROTECT(WEFT_NAMED_LIST("sums", "squares", "cubes"));
  weft_store_groups to = { groups_of(of, rows, store), rows, 0, NULL, NULL, NULL };
  group_job job = { store, &values, &to, 1 };
  to.sums = REAL(weft_result_put(out, "sums", weft_glue_matrix(REALSXP, (double) rows, (double) store->p)));
  to.squares = REAL(weft_result_put(out, "squares", weft_glue_matrix(REALSXP, (double) rows, (double) store->p)));
  to.cubes = REAL(weft_result_put(out, "cubes", weft_glue_matrix(REALSXP, (double) rows, (double) store->p)));
  WEFT_RUN_RETURN(out, control, run_groups, &job);
}
