/* Runs chains of nested groups. A sweep visits the nodes of every level and makes proposals to split and to merge;
 * every few sweeps the best partition near the sample is looked for. A sweep begins from labels alone and its draws are
 * those of (key, chain, sweep), so that neither threads nor how a run is cut into calls changes a label. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/nested/ascent.h"
#include "irm/cpu/nested/masked.h"
#include "irm/cpu/nested/run.h"
#include "irm/cpu/nested/large/slices.h"

/* Links up to which chains run side by side, with polls only when all have made a sweep or a round of a descent. */
#define SMALL_GRAPH 3e5
/* A masked pair takes as long as this many links. */
#define MASKED_WORK 4
/* Sweeps from one descent to the next, and rounds of it; sweeps with all proposals, then only one in LATER_SHARE. */
enum { DESCENT_EVERY = 10, DESCENT_ROUNDS = 6, FIRST_ROUNDS = 20, EARLY_SWEEPS = 60, LATER_SHARE = 5 };
/* A sweep of a small graph visits its nodes until there were this many visits, at most MAX_REPEATS times. */
enum { MIN_VISITS = 10000, MAX_REPEATS = 40 };

/* The stream of draws for a given partition; chains have their numbers. */
#define GIVEN_STREAM 0x7fffffffu

static void keep_best(irm_nested *t, weft_irm_chain *chain, double value)
{
  if (value <= chain->best) return;
  chain->best = value;
  irm_nested_get(t, chain->best_z, chain->best_upper);
  memcpy(chain->best_alpha, chain->alpha, sizeof chain->alpha);
  memcpy(chain->best_beta, chain->beta, sizeof chain->beta);
}

/* The state that a chain's labels and drawn links say. */
static weft_status set_state(weft_ctx *poll, irm_nested *t, irm_masked *masked, const weft_irm_chain *chain)
{
  if (masked->count) irm_masked_begin(t, masked, chain->drawn);
  return irm_nested_set(poll, t, chain->z, chain->upper);
}

static weft_status begin_sweep(weft_ctx *poll, irm_nested *t, irm_masked *masked, const weft_irm_chain *chain,
                               int64_t sweep)
{
  t->rng.stream = chain->number;
  t->sweep = sweep;
  t->counter = 0;
  return set_state(poll, t, masked, chain);
}

/* Keeps the partition that a descent has come to, if it is the best; the sample comes back but in the first sweep. */
static weft_status end_descent(weft_ctx *poll, irm_nested *t, irm_masked *masked, weft_irm_chain *chain, int64_t sweep)
{
  weft_status st = WEFT_OK;
  if (masked->count) WEFT_TRY(irm_masked_draw(poll, t, masked, masked->other));
  keep_best(t, chain, masked->count ? masked->value : -irm_nested_length(t));
  if (sweep == 1) irm_nested_get(t, chain->z, chain->upper);
  WEFT_TRY(set_state(poll, t, masked, chain));
done:
  return st;
}

/* Looks for the best partition near each sample; all chains make a round between two polls. The first sweep begins at
 * it. */
static weft_status descend(weft_ctx *ctx, irm_nested *t, irm_masked *masked, int chains, weft_irm_chain *chain,
                           int64_t sweep)
{
  weft_status st = WEFT_OK;
  const int rounds = sweep == 1 ? FIRST_ROUNDS : DESCENT_ROUNDS;
  for (int c = 0; c < chains; c++) t[c].idle = 0;
  for (int round = 0; round < rounds; round++) {
    int left = 0;
    if (chains == 1) {
      WEFT_TRY(irm_nested_descend_round(ctx, t));
    } else {
      WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 500 * (double) t->ends), dynamic)
      for (int c = 0; c < chains; c++)
        if (t[c].idle < 2) irm_nested_descend_round(NULL, &t[c]);
    }
    for (int c = 0; c < chains; c++) left += t[c].idle < 2;
    if (!left) break;
    WEFT_TRY(weft_poll(ctx, round, rounds));
  }
  for (int c = 0; c < chains; c++) WEFT_TRY(end_descent(ctx, &t[c], &masked[c], &chain[c], sweep));
done:
  return st;
}

/* The sweep itself, from a chain's labels to its labels. */
static weft_status one_sweep(weft_ctx *poll, irm_nested *t, irm_masked *masked, const weft_irm_model *model,
                             weft_irm_chain *chain)
{
  weft_status st = WEFT_OK;
  const int attempts = t->sweep <= EARLY_SWEEPS ? model->attempts : (model->attempts + LATER_SHARE - 1) / LATER_SHARE;
  const int repeats = t->n * MAX_REPEATS < MIN_VISITS ? MAX_REPEATS : (int) (MIN_VISITS / t->n);
  double by = 0;
  for (int repeat = 1; repeat < repeats; repeat++)
    for (int l = 0; l < t->top; l++) WEFT_TRY(irm_nested_visit_all(poll, t, l, 0, 1, &by));
  for (int l = 0; l < t->top; l++) {
    WEFT_TRY(irm_nested_visit_all(poll, t, l, 0, 1, &by));
    for (int n = 0; n < attempts; n++) {
      irm_nested_split_merge(t, l, 0);
      if (poll) WEFT_TRY(weft_poll(poll, n, attempts));
    }
  }
  irm_nested_get(t, chain->z, chain->upper);
  if (masked->count) WEFT_TRY(irm_masked_draw(poll, t, masked, chain->drawn));
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
static void record(irm_nested *t, const irm_masked *masked, weft_irm_chain *chain, const weft_irm_trace *trace, int c,
                   int64_t row, int64_t rows, int64_t sweep, int64_t done)
{
  const size_t at = (size_t) c * (size_t) rows + (size_t) row;
  const int modes = t->bipartite ? 2 : 1;
  const double value = masked->count ? masked->value : -irm_nested_length(t);
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
  double *expected = trace->expected + masked->count * ((sweep - 1) / trace->block - done / trace->block);
  for (int64_t m = 0; m < masked->count; m++) expected[m] += masked->expected[m];
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
  const double links = (double) graph->link_count[0] + MASKED_WORK * (double) graph->missing_count[0];
  const int lanes = links < SMALL_GRAPH && ctx->threads > 1 ? chains : 1;
  irm_nested *t;
  irm_masked *masked;
  memset(trace->stages, 0, sizeof trace->stages);
  WEFT_TAKE(t, &mem, (size_t) lanes);
  WEFT_TAKE(masked, &mem, (size_t) lanes);
  for (int c = 0; c < lanes; c++) {
    WEFT_TRY(irm_nested_make(ctx, &mem, graph, model->degrees, model->k, model->key, chain[c].number, &t[c]));
    WEFT_TRY(irm_masked_make(&mem, graph, &masked[c]));
    if (!masked[c].count) WEFT_TRY(irm_slices_make(&mem, &t[c], lanes == 1 ? ctx->threads : 1));
  }
  for (int64_t row = 0; row < sweeps; row++) {
    const int64_t sweep = done + row + 1;
    WEFT_TRY(weft_poll(ctx, (double) row, (double) sweeps));
    for (int first = 0; first < chains; first += lanes) {
      for (int c = 0; c < lanes; c++) WEFT_TRY(begin_sweep(ctx, &t[c], &masked[c], &chain[first + c], sweep));
      if (sweep % DESCENT_EVERY == 1) WEFT_TRY(descend(ctx, t, masked, lanes, chain + first, sweep));
      if (lanes == 1) {
        WEFT_TRY(one_sweep(ctx, t, masked, model, &chain[first]));
      } else {
        WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 1000 * links), dynamic)
        for (int c = 0; c < chains; c++) one_sweep(NULL, &t[c], &masked[c], model, &chain[c]);
      }
      for (int c = 0; c < lanes; c++)
        record(&t[c], &masked[c], &chain[first + c], trace, first + c, row, sweeps, sweep, done);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* All chains start with the same counts of missing pairs, but each with groups of its own. */
weft_status weft_irm_nested_starts(weft_ctx *ctx, const weft_irm_graph *graph, const weft_irm_model *model, int chains,
                                   int32_t *const z[2], int32_t *upper, int32_t *drawn)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  irm_masked masked;
  WEFT_TRY(irm_masked_make(&mem, graph, &masked));
  if (masked.count) WEFT_TRY(irm_masked_guess(ctx, &masked, drawn));
  if (masked.count) irm_masked_fill(&masked, drawn);
  for (int c = 0; c < chains; c++) {
    int32_t *const own[2] = { z[0] + c * graph->n[0], z[1] + c * graph->n[1] };
    if (c && masked.count) memcpy(drawn + c * masked.count, drawn, (size_t) masked.count * sizeof *drawn);
    WEFT_TRY(weft_irm_nested_start(ctx, masked.count ? &masked.graph : graph, model->degrees, model->key, model->k,
                                   (uint32_t) c, own, upper + c * weft_irm_nested_words(model->k)));
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Scans of a given partition's masked pairs that only settle, and those that the estimate is from. */
enum { SETTLING_SCANS = 4, SCANS = 8 };

/* With missing pairs: from the mean of the estimates of several scans. */
weft_status weft_irm_nested_length(weft_ctx *ctx, const weft_irm_graph *graph, const weft_irm_model *model,
                                   int32_t *const z[2], const int32_t *upper, double *length)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  irm_nested *t;
  irm_masked masked;
  double sum = 0, first = 0;
  WEFT_TAKE(t, &mem, 1);
  WEFT_TRY(irm_nested_make(ctx, &mem, graph, model->degrees, model->k, model->key, GIVEN_STREAM, t));
  WEFT_TRY(irm_masked_make(&mem, graph, &masked));
  if (!masked.count) WEFT_TRY(irm_slices_make(&mem, t, ctx->threads));
  for (int scan = 0; scan < (masked.count ? SETTLING_SCANS + SCANS : 0); scan++) {
    irm_masked_begin(t, &masked, masked.drawn);
    WEFT_TRY(irm_nested_set(ctx, t, z, upper));
    WEFT_TRY(irm_masked_draw(ctx, t, &masked, masked.drawn));
    if (scan == SETTLING_SCANS) first = masked.value;
    if (scan >= SETTLING_SCANS) sum += weft_exp(masked.value - first);
  }
  if (!masked.count) WEFT_TRY(irm_nested_set(ctx, t, z, upper));
  *length = masked.count ? -first - weft_log(sum / SCANS) : irm_nested_length(t);
done:
  weft_arena_end(&mem);
  return st;
}
