/* The blocked sweep on the CPU: the operations of irm.h. */
#include <string.h>
#include "core/together/exchange.h"
#include "irm/cpu/blocked.h"
#include "irm/cpu/collapsed.h"
#include "irm/cpu/real.h"

/* Cluster scores between two polls. */
#define BLOCKED_SLICE 1e9
/* Block contributions between two polls. */
#define COLLAPSED_SLICE 1e7

/* One set of tables per chain, since chains may run side by side. */
struct irm_engine {
  weft_arena mem;
  irm_blocked **blocked;
  irm_real **real;
};

static weft_status look(weft_ctx *poll, double done, double total)
{
  return poll ? weft_poll(poll, done, total) : WEFT_OK;
}

/* Makes the tables of each chain that needs them, in memory that close_engine() ends; the collapsed sampler has
 * none. */
static weft_status open_engine(const weft_irm_ops *ops, weft_ctx *ctx, irm_state *const *states, int chains,
                               int threads, struct irm_engine **out)
{
  weft_status st = WEFT_OK;
  (void) ops;
  weft_arena mem = weft_arena_begin(ctx);
  struct irm_engine *engine;
  WEFT_TAKE0(engine, &mem, 1);
  WEFT_TAKE0(engine->blocked, &mem, (size_t) chains);
  WEFT_TAKE0(engine->real, &mem, (size_t) chains);
  for (int c = 0; c < chains && !states[c]->model->collapsed; c++) {
    if (states[c]->graph->unit > 0)
      WEFT_TRY(irm_real_make(&mem, states[c], threads, &engine->real[c]));
    else
      WEFT_TRY(irm_blocked_make(ctx, &mem, states[c], threads, &engine->blocked[c]));
  }
  engine->mem = mem;
  *out = engine;
  return st;
done:
  weft_arena_end(&mem);
  return st;
}

static void close_engine(struct irm_engine *engine)
{
  weft_arena mem = engine->mem;
  weft_arena_end(&mem);
}

static void count_sizes(irm_state *state, int mode)
{
  memset(state->sizes[mode], 0, (size_t) state->k[mode] * sizeof(int64_t));
  for (int64_t i = 0; i < state->graph->n[mode]; i++) state->sizes[mode][state->z[mode][i]]++;
}

static weft_status collapsed_labels(weft_ctx *poll, irm_state *state, double done, double total)
{
  weft_status st = WEFT_OK;
  for (int mode = 0; mode < state->modes; mode++)
    for (int64_t first = 0, last; first < state->graph->n[mode]; first = last) {
      const double blocks = (double) state->active_count[mode] * (double) state->active_count[irm_other(state, mode)];
      last = irm_slice_end(&state->graph->links[mode], first, state->graph->n[mode], blocks + 10, 1, COLLAPSED_SLICE);
      irm_collapsed_nodes(state, mode, first, last);
      WEFT_TRY(look(poll, done, total));
    }
done:
  return st;
}

/* Draws all labels of a chain. Where several parts meet, each draws its share of the nodes, and waits for the
 * others before the sizes are counted. */
static weft_status labels(weft_ctx *poll, struct irm_engine *engine, irm_state *state, double done, double total)
{
  weft_status st = WEFT_OK;
  irm_blocked *blocked = engine->blocked[state->index];
  irm_real *real = engine->real[state->index];
  if (state->model->collapsed) return collapsed_labels(poll, state, done, total);
  if (real) irm_real_draw(real, state);
  for (int mode = 0; mode < state->modes; mode++) {
    const double k = (double) (real ? state->k[mode] : blocked->width[mode]);
    const weft_meeting *parts = poll ? poll->meeting : NULL; /* which all write to the same labels */
    const int64_t begin = parts ? irm_share_start(state->graph, mode, state->k, poll->part, parts->parts) : 0;
    const int64_t end =
        parts ? irm_share_start(state->graph, mode, state->k, poll->part + 1, parts->parts) : state->graph->n[mode];
    if (real)
      irm_real_mode(real, state, mode);
    else
      irm_blocked_mode(blocked, state, mode, state->threads);
    for (int64_t first = begin, last; first < end; first = last) {
      last = irm_slice_end(&state->graph->links[mode], first, end, 8 * k, k, BLOCKED_SLICE);
      if (real)
        irm_real_nodes(real, state, mode, first, last, state->threads);
      else
        irm_blocked_nodes(blocked, state, mode, first, last, state->threads);
      WEFT_TRY(look(poll, done, total));
    }
    if (parts) WEFT_TRY(weft_meet(poll, NULL));
    if (parts) WEFT_TRY(weft_meet_end(poll, st));
    count_sizes(state, mode);
  }
done:
  return st;
}

static weft_status count(weft_ctx *poll, struct irm_engine *engine, irm_state *state, int rename, double done,
                         double total)
{
  (void) engine;
  for (int mode = 0; mode < state->modes && rename; mode++)
    for (int64_t i = 0; i < state->graph->n[mode]; i++) state->z[mode][i] = state->place[mode][state->z[mode][i]];
  return irm_count_blocks(poll, state, done, total);
}

static weft_status block_sums(weft_ctx *poll, struct irm_engine *engine, irm_state *state, double *rows)
{
  (void) poll;
  (void) engine;
  (void) rows; /* they are the state's */
  irm_state_block_sums(state);
  return WEFT_OK;
}

static weft_status fetch(weft_ctx *poll, struct irm_engine *engine, irm_state *state, int blocks)
{
  (void) poll;
  (void) engine;
  (void) state;
  (void) blocks;
  return WEFT_OK;
}

static weft_status nothing(weft_ctx *poll, struct irm_engine *engine, irm_state *state)
{
  return fetch(poll, engine, state, 0);
}

static void stages(struct irm_engine *engine, double seconds[WEFT_IRM_STAGES])
{
  (void) engine;
  for (int k = 0; k < WEFT_IRM_STAGES; k++) seconds[k] = 0;
}

const weft_irm_ops weft_irm_cpu = { 0,     open_engine, close_engine, labels,  count, block_sums,
                                    fetch, nothing,     nothing,      nothing, stages };
