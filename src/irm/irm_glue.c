/* .Call entry points of the co-clustering room. */
#include <math.h>
#include <string.h>
#include "../base/glue.h"
#include "irm_bow.h"
#include "irm_graph.h"
#include "irm_score.h"

static weft_irm_edges edges_of(SEXP list)
{
  SEXP weight = weft_glue_element(list, "weight");
  weft_irm_edges e = { { (int64_t) Rf_asReal(weft_glue_element(list, "n_row")), (int64_t) Rf_asReal(weft_glue_element(list, "n_col")) },
                       (int64_t) Rf_xlength(weft_glue_element(list, "to")), REAL(weft_glue_element(list, "start")),
                       INTEGER(weft_glue_element(list, "to")), weight == R_NilValue ? NULL : INTEGER(weight) };
  return e;
}

static SEXP edges_as_list(const weft_irm_edges *e)
{
  const char *fields[] = { "n_row", "n_col", "start", "to", "weight", "" };
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_ScalarReal((double) e->n[0]));
  SET_VECTOR_ELT(out, 1, Rf_ScalarReal((double) e->n[1]));
  SET_VECTOR_ELT(out, 2, Rf_allocVector(REALSXP, e->n[0] + 1));
  memcpy(REAL(VECTOR_ELT(out, 2)), e->start, (size_t) (e->n[0] + 1) * sizeof(double));
  SET_VECTOR_ELT(out, 3, Rf_allocVector(INTSXP, e->count));
  if (e->count) memcpy(INTEGER(VECTOR_ELT(out, 3)), e->to, (size_t) e->count * sizeof(int32_t));
  if (e->weight) {
    SET_VECTOR_ELT(out, 4, Rf_allocVector(INTSXP, e->count));
    if (e->count) memcpy(INTEGER(VECTOR_ELT(out, 4)), e->weight, (size_t) e->count * sizeof(int32_t));
  }
  UNPROTECT(1);
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

static weft_status make_edges(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  edges_job *job = data;
  (void) backend;
  weft_status st = weft_irm_edges_make(ctx, job->arena, job->type, job->self, job->n, job->count, job->from, job->to, job->weight,
                                       job->has_missing ? &job->missing : NULL, &job->out);
  /* the holder's own context has no reader: what its arena could not take is told here */
  if (st == WEFT_ERR_MEMORY && !ctx->message[0]) memcpy(ctx->message, job->arena->ctx->message, sizeof ctx->message);
  return st;
}

/* from, to: integers from 0; weight: integers or NULL; missing: a canonical list or NULL; shape: c(n_row, n_col). */
SEXP C_weft_irm_edges(SEXP shape, SEXP from, SEXP to, SEXP weight, SEXP missing, SEXP type, SEXP self, SEXP control)
{
  edges_job job = { NULL, (weft_irm_type) Rf_asInteger(type), Rf_asLogical(self),
                    { (int64_t) REAL(shape)[0], (int64_t) REAL(shape)[1] }, (int64_t) Rf_xlength(from), INTEGER(from), INTEGER(to),
                    weight == R_NilValue ? NULL : INTEGER(weight), .has_missing = missing != R_NilValue };
  if (job.has_missing) job.missing = edges_of(missing);
  SEXP holder = PROTECT(weft_glue_arena(&job.arena));
  weft_glue_run(control, make_edges, &job);
  SEXP out = PROTECT(edges_as_list(&job.out));
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

/* ---- graph = list(links, missing, type, self, values = NULL or c(centre, scale, unit)) ---- */

typedef struct { weft_irm_type type; int self; weft_irm_edges links, missing; double unit, log_scale; } graph_source;

static graph_source source_of(SEXP graph)
{
  graph_source g = { (weft_irm_type) Rf_asInteger(weft_glue_element(graph, "type")), Rf_asLogical(weft_glue_element(graph, "self")),
                     edges_of(weft_glue_element(graph, "links")), edges_of(weft_glue_element(graph, "missing")), 0, 0 };
  SEXP values = weft_glue_element(graph, "values");
  if (values != R_NilValue) {
    g.unit = REAL(values)[2];
    g.log_scale = log(REAL(values)[1]);
  }
  return g;
}

static weft_status open_graph(weft_ctx *ctx, weft_arena *mem, const graph_source *source, weft_irm_graph *out)
{
  return weft_irm_graph_make(ctx, mem, source->type, source->self, &source->links, &source->missing, source->unit,
                             source->log_scale, out);
}

/* ---- running ---- */

typedef struct {
  graph_source source;
  weft_irm_model model;
  int chains;
  weft_irm_chain *chain;
  const int32_t *z_from[2];
  const double *alpha_from, *beta_from, *best_from;
  const int32_t *best_z_from[2];
  int64_t done, sweeps;
  int chain0;
  weft_irm_trace trace;
} run_job;

/* Chains start from R's copies, so that a second try after a shortage of memory starts over. */
static weft_status run(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  run_job *job = data;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_irm_graph graph;
  WEFT_TRY(open_graph(ctx, &mem, &job->source, &graph));
  for (int c = 0; c < job->chains; c++) {
    weft_irm_chain *to = &job->chain[c];
    to->number = (uint32_t) (job->chain0 + c);
    to->best = job->best_from[c];
    for (int mode = 0; mode < 2; mode++) {
      const size_t n = (size_t) graph.n[mode], at = (size_t) c * n;
      if (n) memcpy(to->z[mode], job->z_from[mode] + at, n * sizeof(int32_t));
      if (n) memcpy(to->best_z[mode], job->best_z_from[mode] + at, n * sizeof(int32_t));
      to->alpha[mode] = job->alpha_from[4 * c + mode];
      to->best_alpha[mode] = job->alpha_from[4 * c + 2 + mode];
      to->beta[mode] = job->beta_from[4 * c + mode];
      to->best_beta[mode] = job->beta_from[4 * c + 2 + mode];
    }
  }
  WEFT_TRY(weft_irm_run_spread(ctx, backend->irm, &graph, &job->model, job->chains, job->chain, job->done, job->sweeps, &job->trace));
done:
  weft_arena_end(&mem);
  return st;
}

static double number(SEXP list, const char *name) { return Rf_asReal(weft_glue_element(list, name)); }

static weft_irm_model model_of(SEXP list)
{
  const double *k = REAL(weft_glue_element(list, "max_clusters")), *key = REAL(weft_glue_element(list, "key"));
  const double *hyper = REAL(weft_glue_element(list, "hyper"));
  weft_irm_model m = { .poisson = (int) number(list, "poisson"), .collapsed = (int) number(list, "collapsed"),
                       .k = { (int32_t) k[0], (int32_t) k[1] }, .attempts = (int) number(list, "attempts"),
                       .sample_alpha = (int) number(list, "sample_alpha"), .sample_beta = (int) number(list, "sample_beta"),
                       .alpha_prior = { hyper[0], hyper[1] }, .beta_prior = { hyper[2], hyper[3] },
                       .key = ((uint64_t) key[0] << 32) | (uint64_t) key[1] };
  return m;
}

enum { STATE_ROW, STATE_COL, STATE_ALPHA, STATE_BETA, STATE_BEST, STATE_BEST_ROW, STATE_BEST_COL, TRACE_LOG_POSTERIOR,
       TRACE_ROWS, TRACE_COLS, TRACE_ALPHA, TRACE_BETA, SAMPLE_ROW, SAMPLE_COL, STAGES, TRACE_ROW_FULL, TRACE_COL_FULL };

/* state: row, col (n x chains, from 0), alpha, beta (4 x chains: now and at the best), best, best_row, best_col.
 * plan: c(done, sweeps, thin, number of the first chain, from 0). Returns the new state and what the sweeps left. */
SEXP C_weft_irm_run(SEXP graph, SEXP model, SEXP state, SEXP plan, SEXP control)
{
  const char *fields[] = { "row", "col", "alpha", "beta", "best", "best_row", "best_col", "log_posterior", "row_clusters",
                           "col_clusters", "alpha_trace", "beta_trace", "row_samples", "col_samples", "stages", "row_full",
                           "col_full", "" };
  SEXP best = weft_glue_element(state, "best");
  run_job job = { .source = source_of(graph), .model = model_of(model), .chains = (int) Rf_xlength(best) };
  const int chains = job.chains, one_mode = job.source.type != WEFT_IRM_BIPARTITE;
  const R_xlen_t n[2] = { (R_xlen_t) job.source.links.n[0], one_mode ? 0 : (R_xlen_t) job.source.links.n[1] };
  job.done = (int64_t) REAL(plan)[0];
  job.sweeps = (int64_t) REAL(plan)[1];
  job.trace.thin = (int64_t) REAL(plan)[2];
  job.chain0 = (int) REAL(plan)[3];
  job.trace.kept = (job.done + job.sweeps) / job.trace.thin - job.done / job.trace.thin;
  const R_xlen_t steps = (R_xlen_t) job.sweeps * chains, kept = (R_xlen_t) job.trace.kept * chains;
  const R_xlen_t lengths[] = { n[0] * chains, n[1] * chains, 4 * chains, 4 * chains, chains, n[0] * chains, n[1] * chains, steps,
                               steps, steps, 2 * steps, 2 * steps, n[0] * kept, n[1] * kept, WEFT_IRM_STAGES, steps, steps };
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  for (int f = 0; fields[f][0]; f++) {
    const int real = f == STATE_ALPHA || f == STATE_BETA || f == STATE_BEST || f == TRACE_LOG_POSTERIOR || f == TRACE_ALPHA
                     || f == TRACE_BETA || f == STAGES;
    SET_VECTOR_ELT(out, f, Rf_allocVector(real ? REALSXP : INTSXP, lengths[f]));
    SEXP v = VECTOR_ELT(out, f);
    if (real) for (R_xlen_t i = 0; i < lengths[f]; i++) REAL(v)[i] = 0;
    else if (lengths[f]) memset(INTEGER(v), 0, (size_t) lengths[f] * sizeof(int));
  }
  int *z[2] = { INTEGER(VECTOR_ELT(out, STATE_ROW)), INTEGER(VECTOR_ELT(out, STATE_COL)) };
  int *best_z[2] = { INTEGER(VECTOR_ELT(out, STATE_BEST_ROW)), INTEGER(VECTOR_ELT(out, STATE_BEST_COL)) };
  job.chain = (weft_irm_chain *) R_alloc((size_t) chains, sizeof(weft_irm_chain));
  memset(job.chain, 0, (size_t) chains * sizeof(weft_irm_chain));
  for (int c = 0; c < chains; c++)
    for (int mode = 0; mode < 2; mode++) {
      job.chain[c].z[mode] = z[mode] + c * n[mode];
      job.chain[c].best_z[mode] = best_z[mode] + c * n[mode];
    }
  job.z_from[0] = INTEGER(weft_glue_element(state, "row"));
  job.z_from[1] = INTEGER(weft_glue_element(state, "col"));
  job.best_z_from[0] = INTEGER(weft_glue_element(state, "best_row"));
  job.best_z_from[1] = INTEGER(weft_glue_element(state, "best_col"));
  job.alpha_from = REAL(weft_glue_element(state, "alpha"));
  job.beta_from = REAL(weft_glue_element(state, "beta"));
  job.best_from = REAL(best);
  job.trace.log_posterior = REAL(VECTOR_ELT(out, TRACE_LOG_POSTERIOR));
  job.trace.clusters[0] = INTEGER(VECTOR_ELT(out, TRACE_ROWS));
  job.trace.clusters[1] = INTEGER(VECTOR_ELT(out, TRACE_COLS));
  job.trace.full[0] = INTEGER(VECTOR_ELT(out, TRACE_ROW_FULL));
  job.trace.full[1] = INTEGER(VECTOR_ELT(out, TRACE_COL_FULL));
  job.trace.alpha = REAL(VECTOR_ELT(out, TRACE_ALPHA));
  job.trace.beta = REAL(VECTOR_ELT(out, TRACE_BETA));
  job.trace.samples[0] = INTEGER(VECTOR_ELT(out, SAMPLE_ROW));
  job.trace.samples[1] = INTEGER(VECTOR_ELT(out, SAMPLE_COL));
  weft_glue_run(control, run, &job);
  memcpy(REAL(VECTOR_ELT(out, STAGES)), job.trace.stages, sizeof job.trace.stages);
  for (int c = 0; c < chains; c++) {
    const weft_irm_chain *from = &job.chain[c];
    REAL(VECTOR_ELT(out, STATE_BEST))[c] = from->best;
    for (int mode = 0; mode < 2; mode++) {
      REAL(VECTOR_ELT(out, STATE_ALPHA))[4 * c + mode] = from->alpha[mode];
      REAL(VECTOR_ELT(out, STATE_ALPHA))[4 * c + 2 + mode] = from->best_alpha[mode];
      REAL(VECTOR_ELT(out, STATE_BETA))[4 * c + mode] = from->beta[mode];
      REAL(VECTOR_ELT(out, STATE_BETA))[4 * c + 2 + mode] = from->best_beta[mode];
    }
  }
  UNPROTECT(1);
  return out;
}

/* ---- blocks and log posterior of given partitions ---- */

typedef struct { graph_source source; int32_t *z[2]; int32_t k[2]; double *links, *pairs, *log_factorials, *squares; } blocks_job;

static weft_status blocks(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  blocks_job *job = data;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_irm_graph graph;
  (void) backend;
  WEFT_TRY(open_graph(ctx, &mem, &job->source, &graph));
  *job->log_factorials = graph.log_factorials;
  WEFT_TRY(weft_irm_blocks(ctx, &graph, job->z, job->k, job->links, job->pairs, job->squares));
done:
  weft_arena_end(&mem);
  return st;
}

static SEXP blocks_of(SEXP graph, SEXP row, SEXP col, SEXP n_row_clusters, SEXP n_col_clusters, SEXP control)
{
  const char *fields[] = { "links", "pairs", "log_factorials", "squares", "" };
  blocks_job job = { source_of(graph), { INTEGER(row), INTEGER(col) },
                     { Rf_asInteger(n_row_clusters), Rf_asInteger(n_col_clusters) }, NULL, NULL, NULL, NULL };
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_allocMatrix(REALSXP, job.k[0], job.k[1]));
  SET_VECTOR_ELT(out, 1, Rf_allocMatrix(REALSXP, job.k[0], job.k[1]));
  SET_VECTOR_ELT(out, 2, Rf_allocVector(REALSXP, 1));
  if (job.source.unit > 0) {
    SET_VECTOR_ELT(out, 3, Rf_allocMatrix(REALSXP, job.k[0], job.k[1]));
    job.squares = REAL(VECTOR_ELT(out, 3));
  }
  job.links = REAL(VECTOR_ELT(out, 0));
  job.pairs = REAL(VECTOR_ELT(out, 1));
  job.log_factorials = REAL(VECTOR_ELT(out, 2));
  weft_glue_run(control, blocks, &job);
  UNPROTECT(1);
  return out;
}

/* row, col: labels from 0 (col is row again in a one-mode graph). */
SEXP C_weft_irm_blocks(SEXP graph, SEXP row, SEXP col, SEXP n_row_clusters, SEXP n_col_clusters, SEXP control)
{
  return blocks_of(graph, row, col, n_row_clusters, n_col_clusters, control);
}

SEXP C_weft_irm_log_posterior(SEXP graph, SEXP row, SEXP col, SEXP n_row_clusters, SEXP n_col_clusters, SEXP alpha, SEXP beta,
                              SEXP poisson, SEXP control)
{
  SEXP counted = PROTECT(blocks_of(graph, row, col, n_row_clusters, n_col_clusters, control));
  const graph_source source = source_of(graph);
  const int one_mode = source.type != WEFT_IRM_BIPARTITE;
  const int32_t k[2] = { Rf_asInteger(n_row_clusters), Rf_asInteger(n_col_clusters) };
  int64_t *sizes[2];
  for (int mode = 0; mode < 2; mode++) {
    SEXP z = mode == 0 ? row : col;
    sizes[mode] = (int64_t *) R_alloc((size_t) k[mode], sizeof(int64_t));
    memset(sizes[mode], 0, (size_t) k[mode] * sizeof(int64_t));
    for (R_xlen_t i = 0; i < Rf_xlength(z); i++) sizes[mode][INTEGER(z)[i]]++;
  }
  double sum = irm_log_crp(REAL(alpha)[0], sizes[0], k[0]) - REAL(VECTOR_ELT(counted, 2))[0];
  if (!one_mode) sum += irm_log_crp(REAL(alpha)[1], sizes[1], k[1]);
  for (int32_t m = 0; m < k[1]; m++)
    for (int32_t l = 0; l < (source.type == WEFT_IRM_UNDIRECTED ? m + 1 : k[0]); l++) {
      const size_t at = (size_t) l + (size_t) m * (size_t) k[0];
      const double links = REAL(VECTOR_ELT(counted, 0))[at], pairs = REAL(VECTOR_ELT(counted, 1))[at];
      if (source.unit > 0) sum += irm_f_real(REAL(beta), 1, links, REAL(VECTOR_ELT(counted, 3))[at], pairs);
      else sum += irm_f(Rf_asLogical(poisson), REAL(beta), links, pairs);
    }
  UNPROTECT(1);
  return Rf_ScalarReal(sum);
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
