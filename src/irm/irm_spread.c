/* Chains dealt over the devices of a call; see base/spread.h. A chain's draws depend on the key and its number alone, so each
 * device runs its own chains and writes them where one run would have. */
#include <string.h>
#include "../base/spread.h"
#include "irm.h"

typedef struct {
  const weft_irm_ops *ops;
  const weft_irm_graph *graph;
  const weft_irm_model *model;
  int chains;
  weft_irm_chain *chain;
  int64_t done, sweeps;
  weft_irm_trace *trace;
  size_t parts;
  double stages[WEFT_MOST_DEVICES][WEFT_IRM_STAGES];
} chains_job;

static weft_status run_part(weft_ctx *ctx, size_t part, void *data)
{
  chains_job *job = data;
  weft_status st = WEFT_OK;
  const size_t first = (size_t) weft_share_start((uint64_t) job->chains, part, job->parts);
  const size_t end = (size_t) weft_share_start((uint64_t) job->chains, part + 1, job->parts), rows = (size_t) job->sweeps;
  weft_irm_trace own = *job->trace;
  memset(job->stages[part], 0, sizeof job->stages[part]);
  own.log_posterior += first * rows;
  own.alpha += 2 * first * rows;
  own.beta += 2 * first * rows;
  for (int mode = 0; mode < 2; mode++) {
    own.clusters[mode] += first * rows;
    own.samples[mode] += first * (size_t) own.kept * (size_t) job->graph->n[mode];
  }
  if (end > first)
    st = weft_irm_run(ctx, job->ops, job->graph, job->model, (int) (end - first), job->chain + first, job->done, job->sweeps, &own);
  if (end > first) memcpy(job->stages[part], own.stages, sizeof own.stages);
  return st;
}

weft_status weft_irm_run_spread(weft_ctx *ctx, const weft_irm_ops *ops, const weft_irm_graph *graph, const weft_irm_model *model,
                                int chains, weft_irm_chain *chain, int64_t done, int64_t sweeps, weft_irm_trace *trace)
{
  weft_status st = WEFT_OK;
  chains_job job = { .ops = ops, .graph = graph, .model = model, .chains = chains, .chain = chain, .done = done, .sweeps = sweeps,
                     .trace = trace, .parts = (size_t) ctx->device_count };
  if (job.parts == 1) return weft_irm_run(ctx, ops, graph, model, chains, chain, done, sweeps, trace);
  WEFT_TRY(weft_spread(ctx, run_part, &job));
  memset(trace->stages, 0, sizeof trace->stages);
  for (size_t part = 0; part < job.parts; part++)
    for (int k = 0; k < WEFT_IRM_STAGES; k++) trace->stages[k] += job.stages[part][k];
done:
  return st;
}
