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
weft_status irm_blocked_make(weft_ctx *ctx, weft_arena *arena, irm_state *s, int threads, irm_blocked **out)
{
  weft_status st = WEFT_OK;
  irm_blocked *b;
  (void) ctx;
  WEFT_TAKE0(b, arena, 1);
  for (int mode = 0; mode < 2; mode++) b->width[mode] = rounded(s->k[mode]);
  const size_t widest = (size_t) (b->width[0] > b->width[1] ? b->width[0] : b->width[1]);
  for (int mode = 0; mode < 2; mode++) {
    const size_t cells = (size_t) s->k[1 - mode] * (size_t) b->width[mode];
    WEFT_TAKE0(b->link_rows[mode], arena, cells);
    WEFT_TAKE0(b->none_rows[mode], arena, cells);
    if (s->graph->missing_count[0]) WEFT_TAKE0(b->missing_rows[mode], arena, cells);
    WEFT_TAKE(b->base[mode], arena, (size_t) b->width[mode]);
    if (s->one_mode) {
      if (mode == 0) WEFT_TAKE0(b->drawn, arena, (size_t) s->k[0]);
      continue;
    }
    WEFT_TAKE(b->base_narrow[mode], arena, (size_t) b->width[mode]);
    WEFT_TAKE0(b->link_narrow[mode], arena, cells);
    if (s->graph->missing_count[0]) WEFT_TAKE0(b->missing_narrow[mode], arena, cells);
  }
  WEFT_TAKE0(b->scratch, arena, (size_t) threads);
  for (int t = 0; t < threads; t++) {
    WEFT_TAKE(b->scratch[t].scores, arena, widest);
    WEFT_TAKE(b->scratch[t].sums, arena, widest);
    WEFT_TAKE(b->scratch[t].counts, arena, widest);
  }
  *out = b;
done:
  return st;
}

/* ---- μ and η ---- */

void irm_draw_sticks(irm_state *s, int mode)
{
  double above = (double) s->graph->n[mode], rest = 0;
  for (int32_t l = 0; l < s->k[mode]; l++) {
    double log_v = 0, log_1mv = 0, n = (double) s->sizes[mode][l];
    above -= n;
    if (l < s->k[mode] - 1)
      weft_draw_log_beta(irm_rng(s, IRM_DRAW_STICK), irm_index(s, ((uint64_t) mode << 32) + (uint64_t) l), 1.0 + n,
                         s->chain->alpha[mode] + above, &log_v, &log_1mv);
    s->log_stick[mode][l] = rest + log_v;
    rest += log_1mv;
  }
}

/* Entry l of row m of a table: the block of clusters l and m (table 1: m and l). */
static void draw_cell(irm_blocked *b, const irm_state *s, int table, int32_t m, int32_t l)
{
  const int turned = table == 1 || (s->graph->type == WEFT_IRM_UNDIRECTED && l > m);
  const size_t at = turned ? (size_t) m * (size_t) s->k[1] + (size_t) l : (size_t) l * (size_t) s->k[1] + (size_t) m;
  const size_t to = (size_t) m * (size_t) b->width[table] + (size_t) l;
  const double units = irm_draw_log_odds(irm_rng(s, IRM_DRAW_ETA), irm_index(s, at), s->model->poisson, s->chain->beta,
                                         (double) s->links[0][at], (double) s->pairs[0][at]);
  const double none = irm_none(s->model->poisson, units);
  b->link_rows[table][to] = units;
  b->none_rows[table][to] = none;
  if (b->missing_rows[table]) b->missing_rows[table][to] = irm_units(none);
}

/* Takes entry l of row m of table 1 from table 0 of a bipartite graph, where it has been drawn already. */
static void copy_cell(irm_blocked *b, int32_t m, int32_t l)
{
  const size_t from = (size_t) l * (size_t) b->width[0] + (size_t) m;
  const size_t to = (size_t) m * (size_t) b->width[1] + (size_t) l;
  b->link_rows[1][to] = b->link_rows[0][from];
  b->none_rows[1][to] = b->none_rows[0][from];
  if (b->missing_rows[1]) b->missing_rows[1][to] = b->missing_rows[0][from];
}

static void draw_row(irm_blocked *b, const irm_state *s, int table, int32_t m)
{
  const int32_t k = s->k[s->one_mode ? 0 : table];
  for (int32_t l = 0; l < k; l++) {
    if (!s->one_mode && table == 1 && s->sizes[1][l])
      copy_cell(b, m, l);
    else
      draw_cell(b, s, table, m, l);
  }
}

/* The rows of a one-mode graph's cluster. */
static void draw_rows(irm_blocked *b, const irm_state *s, int32_t m)
{
  for (int d = 0; d < s->directions; d++) draw_row(b, s, d, m);
  b->drawn[m] = 1;
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
static void draw_tables(irm_blocked *b, irm_state *s, int mode, int threads)
{
  const int other = irm_other(s, mode);
  const int32_t k = s->k[mode], count = s->k[other];
  const int64_t *sizes = s->sizes[other];
  const int shared = weft_threads_worth(threads, 20.0 * k * count);
  (void) shared;
  WEFT_PARALLEL_FOR(shared, dynamic)
  for (int32_t m = 0; m < count; m++) {
    if (s->one_mode) b->drawn[m] = 0;
    if (sizes[m] == 0) continue;
    if (s->one_mode)
      draw_rows(b, s, m);
    else
      draw_row(b, s, mode, m);
  }
  for (int32_t l = 0; s->graph->self_pair && l < k; l++) draw_cell(b, s, 0, l, l);
  if (s->one_mode) return;
  const int64_t width = b->width[mode];
  b->narrow[mode] =
      narrow_rows(b->link_rows[mode], sizes, count, k, width, b->link_narrow[mode]) &&
      (!b->missing_rows[mode] || narrow_rows(b->missing_rows[mode], sizes, count, k, width, b->missing_narrow[mode]));
}

/* ---- labels ---- */

/* Tables of η, and log μ_l + Σ_m n_m log(1 - η_lm), for the sizes of the other mode as they are now. */
void irm_blocked_mode(irm_blocked *b, irm_state *s, int mode, int threads)
{
  const int other = irm_other(s, mode), k = s->k[mode];
  const int64_t width = b->width[mode];
  double *base = b->base[mode];
  draw_tables(b, s, mode, threads);
  for (int64_t l = 0; l < width; l++) base[l] = l < k ? s->log_stick[mode][l] : PAD;
  for (int d = 0; d < s->directions; d++)
    for (int32_t m = 0; m < s->k[1 - mode]; m++) {
      const double *row = b->none_rows[s->one_mode ? d : mode] + m * width, n = (double) s->sizes[other][m];
      for (int32_t l = 0; n > 0 && l < k; l++) base[l] += n * row[l];
    }
  if (s->one_mode) return;
  double most = base[0];
  for (int32_t l = 1; l < k; l++)
    if (base[l] > most) most = base[l];
  for (int64_t l = 0; l < width; l++) {
    base[l] = l < k ? irm_units(base[l] - most) : PAD;
    b->base_narrow[mode][l] = base[l] < IRM_FLOOR ? IRM_FLOOR : (int32_t) base[l];
  }
}

static void add_row(double *to, const double *row, int32_t k, double by)
{
  for (int32_t l = 0; l < k; l++) to[l] += by * row[l];
}

/* Adds by times what one node of cluster m contributes to the base of all others. */
static void move_base(irm_blocked *b, const irm_state *s, int32_t m, double by)
{
  for (int d = 0; d < s->directions; d++) add_row(b->base[0], b->none_rows[d] + m * b->width[0], s->k[0], by);
}

/* A one-mode node given all others. */
static void draw_one(irm_blocked *b, irm_state *s, int64_t i)
{
  const weft_irm_graph *g = s->graph;
  irm_node_scratch *t = &b->scratch[0];
  const int32_t k = s->k[0];
  const int64_t width = b->width[0];
  move_base(b, s, s->z[0][i], -1);
  s->sizes[0][s->z[0][i]]--;
  memset(t->sums, 0, (size_t) width * sizeof *t->sums); /* links first: whole numbers, which add up in any order */
  for (int d = 0; d < s->directions; d++) {
    for (int64_t e = g->links[d].start[i]; e < g->links[d].start[i + 1]; e++)
      add_row(t->sums, b->link_rows[d] + s->z[0][g->links[d].to[e]] * width, k,
              g->links[d].weight ? g->links[d].weight[e] : 1);
    for (int64_t e = g->missing[d].start[i]; e < g->missing[d].start[i + 1]; e++)
      add_row(t->sums, b->missing_rows[d] + s->z[0][g->missing[d].to[e]] * width, k, -1);
  }
  for (int64_t l = 0; l < width; l++) t->sums[l] = l < k ? t->sums[l] + b->base[0][l] * IRM_UNITS : PAD;
  for (int32_t l = 0; g->self_pair && l < k; l++)
    t->sums[l] += g->self_weight[i] * b->link_rows[0][l * width + l] +
                  g->self_pair[i] * b->none_rows[0][l * width + l] * IRM_UNITS;
  s->z[0][i] =
      irm_pick(t->sums, t->scores, width, weft_draw_words(irm_rng(s, IRM_DRAW_ROW), irm_index(s, (uint64_t) i), 0));
  s->sizes[0][s->z[0][i]]++;
  if (!b->drawn[s->z[0][i]]) draw_rows(b, s, s->z[0][i]);
  move_base(b, s, s->z[0][i], 1);
}

/* Draws the labels of nodes first .. last - 1: one after another in a one-mode graph, else by all threads in chunks. */
void irm_blocked_nodes(irm_blocked *b, irm_state *s, int mode, int64_t first, int64_t last, int threads)
{
  enum { CHUNK = 64 };
  if (s->one_mode) {
    for (int64_t i = first; i < last; i++) draw_one(b, s, i);
    return;
  }
  const weft_irm_graph *g = s->graph;
  const irm_node_job job = { &g->links[mode],
                             g->missing_count[mode] ? &g->missing[mode] : NULL,
                             s->z[1 - mode],
                             s->z[mode],
                             s->k[mode],
                             s->k[1 - mode],
                             b->width[mode],
                             b->narrow[mode],
                             b->link_narrow[mode],
                             b->missing_narrow[mode],
                             b->base_narrow[mode],
                             b->link_rows[mode],
                             b->missing_rows[mode],
                             b->base[mode],
                             irm_rng(s, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL),
                             irm_index(s, 0) };
  const irm_nodes_function run = irm_nodes_variant();
  if (threads == 1) {
    run(&job, first, last, &b->scratch[0]);
    return;
  }
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t chunk = first; chunk < last; chunk += CHUNK)
    run(&job, chunk, chunk + CHUNK < last ? chunk + CHUNK : last, &b->scratch[WEFT_THREAD()]);
}

/* ---- label swaps ---- */

/* log p of clusters l and l + 1 under the sticks, when they have these sizes and `above` nodes are in later ones. */
static double two_sticks(double alpha, double first, double second, double above, int second_is_last)
{
  double sum = irm_log_beta(1.0 + first, alpha + second + above);
  return second_is_last ? sum : sum + irm_log_beta(1.0 + second, alpha + above);
}

/* A Metropolis step for each pair of neighbouring labels, from the last to the first. Nothing but the sticks depends on
 * the order of labels, so their probability with v integrated out decides. Leaves the new labels in s->place. */
void irm_swap_labels(irm_state *s, int mode)
{
  const int32_t k = s->k[mode];
  const double alpha = s->chain->alpha[mode];
  int32_t *label = s->active[mode]; /* the cluster that stands at a place; the caller counts again afterwards */
  int64_t above = 0;
  for (int32_t l = 0; l < k; l++) label[l] = l;
  for (int32_t l = k - 2; l >= 0; l--) {
    const double first = (double) s->sizes[mode][label[l]], second = (double) s->sizes[mode][label[l + 1]];
    const double now = two_sticks(alpha, first, second, (double) above, l == k - 2);
    const double swapped = two_sticks(alpha, second, first, (double) above, l == k - 2);
    if (weft_log(irm_next(s)) < swapped - now) {
      int32_t held = label[l];
      label[l] = label[l + 1];
      label[l + 1] = held;
    }
    above += s->sizes[mode][label[l + 1]];
  }
  for (int32_t l = 0; l < k; l++) s->place[mode][label[l]] = l;
}
