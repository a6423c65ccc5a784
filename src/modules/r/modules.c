/* .Call entry points of the room of modules. */
#include <string.h>
#include "core/r/record.h"
#include "modules/modules.h"

typedef struct {
  const double *z;
  size_t n, p;
  weft_modules_rule rule;
  int *index;
  double *value;
} neighbours_job;
WEFT_WORK(neighbours, neighbours_job,
          weft_modules_neighbours(ctx, job->z, job->n, job->p, &job->rule, job->index, job->value))

/* rule: list(k, least, positive). list(index, value), as modules.h describes them. */
SEXP C_weft_modules_neighbours(SEXP z, SEXP rule, SEXP control)
{
  weft_record given = weft_record_open(rule, "rule");
  neighbours_job job = { .z = REAL_RO(z), .n = (size_t) Rf_nrows(z), .p = (size_t) Rf_ncols(z) };
  job.rule.k = weft_record_size(&given, "k");
  job.rule.least = weft_record_number(&given, "least");
  job.rule.positive = weft_record_flag(&given, "positive");
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("index", "value"));
  job.index = INTEGER(weft_result_put(out, "index", weft_glue_matrix(INTSXP, (double) job.rule.k, (double) job.p)));
  job.value = REAL(weft_result_put(out, "value", weft_glue_matrix(REALSXP, (double) job.rule.k, (double) job.p)));
  WEFT_RUN_RETURN(out, control, neighbours, &job);
}

/* Pairs of genes, each once, which become a graph by rows. */
typedef struct {
  size_t p, pairs, shared;
  const int *from, *to, *order;
  const double *weight;
  int *label;
} communities_job;

/* Rows of the graph; neighbours ascend, as pairs are ordered by their second gene. */
static void fill_graph(const communities_job *job, weft_modules_graph *g, size_t *next)
{
  for (size_t e = 0; e < job->pairs; e++) g->start[job->from[e]]++, g->start[job->to[e]]++;
  for (size_t i = 0; i < job->p; i++) g->start[i + 1] += g->start[i];
  memcpy(next, g->start, job->p * sizeof *next);
  for (size_t e = 0; e < job->pairs; e++) {
    const int i = job->from[e] - 1, j = job->to[e] - 1;
    g->to[next[i]] = j, g->weight[next[i]++] = job->weight[e];
    g->to[next[j]] = i, g->weight[next[j]++] = job->weight[e];
  }
}

/* Finds the communities of R's graph without R: the work of weft_glue_run(). */
static weft_status communities(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  communities_job *job = data;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_modules_graph graph = { .p = job->p };
  size_t *next;
  (void) backend;
  WEFT_TAKE0(graph.start, &mem, job->p + 1);
  WEFT_TAKE(graph.to, &mem, 2 * job->pairs + 1);
  WEFT_TAKE(graph.weight, &mem, 2 * job->pairs + 1);
  WEFT_TAKE(next, &mem, job->p + 1);
  fill_graph(job, &graph, next);
  if (job->shared) WEFT_TRY(weft_modules_overlap(ctx, &graph, job->shared));
  WEFT_TRY(weft_modules_communities(ctx, &graph, job->order, job->label));
done:
  weft_arena_end(&mem);
  return st;
}

/* graph: list(from, to: genes from 1, each pair once, from < to, ordered by `to`, then `from`; weight; shared: how many
 * neighbours two genes must have in common, 0: weights stay as they are). order: genes from 0. Labels from 1. */
SEXP C_weft_modules_communities(SEXP graph, SEXP order, SEXP control)
{
  weft_record given = weft_record_open(graph, "graph");
  communities_job job = { .p = (size_t) Rf_xlength(order), .order = INTEGER_RO(order) };
  job.pairs = (size_t) Rf_xlength(weft_record_field(&given, "from"));
  job.from = weft_record_integers(&given, "from", (double) job.pairs);
  job.to = weft_record_integers(&given, "to", (double) job.pairs);
  job.weight = weft_record_doubles(&given, "weight", (double) job.pairs);
  job.shared = weft_record_size(&given, "shared");
  weft_record_close(&given);
  SEXP out = PROTECT(weft_glue_vector(INTSXP, (double) job.p));
  job.label = INTEGER(out);
  weft_glue_run(control, communities, &job);
  for (size_t i = 0; i < job.p; i++) job.label[i]++;
  UNPROTECT(1);
  return out;
}
