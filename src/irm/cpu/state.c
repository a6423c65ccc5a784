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

static int64_t table_size(const weft_irm_graph *g, const weft_irm_model *model)
{
  const double pairs = (double) g->n[0] * (double) (g->type == WEFT_IRM_BIPARTITE ? g->n[1] : g->n[0]);
  const double all = pairs + (double) g->link_count[0] + 1;
  double size = model->sample_beta ? 0 : pairs / TABLE_SHARE;
  if (size > LARGE_TABLE) size = LARGE_TABLE;
  if (size < TABLE_SIZE) size = TABLE_SIZE;
  return all < size ? (int64_t) all : (int64_t) size;
}

static void fill_tables(irm_state *s)
{
  enum { PIECE = 4096 };
  const int threads = s->tables.size > 4 * PIECE ? s->threads : 1;
  WEFT_PARALLEL_FOR(threads, static)
  for (int64_t n = 0; n < s->tables.size; n += PIECE)
    irm_tables_fill_part(&s->tables, n, n + PIECE < s->tables.size ? n + PIECE : s->tables.size);
}

/* Makes one chain's state in `arena`: it reads and writes the chain's labels in place, and counts nothing yet. */
weft_status irm_state_make(weft_ctx *ctx, weft_arena *arena, const weft_irm_graph *graph, const weft_irm_model *model,
                           weft_irm_chain *chain, int threads, irm_state *s)
{
  weft_status st = WEFT_OK;
  (void) ctx;
  memset(s, 0, sizeof *s);
  s->graph = graph;
  s->model = model;
  s->chain = chain;
  s->threads = threads;
  s->one_mode = graph->type != WEFT_IRM_BIPARTITE;
  s->directions = graph->type == WEFT_IRM_DIRECTED ? 2 : 1;
  s->modes = s->one_mode ? 1 : 2;
  s->k[0] = model->k[0];
  s->k[1] = s->one_mode ? model->k[0] : model->k[1];
  s->z[0] = chain->z[0];
  s->z[1] = s->one_mode ? chain->z[0] : chain->z[1];
  const int32_t most = s->k[0] > s->k[1] ? s->k[0] : s->k[1];
  const size_t blocks = (size_t) s->k[0] * (size_t) s->k[1];
  const int64_t nodes = graph->n[0] > graph->n[1] ? graph->n[0] : graph->n[1];
  for (int mode = 0; mode < s->modes; mode++) {
    WEFT_TAKE(s->sizes[mode], arena, (size_t) s->k[mode]);
    WEFT_TAKE(s->active[mode], arena, (size_t) s->k[mode]);
    WEFT_TAKE(s->place[mode], arena, (size_t) s->k[mode]);
    WEFT_TAKE(s->log_stick[mode], arena, (size_t) s->k[mode]);
    WEFT_TAKE(s->sampled[mode], arena, (size_t) graph->n[mode]);
  }
  for (int turned = 0; turned < 2; turned++) {
    if (turned && graph->type == WEFT_IRM_UNDIRECTED) {
      s->links[1] = s->links[0];
      s->pairs[1] = s->pairs[0];
      continue;
    }
    WEFT_TAKE(s->links[turned], arena, blocks);
    WEFT_TAKE(s->pairs[turned], arena, blocks);
    if (graph->unit > 0) WEFT_TAKE(s->values[turned], arena, blocks);
  }
  if (graph->unit > 0) WEFT_TAKE0(s->profile.values, arena, (size_t) most);
  if (threads > 1 && graph->unit == 0 && graph->link_count[0] > SHARED_LINKS &&
      (double) blocks * threads < SHARED_BLOCKS)
    WEFT_TAKE(s->tallies, arena, blocks * (size_t) threads);
  for (int d = 0; d < s->directions; d++) {
    WEFT_TAKE0(s->profile.links[d], arena, (size_t) most);
    WEFT_TAKE0(s->profile.pairs[d], arena, (size_t) most);
  }
  WEFT_TAKE(s->scores, arena, 2 * (size_t) most + 2);
  if (model->attempts && !s->one_mode) {
    WEFT_TAKE(s->squares, arena, blocks);
    WEFT_TAKE(s->reached, arena, blocks);
    WEFT_TAKE(s->sampled_nodes, arena, (size_t) most);
    WEFT_TAKE(s->begins, arena, (size_t) most + 1);
    WEFT_TAKE(s->spreads, arena, (size_t) most);
    WEFT_TAKE(s->row_now, arena, (size_t) most);
    WEFT_TAKE(s->order, arena, (size_t) nodes);
  }
  if (!s->one_mode) WEFT_TAKE(s->block_now, arena, blocks);
  WEFT_TAKE(s->block_sums, arena, (size_t) s->k[0]);
  WEFT_TAKE(s->rates, arena, 2 * (size_t) most);
  s->tables.size = table_size(graph, model);
  WEFT_TAKE(s->tables.links, arena, (size_t) s->tables.size);
  WEFT_TAKE(s->tables.others, arena, (size_t) s->tables.size);
  WEFT_TAKE(s->tables.pairs, arena, (size_t) s->tables.size);
  s->tables.unit = graph->unit;
  irm_tables_begin(&s->tables, model->poisson, chain->beta);
  fill_tables(s);
done:
  return st;
}

/* ---- counting ---- */

void irm_state_count_active(irm_state *s, int mode)
{
  s->active_count[mode] = 0;
  for (int32_t l = 0; l < s->k[mode]; l++) {
    s->place[mode][l] = s->sizes[mode][l] ? s->active_count[mode] : -1;
    if (s->sizes[mode][l]) s->active[mode][s->active_count[mode]++] = l;
  }
}

/* Sizes and active clusters from the labels, links 0, and pairs as if none were missing. */
void irm_state_count_begin(irm_state *s)
{
  const size_t blocks = (size_t) s->k[0] * (size_t) s->k[1];
  for (int mode = 0; mode < s->modes; mode++) {
    memset(s->sizes[mode], 0, (size_t) s->k[mode] * sizeof(int64_t));
    for (int64_t i = 0; i < s->graph->n[mode]; i++) s->sizes[mode][s->z[mode][i]]++;
    irm_state_count_active(s, mode);
  }
  memset(s->links[0], 0, blocks * sizeof(int64_t));
  if (s->values[0]) memset(s->values[0], 0, blocks * sizeof(int64_t));
  const int64_t *rows = s->sizes[0], *columns = s->sizes[s->one_mode ? 0 : 1];
  for (int32_t l = 0; l < s->k[0]; l++)
    for (int32_t m = 0; m < s->k[1]; m++) {
      int64_t pairs = rows[l] * columns[m];
      if (s->one_mode && l == m) pairs = rows[l] * (rows[l] - 1) / (s->graph->type == WEFT_IRM_UNDIRECTED ? 2 : 1);
      s->pairs[0][(size_t) l * s->k[1] + m] = pairs;
    }
}

/* Adds `by` times the links of nodes first .. last-1 to the blocks; an undirected link is met from both ends, so that
 * off the diagonal each end adds it to its own row, and on the diagonal only the larger node does. */
static void add_lists(irm_state *s, const weft_irm_lists *lists, int64_t first, int64_t last, int by, int64_t *blocks)
{
  const int32_t *other = s->z[1];
  const int undirected = s->graph->type == WEFT_IRM_UNDIRECTED;
  for (int64_t i = first; i < last; i++) {
    const int32_t l = s->z[0][i];
    int64_t *row = blocks + (size_t) l * s->k[1];
    for (int64_t e = lists->start[i]; e < lists->start[i + 1]; e++) {
      const int32_t j = lists->to[e], m = other[j];
      if (undirected && m == l && j > i) continue;
      row[m] += by * (lists->weight ? lists->weight[e] : 1);
    }
  }
}

/* The squares of the real values of these nodes. */
static void add_values(irm_state *s, int64_t first, int64_t last)
{
  const weft_irm_lists *lists = &s->graph->links[0];
  for (int64_t i = first; i < last; i++) {
    int64_t *row = s->values[0] + (size_t) s->z[0][i] * (size_t) s->k[1];
    for (int64_t e = lists->start[i]; e < lists->start[i + 1]; e++)
      row[s->z[1][lists->to[e]]] += (int64_t) lists->weight[e] * lists->weight[e];
  }
}

/* add_lists() by all threads. */
static void share_out(irm_state *s, const weft_irm_lists *lists, int64_t first, int64_t last)
{
  enum { CHUNK = 256 };
  const size_t blocks = (size_t) s->k[0] * (size_t) s->k[1];
  memset(s->tallies, 0, blocks * (size_t) s->threads * sizeof(int64_t));
  WEFT_PARALLEL_FOR(s->threads, dynamic)
  for (int64_t chunk = first; chunk < last; chunk += CHUNK)
    add_lists(s, lists, chunk, chunk + CHUNK < last ? chunk + CHUNK : last, 1,
              s->tallies + (size_t) WEFT_THREAD() * blocks);
  for (int t = 0; t < s->threads; t++)
    for (size_t b = 0; b < blocks; b++) s->links[0][b] += s->tallies[(size_t) t * blocks + b];
}

void irm_state_count_slice(irm_state *s, int64_t first, int64_t last)
{
  if (s->tallies)
    share_out(s, &s->graph->links[0], first, last);
  else
    add_lists(s, &s->graph->links[0], first, last, 1, s->links[0]);
  if (s->values[0]) add_values(s, first, last);
  if (s->graph->missing_count[0]) add_lists(s, &s->graph->missing[0], first, last, -1, s->pairs[0]);
  if (!s->graph->self_pair) return;
  for (int64_t i = first; i < last; i++) {
    const size_t diagonal = (size_t) s->z[0][i] * (size_t) (s->k[1] + 1);
    s->links[0][diagonal] += s->graph->self_weight[i];
    s->pairs[0][diagonal] += s->graph->self_pair[i];
  }
}

void irm_state_count_end(irm_state *s)
{
  if (s->links[1] == s->links[0]) return;
  for (int32_t l = 0; l < s->k[0]; l++)
    for (int32_t m = 0; m < s->k[1]; m++) {
      s->links[1][(size_t) m * s->k[0] + l] = s->links[0][(size_t) l * s->k[1] + m];
      s->pairs[1][(size_t) m * s->k[0] + l] = s->pairs[0][(size_t) l * s->k[1] + m];
      if (s->values[0]) s->values[1][(size_t) m * s->k[0] + l] = s->values[0][(size_t) l * s->k[1] + m];
    }
}

/* ---- single nodes ---- */

weft_status irm_count_blocks(weft_ctx *poll, irm_state *s, double done, double total)
{
  weft_status st = WEFT_OK;
  irm_state_count_begin(s);
  for (int64_t first = 0, last; first < s->graph->n[0] && st == WEFT_OK; first = last) {
    last = irm_slice_end(&s->graph->links[0], first, s->graph->n[0], 1, 1, COUNT_SLICE);
    irm_state_count_slice(s, first, last);
    if (poll) st = weft_poll(poll, done, total);
  }
  irm_state_count_end(s);
  return st;
}

void irm_change_size(irm_state *s, int mode, int32_t l, int64_t by)
{
  int64_t now = s->sizes[mode][l] += by;
  if (by > 0 && now == by) {
    s->place[mode][l] = s->active_count[mode];
    s->active[mode][s->active_count[mode]++] = l;
  } else if (by < 0 && now == 0) {
    int32_t hole = s->place[mode][l], last = s->active[mode][--s->active_count[mode]];
    s->active[mode][hole] = last;
    s->place[mode][last] = hole;
    s->place[mode][l] = -1;
  }
}

/* Counts node i's links and observed pairs with each active cluster of the other mode into state->profile. */
static void fill_profile(irm_state *s, int mode, int64_t i)
{
  const weft_irm_graph *g = s->graph;
  const int other = irm_other(s, mode);
  const int32_t *z = s->z[other], *active = s->active[other];
  for (int d = 0; d < s->directions; d++) {
    const weft_irm_lists *links = &g->links[s->one_mode ? d : mode], *missing = &g->missing[s->one_mode ? d : mode];
    int64_t *count = s->profile.links[d], *pairs = s->profile.pairs[d];
    for (int32_t a = 0; a < s->active_count[other]; a++) {
      count[active[a]] = 0;
      if (s->profile.values) s->profile.values[active[a]] = 0;
      pairs[active[a]] = s->sizes[other][active[a]];
    }
    for (int64_t e = links->start[i]; e < links->start[i + 1]; e++) {
      const int32_t m = z[links->to[e]];
      if (m >= 0) count[m] += links->weight ? links->weight[e] : 1;
      if (m >= 0 && s->profile.values) s->profile.values[m] += (int64_t) links->weight[e] * links->weight[e];
    }
    if (g->missing_count[0] == 0) continue;
    for (int64_t e = missing->start[i]; e < missing->start[i + 1]; e++)
      if (z[missing->to[e]] >= 0) pairs[z[missing->to[e]]]--;
  }
  s->profile.self_links = g->self_weight ? g->self_weight[i] : 0;
  s->profile.self_pairs = g->self_pair ? g->self_pair[i] : 0;
}

/* Adds sign times the profile to cluster l's blocks. */
static void add_profile(irm_state *s, int mode, int32_t l, int sign)
{
  const int other = irm_other(s, mode);
  const irm_profile *p = &s->profile;
  for (int d = 0; d < s->directions; d++) {
    const int near = s->one_mode ? d : mode, far = 1 - near;
    const size_t width = (size_t) s->k[s->one_mode ? 0 : 1 - mode], height = (size_t) s->k[mode];
    const int symmetric = s->links[near] == s->links[far];
    for (int32_t a = 0; a < s->active_count[other]; a++) {
      const int32_t m = s->active[other][a];
      const int64_t links = sign * p->links[d][m], pairs = sign * p->pairs[d][m];
      s->links[near][l * width + m] += links;
      s->pairs[near][l * width + m] += pairs;
      if (symmetric && m == l) continue;
      s->links[far][m * height + l] += links;
      s->pairs[far][m * height + l] += pairs;
      if (!p->values) continue;
      s->values[near][l * width + m] += sign * p->values[m];
      s->values[far][m * height + l] += sign * p->values[m];
    }
  }
  if (!s->one_mode) return;
  const size_t diagonal = (size_t) l * (size_t) (s->k[0] + 1);
  for (int turned = 0; turned < 2; turned++) {
    if (turned && s->links[1] == s->links[0]) break;
    s->links[turned][diagonal] += sign * p->self_links;
    s->pairs[turned][diagonal] += sign * p->self_pairs;
  }
}

void irm_take_out(irm_state *s, int mode, int64_t i)
{
  const int32_t l = s->z[mode][i];
  if (l < 0) {
    fill_profile(s, mode, i);
    return;
  }
  s->z[mode][i] = -1;
  s->sizes[mode][l]--; /* a cluster that empties stays active until its blocks are cleared */
  fill_profile(s, mode, i);
  add_profile(s, mode, l, -1);
  s->sizes[mode][l]++;
  irm_change_size(s, mode, l, -1);
}

void irm_put_in(irm_state *s, int mode, int64_t i, int32_t l)
{
  add_profile(s, mode, l, 1);
  s->z[mode][i] = l;
  irm_change_size(s, mode, l, 1);
}

static double block_gain(const irm_state *s, int turned, size_t at, int64_t more_links, int64_t more_values,
                         int64_t more_pairs)
{
  if (more_pairs == 0) return 0;
  return irm_f_block(&s->tables, s->links[turned][at] + more_links,
                     (s->values[turned] ? s->values[turned][at] : 0) + more_values, s->pairs[turned][at] + more_pairs) -
         irm_block_now(s, turned, at);
}

/* Sums, over the other mode's active clusters, what f of each of l's blocks gains; in a one-mode graph the block of
 * l with itself is looked at once, at the end. */
double irm_gain(const irm_state *s, int mode, int32_t l)
{
  const int other = irm_other(s, mode);
  const irm_profile *p = &s->profile;
  double sum = 0;
  int64_t own_links = p->self_links, own_pairs = p->self_pairs;
  for (int d = 0; d < s->directions; d++) {
    const int near = s->one_mode ? d : mode;
    const size_t row = (size_t) l * (size_t) s->k[s->one_mode ? 0 : 1 - mode];
    for (int32_t a = 0; a < s->active_count[other]; a++) {
      const int32_t m = s->active[other][a];
      if (s->one_mode && m == l) {
        own_links += p->links[d][m];
        own_pairs += p->pairs[d][m];
      } else {
        sum += block_gain(s, near, row + m, p->links[d][m], p->values ? p->values[m] : 0, p->pairs[d][m]);
      }
    }
  }
  if (s->one_mode) sum += block_gain(s, 0, (size_t) l * (size_t) (s->k[0] + 1), own_links, 0, own_pairs);
  return sum;
}

/* f of two blocks together. */
static double f_joined(const irm_state *s, int turned, size_t a, size_t b)
{
  const int64_t pairs = s->pairs[turned][a] + s->pairs[turned][b];
  const int64_t values = s->values[turned] ? s->values[turned][a] + s->values[turned][b] : 0;
  return pairs ? irm_f_block(&s->tables, s->links[turned][a] + s->links[turned][b], values, pairs) : 0;
}

/* f of the joined blocks less f of the two, summed; in a one-mode graph the three or four blocks among a and b
 * become one. */
double irm_merge_gain(const irm_state *s, int mode, int32_t a, int32_t b)
{
  const int other = irm_other(s, mode);
  double sum = 0;
  for (int d = 0; d < s->directions; d++) {
    const int near = s->one_mode ? d : mode;
    const size_t width = (size_t) s->k[s->one_mode ? 0 : 1 - mode];
    for (int32_t at = 0; at < s->active_count[other]; at++) {
      const int32_t m = s->active[other][at];
      if (s->one_mode && (m == a || m == b)) continue;
      const size_t at_a = a * width + (size_t) m, at_b = b * width + (size_t) m;
      sum += f_joined(s, near, at_a, at_b) - irm_block_now(s, near, at_a) - irm_block_now(s, near, at_b);
    }
  }
  if (!s->one_mode) return sum;
  const size_t k = (size_t) s->k[0], at[4] = { a * k + a, b * k + b, a * k + b, b * k + a };
  int64_t links = 0, pairs = 0;
  for (int c = 0; c < (s->directions == 2 ? 4 : 3); c++) {
    links += s->links[0][at[c]];
    pairs += s->pairs[0][at[c]];
    sum -= irm_block_now(s, 0, at[c]);
  }
  return sum + (pairs ? irm_f_fast(&s->tables, links, pairs) : 0);
}

int32_t irm_free_cluster(const irm_state *s, int mode, int32_t which)
{
  for (int32_t l = 0; l < s->k[mode]; l++)
    if (s->sizes[mode][l] == 0 && which-- == 0) return l;
  return -1;
}

/* ---- the posterior ---- */

/* Σ f over the blocks of row cluster l. */
static double row_sum(const irm_state *s, int32_t l)
{
  const size_t row = (size_t) l * (size_t) s->k[1];
  double sum = 0;
  if (s->sizes[0][l] == 0) return 0;
  if (!s->values[0])
    return irm_f_row(s->model->poisson, s->chain->beta, s->links[0] + row, s->pairs[0] + row,
                     s->graph->type == WEFT_IRM_UNDIRECTED ? l : 0, s->k[1]);
  for (size_t at = row; at < row + (size_t) s->k[1]; at++)
    sum += irm_f_real(s->chain->beta, s->graph->unit, (double) s->links[0][at], (double) s->values[0][at],
                      (double) s->pairs[0][at]);
  return sum;
}

void irm_state_block_sums(irm_state *s)
{
  const int threads = weft_threads_worth(s->threads, 40.0 * s->k[0] * s->k[1]);
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int32_t l = 0; l < s->k[0]; l++) s->block_sums[l] = row_sum(s, l);
}

double irm_state_log_posterior(const irm_state *s)
{
  double sum = -s->graph->log_factorials;
  for (int mode = 0; mode < s->modes; mode++) sum += irm_log_crp(s->chain->alpha[mode], s->sizes[mode], s->k[mode]);
  for (int32_t l = 0; l < s->k[0]; l++) sum += s->block_sums[l];
  return sum;
}

/* Counts with a chain of its own, whose labels are `z`; nothing is changed. */
weft_status weft_irm_blocks(weft_ctx *ctx, const weft_irm_graph *graph, int32_t *const z[2], const int32_t k[2],
                            double *links, double *pairs, double *squares)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  irm_state s;
  const weft_irm_model model = { .k = { k[0], k[1] } };
  weft_irm_chain chain = { .z = { z[0], z[1] }, .alpha = { 1, 1 }, .beta = { 1, 1 } };
  WEFT_TRY(irm_state_make(ctx, &mem, graph, &model, &chain, ctx->threads, &s));
  WEFT_TRY(irm_count_blocks(ctx, &s, 0, 1));
  for (int32_t l = 0; l < s.k[0]; l++)
    for (int32_t m = 0; m < s.k[1]; m++) {
      const size_t from = (size_t) l * s.k[1] + m, to = l + (size_t) m * s.k[0];
      links[to] = (double) s.links[0][from] * (s.values[0] ? graph->unit : 1);
      pairs[to] = (double) s.pairs[0][from];
      if (s.values[0]) squares[to] = (double) s.values[0][from] * (graph->unit * graph->unit);
    }
done:
  weft_arena_end(&mem);
  return st;
}
