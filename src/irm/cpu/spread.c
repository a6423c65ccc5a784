/* Chains divided among the devices of a call; see core/together/spread.h. A chain's draws depend on the key and its
 * number alone, so each device runs its own chains and writes the results where a single run would have put them.
 *
 * If there are fewer chains than devices, the chains run one after another: their sweeps are run by a team, in which
 * each part has an engine with its share of the nodes. What is not part of a sweep, such as split-merge, is done once,
 * by the caller's thread. */
#include <string.h>
#include "core/together/spread.h"
#include "irm/both/state.h"
#include "irm/cpu/nested/run.h"

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

/* Runs one device's share of the chains; traces and samples go to that share's place in the whole call's. */
static weft_status run_part(weft_ctx *ctx, size_t part, void *data)
{
  chains_job *job = data;
  weft_status st = WEFT_OK;
  const size_t first = (size_t) weft_share_start((uint64_t) job->chains, part, job->parts);
  const size_t end = (size_t) weft_share_start((uint64_t) job->chains, part + 1, job->parts),
               rows = (size_t) job->sweeps;
  weft_irm_trace own = *job->trace;
  ctx->meeting = NULL; /* each draws all nodes of its chains */
  ctx->part = 0;
  memset(job->stages[part], 0, sizeof job->stages[part]);
  own.log_posterior += first * rows;
  own.alpha += 2 * first * rows;
  own.beta += 2 * first * rows;
  for (int mode = 0; mode < 2; mode++) {
    own.clusters[mode] += first * rows;
    own.full[mode] += first * rows;
    own.samples[mode] += first * (size_t) own.kept * (size_t) job->graph->n[mode];
  }
  if (end > first)
    st = weft_irm_run(ctx, job->ops, job->graph, job->model, (int) (end - first), job->chain + first, job->done,
                      job->sweeps, &own);
  if (end > first) memcpy(job->stages[part], own.stages, sizeof own.stages);
  return st;
}

/* ---- sweeps that all devices share ---- */

typedef struct {
  weft_irm_ops ops;
  const weft_irm_ops *each;
} shared_ops; /* `each`: what a part runs */

struct irm_engine {
  weft_arena mem;
  const weft_irm_ops *each;
  weft_team *team;
  int parts;
  struct irm_engine **part; /* each part's own, of its back end */
  int64_t **sizes;          /* of both modes: parts do not write to the same ones */
};

enum { LABELS, COUNT, BLOCK_SUMS, FETCH, PUT, KEEP, FETCH_BEST, CLOSE };

typedef struct {
  struct irm_engine *engine;
  irm_state *s;
  int what, flag; /* rename, or blocks */
  double done, total, *rows;
  irm_state *const *states;
  int chains;
} shared_call;

static weft_status open_part(weft_ctx *ctx, size_t part, void *data)
{
  shared_call *call = data;
  struct irm_engine *engine = call->engine;
  return engine->each->open(engine->each, ctx, call->states, call->chains, ctx->threads, &engine->part[part]);
}

/* One operation of one part. All have labels and blocks, so operations that only read them are left to the first. */
static weft_status run_call(weft_ctx *ctx, size_t part, void *data)
{
  const shared_call *call = data;
  struct irm_engine *engine = call->engine, *own = engine->part[part];
  irm_state state;
  if (call->what == CLOSE) {
    if (own) engine->each->close(own);
    return WEFT_OK;
  }
  state = *call->s;
  state.threads = ctx->threads;
  for (int mode = 0; mode < 2; mode++) {
    state.sizes[mode] = engine->sizes[part] + (mode ? state.k[0] : 0);
    memcpy(state.sizes[mode], call->s->sizes[mode], (size_t) state.k[mode] * sizeof(int64_t));
  }
  switch (call->what) {
  case LABELS: return engine->each->labels(ctx, own, &state, call->done, call->total);
  case COUNT: return engine->each->count(ctx, own, &state, call->flag, call->done, call->total);
  case PUT: return engine->each->put(ctx, own, &state);
  case BLOCK_SUMS: return part ? WEFT_OK : engine->each->block_sums(ctx, own, &state, call->rows);
  case FETCH: return part ? WEFT_OK : engine->each->fetch(ctx, own, &state, call->flag);
  case KEEP: return part ? WEFT_OK : engine->each->keep(ctx, own, &state);
  default: return part ? WEFT_OK : engine->each->fetch_best(ctx, own, &state);
  }
}

static weft_status run_all(weft_ctx *ctx, shared_call call)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_team_run(ctx, call.engine->team, run_call, &call));
  if (call.what != LABELS && call.what != COUNT) goto done;
  for (int mode = 0; mode < 2; mode++)
    memcpy(call.s->sizes[mode], call.engine->sizes[0] + (mode ? call.s->k[0] : 0),
           (size_t) call.s->k[mode] * sizeof(int64_t));
done:
  return st;
}

static void close_shared(struct irm_engine *engine)
{
  weft_arena mem = engine->mem; /* the engine itself lives in it */
  if (engine->team) {
    shared_call call = { .engine = engine, .what = CLOSE };
    weft_team_run(mem.ctx, engine->team, run_call, &call);
    weft_team_end(engine->team);
  }
  weft_arena_end(&mem);
}

/* Opens an engine of `each` on every part; close_shared() ends these and their threads. */
static weft_status open_shared(const weft_irm_ops *ops, weft_ctx *ctx, irm_state *const *states, int chains,
                               int threads, struct irm_engine **out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  struct irm_engine *engine = NULL;
  shared_call call = { .states = states, .chains = chains };
  (void) threads;
  WEFT_TAKE0(engine, &mem, 1);
  engine->mem = mem;
  engine->each = ((const shared_ops *) ops)->each;
  engine->parts = ctx->device_count;
  WEFT_TAKE0(engine->part, &engine->mem, (size_t) engine->parts);
  WEFT_TAKE0(engine->sizes, &engine->mem, (size_t) engine->parts);
  for (int r = 0; r < engine->parts; r++)
    WEFT_TAKE(engine->sizes[r], &engine->mem, (size_t) states[0]->k[0] + (size_t) states[0]->k[1]);
  WEFT_TRY(weft_team_begin(ctx, &engine->team));
  call.engine = engine;
  WEFT_TRY(weft_team_run(ctx, engine->team, open_part, &call));
  *out = engine;
done:
  if (st != WEFT_OK && engine) close_shared(engine);
  return st;
}

static weft_status shared_labels(weft_ctx *ctx, struct irm_engine *engine, irm_state *state, double done, double total)
{
  return run_all(ctx, (shared_call){ .engine = engine, .s = state, .what = LABELS, .done = done, .total = total });
}

static weft_status shared_count(weft_ctx *ctx, struct irm_engine *engine, irm_state *state, int rename, double done,
                                double total)
{
  return run_all(ctx, (shared_call){
                          .engine = engine, .s = state, .what = COUNT, .flag = rename, .done = done, .total = total });
}

static weft_status shared_block_sums(weft_ctx *ctx, struct irm_engine *engine, irm_state *state, double *rows)
{
  return run_all(ctx, (shared_call){ .engine = engine, .s = state, .what = BLOCK_SUMS, .rows = rows });
}

static weft_status shared_fetch(weft_ctx *ctx, struct irm_engine *engine, irm_state *state, int blocks)
{
  return run_all(ctx, (shared_call){ .engine = engine, .s = state, .what = FETCH, .flag = blocks });
}

static weft_status shared_put(weft_ctx *ctx, struct irm_engine *engine, irm_state *state)
{
  return run_all(ctx, (shared_call){ .engine = engine, .s = state, .what = PUT });
}

static weft_status shared_keep(weft_ctx *ctx, struct irm_engine *engine, irm_state *state)
{
  return run_all(ctx, (shared_call){ .engine = engine, .s = state, .what = KEEP });
}

static weft_status shared_fetch_best(weft_ctx *ctx, struct irm_engine *engine, irm_state *state)
{
  return run_all(ctx, (shared_call){ .engine = engine, .s = state, .what = FETCH_BEST });
}

static void shared_stages(struct irm_engine *engine, double seconds[WEFT_IRM_STAGES])
{
  engine->each->stages(engine->part[0], seconds);
}

static weft_status run_shared(weft_ctx *ctx, const weft_irm_ops *ops, const weft_irm_graph *graph,
                              const weft_irm_model *model, int chains, weft_irm_chain *chain, int64_t done,
                              int64_t sweeps, weft_irm_trace *trace)
{
  const shared_ops shared = { { ops->stays, open_shared, close_shared, shared_labels, shared_count, shared_block_sums,
                                shared_fetch, shared_put, shared_keep, shared_fetch_best, shared_stages },
                              ops };
  return weft_irm_run(ctx, &shared.ops, graph, model, chains, chain, done, sweeps, trace);
}

/* Chooses: one run on one device, chains dealt out, or with fewer chains than devices sweeps that all share. */
weft_status weft_irm_run_spread(weft_ctx *ctx, const weft_irm_ops *ops, const weft_irm_graph *graph,
                                const weft_irm_model *model, int chains, weft_irm_chain *chain, int64_t done,
                                int64_t sweeps, weft_irm_trace *trace)
{
  weft_status st = WEFT_OK;
  chains_job job = { .ops = ops,
                     .graph = graph,
                     .model = model,
                     .chains = chains,
                     .chain = chain,
                     .done = done,
                     .sweeps = sweeps,
                     .trace = trace,
                     .parts = (size_t) ctx->device_count };
  if (model->nested) return weft_irm_nested_run(ctx, graph, model, chains, chain, done, sweeps, trace);
  if (chains < ctx->device_count && graph->type == WEFT_IRM_BIPARTITE && !model->collapsed)
    return run_shared(ctx, ops, graph, model, chains, chain, done, sweeps, trace);
  if (job.parts == 1) return weft_irm_run(ctx, ops, graph, model, chains, chain, done, sweeps, trace);
  WEFT_TRY(weft_spread(ctx, run_part, &job));
  memset(trace->stages, 0, sizeof trace->stages);
  for (size_t part = 0; part < job.parts; part++)
    for (int k = 0; k < WEFT_IRM_STAGES; k++) trace->stages[k] += job.stages[part][k];
done:
  return st;
}
