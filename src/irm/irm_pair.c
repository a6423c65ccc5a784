/* Restricted scans over two clusters a and b of one mode of a bipartite graph. The other mode's labels stand still, so
 * that a node's links n_m with each of its clusters are counted once a proposal, and the state's blocks wait for the
 * outcome.
 *
 * With f the contribution of a block (irm_score.h), L and P a cluster's links and pairs with cluster m, and p the size
 * of m, a node gains
 *
 *   Σ_m [f(L, P + p) - f(L, P)]  +  Σ_{m it has n links or q missing pairs with} [f(L + n, P + p - q) - f(L, P + p)]
 *
 * by joining: the first sum is the cluster's alone and is kept, so that a node costs its links, and one f an m when it
 * moves. */
#include <string.h>
#include "irm_pair.h"

enum { POLL_NODES = 512, RENEW_SHARE = 16 };

typedef struct pair_entry { int64_t links; int32_t at, missing; } pair_entry; /* the counts of many links add up */

/* One of the two clusters; arrays by place in the other mode's list of active clusters. */
typedef struct pair_side {
  int64_t nodes, *links, *pairs, *values;
  double *now, *more, gain;      /* f(L, P), f(L, P + p), the first sum */
  double *a_link, *a_node, node; /* launch: log odds of a link, log of no link a pair, its sum over all pairs */
  double *a_value;               /* and what a square of a real value adds */
  int64_t renew_at;
} pair_side;

struct irm_pair {
  int mode;
  int32_t label[2], clusters;
  int64_t count, anchors[2];     /* members; where the anchors stand among them */
  int64_t *start, *sizes;        /* a member's entries; of the other mode's clusters, by place */
  pair_entry *entries;
  int64_t *squares;              /* of real values, beside the entries; else NULL */
  uint8_t *side;
  int32_t *seen;                 /* by place, scratch: a member's entry; -1 */
  double *rates, *widths, *kept_now, *kept_more;
  pair_side sides[2];
};

weft_status irm_pair_make(weft_arena *arena, const irm_state *s, irm_pair **out)
{
  weft_status st = WEFT_OK;
  irm_pair *p;
  const weft_irm_graph *g = s->graph;
  const int32_t most = s->k[0] > s->k[1] ? s->k[0] : s->k[1];
  int64_t nodes = g->n[0] > g->n[1] ? g->n[0] : g->n[1], entries = g->link_count[0] + g->missing_count[0];
  if (nodes > IRM_SPLIT_NODES) nodes = IRM_SPLIT_NODES;
  if ((double) nodes * most < (double) entries) entries = nodes * most;
  WEFT_TAKE0(p, arena, 1);
  WEFT_TAKE(p->start, arena, (size_t) nodes + 1);
  WEFT_TAKE(p->entries, arena, (size_t) entries + 1);
  WEFT_TAKE(p->side, arena, (size_t) nodes);
  WEFT_TAKE(p->sizes, arena, (size_t) most);
  WEFT_TAKE(p->seen, arena, (size_t) most);
  WEFT_TAKE(p->rates, arena, (size_t) most);
  if (g->unit > 0) WEFT_TAKE(p->widths, arena, (size_t) most);
  if (g->unit > 0) WEFT_TAKE(p->squares, arena, (size_t) entries + 1);
  WEFT_TAKE(p->kept_now, arena, (size_t) most);
  WEFT_TAKE(p->kept_more, arena, (size_t) most);
  for (int side = 0; side < 2; side++) {
    pair_side *c = &p->sides[side];
    WEFT_TAKE(c->links, arena, (size_t) most);
    WEFT_TAKE(c->pairs, arena, (size_t) most);
    if (g->unit > 0) WEFT_TAKE(c->values, arena, (size_t) most);
    if (g->unit > 0) WEFT_TAKE(c->a_value, arena, (size_t) most);
    WEFT_TAKE(c->now, arena, (size_t) most);
    WEFT_TAKE(c->more, arena, (size_t) most);
    WEFT_TAKE(c->a_link, arena, (size_t) most);
    WEFT_TAKE(c->a_node, arena, (size_t) most);
  }
  *out = p;
done:
  return st;
}

/* ---- members ---- */

static int32_t *place_of(const irm_state *s, const irm_pair *p) { return s->place[1 - p->mode]; }

/* The entry of the member that is being listed with a cluster of the other mode. */
static int64_t entry_of(irm_pair *p, int32_t at, int64_t first, int64_t *end)
{
  if (p->seen[at] < 0) {
    p->seen[at] = (int32_t) (*end - first);
    if (p->squares) p->squares[*end] = 0;
    p->entries[(*end)++] = (pair_entry) { .at = at };
  }
  return first + p->seen[at];
}

void irm_pair_load(irm_state *s, int mode, int32_t a, int32_t b, int64_t count, int32_t i, int32_t j)
{
  irm_pair *p = s->pair;
  const weft_irm_lists *links = &s->graph->links[mode], *missing = &s->graph->missing[mode];
  const int32_t *z = s->z[1 - mode];
  int64_t end = 0;
  p->mode = mode;
  p->label[0] = a;
  p->label[1] = b;
  p->count = count;
  p->clusters = s->active_count[1 - mode];
  for (int32_t at = 0; at < p->clusters; at++) {
    p->seen[at] = -1;
    p->sizes[at] = s->sizes[1 - mode][s->active[1 - mode][at]];
  }
  for (int64_t x = 0; x < count; x++) {
    const int32_t node = s->members[x];
    const int64_t first = p->start[x] = end;
    if (node == i) p->anchors[0] = x;
    if (node == j) p->anchors[1] = x;
    for (int64_t e = links->start[node]; e < links->start[node + 1]; e++) {
      const int64_t to = entry_of(p, place_of(s, p)[z[links->to[e]]], first, &end);
      p->entries[to].links += links->weight ? links->weight[e] : 1;
      if (p->squares) p->squares[to] += (int64_t) links->weight[e] * links->weight[e];
    }
    for (int64_t e = s->graph->missing_count[0] ? missing->start[node] : 0;
         s->graph->missing_count[0] && e < missing->start[node + 1]; e++)
      p->entries[entry_of(p, place_of(s, p)[z[missing->to[e]]], first, &end)].missing++;
    for (int64_t e = first; e < end; e++) p->seen[p->entries[e].at] = -1;
  }
  p->start[count] = end;
}

/* Adds `by` times a member to a cluster's counts. */
static void add_member(irm_pair *p, int side, int64_t x, int by)
{
  pair_side *c = &p->sides[side];
  c->nodes += by;
  for (int32_t at = 0; at < p->clusters; at++) c->pairs[at] += by * p->sizes[at];
  for (int64_t e = p->start[x]; e < p->start[x + 1]; e++) {
    c->links[p->entries[e].at] += by * p->entries[e].links;
    c->pairs[p->entries[e].at] -= by * p->entries[e].missing;
    if (p->squares) c->values[p->entries[e].at] += by * p->squares[e];
  }
}

/* ---- the launch ---- */

/* Of real values: means and variances shrunk in the same way, in units. A pair of value x adds
 * a_node + a_link x + a_value x² to the log likelihood. */
static void renew_means(irm_pair *p, int side)
{
  pair_side *c = &p->sides[side];
  c->node = 0;
  for (int32_t at = 0; at < p->clusters; at++) {
    const double size = (double) p->sizes[at], count = (double) c->pairs[at] + size;
    const double mean = ((double) c->links[at] + size * p->rates[at]) / count;
    const double square = ((double) c->values[at] + size * (p->widths[at] + p->rates[at] * p->rates[at])) / count;
    const double width = square - mean * mean > 1 ? square - mean * mean : 1;
    c->a_link[at] = mean / width;
    c->a_value[at] = -0.5 / width;
    c->a_node[at] = -0.5 * (weft_log(width) + mean * mean / width);
    c->node += size * c->a_node[at];
  }
  c->renew_at = c->nodes + 1 + c->nodes / RENEW_SHARE;
}

/* Rates shrunk towards those of both clusters together, as if one more node of these were in it. */
static void renew_rates(const irm_state *s, irm_pair *p, int side)
{
  pair_side *c = &p->sides[side];
  if (p->squares) {
    renew_means(p, side);
    return;
  }
  c->node = 0;
  for (int32_t at = 0; at < p->clusters; at++) {
    const double size = (double) p->sizes[at];
    const double rate = ((double) c->links[at] + size * p->rates[at]) / ((double) c->pairs[at] + size);
    c->a_node[at] = s->model->poisson ? -rate : weft_log1p(-rate);
    c->a_link[at] = weft_log(rate) - (s->model->poisson ? 0 : c->a_node[at]);
    c->node += size * c->a_node[at];
  }
  c->renew_at = c->nodes + 1 + c->nodes / RENEW_SHARE;
}

static void start_side(const irm_state *s, irm_pair *p, int side)
{
  pair_side *c = &p->sides[side];
  memset(c->links, 0, (size_t) p->clusters * sizeof *c->links);
  memset(c->pairs, 0, (size_t) p->clusters * sizeof *c->pairs);
  if (p->squares) memset(c->values, 0, (size_t) p->clusters * sizeof *c->values);
  c->nodes = 0;
  add_member(p, side, p->anchors[side], 1);
  p->side[p->anchors[side]] = (uint8_t) side;
  renew_rates(s, p, side);
}

weft_status irm_pair_launch(weft_ctx *poll, irm_state *s)
{
  irm_pair *p = s->pair;
  const pair_side *a = &p->sides[0], *b = &p->sides[1];
  const size_t width = (size_t) s->k[1 - p->mode];
  for (int32_t at = 0; at < p->clusters; at++) {
    const size_t m = (size_t) s->active[1 - p->mode][at];
    const size_t first = (size_t) p->label[0] * width + m, second = (size_t) p->label[1] * width + m;
    const int64_t pairs = s->pairs[p->mode][first] + s->pairs[p->mode][second];
    const double links = (double) (s->links[p->mode][first] + s->links[p->mode][second]);
    p->rates[at] = pairs ? (links + 0.5) / ((double) pairs + 1) : 0.5;
    if (!p->squares) continue;
    const double values = (double) (s->values[p->mode][first] + s->values[p->mode][second]);
    p->rates[at] = pairs ? links / (double) pairs : 0;
    p->widths[at] = pairs ? values / (double) pairs - p->rates[at] * p->rates[at] : 0;
    if (p->widths[at] < 1) p->widths[at] = 1;
  }
  for (int side = 0; side < 2; side++) start_side(s, p, side);
  for (int64_t x = 0; x < p->count; x++) {
    if (x == p->anchors[0] || x == p->anchors[1]) continue;
    double odds = b->node - a->node;
    for (int64_t e = p->start[x]; e < p->start[x + 1]; e++) {
      const pair_entry *n = &p->entries[e];
      odds += (double) n->links * (b->a_link[n->at] - a->a_link[n->at])
              - n->missing * (b->a_node[n->at] - a->a_node[n->at]);
      if (p->squares) odds += (double) p->squares[e] * (b->a_value[n->at] - a->a_value[n->at]);
    }
    const double u = irm_next(s);
    const int side = weft_log(u / (1 - u)) < odds;
    add_member(p, side, x, 1);
    p->side[x] = (uint8_t) side;
    if (p->sides[side].nodes >= p->sides[side].renew_at) renew_rates(s, p, side);
    if (poll && x % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
  return WEFT_OK;
}

/* ---- scans ---- */

/* One of f(L, P) and f(L, P + p) for every m, and the first sum. */
static void fill_gain(const irm_state *s, irm_pair *p, int side, int more)
{
  pair_side *c = &p->sides[side];
  double *out = more ? c->more : c->now;
  c->gain = 0;
  for (int32_t at = 0; at < p->clusters; at++) {
    out[at] =
        irm_f_block(&s->tables, c->links[at], c->values ? c->values[at] : 0, c->pairs[at] + (more ? p->sizes[at] : 0));
    c->gain += c->more[at] - c->now[at];
  }
}

/* What member x gains by joining. */
static double gain_of(const irm_state *s, const irm_pair *p, int side, int64_t x)
{
  const pair_side *c = &p->sides[side];
  double sum = c->gain;
  for (int64_t e = p->start[x]; e < p->start[x + 1]; e++) {
    const pair_entry *n = &p->entries[e];
    sum += irm_f_block(&s->tables, c->links[n->at] + n->links, p->squares ? c->values[n->at] + p->squares[e] : 0,
                       c->pairs[n->at] + p->sizes[n->at] - n->missing) - c->more[n->at];
  }
  return sum;
}

/* A member joins or leaves: where it has nothing, f(L, P + p) becomes f(L, P), or the other way round. */
static void move(const irm_state *s, irm_pair *p, int side, int64_t x, int by)
{
  pair_side *c = &p->sides[side];
  double *known = by > 0 ? c->now : c->more;
  add_member(p, side, x, by);
  memcpy(known, by > 0 ? c->more : c->now, (size_t) p->clusters * sizeof *known);
  for (int64_t e = p->start[x]; e < p->start[x + 1]; e++) {
    const int32_t at = p->entries[e].at;
    known[at] = irm_f_block(&s->tables, c->links[at], c->values ? c->values[at] : 0,
                            c->pairs[at] + (by > 0 ? 0 : p->sizes[at]));
  }
  fill_gain(s, p, side, by > 0);
}

weft_status irm_pair_scan(weft_ctx *poll, irm_state *s, const int32_t *target, double *log_q)
{
  irm_pair *p = s->pair;
  const size_t bytes = (size_t) p->clusters * sizeof(double);
  *log_q = 0;
  for (int side = 0; side < 2; side++)
    for (int more = 0; more < 2; more++) fill_gain(s, p, side, more);
  for (int64_t x = 0; x < p->count; x++) {
    if (x == p->anchors[0] || x == p->anchors[1]) continue;
    const int from = p->side[x];
    pair_side *c = &p->sides[from];
    const double kept_gain = c->gain;
    memcpy(p->kept_now, c->now, bytes);
    memcpy(p->kept_more, c->more, bytes);
    move(s, p, from, x, -1);
    const double odds = gain_of(s, p, 1, x) - gain_of(s, p, 0, x)
                        + weft_log((double) p->sides[1].nodes) - weft_log((double) p->sides[0].nodes);
    const double log_b = odds > 0 ? -weft_log1p(weft_exp(-odds)) : odds - weft_log1p(weft_exp(odds)),
                 log_a = log_b - odds;
    const int side = target ? target[x] == p->label[1] : weft_log(irm_next(s)) < log_b;
    *log_q += side ? log_b : log_a;
    p->side[x] = (uint8_t) side;
    if (side == from) {
      add_member(p, side, x, 1);
      memcpy(c->now, p->kept_now, bytes);
      memcpy(c->more, p->kept_more, bytes);
      c->gain = kept_gain;
    } else {
      move(s, p, side, x, 1);
    }
    if (poll && x % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
  return WEFT_OK;
}

/* ---- the outcome ---- */

void irm_pair_apply(irm_state *s, int all_in_a)
{
  const irm_pair *p = s->pair;
  const pair_side *a = &p->sides[0], *b = &p->sides[1];
  const int mode = p->mode;
  const size_t width = (size_t) s->k[1 - mode], height = (size_t) s->k[mode];
  const int64_t nodes[2] = { all_in_a ? p->count : a->nodes, all_in_a ? 0 : b->nodes };
  for (int32_t at = 0; at < p->clusters; at++) {
    const size_t m = (size_t) s->active[1 - mode][at];
    const int64_t links[2] = { all_in_a ? a->links[at] + b->links[at] : a->links[at], all_in_a ? 0 : b->links[at] };
    const int64_t pairs[2] = { all_in_a ? a->pairs[at] + b->pairs[at] : a->pairs[at], all_in_a ? 0 : b->pairs[at] };
    for (int side = 0; side < 2; side++) {
      const size_t l = (size_t) p->label[side];
      s->links[mode][l * width + m] = s->links[1 - mode][m * height + l] = links[side];
      s->pairs[mode][l * width + m] = s->pairs[1 - mode][m * height + l] = pairs[side];
      if (!p->squares) continue;
      const int64_t values = all_in_a ? (side ? 0 : a->values[at] + b->values[at]) : p->sides[side].values[at];
      s->values[mode][l * width + m] = s->values[1 - mode][m * height + l] = values;
    }
  }
  for (int side = 0; side < 2; side++)
    irm_change_size(s, mode, p->label[side], nodes[side] - s->sizes[mode][p->label[side]]);
  for (int64_t x = 0; x < p->count; x++) s->z[mode][s->members[x]] = p->label[all_in_a ? 0 : p->side[x]];
}
