/* .Call entry points of the Bayesian-network room. A table of scores is an R list: start (p + 1), score in nats (whole
 * multiples of 2^-bits), parents (an integer matrix, a column per set, node numbers from 1 and zeros), bits. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "core/r/record.h"
#include "bn/bn.h"
#include "bn/cpu/search/near_table.h"
#include "bn/cpu/search/search.h"
#include "bn/cpu/search/best_places.h"

#define NAME(kind, name, ...) name,
static const char *const score_names[] = { WEFT_BN_SCORE_KINDS(NAME) };
#undef NAME

/* What bn_problem() in R/bn-data.R makes. */
static weft_bn_problem problem_of(SEXP list)
{
  weft_record given = weft_record_open(list, "problem");
  const size_t n = weft_record_size(&given, "n"), p = weft_record_size(&given, "p");
  const double nodes = (double) p, values = (double) n * nodes, edges = nodes * nodes;
  const SEXP groups = weft_record_field(&given, "scatter_rows");
  const weft_bn_score score = (weft_bn_score) weft_record_kind(&given, "score", score_names, WEFT_BN_SCORES);
  const int gauss = weft_bn_kind(score)->data == WEFT_BN_GAUSS;
  const weft_bn_problem problem = { .n = n,
                                    .p = p,
                                    .completions = weft_record_number(&given, "completions"),
                                    .score = score,
                                    .ess = weft_record_number(&given, "ess"),
                                    .codes = gauss ? NULL : weft_record_integers(&given, "codes", values),
                                    .levels = gauss ? NULL : weft_record_integers(&given, "levels", nodes),
                                    .number = weft_record_integers_or_null(&given, "number", nodes),
                                    .numbers = weft_record_doubles_or_null(&given, "numbers", values),
                                    .log_unit = weft_record_doubles_or_null(&given, "log_unit", nodes),
                                    .set = weft_record_integers_or_null(&given, "set", values),
                                    .scatter = weft_record_doubles_or_null(&given, "scatter",
                                                                           (double) Rf_xlength(groups) * edges),
                                    .scatter_rows = weft_record_doubles(&given, "scatter_rows", WEFT_ANY_LENGTH),
                                    .group = weft_record_integers_or_null(&given, "group", nodes),
                                    .groups = (size_t) Rf_xlength(groups),
                                    .alpha_mu = weft_record_number(&given, "alpha_mu"),
                                    .alpha_w = weft_record_number(&given, "alpha_w"),
                                    .edge_prior = weft_record_doubles_or_null(&given, "edge_prior", edges),
                                    .allowed = weft_record_integers(&given, "allowed", edges),
                                    .required = weft_record_integers_or_null(&given, "required", edges),
                                    .outside = weft_record_integers_or_null(&given, "outside", edges),
                                    .max_parents = weft_record_integers(&given, "max_parents", nodes),
                                    .slack = weft_record_number(&given, "slack") };
  if (gauss) {
    weft_record_field(&given, "codes");
    weft_record_field(&given, "levels");
    if (!problem.scatter || !problem.group)
      weft_glue_fail(WEFT_ERR_INTERNAL, "A Gaussian score without scatter matrices.");
  }
  if (weft_bn_kind(score)->data == WEFT_BN_MIXED && (!problem.number || !problem.numbers || !problem.log_unit))
    weft_glue_fail(WEFT_ERR_INTERNAL, "A score of mixed columns without numbers.");
  weft_record_close(&given);
  return problem;
}

/* What each score can do: score_kinds.h, one entry per score. */
SEXP C_weft_bn_score_kinds(void)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("name", "gauss", "joint", "device"));
  SEXP names = weft_result_put(out, "name", Rf_allocVector(STRSXP, WEFT_BN_SCORES));
  int *gauss = LOGICAL(weft_result_put(out, "gauss", Rf_allocVector(LGLSXP, WEFT_BN_SCORES)));
  int *joint = LOGICAL(weft_result_put(out, "joint", Rf_allocVector(LGLSXP, WEFT_BN_SCORES)));
  int *device = LOGICAL(weft_result_put(out, "device", Rf_allocVector(LGLSXP, WEFT_BN_SCORES)));
  for (int k = 0; k < WEFT_BN_SCORES; k++) {
    const weft_bn_score_kind *kind = weft_bn_kind((weft_bn_score) k);
    SET_STRING_ELT(names, k, Rf_mkChar(kind->name));
    gauss[k] = kind->data == WEFT_BN_GAUSS;
    joint[k] = kind->joint;
    device[k] = kind->device;
  }
  UNPROTECT(1);
  return out;
}

/* A matrix of R's has 32-bit dimensions: R/bn-check.R refuses more, and this makes sure that nothing is written past
 * the end. */
static int dimension(size_t count)
{
  if (count > INT_MAX) weft_glue_fail(WEFT_ERR_INTERNAL, "A matrix with a side of %.0f.", (double) count);
  return (int) count;
}

/* ---- score tables ---- */

typedef struct {
  weft_bn_problem problem;
  weft_bn_search search; /* where a search chooses the sets */
  weft_arena *keep;
  weft_bn_table table;
  int32_t *order;
  double *information, scored;
} scores_job;

static weft_status scores(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  scores_job *job = data;
  job->problem.threads = (size_t) ctx->threads;
  return backend->bn->scores(ctx, &job->problem, job->keep, &job->table);
}

static size_t widest_set(const weft_bn_table *table)
{
  size_t most = 0;
  for (size_t k = 0; k < (size_t) table->start[table->p]; k++) {
    size_t m = 0;
    for (size_t w = 0; w < table->words; w++) m += (size_t) __builtin_popcountll(table->mask[k * table->words + w]);
    if (m > most) most = m;
  }
  return most;
}

/* Fills in start, score, parents and bits. */
static void put_table(SEXP out, const weft_bn_table *table)
{
  const size_t total = (size_t) table->start[table->p],
               width = widest_set(table); /* at most INT32_MAX: weft_bn_table_make() */
  double *start = REAL(weft_result_put(out, "start", Rf_allocVector(REALSXP, (R_xlen_t) table->p + 1)));
  double *score = REAL(weft_result_put(out, "score", Rf_allocVector(REALSXP, (R_xlen_t) total)));
  int *parents = INTEGER(weft_result_put(out, "parents", Rf_allocMatrix(INTSXP, dimension(width), dimension(total))));
  weft_result_put(out, "bits", Rf_ScalarInteger(table->bits));
  for (size_t i = 0; i <= table->p; i++) start[i] = (double) table->start[i];
  memset(parents, 0, width * total * sizeof *parents);
  for (size_t k = 0; k < total; k++) {
    size_t m = 0;
    score[k] = ldexp((double) table->score[k], -table->bits);
    for (size_t w = 0; w < table->words; w++)
      for (uint64_t word = table->mask[k * table->words + w]; word; word &= word - 1)
        parents[k * width + m++] = (int) (64 * w) + __builtin_ctzll(word) + 1;
  }
}

SEXP C_weft_bn_scores(SEXP problem, SEXP control)
{
  scores_job job = { .problem = problem_of(problem) };
  SEXP holder = PROTECT(weft_glue_arena(&job.keep));
  weft_glue_run(control, scores, &job);
  SEXP out = PROTECT(WEFT_NAMED_LIST("start", "score", "parents", "bits"));
  put_table(out, &job.table);
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

static weft_status near_table(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  scores_job *job = data;
  (void) backend;
  job->problem.threads = (size_t) ctx->threads;
  job->search.problem = &job->problem;
  return weft_bn_near_table(ctx, &job->search, job->keep, &job->table, job->order, &job->scored);
}

/* plan: list(width, key). The table; `order`: a column per start; how many sets were scored. */
SEXP C_weft_bn_near_table(SEXP problem, SEXP plan, SEXP control)
{
  weft_record given = weft_record_open(plan, "plan");
  scores_job job = { .problem = problem_of(problem),
                     .search = { .width = weft_record_size(&given, "width"), .key = weft_record_key(&given, "key") } };
  weft_record_close(&given);
  SEXP holder = PROTECT(weft_glue_arena(&job.keep));
  SEXP out = PROTECT(WEFT_NAMED_LIST("start", "score", "parents", "bits", "order", "scored"));
  job.order =
      INTEGER(weft_result_put(out, "order", Rf_allocMatrix(INTSXP, dimension(job.problem.p), WEFT_BN_NEAR_STARTS)));
  weft_glue_run(control, near_table, &job);
  put_table(out, &job.table);
  weft_result_put(out, "scored", Rf_ScalarReal(job.scored));
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

static weft_status screen(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  scores_job *job = data;
  (void) backend;
  job->problem.threads = (size_t) ctx->threads;
  return weft_bn_screen(ctx, &job->problem, job->information);
}

SEXP C_weft_bn_screen(SEXP problem, SEXP control)
{
  scores_job job = { .problem = problem_of(problem) };
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, dimension(job.problem.p), dimension(job.problem.p)));
  job.information = REAL(out);
  WEFT_RUN_RETURN(out, control, screen, &job);
}

/* ---- the search of many nodes ---- */

typedef struct {
  weft_bn_problem problem;
  weft_bn_search search;
  weft_bn_found out;
} search_job;

static weft_status search_orders(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  search_job *job = data;
  (void) backend;
  job->problem.threads = (size_t) ctx->threads;
  job->search.problem = &job->problem;
  return weft_bn_search_run(ctx, &job->search, &job->out);
}

/* plan: list(starts, kicks, listed, width, key). */
SEXP C_weft_bn_search(SEXP problem, SEXP plan, SEXP control)
{
  weft_record given = weft_record_open(plan, "plan");
  search_job job = { .problem = problem_of(problem),
                     .search = { .starts = weft_record_size(&given, "starts"),
                                 .kicks = weft_record_size(&given, "kicks"),
                                 .listed = weft_record_number(&given, "listed"),
                                 .width = weft_record_size(&given, "width"),
                                 .key = weft_record_key(&given, "key") } };
  const int p = dimension(job.problem.p);
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("order", "dag", "node_score", "start_score", "counts"));
  job.out.order = INTEGER(weft_result_put(out, "order", Rf_allocVector(INTSXP, p)));
  job.out.dag = INTEGER(weft_result_put(out, "dag", Rf_allocMatrix(INTSXP, p, p)));
  job.out.node_score = REAL(weft_result_put(out, "node_score", Rf_allocVector(REALSXP, p)));
  job.out.start_score =
      REAL(weft_result_put(out, "start_score", Rf_allocVector(REALSXP, dimension(job.search.starts))));
  double *counts = REAL(weft_result_put(out, "counts", Rf_allocVector(REALSXP, 4)));
  weft_glue_run(control, search_orders, &job);
  counts[0] = job.out.moves;
  counts[1] = job.out.scored;
  counts[2] = job.out.candidates;
  counts[3] = job.out.rounds;
  UNPROTECT(1);
  return out;
}

/* ---- tables back from R ---- */

#define MAX_WORDS 64 /* of a mask: 4,096 nodes */

typedef struct {
  const double *start, *score;
  const int *parents;
  size_t p, width;
  int bits;
} table_view;

/* What bn_native_table() in R/bn-scores.R takes from a table. */
static table_view view_of(SEXP table)
{
  weft_record given = weft_record_open(table, "table");
  const SEXP parents = weft_record_field(&given, "parents"), start = weft_record_field(&given, "start");
  const table_view view = { weft_record_doubles(&given, "start", WEFT_ANY_LENGTH),
                            weft_record_doubles(&given, "score", WEFT_ANY_LENGTH),
                            weft_record_integers(&given, "parents", WEFT_ANY_LENGTH),
                            (size_t) Rf_xlength(start) - 1,
                            (size_t) Rf_nrows(parents),
                            weft_record_integer(&given, "bits") };
  weft_record_close(&given);
  return view;
}

static void fill_masks(const int *members, size_t width, size_t count, size_t words, uint64_t *mask)
{
  memset(mask, 0, count * words * sizeof *mask);
  for (size_t k = 0; k < count; k++)
    for (size_t m = 0; m < width && members[k * width + m]; m++) {
      const size_t v = (size_t) members[k * width + m] - 1;
      mask[k * words + v / 64] |= UINT64_C(1) << (v % 64);
    }
}

/* Turns the vectors of R's table into score units and masks, in `mem`. A table from a file has been checked before
 * (C_weft_bn_wrong()). */
static weft_status open_table(weft_arena *mem, const table_view *view, weft_bn_table *out)
{
  weft_status st = WEFT_OK;
  const size_t total = (size_t) view->start[view->p];
  out->p = view->p;
  out->words = (view->p + 63) / 64;
  out->bits = view->bits;
  WEFT_TAKE(out->start, mem, view->p + 1);
  WEFT_TAKE(out->score, mem, total);
  WEFT_TAKE(out->mask, mem, total * out->words);
  for (size_t i = 0; i <= view->p; i++) out->start[i] = (int64_t) view->start[i];
  for (size_t k = 0; k < total; k++) out->score[k] = (int64_t) ldexp(view->score[k], view->bits);
  fill_masks(view->parents, view->width, total, out->words, out->mask);
done:
  return st;
}

/* Work on an open table, with an arena for what it takes. */
typedef weft_status (*table_work)(weft_ctx *ctx, const weft_backend *backend, weft_arena *mem,
                                  const weft_bn_table *table, void *job);
typedef struct {
  const table_view *view;
  table_work work;
  void *job;
} on_table;

static weft_status open_and_work(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const on_table *run = data;
  weft_bn_table table;
  WEFT_TRY(open_table(&mem, run->view, &table));
  WEFT_TRY(run->work(ctx, backend, &mem, &table, run->job));
done:
  weft_arena_end(&mem);
  return st;
}

static void run_on_table(SEXP control, const table_view *view, table_work work, void *job)
{
  on_table run = { view, work, job };
  weft_glue_run(control, open_and_work, &run);
}

/* What may be wrong with a table from a file whose vectors have the right types and lengths: what algorithms rely
 * on. */
typedef struct {
  table_view view;
  size_t node;
  const char *what;
} wrong_job;

/* Set k of node z into `mask`; 0 when its members are not different nodes besides z, followed by zeros. */
static int read_members(const table_view *view, size_t child, size_t k, uint64_t *mask, size_t words)
{
  const int *member = view->parents + k * view->width;
  size_t m = 0;
  memset(mask, 0, words * sizeof *mask);
  for (; m < view->width && member[m]; m++) {
    const size_t node = (size_t) member[m] - 1;
    if (member[m] < 0 || node >= view->p || node == child || mask[node / 64] >> (node % 64) & 1) return 0;
    mask[node / 64] |= UINT64_C(1) << (node % 64);
  }
  while (m < view->width && !member[m]) m++;
  return m == view->width;
}

/* NULL, or what is wrong with node z. *largest gets its largest score in units, regardless of sign. Whatever the order,
 * a set must fit: the parents that all sets share must be a set themselves. */
static const char *wrong_with(const table_view *view, size_t child, double *largest)
{
  const size_t words = (view->p + 63) / 64, first = (size_t) view->start[child], last = (size_t) view->start[child + 1];
  uint64_t shared[MAX_WORDS], mask[MAX_WORDS];
  size_t least = SIZE_MAX, common = 0;
  memset(shared, 0xff, sizeof shared);
  for (size_t k = first; k < last; k++) {
    const double units = ldexp(view->score[k], view->bits);
    size_t size = 0;
    if (!isfinite(units) || units != floor(units)) return "a score that is not a multiple of 2^-`bits`";
    if (k > first && view->score[k] > view->score[k - 1]) return "sets that are not ordered by score";
    if (!read_members(view, child, k, mask, words))
      return "a parent set that does not consist of different nodes followed by zeros";
    for (size_t w = 0; w < words; w++) {
      size += (size_t) __builtin_popcountll(mask[w]);
      shared[w] &= mask[w];
    }
    if (size < least) least = size;
    *largest = fmax(*largest, fabs(units));
  }
  for (size_t w = 0; w < words; w++) common += (size_t) __builtin_popcountll(shared[w]);
  return least == common ? NULL : "no set that is possible in every order";
}

/* Looks for the first node whose sets are wrong; job->what stays NULL when there is none. Scores must be small
 * enough that p of them add up in 64 bits. */
static weft_status find_wrong(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  wrong_job *job = data;
  double sum = 0; /* of the largest scores: what a network can be worth */
  (void) backend;
  for (job->node = 0; job->node < job->view.p; job->node++) {
    double largest = 0;
    WEFT_TRY(weft_poll(ctx, (double) job->node, (double) job->view.p));
    if ((job->what = wrong_with(&job->view, job->node, &largest))) goto done;
    sum += largest;
    if (largest < -(double) WEFT_BN_NEVER && sum < 0x1p62) continue;
    job->what = "scores beyond what is counted in";
    goto done;
  }
done:
  return st;
}

/* NULL, or list(node, what): the node's number, from 1, and the words. */
SEXP C_weft_bn_wrong(SEXP table, SEXP control)
{
  wrong_job job = { view_of(table), 0, NULL };
  weft_glue_run(control, find_wrong, &job);
  if (!job.what) return R_NilValue;
  SEXP out = PROTECT(WEFT_NAMED_LIST("node", "what"));
  weft_result_put(out, "node", Rf_ScalarInteger((int) job.node + 1));
  weft_result_put(out, "what", Rf_mkString(job.what));
  UNPROTECT(1);
  return out;
}

/* ---- chains ---- */

typedef struct {
  table_view view;
  weft_bn_run run;
  weft_bn_chains out;
  int32_t *start;
} chain_job;

static weft_status chain(weft_ctx *ctx, const weft_backend *backend, weft_arena *mem, const weft_bn_table *table,
                         void *data)
{
  chain_job *job = data;
  (void) mem;
  return weft_bn_chain_spread(ctx, backend->bn->chain, table, &job->run, &job->out);
}

/* What bn_native_run() in R/bn.R makes, but for the orders to start from. */
static weft_bn_run run_of(weft_record *given)
{
  const SEXP beta = weft_record_field(given, "beta");
  return (weft_bn_run){ .ladders = weft_record_size(given, "ladders"),
                        .temperatures = (size_t) Rf_xlength(beta),
                        .iterations = weft_record_size(given, "iterations"),
                        .thin = weft_record_size(given, "thin"),
                        .burn_in = weft_record_size(given, "burn_in"),
                        .swap_every = weft_record_size(given, "swap_every"),
                        .best = weft_record_size(given, "best"),
                        .first = (uint64_t) weft_record_size(given, "first"),
                        .ladder0 = weft_record_size(given, "ladder0"),
                        .key = weft_record_key(given, "key"),
                        .beta = weft_record_doubles(given, "beta", WEFT_ANY_LENGTH),
                        .sum = weft_record_flag(given, "sum"),
                        .layers = weft_record_flag(given, "layers"),
                        .graphs = weft_record_flag(given, "graphs") };
}

/* table: a list of scores; run: what bn_native_run() in R/bn.R makes. Returns where the chains ended, their traces,
 * counts of accepted moves and swaps, drawn graphs and the best ones; `best_score` is NA beyond those found. */
SEXP C_weft_bn_chain(SEXP table, SEXP run, SEXP control)
{
  weft_record given = weft_record_open(run, "run");
  chain_job job = { .view = view_of(table), .run = run_of(&given) };
  const size_t p = job.view.p, ladders = job.run.ladders, replicas = ladders * job.run.temperatures;
  const size_t saved = job.run.iterations / job.run.thin, best = job.run.best;
  const size_t samples = job.run.sum ? saved - job.run.burn_in / job.run.thin : 0;
  const SEXP order = weft_record_field(&given, "order");
  weft_record_integers(&given, "order", (double) p * (double) replicas);
  const SEXP layer = weft_record_field(&given, "layer");
  if (job.run.layers) weft_record_integers(&given, "layer", (double) p * (double) replicas);
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("order", "layer", "trace", "accepted", "swapped", "sampled", "sample_score",
                                     "best_sets", "best_score"));
  job.out = (weft_bn_chains){
    .order = INTEGER(weft_result_put(out, "order", Rf_duplicate(order))),
    .layer = job.run.layers ? INTEGER(weft_result_put(out, "layer", Rf_duplicate(layer))) : NULL,
    .trace = REAL(weft_result_put(out, "trace", Rf_allocMatrix(REALSXP, dimension(saved), dimension(ladders)))),
    .accepted = REAL(weft_result_put(out, "accepted",
                                     Rf_allocMatrix(REALSXP, (int) weft_bn_moves(&job.run) + 1, dimension(replicas)))),
    .swapped = REAL(weft_result_put(out, "swapped", Rf_allocVector(REALSXP, (R_xlen_t) (2 * (replicas - ladders))))),
    .sampled = INTEGER(weft_result_put(out, "sampled", Rf_allocVector(INTSXP, (R_xlen_t) (p * samples * ladders)))),
    .samples = samples,
    .sample_score =
        REAL(weft_result_put(out, "sample_score", Rf_allocMatrix(REALSXP, dimension(samples), dimension(ladders)))),
    .best_sets = INTEGER(weft_result_put(out, "best_sets", Rf_allocMatrix(INTSXP, dimension(p), dimension(best)))),
    .best_score = REAL(weft_result_put(out, "best_score", Rf_allocVector(REALSXP, (R_xlen_t) best)))
  };
  run_on_table(control, &job.view, chain, &job);
  for (size_t k = job.out.found; k < job.run.best; k++) job.out.best_score[k] = NA_REAL;
  UNPROTECT(1);
  return out;
}

typedef struct {
  table_view view;
  weft_bn_settle settle;
} settle_job;

static weft_status settle(weft_ctx *ctx, const weft_backend *backend, weft_arena *mem, const weft_bn_table *table,
                          void *data)
{
  settle_job *job = data;
  (void) backend, (void) mem;
  return weft_bn_settle_run(ctx, table, &job->settle);
}

/* plan: list(order, a column per start, all possible; kicks, best, key, first). */
SEXP C_weft_bn_settle(SEXP table, SEXP plan, SEXP control)
{
  weft_record given = weft_record_open(plan, "plan");
  const SEXP order = weft_record_field(&given, "order");
  settle_job job = { view_of(table),
                     { .starts = (size_t) Rf_ncols(order),
                       .kicks = weft_record_size(&given, "kicks"),
                       .best = weft_record_size(&given, "best"),
                       .key = weft_record_key(&given, "key"),
                       .first = (uint64_t) weft_record_size(&given, "first") } };
  const size_t p = job.view.p, best = job.settle.best;
  weft_record_integers(&given, "order", (double) p * (double) job.settle.starts);
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("order", "end", "best_sets", "best_score"));
  job.settle.order = INTEGER(weft_result_put(out, "order", Rf_duplicate(order)));
  job.settle.end = REAL(weft_result_put(out, "end", Rf_allocVector(REALSXP, dimension(job.settle.starts))));
  job.settle.best_sets =
      INTEGER(weft_result_put(out, "best_sets", Rf_allocMatrix(INTSXP, dimension(p), dimension(best))));
  job.settle.best_score = REAL(weft_result_put(out, "best_score", Rf_allocVector(REALSXP, (R_xlen_t) best)));
  run_on_table(control, &job.view, settle, &job);
  for (size_t k = job.settle.found; k < best; k++) job.settle.best_score[k] = NA_REAL;
  UNPROTECT(1);
  return out;
}

/* ---- exact answers ---- */

typedef struct {
  table_view view;
  int32_t *sets;
  int64_t score;
  weft_bn_order_shape shape;
  double *edges, log_total, error;
} exact_job;

static weft_status optimum(weft_ctx *ctx, const weft_backend *backend, weft_arena *mem, const weft_bn_table *table,
                           void *data)
{
  exact_job *job = data;
  weft_status st = WEFT_OK;
  weft_bn_table best;
  int32_t *number;
  WEFT_TRY(weft_bn_undominated(ctx, mem, table, &best, &number));
  WEFT_TRY(backend->bn->optimum(ctx, &best, job->sets, &job->score));
  for (size_t i = 0; i < table->p; i++) job->sets[i] = number[best.start[i] + job->sets[i]];
done:
  return st;
}

SEXP C_weft_bn_optimum(SEXP table, SEXP control)
{
  exact_job job = { .view = view_of(table) };
  SEXP out = PROTECT(WEFT_NAMED_LIST("sets", "score"));
  job.sets = INTEGER(weft_result_put(out, "sets", Rf_allocVector(INTSXP, (R_xlen_t) job.view.p)));
  run_on_table(control, &job.view, optimum, &job);
  weft_result_put(out, "score", Rf_ScalarReal(ldexp((double) job.score, -job.view.bits)));
  UNPROTECT(1);
  return out;
}

static weft_status edges_orders(weft_ctx *ctx, const weft_backend *backend, weft_arena *mem, const weft_bn_table *table,
                                void *data)
{
  exact_job *job = data;
  (void) mem;
  return backend->bn->edges_orders(ctx, table, job->score, &job->shape, job->edges, &job->log_total);
}

static weft_status edges_graphs(weft_ctx *ctx, const weft_backend *backend, weft_arena *mem, const weft_bn_table *table,
                                void *data)
{
  exact_job *job = data;
  (void) mem;
  return backend->bn->edges_graphs(ctx, table, job->score, job->edges, &job->log_total, &job->error);
}

static SEXP edges_of(table_work find, exact_job *job, SEXP control)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("edges", "log_total", "error"));
  const int side = dimension(job->view.p);
  job->edges = REAL(weft_result_put(out, "edges", Rf_allocMatrix(REALSXP, side, side)));
  run_on_table(control, &job->view, find, job);
  weft_result_put(out, "log_total", Rf_ScalarReal(job->log_total));
  weft_result_put(out, "error", Rf_ScalarReal(job->error));
  UNPROTECT(1);
  return out;
}

static int64_t units_of(SEXP score, const table_view *view) { return (int64_t) ldexp(Rf_asReal(score), view->bits); }

/* optimum: the best score in nats. */
SEXP C_weft_bn_edges_graphs(SEXP table, SEXP optimum, SEXP control)
{
  exact_job job = { .view = view_of(table) };
  job.score = units_of(optimum, &job.view);
  return edges_of(edges_graphs, &job, control);
}

/* shape: list(low, middle), the bits of these parts of subsets; zeros: as the back end chooses. */
SEXP C_weft_bn_edges_orders(SEXP table, SEXP optimum, SEXP shape, SEXP control)
{
  weft_record given = weft_record_open(shape, "shape");
  exact_job job = { .view = view_of(table),
                    .shape = { weft_record_integer(&given, "low"), weft_record_integer(&given, "middle") } };
  weft_record_close(&given);
  job.score = units_of(optimum, &job.view);
  return edges_of(edges_orders, &job, control);
}

typedef struct {
  table_view view;
  int64_t score;
  uint64_t key;
  size_t draws;
  int32_t *sampled;
} draw_job;

static weft_status draw_graphs(weft_ctx *ctx, const weft_backend *backend, weft_arena *mem, const weft_bn_table *table,
                               void *data)
{
  draw_job *job = data;
  (void) backend, (void) mem;
  return weft_bn_draw_graphs(ctx, table, job->score, job->key, job->draws, job->sampled);
}

/* plan: list(key, draws). The result: p × draws numbers of sets, from 0. */
SEXP C_weft_bn_draw_graphs(SEXP table, SEXP optimum, SEXP plan, SEXP control)
{
  weft_record given = weft_record_open(plan, "plan");
  draw_job job = { .view = view_of(table),
                   .key = weft_record_key(&given, "key"),
                   .draws = weft_record_size(&given, "draws") };
  weft_record_close(&given);
  job.score = units_of(optimum, &job.view);
  SEXP out = PROTECT(Rf_allocMatrix(INTSXP, dimension(job.view.p), dimension(job.draws)));
  job.sampled = INTEGER(out);
  run_on_table(control, &job.view, draw_graphs, &job);
  UNPROTECT(1);
  return out;
}

typedef struct {
  table_view view;
  const int *sampled;
  size_t samples, ladders;
  double *edges, difference;
} means_job;

static weft_status edge_means(weft_ctx *ctx, const weft_backend *backend, weft_arena *mem, const weft_bn_table *table,
                              void *data)
{
  means_job *job = data;
  (void) backend, (void) mem;
  return weft_bn_edge_means(ctx, table, job->sampled, job->samples, job->ladders, job->edges, &job->difference);
}

/* sampled: p × samples × ladders. */
SEXP C_weft_bn_edge_means(SEXP table, SEXP sampled, SEXP control)
{
  const int *dims = INTEGER(Rf_getAttrib(sampled, R_DimSymbol));
  means_job job = { view_of(table), INTEGER(sampled), (size_t) dims[1], (size_t) dims[2], NULL, 0 };
  SEXP out = PROTECT(WEFT_NAMED_LIST("edges", "difference"));
  job.edges = REAL(weft_result_put(out, "edges", Rf_allocVector(REALSXP, (R_xlen_t) (job.view.p * job.view.p))));
  run_on_table(control, &job.view, edge_means, &job);
  weft_result_put(out, "difference", Rf_ScalarReal(job.difference));
  UNPROTECT(1);
  return out;
}
