/* .Call entry points that write stores: see store.h, and R/store-import.R, which calls them. */
#include <string.h>
#include "core/r/glue.h"
#include "core/r/record.h"
#include "store/store.h"
#include "store/r/write.h"
#include "store/file/write.h"
#include "store/import/from_memory.h"
#include "store/import/sort.h"
#include "store/import/market.h"

/* A forked child that ends must not remove what its parent is writing. */
static void release_writer(void *object)
{
  weft_store_writer *writer = object;
  if (!weft_forked()) weft_store_abandon(writer);
}

static void release_sorter(void *object) { weft_store_sort_end(object); }
static void release_market(void *object) { (void) object; }

static const weft_handle_kind writer_kind = { "weft_store_writer", release_writer };
static const weft_handle_kind sorter_kind = { "weft_store_sorter", release_sorter };
static const weft_handle_kind market_kind = { "weft_store_market", release_market };

weft_store_writer *weft_store_writer_of(SEXP handle)
{
  weft_store_writer *writer = weft_glue_handle_take(handle, &writer_kind);
  if (!writer->file) weft_glue_fail(WEFT_ERR_INPUT, "This store is already finished, or could not be started.");
  return writer;
}

/* ---- begin, finish, abandon ---- */

typedef struct {
  weft_store_writer *writer;
  const char *path;
  int overwrite;
  double n, p, memory;
} begin_job;
WEFT_WORK(run_begin, begin_job,
          weft_store_begin(ctx, job->path, job->overwrite, (uint64_t) job->n, (uint64_t) job->p, job->memory,
                           job->writer))

SEXP C_weft_store_begin(SEXP path, SEXP overwrite, SEXP n, SEXP p, SEXP memory, SEXP control)
{
  SEXP handle = PROTECT(weft_glue_handle(&writer_kind, sizeof(weft_store_writer)));
  begin_job job = { weft_glue_handle_take(handle, &writer_kind),
                    Rf_translateChar(STRING_ELT(path, 0)),
                    Rf_asLogical(overwrite) == 1,
                    Rf_asReal(n),
                    Rf_asReal(p),
                    Rf_asReal(memory) };
  if (!(job.n >= 0 && job.n <= INT32_MAX && job.p >= 0 && job.p <= INT32_MAX))
    weft_glue_fail(WEFT_ERR_INPUT, "A store has at most 2147483647 rows and columns, but %.0f and %.0f are requested.",
                   job.n, job.p);
  WEFT_RUN_RETURN(handle, control, run_begin, &job);
}

static weft_status run_finish(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  (void) backend;
  return weft_store_finish(ctx, data);
}

SEXP C_weft_store_finish(SEXP handle, SEXP control)
{
  weft_glue_run(control, run_finish, weft_store_writer_of(handle));
  weft_glue_handle_free(handle, &writer_kind);
  return R_NilValue;
}

/* How many blocks are made at once, and how many values one has. */
SEXP C_weft_store_at_once(SEXP handle)
{
  const weft_store_writer *writer = weft_store_writer_of(handle);
  const double slots = (double) writer->slots, most = (double) writer->max_entries;
  weft_glue_handle_done();
  SEXP out = Rf_allocVector(REALSXP, 2);
  REAL(out)[0] = slots;
  REAL(out)[1] = most;
  return out;
}

SEXP C_weft_store_abandon(SEXP handle)
{
  weft_glue_handle_free(handle, &writer_kind);
  return R_NilValue;
}

/* ---- what is in memory ---- */

weft_store_values weft_store_values_of(SEXP x, double length)
{
  const weft_store_values v = { TYPEOF(x) == REALSXP ? REAL(x) : NULL,
                                TYPEOF(x) == INTSXP   ? INTEGER(x)
                                : TYPEOF(x) == LGLSXP ? LOGICAL(x)
                                                      : NULL,
                                NULL };
  if (x != R_NilValue && ((!v.doubles && !v.integers) || (double) Rf_xlength(x) != length))
    weft_glue_fail(WEFT_ERR_INTERNAL, "%.0f values must be numbers; %.0f of type %s came.", length,
                   (double) Rf_xlength(x), Rf_type2char(TYPEOF(x)));
  return v;
}

static void check_end(const weft_store_writer *writer, double first, double rows)
{
  if (!(first >= (double) writer->first && first + rows <= (double) writer->n))
    weft_glue_fail(WEFT_ERR_INTERNAL, "Rows %.0f to %.0f of a store of %.0f.", first + 1, first + rows,
                   (double) writer->n);
}

typedef struct {
  weft_store_writer *writer;
  weft_store_rows rows;
  weft_store_columns columns;
} take_job;
WEFT_WORK(run_rows, take_job, weft_store_take_rows(ctx, job->writer, &job->rows))

WEFT_WORK(run_columns, take_job, weft_store_take_columns(ctx, job->writer, &job->columns))

/* starts: doubles from 0 that rise to the number of columns; columns: integers from 0. */
SEXP C_weft_store_rows(SEXP handle, SEXP first, SEXP starts, SEXP columns, SEXP values, SEXP control)
{
  weft_store_writer *writer = weft_store_writer_of(handle);
  const size_t rows = (size_t) Rf_xlength(starts) - 1;
  if (TYPEOF(starts) != REALSXP || Rf_xlength(starts) < 1 || TYPEOF(columns) != INTSXP)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Rows must come with starts and columns.");
  const double *at = REAL(starts), length = (double) Rf_xlength(columns);
  for (size_t i = 0; i <= rows; i++)
    if (!(at[i] >= (i ? at[i - 1] : 0) && at[i] <= length) || at[0] != 0)
      weft_glue_fail(WEFT_ERR_INPUT, "Where rows begin must rise from 0 to the number of entries.");
  check_end(writer, Rf_asReal(first), (double) rows);
  take_job job = { .writer = writer,
                   .rows = { (uint64_t) Rf_asReal(first), rows, 0, at, INTEGER(columns),
                             weft_store_values_of(values, length) } };
  weft_glue_run(control, run_rows, &job);
  return R_NilValue;
}

/* Compressed columns (starts and rows: slots of a valid Matrix), or a dense matrix (both NULL). */
SEXP C_weft_store_columns(SEXP handle, SEXP first, SEXP rows, SEXP starts, SEXP at, SEXP values, SEXP control)
{
  weft_store_writer *writer = weft_store_writer_of(handle);
  const double count = Rf_asReal(rows);
  const int sparse = starts != R_NilValue;
  check_end(writer, Rf_asReal(first), count);
  if (sparse && (TYPEOF(starts) != INTSXP || TYPEOF(at) != INTSXP || (uint64_t) Rf_xlength(starts) != writer->p + 1))
    weft_glue_fail(WEFT_ERR_INTERNAL, "Columns must come with starts and rows.");
  const double length = sparse ? (double) Rf_xlength(at) : count * (double) writer->p;
  take_job job = { .writer = writer,
                   .columns = { (uint64_t) Rf_asReal(first), (size_t) count, 0, sparse ? INTEGER(starts) : NULL,
                                sparse ? INTEGER(at) : NULL, weft_store_values_of(values, length) } };
  weft_glue_run(control, run_columns, &job);
  return R_NilValue;
}

/* ---- vectors ---- */

typedef struct {
  weft_store_writer *writer;
  const char *name;
  weft_store_type type;
  uint64_t count, size;
  const uint8_t *bytes;
} vector_job;
WEFT_WORK(run_vector, vector_job,
          weft_store_add_section(ctx, job->writer, job->name, job->type, job->count, job->bytes, job->size))

/* In UTF-8, which R's caller has made it. */
static SEXP text_bytes(SEXP x)
{
  const R_xlen_t count = Rf_xlength(x);
  double size = 4.0 * (double) count;
  for (R_xlen_t i = 0; i < count; i++)
    if (STRING_ELT(x, i) != NA_STRING) size += LENGTH(STRING_ELT(x, i));
  SEXP out = PROTECT(weft_glue_vector(RAWSXP, size));
  uint8_t *at = RAW(out) + 4 * count;
  for (R_xlen_t i = 0; i < count; i++) {
    SEXP text = STRING_ELT(x, i);
    const size_t length = text == NA_STRING ? 0 : (size_t) LENGTH(text);
    weft_store_put(RAW(out) + 4 * i, text == NA_STRING ? UINT32_MAX : (uint64_t) length, 4);
    memcpy(at, CHAR(text), length);
    at += length;
  }
  UNPROTECT(1);
  return out;
}

static SEXP number_bytes(SEXP x)
{
  const R_xlen_t count = Rf_xlength(x);
  const int whole = TYPEOF(x) == INTSXP;
  SEXP out = weft_glue_vector(RAWSXP, (whole ? 4.0 : 8.0) * (double) count);
  for (R_xlen_t i = 0; i < count; i++) {
    if (whole)
      weft_store_put(RAW(out) + 4 * i, (uint32_t) INTEGER(x)[i], 4);
    else
      weft_store_put_double(RAW(out) + 8 * i, REAL(x)[i]);
  }
  return out;
}

SEXP C_weft_store_put_vector(SEXP handle, SEXP name, SEXP value, SEXP control)
{
  const weft_store_type type = TYPEOF(value) == STRSXP   ? WEFT_STORE_TEXT
                               : TYPEOF(value) == INTSXP ? WEFT_STORE_INTEGERS
                                                         : WEFT_STORE_NUMBERS;
  if (type == WEFT_STORE_NUMBERS && TYPEOF(value) != REALSXP)
    weft_glue_fail(WEFT_ERR_INTERNAL, "A vector of type %s.", Rf_type2char(TYPEOF(value)));
  SEXP bytes = PROTECT(type == WEFT_STORE_TEXT ? text_bytes(value) : number_bytes(value));
  vector_job job = { weft_store_writer_of(handle), CHAR(STRING_ELT(name, 0)),    type,
                     (uint64_t) Rf_xlength(value), (uint64_t) Rf_xlength(bytes), RAW(bytes) };
  WEFT_RUN_RETURN(R_NilValue, control, run_vector, &job);
}

/* ---- entries in any order ---- */

typedef struct {
  weft_store_writer *writer;
  weft_store_sorter *sorter;
  double memory;
  size_t count, done;
  const int *rows, *columns;
  weft_store_values values;
} sort_job;
WEFT_WORK(run_sorter, sort_job, weft_store_sort_begin(ctx, job->writer, job->memory, job->sorter))

SEXP C_weft_store_sorter(SEXP handle, SEXP memory, SEXP control)
{
  SEXP sorter = PROTECT(weft_glue_handle(&sorter_kind, sizeof(weft_store_sorter)));
  sort_job job = { .writer = weft_store_writer_of(handle),
                   .sorter = weft_glue_handle_take(sorter, &sorter_kind),
                   .memory = Rf_asReal(memory) };
  WEFT_RUN_RETURN(sorter, control, run_sorter, &job);
}

static double entry_value(const weft_store_values *v, size_t i)
{
  return v->doubles ? v->doubles[i] : v->integers ? v->integers[i] : 1;
}

/* Counts entries until values come with them, and places them then. */
static weft_status run_sort(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  sort_job *job = data;
  weft_status st = WEFT_OK;
  const int place = job->values.doubles || job->values.integers;
  (void) backend;
  if (place && !job->sorter->file) WEFT_TRY(weft_store_sort_plan(ctx, job->writer, job->sorter));
  for (; job->done < job->count; job->done++) {
    const size_t i = job->done;
    if (i % 65536 == 0) WEFT_TRY(weft_poll(ctx, 0, 0));
    if (job->rows[i] < 0 || (uint64_t) job->rows[i] >= job->writer->n || job->columns[i] < 0 ||
        (uint64_t) job->columns[i] >= job->writer->p)
      return weft_fail(ctx, WEFT_ERR_INPUT, "An entry in row %.0f of %.0f and column %.0f of %.0f.",
                       (double) job->rows[i] + 1, (double) job->writer->n, (double) job->columns[i] + 1,
                       (double) job->writer->p);
    if (!place)
      weft_store_sort_count(job->sorter, (uint64_t) job->rows[i]);
    else
      WEFT_TRY(weft_store_sort_place(ctx, job->writer, job->sorter, (uint64_t) job->rows[i], (uint64_t) job->columns[i],
                                     entry_value(&job->values, i)));
  }
done:
  return st;
}

SEXP C_weft_store_sort(SEXP handle, SEXP sorter, SEXP rows, SEXP columns, SEXP values, SEXP control)
{
  if (TYPEOF(rows) != INTSXP || TYPEOF(columns) != INTSXP || Rf_xlength(rows) != Rf_xlength(columns))
    weft_glue_fail(WEFT_ERR_INTERNAL, "Entries must come with rows and columns.");
  sort_job job = { .writer = weft_store_writer_of(handle),
                   .sorter = weft_glue_handle_take(sorter, &sorter_kind),
                   .count = (size_t) Rf_xlength(rows),
                   .rows = INTEGER(rows),
                   .columns = INTEGER(columns),
                   .values = weft_store_values_of(values, (double) Rf_xlength(rows)) };
  weft_glue_run(control, run_sort, &job);
  return R_NilValue;
}

static weft_status run_drain(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  sort_job *job = data;
  weft_status st = WEFT_OK;
  (void) backend;
  if (!job->sorter->file) WEFT_TRY(weft_store_sort_plan(ctx, job->writer, job->sorter));
  st = weft_store_sort_drain(ctx, job->writer, job->sorter);
done:
  return st;
}

SEXP C_weft_store_drain(SEXP handle, SEXP sorter, SEXP control)
{
  sort_job job = { .writer = weft_store_writer_of(handle), .sorter = weft_glue_handle_take(sorter, &sorter_kind) };
  weft_glue_run(control, run_drain, &job);
  weft_glue_handle_free(sorter, &sorter_kind);
  return R_NilValue;
}

/* ---- Matrix Market ---- */

/* The state of a file that is read in pieces. */
SEXP C_weft_store_market(void) { return weft_glue_handle(&market_kind, sizeof(weft_store_market)); }

enum { SIZES, PUSH, COUNT, PLACE };
static const char *const modes[] = { "sizes", "push", "count", "place" };

typedef struct {
  weft_store_market *market;
  weft_store_writer *writer;
  weft_store_sorter *sorter;
  int mode, turned, ended, late;
  const uint8_t *bytes;
  size_t size, at;
} market_job;

static weft_status market_entry(weft_ctx *ctx, void *data, uint64_t row, uint64_t column, double value)
{
  market_job *job = data;
  const uint64_t r = job->turned ? column : row, c = job->turned ? row : column;
  if (value == 0 || job->late || job->mode == SIZES) return WEFT_OK;
  if (r >= job->writer->n || c >= job->writer->p)
    return weft_fail(ctx, WEFT_ERR_INPUT, "The Matrix Market file changed while it was read.");
  if (job->mode == PUSH) return weft_store_push(ctx, job->writer, r, c, value, &job->late);
  if (job->mode == PLACE) return weft_store_sort_place(ctx, job->writer, job->sorter, r, c, value);
  weft_store_sort_count(job->sorter, r);
  return WEFT_OK;
}

static weft_status run_market(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  market_job *job = data;
  weft_status st = WEFT_OK;
  (void) backend;
  if (job->mode == PLACE && !job->sorter->file) WEFT_TRY(weft_store_sort_plan(ctx, job->writer, job->sorter));
  WEFT_TRY(
      weft_store_market_read(ctx, job->market, job->bytes, job->size, &job->at, job->mode == SIZES, market_entry, job));
  if (job->ended) WEFT_TRY(weft_store_market_end(ctx, job->market, market_entry, job));
done:
  return st;
}

/* bytes: the file's next ones; none at its end. turned: the file has samples in its columns. NULL while the sizes are
 * not known, else list(rows, columns, stored, late); late: an entry came after its block, and sorting is needed. */
SEXP C_weft_store_market_read(SEXP market, SEXP handle, SEXP sorter, SEXP mode, SEXP bytes, SEXP turned, SEXP control)
{
  market_job job = { .market = weft_glue_handle_take(market, &market_kind),
                     .mode = weft_kind_of(mode, "mode", modes, 4),
                     .turned = Rf_asLogical(turned) == 1 };
  if (job.mode != SIZES) job.writer = weft_store_writer_of(handle);
  if (job.mode == COUNT || job.mode == PLACE) job.sorter = weft_glue_handle_take(sorter, &sorter_kind);
  if (TYPEOF(bytes) != RAWSXP) weft_glue_fail(WEFT_ERR_INTERNAL, "A piece of a file must be bytes.");
  job.bytes = RAW(bytes);
  job.size = (size_t) Rf_xlength(bytes);
  job.ended = job.size == 0;
  weft_glue_run(control, run_market, &job);
  if (!job.market->sized) return R_NilValue;
  SEXP out = PROTECT(WEFT_NAMED_LIST("rows", "columns", "stored", "late"));
  weft_result_put(out, "rows", Rf_ScalarReal((double) job.market->rows));
  weft_result_put(out, "columns", Rf_ScalarReal((double) job.market->columns));
  weft_result_put(out, "stored", Rf_ScalarReal((double) job.market->stored));
  weft_result_put(out, "late", Rf_ScalarLogical(job.late));
  UNPROTECT(1);
  return out;
}
