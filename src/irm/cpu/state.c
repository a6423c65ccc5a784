/* Counting blocks, moving single nodes, and log posteriors; see state.h. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/both/state.h"

/* Counting is shared among threads for more links than these, with a set of blocks per thread, in all below
 * SHARED_BLOCKS. */
#define SHARED_LINKS 300000
#define SHARED_BLOCKS 1e8
/* Links that are counted between two polls. */
#define COUNT_SLICE 3e7
/* log Γ tables end here; larger counts use Stirling's formula. In large graphs they hold blocks of 1/400 of all
 * pairs, up to the second size, unless each sweep has them filled anew. */
#define TABLE_SIZE ((int64_t) 1 << 18)
#define LARGE_TABLE ((int64_t) 1 << 21)
#define TABLE_SHARE 400

static int64_t table_size(const weft_irm_graph *graph, const weft_irm_model *model)
{
  const double pairs = (double) graph->n[0] * (double) (graph->type == WEFT_IRM_BIPARTITE ? graph->n[1] : graph->n[0]);
  const double all = pairs + (double) graph->link_count[0] + 1;
  double size = model->sample_beta ? 0 : pairs / TABLE_SHARE;
  if (size > LARGE_TABLE) size = LARGE_TABLE;
  if (size < TABLE_SIZE) size = TABLE_SIZE;
  return all < size ? (int64_t) all : (int64_t) size;
}

static void fill_tables(irm_state *state)
{
  enum { PIECE = 4096 };
  const int threads = state->tables.size > 4 * PIECE ? state->threads : 1;
  WEFT_PARALLEL_FOR(threads, static)
  for (int64_t n = 0; n < state->tables.size; n += PIECE)
    irm_tables_fill_part(&state->tables, n, n + PIECE < state->tables.size ? n + PIECE : state->tables.size);
}

/* Makes one chain's state in `arena`: it reads and writes the chain's labels in place, and counts nothing yet. */
weft_status irm_state_make(weft_ctx *ctx, weft_arena *arena, const weft_irm_graph *graph, const weft_irm_model *model,
                           weft_irm_chain *chain, int threads, irm_state *state)
{
  weft_status st = WEFT_OK;
  (void) ctx;
  memset(state, 0, sizeof *state);
  state->graph = graph;
  state->model = model;
  state->chain = chain;
  state->threads = threads;
  state->one_mode = graph->type != WEFT_IRM_BIPARTITE;
  state->directions = graph->type == WEFT_IRM_DIRECTED ? 2 : 1;
  state->modes = state->one_mode ? 1 : 2;
  state->k[0] = model->k[0];
  state->k[1] = state->one_mode ? model->k[0] : model->k[1];
  state->z[0] = chain->z[0];
  state->z[1] = state->one_mode ? chain->z[0] : chain->z[1];
  const int32_t most = state->k[0] > state->k[1] ? state->k[0] : state->k[1];
  const size_t blocks = (size_t) state->k[0] * (size_t) state->k[1];
  const int64_t nodes = graph->n[0] > graph->n[1] ? graph->n[0] : graph->n[1];
  for (int mode = 0; mode < state->modes; mode++) {
    WEFT_TAKE(state->sizes[mode], arena, (size_t) state->k[mode]);
    WEFT_TAKE(state->active[mode], arena, (size_t) state->k[mode]);
    WEFT_TAKE(state->place[mode], arena, (size_t) state->k[mode]);
    WEFT_TAKE(state->log_stick[mode], arena, (size_t) state->k[mode]);
    WEFT_TAKE(state->sampled[mode], arena, (size_t) graph->n[mode]);
  }
  for (int turned = 0; turned < 2; turned++) {
    if (turned && graph->type == WEFT_IRM_UNDIRECTED) {
      state->links[1] = state->links[0];
      state->pairs[1] = state->pairs[0];
      continue;
    }
    WEFT_TAKE(state->links[turned], arena, blocks);
    WEFT_TAKE(state->pairs[turned], arena, blocks);
    if (graph->unit > 0) WEFT_TAKE(state->values[turned], arena, blocks);
  }
  if (graph->unit > 0) WEFT_TAKE0(state->profile.values, arena, (size_t) most);
  if (threads > 1 && graph->unit == 0 && graph->link_count[0] > SHARED_LINKS &&
      (double) blocks * threads < SHARED_BLOCKS)
    WEFT_TAKE(state->tallies, arena, blocks * (size_t) threads);
  for (int direction = 0; direction < state->directions; direction++) {
    WEFT_TAKE0(state->profile.links[direction], arena, (size_t) most);
    WEFT_TAKE0(state->profile.pairs[direction], arena, (size_t) most);
  }
  WEFT_TAKE(state->scores, arena, 2 * (size_t) most + 2);
  if (model->attempts && !state->one_mode) {
    WEFT_TAKE(state->squares, arena, blocks);
    WEFT_TAKE(state->reached, arena, blocks);
    WEFT_TAKE(state->sampled_nodes, arena, (size_t) most);
    WEFT_TAKE(state->begins, arena, (size_t) most + 1);
    WEFT_TAKE(state->spreads, arena, (size_t) most);
    WEFT_TAKE(state->row_now, arena, (size_t) most);
    WEFT_TAKE(state->joins.gain, arena, (size_t) most);
    WEFT_TAKE(state->joins.best, arena, (size_t) most);
    WEFT_TAKE(state->joins.into, arena, (size_t) most);
    WEFT_TAKE(state->joins.changed, arena, (size_t) most);
    WEFT_TAKE(state->order, arena, (size_t) nodes);
  }
  if (!state->one_mode) WEFT_TAKE(state->block_now, arena, blocks);
  WEFT_TAKE(state->block_sums, arena, (size_t) state->k[0]);
  WEFT_TAKE(state->rates, arena, 2 * (size_t) most);
  state->tables.size = table_size(graph, model);
  WEFT_TAKE(state->tables.links, arena, (size_t) state->tables.size);
  WEFT_TAKE(state->tables.others, arena, (size_t) state->tables.size);
  WEFT_TAKE(state->tables.pairs, arena, (size_t) state->tables.size);
  state->tables.unit = graph->unit;
  irm_tables_begin(&state->tables, model->poisson, chain->beta);
  fill_tables(state);
done:
  return st;
}

/* ---- counting ---- */

void irm_state_count_active(irm_state *state, int mode)
{
  state->active_count[mode] = 0;
  for (int32_t l = 0; l < state->k[mode]; l++) {
    state->place[mode][l] = state->sizes[mode][l] ? state->active_count[mode] : -1;
    if (state->sizes[mode][l]) state->active[mode][state->active_count[mode]++] = l;
  }
}

/* Sizes and active clusters from the labels, links 0, and pairs as if none were missing. */
void irm_state_count_begin(irm_state *state)
{
  const size_t blocks = (size_t) state->k[0] * (size_t) state->k[1];
  for (int mode = 0; mode < state->modes; mode++) {
    memset(state->sizes[mode], 0, (size_t) state->k[mode] * sizeof(int64_t));
    for (int64_t i = 0; i < state->graph->n[mode]; i++) state->sizes[mode][state->z[mode][i]]++;
    irm_state_count_active(state, mode);
  }
  memset(state->links[0], 0, blocks * sizeof(int64_t));
  if (state->values[0]) memset(state->values[0], 0, blocks * sizeof(int64_t));
  const int64_t *rows = state->sizes[0], *columns = state->sizes[state->one_mode ? 0 : 1];
  for (int32_t l = 0; l < state->k[0]; l++)
    for (int32_t m = 0; m < state->k[1]; m++) {
      int64_t pairs = rows[l] * columns[m];
      if (state->one_mode && l == m)
        pairs = rows[l] * (rows[l] - 1) / (state->graph->type == WEFT_IRM_UNDIRECTED ? 2 : 1);
      state->pairs[0][(size_t) l * state->k[1] + m] = pairs;
    }
}

/* Adds `by` times the links of nodes first .. last-1 to the blocks; an undirected link is met from both ends, so that
 * off the diagonal each end adds it to its own row, and on the diagonal only the larger node does. */
static void add_lists(irm_state *state, const weft_irm_lists *lists, int64_t first, int64_t last, int by,
                      int64_t *blocks)
{
  const int32_t *other = state->z[1];
  const int undirected = state->graph->type == WEFT_IRM_UNDIRECTED;
  for (int64_t i = first; i < last; i++) {
    const int32_t l = state->z[0][i];
    int64_t *row = blocks + (size_t) l * state->k[1];
    for (int64_t entry = lists->start[i]; entry < lists->start[i + 1]; entry++) {
      const int32_t j = lists->to[entry], m = other[j];
      if (undirected && m == l && j > i) continue;
      row[m] += by * (lists->weight ? lists->weight[entry] : 1);
    }
  }
}

/* The squares of the real values of these nodes. */
static void add_values(irm_state *state, int64_t first, int64_t last)
{
  const weft_irm_lists *lists = &state->graph->links[0];
  for (int64_t i = first; i < last; i++) {
    int64_t *row = state->values[0] + (size_t) state->z[0][i] * (size_t) state->k[1];
    for (int64_t entry = lists->start[i]; entry < lists->start[i + 1]; entry++)
      row[state->z[1][lists->to[entry]]] += (int64_t) lists->weight[entry] * lists->weight[entry];
  }
}

/* add_lists() by all threads. */
static void share_out(irm_state *state, const weft_irm_lists *lists, int64_t first, int64_t last)
{
  enum { CHUNK = 256 };
  const size_t blocks = (size_t) state->k[0] * (size_t) state->k[1];
  memset(state->tallies, 0, blocks * (size_t) state->threads * sizeof(int64_t));
  WEFT_PARALLEL_FOR(state->threads, dynamic)
  for (int64_t chunk = first; chunk < last; chunk += CHUNK)
    add_lists(state, lists, chunk, chunk + CHUNK < last ? chunk + CHUNK : last, 1,
              state->tallies + (size_t) WEFT_THREAD() * blocks);
  for (int t = 0; t < state->threads; t++)
    for (size_t b = 0; b < blocks; b++) state->links[0][b] += state->tallies[(size_t) t * blocks + b];
}

void irm_state_count_slice(irm_state *state, int64_t first, int64_t last)
{
  if (state->tallies)
    share_out(state, &state->graph->links[0], first, last);
  else
    add_lists(state, &state->graph->links[0], first, last, 1, state->links[0]);
  if (state->values[0]) add_values(state, first, last);
  if (state->graph->missing_count[0]) add_lists(state, &state->graph->missing[0], first, last, -1, state->pairs[0]);
  if (!state->graph->self_pair) return;
  for (int64_t i = first; i < last; i++) {
    const size_t diagonal = (size_t) state->z[0][i] * (size_t) (state->k[1] + 1);
    state->links[0][diagonal] += state->graph->self_weight[i];
    state->pairs[0][diagonal] += state->graph->self_pair[i];
  }
}

void irm_state_count_end(irm_state *state)
{
  if (state->links[1] == state->links[0]) return;
  for (int32_t l = 0; l < state->k[0]; l++)
    for (int32_t m = 0; m < state->k[1]; m++) {
      state->links[1][(size_t) m * state->k[0] + l] = state->links[0][(size_t) l * state->k[1] + m];
      state->pairs[1][(size_t) m * state->k[0] + l] = state->pairs[0][(size_t) l * state->k[1] + m];
      if (state->values[0])
        state->values[1][(size_t) m * state->k[0] + l] = state->values[0][(size_t) l * state->k[1] + m];
    }
}

/* ---- single nodes ---- */

weft_status irm_count_blocks(weft_ctx *poll, irm_state *state, double done, double total)
{
  weft_status st = WEFT_OK;
  irm_state_count_begin(state);
  for (int64_t first = 0, last; first < state->graph->n[0] && st == WEFT_OK; first = last) {
    last = irm_slice_end(&state->graph->links[0], first, state->graph->n[0], 1, 1, COUNT_SLICE);
    irm_state_count_slice(state, first, last);
    if (poll) st = weft_poll(poll, done, total);
  }
  irm_state_count_end(state);
  return st;
}

void irm_change_size(irm_state *state, int mode, int32_t l, int64_t by)
{
  int64_t now = state->sizes[mode][l] += by;
  if (by > 0 && now == by) {
    state->place[mode][l] = state->active_count[mode];
    state->active[mode][state->active_count[mode]++] = l;
  } else if (by < 0 && now == 0) {
    int32_t hole = state->place[mode][l], last = state->active[mode][--state->active_count[mode]];
    state->active[mode][hole] = last;
    state->place[mode][last] = hole;
    state->place[mode][l] = -1;
  }
}

/* Counts node i's links and observed pairs with each active cluster of the other mode into state->profile. */
void irm_profile_node(irm_state *state, int mode, int64_t i)
{
  const weft_irm_graph *graph = state->graph;
  const int other = irm_other(state, mode);
  const int32_t *z = state->z[other], *active = state->active[other];
  for (int direction = 0; direction < state->directions; direction++) {
    const weft_irm_lists *links = &graph->links[state->one_mode ? direction : mode],
                         *missing = &graph->missing[state->one_mode ? direction : mode];
    int64_t *count = state->profile.links[direction], *pairs = state->profile.pairs[direction];
    for (int32_t a = 0; a < state->active_count[other]; a++) {
      count[active[a]] = 0;
      if (state->profile.values) state->profile.values[active[a]] = 0;
      pairs[active[a]] = state->sizes[other][active[a]];
    }
    for (int64_t entry = links->start[i]; entry < links->start[i + 1]; entry++) {
      const int32_t m = z[links->to[entry]];
      if (m >= 0) count[m] += links->weight ? links->weight[entry] : 1;
      if (m >= 0 && state->profile.values)
        state->profile.values[m] += (int64_t) links->weight[entry] * links->weight[entry];
    }
    if (graph->missing_count[0] == 0) continue;
    for (int64_t entry = missing->start[i]; entry < missing->start[i + 1]; entry++)
      if (z[missing->to[entry]] >= 0) pairs[z[missing->to[entry]]]--;
  }
  state->profile.self_links = graph->self_weight ? graph->self_weight[i] : 0;
  state->profile.self_pairs = graph->self_pair ? graph->self_pair[i] : 0;
}

/* Adds sign times the profile to cluster l's blocks. */
static void add_profile(irm_state *state, int mode, int32_t l, int sign)
{
  const int other = irm_other(state, mode);
  const irm_profile *p = &state->profile;
  for (int direction = 0; direction < state->directions; direction++) {
    const int near = state->one_mode ? direction : mode, far = 1 - near;
    const size_t width = (size_t) state->k[state->one_mode ? 0 : 1 - mode], height = (size_t) state->k[mode];
    const int symmetric = state->links[near] == state->links[far];
    for (int32_t a = 0; a < state->active_count[other]; a++) {
      const int32_t m = state->active[other][a];
      const int64_t links = sign * p->links[direction][m], pairs = sign * p->pairs[direction][m];
      state->links[near][l * width + m] += links;
      state->pairs[near][l * width + m] += pairs;
      if (symmetric && m == l) continue;
      state->links[far][m * height + l] += links;
      state->pairs[far][m * height + l] += pairs;
      if (!p->values) continue;
      state->values[near][l * width + m] += sign * p->values[m];
      state->values[far][m * height + l] += sign * p->values[m];
    }
  }
  if (!state->one_mode) return;
  const size_t diagonal = (size_t) l * (size_t) (state->k[0] + 1);
  for (int turned = 0; turned < 2; turned++) {
    if (turned && state->links[1] == state->links[0]) break;
    state->links[turned][diagonal] += sign * p->self_links;
    state->pairs[turned][diagonal] += sign * p->self_pairs;
  }
}

void irm_take_out(irm_state *state, int mode, int64_t i)
{
  const int32_t l = state->z[mode][i];
  if (l < 0) {
    irm_profile_node(state, mode, i);
    return;
  }
  state->z[mode][i] = -1;
  state->sizes[mode][l]--; /* a cluster that empties stays active until its blocks are cleared */
  irm_profile_node(state, mode, i);
  add_profile(state, mode, l, -1);
  state->sizes[mode][l]++;
  irm_change_size(state, mode, l, -1);
}

void irm_put_in(irm_state *state, int mode, int64_t i, int32_t l)
{
  add_profile(state, mode, l, 1);
  state->z[mode][i] = l;
  irm_change_size(state, mode, l, 1);
}

static double block_gain(const irm_state *state, int turned, size_t at, int64_t more_links, int64_t more_values,
                         int64_t more_pairs)
{
  if (more_pairs == 0) return 0;
  return irm_f_block(&state->tables, state->links[turned][at] + more_links,
                     (state->values[turned] ? state->values[turned][at] : 0) + more_values,
                     state->pairs[turned][at] + more_pairs) -
         irm_block_now(state, turned, at);
}

/* Sums, over the other mode's active clusters, what f of each of l's blocks gains; in a one-mode graph the block of
 * l with itself is looked at once, at the end. */
double irm_gain(const irm_state *state, int mode, int32_t l)
{
  const int other = irm_other(state, mode);
  const irm_profile *p = &state->profile;
  double sum = 0;
  int64_t own_links = p->self_links, own_pairs = p->self_pairs;
  for (int direction = 0; direction < state->directions; direction++) {
    const int near = state->one_mode ? direction : mode;
    const size_t row = (size_t) l * (size_t) state->k[state->one_mode ? 0 : 1 - mode];
    for (int32_t a = 0; a < state->active_count[other]; a++) {
      const int32_t m = state->active[other][a];
      if (state->one_mode && m == l) {
        own_links += p->links[direction][m];
        own_pairs += p->pairs[direction][m];
      } else {
        sum += block_gain(state, near, row + m, p->links[direction][m], p->values ? p->values[m] : 0,
                          p->pairs[direction][m]);
      }
    }
  }
  if (state->one_mode) sum += block_gain(state, 0, (size_t) l * (size_t) (state->k[0] + 1), own_links, 0, own_pairs);
  return sum;
}

/* f of two blocks together. */
static double f_joined(const irm_state *state, int turned, size_t a, size_t b)
{
  const int64_t pairs = state->pairs[turned][a] + state->pairs[turned][b];
  const int64_t values = state->values[turned] ? state->values[turned][a] + state->values[turned][b] : 0;
  return pairs ? irm_f_block(&state->tables, state->links[turned][a] + state->links[turned][b], values, pairs) : 0;
}

/* f of the joined blocks less f of the two, summed; in a one-mode graph the three or four blocks among a and b
 * become one. */
double irm_merge_gain(const irm_state *state, int mode, int32_t a, int32_t b)
{
  const int other = irm_other(state, mode);
  double sum = 0;
  for (int direction = 0; direction < state->directions; direction++) {
    const int near = state->one_mode ? direction : mode;
    const size_t width = (size_t) state->k[state->one_mode ? 0 : 1 - mode];
    for (int32_t at = 0; at < state->active_count[other]; at++) {
      const int32_t m = state->active[other][at];
      if (state->one_mode && (m == a || m == b)) continue;
      const size_t at_a = a * width + (size_t) m, at_b = b * width + (size_t) m;
      sum += f_joined(state, near, at_a, at_b) - irm_block_now(state, near, at_a) - irm_block_now(state, near, at_b);
    }
  }
  if (!state->one_mode) return sum;
  const size_t k = (size_t) state->k[0], at[4] = { a * k + a, b * k + b, a * k + b, b * k + a };
  int64_t links = 0, pairs = 0;
  for (int c = 0; c < (state->directions == 2 ? 4 : 3); c++) {
    links += state->links[0][at[c]];
    pairs += state->pairs[0][at[c]];
    sum -= irm_block_now(state, 0, at[c]);
  }
  return sum + (pairs ? irm_f_fast(&state->tables, links, pairs) : 0);
}

int32_t irm_free_cluster(const irm_state *state, int mode, int32_t which)
{
  for (int32_t l = 0; l < state->k[mode]; l++)
    if (state->sizes[mode][l] == 0 && which-- == 0) return l;
  return -1;
}

/* ---- the posterior ---- */

/* Σ f over the blocks of row cluster l. */
static double row_sum(const irm_state *state, int32_t l)
{
  const size_t row = (size_t) l * (size_t) state->k[1];
  double sum = 0;
  if (state->sizes[0][l] == 0) return 0;
  if (!state->values[0])
    return irm_f_row(state->model->poisson, state->chain->beta, state->links[0] + row, state->pairs[0] + row,
                     state->graph->type == WEFT_IRM_UNDIRECTED ? l : 0, state->k[1]);
  for (size_t at = row; at < row + (size_t) state->k[1]; at++)
    sum += irm_f_real(state->chain->beta, state->graph->unit, (double) state->links[0][at],
                      (double) state->values[0][at], (double) state->pairs[0][at]);
  return sum;
}

void irm_state_block_sums(irm_state *state)
{
  const int threads = weft_threads_worth(state->threads, 40.0 * state->k[0] * state->k[1]);
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int32_t l = 0; l < state->k[0]; l++) state->block_sums[l] = row_sum(state, l);
}

double irm_state_log_posterior(const irm_state *state)
{
  double sum = -state->graph->log_factorials;
  for (int mode = 0; mode < state->modes; mode++)
    sum += irm_log_crp(state->chain->alpha[mode], state->sizes[mode], state->k[mode]);
  for (int32_t l = 0; l < state->k[0]; l++) sum += state->block_sums[l];
  return sum;
}

/* Counts with a chain of its own, whose labels are `z`; nothing is changed. */
weft_status weft_irm_blocks(weft_ctx *ctx, const weft_irm_graph *graph, int32_t *const z[2], const int32_t k[2],
                            double *links, double *pairs, double *squares)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  irm_state state;
  const weft_irm_model model = { .k = { k[0], k[1] } };
  weft_irm_chain chain = { .z = { z[0], z[1] }, .alpha = { 1, 1 }, .beta = { 1, 1 } };
  WEFT_TRY(irm_state_make(ctx, &mem, graph, &model, &chain, ctx->threads, &state));
  WEFT_TRY(irm_count_blocks(ctx, &state, 0, 1));
  for (int32_t l = 0; l < state.k[0]; l++)
    for (int32_t m = 0; m < state.k[1]; m++) {
      const size_t from = (size_t) l * state.k[1] + m, to = l + (size_t) m * state.k[0];
      links[to] = (double) state.links[0][from] * (state.values[0] ? graph->unit : 1);
      pairs[to] = (double) state.pairs[0][from];
      if (state.values[0]) squares[to] = (double) state.values[0][from] * (graph->unit * graph->unit);
    }
done:
  weft_arena_end(&mem);
  return st;
}
