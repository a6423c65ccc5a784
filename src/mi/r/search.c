/* .Call entry points of searches over pairs, triples and tuples. */
#include <limits.h>
#include <string.h>
#include "mi/r/pack.h"
#include "mi/search/cpu/coded.h"
#include "mi/search/cpu/tuples.h"
#include "mi/permutations/cpu/permute.h"
#include "mi/search/cpu/spread.h"

/* ---- results ---- */

typedef struct {
  uint32_t *columns;
  weft_mi_tuple *scores;
  size_t count;
} results;

static weft_status check_count(weft_ctx *ctx, size_t count)
{
  if (count <= INT_MAX) return WEFT_OK;
  return weft_fail(ctx, WEFT_ERR_INPUT,
                   "%zu tuples reach the minima, but a result can have at most 2147483647. "
                   "Give `top`, or raise `min_mi`.",
                   count);
}

/* What is searched, and the result. */
typedef struct {
  weft_mi_handle *handle;
  const uint8_t *side;    /* as in C_weft_mi_search(), or NULL */
  const uint32_t *chosen; /* the columns whose tuples are searched, or NULL: pairs or triples of all */
  size_t p;               /* how many are chosen */
  weft_mi_search search;
  weft_arena *keep;
  results out;
} search_job;

/* Column numbers of a found item. */
static void columns_of(const search_job *job, uint64_t index, uint32_t *columns)
{
  const int order = job->search.order;
  const uint64_t all = job->handle->pack.columns;
  if (!job->chosen) {
    for (int j = order; j-- > 0; index /= all) columns[j] = (uint32_t) (index % all);
    return;
  }
  weft_mi_unrank(index, job->p, order, columns);
  for (int j = 0; j < order; j++) columns[j] = job->chosen[columns[j]];
}

#define EITHER_SIDE 3

/* Column numbers of found items, and their scores. */
static weft_status score_found(weft_ctx *ctx, search_job *job, const weft_mi_found *found)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_mi_pack *pack = &job->handle->pack;
  weft_mi_pack part;
  uint8_t *occurs;
  const size_t order = (size_t) job->search.order;
  results *out = &job->out;
  out->count = found->count;
  WEFT_TRY(check_count(ctx, found->count));
  WEFT_TAKE(out->columns, job->keep, found->count * order);
  WEFT_TAKE(out->scores, job->keep, found->count);
  for (size_t k = 0; k < found->count; k++) columns_of(job, found->items[k].index, out->columns + k * order);
  if (pack->away.at) {
    WEFT_TAKE0(occurs, &mem, pack->columns);
    for (size_t k = 0; k < out->count * order; k++) occurs[out->columns[k]] = EITHER_SIDE;
    WEFT_TRY(weft_mi_pack_select(ctx, &mem, pack, occurs, &part));
    pack = &part;
  }
  WEFT_TRY(weft_mi_score_tuples(ctx, pack, out->columns, out->count, job->search.order, out->scores));
done:
  weft_arena_end(&mem);
  return st;
}

/* list(columns: order × count from 1, mi, interaction, n, each: order × count). */
static SEXP as_list(const results *r, int order)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("columns", "mi", "interaction", "n", "each"));
  int *columns = INTEGER(weft_result_put(out, "columns", weft_glue_matrix(INTSXP, order, (double) r->count)));
  double *mi = REAL(weft_result_put(out, "mi", weft_glue_vector(REALSXP, (double) r->count)));
  double *interaction = REAL(weft_result_put(out, "interaction", weft_glue_vector(REALSXP, (double) r->count)));
  double *n = REAL(weft_result_put(out, "n", weft_glue_vector(REALSXP, (double) r->count)));
  double *each = REAL(weft_result_put(out, "each", weft_glue_matrix(REALSXP, order, (double) r->count)));
  for (size_t k = 0; k < r->count; k++) {
    mi[k] = r->scores[k].mi;
    interaction[k] = r->scores[k].interaction;
    n[k] = r->scores[k].n;
    for (size_t j = 0; j < (size_t) order; j++) {
      columns[k * (size_t) order + j] = (int) r->columns[k * (size_t) order + j] + 1;
      each[k * (size_t) order + j] = r->scores[k].each[j];
    }
  }
  UNPROTECT(1);
  return out;
}

/* ---- searches ---- */

static SEXP run_search(search_job *job, weft_work work, SEXP control)
{
  SEXP holder = PROTECT(weft_glue_arena(&job->keep));
  weft_glue_run(control, work, job);
  SEXP out = PROTECT(as_list(&job->out, job->search.order));
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

/* Whether the planes are where the search is. */
static int within_reach(const weft_mi_handle *handle, const weft_backend *backend, const weft_ctx *ctx)
{
  if (!handle->pack.away.at) return 1;
  return backend->mi == handle->ops && ctx->device_count == 1 && ctx->devices[0] == handle->on[0];
}

/* Searches the whole pack with its copies on the devices, or a selection of its attributes that ends with this call,
 * and scores what was found for the columns of the result. */
static weft_status search(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  search_job *job = data;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_mi_pack *pack = &job->handle->pack;
  const uint8_t *side = job->side;
  weft_mi_pack part;
  weft_mi_resident *part_devices[WEFT_MOST_DEVICES] = { NULL }, **devices = part_devices;
  weft_mi_found found = { NULL, 0 };
  uint8_t *whole;
  if (!side && !within_reach(job->handle, backend, ctx)) {
    WEFT_TAKE(whole, &mem, pack->columns);
    memset(whole, EITHER_SIDE, pack->columns);
    side = whole;
  }
  if (side) {
    WEFT_TRY(weft_mi_pack_select(ctx, &mem, pack, side, &part));
    pack = &part;
  } else {
    devices = weft_mi_handle_devices(job->handle, backend, ctx);
  }
  WEFT_TRY(weft_mi_search_spread(ctx, backend->mi, pack, devices, &job->search, &mem, &found));
  WEFT_TRY(score_found(ctx, job, &found));
done:
  for (int k = 0; k < WEFT_MOST_DEVICES; k++)
    if (part_devices[k]) backend->mi->release(ctx, part_devices[k]);
  weft_arena_end(&mem);
  return st;
}

/* near_list() of R/mi-pairs.R, of so many columns. */
static weft_mi_near near_of(weft_record *given, size_t columns)
{
  const weft_mi_near near = { .chromosome = (const uint32_t *) weft_record_integers_or_null(given, "chromosome",
                                                                                            (double) columns),
                              .position = weft_record_doubles_or_null(given, "position", (double) columns),
                              .distance = weft_record_number(given, "distance") };
  return near;
}

/* What search_list() in R/mi-pairs.R makes. */
static weft_mi_search search_of(SEXP list, const weft_mi_handle *handle)
{
  weft_record given = weft_record_open(list, "search");
  const double top = weft_record_number(&given, "top"); /* Inf: all */
  const weft_mi_search search = { .top = top < 1e15 ? (size_t) top : SIZE_MAX,
                                  .order = weft_record_integer(&given, "order"),
                                  .by_interaction = weft_record_flag(&given, "by_interaction"),
                                  .min_mi = weft_record_number(&given, "min_mi"),
                                  .min_gain = weft_record_number(&given, "min_gain"),
                                  .part = weft_record_size(&given, "part"),
                                  .parts = weft_record_size(&given, "parts"),
                                  .near = near_of(&given, handle->pack.columns) };
  weft_record_close(&given);
  return search;
}

/* side: raw, a byte per column (bit 0: first set, bit 1: second, 0: left out), or NULL. */
SEXP C_weft_mi_search(SEXP pack, SEXP side, SEXP how, SEXP control)
{
  search_job job = { .handle = weft_mi_handle_anywhere(pack), .side = side == R_NilValue ? NULL : RAW(side) };
  job.search = search_of(how, job.handle);
  return run_search(&job, search, control);
}

typedef struct {
  weft_mi_handle *handle;
  double *mi, *interaction;
} full_job;
WEFT_WORK(full, full_job,
          backend->mi->full(ctx, &job->handle->pack, weft_mi_handle_devices(job->handle, backend, ctx), job->mi,
                            job->interaction))

SEXP C_weft_mi_full(SEXP pack, SEXP control)
{
  weft_mi_handle *handle = weft_mi_handle_of(pack);
  SEXP out = PROTECT(WEFT_NAMED_LIST("mi", "interaction"));
  const double p = (double) handle->pack.p;
  full_job job = { handle, REAL(weft_result_put(out, "mi", weft_glue_matrix(REALSXP, p, p))),
                   REAL(weft_result_put(out, "interaction", weft_glue_matrix(REALSXP, p, p))) };
  WEFT_RUN_RETURN(out, control, full, &job);
}

/* Tuples of chosen attributes: on a device, a selection of the pack that ends with this call. */
static weft_status tuples(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  search_job *job = data;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_mi_pack *pack = &job->handle->pack;
  weft_mi_resident *device = NULL;
  weft_mi_found found = { NULL, 0 };
  weft_mi_pack part;
  uint8_t *side;
  if (backend->mi == &weft_mi_cpu)
    WEFT_TRY(weft_mi_search_tuples(ctx, pack, job->chosen, job->p, &job->search, &mem, &found));
  else {
    WEFT_TAKE0(side, &mem, pack->columns);
    for (size_t k = 0; k < job->p; k++) side[job->chosen[k]] = EITHER_SIDE;
    WEFT_TRY(weft_mi_pack_select(ctx, &mem, pack, side, &part));
    WEFT_TRY(backend->mi->search(ctx, &part, &device, &job->search, &mem, &found));
  }
  WEFT_TRY(score_found(ctx, job, &found));
done:
  if (device) backend->mi->release(ctx, device);
  weft_arena_end(&mem);
  return st;
}

/* chosen: increasing column numbers from 1. */
SEXP C_weft_mi_tuples(SEXP pack, SEXP chosen, SEXP how, SEXP control)
{
  const size_t p = (size_t) Rf_xlength(chosen);
  uint32_t *columns = (uint32_t *) R_alloc(p, sizeof *columns);
  for (size_t k = 0; k < p; k++) columns[k] = (uint32_t) INTEGER(chosen)[k] - 1;
  search_job job = { .handle = weft_mi_handle_of(pack), .chosen = columns, .p = p };
  job.search = search_of(how, job.handle);
  return run_search(&job, tuples, control);
}

/* ---- permutations ---- */

/* list(at_least, greatest, observed): one a tuple, one a permutation, one a tuple. */
static SEXP counts_list(size_t tuples, size_t permutations)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("at_least", "greatest", "observed"));
  weft_result_put(out, "at_least", Rf_allocVector(REALSXP, (R_xlen_t) tuples));
  weft_result_put(out, "greatest", Rf_allocVector(REALSXP, (R_xlen_t) permutations));
  weft_result_put(out, "observed", Rf_allocVector(REALSXP, (R_xlen_t) tuples));
  UNPROTECT(1);
  return out;
}

static double *counts_in(SEXP counts, const char *name) { return REAL(weft_glue_element(counts, name)); }

typedef struct {
  const weft_mi_pack *pack;
  const uint8_t *side;
  weft_mi_search search;
  uint32_t *columns;
  size_t count, permutations;
  uint64_t key;
  double *at_least, *greatest;
} permute_job;

/* The permutations of a search for pairs, over the whole pack or a selection of its attributes. */
static weft_status permute_pairs(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  permute_job *job = data;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_mi_pack *pack = job->pack;
  weft_mi_pack part;
  if (job->side) {
    WEFT_TRY(weft_mi_pack_select(ctx, &mem, pack, job->side, &part));
    pack = &part;
  }
  WEFT_TRY(weft_mi_permute_spread(ctx, backend->mi, pack, &job->search, job->columns, job->count, job->permutations,
                                  job->key, job->at_least, job->greatest));
done:
  weft_arena_end(&mem);
  return st;
}

/* columns: 2 × pairs, from 1. how: list(by_interaction, permutations, key, part, parts, near_list()). `greatest` is
 * -Inf for permutations of other parts. */
SEXP C_weft_mi_permute_pairs(SEXP pack, SEXP side, SEXP columns, SEXP how, SEXP control)
{
  weft_record given = weft_record_open(how, "how");
  permute_job job = { .pack = &weft_mi_handle_of(pack)->pack,
                      .side = side == R_NilValue ? NULL : RAW(side),
                      .count = (size_t) Rf_ncols(columns),
                      .search = { .order = 2,
                                  .by_interaction = weft_record_flag(&given, "by_interaction"),
                                  .part = weft_record_size(&given, "part"),
                                  .parts = weft_record_size(&given, "parts") },
                      .permutations = weft_record_size(&given, "permutations"),
                      .key = weft_record_key(&given, "key") };
  job.search.near = near_of(&given, job.pack->columns);
  weft_record_close(&given);
  job.columns = (uint32_t *) R_alloc(2 * job.count, sizeof *job.columns);
  for (size_t k = 0; k < 2 * job.count; k++) job.columns[k] = (uint32_t) INTEGER(columns)[k] - 1;
  SEXP out = PROTECT(counts_list(job.count, job.permutations));
  job.at_least = counts_in(out, "at_least");
  job.greatest = counts_in(out, "greatest");
  for (size_t b = 0; b < job.permutations; b++) job.greatest[b] = R_NegInf;
  WEFT_RUN_RETURN(out, control, permute_pairs, &job);
}

typedef struct {
  const weft_mi_pack *pack;
  size_t permutations;
  uint64_t key;
  double *observed, *at_least, *greatest;
} rank_job;
WEFT_WORK(permute_rank, rank_job,
          weft_mi_permute_rank(ctx, backend->mi, job->pack, job->permutations, job->key, job->observed, job->at_least,
                               job->greatest))

/* how: list(permutations, key). */
SEXP C_weft_mi_permute_rank(SEXP pack, SEXP how, SEXP control)
{
  weft_record given = weft_record_open(how, "how");
  rank_job job = { .pack = &weft_mi_handle_of(pack)->pack,
                   .permutations = weft_record_size(&given, "permutations"),
                   .key = weft_record_key(&given, "key") };
  weft_record_close(&given);
  SEXP out = PROTECT(counts_list(job.pack->p, job.permutations));
  job.at_least = counts_in(out, "at_least");
  job.greatest = counts_in(out, "greatest");
  job.observed = counts_in(out, "observed");
  WEFT_RUN_RETURN(out, control, permute_rank, &job);
}
