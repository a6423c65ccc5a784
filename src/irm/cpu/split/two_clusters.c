/* Restricted scans over two clusters a and b of one mode of a bipartite graph. The other mode's labels do not change,
 * so that a node's links n_m with each of its clusters are counted once per proposal, and the state's blocks are left
 * alone until the outcome is known.
 *
 * With f the contribution of a block (score.h), L and P a cluster's links and pairs with cluster m, p the size of
 * m, and n links and q missing pairs of a node with it, the node's move adds
 *
 *   Σ_m [f(L ∓ n, P ∓ (p - q)) - f(L, P)]
 *
 * over the cluster that it leaves and the one that it joins. f(L, P) is known, and a move needs only the terms of these
 * sums. Where nodes have links with most clusters m, that is all. Where they have links with few, the terms of nodes
 * without links, f(L, P ∓ p), are kept too, so that a node that stays costs its links only:
 *
 *   Σ_m [f(L, P ∓ p) - f(L, P)]  +  Σ_{m: n or q} [f(L ∓ n, P ∓ (p - q)) - f(L, P ∓ p)] */
#include <string.h>
#include "irm/cpu/split/two_clusters.h"

#define INLINE static inline __attribute__((always_inline)) /* the innermost loops are worth two copies */
enum { POLL_NODES = 512, RENEW_SHARE = 5 };

typedef struct pair_entry {
  int64_t links;
  int32_t at, missing;
} pair_entry; /* the counts of many links add up */

/* One of the two clusters; arrays by place in the other mode's list of active clusters. */
typedef struct pair_side {
  int64_t nodes, *links, *pairs, *values;
  double *now, *next;            /* f(L, P); and after the move that was looked at: by place, or by entry */
  double *bare[2], bare_gain[2]; /* f(L, P - p) and f(L, P + p); sums of these less f(L, P) */
  double *a_link, *a_node, node; /* launch: log odds of a link, log of no link a pair, its sum over all pairs */
  double *a_value;               /* and what a square of a real value adds */
  int64_t renew_at;
} pair_side;

struct irm_pair {
  int mode;
  int32_t clusters;
  int64_t count, anchors[2]; /* members; where the anchors stand among them */
  int64_t room;              /* for entries */
  int64_t *start, *sizes;    /* a member's entries; of the other mode's clusters, by place */
  pair_entry *entries;
  int64_t *squares; /* of real values, beside the entries; else NULL */
  uint8_t *side;
  int32_t *seen;                   /* by place, scratch: a member's entry; -1 */
  int dense, in_tables;            /* members have links with most clusters; all log Γ are in tables */
  int64_t *links, *pairs, *values; /* by place: of the member that is looked at, where they are dense */
  double *rates, *widths;
  pair_side sides[2];
};

int64_t irm_pair_entries(const irm_state *state)
{
  const weft_irm_graph *graph = state->graph;
  const int32_t most = state->k[0] > state->k[1] ? state->k[0] : state->k[1];
  const int64_t links = graph->link_count[0] + graph->missing_count[0];
  int64_t nodes = graph->n[0] > graph->n[1] ? graph->n[0] : graph->n[1];
  if (nodes > IRM_SPLIT_NODES) nodes = IRM_SPLIT_NODES;
  return (double) nodes * most < (double) links ? nodes * most : links;
}

/* Memory for one proposal at a time, in `arena`: per member its entries, per cluster of the other mode the two
 * sides' counts and terms of f. */
weft_status irm_pair_make(weft_arena *arena, const irm_state *state, int64_t entries, irm_pair **out)
{
  weft_status st = WEFT_OK;
  irm_pair *p;
  const weft_irm_graph *graph = state->graph;
  const int32_t most = state->k[0] > state->k[1] ? state->k[0] : state->k[1];
  int64_t nodes = graph->n[0] > graph->n[1] ? graph->n[0] : graph->n[1];
  if (nodes > IRM_SPLIT_NODES) nodes = IRM_SPLIT_NODES;
  WEFT_TAKE0(p, arena, 1);
  p->room = entries;
  WEFT_TAKE(p->start, arena, (size_t) nodes + 1);
  WEFT_TAKE(p->entries, arena, (size_t) entries + 1);
  WEFT_TAKE(p->side, arena, (size_t) nodes);
  WEFT_TAKE(p->sizes, arena, (size_t) most);
  WEFT_TAKE(p->seen, arena, (size_t) most);
  WEFT_TAKE(p->rates, arena, (size_t) most);
  WEFT_TAKE(p->links, arena, (size_t) most);
  WEFT_TAKE(p->pairs, arena, (size_t) most);
  if (graph->unit > 0) WEFT_TAKE(p->values, arena, (size_t) most);
  if (graph->unit > 0) WEFT_TAKE(p->widths, arena, (size_t) most);
  if (graph->unit > 0) WEFT_TAKE(p->squares, arena, (size_t) entries + 1);
  for (int side = 0; side < 2; side++) {
    pair_side *cluster = &p->sides[side];
    WEFT_TAKE(cluster->links, arena, (size_t) most);
    WEFT_TAKE(cluster->pairs, arena, (size_t) most);
    if (graph->unit > 0) WEFT_TAKE(cluster->values, arena, (size_t) most);
    if (graph->unit > 0) WEFT_TAKE(cluster->a_value, arena, (size_t) most);
    WEFT_TAKE(cluster->now, arena, (size_t) most);
    WEFT_TAKE(cluster->next, arena, (size_t) most);
    for (int more = 0; more < 2; more++) WEFT_TAKE(cluster->bare[more], arena, (size_t) most);
    WEFT_TAKE(cluster->a_link, arena, (size_t) most);
    WEFT_TAKE(cluster->a_node, arena, (size_t) most);
  }
  *out = p;
done:
  return st;
}

/* ---- members ---- */

/* The entry of the member that is being listed with a cluster of the other mode. */
INLINE int64_t entry_of(irm_pair *p, int32_t at, int64_t first, int64_t *end)
{
  if (p->seen[at] < 0) {
    p->seen[at] = (int32_t) (*end - first);
    if (p->squares) p->squares[*end] = 0;
    p->entries[(*end)++] = (pair_entry){ .at = at };
  }
  return first + p->seen[at];
}

/* Links and missing pairs of a node. */
static int64_t list_length(const weft_irm_graph *graph, int mode, int32_t node)
{
  const int64_t links = graph->links[mode].start[node + 1] - graph->links[mode].start[node];
  return links +
         (graph->missing_count[0] ? graph->missing[mode].start[node + 1] - graph->missing[mode].start[node] : 0);
}

static void load_member(const irm_state *state, irm_pair *p, int32_t node, int64_t first, int64_t *end)
{
  const weft_irm_lists *links = &state->graph->links[p->mode], *missing = &state->graph->missing[p->mode];
  const int32_t *z = state->z[1 - p->mode], *place = state->place[1 - p->mode];
  for (int64_t entry = links->start[node]; entry < links->start[node + 1]; entry++) {
    const int64_t to = entry_of(p, place[z[links->to[entry]]], first, end);
    p->entries[to].links += links->weight ? links->weight[entry] : 1;
    if (p->squares) p->squares[to] += (int64_t) links->weight[entry] * links->weight[entry];
  }
  for (int64_t entry = state->graph->missing_count[0] ? missing->start[node] : 0;
       state->graph->missing_count[0] && entry < missing->start[node + 1]; entry++)
    p->entries[entry_of(p, place[z[missing->to[entry]]], first, end)].missing++;
  for (int64_t entry = first; entry < *end; entry++) p->seen[p->entries[entry].at] = -1;
}

/* Counts each member's links and missing pairs by cluster of the other mode; says whether they are dense and whether
 * all log gammas are in tables. */
int irm_pair_load(const irm_state *state, irm_trial *trial, int mode, int32_t i, int32_t j)
{
  irm_pair *p = trial->pair;
  int64_t end = 0, largest = 0;
  p->mode = mode;
  p->count = trial->count;
  p->clusters = state->active_count[1 - mode];
  for (int32_t at = 0; at < p->clusters; at++) {
    p->seen[at] = -1;
    p->sizes[at] = state->sizes[1 - mode][state->active[1 - mode][at]];
    if (p->sizes[at] > largest) largest = p->sizes[at];
  }
  p->in_tables = state->graph->unit == 0 && !state->model->poisson && largest < state->tables.size / (trial->count + 1);
  for (int64_t x = 0; x < trial->count; x++) {
    const int32_t node = trial->members[x];
    const int64_t most = list_length(state->graph, mode, node);
    if (p->room - end < (most < p->clusters ? most : p->clusters)) return 0;
    if (node == i) p->anchors[0] = x;
    if (node == j) p->anchors[1] = x;
    p->start[x] = end;
    load_member(state, p, node, p->start[x], &end);
  }
  p->start[trial->count] = end;
  p->dense = 2.0 * (double) end >= (double) trial->count * p->clusters;
  return 1;
}

/* Adds `by` times a member to a cluster's counts. */
static void add_member(irm_pair *p, int side, int64_t x, int by)
{
  pair_side *cluster = &p->sides[side];
  cluster->nodes += by;
  for (int32_t at = 0; at < p->clusters; at++) cluster->pairs[at] += by * p->sizes[at];
  for (int64_t entry = p->start[x]; entry < p->start[x + 1]; entry++) {
    cluster->links[p->entries[entry].at] += by * p->entries[entry].links;
    cluster->pairs[p->entries[entry].at] -= by * p->entries[entry].missing;
    if (p->squares) cluster->values[p->entries[entry].at] += by * p->squares[entry];
  }
}

/* ---- the launch ---- */

/* For real values: means and variances, shrunk in the same way, in units. A pair of value x adds
 * a_node + a_link x + a_value x² to the log likelihood. */
static void renew_means(irm_pair *p, int side)
{
  pair_side *cluster = &p->sides[side];
  cluster->node = 0;
  for (int32_t at = 0; at < p->clusters; at++) {
    const double size = (double) p->sizes[at], count = (double) cluster->pairs[at] + size;
    const double mean = ((double) cluster->links[at] + size * p->rates[at]) / count;
    const double square = ((double) cluster->values[at] + size * (p->widths[at] + p->rates[at] * p->rates[at])) / count;
    const double width = square - mean * mean > 1 ? square - mean * mean : 1;
    cluster->a_link[at] = mean / width;
    cluster->a_value[at] = -0.5 / width;
    cluster->a_node[at] = -0.5 * (weft_log(width) + mean * mean / width);
    cluster->node += size * cluster->a_node[at];
  }
  cluster->renew_at = cluster->nodes + 1 + cluster->nodes / RENEW_SHARE;
}

/* Rates shrunk towards those of both clusters together, as if one more node of these were in it. */
static void renew_rates(const irm_state *state, irm_pair *p, int side)
{
  pair_side *cluster = &p->sides[side];
  if (p->squares) {
    renew_means(p, side);
    return;
  }
  cluster->node = 0;
  for (int32_t at = 0; at < p->clusters; at++) {
    const double size = (double) p->sizes[at];
    const double rate = ((double) cluster->links[at] + size * p->rates[at]) / ((double) cluster->pairs[at] + size);
    cluster->a_node[at] = state->model->poisson ? -rate : weft_log1p(-rate);
    cluster->a_link[at] = weft_log(rate) - (state->model->poisson ? 0 : cluster->a_node[at]);
    cluster->node += size * cluster->a_node[at];
  }
  cluster->renew_at = cluster->nodes + 1 + cluster->nodes / RENEW_SHARE;
}

static void start_side(const irm_state *state, irm_pair *p, int side)
{
  pair_side *cluster = &p->sides[side];
  memset(cluster->links, 0, (size_t) p->clusters * sizeof *cluster->links);
  memset(cluster->pairs, 0, (size_t) p->clusters * sizeof *cluster->pairs);
  if (p->squares) memset(cluster->values, 0, (size_t) p->clusters * sizeof *cluster->values);
  cluster->nodes = 0;
  add_member(p, side, p->anchors[side], 1);
  p->side[p->anchors[side]] = (uint8_t) side;
  renew_rates(state, p, side);
}

/* Only the anchors are placed at first; rates are renewed whenever a side has grown by a fifth. */
weft_status irm_pair_launch(weft_ctx *poll, const irm_state *state, irm_trial *trial)
{
  irm_pair *p = trial->pair;
  const pair_side *one = &p->sides[0], *two = &p->sides[1];
  const size_t width = (size_t) state->k[1 - p->mode];
  for (int32_t at = 0; at < p->clusters; at++) {
    const size_t m = (size_t) state->active[1 - p->mode][at];
    const size_t first = (size_t) trial->a * width + m, second = (size_t) trial->b * width + m;
    const int64_t pairs = state->pairs[p->mode][first] + state->pairs[p->mode][second];
    const double links = (double) (state->links[p->mode][first] + state->links[p->mode][second]);
    p->rates[at] = pairs ? (links + 0.5) / ((double) pairs + 1) : 0.5;
    if (!p->squares) continue;
    const double values = (double) (state->values[p->mode][first] + state->values[p->mode][second]);
    p->rates[at] = pairs ? links / (double) pairs : 0;
    p->widths[at] = pairs ? values / (double) pairs - p->rates[at] * p->rates[at] : 0;
    if (p->widths[at] < 1) p->widths[at] = 1;
  }
  for (int side = 0; side < 2; side++) start_side(state, p, side);
  for (int64_t x = 0; x < p->count; x++) {
    if (x == p->anchors[0] || x == p->anchors[1]) continue;
    double odds = two->node - one->node;
    for (int64_t e = p->start[x]; e < p->start[x + 1]; e++) {
      const pair_entry *n = &p->entries[e];
      odds += (double) n->links * (two->a_link[n->at] - one->a_link[n->at]) -
              n->missing * (two->a_node[n->at] - one->a_node[n->at]);
      if (p->squares) odds += (double) p->squares[e] * (two->a_value[n->at] - one->a_value[n->at]);
    }
    const double u = irm_trial_next(trial);
    const int side = weft_log(u / (1 - u)) < odds;
    add_member(p, side, x, 1);
    p->side[x] = (uint8_t) side;
    if (p->sides[side].nodes >= p->sides[side].renew_at) renew_rates(state, p, side);
    if (poll && x % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
  return WEFT_OK;
}

/* ---- scans ---- */

/* f of a block, of which `in_tables` says that tables have all of it. */
INLINE double f_of(const irm_state *state, int in_tables, int64_t links, int64_t values, int64_t pairs)
{
  return in_tables ? irm_f_in_tables(&state->tables, links, pairs) : irm_f_block(&state->tables, links, values, pairs);
}

static void fill_now(const irm_state *state, const irm_pair *p, int side)
{
  const pair_side *cluster = &p->sides[side];
  for (int32_t at = 0; at < p->clusters; at++)
    cluster->now[at] =
        f_of(state, p->in_tables, cluster->links[at], cluster->values ? cluster->values[at] : 0, cluster->pairs[at]);
}

/* The terms of nodes without links that leave or join. Where no such node can leave, any number will do: it is
 * cancelled by the terms of the nodes that can. */
static void fill_bare(const irm_state *state, irm_pair *p, int side)
{
  pair_side *cluster = &p->sides[side];
  const int links_bound = state->graph->unit == 0 && !state->model->poisson;
  for (int more = 0; more < 2; more++) {
    cluster->bare_gain[more] = 0;
    for (int32_t at = 0; at < p->clusters; at++) {
      const int64_t links = cluster->links[at], pairs = cluster->pairs[at] + (more ? p->sizes[at] : -p->sizes[at]);
      const int none = pairs < 0 || (links_bound && links > pairs);
      cluster->bare[more][at] =
          none ? cluster->now[at] : f_of(state, p->in_tables, links, cluster->values ? cluster->values[at] : 0, pairs);
      cluster->bare_gain[more] += cluster->bare[more][at] - cluster->now[at];
    }
  }
}

/* The member's counts by place; the previous member's are cleared. */
static void unpack(irm_pair *p, int64_t before, int64_t x)
{
  if (before < 0) {
    memset(p->links, 0, (size_t) p->clusters * sizeof *p->links);
    memcpy(p->pairs, p->sizes, (size_t) p->clusters * sizeof *p->pairs);
    if (p->values) memset(p->values, 0, (size_t) p->clusters * sizeof *p->values);
  } else {
    for (int64_t e = p->start[before]; e < p->start[before + 1]; e++) {
      const int32_t at = p->entries[e].at;
      p->links[at] = 0;
      p->pairs[at] = p->sizes[at];
      if (p->values) p->values[at] = 0;
    }
  }
  for (int64_t e = p->start[x]; e < p->start[x + 1]; e++) {
    const pair_entry *n = &p->entries[e];
    p->links[n->at] = n->links;
    p->pairs[n->at] -= n->missing;
    if (p->values) p->values[n->at] = p->squares[e];
  }
}

/* The gain when member x joins (`by` 1) or leaves (-1); also fills cluster->next. */
INLINE double gain_by_place(const irm_state *state, const irm_pair *p, int side, int by, int in_tables)
{
  const pair_side *cluster = &p->sides[side];
  double sum = 0;
  for (int32_t at = 0; at < p->clusters; at++) {
    const int64_t values = cluster->values ? cluster->values[at] + by * p->values[at] : 0;
    cluster->next[at] =
        f_of(state, in_tables, cluster->links[at] + by * p->links[at], values, cluster->pairs[at] + by * p->pairs[at]);
    sum += cluster->next[at] - cluster->now[at];
  }
  return sum;
}

static double gain_by_entry(const irm_state *state, const irm_pair *p, int side, int64_t x, int by)
{
  const pair_side *cluster = &p->sides[side];
  const double *bare = cluster->bare[by > 0];
  double sum = cluster->bare_gain[by > 0];
  for (int64_t e = p->start[x]; e < p->start[x + 1]; e++) {
    const pair_entry *n = &p->entries[e];
    const int64_t values = cluster->values ? cluster->values[n->at] + by * p->squares[e] : 0;
    const double next = f_of(state, p->in_tables, cluster->links[n->at] + by * n->links, values,
                             cluster->pairs[n->at] + by * (p->sizes[n->at] - n->missing));
    cluster->next[e - p->start[x]] = next;
    sum += next - bare[n->at];
  }
  return sum;
}

static double gain_of(const irm_state *state, const irm_pair *p, int side, int64_t x, int by)
{
  if (!p->dense) return gain_by_entry(state, p, side, x, by);
  return p->in_tables ? gain_by_place(state, p, side, by, 1) : gain_by_place(state, p, side, by, 0);
}

/* Member x joins or leaves, as gain_of() has computed it. */
static void move(const irm_state *state, irm_pair *p, int side, int64_t x, int by)
{
  pair_side *cluster = &p->sides[side];
  add_member(p, side, x, by);
  if (p->dense) {
    double *held = cluster->now;
    cluster->now = cluster->next;
    cluster->next = held;
    return;
  }
  memcpy(cluster->now, cluster->bare[by > 0], (size_t) p->clusters * sizeof *cluster->now);
  for (int64_t entry = p->start[x]; entry < p->start[x + 1]; entry++)
    cluster->now[p->entries[entry].at] = cluster->next[entry - p->start[x]];
  fill_bare(state, p, side);
}

/* Logarithms of the sizes that decide how likely moves are: of a cluster, and of one with a node less. */
typedef struct pair_logs {
  double nodes[2], others[2];
} pair_logs;

static void renew_logs(const irm_pair *p, pair_logs *logs)
{
  for (int side = 0; side < 2; side++) {
    logs->nodes[side] = weft_log((double) p->sides[side].nodes);
    logs->others[side] = weft_log((double) (p->sides[side].nodes - 1));
  }
}

/* Whether log u is less than the log probability of odds; rare: exp(-|odds|). Logarithms are needed only where rounding
 * might decide. */
INLINE int is_below(double u, double odds, double rare)
{
  const double probability = (odds > 0 ? 1 : rare) / (1 + rare), far = 1e-9 * probability;
  if (u < probability - far) return 1;
  if (u > probability + far) return 0;
  return weft_log(u) < (odds > 0 ? -weft_log1p(rare) : odds - weft_log1p(rare));
}

/* With `target` (labels by member) no draw is made; log_q may be NULL. WEFT_ERR_INTERRUPT when a poll says so; the
 * state is never changed. */
weft_status irm_pair_scan(weft_ctx *poll, const irm_state *state, irm_trial *trial, const int32_t *target,
                          double *log_q)
{
  irm_pair *p = trial->pair;
  pair_logs logs;
  int64_t before = -1;
  if (log_q) *log_q = 0;
  for (int side = 0; side < 2; side++) {
    fill_now(state, p, side);
    if (!p->dense) fill_bare(state, p, side);
  }
  renew_logs(p, &logs);
  for (int64_t x = 0; x < p->count; x++) {
    if (poll && x % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
    if (x == p->anchors[0] || x == p->anchors[1]) continue;
    const int from = p->side[x], other = 1 - from;
    if (p->dense) unpack(p, before, x);
    before = x;
    const double change =
        gain_of(state, p, from, x, -1) + gain_of(state, p, other, x, 1) + logs.nodes[other] - logs.others[from];
    const double odds = from ? -change : change, rare = weft_exp(odds > 0 ? -odds : odds);
    const int side = target ? target[x] == trial->b : is_below(irm_trial_next(trial), odds, rare);
    if (log_q) {
      const double log_b = odds > 0 ? -weft_log1p(rare) : odds - weft_log1p(rare);
      *log_q += side ? log_b : log_b - odds;
    }
    if (side == from) continue;
    move(state, p, from, x, -1);
    move(state, p, side, x, 1);
    p->side[x] = (uint8_t) side;
    renew_logs(p, &logs);
  }
  return WEFT_OK;
}

/* ---- the outcome ---- */

irm_row irm_pair_row(const irm_trial *trial, int side)
{
  const irm_pair *p = trial->pair;
  const pair_side *cluster = &p->sides[side];
  irm_row row = { cluster->links, cluster->pairs, cluster->values, NULL, 0, cluster->nodes };
  for (int32_t at = 0; at < p->clusters; at++) row.now += cluster->now[at];
  return row;
}

/* Writes both sides' blocks, or their sums in a and zeros in b, into the state, with sizes and the members' labels. */
void irm_pair_apply(irm_state *state, const irm_trial *trial, int all_in_a)
{
  const irm_pair *p = trial->pair;
  const pair_side *one = &p->sides[0], *two = &p->sides[1];
  const int mode = p->mode;
  const size_t width = (size_t) state->k[1 - mode], height = (size_t) state->k[mode];
  const int32_t label[2] = { trial->a, trial->b };
  const int64_t nodes[2] = { all_in_a ? p->count : one->nodes, all_in_a ? 0 : two->nodes };
  for (int32_t at = 0; at < p->clusters; at++) {
    const size_t m = (size_t) state->active[1 - mode][at];
    const int64_t links[2] = { all_in_a ? one->links[at] + two->links[at] : one->links[at],
                               all_in_a ? 0 : two->links[at] };
    const int64_t pairs[2] = { all_in_a ? one->pairs[at] + two->pairs[at] : one->pairs[at],
                               all_in_a ? 0 : two->pairs[at] };
    for (int side = 0; side < 2; side++) {
      const size_t l = (size_t) label[side];
      state->links[mode][l * width + m] = state->links[1 - mode][m * height + l] = links[side];
      state->pairs[mode][l * width + m] = state->pairs[1 - mode][m * height + l] = pairs[side];
      if (!p->squares) continue;
      const int64_t values = all_in_a ? (side ? 0 : one->values[at] + two->values[at]) : p->sides[side].values[at];
      state->values[mode][l * width + m] = state->values[1 - mode][m * height + l] = values;
    }
  }
  for (int side = 0; side < 2; side++)
    irm_change_size(state, mode, label[side], nodes[side] - state->sizes[mode][label[side]]);
  for (int64_t x = 0; x < p->count; x++) state->z[mode][trial->members[x]] = label[all_in_a ? 0 : p->side[x]];
}
