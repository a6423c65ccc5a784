/* Running chains: sweeps, traces, samples and the best partition so far.
 *
 * A sweep is: the labels of each mode (blocked or collapsed Gibbs); label swaps; split-merge proposals; α and β. Every
 * draw is a function of (key, chain, purpose, sweep, index), so that neither threads nor how a run is cut into calls
 * changes a bit. Small graphs run one chain per thread; in large ones, threads share the nodes of one chain. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/blocked.h"
#include "irm/cpu/collapsed.h"
#include "irm/cpu/greedy_ascent.h"
#include "irm/cpu/joins.h"
#include "irm/cpu/split/trials.h"

/* Work of a sweep, in cluster scores, below which chains run side by side without a poll in between. */
#define SMALL_SWEEP 1e8
/* From this much work on, if there are fewer chains than half of the threads, all threads share the work of one
 * chain. */
#define SHARED_SWEEP 1e6
/* Gains of a pass over the nodes (greedy_ascent.c) up to which ascents of several chains run at once between two
 * polls. */
#define SMALL_PASS 5e6
/* Split-merge proposals serve to find the clusters: after EARLY_SWEEPS sweeps only one in LATER_SHARE is made. */
enum { EARLY_SWEEPS = 60, LATER_SHARE = 5 };
/* Early on, no proposals are made in a mode that lost more than this share of its clusters in the sweep: it is still
 * settling. */
#define SETTLING 0.04
/* Work of a chain between two polls when they run side by side, and what a sweep and a proposal cost at least. */
#define BATCH 5e6
#define SWEEP_OVERHEAD 1e4
/* `poll` NULL: inside a parallel region. */
static weft_status look(weft_ctx *poll, double done, double total)
{
  return poll ? weft_poll(poll, done, total) : WEFT_OK;
}

/* What the chains of a run share. `stays`: labels and blocks do, on a device between sweeps. `abreast`: threads that
 * run one chain each (all of them share the proposals), or 0. */
typedef struct irm_run {
  const weft_irm_ops *ops;
  struct irm_engine *engine;
  int stays, abreast;
} irm_run;

/* To the host, for what works there; the device's labels and blocks remain valid until the host's change. */
static weft_status fetch(weft_ctx *poll, const irm_run *run, irm_state *state)
{
  weft_status st = WEFT_OK;
  if (state->on_device && !state->on_host) WEFT_TRY(run->ops->fetch(poll, run->engine, state, 1));
  state->on_host = 1;
done:
  return st;
}

static weft_status blocked_labels(weft_ctx *poll, const irm_run *run, irm_state *state, double done, double total)
{
  weft_status st = WEFT_OK;
  const weft_irm_ops *counting = run->stays ? run->ops : &weft_irm_cpu;
  if (run->stays && !state->on_device) WEFT_TRY(run->ops->put(poll, run->engine, state));
  state->on_device = run->stays;
  state->on_host = !run->stays;
  for (int mode = 0; mode < state->modes; mode++) irm_draw_sticks(state, mode);
  WEFT_TRY(run->ops->labels(poll, run->engine, state, done, total));
  for (int mode = 0; mode < state->modes; mode++) irm_swap_labels(state, mode);
  WEFT_TRY(counting->count(poll, run->engine, state, 1, done, total));
  for (int mode = 0; mode < state->modes; mode++) irm_state_count_active(state, mode);
done:
  return st;
}

static weft_status new_labels(weft_ctx *poll, const irm_run *run, irm_state *state, double done, double total)
{
  weft_status st = WEFT_OK;
  state->before[0] = state->active_count[0];
  state->before[1] = state->modes == 2 ? state->active_count[1] : 0;
  state->counter = 0;
  if (state->model->collapsed) {
    WEFT_TRY(irm_count_blocks(poll, state, done, total));
    WEFT_TRY(run->ops->labels(poll, run->engine, state, done, total));
  } else {
    WEFT_TRY(blocked_labels(poll, run, state, done, total));
  }
done:
  return st;
}

/* Joins parts of clusters, in the sweeps that a chain starts with. */
static weft_status join_clusters(weft_ctx *poll, const irm_run *run, irm_state *state)
{
  weft_status st = WEFT_OK;
  int64_t joined;
  if (state->one_mode || !state->model->attempts || state->sweep > IRM_JOINING_SWEEPS) return st;
  WEFT_TRY(fetch(poll, run, state));
  WEFT_TRY(irm_join_all(poll, state, &joined));
  if (joined) state->on_device = 0;
done:
  return st;
}

/* Proposals of chains that are at the same sweep; `some` has room for as many. */
static weft_status split_and_merge(weft_ctx *poll, const irm_run *run, irm_state *const *states, int chains,
                                   irm_state **some)
{
  weft_status st = WEFT_OK;
  const irm_state *first = states[0];
  const int early = first->sweep <= EARLY_SWEEPS, most = first->model->attempts;
  const int attempts = early ? most : (most + LATER_SHARE - 1) / LATER_SHARE;
  for (int mode = 0; mode < first->modes && attempts; mode++) {
    int settled = 0;
    for (int c = 0; c < chains; c++) {
      irm_state *state = states[c];
      if (early && state->active_count[mode] < (1 - SETTLING) * state->before[mode]) continue;
      WEFT_TRY(fetch(poll, run, state));
      some[settled++] = state;
    }
    if (settled) WEFT_TRY(irm_split_merge(poll, some, settled, mode, attempts));
    for (int c = 0; c < settled; c++)
      if (some[c]->queue.changed) some[c]->on_device = 0;
  }
done:
  return st;
}

static weft_status new_parameters(weft_ctx *poll, const irm_run *run, irm_state *state)
{
  weft_status st = WEFT_OK;
  for (int mode = 0; mode < state->modes && state->model->sample_alpha; mode++) irm_sample_alpha(state, mode);
  if (state->model->sample_beta) WEFT_TRY(fetch(poll, run, state));
  if (state->model->sample_beta) irm_sample_beta(state);
done:
  return st;
}

/* ---- what is kept of a sweep ---- */

/* Labels from 0 by first appearance; `names` holds k words. */
static void relabel(const int32_t *z, int64_t n, int32_t k, int32_t *names, int32_t *out)
{
  int32_t next = 0;
  for (int32_t l = 0; l < k; l++) names[l] = -1;
  for (int64_t i = 0; i < n; i++) {
    if (names[z[i]] < 0) names[z[i]] = next++;
    out[i] = names[z[i]];
  }
}

/* Notes the present labels and parameters as the chain's best, worth `value`; on a device the labels stay there. */
static weft_status keep_best(weft_ctx *poll, const irm_run *run, irm_state *state, double value)
{
  weft_status st = WEFT_OK;
  weft_irm_chain *chain = state->chain;
  chain->best = value;
  state->best_on_device = state->on_device;
  if (state->on_device) WEFT_TRY(run->ops->keep(poll, run->engine, state));
  for (int mode = 0; mode < state->modes; mode++) {
    if (!state->on_device)
      memcpy(chain->best_z[mode], state->z[mode], (size_t) state->graph->n[mode] * sizeof(int32_t));
    chain->best_alpha[mode] = chain->alpha[mode];
  }
  memcpy(chain->best_beta, chain->beta, sizeof chain->beta);
done:
  return st;
}

/* One greedy ascent, in sweeps that have one: what it finds is kept when it is the chain's best so far, and the
 * sample is put back. */
static weft_status ascend(weft_ctx *poll, const irm_run *run, irm_state *state)
{
  weft_status st = WEFT_OK;
  double value;
  const int from = irm_ascent_start(state);
  if (from == IRM_STAY) return st;
  WEFT_TRY(fetch(poll, run, state));
  state->on_device = 0;
  if (state->best_on_device) WEFT_TRY(run->ops->fetch_best(poll, run->engine, state));
  state->best_on_device = 0;
  WEFT_TRY(irm_ascend(poll, state, from == IRM_FROM_BEST));
  irm_state_block_sums(state);
  value = irm_state_log_posterior(state);
  if (value > state->chain->best) WEFT_TRY(keep_best(poll, run, state, value));
  irm_ascend_back(state);
done:
  return st;
}

/* Whether there might have been more clusters than `max_clusters`: in the collapsed sampler, when all are occupied; in
 * the blocked one, when the last of the sticks, which stands for all that would follow, has several nodes. As long as
 * it has one at most, sticks without an end give the same partitions the same probabilities. */
static int is_full(const irm_state *state, int mode)
{
  const int32_t k = state->k[mode];
  if (state->model->collapsed) return state->active_count[mode] == k && state->graph->n[mode] > k;
  return state->sizes[mode][k - 1] > 1;
}

/* Writes row `row` of a chain's traces, keeps the best partition, and in every thin-th sweep the labels. `rows`:
 * sweeps of this call, `done`: sweeps before it. */
static weft_status record(weft_ctx *poll, const irm_run *run, irm_state *state, const weft_irm_trace *trace, int chain,
                          int64_t row, int64_t rows, int64_t done)
{
  weft_status st = WEFT_OK;
  weft_irm_chain *c = state->chain;
  const size_t at = (size_t) chain * (size_t) rows + (size_t) row;
  double value;
  if (state->on_device)
    WEFT_TRY(run->ops->block_sums(poll, run->engine, state, state->block_sums));
  else
    irm_state_block_sums(state);
  value = irm_state_log_posterior(state);
  trace->log_posterior[at] = value;
  for (int mode = 0; mode < state->modes; mode++) {
    trace->clusters[mode][at] = state->active_count[mode];
    trace->full[mode][at] = is_full(state, mode);
    trace->alpha[2 * (size_t) chain * (size_t) rows + (size_t) mode * (size_t) rows + (size_t) row] = c->alpha[mode];
  }
  for (int which = 0; which < 2; which++)
    trace->beta[2 * (size_t) chain * (size_t) rows + (size_t) which * (size_t) rows + (size_t) row] = c->beta[which];
  if (value > c->best) WEFT_TRY(keep_best(poll, run, state, value));
  WEFT_TRY(ascend(poll, run, state));
  if (state->sweep % trace->thin) goto done;
  if (state->on_device && !state->on_host) WEFT_TRY(run->ops->fetch(poll, run->engine, state, 0));
  const int64_t slot = state->sweep / trace->thin - done / trace->thin - 1;
  for (int mode = 0; mode < state->modes; mode++) {
    int32_t *to =
        trace->samples[mode] + ((size_t) chain * (size_t) trace->kept + (size_t) slot) * (size_t) state->graph->n[mode];
    relabel(state->z[mode], state->graph->n[mode], state->k[mode], state->place[mode], to);
    irm_state_count_active(state, mode);
  }
done:
  return st;
}

/* Labels back to the chain when the device has them. */
static weft_status finish(weft_ctx *ctx, const irm_run *run, irm_state *state)
{
  weft_status st = WEFT_OK;
  if (state->on_device) WEFT_TRY(run->ops->fetch(ctx, run->engine, state, 0));
  if (state->best_on_device) WEFT_TRY(run->ops->fetch_best(ctx, run->engine, state));
done:
  return st;
}

/* The blocks of the labels that a run starts from. */
static weft_status first_count(weft_ctx *ctx, const irm_run *run, irm_state *state)
{
  weft_status st = WEFT_OK;
  if (!run->stays) return irm_count_blocks(ctx, state, 0, 1);
  irm_state_count_begin(state);
  WEFT_TRY(run->ops->put(ctx, run->engine, state));
  WEFT_TRY(run->ops->count(ctx, run->engine, state, 0, 0, 1));
  state->on_device = 1;
done:
  return st;
}

/* The labels of chains that run side by side. */
static void labels_abreast(const irm_run *run, irm_state *const *states, int chains)
{
  const int threads = states[0]->threads;
  for (int c = 0; c < chains; c++) states[c]->threads = 1;
  WEFT_PARALLEL_FOR(run->abreast, dynamic)
  for (int c = 0; c < chains; c++) new_labels(NULL, run, states[c], 0, 1);
  for (int c = 0; c < chains; c++) states[c]->threads = threads;
}

/* One sweep of chains, one after another or side by side, without the proposals. */
static weft_status sweep_all(weft_ctx *poll, const irm_run *run, irm_state *const *states, int chains, irm_state **some,
                             double done, double total)
{
  weft_status st = WEFT_OK;
  if (run->abreast) labels_abreast(run, states, chains);
  for (int c = 0; c < chains && !run->abreast; c++) WEFT_TRY(new_labels(poll, run, states[c], done, total));
  for (int c = 0; c < chains; c++) WEFT_TRY(join_clusters(poll, run, states[c]));
  WEFT_TRY(split_and_merge(poll, run, states, chains, some));
  for (int c = 0; c < chains; c++) {
    WEFT_TRY(look(poll, done, total));
    WEFT_TRY(new_parameters(poll, run, states[c]));
  }
done:
  return st;
}

/* Traces of all chains, and their ascents. */
static weft_status record_all(weft_ctx *poll, const irm_run *run, irm_state *const *states, int chains,
                              const weft_irm_trace *trace, int64_t row, int64_t rows, int64_t done)
{
  weft_status st = WEFT_OK;
  if (run->abreast) {
    WEFT_PARALLEL_FOR(run->abreast, dynamic)
    for (int c = 0; c < chains; c++) record(NULL, run, states[c], trace, c, row, rows, done);
    return weft_poll(poll, (double) row, (double) rows);
  }
  for (int c = 0; c < chains; c++) WEFT_TRY(record(poll, run, states[c], trace, c, row, rows, done));
done:
  return st;
}

/* Time that no stage of a device accounts for is the host's: between stages and between sweeps. */
static void account_for(double took, double stages[WEFT_IRM_STAGES])
{
  for (int k = 0; k < WEFT_IRM_STAGE_OTHER; k++) took -= stages[k];
  stages[WEFT_IRM_STAGE_OTHER] = took;
}

/* How the threads are shared out: `work` of a chain's sweep in cluster scores, `threads` of each chain. */
typedef struct irm_plan {
  double work;
  int side_by_side, abreast, threads;
} irm_plan;

static irm_plan plan_of(const weft_ctx *ctx, const weft_irm_ops *ops, const weft_irm_graph *graph,
                        const weft_irm_model *model, int chains)
{
  const double k = (double) model->k[0] + model->k[1], nodes = (double) graph->n[0] + (double) graph->n[1];
  const double pairs = (double) model->k[0] * (model->k[1] ? model->k[1] : model->k[0]);
  const double work =
      k * (2.0 * (double) graph->link_count[0] + 10 * nodes) + (model->collapsed ? 10 * nodes * pairs : 0);
  const int few = 2 * chains < ctx->threads && work > SHARED_SWEEP; /* too few chains to keep the threads busy */
  const int small = ops == &weft_irm_cpu && chains > 1 && ctx->threads > 1 && work < SMALL_SWEEP;
  irm_plan plan = { work, small && !few, 0, 1 };
  if (small && few && graph->type == WEFT_IRM_BIPARTITE && nodes * pairs < SMALL_PASS) plan.abreast = chains;
  if (!plan.side_by_side) plan.threads = weft_threads_worth(ctx->threads, work);
  return plan;
}

/* Runs all chains on one back end, side by side or one after another as plan_of() says; labels, parameters and best
 * partitions are the chains' own memory. On an error status they are not to be used. */
weft_status weft_irm_run(weft_ctx *ctx, const weft_irm_ops *ops, const weft_irm_graph *graph,
                         const weft_irm_model *model, int chains, weft_irm_chain *chain, int64_t done, int64_t sweeps,
                         weft_irm_trace *trace)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  irm_state *states, **pointers, **some;
  irm_run run = { ops, NULL, ops->stays, 0 };
  const irm_plan plan = plan_of(ctx, ops, graph, model, chains);
  const int side_by_side = plan.side_by_side, threads = plan.threads;
  run.abreast = plan.abreast;
  memset(trace->stages, 0, sizeof trace->stages);
  WEFT_TAKE0(states, &mem, (size_t) chains);
  WEFT_TAKE(pointers, &mem, (size_t) chains);
  WEFT_TAKE(some, &mem, (size_t) chains);
  for (int c = 0; c < chains; c++) {
    WEFT_TRY(irm_state_make(ctx, &mem, graph, model, &chain[c], threads, &states[c]));
    if (model->attempts) WEFT_TRY(irm_trials_make(&mem, &states[c], chains));
    states[c].index = c;
    pointers[c] = &states[c];
  }
  WEFT_TRY(ops->open(ops, ctx, pointers, chains, threads, &run.engine));
  for (int c = 0; c < chains; c++) WEFT_TRY(first_count(ctx, &run, &states[c]));
  const double each = plan.work + SWEEP_OVERHEAD * (1 + model->attempts), batch = side_by_side ? BATCH / each : 1;
  const double started = weft_seconds();
  for (int64_t row = 0, next; row < sweeps; row = next) {
    WEFT_TRY(weft_poll(ctx, (double) row, (double) sweeps));
    next = row + (batch < 1 ? 1 : (int64_t) batch);
    if (next > sweeps) next = sweeps;
    if (side_by_side) {
      WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, chains * (double) (next - row) * each), dynamic)
      for (int c = 0; c < chains; c++)
        for (int64_t r = row; r < next; r++) {
          states[c].sweep = done + r + 1;
          sweep_all(NULL, &run, &pointers[c], 1, &some[c], 0, 1);
          record(NULL, &run, &states[c], trace, c, r, sweeps, done);
        }
    } else {
      for (int c = 0; c < chains; c++) states[c].sweep = done + row + 1;
      WEFT_TRY(sweep_all(ctx, &run, pointers, chains, some, (double) row, (double) sweeps));
      WEFT_TRY(record_all(ctx, &run, pointers, chains, trace, row, sweeps, done));
    }
  }
  const double took = weft_seconds() - started;
  for (int c = 0; c < chains; c++) WEFT_TRY(finish(ctx, &run, &states[c]));
  if (run.engine) ops->stages(run.engine, trace->stages);
  if (trace->stages[WEFT_IRM_STAGE_ROWS] > 0) account_for(took, trace->stages);
done:
  if (run.engine) ops->close(run.engine);
  weft_arena_end(&mem);
  return st;
}
