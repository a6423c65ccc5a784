/* .Call entry points of kernel sums over ranks; R/kernel-ranks.R says how they come together. */
#include "kernel/r/kernel.h"
#include "core/together/ranks.h"
#include "core/r/record.h"
#include "kernel/cpu/ranks.h"
#include "kernel/cpu/tree/walk_moments.h"

typedef struct {
  int rank, size;
  const double *key;
  size_t n;
  double share;
  int *left;
} split_job;

static weft_status split(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  split_job *j = data;
  (void) backend;
  WEFT_TRY(weft_ranks_ready(ctx));
  WEFT_TRY(weft_ranks_split(ctx, weft_ranks_table()->messages, j->rank, j->size, j->key, j->n, j->share, j->left));
done:
  return st;
}

/* group: list(rank, size). Which of this rank's points go left. */
SEXP C_weft_ranks_split(SEXP control, SEXP group, SEXP key, SEXP share)
{
  weft_record record = weft_record_open(group, "group");
  split_job job = { .rank = weft_record_integer(&record, "rank"),
                    .size = weft_record_integer(&record, "size"),
                    .key = REAL(key),
                    .n = (size_t) Rf_xlength(key),
                    .share = Rf_asReal(share) };
  weft_record_close(&record);
  SEXP out = PROTECT(Rf_allocVector(LGLSXP, Rf_xlength(key)));
  job.left = LOGICAL(out);
  WEFT_RUN_RETURN(out, control, split, &job);
}

typedef struct {
  weft_reach reach;
  weft_tree tree;
  const double *boxes, *allowed;
  size_t count;
  double *least;
  int together, *one, *keep;
} reach_job;

/* reach: list(tree, weights, kernel, h, far) */
static reach_job reach_of(SEXP list, SEXP boxes)
{
  weft_record record = weft_record_open(list, "reach");
  SEXP weights = weft_record_field(&record, "weights");
  const reach_job j = { .tree = weft_kernel_tree_of(weft_record_field(&record, "tree")),
                        .reach = { .weights = REAL(weights),
                                   .m = (size_t) Rf_nrows(weights),
                                   .kind = weft_kernel_kind_of(weft_record_field(&record, "kernel")),
                                   .h = weft_record_number(&record, "h"),
                                   .far = weft_record_number(&record, "far") },
                        .boxes = REAL(boxes),
                        .count = (size_t) Rf_ncols(boxes) };
  weft_record_close(&record);
  return j;
}

static weft_status lower(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  reach_job *j = data;
  (void) backend;
  j->reach.tree = &j->tree;
  return weft_ranks_lower(ctx, &j->reach, j->boxes, j->count, j->least);
}

/* m x boxes */
SEXP C_weft_ranks_lower(SEXP control, SEXP reach, SEXP boxes)
{
  reach_job job = reach_of(reach, boxes);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) job.reach.m, (int) job.count));
  job.least = REAL(out);
  WEFT_RUN_RETURN(out, control, lower, &job);
}

static weft_status needed(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  reach_job *j = data;
  (void) backend;
  if (j->count > WEFT_RANK_BOXES)
    return weft_fail(ctx, WEFT_ERR_INTERNAL, "%zu boxes of a rank are more than %d", j->count, WEFT_RANK_BOXES);
  j->reach.tree = &j->tree;
  return weft_ranks_needed(ctx, &j->reach, j->boxes, j->allowed, j->count, j->together, j->one, j->keep);
}

/* list(one, keep): nodes of which one point is needed for all, points that are needed; both in the tree's order. */
SEXP C_weft_ranks_needed(SEXP control, SEXP reach, SEXP boxes, SEXP allowed, SEXP together)
{
  reach_job job = reach_of(reach, boxes);
  SEXP out = PROTECT(WEFT_NAMED_LIST("one", "keep"));
  job.allowed = REAL(allowed), job.together = Rf_asLogical(together);
  job.one = LOGICAL(weft_result_put(out, "one", Rf_allocVector(LGLSXP, (R_xlen_t) job.tree.nodes)));
  job.keep = LOGICAL(weft_result_put(out, "keep", Rf_allocVector(LGLSXP, (R_xlen_t) job.tree.points.n)));
  WEFT_RUN_RETURN(out, control, needed, &job);
}

WEFT_WORK(nearest, weft_kernel_sum_job, weft_ranks_nearest(ctx, &job->task, &job->query, &job->reference, job->out))

/* queries x m, in the query tree's order */
SEXP C_weft_ranks_nearest(SEXP control, SEXP task, SEXP query, SEXP reference)
{
  weft_kernel_sum_job job = { .task = weft_kernel_task_of(task),
                              .query = weft_kernel_tree_of(query),
                              .reference = weft_kernel_tree_of(reference) };
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) job.task.query.n, (int) job.task.m));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, nearest, &job);
}

WEFT_WORK(moments, weft_kernel_sum_job, weft_kernel_moments(ctx, &job->task, &job->reference, job->out))

SEXP C_weft_kernel_moments(SEXP control, SEXP task, SEXP reference)
{
  weft_kernel_sum_job job = { .task = weft_kernel_task_of(task), .reference = weft_kernel_tree_of(reference) };
  SEXP out =
      PROTECT(Rf_allocMatrix(REALSXP, (int) (job.task.m * (job.task.reference.d + 2)), (int) job.reference.nodes));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, moments, &job);
}
