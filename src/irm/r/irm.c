/* .Call entry points of the co-clustering room. */
#include <math.h>
#include <string.h>
#include "core/r/glue.h"
#include "core/r/record.h"
#include "irm/cpu/input/parse_counts.h"
#include "irm/cpu/input/edges_by_row.h"
#include "irm/cpu/input/nearest.h"
#include "irm/both/score.h"
#include "irm/cpu/start.h"

static const char *const type_names[] = { "bipartite", "directed", "undirected" }; /* in the order of weft_irm_type */

static weft_irm_edges edges_of(SEXP list)
{
  weft_record given = weft_record_open(list, "links");
  const int64_t n_row = (int64_t) weft_record_size(&given, "n_row"),
                n_col = (int64_t) weft_record_size(&given, "n_col");
  const int64_t count = (int64_t) Rf_xlength(weft_record_field(&given, "to"));
  const weft_irm_edges edges = { .n = { n_row, n_col },
                                 .count = count,
                                 .start = weft_record_doubles(&given, "start", (double) n_row + 1),
                                 .to = weft_record_integers(&given, "to", WEFT_ANY_LENGTH),
                                 .weight = weft_record_integers_or_null(&given, "weight", (double) count) };
  weft_record_close(&given);
  return edges;
}

/* A canonical list as R keeps it: a new R list with copies of all vectors; `weight` stays NULL where there is none. */
static SEXP edges_as_list(const weft_irm_edges *edges)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("n_row", "n_col", "start", "to", "weight"));
  weft_result_put(out, "n_row", Rf_ScalarReal((double) edges->n[0]));
  weft_result_put(out, "n_col", Rf_ScalarReal((double) edges->n[1]));
  SEXP start = weft_result_put(out, "start", Rf_allocVector(REALSXP, edges->n[0] + 1));
  memcpy(REAL(start), edges->start, (size_t) (edges->n[0] + 1) * sizeof(double));
  SEXP to = weft_result_put(out, "to", Rf_allocVector(INTSXP, edges->count));
  if (edges->count) memcpy(INTEGER(to), edges->to, (size_t) edges->count * sizeof(int32_t));
  if (edges->weight) {
    SEXP weight = weft_result_put(out, "weight", Rf_allocVector(INTSXP, edges->count));
    if (edges->count) memcpy(INTEGER(weight), edges->weight, (size_t) edges->count * sizeof(int32_t));
  }
  UNPROTECT(1);
  return out;
}

/* Runs what puts links into `arena` and `made`, both parts of the job. */
static SEXP links_of(weft_work work, void *job, weft_arena **arena, const weft_irm_edges *made, SEXP control)
{
  SEXP holder = PROTECT(weft_glue_arena(arena));
  weft_glue_run(control, work, job);
  SEXP out = PROTECT(edges_as_list(made));
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

typedef struct {
  weft_arena *arena;
  weft_irm_type type;
  int self;
  int64_t n[2], count;
  const int32_t *from, *to, *weight;
  weft_irm_edges missing, out;
  int has_missing;
} edges_job;
WEFT_WORK(make_edges, edges_job,
          weft_irm_edges_make(ctx, job->arena, job->type, job->self, job->n, job->count, job->from, job->to,
                              job->weight, job->has_missing ? &job->missing : NULL, &job->out))

/* pairs: n_row, n_col, kind, self; from, to: integers from 0; weight: integers or NULL; missing: a canonical list or
 * NULL. */
SEXP C_weft_irm_edges(SEXP pairs, SEXP control)
{
  weft_record given = weft_record_open(pairs, "pairs");
  const double count = (double) Rf_xlength(weft_record_field(&given, "from"));
  SEXP missing = weft_record_field(&given, "missing");
  edges_job job = { .type = (weft_irm_type) weft_record_kind(&given, "kind", type_names, 3),
                    .self = weft_record_flag(&given, "self"),
                    .n = { (int64_t) weft_record_size(&given, "n_row"), (int64_t) weft_record_size(&given, "n_col") },
                    .count = (int64_t) count,
                    .from = weft_record_integers(&given, "from", count),
                    .to = weft_record_integers(&given, "to", count),
                    .weight = weft_record_integers_or_null(&given, "weight", count),
                    .has_missing = missing != R_NilValue };
  weft_record_close(&given);
  if (job.has_missing) job.missing = edges_of(missing);
  return links_of(make_edges, &job, &job.arena, &job.out, control);
}

typedef struct {
  weft_arena *arena;
  weft_irm_edges columns, out;
  int drop_diagonal;
} turn_job;
WEFT_WORK(turn, turn_job, weft_irm_edges_turn(ctx, job->arena, &job->columns, job->drop_diagonal, &job->out))

/* columns: a list of links by column, whose "rows" are the columns; drop_diagonal: a flag. The same by row. */
SEXP C_weft_irm_turned(SEXP columns, SEXP drop_diagonal, SEXP control)
{
  turn_job job = { .columns = edges_of(columns), .drop_diagonal = Rf_asLogical(drop_diagonal) == TRUE };
  return links_of(turn, &job, &job.arena, &job.out, control);
}

typedef struct {
  weft_irm_edges shard;
  int64_t row, count;
  double *start;
  int32_t *to, *weight;
} append_job;
WEFT_WORK(append, append_job,
          weft_irm_edges_append(ctx, &job->shard, job->row, job->count, job->start, job->to, job->weight))

/* Entries of shards between two collections of garbage. */
#define APPEND_GARBAGE ((int64_t) 1 << 29)

/* shards: a list of canonical lists of the same columns, each of which is taken out of it as soon as it has been
 * copied, so that memory holds little more than all of them once. One list with all their rows. */
SEXP C_weft_irm_joined(SEXP shards, SEXP control)
{
  append_job job = { .row = 0 };
  int64_t rows = 0, count = 0, garbage = 0;
  int weighted = 0;
  double columns = 0;
  for (R_xlen_t s = 0; s < Rf_xlength(shards); s++) {
    const weft_irm_edges shard = edges_of(VECTOR_ELT(shards, s));
    rows += shard.n[0];
    count += shard.count;
    columns = (double) shard.n[1];
    weighted = shard.weight != NULL;
  }
  SEXP out = PROTECT(WEFT_NAMED_LIST("n_row", "n_col", "start", "to", "weight"));
  weft_result_put(out, "n_row", Rf_ScalarReal((double) rows));
  weft_result_put(out, "n_col", Rf_ScalarReal(columns));
  job.start = REAL(weft_result_put(out, "start", weft_glue_vector(REALSXP, (double) rows + 1)));
  job.to = INTEGER(weft_result_put(out, "to", weft_glue_vector(INTSXP, (double) count)));
  if (weighted) job.weight = INTEGER(weft_result_put(out, "weight", weft_glue_vector(INTSXP, (double) count)));
  job.start[0] = 0;
  for (R_xlen_t s = 0; s < Rf_xlength(shards); s++) {
    job.shard = edges_of(VECTOR_ELT(shards, s));
    if (weighted && !job.shard.weight) weft_glue_fail(WEFT_ERR_INTERNAL, "a shard has no counts");
    weft_glue_run(control, append, &job);
    job.row += job.shard.n[0];
    job.count += job.shard.count;
    SET_VECTOR_ELT(shards, s, R_NilValue);
    garbage += job.shard.count;
    if (garbage < APPEND_GARBAGE) continue;
    R_gc();
    garbage = 0;
  }
  UNPROTECT(1);
  return out;
}

/* ---- graph = list(kind, self, links, missing, values = NULL or c(centre, scale, unit), prepared) ---- */

typedef struct {
  weft_irm_type type;
  int self;
  weft_irm_edges links, missing;
  double unit, log_scale;
  const weft_irm_graph *prepared; /* or NULL */
} graph_source;

/* Graphs in both orders that several calls read; their memory is an arena, which the pointer keeps, as it does R's
 * vectors. */
static void release_nothing(void *object) { (void) object; }
static const weft_handle_kind prepared_kind = { "weft_irm_graph", release_nothing };

static graph_source source_of(SEXP graph)
{
  weft_record given = weft_record_open(graph, "graph");
  const double *values = weft_record_doubles_or_null(&given, "values", 3);
  SEXP prepared = weft_record_field(&given, "prepared");
  graph_source source = { .unit = values ? values[2] : 0,
                          .log_scale = values ? log(values[1]) : 0,
                          .type = (weft_irm_type) weft_record_kind(&given, "kind", type_names, 3),
                          .self = weft_record_flag(&given, "self"),
                          .links = edges_of(weft_record_field(&given, "links")),
                          .missing = edges_of(weft_record_field(&given, "missing")) };
  weft_record_close(&given);
  if (prepared == R_NilValue) return source;
  source.prepared = weft_glue_handle_take(prepared, &prepared_kind);
  const int64_t *n = source.prepared->n;
  if (source.prepared->type != source.type || n[0] != source.links.n[0] ||
      (source.type == WEFT_IRM_BIPARTITE && n[1] != source.links.n[1]))
    weft_glue_fail(WEFT_ERR_INTERNAL, "another graph was prepared");
  return source;
}

/* What a job begins with: a graph, and what is done with it once it is made. */
typedef struct {
  graph_source source;
  weft_status (*work)(weft_ctx *ctx, const weft_backend *backend, const weft_irm_graph *graph, void *job);
} graph_job;

static weft_status make_graph(weft_ctx *ctx, weft_arena *arena, const graph_source *from, weft_irm_graph *out)
{
  return weft_irm_graph_make(ctx, arena, from->type, from->self, &from->links, &from->missing, from->unit,
                             from->log_scale, out);
}

static weft_status with_graph(weft_ctx *ctx, const weft_backend *backend, void *job)
{
  const graph_job *of = job;
  const graph_source *from = &of->source;
  weft_status st = WEFT_OK;
  if (from->prepared) return of->work(ctx, backend, from->prepared, job);
  weft_arena mem = weft_arena_begin(ctx);
  weft_irm_graph graph;
  WEFT_TRY(make_graph(ctx, &mem, from, &graph));
  WEFT_TRY(of->work(ctx, backend, &graph, job));
done:
  weft_arena_end(&mem);
  return st;
}

typedef struct {
  graph_source source;
  weft_arena *arena;
  weft_irm_graph *out;
} prepare_job;

/* Gives its memory back at once if it fails or is interrupted, not when R collects the pointer. */
static weft_status prepare(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  prepare_job *job = data;
  (void) backend;
  const weft_status st = make_graph(ctx, job->arena, &job->source, job->out);
  if (st != WEFT_OK) weft_arena_end(job->arena);
  return st;
}

/* A pointer to the graph in both orders, for the field `prepared` of the same graph in later calls. */
SEXP C_weft_irm_prepared(SEXP graph, SEXP control)
{
  prepare_job job = { .source = source_of(graph) };
  SEXP pointer = PROTECT(weft_glue_handle(&prepared_kind, sizeof(weft_irm_graph)));
  SEXP kept = PROTECT(Rf_allocVector(VECSXP, 2));
  SET_VECTOR_ELT(kept, 0, weft_glue_arena(&job.arena));
  SET_VECTOR_ELT(kept, 1, graph);
  R_SetExternalPtrProtected(pointer, kept);
  job.out = weft_glue_handle_peek(pointer, &prepared_kind);
  weft_glue_run(control, prepare, &job);
  weft_glue_arena_keep(VECTOR_ELT(kept, 0));
  UNPROTECT(2);
  return pointer;
}

/* Ends a prepared graph and gives its memory back. */
SEXP C_weft_irm_prepared_end(SEXP pointer)
{
  if (!weft_glue_handle_peek(pointer, &prepared_kind)) return R_NilValue;
  weft_glue_arena_end(VECTOR_ELT(R_ExternalPtrProtected(pointer), 0));
  weft_glue_handle_free(pointer, &prepared_kind);
  R_SetExternalPtrProtected(pointer, R_NilValue);
  return R_NilValue;
}

/* ---- running ---- */

typedef struct {
  graph_job of;
  weft_irm_model model;
  int chains;
  weft_irm_chain *chain;
  const int32_t *z_from[2];
  const double *alpha_from, *beta_from, *best_from;
  const int32_t *best_z_from[2], *upper_from, *best_upper_from, *drawn_from;
  int64_t words, masked; /* of a chain's upper levels; pairs whose links nested groups draw */
  int64_t done, sweeps, blocks;
  int chain0;
  weft_irm_trace trace;
} run_job;

/* Chains start from R's copies, so that a second try after a shortage of memory starts over. */
static weft_status run(weft_ctx *ctx, const weft_backend *backend, const weft_irm_graph *graph, void *data)
{
  run_job *job = data;
  for (int c = 0; c < job->chains; c++) {
    weft_irm_chain *to = &job->chain[c];
    to->number = (uint32_t) (job->chain0 + c);
    to->best = job->best_from[c];
    for (int mode = 0; mode < 2; mode++) {
      const size_t n = (size_t) graph->n[mode], at = (size_t) c * n;
      if (n) memcpy(to->z[mode], job->z_from[mode] + at, n * sizeof(int32_t));
      if (n) memcpy(to->best_z[mode], job->best_z_from[mode] + at, n * sizeof(int32_t));
      if (!mode && job->words) {
        const size_t bytes = (size_t) job->words * sizeof(int32_t);
        memcpy(to->upper, job->upper_from + c * job->words, bytes);
        memcpy(to->best_upper, job->best_upper_from + c * job->words, bytes);
      }
      if (!mode && job->masked)
        memcpy(to->drawn, job->drawn_from + c * job->masked, (size_t) job->masked * sizeof(int32_t));
      to->alpha[mode] = job->alpha_from[4 * c + mode];
      to->best_alpha[mode] = job->alpha_from[4 * c + 2 + mode];
      to->beta[mode] = job->beta_from[4 * c + mode];
      to->best_beta[mode] = job->beta_from[4 * c + 2 + mode];
    }
  }
  for (int64_t at = 0; at < job->masked * job->blocks; at++) job->trace.expected[at] = 0;
  return weft_irm_run_spread(ctx, backend->irm, graph, &job->model, job->chains, job->chain, job->done, job->sweeps,
                             &job->trace);
}

/* What native_model() in R/irm.R makes: switches of the sampler, limits of clusters, priors and the key of all draws.
 */
static weft_irm_model model_of(SEXP list)
{
  weft_record given = weft_record_open(list, "model");
  const double *k = weft_record_doubles(&given, "max_clusters", 2);
  const double *alpha = weft_record_doubles(&given, "alpha_prior", 2);
  const double *beta = weft_record_doubles(&given, "beta_prior", 2);
  const weft_irm_model model = { .poisson = weft_record_flag(&given, "poisson"),
                                 .collapsed = weft_record_flag(&given, "collapsed"),
                                 .nested = weft_record_flag(&given, "nested"),
                                 .degrees = weft_record_flag(&given, "degrees"),
                                 .k = { (int32_t) k[0], (int32_t) k[1] },
                                 .attempts = weft_record_integer(&given, "attempts"),
                                 .sample_alpha = weft_record_flag(&given, "sample_alpha"),
                                 .sample_beta = weft_record_flag(&given, "sample_beta"),
                                 .alpha_prior = { alpha[0], alpha[1] },
                                 .beta_prior = { beta[0], beta[1] },
                                 .key = weft_record_key(&given, "key") };
  weft_record_close(&given);
  return model;
}

/* New vectors of zeros in a result. */
static int *put_integers(SEXP result, const char *name, R_xlen_t length)
{
  int *v = INTEGER(weft_result_put(result, name, Rf_allocVector(INTSXP, length)));
  if (length) memset(v, 0, (size_t) length * sizeof *v);
  return v;
}

static double *put_doubles(SEXP result, const char *name, R_xlen_t length)
{
  double *v = REAL(weft_result_put(result, name, Rf_allocVector(REALSXP, length)));
  for (R_xlen_t i = 0; i < length; i++) v[i] = 0;
  return v;
}

/* state: row, col (n x chains, from 0), alpha, beta (4 x chains: now and at the best), best, best_row, best_col; of
 * nested groups upper, best_upper, drawn. plan: sweeps done, sweeps to do, thin, the sweeps of a block of `expected`,
 * and the number of the first chain, from 0. Returns the new state and what the sweeps left. */
SEXP C_weft_irm_run(SEXP graph, SEXP model, SEXP state, SEXP plan, SEXP control)
{
  const char *fields[] = { "row",          "col",
                           "alpha",        "beta",
                           "best",         "best_row",
                           "best_col",     "log_posterior",
                           "row_clusters", "col_clusters",
                           "alpha_trace",  "beta_trace",
                           "row_samples",  "col_samples",
                           "stages",       "row_full",
                           "col_full",     "upper",
                           "best_upper",   "drawn",
                           "expected",     "" };
  weft_record from = weft_record_open(state, "state"), given = weft_record_open(plan, "plan");
  run_job job = { .of = { source_of(graph), run }, .model = model_of(model) };
  const int chains = job.chains = (int) Rf_xlength(weft_record_field(&from, "best"));
  const graph_source *source = &job.of.source;
  const int one_mode = source->type != WEFT_IRM_BIPARTITE;
  const R_xlen_t n[2] = { (R_xlen_t) source->links.n[0], one_mode ? 0 : (R_xlen_t) source->links.n[1] };
  job.done = (int64_t) weft_record_size(&given, "done");
  job.sweeps = (int64_t) weft_record_size(&given, "sweeps");
  job.trace.thin = (int64_t) weft_record_size(&given, "thin");
  job.trace.block = (int64_t) weft_record_size(&given, "block");
  job.chain0 = weft_record_integer(&given, "first_chain");
  weft_record_close(&given);
  job.z_from[0] = weft_record_integers(&from, "row", (double) (n[0] * chains));
  job.z_from[1] = weft_record_integers(&from, "col", (double) (n[1] * chains));
  job.best_z_from[0] = weft_record_integers(&from, "best_row", (double) (n[0] * chains));
  job.best_z_from[1] = weft_record_integers(&from, "best_col", (double) (n[1] * chains));
  job.words = job.model.nested ? weft_irm_nested_words(job.model.k) : 0;
  job.upper_from = weft_record_integers(&from, "upper", (double) (job.words * chains));
  job.best_upper_from = weft_record_integers(&from, "best_upper", (double) (job.words * chains));
  job.masked = job.model.nested ? source->missing.count : 0;
  job.drawn_from = weft_record_integers(&from, "drawn", (double) job.masked * chains);
  job.alpha_from = weft_record_doubles(&from, "alpha", 4.0 * chains);
  job.beta_from = weft_record_doubles(&from, "beta", 4.0 * chains);
  job.best_from = weft_record_doubles(&from, "best", chains);
  weft_record_close(&from);
  job.trace.kept = (job.done + job.sweeps) / job.trace.thin - job.done / job.trace.thin;
  const R_xlen_t steps = (R_xlen_t) job.sweeps * chains, kept = (R_xlen_t) job.trace.kept * chains;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  int *z[2] = { put_integers(out, "row", n[0] * chains), put_integers(out, "col", n[1] * chains) };
  int *best_z[2] = { put_integers(out, "best_row", n[0] * chains), put_integers(out, "best_col", n[1] * chains) };
  int *upper = put_integers(out, "upper", (R_xlen_t) job.words * chains);
  int *best_upper = put_integers(out, "best_upper", (R_xlen_t) job.words * chains);
  int *drawn = put_integers(out, "drawn", (R_xlen_t) job.masked * chains);
  job.blocks = (job.done + job.sweeps - 1) / job.trace.block - job.done / job.trace.block + 1;
  job.trace.expected = put_doubles(out, "expected", (R_xlen_t) (job.masked * job.blocks));
  double *alpha = put_doubles(out, "alpha", 4 * chains), *beta = put_doubles(out, "beta", 4 * chains);
  double *best = put_doubles(out, "best", chains), *stages = put_doubles(out, "stages", WEFT_IRM_STAGES);
  job.trace.log_posterior = put_doubles(out, "log_posterior", steps);
  job.trace.clusters[0] = put_integers(out, "row_clusters", steps);
  job.trace.clusters[1] = put_integers(out, "col_clusters", steps);
  job.trace.full[0] = put_integers(out, "row_full", steps);
  job.trace.full[1] = put_integers(out, "col_full", steps);
  job.trace.alpha = put_doubles(out, "alpha_trace", 2 * steps);
  job.trace.beta = put_doubles(out, "beta_trace", 2 * steps);
  job.trace.samples[0] = put_integers(out, "row_samples", n[0] * kept);
  job.trace.samples[1] = put_integers(out, "col_samples", n[1] * kept);
  job.chain = (weft_irm_chain *) R_alloc((size_t) chains, sizeof(weft_irm_chain));
  memset(job.chain, 0, (size_t) chains * sizeof(weft_irm_chain));
  for (int c = 0; c < chains; c++) {
    job.chain[c].upper = upper + c * job.words;
    job.chain[c].drawn = drawn + c * job.masked;
    job.chain[c].best_upper = best_upper + c * job.words;
    for (int mode = 0; mode < 2; mode++) {
      job.chain[c].z[mode] = z[mode] + c * n[mode];
      job.chain[c].best_z[mode] = best_z[mode] + c * n[mode];
    }
  }
  weft_glue_run(control, with_graph, &job);
  memcpy(stages, job.trace.stages, sizeof job.trace.stages);
  for (int c = 0; c < chains; c++) {
    const weft_irm_chain *chain = &job.chain[c];
    best[c] = chain->best;
    for (int mode = 0; mode < 2; mode++) {
      alpha[4 * c + mode] = chain->alpha[mode];
      alpha[4 * c + 2 + mode] = chain->best_alpha[mode];
      beta[4 * c + mode] = chain->beta[mode];
      beta[4 * c + 2 + mode] = chain->best_beta[mode];
    }
  }
  UNPROTECT(1);
  return out;
}

/* ---- where chains start ---- */

typedef struct {
  graph_job of;
  weft_irm_model model;
  int chains;
  int32_t *z[2], *upper, *drawn;
} start_job;

static weft_status start(weft_ctx *ctx, const weft_backend *backend, const weft_irm_graph *graph, void *data)
{
  start_job *job = data;
  weft_status st = WEFT_OK;
  (void) backend;
  if (job->model.nested)
    return weft_irm_nested_starts(ctx, graph, &job->model, job->chains, job->z, job->upper, job->drawn);
  for (int c = 0; c < job->chains; c++) {
    int32_t *const z[2] = { job->z[0] + (int64_t) c * graph->n[0], job->z[1] + (int64_t) c * graph->n[1] };
    WEFT_TRY(weft_irm_start(ctx, graph, job->model.key, job->model.k, (uint32_t) c, z));
  }
done:
  return st;
}

/* model: as for running, with the limits of the start. Labels from 0 of all chains: row, col; of nested groups also the
 * levels above, upper, and the counts of missing pairs, drawn. */
SEXP C_weft_irm_start(SEXP graph, SEXP model, SEXP chains, SEXP control)
{
  start_job job = { .of = { source_of(graph), start }, .model = model_of(model), .chains = Rf_asInteger(chains) };
  const graph_source *source = &job.of.source;
  const int one_mode = source->type != WEFT_IRM_BIPARTITE, nested = job.model.nested;
  SEXP out = PROTECT(WEFT_NAMED_LIST("row", "col", "upper", "drawn"));
  job.upper = put_integers(out, "upper", nested ? (R_xlen_t) weft_irm_nested_words(job.model.k) * job.chains : 0);
  job.drawn = put_integers(out, "drawn", nested ? (R_xlen_t) source->missing.count * job.chains : 0);
  job.z[0] = put_integers(out, "row", (R_xlen_t) source->links.n[0] * job.chains);
  job.z[1] = put_integers(out, "col", one_mode ? 0 : (R_xlen_t) source->links.n[1] * job.chains);
  WEFT_RUN_RETURN(out, control, with_graph, &job);
}

/* ---- blocks and log posterior of given partitions ---- */

typedef struct {
  graph_job of;
  int32_t *z[2], k[2];
  double *links, *pairs, *log_factorials, *squares;
} blocks_job;

static weft_status blocks(weft_ctx *ctx, const weft_backend *backend, const weft_irm_graph *graph, void *data)
{
  blocks_job *job = data;
  (void) backend;
  *job->log_factorials = graph->log_factorials;
  return weft_irm_blocks(ctx, graph, job->z, job->k, job->links, job->pairs, job->squares);
}

/* partition: row, col (labels from 0; col is row again in a one-mode graph) and their numbers of clusters. */
static blocks_job blocks_job_of(SEXP graph, SEXP partition)
{
  const graph_source source = source_of(graph);
  weft_record given = weft_record_open(partition, "partition");
  const blocks_job job = { .of = { source, blocks },
                           .z = { (int32_t *) weft_record_integers(&given, "row", (double) source.links.n[0]),
                                  (int32_t *) weft_record_integers(&given, "col", (double) source.links.n[1]) },
                           .k = { weft_record_integer(&given, "row_clusters"),
                                  weft_record_integer(&given, "col_clusters") } };
  weft_record_close(&given);
  return job;
}

SEXP C_weft_irm_blocks(SEXP graph, SEXP partition, SEXP control)
{
  blocks_job job = blocks_job_of(graph, partition);
  SEXP out = PROTECT(WEFT_NAMED_LIST("links", "pairs", "log_factorials", "squares"));
  job.links = REAL(weft_result_put(out, "links", Rf_allocMatrix(REALSXP, job.k[0], job.k[1])));
  job.pairs = REAL(weft_result_put(out, "pairs", Rf_allocMatrix(REALSXP, job.k[0], job.k[1])));
  job.log_factorials = REAL(weft_result_put(out, "log_factorials", Rf_allocVector(REALSXP, 1)));
  if (job.of.source.unit > 0)
    job.squares = REAL(weft_result_put(out, "squares", Rf_allocMatrix(REALSXP, job.k[0], job.k[1])));
  WEFT_RUN_RETURN(out, control, with_graph, &job);
}

/* prior: alpha, beta (two numbers each), poisson. */
SEXP C_weft_irm_log_posterior(SEXP graph, SEXP partition, SEXP prior, SEXP control)
{
  SEXP counted = PROTECT(C_weft_irm_blocks(graph, partition, control));
  const blocks_job job = blocks_job_of(graph, partition);
  const graph_source *source = &job.of.source;
  weft_record given = weft_record_open(prior, "prior");
  const double *alpha = weft_record_doubles(&given, "alpha", 2), *beta = weft_record_doubles(&given, "beta", 2);
  const int poisson = weft_record_flag(&given, "poisson"), one_mode = source->type != WEFT_IRM_BIPARTITE;
  weft_record_close(&given);
  const double *links = REAL(weft_glue_element(counted, "links")), *pairs = REAL(weft_glue_element(counted, "pairs"));
  const double *squares = source->unit > 0 ? REAL(weft_glue_element(counted, "squares")) : NULL;
  const int32_t *k = job.k;
  int64_t *sizes[2];
  for (int mode = 0; mode < 2; mode++) {
    sizes[mode] = (int64_t *) R_alloc((size_t) k[mode], sizeof(int64_t));
    memset(sizes[mode], 0, (size_t) k[mode] * sizeof(int64_t));
    for (int64_t i = 0; i < source->links.n[mode]; i++) sizes[mode][job.z[mode][i]]++;
  }
  double sum = irm_log_crp(alpha[0], sizes[0], k[0]) - REAL(weft_glue_element(counted, "log_factorials"))[0];
  if (!one_mode) sum += irm_log_crp(alpha[1], sizes[1], k[1]);
  for (int32_t m = 0; m < k[1]; m++)
    for (int32_t l = 0; l < (source->type == WEFT_IRM_UNDIRECTED ? m + 1 : k[0]); l++) {
      const size_t at = (size_t) l + (size_t) m * (size_t) k[0];
      sum +=
          squares ? irm_f_real(beta, 1, links[at], squares[at], pairs[at]) : irm_f(poisson, beta, links[at], pairs[at]);
    }
  UNPROTECT(1);
  return Rf_ScalarReal(sum);
}

/* ---- nested groups ---- */

typedef struct {
  graph_job of;
  weft_irm_model model;
  int32_t *z[2];
  const int32_t *upper;
  double length;
} length_job;

static weft_status length_of(weft_ctx *ctx, const weft_backend *backend, const weft_irm_graph *graph, void *data)
{
  length_job *job = data;
  (void) backend;
  return weft_irm_nested_length(ctx, graph, &job->model, job->z, job->upper, &job->length);
}

/* partition: row, col (labels from 0), upper (or NULL). The description length. */
SEXP C_weft_irm_nested_length(SEXP graph, SEXP model, SEXP partition, SEXP control)
{
  weft_record given = weft_record_open(partition, "partition");
  length_job job = { .of = { source_of(graph), length_of }, .model = model_of(model) };
  const graph_source *source = &job.of.source;
  const double cols = source->type == WEFT_IRM_BIPARTITE ? (double) source->links.n[1] : 0;
  job.z[0] = (int32_t *) weft_record_integers(&given, "row", (double) source->links.n[0]);
  job.z[1] = (int32_t *) weft_record_integers(&given, "col", cols);
  job.upper = weft_record_integers_or_null(&given, "upper", (double) weft_irm_nested_words(job.model.k));
  weft_record_close(&given);
  weft_glue_run(control, with_graph, &job);
  return Rf_ScalarReal(job.length);
}

/* ---- text ---- */

/* The whole numbers in a raw vector; the attribute "bad" is the offset, from 1, of a byte that is none. */
SEXP C_weft_irm_numbers(SEXP text)
{
  const int64_t length = (int64_t) Rf_xlength(text);
  int64_t bad;
  SEXP all = PROTECT(Rf_allocVector(INTSXP, (R_xlen_t) (length / 2 + 1)));
  const int64_t count = weft_irm_numbers(RAW(text), length, INTEGER(all), &bad);
  SEXP out = PROTECT(Rf_xlengthgets(all, (R_xlen_t) count));
  if (bad >= 0) Rf_setAttrib(out, Rf_install("bad"), Rf_ScalarReal((double) bad + 1));
  UNPROTECT(2);
  return out;
}

/* ---- nearest centres ---- */

typedef struct {
  const double *x, *centres;
  size_t n, d, m;
  int32_t *near;
} nearest_job;
WEFT_WORK(run_nearest, nearest_job, weft_irm_nearest(ctx, job->x, job->n, job->d, job->centres, job->m, job->near))

/* The place (from 1) of the nearest row of `centres` for each row of x, double matrices of the same columns. */
SEXP C_weft_irm_nearest(SEXP x, SEXP centres, SEXP control)
{
  if (TYPEOF(x) != REALSXP || TYPEOF(centres) != REALSXP || !Rf_isMatrix(x) || !Rf_isMatrix(centres) ||
      Rf_ncols(x) != Rf_ncols(centres) || Rf_nrows(centres) < 1)
    weft_glue_fail(WEFT_ERR_INTERNAL, "Rows and centres must be double matrices of the same columns.");
  SEXP out = PROTECT(weft_glue_vector(INTSXP, Rf_nrows(x)));
  nearest_job job = {
    REAL(x), REAL(centres), (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), (size_t) Rf_nrows(centres), INTEGER(out)
  };
  WEFT_RUN_RETURN(out, control, run_nearest, &job);
}
