/* .Call entry points of the kernel room. Points and weights are read by REAL_RO(): R may have wrapped a vector of the
 * user's, which REAL() would copy. Points come as d x n matrices, so that a point's coordinates lie together:
 * a list of `x` and `lo` (NULL without low parts); for grids as a list of `columns` too, R's own n x d matrix. A task
 * is the list that R's native_task() makes. */
#include <string.h>
#include "core/data/mapped.h"
#include "core/r/record.h"
#include "kernel/r/kernel.h"
#include "kernel/cpu/direct/direct.h"
#include "kernel/cpu/direct/wide.h"
#include "kernel/cpu/points.h"
#include "kernel/cpu/spread.h"
#include "kernel/cpu/tree/pairs.h"
#include "kernel/cpu/line/line.h"
#include "kernel/cpu/tree/walk.h"

weft_points weft_kernel_points_of(SEXP list)
{
  SEXP x = weft_glue_element(list, "x"), lo = weft_glue_element(list, "lo"),
       columns = weft_glue_element(list, "columns");
  if (columns != R_NilValue) {
    weft_points p = { (size_t) Rf_nrows(columns), (size_t) Rf_ncols(columns), REAL_RO(columns), NULL };
    return p;
  }
  weft_points p = { (size_t) Rf_ncols(x), (size_t) Rf_nrows(x), REAL_RO(x), lo == R_NilValue ? NULL : REAL_RO(lo) };
  return p;
}

int weft_kernel_kind_of(SEXP name)
{
  const char *wanted = TYPEOF(name) == STRSXP && XLENGTH(name) == 1 ? CHAR(STRING_ELT(name, 0)) : "";
  for (int kind = 0; kind < WEFT_KERNELS; kind++)
    if (!strcmp(weft_kernel_row_of(kind)->name, wanted)) return kind;
  weft_glue_fail(WEFT_ERR_INTERNAL, "kernel/kinds.h has no kernel \"%s\"", wanted);
}

/* Weights are m x n; one column of them may come as R has it, n x 1. */
static size_t columns_of(SEXP weights, SEXP reference)
{
  return Rf_ncols(weights) == 1 && weft_kernel_points_of(reference).n > 1 ? 1 : (size_t) Rf_nrows(weights);
}

/* Several bandwidths: `h` is the first. */
weft_kernel_task weft_kernel_task_of(SEXP list)
{
  weft_record record = weft_record_open(list, "task");
  SEXP kernel = weft_record_field(&record, "kernel"), weights = weft_record_field(&record, "weights"),
       reference = weft_record_field(&record, "reference");
  const weft_kernel_task task = {
    .kind = weft_kernel_kind_of(kernel),
    .h = weft_record_doubles(&record, "h", WEFT_ANY_LENGTH)[0],
    .query = weft_kernel_points_of(weft_record_field(&record, "query")),
    .reference = weft_kernel_points_of(reference),
    .weights = weights == R_NilValue ? NULL : REAL_RO(weights),
    .m = weights == R_NilValue ? 1 : columns_of(weights, reference),
    .leave_one_out = weft_record_flag(&record, "leave_one_out"),
    .own = weft_record_integers_or_null(&record, "own", WEFT_ANY_LENGTH),
    .logarithm = weft_record_flag(&record, "log"),
    .rel_error = weft_record_number(&record, "rel_error"),
    .abs_error = weft_record_number(&record, "abs_error"),
    .confidence = 1,
    .columns = weft_glue_element(reference, "columns") != R_NilValue,
  };
  weft_record_close(&record);
  return task;
}

/* A tree as R keeps it, without copies: pointers into the list's vectors, which must outlive the result. A missing
 * element is an error. */
weft_tree weft_kernel_tree_of(SEXP list)
{
  SEXP centre = weft_glue_element(list, "centre"), first = weft_glue_element(list, "first"),
       moments = weft_glue_element(list, "moments");
  weft_tree tree = { weft_kernel_points_of(list),
                     INTEGER(weft_glue_element(list, "order")),
                     (size_t) Rf_xlength(first),
                     (size_t) Rf_asInteger(weft_glue_element(list, "leaf_size")),
                     REAL(first),
                     REAL(weft_glue_element(list, "count")),
                     INTEGER(weft_glue_element(list, "child")),
                     REAL(weft_glue_element(list, "box")),
                     centre == R_NilValue ? NULL : REAL(centre),
                     moments == R_NilValue ? NULL : REAL(moments) };
  return tree;
}

/* The sheet of kernels (kernel/kinds.h), and which can be summed on a line: a named list of columns. */
SEXP C_weft_kernel_kinds(void)
{
  const char *words[] = { "name", "form", "single" }, *numbers[] = { "scale", "d1", "d2", "e0", "e1" };
  SEXP out = PROTECT(WEFT_NAMED_LIST("name", "form", "single", "scale", "d1", "d2", "e0", "e1", "line")), word[3];
  double *number[5];
  for (int k = 0; k < 3; k++) word[k] = weft_result_put(out, words[k], Rf_allocVector(STRSXP, WEFT_KERNELS));
  for (int k = 0; k < 5; k++) number[k] = REAL(weft_result_put(out, numbers[k], Rf_allocVector(REALSXP, WEFT_KERNELS)));
  int *line = LOGICAL(weft_result_put(out, "line", Rf_allocVector(LGLSXP, WEFT_KERNELS)));
  for (int kind = 0; kind < WEFT_KERNELS; kind++) {
    const weft_kernel_row *row = weft_kernel_row_of(kind);
    const char *of_words[] = { row->name, row->form, row->single };
    const double of_numbers[] = { row->scale, row->d1, row->d2, row->e0, row->e1 };
    for (int k = 0; k < 3; k++) SET_STRING_ELT(word[k], kind, Rf_mkChar(of_words[k]));
    for (int k = 0; k < 5; k++) number[k][kind] = of_numbers[k];
    line[kind] = weft_kernel_has_line(kind);
  }
  UNPROTECT(1);
  return out;
}

/* list(sum = nq x m for each bandwidth, effort = a vector with the fields of weft_kernel_effort as its names); `job`
 * gets where the sums go. */
static SEXP result_of(weft_kernel_sum_job *job, size_t bandwidths)
{
  const char *fields[] = { "sum", "effort", "" };
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  job->out = REAL(
      weft_result_put(out, "sum", Rf_allocMatrix(REALSXP, (int) job->task.query.n, (int) (job->task.m * bandwidths))));
  UNPROTECT(1);
  return out;
}

static void store_effort(SEXP out, const weft_kernel_effort *effort)
{
#define EFFORT_NAME(field) #field,
#define EFFORT_VALUE(field) effort->field,
  const char *names[] = { WEFT_KERNEL_EFFORT(EFFORT_NAME) "" };
  const double values[] = { WEFT_KERNEL_EFFORT(EFFORT_VALUE) };
  memcpy(REAL(weft_result_put(out, "effort", Rf_mkNamed(REALSXP, names))), values, sizeof values);
}

/* ---- points ---- */

typedef struct {
  const double *x;
  size_t n, d;
  const double *origin, *scale;
  int full;
  double *out, *lo;
} points_job;
WEFT_WORK(fill_points, points_job,
          weft_points_fill(ctx, job->x, job->n, job->d, job->origin, job->scale, job->full, job->out, job->lo))

/* R: the rows of x as points, a column each. With a scale, also the low parts that the division leaves: list(x, lo). */
SEXP C_weft_kernel_points(SEXP x, SEXP origin, SEXP scale, SEXP full, SEXP control)
{
  const int scaled = scale != R_NilValue;
  SEXP out = PROTECT(WEFT_NAMED_LIST("x", "lo"));
  points_job job = { REAL_RO(x),
                     (size_t) Rf_nrows(x),
                     (size_t) Rf_ncols(x),
                     REAL(origin),
                     scaled ? REAL(scale) : NULL,
                     Rf_asLogical(full),
                     NULL,
                     NULL };
  job.out = REAL(weft_result_put(out, "x", Rf_allocMatrix(REALSXP, Rf_ncols(x), Rf_nrows(x))));
  weft_expect_large_pages(job.out, job.n * job.d * sizeof *job.out);
  if (scaled) job.lo = REAL(weft_result_put(out, "lo", Rf_allocMatrix(REALSXP, Rf_ncols(x), Rf_nrows(x))));
  WEFT_RUN_RETURN(out, control, fill_points, &job);
}

typedef struct {
  const double *x;
  size_t n, d;
  double *range;
  uint64_t *digest, word;
} facts_job;
WEFT_WORK(find_facts, facts_job, weft_points_facts(ctx, job->x, job->n, job->d, job->range, job->digest))

/* range, 3 x columns: least, greatest, how many are not finite. */
SEXP C_weft_kernel_range(SEXP x, SEXP control)
{
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, 3, Rf_ncols(x)));
  facts_job job = { REAL_RO(x), (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), REAL(out), NULL, 0 };
  WEFT_RUN_RETURN(out, control, find_facts, &job);
}

/* list(range, digest): the same, and 8 bytes that differ where the numbers do. */
SEXP C_weft_kernel_facts(SEXP x, SEXP control)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("range", "digest"));
  facts_job job = { REAL_RO(x), (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), NULL, &job.word, 0 };
  job.range = REAL(weft_result_put(out, "range", Rf_allocMatrix(REALSXP, 3, Rf_ncols(x))));
  SEXP digest = weft_result_put(out, "digest", Rf_allocVector(RAWSXP, sizeof job.word));
  weft_glue_run(control, find_facts, &job);
  memcpy(RAW(digest), &job.word, sizeof job.word);
  UNPROTECT(1);
  return out;
}

typedef struct {
  const double *columns, *sign;
  size_t n, parts;
  int32_t *part;
  double *out;
} signs_job;
WEFT_WORK(part_signs, signs_job,
          weft_points_signs(ctx, job->columns, job->n, job->part, job->sign, job->parts, job->out))

/* A row for each column of `weights` that `part` names, from 0, with its numbers of a sign, which they lose. */
SEXP C_weft_kernel_signs(SEXP weights, SEXP part, SEXP sign, SEXP control)
{
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, Rf_length(part), Rf_nrows(weights)));
  signs_job job = { REAL_RO(weights),         REAL_RO(sign), (size_t) Rf_nrows(weights),
                    (size_t) Rf_length(part), INTEGER(part), REAL(out) };
  WEFT_RUN_RETURN(out, control, part_signs, &job);
}

/* ---- direct sums ---- */

typedef weft_kernel_sum_job sum_job;

WEFT_WORK(direct, sum_job, weft_kernel_direct_spread(ctx, backend->kernel, &job->task, job->out, &job->effort))

SEXP C_weft_kernel_direct(SEXP task, SEXP control)
{
  sum_job job = { .task = weft_kernel_task_of(task) };
  SEXP out = PROTECT(result_of(&job, 1));
  weft_glue_run(control, direct, &job);
  store_effort(out, &job.effort);
  UNPROTECT(1);
  return out;
}

WEFT_WORK(single, sum_job,
          weft_kernel_single_spread(ctx, backend->kernel, &job->task, job->own, job->tensor, job->out, job->bound))

/* list(sum, bound): greatest error of each query over the sum of |w|. own: NULL, or what each query leaves out. */
SEXP C_weft_kernel_single(SEXP task, SEXP own, SEXP tensor, SEXP control)
{
  sum_job job = { .task = weft_kernel_task_of(task),
                  .own = own == R_NilValue ? NULL : INTEGER(own),
                  .tensor = Rf_asLogical(tensor) };
  SEXP out = PROTECT(WEFT_NAMED_LIST("sum", "bound"));
  job.out = REAL(weft_result_put(out, "sum", Rf_allocMatrix(REALSXP, (int) job.task.query.n, (int) job.task.m)));
  job.bound = REAL(weft_result_put(out, "bound", Rf_allocVector(REALSXP, (R_xlen_t) job.task.query.n)));
  WEFT_RUN_RETURN(out, control, single, &job);
}

typedef struct {
  weft_kernel_task task;
  const double *h;
  size_t bandwidths;
  double *out, *shift;
} wide_job;

WEFT_WORK(direct_wide, wide_job,
          weft_kernel_direct_wide(ctx, &job->task, job->h, job->bandwidths, job->out, job->shift))

/* list(sum, shift), as weft_kernel_direct_wide() gives them. */
SEXP C_weft_kernel_wide(SEXP task, SEXP h, SEXP control)
{
  wide_job job = { .task = weft_kernel_task_of(task), .h = REAL_RO(h), .bandwidths = (size_t) Rf_xlength(h) };
  const int n = (int) job.task.query.n, bandwidths = (int) job.bandwidths;
  if (job.task.m != 2 || !job.task.weights)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Sums for many bandwidths need two columns of weights.");
  SEXP out = PROTECT(WEFT_NAMED_LIST("sum", "shift"));
  job.out = REAL(weft_result_put(out, "sum", Rf_allocMatrix(REALSXP, n, 2 * bandwidths)));
  job.shift = REAL(weft_result_put(out, "shift", Rf_allocMatrix(REALSXP, n, bandwidths)));
  WEFT_RUN_RETURN(out, control, direct_wide, &job);
}

typedef struct {
  weft_kernel_task task;
  const double *each;
  double *out;
} slopes_job;

WEFT_WORK(slopes, slopes_job, weft_kernel_slopes_spread(ctx, backend->kernel, &job->task, job->each, job->out))

/* nq x (d + 2), as weft_kernel_ops' slopes(). */
SEXP C_weft_kernel_slopes(SEXP task, SEXP each, SEXP control)
{
  slopes_job job = { .task = weft_kernel_task_of(task) };
  const size_t d = job.task.query.d;
  if (TYPEOF(each) != REALSXP || (size_t) Rf_xlength(each) != d || job.task.m != 1 || !job.task.weights)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Slopes need one column of weights and a number for each dimension.");
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) job.task.query.n, (int) d + 2));
  job.each = REAL_RO(each);
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, slopes, &job);
}

typedef struct {
  weft_kernel_task task;
  const double *scale;
  int moved;
  double *out, *slopes, *bounds;
} gaussian_job;

WEFT_WORK(gaussian, gaussian_job,
          weft_kernel_gaussian_spread(ctx, backend->kernel, &job->task, job->scale, job->moved, job->out, job->slopes,
                                      job->bounds))

/* list(sum, slopes, bounds), as weft_kernel_ops' gaussian() gives them; scale: NULL for no slopes. */
SEXP C_weft_kernel_gaussian(SEXP task, SEXP scale, SEXP moved, SEXP control)
{
  gaussian_job job = { .task = weft_kernel_task_of(task), .moved = Rf_asLogical(moved) };
  const int n = (int) job.task.query.n, d = (int) job.task.query.d;
  if (job.task.kind != WEFT_GAUSSIAN || job.task.m != 1 || !job.task.weights || job.task.leave_one_out)
    weft_glue_fail(WEFT_ERR_INTERNAL, "These sums are of the Gaussian kernel, one column of weights, and all points.");
  if (scale != R_NilValue && (TYPEOF(scale) != REALSXP || Rf_xlength(scale) != d))
    weft_glue_fail(WEFT_ERR_INTERNAL, "Slopes need a number for each dimension.");
  SEXP out = PROTECT(WEFT_NAMED_LIST("sum", "slopes", "bounds"));
  job.out = REAL(weft_result_put(out, "sum", Rf_allocVector(REALSXP, n)));
  job.bounds = REAL(weft_result_put(out, "bounds", Rf_allocMatrix(REALSXP, n, 2)));
  if (scale != R_NilValue) {
    job.scale = REAL_RO(scale);
    job.slopes = REAL(weft_result_put(out, "slopes", Rf_allocMatrix(REALSXP, n, d)));
    weft_expect_large_pages(job.slopes, (size_t) n * (size_t) d * sizeof(double));
  }
  WEFT_RUN_RETURN(out, control, gaussian, &job);
}

WEFT_WORK(on_line, sum_job, weft_kernel_line(ctx, &job->task, job->own, job->out, &job->effort))

/* Sums in one dimension, whose kernel must be one that the sheet says has them. part: NULL, or of which column, from 0,
 * each is a part. range: NULL, or the least and greatest of the references. */
SEXP C_weft_kernel_line(SEXP task, SEXP part, SEXP range, SEXP control)
{
  sum_job job = { .task = weft_kernel_task_of(task), .own = part == R_NilValue ? NULL : INTEGER(part) };
  if (range != R_NilValue) {
    if (TYPEOF(range) != REALSXP || XLENGTH(range) < 2) weft_glue_fail(WEFT_ERR_INTERNAL, "A range has two numbers.");
    job.task.range = REAL_RO(range);
  }
  SEXP out = PROTECT(result_of(&job, 1));
  weft_glue_run(control, on_line, &job);
  store_effort(out, &job.effort);
  UNPROTECT(1);
  return out;
}

typedef struct {
  sum_job sum;
  double reach;
  int done;
} grid_job;
WEFT_WORK(over_grid, grid_job,
          weft_kernel_grid_spread(ctx, backend->kernel, &job->sum.task, job->reach, &job->done, job->sum.out,
                                  &job->sum.effort))

/* NULL where no grid suits. */
SEXP C_weft_kernel_grid(SEXP task, SEXP reach, SEXP control)
{
  grid_job job = { .sum = { .task = weft_kernel_task_of(task) }, .reach = Rf_asReal(reach), .done = 0 };
  SEXP out = PROTECT(result_of(&job.sum, 1));
  weft_glue_run(control, over_grid, &job);
  store_effort(out, &job.sum.effort);
  UNPROTECT(1);
  return job.done ? out : R_NilValue;
}

/* ---- trees ---- */

WEFT_WORK(grow, weft_tree_build, weft_tree_grow(ctx, job))

static const char *const tree_types[] = { "kd", "ball", "vp", "rp" }; /* weft_tree_type */

/* points: list(x, lo); plan: list(type, leaf_size, key). The result is the tree as R keeps it and weft_kernel_tree_of()
 * reads it. */
SEXP C_weft_tree_grow(SEXP points, SEXP plan, SEXP control)
{
  const weft_points p = weft_kernel_points_of(points);
  weft_record record = weft_record_open(plan, "plan");
  weft_tree_build build = { .type = (weft_tree_type) weft_record_kind(&record, "type", tree_types, 4),
                            .n = p.n,
                            .d = p.d,
                            .leaf_size = weft_record_size(&record, "leaf_size"),
                            .key = weft_record_key(&record, "key") };
  weft_record_close(&record);
  build.nodes = weft_tree_nodes(p.n, build.leaf_size);
  const R_xlen_t nodes = (R_xlen_t) build.nodes;
  SEXP out = PROTECT(WEFT_NAMED_LIST("x", "lo", "order", "first", "count", "child", "box", "centre", "leaf_size"));
  build.x = REAL(weft_result_put(out, "x", Rf_duplicate(weft_glue_element(points, "x"))));
  if (p.lo) build.lo = REAL(weft_result_put(out, "lo", Rf_duplicate(weft_glue_element(points, "lo"))));
  build.order = INTEGER(weft_result_put(out, "order", Rf_allocVector(INTSXP, (R_xlen_t) p.n)));
  build.first = REAL(weft_result_put(out, "first", Rf_allocVector(REALSXP, nodes)));
  build.count = REAL(weft_result_put(out, "count", Rf_allocVector(REALSXP, nodes)));
  build.child = INTEGER(weft_result_put(out, "child", Rf_allocVector(INTSXP, nodes)));
  build.box = REAL(weft_result_put(out, "box", Rf_allocMatrix(REALSXP, 2 * (int) p.d, (int) nodes)));
  if (build.type != WEFT_TREE_KD)
    build.centre = REAL(weft_result_put(out, "centre", Rf_allocMatrix(REALSXP, (int) p.d + 1, (int) nodes)));
  weft_result_put(out, "leaf_size", Rf_ScalarInteger((int) build.leaf_size));
  WEFT_RUN_RETURN(out, control, grow, &build);
}

static int is_matrix(SEXP x, double rows, double columns)
{
  return TYPEOF(x) == REALSXP && Rf_isMatrix(x) && (double) Rf_nrows(x) == rows && (double) Rf_ncols(x) == columns;
}

static int is_vector(SEXP x, SEXPTYPE type, double length)
{
  return TYPEOF(x) == (int) type && (double) XLENGTH(x) == length;
}

/* The first array that has another type or size than those of a tree of n points in d dimensions, or NULL. */
static const char *misshapen(SEXP tree, size_t n, size_t d, int with_centre, int with_lo)
{
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

typedef struct {
  weft_tree_build tree;
  const double *columns, *origin, *scale;
  int full;
  const char *wrong;
} check_job;

static weft_status check_tree(weft_ctx *ctx, const weft_backend *backend, void *data)
{
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

/* expected: list(type, n, d, columns, origin, scale, full). NULL, or the name of what is wrong with a tree of n points
 * in d dimensions that C_weft_tree_grow() is said to have made; "points" when they are not those of `columns`, a matrix
 * or NULL, rescaled as C_weft_kernel_points() does. */
SEXP C_weft_tree_check(SEXP tree, SEXP expected, SEXP control)
{
  weft_record record = weft_record_open(expected, "expected");
  const weft_tree_type type = (weft_tree_type) weft_record_kind(&record, "type", tree_types, 4);
  const size_t n = weft_record_size(&record, "n"), d = weft_record_size(&record, "d");
  check_job job = { .columns = weft_record_doubles_or_null(&record, "columns", (double) n * (double) d),
                    .origin = weft_record_doubles(&record, "origin", (double) d),
                    .scale = weft_record_doubles_or_null(&record, "scale", WEFT_ANY_LENGTH),
                    .full = weft_record_flag(&record, "full") };
  weft_record_close(&record);
  const int with_centre = type != WEFT_TREE_KD, scaled = job.scale != NULL;
  job.wrong = TYPEOF(tree) == VECSXP ? misshapen(tree, n, d, with_centre, scaled) : "tree";
  if (!job.wrong) {
    const size_t leaf = (size_t) INTEGER(weft_glue_element(tree, "leaf_size"))[0];
    job.tree = (weft_tree_build){ .type = type,
                                  .n = n,
                                  .d = d,
                                  .leaf_size = leaf,
                                  .nodes = weft_tree_nodes(n, leaf),
                                  .x = REAL(weft_glue_element(tree, "x")),
                                  .lo = scaled ? REAL(weft_glue_element(tree, "lo")) : NULL,
                                  .order = INTEGER(weft_glue_element(tree, "order")),
                                  .first = REAL(weft_glue_element(tree, "first")),
                                  .count = REAL(weft_glue_element(tree, "count")),
                                  .box = REAL(weft_glue_element(tree, "box")),
                                  .centre = with_centre ? REAL(weft_glue_element(tree, "centre")) : NULL,
                                  .child = INTEGER(weft_glue_element(tree, "child")) };
    weft_glue_run(control, check_tree, &job);
  }
  return job.wrong ? Rf_mkString(job.wrong) : R_NilValue;
}

typedef struct {
  sum_job sum;
  const double *h;
  size_t bandwidths;
} walk_job;
WEFT_WORK(walk_trees, walk_job,
          weft_kernel_walk_many(ctx, &job->sum.task, job->h, job->bandwidths, &job->sum.query, &job->sum.reference,
                                job->sum.out, &job->sum.effort))

/* The trees' points are the task's, whose `h` may be many bandwidths, narrowest first; sums come in the query tree's
 * order, one bandwidth's after another's. walk: list(series, confidence, key, trial, budget, costs), as
 * weft_kernel_task has them. */
SEXP C_weft_kernel_walk(SEXP task, SEXP query, SEXP reference, SEXP walk, SEXP control)
{
  static const char *const series[] = { "never", "if worth", "always" }; /* weft_series_use */
  SEXP h = weft_glue_element(task, "h");
  walk_job job = { .sum = { .task = weft_kernel_task_of(task),
                            .query = weft_kernel_tree_of(query),
                            .reference = weft_kernel_tree_of(reference) },
                   .h = REAL(h),
                   .bandwidths = (size_t) Rf_xlength(h) };
  weft_record record = weft_record_open(walk, "walk");
  job.sum.task.series = weft_record_kind(&record, "series", series, 3);
  job.sum.task.confidence = weft_record_number(&record, "confidence");
  job.sum.task.key = weft_record_key(&record, "key");
  job.sum.task.trial = weft_record_size(&record, "trial");
  job.sum.task.budget = weft_record_number(&record, "budget");
#define COUNT_COST(name) +1
  job.sum.task.costs = weft_record_doubles(&record, "costs", 0 WEFT_WALK_COSTS(COUNT_COST));
#undef COUNT_COST
  weft_record_close(&record);
  SEXP out = PROTECT(result_of(&job.sum, job.bandwidths));
  weft_glue_run(control, walk_trees, &job);
  store_effort(out, &job.sum.effort);
  UNPROTECT(1);
  return out;
}

typedef struct {
  weft_radial radial;
  const double *h;
  size_t bandwidths;
  double rel_error;
  weft_tree query, reference;
  double *out;
} pairs_job;

static weft_status sum_pairs(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  pairs_job *j = data;
  weft_status st = WEFT_OK;
  (void) backend;
  for (size_t b = 0; b < j->bandwidths; b++)
    WEFT_TRY(weft_kernel_pairs(ctx, &j->radial, j->h[b], j->rel_error, &j->query, &j->reference, j->out + b));
done:
  return st;
}

/* radial: list(coefficients = 4 x pieces, per_unit, bend). One sum over all pairs for each of `h`. */
SEXP C_weft_kernel_pairs(SEXP radial, SEXP h, SEXP rel_error, SEXP query, SEXP reference, SEXP control)
{
  weft_record record = weft_record_open(radial, "radial");
  const size_t pieces = (size_t) Rf_ncols(weft_record_field(&record, "coefficients"));
  pairs_job job = { .radial = { .pieces = pieces,
                                .per_unit = weft_record_number(&record, "per_unit"),
                                .coefficients = weft_record_doubles(&record, "coefficients", 4.0 * (double) pieces),
                                .bend = weft_record_doubles(&record, "bend", (double) pieces + 1) },
                    .h = REAL(h),
                    .bandwidths = (size_t) Rf_xlength(h),
                    .rel_error = Rf_asReal(rel_error),
                    .query = weft_kernel_tree_of(query),
                    .reference = weft_kernel_tree_of(reference) };
  weft_record_close(&record);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, Rf_xlength(h)));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, sum_pairs, &job);
}
