/* Blocked Gibbs sampling with truncated stick breaking. Given the labels of both modes,
 *
 *   v_l ~ Beta(1 + n_l, α + Σ_{l' > l} n_l'),  v_K = 1,  μ_l = v_l Π_{l' < l} (1 - v_l')
 *   η_lm ~ Beta(N_lm + β⁺, P_lm - N_lm + β⁻)   (counts: Gamma(N_lm + β⁺, rate P_lm + β⁻))
 *
 * and given those and the other mode, the labels of a mode are independent (nodes.h); in a one-mode graph they are
 * not, and are drawn one after another. Everything is kept as logarithms: log η and log(1 - η) come from log gamma
 * draws, so that small β give no infinities. Labels are not sorted by size, which would be biased; instead neighbouring
 * labels are proposed to swap, with v integrated out. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/blocked.h"

#define PAD (-WEFT_INFINITY)

static int64_t rounded(int32_t k) { return ((int64_t) k + IRM_LANES - 1) / IRM_LANES * IRM_LANES; }

/* Makes tables for both modes and each thread's work space, in `arena`; bipartite graphs get 32-bit tables, too. */
weft_status irm_blocked_make(weft_ctx *ctx, weft_arena *arena, irm_state *state, int threads, irm_blocked **out)
{
  weft_status st = WEFT_OK;
  irm_blocked *blocked;
  (void) ctx;
  WEFT_TAKE0(blocked, arena, 1);
  for (int mode = 0; mode < 2; mode++) blocked->width[mode] = rounded(state->k[mode]);
  const size_t widest = (size_t) (blocked->width[0] > blocked->width[1] ? blocked->width[0] : blocked->width[1]);
  for (int mode = 0; mode < 2; mode++) {
    const size_t cells = (size_t) state->k[1 - mode] * (size_t) blocked->width[mode];
    WEFT_TAKE0(blocked->link_rows[mode], arena, cells);
    WEFT_TAKE0(blocked->none_rows[mode], arena, cells);
    if (state->graph->missing_count[0]) WEFT_TAKE0(blocked->missing_rows[mode], arena, cells);
    WEFT_TAKE(blocked->base[mode], arena, (size_t) blocked->width[mode]);
    if (state->one_mode) {
      if (mode == 0) WEFT_TAKE0(blocked->drawn, arena, (size_t) state->k[0]);
      continue;
    }
    WEFT_TAKE(blocked->base_narrow[mode], arena, (size_t) blocked->width[mode]);
    WEFT_TAKE0(blocked->link_narrow[mode], arena, cells);
    if (state->graph->missing_count[0]) WEFT_TAKE0(blocked->missing_narrow[mode], arena, cells);
  }
  WEFT_TAKE0(blocked->scratch, arena, (size_t) threads);
  for (int t = 0; t < threads; t++) {
    WEFT_TAKE(blocked->scratch[t].scores, arena, widest);
    WEFT_TAKE(blocked->scratch[t].sums, arena, widest);
    WEFT_TAKE(blocked->scratch[t].counts, arena, widest);
  }
  *out = blocked;
done:
  return st;
}

/* ---- μ and η ---- */

void irm_draw_sticks(irm_state *state, int mode)
{
  double above = (double) state->graph->n[mode], rest = 0;
  for (int32_t l = 0; l < state->k[mode]; l++) {
    double log_v = 0, log_1mv = 0, n = (double) state->sizes[mode][l];
    above -= n;
    if (l < state->k[mode] - 1)
      weft_draw_log_beta(irm_rng(state, IRM_DRAW_STICK), irm_index(state, ((uint64_t) mode << 32) + (uint64_t) l),
                         1.0 + n, state->chain->alpha[mode] + above, &log_v, &log_1mv);
    state->log_stick[mode][l] = rest + log_v;
    rest += log_1mv;
  }
}

/* Entry l of row m of a table: the block of clusters l and m (table 1: m and l). */
static void draw_cell(irm_blocked *blocked, const irm_state *state, int table, int32_t m, int32_t l)
{
  const int turned = table == 1 || (state->graph->type == WEFT_IRM_UNDIRECTED && l > m);
  const size_t at =
      turned ? (size_t) m * (size_t) state->k[1] + (size_t) l : (size_t) l * (size_t) state->k[1] + (size_t) m;
  const size_t to = (size_t) m * (size_t) blocked->width[table] + (size_t) l;
  const double units =
      irm_draw_log_odds(irm_rng(state, IRM_DRAW_ETA), irm_index(state, at), state->model->poisson, state->chain->beta,
                        (double) state->links[0][at], (double) state->pairs[0][at]);
  const double none = irm_none(state->model->poisson, units);
  blocked->link_rows[table][to] = units;
  blocked->none_rows[table][to] = none;
  if (blocked->missing_rows[table]) blocked->missing_rows[table][to] = irm_units(none);
}

/* Takes entry l of row m of table 1 from table 0 of a bipartite graph, where it has been drawn already. */
static void copy_cell(irm_blocked *blocked, int32_t m, int32_t l)
{
  const size_t from = (size_t) l * (size_t) blocked->width[0] + (size_t) m;
  const size_t to = (size_t) m * (size_t) blocked->width[1] + (size_t) l;
  blocked->link_rows[1][to] = blocked->link_rows[0][from];
  blocked->none_rows[1][to] = blocked->none_rows[0][from];
  if (blocked->missing_rows[1]) blocked->missing_rows[1][to] = blocked->missing_rows[0][from];
}

static void draw_row(irm_blocked *blocked, const irm_state *state, int table, int32_t m)
{
  const int32_t k = state->k[state->one_mode ? 0 : table];
  for (int32_t l = 0; l < k; l++) {
    if (!state->one_mode && table == 1 && state->sizes[1][l])
      copy_cell(blocked, m, l);
    else
      draw_cell(blocked, state, table, m, l);
  }
}

/* The rows of a one-mode graph's cluster. */
static void draw_rows(irm_blocked *blocked, const irm_state *state, int32_t m)
{
  for (int direction = 0; direction < state->directions; direction++) draw_row(blocked, state, direction, m);
  blocked->drawn[m] = 1;
}

/* Rows of occupied clusters minus the middle of their values; 0 when some value is too far from it for 32 bits. */
static int narrow_rows(const double *rows, const int64_t *sizes, int32_t count, int32_t k, int64_t width, int32_t *out)
{
  for (int32_t m = 0; m < count; m++) {
    if (sizes[m] == 0) continue;
    double low = rows[m * width], high = low;
    for (int32_t l = 1; l < k; l++) {
      const double x = rows[m * width + l];
      if (x < low) low = x;
      if (x > high) high = x;
    }
    const double middle = irm_middle(low, high);
    if (high - middle > IRM_NARROW || middle - low > IRM_NARROW) return 0;
    for (int32_t l = 0; l < k; l++) out[m * width + l] = (int32_t) (rows[m * width + l] - middle);
  }
  return 1;
}

/* Only rows of occupied clusters are read, and far more clusters may be allowed than are occupied. In a one-mode graph
 * an empty cluster gets its rows when a node joins it; entries for links of nodes to themselves are drawn for all. */
static void draw_tables(irm_blocked *blocked, irm_state *state, int mode, int threads)
{
  const int other = irm_other(state, mode);
  const int32_t k = state->k[mode], count = state->k[other];
  const int64_t *sizes = state->sizes[other];
  const int shared = weft_threads_worth(threads, 20.0 * k * count);
  (void) shared;
  WEFT_PARALLEL_FOR(shared, dynamic)
  for (int32_t m = 0; m < count; m++) {
    if (state->one_mode) blocked->drawn[m] = 0;
    if (sizes[m] == 0) continue;
    if (state->one_mode)
      draw_rows(blocked, state, m);
    else
      draw_row(blocked, state, mode, m);
  }
  for (int32_t l = 0; state->graph->self_pair && l < k; l++) draw_cell(blocked, state, 0, l, l);
  if (state->one_mode) return;
  const int64_t width = blocked->width[mode];
  blocked->narrow[mode] = narrow_rows(blocked->link_rows[mode], sizes, count, k, width, blocked->link_narrow[mode]) &&
                          (!blocked->missing_rows[mode] || narrow_rows(blocked->missing_rows[mode], sizes, count, k,
                                                                       width, blocked->missing_narrow[mode]));
}

/* ---- labels ---- */

/* Tables of η, and log μ_l + Σ_m n_m log(1 - η_lm), for the sizes of the other mode as they are now. */
void irm_blocked_mode(irm_blocked *blocked, irm_state *state, int mode, int threads)
{
  const int other = irm_other(state, mode), k = state->k[mode];
  const int64_t width = blocked->width[mode];
  double *base = blocked->base[mode];
  draw_tables(blocked, state, mode, threads);
  for (int64_t l = 0; l < width; l++) base[l] = l < k ? state->log_stick[mode][l] : PAD;
  for (int direction = 0; direction < state->directions; direction++)
    for (int32_t m = 0; m < state->k[1 - mode]; m++) {
      const double *row = blocked->none_rows[state->one_mode ? direction : mode] + m * width,
                   n = (double) state->sizes[other][m];
      for (int32_t l = 0; n > 0 && l < k; l++) base[l] += n * row[l];
    }
  if (state->one_mode) return;
  double most = base[0];
  for (int32_t l = 1; l < k; l++)
    if (base[l] > most) most = base[l];
  for (int64_t l = 0; l < width; l++) {
    base[l] = l < k ? irm_units(base[l] - most) : PAD;
    blocked->base_narrow[mode][l] = base[l] < IRM_FLOOR ? IRM_FLOOR : (int32_t) base[l];
  }
}

static void add_row(double *to, const double *row, int32_t k, double by)
{
  for (int32_t l = 0; l < k; l++) to[l] += by * row[l];
}

/* Adds by times what one node of cluster m contributes to the base of all others. */
static void move_base(irm_blocked *blocked, const irm_state *state, int32_t m, double by)
{
  for (int direction = 0; direction < state->directions; direction++)
    add_row(blocked->base[0], blocked->none_rows[direction] + m * blocked->width[0], state->k[0], by);
}

/* A one-mode node given all others. */
static void draw_one(irm_blocked *blocked, irm_state *state, int64_t i)
{
  const weft_irm_graph *graph = state->graph;
  irm_node_scratch *scratch = &blocked->scratch[0];
  const int32_t k = state->k[0];
  const int64_t width = blocked->width[0];
  move_base(blocked, state, state->z[0][i], -1);
  state->sizes[0][state->z[0][i]]--;
  memset(scratch->sums, 0,
         (size_t) width * sizeof *scratch->sums); /* links first: whole numbers, which add up in any order */
  for (int direction = 0; direction < state->directions; direction++) {
    for (int64_t entry = graph->links[direction].start[i]; entry < graph->links[direction].start[i + 1]; entry++)
      add_row(scratch->sums, blocked->link_rows[direction] + state->z[0][graph->links[direction].to[entry]] * width, k,
              graph->links[direction].weight ? graph->links[direction].weight[entry] : 1);
    for (int64_t entry = graph->missing[direction].start[i]; entry < graph->missing[direction].start[i + 1]; entry++)
      add_row(scratch->sums,
              blocked->missing_rows[direction] + state->z[0][graph->missing[direction].to[entry]] * width, k, -1);
  }
  for (int64_t l = 0; l < width; l++)
    scratch->sums[l] = l < k ? scratch->sums[l] + blocked->base[0][l] * IRM_UNITS : PAD;
  for (int32_t l = 0; graph->self_pair && l < k; l++)
    scratch->sums[l] += graph->self_weight[i] * blocked->link_rows[0][l * width + l] +
                        graph->self_pair[i] * blocked->none_rows[0][l * width + l] * IRM_UNITS;
  state->z[0][i] = irm_pick(scratch->sums, scratch->scores, width,
                            weft_draw_words(irm_rng(state, IRM_DRAW_ROW), irm_index(state, (uint64_t) i), 0));
  state->sizes[0][state->z[0][i]]++;
  if (!blocked->drawn[state->z[0][i]]) draw_rows(blocked, state, state->z[0][i]);
  move_base(blocked, state, state->z[0][i], 1);
}

/* Draws the labels of nodes first .. last - 1: one after another in a one-mode graph, else by all threads in chunks. */
void irm_blocked_nodes(irm_blocked *blocked, irm_state *state, int mode, int64_t first, int64_t last, int threads)
{
  enum { CHUNK = 64 };
  if (state->one_mode) {
    for (int64_t i = first; i < last; i++) draw_one(blocked, state, i);
    return;
  }
  const weft_irm_graph *graph = state->graph;
  const irm_node_job job = { &graph->links[mode],
                             graph->missing_count[mode] ? &graph->missing[mode] : NULL,
                             state->z[1 - mode],
                             state->z[mode],
                             state->k[mode],
                             state->k[1 - mode],
                             blocked->width[mode],
                             blocked->narrow[mode],
                             blocked->link_narrow[mode],
                             blocked->missing_narrow[mode],
                             blocked->base_narrow[mode],
                             blocked->link_rows[mode],
                             blocked->missing_rows[mode],
                             blocked->base[mode],
                             irm_rng(state, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL),
                             irm_index(state, 0) };
  const irm_nodes_function run = irm_nodes_variant();
  if (threads == 1) {
    run(&job, first, last, &blocked->scratch[0]);
    return;
  }
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t chunk = first; chunk < last; chunk += CHUNK)
    run(&job, chunk, chunk + CHUNK < last ? chunk + CHUNK : last, &blocked->scratch[WEFT_THREAD()]);
}

/* ---- label swaps ---- */

/* log p of clusters l and l + 1 under the sticks, when they have these sizes and `above` nodes are in later ones. */
static double two_sticks(double alpha, double first, double second, double above, int second_is_last)
{
  double sum = irm_log_beta(1.0 + first, alpha + second + above);
  return second_is_last ? sum : sum + irm_log_beta(1.0 + second, alpha + above);
}

/* A Metropolis step for each pair of neighbouring labels, from the last to the first. Nothing but the sticks depends on
 * the order of labels, so their probability with v integrated out decides. Leaves the new labels in state->place. */
void irm_swap_labels(irm_state *state, int mode)
{
  const int32_t k = state->k[mode];
  const double alpha = state->chain->alpha[mode];
  int32_t *label = state->active[mode]; /* the cluster that stands at a place; the caller counts again afterwards */
  int64_t above = 0;
  for (int32_t l = 0; l < k; l++) label[l] = l;
  for (int32_t l = k - 2; l >= 0; l--) {
    const double first = (double) state->sizes[mode][label[l]], second = (double) state->sizes[mode][label[l + 1]];
    const double now = two_sticks(alpha, first, second, (double) above, l == k - 2);
    const double swapped = two_sticks(alpha, second, first, (double) above, l == k - 2);
    if (weft_log(irm_next(state)) < swapped - now) {
      int32_t held = label[l];
      label[l] = label[l + 1];
      label[l + 1] = held;
    }
    above += state->sizes[mode][label[l + 1]];
  }
  for (int32_t l = 0; l < k; l++) state->place[mode][label[l]] = l;
}
