/* Runs chains of nested groups. A sweep visits the nodes of every level and makes proposals to split and to merge;
 * every few sweeps the best partition near the sample is looked for. A sweep begins from labels alone and its draws are
 * those of (key, chain, sweep), so that neither threads nor how a run is cut into calls changes a label. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/nested/ascent.h"
#include "irm/cpu/nested/run.h"

/* Links up to which chains run side by side, a sweep between two polls. */
#define SMALL_GRAPH 3e5
/* Sweeps from one descent to the next, and rounds of it; sweeps with all proposals, then only one in LATER_SHARE. */
enum { DESCENT_EVERY = 10, DESCENT_ROUNDS = 6, FIRST_ROUNDS = 20, EARLY_SWEEPS = 60, LATER_SHARE = 5 };

static void keep_best(irm_nested *t, weft_irm_chain *chain, double value)
{
  if (value <= chain->best) return;
  chain->best = value;
  irm_nested_get(t, chain->best_z, chain->best_upper);
  memcpy(chain->best_alpha, chain->alpha, sizeof chain->alpha);
  memcpy(chain->best_beta, chain->beta, sizeof chain->beta);
}

/* A sweep of one chain, from its labels to its labels; the first one begins at the best partition near them. */
static weft_status one_sweep(weft_ctx *poll, irm_nested *t, const weft_irm_model *model, weft_irm_chain *chain,
                             int64_t sweep)
{
  weft_status st = WEFT_OK;
  const int attempts = sweep <= EARLY_SWEEPS ? model->attempts : (model->attempts + LATER_SHARE - 1) / LATER_SHARE;
  double by = 0;
  t->sweep = sweep;
  t->counter = 0;
  if (sweep % DESCENT_EVERY == 1) {
    irm_nested_set(t, chain->z, chain->upper);
    WEFT_TRY(irm_nested_descend(poll, t, sweep == 1 ? FIRST_ROUNDS : DESCENT_ROUNDS));
    keep_best(t, chain, -irm_nested_length(t));
    if (sweep == 1) irm_nested_get(t, chain->z, chain->upper);
  }
  irm_nested_set(t, chain->z, chain->upper);
  for (int l = 0; l < t->top; l++) {
    WEFT_TRY(irm_nested_visit_all(poll, t, l, 0, 1, &by));
    for (int n = 0; n < attempts; n++) {
      irm_nested_split_merge(t, l, 0);
      if (poll) WEFT_TRY(weft_poll(poll, n, attempts));
    }
  }
  irm_nested_get(t, chain->z, chain->upper);
done:
  return st;
}

/* Labels from 0 by first appearance. */
static void relabel(const int32_t *z, int64_t n, int32_t k, int32_t *names, int32_t *out)
{
  int32_t next = 0;
  for (int32_t r = 0; r < k; r++) names[r] = -1;
  for (int64_t i = 0; i < n; i++) {
    if (names[z[i]] < 0) names[z[i]] = next++;
    out[i] = names[z[i]];
  }
}

/* Writes row `row` of the chain's traces, and in every thin-th sweep the labels. */
static void record(irm_nested *t, weft_irm_chain *chain, const weft_irm_trace *trace, int c, int64_t row, int64_t rows,
                   int64_t sweep, int64_t done)
{
  const size_t at = (size_t) c * (size_t) rows + (size_t) row;
  const int modes = t->bipartite ? 2 : 1;
  const double value = -irm_nested_length(t);
  trace->log_posterior[at] = value;
  keep_best(t, chain, value);
  for (int mode = 0; mode < modes; mode++) {
    trace->clusters[mode][at] = t->level[0].count[mode];
    trace->full[mode][at] = t->level[0].spares[mode] == 0 && t->level[0].present[mode] > t->level[0].count[mode];
  }
  for (int which = 0; which < 2; which++) {
    const size_t slot = 2 * (size_t) c * (size_t) rows + (size_t) which * (size_t) rows + (size_t) row;
    trace->alpha[slot] = which < modes ? chain->alpha[which] : 0;
    trace->beta[slot] = chain->beta[which];
  }
  if (sweep % trace->thin) return;
  const int64_t slot = sweep / trace->thin - done / trace->thin - 1;
  for (int mode = 0; mode < modes; mode++) {
    const int64_t n = t->graph->n[mode];
    int32_t *to = trace->samples[mode] + ((size_t) c * (size_t) trace->kept + (size_t) slot) * (size_t) n;
    relabel(chain->z[mode], n, t->level[0].k, t->order, to);
  }
}

/* Chains run side by side on small graphs, and one after another, with polls inside sweeps, on larger ones. */
weft_status weft_irm_nested_run(weft_ctx *ctx, const weft_irm_graph *graph, const weft_irm_model *model, int chains,
                                weft_irm_chain *chain, int64_t done, int64_t sweeps, weft_irm_trace *trace)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double links = (double) graph->link_count[0];
  const int beside = links < SMALL_GRAPH && chains > 1 && ctx->threads > 1;
  irm_nested *t;
  memset(trace->stages, 0, sizeof trace->stages);
  WEFT_TAKE(t, &mem, (size_t) (beside ? chains : 1));
  for (int c = 0; c < (beside ? chains : 1); c++)
    WEFT_TRY(irm_nested_make(ctx, &mem, graph, model->degrees, model->k, model->key, chain[c].number, &t[c]));
  if (!beside) WEFT_TRY(irm_nested_share(&mem, t, ctx->threads));
  for (int64_t row = 0; row < sweeps; row++) {
    const int64_t sweep = done + row + 1;
    WEFT_TRY(weft_poll(ctx, (double) row, (double) sweeps));
    if (beside) {
      WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 1000 * links), dynamic)
      for (int c = 0; c < chains; c++) {
        one_sweep(NULL, &t[c], model, &chain[c], sweep);
        record(&t[c], &chain[c], trace, c, row, sweeps, sweep, done);
      }
      continue;
    }
    for (int c = 0; c < chains; c++) {
      t->rng.stream = chain[c].number;
      WEFT_TRY(one_sweep(ctx, t, model, &chain[c], sweep));
      record(t, &chain[c], trace, c, row, sweeps, sweep, done);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_irm_nested_length(weft_ctx *ctx, const weft_irm_graph *graph, int degrees, const int32_t k[2],
                                   int32_t *const z[2], const int32_t *upper, double *length)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  irm_nested *t;
  WEFT_TAKE(t, &mem, 1);
  WEFT_TRY(irm_nested_make(ctx, &mem, graph, degrees, k, 0, 0, t));
  irm_nested_set(t, z, upper);
  *length = irm_nested_length(t);
done:
  weft_arena_end(&mem);
  return st;
}
