/* .Call entry points of the kernel room. Points come as d x n matrices, so that a point's coordinates lie together:
 * a list of `x` and `lo` (NULL without low parts); for grids as a list of `columns` too, R's own n x d matrix. A task
 * is the list that R's native_task() makes. */
#include <string.h>
#include <time.h>
#include "kernel_glue.h"

static weft_points points_of(SEXP list) {
  SEXP x = weft_glue_element(list, "x"), lo = weft_glue_element(list, "lo"),
       columns = weft_glue_element(list, "columns");
  if (columns != R_NilValue) {
    weft_points p = {(size_t) Rf_nrows(columns), (size_t) Rf_ncols(columns), REAL(columns), NULL};
    return p;
  }
  weft_points p = {(size_t) Rf_ncols(x), (size_t) Rf_nrows(x), REAL(x), lo == R_NilValue ? NULL : REAL(lo)};
  return p;
}

int weft_kernel_kind_of(SEXP name) {
  const char *wanted = TYPEOF(name) == STRSXP && XLENGTH(name) == 1 ? CHAR(STRING_ELT(name, 0)) : "";
  for (int kind = 0; kind < WEFT_KERNELS; kind++)
    if (!strcmp(weft_kernel_row_of(kind)->name, wanted)) return kind;
  weft_glue_fail(WEFT_ERR_INTERNAL, "kernel_kinds.h has no kernel \"%s\"", wanted);
}

/* A task without its kernel. */
static weft_kernel_task points_and_weights_of(SEXP list) {
  SEXP weights = weft_glue_element(list, "weights");
  weft_kernel_task t = {-1, Rf_asReal(weft_glue_element(list, "h")), points_of(weft_glue_element(list, "query")),
                        points_of(weft_glue_element(list, "reference")), weights == R_NilValue ? NULL : REAL(weights),
                        weights == R_NilValue ? 1 : (size_t) Rf_nrows(weights),
                        Rf_asLogical(weft_glue_element(list, "leave_one_out")),
                        Rf_asLogical(weft_glue_element(list, "log")), Rf_asReal(weft_glue_element(list, "rel_error")),
                        Rf_asReal(weft_glue_element(list, "abs_error")), 0, 1, 0, NULL, 0, 0,
                        weft_glue_element(weft_glue_element(list, "reference"), "columns") != R_NilValue, 0};
  SEXP own = weft_glue_element(list, "own");
  if (own != R_NilValue) t.own = INTEGER(own);
  return t;
}

static weft_kernel_task task_of(SEXP list) {
  weft_kernel_task t = points_and_weights_of(list);
  t.kind = weft_kernel_kind_of(weft_glue_element(list, "kernel"));
  return t;
}

static weft_tree tree_of(SEXP list) {
  SEXP centre = weft_glue_element(list, "centre"), first = weft_glue_element(list, "first"),
       moments = weft_glue_element(list, "moments");
  weft_tree t = {
    points_of(list), INTEGER(weft_glue_element(list, "order")), (size_t) Rf_xlength(first),
    (size_t) Rf_asInteger(weft_glue_element(list, "leaf_size")), REAL(first), REAL(weft_glue_element(list, "count")),
    INTEGER(weft_glue_element(list, "child")), REAL(weft_glue_element(list, "box")),
    centre == R_NilValue ? NULL : REAL(centre), moments == R_NilValue ? NULL : REAL(moments)
  };
  return t;
}

/* The sheet of kernels (kernel_kinds.h): a named list of columns. */
SEXP C_weft_kernel_kinds(void) {
  const char *fields[] = {"name", "form", "single", "scale", "d1", "d2", "e0", "e1", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  for (int k = 0; fields[k][0]; k++) SET_VECTOR_ELT(out, k, Rf_allocVector(k < 3 ? STRSXP : REALSXP, WEFT_KERNELS));
  for (int kind = 0; kind < WEFT_KERNELS; kind++) {
    const weft_kernel_row *row = weft_kernel_row_of(kind);
    const char *words[] = {row->name, row->form, row->single};
    const double numbers[] = {row->scale, row->d1, row->d2, row->e0, row->e1};
    for (int k = 0; k < 3; k++) SET_STRING_ELT(VECTOR_ELT(out, k), kind, Rf_mkChar(words[k]));
    for (int k = 0; k < 5; k++) REAL(VECTOR_ELT(out, 3 + k))[kind] = numbers[k];
  }
  UNPROTECT(1);
  return out;
}

/* list(sum = nq x m for each bandwidth, effort = pairs, nodes, repeated, series, samples, processor seconds before
 * and in the walk or the direct sum, queries, given up or not) */
static SEXP result_of(const weft_kernel_task *t, size_t bandwidths) {
  const char *fields[] = {"sum", "effort", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_allocMatrix(REALSXP, (int) t->query.n, (int) (t->m * bandwidths)));
  SET_VECTOR_ELT(out, 1, Rf_allocVector(REALSXP, 9));
  UNPROTECT(1);
  return out;
}

static void store_effort(SEXP out, weft_kernel_effort e) {
  double *to = REAL(VECTOR_ELT(out, 1));
  to[0] = e.pairs, to[1] = e.nodes, to[2] = e.repeated, to[3] = e.series, to[4] = e.samples, to[5] = e.prepared,
  to[6] = e.walked, to[7] = e.queries;
  to[8] = e.given_up;
}

/* ---- points ---- */

typedef struct { const double *x; size_t n, d; const double *origin, *scale; int full; double *out, *lo; } points_job;

static weft_status fill_points(weft_ctx *ctx, const weft_backend *backend, void *data) {
  points_job *j = data;
  (void) backend;
  return weft_points_fill(ctx, j->x, j->n, j->d, j->origin, j->scale, j->full, j->out, j->lo);
}

SEXP C_weft_kernel_points(SEXP x, SEXP origin, SEXP scale, SEXP full, SEXP control) {
  const char *fields[] = {"x", "lo", ""};
  const int scaled = scale != R_NilValue;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_allocMatrix(REALSXP, Rf_ncols(x), Rf_nrows(x)));
  if (scaled) SET_VECTOR_ELT(out, 1, Rf_allocMatrix(REALSXP, Rf_ncols(x), Rf_nrows(x)));
  points_job job = {REAL(x), (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), REAL(origin), scaled ? REAL(scale) : NULL,
                    Rf_asLogical(full), REAL(VECTOR_ELT(out, 0)), scaled ? REAL(VECTOR_ELT(out, 1)) : NULL};
  weft_glue_run(control, fill_points, &job);
  UNPROTECT(1);
  return out;
}

typedef struct { const double *x; size_t n, d; double *out; } range_job;

static weft_status find_range(weft_ctx *ctx, const weft_backend *backend, void *data) {
  range_job *j = data;
  (void) backend;
  return weft_points_range(ctx, j->x, j->n, j->d, j->out);
}

/* 3 x columns: least, greatest, how many are not finite. */
SEXP C_weft_kernel_range(SEXP x, SEXP control) {
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, 3, Rf_ncols(x)));
  range_job job = {REAL(x), (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), REAL(out)};
  weft_glue_run(control, find_range, &job);
  UNPROTECT(1);
  return out;
}

/* ---- direct sums ---- */

typedef weft_kernel_sum_job sum_job;

static weft_status direct(weft_ctx *ctx, const weft_backend *backend, void *data) {
  sum_job *j = data;
  return weft_kernel_direct_spread(ctx, backend->kernel, &j->task, j->out, &j->effort);
}

typedef struct { weft_kernel_task task; double seconds; } timing_job;

static weft_status time_pairs(weft_ctx *ctx, const weft_backend *backend, void *data) {
  timing_job *j = data;
  (void) backend;
  return weft_kernel_pair_seconds(ctx, &j->task, 3, &j->seconds);
}

SEXP C_weft_kernel_pair_seconds(SEXP task, SEXP control) {
  timing_job job = {task_of(task), 0};
  weft_glue_run(control, time_pairs, &job);
  return Rf_ScalarReal(job.seconds);
}

SEXP C_weft_kernel_direct(SEXP task, SEXP control) {
  sum_job job = {.task = task_of(task)};
  SEXP out = PROTECT(result_of(&job.task, 1));
  const clock_t started = clock();
  job.out = REAL(VECTOR_ELT(out, 0));
  weft_glue_run(control, direct, &job);
  job.effort.walked = (double) (clock() - started) / CLOCKS_PER_SEC;
  store_effort(out, job.effort);
  UNPROTECT(1);
  return out;
}

static weft_status single(weft_ctx *ctx, const weft_backend *backend, void *data) {
  sum_job *j = data;
  return weft_kernel_single_spread(ctx, backend->kernel, &j->task, j->own, j->tensor, j->out, j->bound);
}

/* list(sum, bound): greatest error of each query over the sum of |w|. own: NULL, or what each query leaves out. */
SEXP C_weft_kernel_single(SEXP task, SEXP own, SEXP tensor, SEXP control) {
  const char *fields[] = {"sum", "bound", ""};
  sum_job job = {.task = task_of(task), .own = own == R_NilValue ? NULL : INTEGER(own), .tensor = Rf_asLogical(tensor)};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_allocMatrix(REALSXP, (int) job.task.query.n, (int) job.task.m));
  SET_VECTOR_ELT(out, 1, Rf_allocVector(REALSXP, (R_xlen_t) job.task.query.n));
  job.out = REAL(VECTOR_ELT(out, 0)), job.bound = REAL(VECTOR_ELT(out, 1));
  weft_glue_run(control, single, &job);
  UNPROTECT(1);
  return out;
}

static weft_status polynomial(weft_ctx *ctx, const weft_backend *backend, void *data) {
  sum_job *j = data;
  (void) backend;
  return weft_kernel_polynomial(ctx, &j->task, j->scale, j->offset, j->degree, j->out);
}

/* parameters: scale, offset, degree */
SEXP C_weft_kernel_polynomial(SEXP task, SEXP parameters, SEXP control) {
  const double *p = REAL(parameters);
  sum_job job = {.task = points_and_weights_of(task), .scale = p[0], .offset = p[1], .degree = p[2]};
  SEXP out = PROTECT(result_of(&job.task, 1));
  job.out = REAL(VECTOR_ELT(out, 0));
  weft_glue_run(control, polynomial, &job);
  job.effort.pairs = (double) job.task.query.n * (double) job.task.reference.n;
  store_effort(out, job.effort);
  UNPROTECT(1);
  return out;
}

typedef struct { sum_job sum; double reach; int done; } grid_job;

static weft_status over_grid(weft_ctx *ctx, const weft_backend *backend, void *data) {
  grid_job *j = data;
  return weft_kernel_grid_spread(ctx, backend->kernel, &j->sum.task, j->reach, &j->done, j->sum.out, &j->sum.effort);
}

/* NULL where no grid suits. */
SEXP C_weft_kernel_grid(SEXP task, SEXP reach, SEXP control) {
  grid_job job = {.sum = {.task = task_of(task)}, .reach = Rf_asReal(reach), .done = 0};
  SEXP out = PROTECT(result_of(&job.sum.task, 1));
  job.sum.out = REAL(VECTOR_ELT(out, 0));
  weft_glue_run(control, over_grid, &job);
  store_effort(out, job.sum.effort);
  UNPROTECT(1);
  return job.done ? out : R_NilValue;
}

/* ---- trees ---- */

static weft_status grow(weft_ctx *ctx, const weft_backend *backend, void *data) {
  (void) backend;
  return weft_tree_grow(ctx, data);
}

/* points: list(x, lo). The result's list is the tree as R keeps it and tree_of() reads it. */
SEXP C_weft_tree_grow(SEXP points, SEXP type, SEXP leaf_size, SEXP key, SEXP control) {
  const char *fields[] = {"x", "lo", "order", "first", "count", "child", "box", "centre", "leaf_size", ""};
  const weft_points p = points_of(points);
  const size_t leaf = (size_t) Rf_asInteger(leaf_size), nodes = weft_tree_nodes(p.n, leaf);
  const uint32_t high = (uint32_t) REAL(key)[0], low = (uint32_t) REAL(key)[1];
  const int with_centre = Rf_asInteger(type) != WEFT_TREE_KD;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_duplicate(weft_glue_element(points, "x")));
  SET_VECTOR_ELT(out, 1, Rf_duplicate(weft_glue_element(points, "lo")));
  SET_VECTOR_ELT(out, 2, Rf_allocVector(INTSXP, (R_xlen_t) p.n));
  SET_VECTOR_ELT(out, 3, Rf_allocVector(REALSXP, (R_xlen_t) nodes));
  SET_VECTOR_ELT(out, 4, Rf_allocVector(REALSXP, (R_xlen_t) nodes));
  SET_VECTOR_ELT(out, 5, Rf_allocVector(INTSXP, (R_xlen_t) nodes));
  SET_VECTOR_ELT(out, 6, Rf_allocMatrix(REALSXP, 2 * (int) p.d, (int) nodes));
  if (with_centre) SET_VECTOR_ELT(out, 7, Rf_allocMatrix(REALSXP, (int) p.d + 1, (int) nodes));
  SET_VECTOR_ELT(out, 8, Rf_ScalarInteger((int) leaf));
  weft_tree_build b = {
    (weft_tree_type) Rf_asInteger(type), p.n, p.d, leaf, nodes, ((uint64_t) high << 32) | low,
    REAL(VECTOR_ELT(out, 0)), p.lo ? REAL(VECTOR_ELT(out, 1)) : NULL, INTEGER(VECTOR_ELT(out, 2)),
    REAL(VECTOR_ELT(out, 3)), REAL(VECTOR_ELT(out, 4)), REAL(VECTOR_ELT(out, 6)),
    with_centre ? REAL(VECTOR_ELT(out, 7)) : NULL, INTEGER(VECTOR_ELT(out, 5))
  };
  weft_glue_run(control, grow, &b);
  UNPROTECT(1);
  return out;
}

static int is_matrix(SEXP x, double rows, double columns) {
  return TYPEOF(x) == REALSXP && Rf_isMatrix(x) && (double) Rf_nrows(x) == rows && (double) Rf_ncols(x) == columns;
}

static int is_vector(SEXP x, SEXPTYPE type, double length) {
  return TYPEOF(x) == type && (double) XLENGTH(x) == length;
}

/* The first array that has another type or size than those of a tree of n points in d dimensions, or NULL. */
static const char *misshapen(SEXP tree, size_t n, size_t d, int with_centre, int with_lo) {
  SEXP leaf = weft_glue_element(tree, "leaf_size"), lo = weft_glue_element(tree, "lo");
  SEXP centre = weft_glue_element(tree, "centre");
  if (!is_vector(leaf, INTSXP, 1) || INTEGER(leaf)[0] < 1) return "leaf_size";
  const double nodes = (double) weft_tree_nodes(n, (size_t) INTEGER(leaf)[0]);
  if (!is_matrix(weft_glue_element(tree, "x"), (double) d, (double) n)) return "x";
  if (with_lo ? !is_matrix(lo, (double) d, (double) n) : lo != R_NilValue) return "lo";
  if (!is_vector(weft_glue_element(tree, "order"), INTSXP, (double) n)) return "order";
  if (!is_vector(weft_glue_element(tree, "first"), REALSXP, nodes)) return "first";
  if (!is_vector(weft_glue_element(tree, "count"), REALSXP, nodes)) return "count";
  if (!is_vector(weft_glue_element(tree, "child"), INTSXP, nodes)) return "child";
  if (!is_matrix(weft_glue_element(tree, "box"), 2 * (double) d, nodes)) return "box";
  if (with_centre ? !is_matrix(centre, (double) d + 1, nodes) : centre != R_NilValue) return "centre";
  return NULL;
}

typedef struct { weft_tree_build tree; const double *columns, *origin, *scale; int full; const char *wrong; } check_job;

static weft_status check_tree(weft_ctx *ctx, const weft_backend *backend, void *data) {
  check_job *j = data;
  weft_status st = WEFT_OK;
  int same = 1;
  (void) backend;
  WEFT_TRY(weft_tree_check(ctx, &j->tree, &j->wrong));
  if (j->wrong || !j->columns) goto done;
  WEFT_TRY(weft_points_check(ctx, j->columns, j->tree.n, j->tree.d, j->origin, j->scale, j->full, j->tree.order,
                             j->tree.x, j->tree.lo, &same));
  if (!same) j->wrong = "points";
done:
  return st;
}

/* NULL, or the name of what is wrong with a tree of n points in d dimensions that C_weft_tree_grow() is said to have
 * made; "points" when they are not those of `columns`, a matrix or NULL, rescaled as C_weft_kernel_points() does. size:
 * n, d, type. */
SEXP C_weft_tree_check(SEXP tree, SEXP size, SEXP columns, SEXP origin, SEXP scale, SEXP full, SEXP control) {
  const double *s = REAL(size);
  const size_t n = (size_t) s[0], d = (size_t) s[1];
  const int type = (int) s[2], with_centre = type != WEFT_TREE_KD, scaled = scale != R_NilValue;
  check_job job = {.wrong = TYPEOF(tree) == VECSXP ? misshapen(tree, n, d, with_centre, scaled) : "tree"};
  if (!job.wrong) {
    const size_t leaf = (size_t) INTEGER(weft_glue_element(tree, "leaf_size"))[0];
    job.tree = (weft_tree_build){(weft_tree_type) type, n, d, leaf, weft_tree_nodes(n, leaf), 0,
                                 REAL(weft_glue_element(tree, "x")),
                                 scaled ? REAL(weft_glue_element(tree, "lo")) : NULL,
                                 INTEGER(weft_glue_element(tree, "order")), REAL(weft_glue_element(tree, "first")),
                                 REAL(weft_glue_element(tree, "count")), REAL(weft_glue_element(tree, "box")),
                                 with_centre ? REAL(weft_glue_element(tree, "centre")) : NULL,
                                 INTEGER(weft_glue_element(tree, "child"))};
    if (columns != R_NilValue) job.columns = REAL(columns);
    job.origin = REAL(origin), job.scale = scaled ? REAL(scale) : NULL, job.full = Rf_asLogical(full);
    weft_glue_run(control, check_tree, &job);
  }
  return job.wrong ? Rf_mkString(job.wrong) : R_NilValue;
}

typedef struct { sum_job sum; const double *h; size_t bandwidths; } walk_job;

static weft_status walk_trees(weft_ctx *ctx, const weft_backend *backend, void *data) {
  walk_job *j = data;
  (void) backend;
  return weft_kernel_walk_many(ctx, &j->sum.task, j->h, j->bandwidths, &j->sum.query, &j->sum.reference, j->sum.out,
                               &j->sum.effort);
}

/* The trees' points are the task's, whose `h` may be many bandwidths, narrowest first; sums come in the query tree's
 * order, one bandwidth's after another's. options: use of series (kernel.h), confidence, two words of a key; and if
 * there are two more, groups of a trial or 0 and a budget or 0. */
SEXP C_weft_kernel_walk(SEXP task, SEXP query, SEXP reference, SEXP options, SEXP control) {
  SEXP h = weft_glue_element(task, "h");
  const double *o = REAL(options);
  walk_job job = {.sum = {.task = task_of(task), .query = tree_of(query), .reference = tree_of(reference)},
                  .h = REAL(h),
                  .bandwidths = (size_t) Rf_xlength(h)};
  job.sum.task.series = (int) o[0], job.sum.task.confidence = o[1];
  job.sum.task.key = ((uint64_t) (uint32_t) o[2] << 32) | (uint32_t) o[3];
  if (Rf_xlength(options) == 6) job.sum.task.trial = (size_t) o[4], job.sum.task.budget = o[5];
  SEXP out = PROTECT(result_of(&job.sum.task, job.bandwidths));
  job.sum.out = REAL(VECTOR_ELT(out, 0));
  weft_glue_run(control, walk_trees, &job);
  store_effort(out, job.sum.effort);
  UNPROTECT(1);
  return out;
}

typedef struct {
  weft_radial g;
  const double *h;
  size_t bandwidths;
  double rel_error;
  weft_tree query, reference;
  double *out;
} pairs_job;

static weft_status sum_pairs(weft_ctx *ctx, const weft_backend *backend, void *data) {
  pairs_job *j = data;
  weft_status st = WEFT_OK;
  (void) backend;
  for (size_t b = 0; b < j->bandwidths; b++)
    WEFT_TRY(weft_kernel_pairs(ctx, &j->g, j->h[b], j->rel_error, &j->query, &j->reference, j->out + b));
done:
  return st;
}

/* radial: list(coefficients = 4 x pieces, per_unit, bend). One sum over all pairs for each of `h`. */
SEXP C_weft_kernel_pairs(SEXP radial, SEXP h, SEXP rel_error, SEXP query, SEXP reference, SEXP control) {
  SEXP coefficients = weft_glue_element(radial, "coefficients");
  pairs_job job = {{(size_t) Rf_ncols(coefficients), Rf_asReal(weft_glue_element(radial, "per_unit")),
                    REAL(coefficients), REAL(weft_glue_element(radial, "bend"))},
                   REAL(h),
                   (size_t) Rf_xlength(h),
                   Rf_asReal(rel_error),
                   tree_of(query),
                   tree_of(reference),
                   NULL};
  SEXP out = PROTECT(Rf_allocVector(REALSXP, Rf_xlength(h)));
  job.out = REAL(out);
  weft_glue_run(control, sum_pairs, &job);
  UNPROTECT(1);
  return out;
}

/* ---- for the entry points of ranks ---- */

weft_kernel_task weft_kernel_task_of(SEXP list) { return task_of(list); }
weft_tree weft_kernel_tree_of(SEXP list) { return tree_of(list); }
