/* Split-merge proposals with restricted Gibbs scans (Jain and Neal 2004), targeted: a merge joins a random cluster a
 * with a cluster b that the posterior wants to merge with it, which is drawn with
 *
 *   w(b | a) = 0.2 / (L - 1) + 0.8 softmax_b(Δ_ab / 2),   Δ_ab = log posterior after the merge - before.
 *
 * A split takes a cluster c and two of its nodes as anchors, i and j. In a bipartite graph c is drawn by how much more
 * its nodes differ than chance has it: with n_im the links of node i with cluster m of the other mode, of size n_m,
 *
 *   v(c) = 0.3 / L + 0.7 T_c / ΣT,   T = max(0, (X - E X) / sd X),   X = Σ_im (n_im - mean_m)² / var_m
 *
 * where mean and variance are those of homogeneous nodes (real values: n_im their sum, whose variance is that of the
 * block's values times n_m); in a one-mode graph v = 1/L. The other nodes join one of the two one after another, in the
 * order of their numbers, by how well the links fit (the launch): the rates of the two growing clusters are shrunk
 * towards those of c, as if one more node of c's average were in each, and their sizes do not count, or else the first
 * to grow would take all. Then two Gibbs scans restricted to the two clusters mix, and a last one makes the proposal,
 * whose probability q is the product of its choices. A merge is judged by the q of the split that would undo it. With L
 * clusters before the split, n nodes in c, and n_a + n_b = n:
 *
 *   forward   1/2 · v(c) · 1/(n (n - 1)) · 1/E · q
 *   backward  1/2 · 1/(L + 1) · (w(b | a) + w(a | b)) · 1/2 · 1/(n_a n_b)
 *
 * The last 1/2 is which of the two labels stays. Under sticks labels count and the new one is one of E empty ones at
 * random; in the Chinese restaurant process they do not, and 1/E falls away. Only clusters of up to IRM_SPLIT_NODES
 * nodes are split, or made by a merge, which keeps a proposal's cost bounded and is symmetric. */
#include <math.h>
#include <string.h>
#include "../base/parallel.h"
#include "irm_moves.h"
#include "irm_pair.h"

#define FLAT_SHARE 0.2
#define FLAT_SPLITS 0.3
#define SIMILARITY_SCALE 0.5
enum { RESTRICTED_SCANS = 2, POLL_NODES = 512, POLL_LINKS = 10000000 };

/* ---- the prior ---- */

/* log p(sizes with a and b apart) - log p(with both in a), b empty then. The state has them apart or together. */
static double prior_apart(const irm_state *s, int mode, int32_t a, int32_t b, int64_t size_a, int64_t size_b)
{
  const double alpha = s->chain->alpha[mode], both = (double) (size_a + size_b);
  if (s->model->collapsed)
    return weft_log(alpha) + irm_log_gamma((double) size_a) + irm_log_gamma((double) size_b) - irm_log_gamma(both);
  /* only the sticks from the first of the two labels to the last of them change */
  const int64_t *sizes = s->sizes[mode];
  const int32_t k = s->k[mode], low = a < b ? a : b, high = a < b ? b : a;
  double above = 0, sum = 0;
  for (int32_t l = k - 1; l > high; l--) above += (double) sizes[l];
  double apart = above, together = above;
  for (int32_t l = high; l >= low; l--) {
    const double here = l == a || l == b ? 0 : (double) sizes[l];
    const double n_apart = l == a   ? (double) size_a
                           : l == b ? (double) size_b
                                    : here,
                 n_together = l == a ? both : here;
    if (l < k - 1) sum += irm_log_beta(1.0 + n_apart, alpha + apart) - irm_log_beta(1.0 + n_together, alpha + together);
    apart += n_apart;
    together += n_together;
  }
  return sum;
}

/* ---- which cluster to split ---- */

/* T of a cluster of this many nodes, with its links and Σ_i n_im² by cluster of the other mode. */
static double spread_of(const irm_state *s, int mode, int64_t nodes, const int64_t *links, const int64_t *links_too,
                        const int64_t *values, const int64_t *values_too, const uint64_t *squares,
                        const uint64_t *squares_too)
{
  const int other = 1 - mode;
  double excess = 0, variance = 0;
  if (nodes < 2 || nodes > IRM_SPLIT_NODES) return 0;
  for (int32_t at = 0; at < s->active_count[other]; at++) {
    const int32_t m = s->active[other][at];
    const double n = (double) (links[m] + (links_too ? links_too[m] : 0)), mean = n / (double) nodes;
    const double q = (double) squares[m] + (squares_too ? (double) squares_too[m] : 0);
    if (values) {
      const double size = (double) s->sizes[other][m], pairs = (double) nodes * size;
      const double var = ((double) (values[m] + (values_too ? values_too[m] : 0)) - n * n / pairs) / pairs * size;
      if (!(var > 0)) continue;
      excess += (q - n * mean) / var - (double) (nodes - 1);
      variance += 2 * (double) (nodes - 1);
      continue;
    }
    const double rate = mean / (double) s->sizes[other][m];
    const double var = s->model->poisson ? mean : mean * (1 - rate);
    if (!(var > 0)) continue;
    excess += (q - n * mean) / var - (double) (nodes - 1);
    variance += (double) (nodes - 1) * (2 + 1 / mean);
  }
  return excess > 0 ? excess / sqrt(variance) : 0;
}

static double spread_now(const irm_state *s, int mode, int32_t c)
{
  const size_t row = (size_t) c * (size_t) s->k[1 - mode];
  return spread_of(s, mode, s->sizes[mode][c], s->links[mode] + row, NULL,
                   s->values[mode] ? s->values[mode] + row : NULL, NULL, s->squares + row, NULL);
}

/* Adds the node's n_im² to its cluster's. With counts of billions it passes 2^64: other splits are proposed then, which
 * are as valid. */
static void add_squares(const irm_state *s, int mode, int64_t i, int64_t *count, uint64_t *squares)
{
  const weft_irm_lists *links = &s->graph->links[mode];
  /* (x + w)² - x² = w (2 x + w), link by link */
  for (int64_t e = links->start[i]; e < links->start[i + 1]; e++) count[s->z[1 - mode][links->to[e]]] = 0;
  for (int64_t e = links->start[i]; e < links->start[i + 1]; e++) {
    const int32_t m = s->z[1 - mode][links->to[e]];
    const int64_t w = links->weight ? links->weight[e] : 1;
    squares[m] += (uint64_t) w * (2 * (uint64_t) count[m] + (uint64_t) w);
    count[m] += w;
  }
}

/* Those of nodes first .. last-1, by all threads where counting is shared out. */
static void add_slice(irm_state *s, int mode, int64_t first, int64_t last)
{
  enum { CHUNK = 256 };
  const size_t width = (size_t) s->k[1 - mode], blocks = width * (size_t) s->k[mode];
  const int32_t *z = s->z[mode];
  uint64_t *tallies = (uint64_t *) s->tallies;
  if (!tallies) {
    for (int64_t i = first; i < last; i++)
      add_squares(s, mode, i, s->profile.links[0], s->squares + (size_t) z[i] * width);
    return;
  }
  memset(tallies, 0, blocks * (size_t) s->threads * sizeof *tallies);
  WEFT_PARALLEL(s->threads)
  {
    WEFT_FOR(dynamic)
    for (int64_t chunk = first; chunk < last; chunk += CHUNK) {
      const size_t t = (size_t) WEFT_THREAD();
      for (int64_t i = chunk; i < last && i < chunk + CHUNK; i++)
        add_squares(s, mode, i, s->counts + t * width, tallies + t * blocks + (size_t) z[i] * width);
    }
  }
  for (int t = 0; t < s->threads; t++)
    for (size_t c = 0; c < blocks; c++) s->squares[c] += tallies[(size_t) t * blocks + c];
}

weft_status irm_split_begin(weft_ctx *poll, irm_state *s, int mode)
{
  if (s->one_mode) return WEFT_OK;
  memset(s->squares, 0, (size_t) s->k[mode] * (size_t) s->k[1 - mode] * sizeof *s->squares);
  for (int64_t first = 0, last; first < s->graph->n[mode]; first = last) {
    last = irm_slice_end(&s->graph->links[mode], first, s->graph->n[mode], 10, 1, POLL_LINKS);
    add_slice(s, mode, first, last);
    if (poll && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
  for (int32_t c = 0; c < s->k[mode]; c++) s->spreads[c] = s->sizes[mode][c] ? spread_now(s, mode, c) : 0;
  return WEFT_OK;
}

/* After a move of the nodes of a and b; one of them may be empty now. */
static void renew_spreads(irm_state *s, int mode, int32_t a, int32_t b, int64_t count)
{
  const size_t width = (size_t) s->k[1 - mode];
  if (s->one_mode) return;
  memset(s->squares + a * width, 0, width * sizeof *s->squares);
  memset(s->squares + b * width, 0, width * sizeof *s->squares);
  for (int64_t at = 0; at < count; at++) {
    const int32_t i = s->members[at];
    add_squares(s, mode, i, s->profile.links[0], s->squares + (size_t) s->z[mode][i] * width);
  }
  s->spreads[a] = s->sizes[mode][a] ? spread_now(s, mode, a) : 0;
  s->spreads[b] = s->sizes[mode][b] ? spread_now(s, mode, b) : 0;
}

/* v, given a cluster's T, the sum of all and their number. */
static double split_share(double spread, double all, double clusters)
{
  return all > 0 ? FLAT_SPLITS / clusters + (1 - FLAT_SPLITS) * spread / all : 1 / clusters;
}

/* The sum of T over the active clusters but a and b. */
static double spreads_but(const irm_state *s, int mode, int32_t a, int32_t b)
{
  double all = 0;
  for (int32_t at = 0; at < s->active_count[mode]; at++) {
    const int32_t c = s->active[mode][at];
    if (c != a && c != b) all += s->spreads[c];
  }
  return all;
}

/* A cluster to split, and log v. */
static int32_t choose_split(irm_state *s, int mode, double *log_share)
{
  const int32_t clusters = s->active_count[mode], *active = s->active[mode];
  if (s->one_mode) {
    *log_share = -weft_log((double) clusters);
    return active[irm_next_below(s, clusters)];
  }
  const double all = spreads_but(s, mode, -1, -1);
  double u = irm_next(s);
  int32_t at = 0;
  while (at < clusters - 1 && (u -= split_share(s->spreads[active[at]], all, clusters)) >= 0) at++;
  *log_share = weft_log(split_share(s->spreads[active[at]], all, clusters));
  return active[at];
}

/* log v of the cluster that a and b would make. */
static double log_share_of_both(const irm_state *s, int mode, int32_t a, int32_t b)
{
  const int32_t clusters = s->active_count[mode] - 1;
  if (s->one_mode) return -weft_log((double) clusters);
  const size_t width = (size_t) s->k[1 - mode];
  const int64_t *values = s->values[mode];
  const double both = spread_of(s, mode, s->sizes[mode][a] + s->sizes[mode][b], s->links[mode] + a * width,
                                s->links[mode] + b * width, values ? values + a * width : NULL,
                                values ? values + b * width : NULL, s->squares + a * width, s->squares + b * width);
  return weft_log(split_share(both, spreads_but(s, mode, a, b) + both, clusters));
}

/* ---- similarity ---- */

/* Fills scores with w(b | a) for the active clusters, in their order; 0 for a itself. */
static void similarities(irm_state *s, int mode, int32_t a, double *scores)
{
  const int32_t count = s->active_count[mode], *active = s->active[mode];
  double most = -WEFT_INFINITY, total = 0;
  for (int32_t at = 0; at < count; at++) {
    const int32_t b = active[at];
    if (b == a) continue;
    const double size_a = (double) s->sizes[mode][a], size_b = (double) s->sizes[mode][b];
    scores[at] = SIMILARITY_SCALE * (irm_merge_gain(s, mode, a, b) + irm_log_gamma(size_a + size_b)
                                     - irm_log_gamma(size_a) - irm_log_gamma(size_b));
    if (scores[at] > most) most = scores[at];
  }
  for (int32_t at = 0; at < count; at++) total += scores[at] = active[at] == a ? 0 : weft_exp(scores[at] - most);
  for (int32_t at = 0; at < count; at++)
    if (active[at] != a) scores[at] = FLAT_SHARE / (count - 1) + (1 - FLAT_SHARE) * scores[at] / total;
}

static double similarity(irm_state *s, int mode, int32_t a, int32_t b)
{
  similarities(s, mode, a, s->scores);
  return s->scores[s->place[mode][b]];
}

/* ---- restricted scans: in one-mode graphs through the state, in bipartite ones by irm_pair.c ---- */

static int64_t list_members(irm_state *s, int mode, int32_t a, int32_t b)
{
  int64_t count = 0;
  const int32_t *z = s->z[mode];
  for (int64_t i = 0; i < s->graph->n[mode]; i++) if (z[i] == a || z[i] == b) s->members[count++] = (int32_t) i;
  return count;
}

/* Puts node i, which has been taken out, into a or b: at random, or where `forced` says (>= 0). Returns log of the
 * probability of the choice. */
static double choose_side(irm_state *s, int mode, int64_t i, int32_t a, int32_t b, int32_t forced)
{
  const double odds = irm_gain(s, mode, b) - irm_gain(s, mode, a) + weft_log((double) s->sizes[mode][b])
                      - weft_log((double) s->sizes[mode][a]);
  const double log_b = odds > 0 ? -weft_log1p(weft_exp(-odds)) : odds - weft_log1p(weft_exp(odds)),
               log_a = log_b - odds;
  int32_t side = forced;
  if (side < 0) side = weft_log(irm_next(s)) < log_b ? b : a;
  irm_put_in(s, mode, i, side);
  return side == b ? log_b : log_a;
}

/* One scan over the members but the anchors; `target` NULL, or the label each member is to get. */
static weft_status scan(weft_ctx *poll, irm_state *s, int mode, int64_t count, int32_t i, int32_t j, int32_t a,
                        int32_t b, const int32_t *target, double *log_q)
{
  *log_q = 0;
  for (int64_t at = 0; at < count; at++) {
    const int32_t node = s->members[at];
    if (node == i || node == j) continue;
    irm_take_out(s, mode, node);
    *log_q += choose_side(s, mode, node, a, b, target ? target[at] : -1);
    if (poll && at % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
  return WEFT_OK;
}

/* The rates of a and b together with every active cluster, in `rates`: k for each direction. The four (undirected:
 * three) blocks among a and b are one. */
static void pooled_rates(const irm_state *s, int32_t a, int32_t b, double *rates)
{
  const size_t k = (size_t) s->k[0];
  for (int d = 0; d < s->directions; d++) {
    const int64_t *links = s->links[d], *pairs = s->pairs[d];
    for (int32_t at = 0; at < s->active_count[0]; at++) {
      const size_t m = (size_t) s->active[0][at];
      int64_t n = links[a * k + m] + links[b * k + m], p = pairs[a * k + m] + pairs[b * k + m];
      if (m == (size_t) a || m == (size_t) b) {
        const int both = s->graph->type == WEFT_IRM_DIRECTED;
        n = links[a * k + a] + links[b * k + b] + links[a * k + b] + (both ? links[b * k + a] : 0);
        p = pairs[a * k + a] + pairs[b * k + b] + pairs[a * k + b] + (both ? pairs[b * k + a] : 0);
      }
      rates[d * k + m] = p ? ((double) n + 0.5) / ((double) p + 1) : 0.5;
    }
    rates[d * k + a] = rates[d * k + b] = s->sizes[0][a] ? rates[d * k + a] : rates[d * k + b];
  }
}

/* log odds of the node of the profile for b against a, by its links alone. */
static double launch_odds(const irm_state *s, int32_t a, int32_t b, const double *rates)
{
  const size_t k = (size_t) s->k[0];
  double odds = 0;
  for (int d = 0; d < s->directions; d++) {
    const int64_t *links = s->links[d], *pairs = s->pairs[d];
    for (int32_t at = 0; at < s->active_count[0]; at++) {
      const size_t m = (size_t) s->active[0][at];
      const double n = (double) s->profile.links[d][m], p = (double) s->profile.pairs[d][m], prior = rates[d * k + m];
      if (p == 0) continue;
      const double rate_a = ((double) links[a * k + m] + p * prior) / ((double) pairs[a * k + m] + p);
      const double rate_b = ((double) links[b * k + m] + p * prior) / ((double) pairs[b * k + m] + p);
      if (n > 0) odds += n * weft_log(rate_b / rate_a);
      odds += s->model->poisson ? p * (rate_a - rate_b) : (p - n) * (weft_log1p(-rate_b) - weft_log1p(-rate_a));
    }
  }
  return odds;
}

/* From all members in a or b to the launch state, anchors i in a and j in b, and RESTRICTED_SCANS that mix. */
static weft_status launch(weft_ctx *poll, irm_state *s, int mode, int64_t count, int32_t i, int32_t j, int32_t a,
                          int32_t b)
{
  double unused;
  pooled_rates(s, a, b, s->rates);
  for (int64_t at = 0; at < count; at++) irm_take_out(s, mode, s->members[at]);
  irm_take_out(s, mode, i);
  irm_put_in(s, mode, i, a);
  irm_take_out(s, mode, j);
  irm_put_in(s, mode, j, b);
  for (int64_t at = 0; at < count; at++) {
    const int32_t node = s->members[at];
    if (node == i || node == j) continue;
    irm_take_out(s, mode, node);
    const double odds = launch_odds(s, a, b, s->rates), u = irm_next(s);
    irm_put_in(s, mode, node, weft_log(u / (1 - u)) < odds ? b : a);
    if (poll && at % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
  for (int k = 0; k < RESTRICTED_SCANS; k++)
    if (scan(poll, s, mode, count, i, j, a, b, NULL, &unused) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  return WEFT_OK;
}

/* The launch and the scan that makes a proposal or, with `target`, is forced to it. */
static weft_status propose(weft_ctx *poll, irm_state *s, int mode, int64_t count, int32_t i, int32_t j, int32_t a,
                           int32_t b, const int32_t *target, double *log_q)
{
  weft_status st;
  if (s->one_mode) {
    st = launch(poll, s, mode, count, i, j, a, b);
    return st == WEFT_OK ? scan(poll, s, mode, count, i, j, a, b, target, log_q) : st;
  }
  irm_pair_load(s, mode, a, b, count, i, j);
  st = irm_pair_launch(poll, s);
  for (int k = 0; k < RESTRICTED_SCANS && st == WEFT_OK; k++) st = irm_pair_scan(poll, s, NULL, log_q);
  if (st == WEFT_OK) st = irm_pair_scan(poll, s, target, log_q);
  if (st == WEFT_OK && !target) irm_pair_apply(s, 0);
  return st;
}

/* All members into a. */
static void join(irm_state *s, int mode, int64_t count, int32_t a)
{
  if (!s->one_mode) irm_pair_apply(s, 1);
  for (int64_t at = 0; s->one_mode && at < count; at++) {
    if (s->z[mode][s->members[at]] == a) continue;
    irm_take_out(s, mode, s->members[at]);
    irm_put_in(s, mode, s->members[at], a);
  }
}

/* ---- the two proposals ---- */

/* log backward - log forward of a split, without q: sizes apart, L clusters together, `empty` of them free then; w of
 * both. */
static double log_ways(const irm_state *s, double size_a, double size_b, double clusters, double empty, double log_v,
                       double w)
{
  const double n = size_a + size_b;
  double ways = -log_v - weft_log(clusters + 1) + weft_log(w) - weft_log(2.0) - weft_log(size_a) - weft_log(size_b)
                + weft_log(n) + weft_log(n - 1);
  if (!s->model->collapsed) ways += weft_log(empty);
  return ways;
}

static weft_status propose_split(weft_ctx *poll, irm_state *s, int mode)
{
  const int32_t clusters = s->active_count[mode], empty = s->k[mode] - clusters;
  double log_v;
  const int32_t a = choose_split(s, mode, &log_v);
  const int64_t n = s->sizes[mode][a];
  if (empty == 0 || n < 2 || n > IRM_SPLIT_NODES) return WEFT_OK;
  const int32_t b = irm_free_cluster(s, mode, s->model->collapsed ? 0 : (int32_t) irm_next_below(s, empty));
  const int64_t count = list_members(s, mode, a, a);
  const int64_t first = irm_next_below(s, n), drawn = irm_next_below(s, n - 1), second = drawn + (drawn >= first);
  const int32_t i = s->members[first], j = s->members[second];
  double log_q;
  const weft_status st = propose(poll, s, mode, count, i, j, a, b, NULL, &log_q);
  if (st != WEFT_OK) return st;
  const int64_t size_a = s->sizes[mode][a], size_b = s->sizes[mode][b];
  const double log_u = weft_log(irm_next(s)),
               most = prior_apart(s, mode, a, b, size_a, size_b) - irm_merge_gain(s, mode, a, b) - log_q +
                      log_ways(s, (double) size_a, (double) size_b, clusters, empty, log_v, 2);
  /* w of both is at most 2: most splits need no similarities */
  if (log_u < most && log_u < most + weft_log((similarity(s, mode, a, b) + similarity(s, mode, b, a)) / 2)) {
    renew_spreads(s, mode, a, b, count);
    return WEFT_OK;
  }
  join(s, mode, count, a);
  return WEFT_OK;
}

static weft_status propose_merge(weft_ctx *poll, irm_state *s, int mode, int32_t *target)
{
  const int32_t clusters = s->active_count[mode], *active = s->active[mode];
  if (clusters < 2) return WEFT_OK;
  int32_t a = active[irm_next_below(s, clusters)], b;
  similarities(s, mode, a, s->scores);
  double u = irm_next(s);
  int32_t at = 0, chosen = -1;
  for (; at < clusters; at++) {
    if (active[at] == a) continue;
    chosen = at;
    if ((u -= s->scores[at]) < 0) break;
  }
  b = active[chosen];
  const double w = s->scores[chosen];
  const int32_t from = a;
  if (irm_next(s) < 0.5) { /* which label stays: a's */
    int32_t held = a;
    a = b;
    b = held;
  }
  const int64_t size_a = s->sizes[mode][a], size_b = s->sizes[mode][b];
  if (size_a + size_b > IRM_SPLIT_NODES) return WEFT_OK;
  const double least = w + FLAT_SHARE / (clusters - 1); /* of w of both */
  const double ways = log_ways(s, (double) size_a, (double) size_b, clusters - 1, s->k[mode] - clusters + 1,
                               log_share_of_both(s, mode, a, b), least);
  double ratio = irm_merge_gain(s, mode, a, b) - prior_apart(s, mode, a, b, size_a, size_b) - ways;
  const double log_u = weft_log(irm_next(s));
  if (log_u >= ratio) return WEFT_OK; /* q is at most 1: most merges need no more similarities, and no launch */
  ratio -= weft_log((w + similarity(s, mode, a == from ? b : a, from)) / least);
  if (log_u >= ratio) return WEFT_OK;
  const int64_t count = list_members(s, mode, a, b);
  int64_t which_a = irm_next_below(s, size_a), which_b = irm_next_below(s, size_b);
  int32_t i = -1, j = -1;
  for (int64_t m = 0; m < count; m++) {
    target[m] = s->z[mode][s->members[m]];
    if (target[m] == a && which_a-- == 0) i = s->members[m];
    if (target[m] == b && which_b-- == 0) j = s->members[m];
  }
  double log_q;
  const weft_status st = propose(poll, s, mode, count, i, j, a, b, target, &log_q);
  if (st != WEFT_OK) return st;
  if (log_u >= ratio + log_q) return WEFT_OK; /* the forced scan has put everything back */
  join(s, mode, count, a);
  renew_spreads(s, mode, a, b, count);
  return WEFT_OK;
}

weft_status irm_split_merge(weft_ctx *poll, irm_state *s, int mode)
{
  if (irm_next(s) < 0.5) return propose_split(poll, s, mode);
  return propose_merge(poll, s, mode, s->targets);
}
