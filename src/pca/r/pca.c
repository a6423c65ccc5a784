/* .Call entry points of the room of principal components. A source is a list made by native_source() in R/pca-input.R:
 *   kind  "dense", "sparse", "blocks", "stored", "resident" or "genotypes";  n, p
 *   data  a double matrix; a list of dgCMatrix row blocks; a function(i) that returns block i as a double matrix, or as
 *         the slots p, i and x of a dgCMatrix of all columns; a pointer; what genotype_columns() makes
 *   packed  a function(i) that returns block i of rows as a handle of core/r/packed.h; or, where blocks stay on
 * devices, list(pointer, columns (from 0, or NULL), size, log1p, part (from 0, or NULL for all)); or NULL starts  the
 * first row (by_row) or column of each block, from 0 ranks   the rows of each rank, where this is one rank's part; else
 * NULL */
#include <limits.h>
#include <string.h>
#include "core/data/genotypes.h"
#include "core/r/packed.h"
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "core/together/ranks.h"
#include "core/r/record.h"
#include "pca/pca.h"
#include "pca/cpu/permuted_data.h"

/* ---- sources ---- */

typedef struct {
  SEXP holder; /* keeps the block in use alive */
  SEXP data, packed, starts, ranks;
  int by_row;
  size_t index, n, p;
  SEXP reader; /* the function that is asked */
  weft_pca_genotypes genotypes;
  weft_resident_choice kept;
} r_source;

static weft_status fetch_dense(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out)
{
  const r_source *given = source;
  (void) ctx;
  (void) index;
  memset(out, 0, sizeof *out);
  out->n = out->ld = (size_t) Rf_nrows(given->data);
  out->p = (size_t) Rf_ncols(given->data);
  out->dense = REAL(given->data);
  return WEFT_OK;
}

static weft_status fetch_sparse(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out)
{
  const r_source *given = source;
  const SEXP x = VECTOR_ELT(given->data, (R_xlen_t) index);
  const int *dim = INTEGER(R_do_slot(x, Rf_install("Dim")));
  (void) ctx;
  memset(out, 0, sizeof *out);
  out->row = (size_t) REAL(given->starts)[index];
  out->n = (size_t) dim[0];
  out->p = (size_t) dim[1];
  out->values = REAL(R_do_slot(x, Rf_install("x")));
  out->rows = INTEGER(R_do_slot(x, Rf_install("i")));
  out->starts = INTEGER(R_do_slot(x, Rf_install("p")));
  return WEFT_OK;
}

static SEXP read_block(void *data)
{
  r_source *source = data;
  SEXP index = PROTECT(Rf_ScalarReal((double) source->index + 1));
  SEXP call = PROTECT(Rf_lang2(source->reader, index));
  SET_VECTOR_ELT(source->holder, 0, Rf_eval(call, R_GlobalEnv));
  UNPROTECT(2);
  return R_NilValue;
}

/* What a function of R's returns for a block, kept by the holder. */
static weft_status ask(weft_ctx *ctx, r_source *source, SEXP reader, size_t index, SEXP *block)
{
  source->index = index;
  source->reader = reader;
  SET_VECTOR_ELT(source->holder, 0, R_NilValue);
  const weft_status st = weft_glue_eval(ctx, read_block, source);
  *block = VECTOR_ELT(source->holder, 0);
  return st;
}

/* The same, and where the block stands. */
static weft_status ask_for_block(weft_ctx *ctx, r_source *source, size_t index, SEXP *block, weft_pca_panel *out)
{
  const size_t all = source->by_row ? source->n : source->p, start = (size_t) REAL(source->starts)[index],
               end = index + 1 < (size_t) Rf_xlength(source->starts) ? (size_t) REAL(source->starts)[index + 1] : all;
  memset(out, 0, sizeof *out);
  out->row = source->by_row ? start : 0;
  out->column = source->by_row ? 0 : start;
  out->n = out->ld = source->by_row ? end - start : source->n;
  out->p = source->by_row ? source->p : end - start;
  return ask(ctx, source, source->data, index, block);
}

static weft_status fetch_packed(weft_ctx *ctx, void *source, size_t index, const weft_packed_panel **out)
{
  r_source *given = source;
  SEXP block;
  const weft_status st = ask(ctx, given, given->packed, index, &block);
  if (st != WEFT_OK) return st;
  const weft_packed *packed = weft_glue_handle_peek(block, &weft_packed_kind);
  if (!packed || packed->panel.p != given->p || packed->panel.row != (size_t) REAL(given->starts)[index] ||
      packed->panel.n > given->n - packed->panel.row)
    return weft_fail(ctx, WEFT_ERR_INTERNAL, "Block %.0f is no packed one.", (double) index + 1);
  *out = &packed->panel;
  return WEFT_OK;
}

/* Block `index` of a store, from R's reader; checked, since the reader is R code. Valid until the next is asked for. */
static weft_status fetch_stored(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out)
{
  SEXP block;
  const weft_status st = ask_for_block(ctx, source, index, &block, out);
  if (st != WEFT_OK) return st;
  const SEXP starts = weft_glue_element(block, "p"), rows = weft_glue_element(block, "i"),
             values = weft_glue_element(block, "x");
  if (TYPEOF(starts) != INTSXP || TYPEOF(rows) != INTSXP || TYPEOF(values) != REALSXP ||
      (size_t) Rf_xlength(starts) != out->p + 1 || Rf_xlength(rows) < INTEGER(starts)[out->p] ||
      Rf_xlength(values) < INTEGER(starts)[out->p])
    return weft_fail(ctx, WEFT_ERR_INTERNAL, "Block %.0f is no sparse matrix.", (double) index + 1);
  out->starts = INTEGER(starts);
  out->rows = INTEGER(rows);
  out->values = REAL(values);
  return WEFT_OK;
}

/* Blocks on devices were unpacked when they were sent: whoever asks for one here found damage that was not there. */
static weft_status fetch_kept(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out)
{
  (void) source, (void) out;
  return weft_fail(ctx, WEFT_ERR_INTERNAL, "Block %.0f on the device has changed.", (double) index + 1);
}

/* The blocks on devices that `list` chooses from. */
static weft_resident_choice kept_of(SEXP list, size_t n, size_t p)
{
  weft_record given = weft_record_open(list, "packed");
  const weft_resident *of = weft_glue_handle_take(weft_record_field(&given, "pointer"), &weft_panels_kind);
  const SEXP part = weft_record_field(&given, "part");
  const int whole = part == R_NilValue;
  weft_resident_choice kept = { .of = of, .p = p, .part = whole ? WEFT_RESIDENT_ALL : (size_t) Rf_asReal(part) };
  kept.columns = weft_record_doubles_or_null(&given, "columns", (double) p);
  kept.size = weft_record_doubles_or_null(&given, "size", (double) of->n);
  kept.log1p = weft_record_flag(&given, "log1p");
  weft_record_close(&given);
  const size_t begin = whole ? 0 : weft_resident_first(of, kept.part),
               end = whole ? of->panels : weft_resident_first(of, kept.part + 1);
  int fits =
      end > begin && weft_resident_row(of, end) - weft_resident_row(of, begin) == n && (kept.columns || p == of->p);
  for (size_t j = 0; j < p && kept.columns && fits; j++)
    fits = kept.columns[j] >= 0 && kept.columns[j] < (double) of->p;
  if (!fits) weft_glue_fail(WEFT_ERR_INTERNAL, "Blocks on devices of another size.");
  return kept;
}

static weft_status fetch_block(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out)
{
  SEXP block;
  const weft_status st = ask_for_block(ctx, source, index, &block, out);
  if (st != WEFT_OK) return st;
  if (TYPEOF(block) != REALSXP || !Rf_isMatrix(block) || (size_t) Rf_nrows(block) != out->n ||
      (size_t) Rf_ncols(block) != out->p)
    return weft_fail(ctx, WEFT_ERR_INPUT,
                     "Block %.0f must be %.0f rows and %.0f columns of numbers; what was read is "
                     "not.",
                     (double) index + 1, (double) out->n, (double) out->p);
  out->dense = REAL(block);
  return WEFT_OK;
}

/* Reads the list of genotype_columns() in R/plink-file.R; every column lies within the file. */
static weft_pca_genotypes genotypes_of(SEXP x, size_t n, size_t p)
{
  const weft_mapped *file = weft_glue_mapped(weft_glue_element(x, "pointer"));
  const SEXP wanted = weft_glue_element(x, "wanted");
  const size_t bytes = weft_genotype_bytes(n), all = (file->size - WEFT_GENOTYPE_HEAD) / bytes;
  if (TYPEOF(wanted) != REALSXP || (size_t) Rf_xlength(wanted) != p ||
      Rf_asReal(weft_glue_element(x, "n")) != (double) n)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Genotypes of another size.");
  for (size_t j = 0; j < p; j++)
    if (!(REAL(wanted)[j] >= 0 && REAL(wanted)[j] < (double) all))
      weft_glue_fail(WEFT_ERR_INTERNAL, "Variant %.0f reached the native code.", REAL(wanted)[j]);
  return (weft_pca_genotypes){ file->data + WEFT_GENOTYPE_HEAD, bytes, REAL(wanted) };
}

static weft_status fetch_genotypes(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out)
{
  const r_source *given = source;
  (void) ctx;
  (void) index;
  memset(out, 0, sizeof *out);
  out->n = given->n;
  out->p = given->p;
  out->genotypes = &given->genotypes;
  return WEFT_OK;
}

/* R's `source` list as the data of a decomposition: one dense matrix, sparse panels, dense or sparse blocks read by R
 * functions, or a matrix on the device. `to` keeps what the fetching functions need; `holder` protects the block in
 * use. */
static weft_pca_data data_of(SEXP source, SEXP holder, r_source *to)
{
  static const char *const kinds[] = { "dense", "sparse", "blocks", "stored", "resident", "genotypes" };
  enum { DENSE, SPARSE, BLOCKS, STORED, RESIDENT, GENOTYPES, KINDS };
  weft_record given = weft_record_open(source, "source");
  const int kind = weft_record_kind(&given, "kind", kinds, KINDS);
  const size_t n = weft_record_size(&given, "n"), p = weft_record_size(&given, "p");
  const r_source s = { holder,
                       weft_record_field(&given, "data"),
                       weft_record_field(&given, "packed"),
                       weft_record_field(&given, "starts"),
                       weft_record_field(&given, "ranks"),
                       weft_record_flag(&given, "by_row"),
                       0,
                       n,
                       p,
                       R_NilValue,
                       { NULL, 0, NULL },
                       { .of = NULL } };
  weft_record_close(&given);
  weft_pca_data data = { .n = n, .p = p, .panels = 1, .fetch = fetch_dense, .source = to, .stays = 1 };
  *to = s;
  if (kind == RESIDENT) {
    data.resident = weft_glue_device_matrix(s.data);
    if ((size_t) data.resident->n != n || (size_t) data.resident->p != p)
      weft_glue_fail(WEFT_ERR_INTERNAL, "A resident matrix of another size.");
    data.panels = 0;
  } else if (kind == GENOTYPES) {
    to->genotypes = genotypes_of(s.data, n, p);
    data.fetch = fetch_genotypes;
    data.coded = 1;
  } else if (kind == STORED && TYPEOF(s.packed) == VECSXP) {
    to->kept = kept_of(s.packed, n, p);
    const weft_resident *of = to->kept.of;
    const size_t part = to->kept.part, whole = part == WEFT_RESIDENT_ALL;
    data.panels = whole ? of->panels : weft_resident_first(of, part + 1) - weft_resident_first(of, part);
    data.kept = &to->kept;
    data.source = &to->kept;
    data.fetch = fetch_kept;
    data.packed = weft_resident_fetch;
    data.stays = 0;
    data.sparse = 1;
  } else if (kind == SPARSE) {
    data.panels = (size_t) Rf_xlength(s.data);
    data.fetch = fetch_sparse;
    data.sparse = 1;
  } else if (kind == BLOCKS || kind == STORED) {
    data.panels = (size_t) Rf_xlength(s.starts);
    data.fetch = kind == STORED ? fetch_stored : fetch_block;
    data.stays = 0;
    data.sparse = kind == STORED;
    if (s.packed != R_NilValue) data.packed = fetch_packed;
  }
  return data;
}

/* Memory of fetching is given back, however the work ended. */
static weft_status ended(const weft_pca_data *data, weft_status st)
{
  if (data->kept) weft_packed_end(&((weft_resident_choice *) data->source)->to);
  return st;
}

/* ---- moments ---- */

typedef struct {
  weft_pca_data data;
  const double *weights;
  weft_pca_moments out;
} moments_job;

static weft_status run_moments(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  moments_job *job = data;
  if (!job->data.resident && !job->data.packed)
    backend = weft_cpu_backend(); /* the data are here: sending them would cost more than reading */
  return ended(&job->data, backend->pca->moments(ctx, &job->data, job->weights, &job->out));
}

/* Lists mean, norm, weight, missing, infinite: one number per column. */
SEXP C_weft_pca_moments(SEXP source, SEXP weights, SEXP control)
{
  const char *fields[] = { "mean", "norm", "weight", "missing", "infinite", "" };
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields)), holder = PROTECT(Rf_allocVector(VECSXP, 1));
  r_source from;
  moments_job job = { data_of(source, holder, &from), weights == R_NilValue ? NULL : REAL(weights), { 0 } };
  double **const to[] = { &job.out.mean, &job.out.norm, &job.out.weight, &job.out.missing, &job.out.infinite };
  for (int i = 0; fields[i][0]; i++)
    *to[i] = REAL(weft_result_put(out, fields[i], Rf_allocVector(REALSXP, (R_xlen_t) job.data.p)));
  weft_glue_run(control, run_moments, &job);
  UNPROTECT(2);
  return out;
}

typedef struct {
  weft_pca_data data;
  double *out;
} seen_job;
WEFT_WORK(run_seen, seen_job, (job->data.resident ? backend : weft_cpu_backend())->pca->seen(ctx, &job->data, job->out))

/* How many values of each row are observed. */
SEXP C_weft_pca_seen(SEXP source, SEXP control)
{
  SEXP holder = PROTECT(Rf_allocVector(VECSXP, 1));
  r_source from;
  seen_job job = { data_of(source, holder, &from), NULL };
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) job.data.n));
  job.out = REAL(out);
  weft_glue_run(control, run_seen, &job);
  UNPROTECT(2);
  return out;
}

/* ---- decomposition ---- */

#define METHOD_NAME(id, name) name,
static const char *const method_names[] = { WEFT_PCA_METHODS(METHOD_NAME) };

/* R's `job` list as a struct; an error for a field that is missing, unknown or out of range. `start` stays R's. */
static weft_pca_job job_of(SEXP list, size_t p)
{
  weft_record given = weft_record_open(list, "job");
  const size_t k = weft_record_size(&given, "k");
  const weft_pca_job job = { .method = (weft_pca_method) weft_record_kind(&given, "method", method_names,
                                                                          WEFT_PCA_METHOD_COUNT),
                             .k = k,
                             .tol = weft_record_number(&given, "tol"),
                             .paper = weft_record_flag(&given, "paper"),
                             .max_iterations = weft_record_size(&given, "max_iter"),
                             .block = weft_record_size(&given, "block"),
                             .key = weft_record_key(&given, "key"),
                             .start = weft_record_doubles_or_null(&given, "start", (double) p * (double) k),
                             .choose = weft_record_flag(&given, "choose"),
                             .gram_blocks = weft_record_number(&given, "gram_blocks"),
                             .gram_steps = weft_record_number(&given, "gram_steps") };
  weft_record_close(&given);
  return job;
}

/* center, factor (p), row (n or NULL), missing (p or NULL), single, own (values are missing; dense or resident). */
static weft_pca_form form_of(SEXP list, size_t n, size_t p)
{
  weft_record given = weft_record_open(list, "form");
  const weft_pca_form form = { .center = weft_record_doubles(&given, "center", (double) p),
                               .factor = weft_record_doubles(&given, "factor", (double) p),
                               .row = weft_record_doubles_or_null(&given, "row", (double) n),
                               .missing = weft_record_doubles_or_null(&given, "missing", (double) p),
                               .single = weft_record_flag(&given, "single"),
                               .own = weft_record_flag(&given, "own") };
  weft_record_close(&given);
  return form;
}

/* A matrix of R's has 32-bit dimensions: pca_source() refuses more, and this sees that nothing is written past an
 * end. */
static int dimension(size_t count)
{
  if (count > INT_MAX) weft_glue_fail(WEFT_ERR_INTERNAL, "A matrix with a side of %.0f.", (double) count);
  return (int) count;
}

/* R's list of results, and `to` with pointers into its vectors: n × k scores, p × k loadings. */
static SEXP new_result(size_t n, size_t p, size_t k, weft_pca_result *to)
{
  SEXP out = PROTECT(
      WEFT_NAMED_LIST("d", "u", "v", "residual", "iterations", "converged", "rank", "passes", "method", "cross"));
  const weft_pca_result r = { .d = REAL(weft_result_put(out, "d", Rf_allocVector(REALSXP, (R_xlen_t) k))),
                              .u = REAL(weft_result_put(out, "u", Rf_allocMatrix(REALSXP, dimension(n), dimension(k)))),
                              .v = REAL(weft_result_put(out, "v", Rf_allocMatrix(REALSXP, dimension(p), dimension(k)))),
                              .residual = REAL(weft_result_put(out, "residual", Rf_allocVector(REALSXP, (R_xlen_t) k))),
                              .iterations =
                                  INTEGER(weft_result_put(out, "iterations", Rf_allocVector(INTSXP, (R_xlen_t) k))),
                              .converged =
                                  LOGICAL(weft_result_put(out, "converged", Rf_allocVector(LGLSXP, (R_xlen_t) k))) };
  memset(r.residual, 0, k * sizeof *r.residual);
  memset(r.iterations, 0, k * sizeof *r.iterations);
  memset(r.converged, 0, k * sizeof *r.converged);
  *to = r;
  UNPROTECT(1);
  return out;
}

static void finish_result(SEXP out, const weft_pca_result *r)
{
  weft_result_put(out, "rank", Rf_ScalarReal(r->rank));
  weft_result_put(out, "passes", Rf_ScalarReal(r->passes));
  weft_result_put(out, "method", Rf_mkString(method_names[r->method]));
}

typedef struct {
  weft_pca_data data;
  weft_pca_form form;
  weft_pca_job job;
  weft_pca_result out;
  weft_pca_ranks ranks;
} pca_job;

/* counts: the rows of every rank, or NULL. */
static void set_ranks(pca_job *job, SEXP counts)
{
  if (counts == R_NilValue) return;
  const weft_rank here = weft_ranks_here();
  size_t *rows = (size_t *) R_alloc((size_t) here.size, sizeof *rows);
  weft_pca_ranks ranks = { 0, (size_t) here.size, rows, 0, 0, weft_ranks_add, weft_ranks_gather };
  for (int r = 0; r < here.size; r++) {
    rows[r] = (size_t) REAL(counts)[r];
    if (r < here.rank) ranks.first += rows[r];
    ranks.all += rows[r];
  }
  job->ranks = ranks;
  job->data.ranks = &job->ranks;
}

WEFT_WORK(run_missing, pca_job, weft_pca_missing(ctx, backend->pca, &job->data, &job->form, &job->job, &job->out))

WEFT_WORK(run_pca, pca_job,
          ended(&job->data, weft_pca_spread(ctx, backend->pca, &job->data, &job->form, &job->job, &job->out)))

/* .Call: decomposes `source` as `form` and `job` say; with data that are deflated (missing values) by
 * weft_pca_missing(). */
SEXP C_weft_pca(SEXP source, SEXP form, SEXP job_list, SEXP control)
{
  SEXP holder = PROTECT(Rf_allocVector(VECSXP, 1)), out;
  r_source from;
  pca_job job;
  job.data = data_of(source, holder, &from);
  job.job = job_of(job_list, job.data.p);
  job.form = form_of(form, job.data.n, job.data.p);
  set_ranks(&job, from.ranks);
  const size_t u_rows = job.data.ranks && job.ranks.all < job.data.p ? job.ranks.all : job.data.n;
  out = PROTECT(new_result(u_rows, job.data.p, job.job.k, &job.out));
  if (!job.form.own && !job.data.ranks) {
    const int k = dimension(job.job.k);
    job.out.cross = REAL(weft_result_put(out, "cross", Rf_allocMatrix(REALSXP, k, k)));
    job.out.cross[0] = R_NaN; /* until it is there */
  }
  weft_glue_run(control, job.form.own ? run_missing : run_pca, &job);
  finish_result(out, &job.out);
  UNPROTECT(2);
  return out;
}

/* ---- products ---- */

typedef struct {
  weft_pca_data data;
  weft_pca_form form;
  int transposed;
  const double *v;
  size_t b;
  double *out;
} times_job;

static weft_status run_times(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  times_job *job = data;
  const weft_pca_ops *ops = backend->pca;
  const size_t from = job->b * (job->transposed ? job->data.n : job->data.p),
               to = job->b * (job->transposed ? job->data.p : job->data.n);
  weft_pca_space *space = NULL;
  double *s_v = NULL, *s_out = NULL;
  WEFT_TRY(ops->open(ctx, &job->data, &job->form, &space));
  WEFT_TRY(ops->take(space, from, &s_v));
  WEFT_TRY(ops->take(space, to, &s_out));
  WEFT_TRY(ops->put(space, s_v, job->v, from));
  WEFT_TRY(ops->product(space, job->transposed, s_v, job->b, s_out));
  WEFT_TRY(ops->get(space, job->out, s_out, to));
done:
  if (space) ops->close(space);
  return ended(&job->data, st);
}

/* .Call: X v, or X'v when `transposed`, for a matrix v; X: `source` in this form. */
SEXP C_weft_pca_times(SEXP source, SEXP form, SEXP v, SEXP transposed, SEXP control)
{
  SEXP holder = PROTECT(Rf_allocVector(VECSXP, 1));
  r_source from;
  times_job job = { .data = data_of(source, holder, &from) };
  job.transposed = Rf_asLogical(transposed) == 1;
  const size_t side = job.transposed ? job.data.n : job.data.p, to = job.transposed ? job.data.p : job.data.n;
  if (TYPEOF(v) != REALSXP || (size_t) Rf_nrows(v) != side)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Vectors of another size.");
  job.form = form_of(form, job.data.n, job.data.p);
  job.v = REAL(v);
  job.b = (size_t) Rf_ncols(v);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, dimension(to), dimension(job.b)));
  job.out = REAL(out);
  weft_glue_run(control, run_times, &job);
  UNPROTECT(2);
  return out;
}

/* ---- the form of X, and what is fitted to observed values ---- */

static weft_pca_scaling scaling_of(SEXP list, size_t p)
{
  weft_record given = weft_record_open(list, "scaling");
  const weft_pca_scaling s = { .centred = weft_record_flag(&given, "centred"),
                               .scaled = weft_record_flag(&given, "scaled"),
                               .center = weft_record_doubles_or_null(&given, "center", (double) p),
                               .scale = weft_record_doubles_or_null(&given, "scale", (double) p),
                               .weights = weft_record_doubles_or_null(&given, "weights", (double) p) };
  weft_record_close(&given);
  return s;
}

static SEXP new_made(size_t p, weft_pca_made *to)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("center", "factor", "divide", "constant", "exponent", "total"));
  const weft_pca_made made = { .center = REAL(weft_result_put(out, "center", Rf_allocVector(REALSXP, (R_xlen_t) p))),
                               .factor = REAL(weft_result_put(out, "factor", Rf_allocVector(REALSXP, (R_xlen_t) p))),
                               .divide = REAL(weft_result_put(out, "divide", Rf_allocVector(REALSXP, (R_xlen_t) p))),
                               .constant =
                                   LOGICAL(weft_result_put(out, "constant", Rf_allocVector(LGLSXP, (R_xlen_t) p))) };
  *to = made;
  UNPROTECT(1);
  return out;
}

static void finish_made(SEXP out, const weft_pca_made *made)
{
  weft_result_put(out, "exponent", Rf_ScalarReal(made->exponent));
  weft_result_put(out, "total", Rf_ScalarReal(made->total));
}

/* moments: mean, norm, weight. */
SEXP C_weft_pca_form(SEXP moments, SEXP scaling)
{
  const size_t p = (size_t) Rf_xlength(weft_glue_element(moments, "mean"));
  weft_record given = weft_record_open(moments, "moments");
  const weft_pca_moments of = { .mean = (double *) weft_record_doubles(&given, "mean", (double) p),
                                .norm = (double *) weft_record_doubles(&given, "norm", (double) p),
                                .weight = (double *) weft_record_doubles(&given, "weight", (double) p) };
  weft_record_close(&given);
  const weft_pca_scaling by = scaling_of(scaling, p);
  weft_pca_made made;
  SEXP out = PROTECT(new_made(p, &made));
  weft_pca_form_of(p, &of, &by, &made);
  finish_made(out, &made);
  UNPROTECT(1);
  return out;
}

typedef struct {
  weft_pca_em em;
  weft_pca_job job;
  weft_pca_result out;
} em_job;
WEFT_WORK(run_em, em_job, weft_pca_by_em(ctx, backend->pca, &job->em, &job->job, &job->out))

/* x: a double matrix with NaN. em: first, spread, weights, row, fall as in weft_pca_em. The decomposition, with `made`
 * and `cells`. */
SEXP C_weft_pca_em(SEXP x, SEXP em, SEXP scaling, SEXP job_list, SEXP control)
{
  const size_t n = (size_t) Rf_nrows(x), p = (size_t) Rf_ncols(x);
  SEXP first = weft_glue_element(em, "first");
  em_job job = { .em = { .x = REAL_RO(x), .n = n, .p = p, .gaps = (size_t) Rf_xlength(first) } };
  weft_pca_made made;
  weft_record given = weft_record_open(em, "em");
  job.em.first = weft_record_doubles(&given, "first", WEFT_ANY_LENGTH);
  job.em.spread = weft_record_doubles(&given, "spread", (double) p);
  job.em.weights = weft_record_doubles_or_null(&given, "weights", (double) n);
  job.em.row = weft_record_doubles_or_null(&given, "row", (double) n);
  job.em.fall = weft_record_number(&given, "fall");
  weft_record_close(&given);
  job.em.scaling = scaling_of(scaling, p);
  job.job = job_of(job_list, p);
  job.em.made = &made;
  SEXP out = PROTECT(WEFT_NAMED_LIST("run", "made", "cells"));
  SEXP run = weft_result_put(out, "run", new_result(n, p, job.job.k, &job.out));
  SEXP form = weft_result_put(out, "made", new_made(p, &made));
  job.em.cells = REAL(weft_result_put(out, "cells", Rf_allocVector(REALSXP, Rf_xlength(first))));
  weft_glue_run(control, run_em, &job);
  finish_result(run, &job.out);
  finish_made(form, &made);
  UNPROTECT(1);
  return out;
}

/* ---- what a result is made of ---- */

typedef struct {
  double *u;
  const double *d;
  double power;
  size_t n, k;
} scores_job;

static weft_status run_scores(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  const scores_job *job = data;
  const int threads = weft_threads_worth(ctx->threads, (double) job->n * (double) job->k);
  (void) backend;
  WEFT_PARALLEL(threads)
  for (size_t j = 0; j < job->k; j++) {
    WEFT_FOR(static)
    for (int64_t i = 0; i < (int64_t) job->n; i++) job->u[(size_t) i + j * job->n] *= job->d[j] * job->power;
  }
  return weft_poll(ctx, 0, 0);
}

/* u, a matrix of C_weft_pca() that nothing else holds, becomes u diag(d) power, and gets these names: R would copy
 * millions of rows for either. */
SEXP C_weft_pca_scores(SEXP u, SEXP d, SEXP power, SEXP names, SEXP control)
{
  scores_job job = { .n = (size_t) Rf_nrows(u), .k = (size_t) Rf_ncols(u) };
  if (TYPEOF(u) != REALSXP || TYPEOF(d) != REALSXP || (size_t) Rf_xlength(d) != job.k)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Scores need vectors and a number for each.");
  job.u = REAL(u);
  job.d = REAL(d);
  job.power = Rf_asReal(power);
  weft_glue_run(control, run_scores, &job);
  Rf_setAttrib(u, R_DimNamesSymbol, names);
  return u;
}

typedef struct {
  const double *u;
  double *out;
  size_t n, k;
} cross_job;

static weft_status run_cross(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  const cross_job *job = data;
  const weft_view left = weft_view_plain(job->u, job->n, 1), right = weft_view_plain(job->u, job->n, 0);
  (void) backend;
  return weft_product(ctx, job->k, job->k, job->n, 1, &left, &right, 0, job->out, job->k, 1);
}

/* u'u, the lower triangle. */
SEXP C_weft_pca_cross(SEXP u, SEXP control)
{
  const size_t n = (size_t) Rf_nrows(u), k = (size_t) Rf_ncols(u);
  if (TYPEOF(u) != REALSXP) weft_glue_fail(WEFT_ERR_INTERNAL, "Vectors must be a double matrix.");
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, dimension(k), dimension(k)));
  cross_job job = { REAL(u), REAL(out), n, k };
  WEFT_RUN_RETURN(out, control, run_cross, &job);
}

/* ---- data without components ---- */

typedef struct {
  const double *x, *mean;
  size_t n, p;
  weft_rng rng;
  double *out;
} null_job;
WEFT_WORK(draw_null, null_job, weft_pca_null(ctx, job->x, job->n, job->p, job->rng, job->mean, job->out))

/* A matrix of the shape of x, a double matrix. how: list(key: a 64-bit number in two halves; stream; mean: NULL for
 * permuted columns, or a number for each, for signs). */
SEXP C_weft_pca_null(SEXP x, SEXP how, SEXP control)
{
  null_job job = { .x = REAL_RO(x), .n = (size_t) Rf_nrows(x), .p = (size_t) Rf_ncols(x) };
  weft_record given = weft_record_open(how, "how");
  job.rng.key = weft_record_key(&given, "key");
  job.rng.stream = (uint32_t) weft_record_size(&given, "stream");
  job.mean = weft_record_doubles_or_null(&given, "mean", (double) job.p);
  weft_record_close(&given);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) job.n, (int) job.p));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, draw_null, &job);
}
