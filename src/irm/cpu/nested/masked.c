/* The counts of masked pairs, which were not observed, are unknowns like the groups (a link is a count of 1 or more). A
 * sweep draws the groups given all links, and then each masked pair's count given the groups and all other links, so
 * that the groups are draws given the observed pairs alone.
 *
 * A count x has a probability in proportion to exp(-length(x)), with the description length of levels.h and a cost of
 * link_cost x: a geometric prior of the number of links, whose mean is what the observed pairs suggest. (Without one
 * the sum over x may diverge, as in a graph of one pair.) Weights are computed at nodes: the mode, its neighbours, and
 * others at distances that grow by a fifth, down to exp(-DROP) of the greatest. Between two nodes a count is proposed
 * from a geometric law and accepted by Metropolis and Hastings' ratio, so that the draw is exact.
 *
 * The draws of a sweep are sequential imputations: p(all links, groups) / p(what was drawn) is an unbiased estimate of
 * p(observed links, groups), whatever the counts before (Kong, Liu and Wong 1994, Journal of the American Statistical
 * Association 89, 278). Its logarithm, which is the log posterior of a partition here, is above the truth by t nats
 * with probability e^-t at most. */
#include <math.h>
#include <string.h>
#include "irm/cpu/nested/degrees.h"
#include "irm/cpu/nested/masked.h"
#include "irm/cpu/nested/terms.h"

/* Weights below the greatest by this many nats are 0; nodes at every count up to CLOSE from the mode. */
#define DROP 30.0
#define GROWTH 1.2
#define MAX_COUNT INT32_MAX
enum { CLOSE = 8, MAX_NODES = 512, POLL_PAIRS = 4096 };

/* ---- the graph with drawn links ---- */

/* The masked pairs in the order of R's list: by row, then column, in an undirected graph from <= to. */
static void list_pairs(const weft_irm_graph *graph, irm_masked *out, int64_t *count)
{
  const weft_irm_lists *lists = &graph->missing[0];
  const int undirected = graph->type == WEFT_IRM_UNDIRECTED;
  const int64_t shift = graph->type == WEFT_IRM_BIPARTITE ? graph->n[0] : 0;
  *count = 0;
  for (int64_t i = 0; i < graph->n[0]; i++) {
    int own = graph->self_pair && !graph->self_pair[i];
    for (int64_t at = lists->start[i]; at <= lists->start[i + 1]; at++) {
      const int last = at == lists->start[i + 1];
      if (own && (last || lists->to[at] > i)) {
        if (out->from) out->from[*count] = out->to[*count] = (int32_t) i;
        ++*count;
        own = 0;
      }
      if (last || (undirected && lists->to[at] < i)) continue;
      if (out->from) {
        out->from[*count] = (int32_t) i;
        out->to[*count] = (int32_t) (lists->to[at] + shift);
      }
      ++*count;
    }
  }
}

static double cost_of_a_link(const weft_irm_graph *graph, int64_t masked)
{
  const double n = (double) graph->n[0], pair = (double) graph->n[1];
  const int half = graph->type == WEFT_IRM_UNDIRECTED;
  double links = 0, pairs = graph->type == WEFT_IRM_BIPARTITE ? n * pair : (half ? 0.5 : 1) * n * (n - 1);
  for (int64_t at = 0; at < graph->link_count[0]; at++)
    links += graph->links[0].weight ? graph->links[0].weight[at] : 1;
  if (half) links *= 0.5;
  for (int64_t i = 0; i < graph->n[0] && graph->self_weight; i++) links += graph->self_weight[i];
  if (graph->self_pair) pairs += n;
  const double observed = pairs - (double) masked;
  return weft_log1p((observed > 1 ? observed : 1) / pairs / (links > 1 ? links : 1));
}

/* Lists have room for a link between each masked pair, whose counts begin at 0. */
weft_status irm_masked_make(weft_arena *arena, const weft_irm_graph *observed, irm_masked *out)
{
  weft_status st = WEFT_OK;
  int64_t count;
  memset(out, 0, sizeof *out);
  if (!irm_has_missing(observed)) return st;
  list_pairs(observed, out, &count);
  WEFT_TAKE(out->from, arena, (size_t) count);
  WEFT_TAKE(out->to, arena, (size_t) count);
  list_pairs(observed, out, &count);
  out->observed = observed;
  out->count = count;
  out->link_cost = cost_of_a_link(observed, count);
  out->graph = *observed;
  const int64_t most = observed->n[0] > observed->n[1] ? observed->n[0] : observed->n[1];
  WEFT_TAKE(out->next, arena, (size_t) most + 1);
  for (int side = 0; side < 2; side++) {
    if (side && observed->type == WEFT_IRM_UNDIRECTED) break;
    const int64_t n = observed->n[observed->type == WEFT_IRM_BIPARTITE ? side : 0];
    const size_t entries =
        (size_t) observed->link_count[side] + (size_t) (observed->type == WEFT_IRM_UNDIRECTED ? 2 : 1) * (size_t) count;
    int64_t *start;
    int32_t *to, *weight;
    WEFT_TAKE(start, arena, (size_t) n + 1);
    WEFT_TAKE(to, arena, entries);
    WEFT_TAKE(weight, arena, entries);
    out->graph.links[side] = (weft_irm_lists){ start, to, weight };
  }
  if (observed->self_weight) {
    int32_t *weight;
    WEFT_TAKE(weight, arena, (size_t) observed->n[0] + 1);
    out->graph.self_weight = weight;
  }
  WEFT_TAKE0(out->drawn, arena, (size_t) count);
  WEFT_TAKE0(out->other, arena, (size_t) count);
  WEFT_TAKE0(out->expected, arena, (size_t) count);
done:
  return st;
}

/* The list of node `end` of a pair on a side, and what is in it; -1: none. */
static int64_t place_of(const irm_masked *masked, int64_t pair, int side, int turned, int64_t *other)
{
  const weft_irm_graph *graph = masked->observed;
  const int64_t from = masked->from[pair], to = masked->to[pair];
  if (graph->type == WEFT_IRM_BIPARTITE) {
    *other = side ? from : to - graph->n[0];
    return side ? to - graph->n[0] : from;
  }
  if (from == to) return -1;
  *other = side != turned ? from : to;
  return side != turned ? to : from;
}

/* The observed neighbours of every node, then those that were drawn. */
static void fill_side(irm_masked *masked, const int32_t *drawn, int side)
{
  const weft_irm_graph *graph = masked->observed;
  const weft_irm_lists *seen = &graph->links[side], *all = &masked->graph.links[side];
  const int both = graph->type == WEFT_IRM_UNDIRECTED;
  const int64_t n = graph->n[graph->type == WEFT_IRM_BIPARTITE ? side : 0];
  int64_t *start = (int64_t *) all->start, *next = masked->next, other;
  int32_t *to = (int32_t *) all->to, *weight = (int32_t *) all->weight;
  memset(next, 0, (size_t) n * sizeof *next);
  for (int64_t pair = 0; pair < masked->count; pair++)
    for (int turned = 0; turned <= both && drawn[pair]; turned++) {
      const int64_t i = place_of(masked, pair, side, turned, &other);
      if (i >= 0) next[i]++;
    }
  start[0] = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t count = seen->start[i + 1] - seen->start[i];
    start[i + 1] = start[i] + count + next[i];
    if (count) memcpy(to + start[i], seen->to + seen->start[i], (size_t) count * sizeof *to);
    for (int64_t at = 0; at < count && weight; at++)
      weight[start[i] + at] = seen->weight ? seen->weight[seen->start[i] + at] : 1;
    next[i] = start[i] + count;
  }
  for (int64_t pair = 0; pair < masked->count; pair++)
    for (int turned = 0; turned <= both && drawn[pair]; turned++) {
      const int64_t i = place_of(masked, pair, side, turned, &other);
      if (i < 0) continue;
      to[next[i]] = (int32_t) other;
      if (weight) weight[next[i]] = drawn[pair];
      next[i]++;
    }
  masked->graph.link_count[side] = start[n];
}

/* Rounds of the guess. */
enum { GUESS_ROUNDS = 30 };

/* Degrees k and counts k_i k_j / Σ k of masked pairs in turn, from no links of these on. Zeros would be outliers among
 * large counts, which chains would first explain by groups. */
weft_status irm_masked_guess(weft_ctx *ctx, const irm_masked *masked, int32_t *drawn)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_irm_graph *graph = masked->observed;
  const int directed = graph->type == WEFT_IRM_DIRECTED;
  const int64_t rows = graph->n[0], n = rows + (graph->type == WEFT_IRM_BIPARTITE ? graph->n[1] : 0);
  double *seen[2], *now[2], total = 0;
  for (int way = 0; way < 2; way++) {
    WEFT_TAKE0(seen[way], &mem, (size_t) n);
    WEFT_TAKE(now[way], &mem, (size_t) n);
  }
  for (int side = 0; side < 2; side++) {
    const weft_irm_lists *lists = &graph->links[side];
    const int64_t shift = graph->type == WEFT_IRM_BIPARTITE && side ? rows : 0;
    if (side && graph->type == WEFT_IRM_UNDIRECTED) break;
    for (int64_t i = 0; i < (shift ? n - rows : rows); i++)
      for (int64_t at = lists->start[i]; at < lists->start[i + 1]; at++)
        seen[directed && side][i + shift] += lists->weight ? lists->weight[at] : 1;
  }
  for (int64_t i = 0; i < rows && graph->self_weight; i++) {
    seen[0][i] += (directed ? 1 : 2) * (double) graph->self_weight[i];
    seen[1][i] += graph->self_weight[i];
  }
  for (int round = 0; round <= GUESS_ROUNDS; round++) {
    WEFT_TRY(weft_poll(ctx, round, GUESS_ROUNDS));
    const double last_total = total > 0 ? total : 1;
    for (int64_t pair = 0; pair < masked->count && round; pair++) {
      const int32_t i = masked->from[pair], j = masked->to[pair];
      double x = now[0][i] * now[directed][j] / last_total;
      if (i == j && !directed) x *= 0.5;
      if (x > MAX_COUNT) x = MAX_COUNT;
      masked->expected[pair] = x;
    }
    for (int way = 0; way <= directed; way++) memcpy(now[way], seen[way], (size_t) n * sizeof *now[way]);
    for (int64_t pair = 0; pair < masked->count && round; pair++) {
      now[0][masked->from[pair]] += masked->expected[pair];
      now[directed][masked->to[pair]] += masked->expected[pair];
    }
    total = 0;
    for (int64_t i = 0; i < (graph->type == WEFT_IRM_BIPARTITE ? rows : n); i++) total += now[0][i];
  }
  for (int64_t pair = 0; pair < masked->count; pair++) drawn[pair] = (int32_t) (masked->expected[pair] + 0.5);
done:
  weft_arena_end(&mem);
  return st;
}

/* Lists of both sides, links of nodes to themselves, and the log factorials of all counts. */
void irm_masked_fill(irm_masked *masked, const int32_t *drawn)
{
  const weft_irm_graph *graph = masked->observed;
  const int undirected = graph->type == WEFT_IRM_UNDIRECTED;
  for (int side = 0; side <= !undirected; side++) fill_side(masked, drawn, side);
  if (undirected) {
    masked->graph.links[1] = masked->graph.links[0];
    masked->graph.link_count[1] = masked->graph.link_count[0];
  }
  masked->graph.log_factorials = graph->log_factorials;
  if (graph->self_weight)
    memcpy((int32_t *) masked->graph.self_weight, graph->self_weight, (size_t) graph->n[0] * sizeof(int32_t));
  for (int64_t pair = 0; pair < masked->count; pair++) {
    masked->graph.log_factorials += irm_log_gamma(1.0 + drawn[pair]);
    if (masked->from[pair] == masked->to[pair])
      ((int32_t *) masked->graph.self_weight)[masked->from[pair]] = drawn[pair];
  }
}

void irm_masked_begin(irm_nested *state, irm_masked *masked, const int32_t *drawn)
{
  if (drawn != masked->drawn) memcpy(masked->drawn, drawn, (size_t) masked->count * sizeof *drawn);
  irm_masked_fill(masked, drawn);
  state->graph = &masked->graph;
  irm_nested_read_degrees(state);
  state->constant += masked->link_cost * (double) (state->directed ? state->ends : state->ends / 2);
}

/* ---- counts of degrees, by the degrees themselves ---- */

static uint64_t key_of(const irm_nested *state, int way, int32_t group, int64_t degree)
{
  return (uint64_t) degree * (2 * (uint64_t) state->level[0].k) + 2 * (uint64_t) group + (uint64_t) way;
}

static int64_t nodes_of_degree(const irm_nested *state, int way, int32_t group, int64_t degree)
{
  const uint64_t key = key_of(state, way, group, degree);
  const size_t at = irm_count_slot(&state->counts, key);
  return state->counts.key[at] == key ? state->counts.count[at] : 0;
}

static void count_node(irm_nested *state, int way, int32_t group, int64_t degree, int32_t by)
{
  const uint64_t key = key_of(state, way, group, degree);
  irm_count_add(&state->counts, key, by);
}

static void count_all_nodes(irm_nested *state)
{
  memset(state->counts.key, 0xff, state->counts.size * sizeof *state->counts.key);
  state->counts.used = 0;
  for (int way = 0; way <= state->directed; way++)
    for (int64_t i = 0; i < state->n; i++) count_node(state, way, state->level[0].b[i], state->degree[way][i], 1);
}

/* ---- weights of the counts of a pair ---- */

/* The state around a pair, without its own links: groups of both ends at every level, links between these, ends
 * of links of the groups, and degrees. */
typedef struct {
  const irm_nested *state;
  const irm_masked *masked;
  int self;
  int32_t i, j, group[IRM_LEVELS], partner[IRM_LEVELS];
  int64_t links[IRM_LEVELS], ends[2], degree[2];
} pair_rest;

/* `by` is added to the pair's links, everywhere but in the counts of degrees. */
static void add_to_pair(irm_nested *state, const pair_rest *rest, int64_t by)
{
  for (int depth = 0; depth <= state->top && by; depth++) {
    irm_level *level = &state->level[depth];
    const int64_t k = level->k, group = rest->group[depth], partner = rest->partner[depth];
    level->e[0][group * k + partner] += by;
    level->e[state->directed][partner * k + group] += by;
    level->sum[0][group] += by;
    level->sum[state->directed][partner] += by;
  }
  state->degree[0][rest->i] += by;
  state->degree[state->directed][rest->j] += by;
}

static void count_pair(irm_nested *state, const pair_rest *rest, int32_t by)
{
  if (!state->degrees) return;
  count_node(state, 0, rest->group[0], state->degree[0][rest->i], by);
  if (!rest->self || state->directed)
    count_node(state, state->directed, rest->partner[0], state->degree[state->directed][rest->j], by);
}

/* Takes the pair's x links out. */
static void take_out(irm_nested *state, const irm_masked *masked, int64_t pair, int64_t x, pair_rest *rest)
{
  *rest = (pair_rest){ .state = state, .masked = masked, .i = masked->from[pair], .j = masked->to[pair] };
  rest->self = rest->i == rest->j;
  for (int depth = 0; depth <= state->top; depth++) {
    rest->group[depth] = state->level[depth].b[depth ? rest->group[depth - 1] : rest->i];
    rest->partner[depth] = state->level[depth].b[depth ? rest->partner[depth - 1] : rest->j];
  }
  count_pair(state, rest, -1);
  add_to_pair(state, rest, -x);
  for (int depth = 0; depth <= state->top; depth++)
    rest->links[depth] =
        state->level[depth].e[0][(int64_t) rest->group[depth] * state->level[depth].k + rest->partner[depth]];
  rest->ends[0] = state->level[0].sum[0][rest->group[0]];
  rest->ends[1] = state->level[0].sum[state->directed][rest->partner[0]];
  rest->degree[0] = state->degree[0][rest->i];
  rest->degree[1] = state->degree[state->directed][rest->j];
}

static void put_in(irm_nested *state, const pair_rest *rest, int64_t x)
{
  add_to_pair(state, rest, x);
  count_pair(state, rest, 1);
  if (2 * state->counts.used > state->counts.size) count_all_nodes(state);
}

/* log weight of the ends of links of group r, which has them of `ends`, and of the degree of a node in it. */
static double degree_weight(const irm_nested *state, int way, int32_t group, int64_t ends, int64_t degree)
{
  return irm_log_factorial(state, degree) + weft_log((double) (nodes_of_degree(state, way, group, degree) + 1)) -
         irm_log_factorial(state, ends) - irm_log_partitions(state, ends, state->level[0].size[group]);
}

/* log weight of x links. */
static double log_weight(const pair_rest *rest, int64_t x)
{
  const irm_nested *state = rest->state;
  const int32_t group = rest->group[0], partner = rest->partner[0];
  const int one_group = group == partner && !state->directed;
  double sum = -irm_log_factorial(state, x) - rest->masked->link_cost * (double) x;
  if (rest->self && !state->directed) sum -= (double) x * IRM_LOG_2;
  for (int depth = 0; depth <= state->top; depth++) {
    const int same = rest->group[depth] == rest->partner[depth];
    const irm_level *level = &state->level[depth];
    const int64_t size = level->size[rest->group[depth]], other_size = level->size[rest->partner[depth]];
    if (depth && size == 1 && other_size == 1) continue; /* one pair has all */
    const int64_t links = rest->links[depth] + (same && !state->directed ? 2 * x : x);
    sum -= irm_link_term(state, depth, same, links, size, other_size);
  }
  if (!state->degrees)
    return sum - (double) x * weft_log((double) state->level[0].size[group] * (double) state->level[0].size[partner]);
  if (!one_group)
    return sum + degree_weight(state, 0, group, rest->ends[0] + x, rest->degree[0] + x) +
           degree_weight(state, state->directed, partner, rest->ends[1] + x, rest->degree[1] + x);
  if (rest->self) return sum + degree_weight(state, 0, group, rest->ends[0] + 2 * x, rest->degree[0] + 2 * x);
  /* the other node's term without the ends, which both have together */
  sum += degree_weight(state, 0, group, rest->ends[0] + 2 * x, rest->degree[0] + x);
  return sum + irm_log_factorial(state, rest->degree[1] + x) +
         weft_log((double) (nodes_of_degree(state, 0, partner, rest->degree[1] + x) + 1 +
                            (rest->degree[0] == rest->degree[1])));
}

/* ---- drawing from weights ---- */

typedef struct {
  int count;
  int64_t x[MAX_NODES];
  double w[MAX_NODES], greatest, total, mean; /* total of the weights over exp(greatest) */
} nodes;

static double minus_one(double y) { return y > -1e-5 ? y * (1 + y * (0.5 + y / 6)) : weft_exp(y) - 1; }

/* The counts between a node and the next: n of them, anchor + sign k for k = 1 .. n, with weights exp(fall k).
 */
typedef struct {
  double n, fall, weight; /* of the anchor, over exp(greatest) */
  int64_t anchor;
  int sign;
} gap;

static gap gap_after(const nodes *at, int node)
{
  const double rise = at->w[node + 1] - at->w[node], width = (double) (at->x[node + 1] - at->x[node]);
  const int up = rise > 0;
  return (gap){ .n = width - 1,
                .fall = -fabs(rise) / width,
                .weight = weft_exp(at->w[node + up] - at->greatest),
                .anchor = at->x[node + up],
                .sign = up ? -1 : 1 };
}

static double sum_of(const gap *of)
{
  const double terms =
      of->fall * of->n > -1e-8 ? of->n : weft_exp(of->fall) * minus_one(of->fall * of->n) / minus_one(of->fall);
  return of->weight * terms;
}

static double mean_of(const gap *of)
{
  const double fall = of->fall, n = of->n, reach = fall * n;
  const double k = reach > -1e-3 ? 0.5 * (n + 1) + fall * (n * n - 1) / 12
                                 : -1 / minus_one(fall) + n * weft_exp(reach) / minus_one(reach);
  return (double) of->anchor + of->sign * k;
}

static int64_t draw_from(const gap *of, double first)
{
  const double reach = of->fall * of->n;
  const double k = reach > -1e-8 ? first * of->n : weft_log1p(first * minus_one(reach)) / of->fall;
  return of->anchor + of->sign * (1 + (int64_t) (k < of->n - 1 ? k : of->n - 1));
}

/* The first x where the next one has no greater weight, by doubling and halving. */
static int64_t mode_of(const pair_rest *rest)
{
  int64_t low = 0, high = 1;
  if (log_weight(rest, 1) <= log_weight(rest, 0)) return 0;
  while (high < MAX_COUNT && log_weight(rest, high + 1) > log_weight(rest, high)) {
    low = high;
    high = high > MAX_COUNT / 2 ? MAX_COUNT : 2 * high;
  }
  while (high - low > 1) { /* weights rise at low, and not at high */
    const int64_t mid = low + (high - low) / 2;
    if (log_weight(rest, mid + 1) > log_weight(rest, mid))
      low = mid;
    else
      high = mid;
  }
  return high;
}

static void add_node(nodes *to, const pair_rest *rest, int64_t x)
{
  to->x[to->count] = x;
  to->w[to->count] = log_weight(rest, x);
  if (!to->count || to->w[to->count] > to->greatest) to->greatest = to->w[to->count];
  to->count++;
}

/* From the mode to `end`, until weights are too small. */
static void add_nodes(nodes *to, const pair_rest *rest, int64_t mode, int64_t end)
{
  const int64_t reach = end > mode ? end - mode : mode - end, sign = end > mode ? 1 : -1;
  for (int64_t far = 1, last = 0; last < reach && to->count < MAX_NODES; last = far) {
    far = last < CLOSE ? last + 1 : (int64_t) (GROWTH * (double) last) + 1;
    if (far > reach) far = reach;
    add_node(to, rest, mode + sign * far);
    if (to->w[to->count - 1] < to->greatest - DROP) break;
  }
}

/* Nodes in order, with the total of all weights and the mean count. */
static void make_nodes(const pair_rest *rest, nodes *out)
{
  out->count = 0;
  const int64_t mode = mode_of(rest);
  add_nodes(out, rest, mode, 0);
  for (int node = 0, other = out->count - 1; node < other; node++, other--) {
    const int64_t x = out->x[node];
    const double w = out->w[node];
    out->x[node] = out->x[other];
    out->w[node] = out->w[other];
    out->x[other] = x;
    out->w[other] = w;
  }
  add_node(out, rest, mode);
  add_nodes(out, rest, mode, MAX_COUNT);
  double sum = 0, moment = 0;
  for (int node = 0; node < out->count; node++) {
    const double p = weft_exp(out->w[node] - out->greatest);
    sum += p;
    moment += p * (double) out->x[node];
    if (node + 1 == out->count || out->x[node + 1] == out->x[node] + 1) continue;
    const gap between = gap_after(out, node);
    sum += sum_of(&between);
    moment += sum_of(&between) * mean_of(&between);
  }
  out->total = sum;
  out->mean = moment / sum;
}

/* log weight of x by the nodes; -Inf outside of them. */
static double weight_by_nodes(const nodes *at, int64_t x)
{
  if (x < at->x[0] || x > at->x[at->count - 1]) return -INFINITY;
  int node = 0;
  while (node + 1 < at->count && at->x[node + 1] <= x) node++;
  if (at->x[node] == x) return at->w[node];
  return at->w[node] +
         (at->w[node + 1] - at->w[node]) * (double) (x - at->x[node]) / (double) (at->x[node + 1] - at->x[node]);
}

/* A count by the weights of the nodes; `u`, `v`: uniforms. */
static int64_t draw_count(const nodes *at, double first, double second)
{
  double left = first * at->total;
  for (int node = 0; node < at->count; node++) {
    const double p = weft_exp(at->w[node] - at->greatest);
    if (left < p || node + 1 == at->count) return at->x[node];
    left -= p;
    if (at->x[node + 1] == at->x[node] + 1) continue;
    const gap between = gap_after(at, node);
    if (left < sum_of(&between)) return draw_from(&between, second);
    left -= sum_of(&between);
  }
  return 0;
}

weft_status irm_masked_draw(weft_ctx *poll, irm_nested *state, irm_masked *masked, int32_t *drawn)
{
  weft_status st = WEFT_OK;
  double gain = 0, log_p = 0;
  nodes at;
  masked->value = -irm_nested_length(state);
  if (state->degrees) count_all_nodes(state);
  for (int64_t pair = 0; pair < masked->count; pair++) {
    const int64_t old = masked->drawn[pair];
    pair_rest rest;
    if (poll && pair % POLL_PAIRS == 0) WEFT_TRY(weft_poll(poll, (double) pair, (double) masked->count));
    take_out(state, masked, pair, old, &rest);
    make_nodes(&rest, &at);
    const double first = irm_nested_next(state), second = irm_nested_next(state), accept = irm_nested_next(state);
    int64_t x = draw_count(&at, first, second);
    const double before = log_weight(&rest, old), before_by_nodes = weight_by_nodes(&at, old);
    double now = log_weight(&rest, x), now_by_nodes = weight_by_nodes(&at, x);
    if (before_by_nodes > -INFINITY && weft_log(accept) > now - now_by_nodes - (before - before_by_nodes)) {
      x = old;
      now = before;
      now_by_nodes = before_by_nodes;
    }
    gain += now - before;
    log_p += now_by_nodes - at.greatest - weft_log(at.total);
    masked->expected[pair] = floor(at.mean * 4294967296.0 + 0.5) / 4294967296.0;
    drawn[pair] = (int32_t) x;
    put_in(state, &rest, x);
  }
  masked->value += gain - log_p;
done:
  return st;
}
