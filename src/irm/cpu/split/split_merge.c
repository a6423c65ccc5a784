/* Split-merge proposals with restricted Gibbs scans (Jain and Neal 2004), targeted: a merge joins a random cluster a
 * with a cluster b that the posterior wants to merge with it, which is drawn with
 *
 *   w(b | a) = 0.2 / (L - 1) + 0.8 softmax_b(Δ_ab / 2),   Δ_ab = log posterior after the merge - before.
 *
 * A split takes a cluster c and two of its nodes as anchors, i and j. In a bipartite graph c is drawn by how uneven its
 * nodes are, T of split_choice.c:
 *
 *   v(c) = 0.3 / L + 0.7 T_c / ΣT
 *
 * and in a one-mode graph v = 1/L. The other nodes join one of the two one after another, in the order of their
 * numbers, by how well the links fit (the launch): the rates of the two growing clusters are shrunk towards those of c,
 * as if one more node of c's average were in each, and their sizes do not count, or else the first to grow would take
 * all. Then two Gibbs scans restricted to the two clusters mix, and a last one makes the proposal, whose probability q
 * is the product of its choices. A merge is judged by the q of the split that would undo it. With L clusters before the
 * split, n nodes in c, and n_a + n_b = n:
 *
 *   forward   1/2 · v(c) · 1/(n (n - 1)) · 1/E · q
 *   backward  1/2 · 1/(L + 1) · (w(b | a) + w(a | b)) · 1/2 · 1/(n_a n_b)
 *
 * The last 1/2 is which of the two labels stays. Under sticks labels count and the new one is one of E empty ones at
 * random; in the Chinese restaurant process they do not, and 1/E falls away. Only clusters of up to IRM_SPLIT_NODES
 * nodes are split, or made by a merge, which keeps a proposal's cost bounded and is symmetric. */
#include <string.h>
#include "irm/cpu/split/split_merge.h"
#include "irm/cpu/split/split_choice.h"

#define FLAT_SHARE 0.2
#define FLAT_SPLITS 0.3
#define SIMILARITY_SCALE 0.5
enum { RESTRICTED_SCANS = 2, POLL_NODES = 512 };
/* Where the draws of a sweep's proposals stand among those of sequential code: behind all others, 2^18 for each. Of
 * these, single ones come first, then those of the scans, then two for each cluster. */
#define TRIAL_DRAWS ((uint64_t) 1 << 35)
#define TRIAL_BITS 18
#define MODE_BITS 34
enum { DRAW_KIND, DRAW_LABEL, DRAW_FIRST, DRAW_SECOND, DRAW_STAYS, DRAW_OUTCOME, DRAW_SCANS };
#define CLUSTER_DRAWS ((uint64_t) 1 << 17)
#define SIMILAR_DRAWS (CLUSTER_DRAWS + ((uint64_t) 1 << 16))

static double draw_at(const irm_trial *trial, uint64_t which)
{
  return weft_draw_uniform(trial->rng, trial->index + which);
}

static int64_t below_at(const irm_trial *trial, uint64_t which, int64_t n)
{
  return (int64_t) weft_draw_below(trial->rng, trial->index + which, (uint64_t) n);
}

/* Gumbel noise of cluster l. */
static double noise(const irm_trial *trial, uint64_t draws, int32_t l)
{
  return -weft_log(-weft_log(draw_at(trial, draws + (uint64_t) l)));
}

/* ---- the prior ---- */

/* log p(sizes with a and b apart) - log p(with both in a), b empty then. The state has them apart or together. */
static double prior_apart(const irm_state *state, int mode, int32_t a, int32_t b, int64_t size_a, int64_t size_b)
{
  const double alpha = state->chain->alpha[mode], both = (double) (size_a + size_b);
  if (state->model->collapsed)
    return weft_log(alpha) + irm_log_gamma((double) size_a) + irm_log_gamma((double) size_b) - irm_log_gamma(both);
  /* only the sticks from the first of the two labels to the last of them change */
  const int64_t *sizes = state->sizes[mode];
  const int32_t k = state->k[mode], low = a < b ? a : b, high = a < b ? b : a;
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

/* v, given a cluster's T, the sum of all and their number. */
static double split_share(double spread, double all, double clusters)
{
  return all > 0 ? FLAT_SPLITS / clusters + (1 - FLAT_SPLITS) * spread / all : 1 / clusters;
}

/* The sum of T over the active clusters but a and b. */
static double spreads_but(const irm_state *state, int mode, int32_t a, int32_t b)
{
  double all = 0;
  for (int32_t at = 0; at < state->active_count[mode]; at++) {
    const int32_t c = state->active[mode][at];
    if (c != a && c != b) all += state->spreads[c];
  }
  return all;
}

/* A cluster to split, and log v. */
static int32_t choose_split(const irm_state *state, const irm_trial *trial, int mode, double *log_share)
{
  const int32_t clusters = state->active_count[mode], *active = state->active[mode];
  const double all = state->one_mode ? 0 : spreads_but(state, mode, -1, -1);
  double most = -WEFT_INFINITY;
  int32_t chosen = active[0];
  *log_share = 0;
  for (int32_t at = 0; at < clusters; at++) {
    const double share = weft_log(split_share(state->one_mode ? 0 : state->spreads[active[at]], all, clusters));
    const double value = share + noise(trial, CLUSTER_DRAWS, active[at]);
    if (!(value > most || (value == most && active[at] < chosen))) continue;
    most = value;
    chosen = active[at];
    *log_share = share;
  }
  return chosen;
}

/* Any cluster. */
static int32_t choose_any(const irm_state *state, const irm_trial *trial, int mode)
{
  const int32_t *active = state->active[mode];
  double most = -WEFT_INFINITY;
  int32_t chosen = active[0];
  for (int32_t at = 0; at < state->active_count[mode]; at++) {
    const double value = draw_at(trial, CLUSTER_DRAWS + (uint64_t) active[at]);
    if (!(value > most || (value == most && active[at] < chosen))) continue;
    most = value;
    chosen = active[at];
  }
  return chosen;
}

/* log v of the cluster that a and b would make. */
static double log_share_of_both(const irm_state *state, int mode, int32_t a, int32_t b)
{
  const int32_t clusters = state->active_count[mode] - 1;
  if (state->one_mode) return -weft_log((double) clusters);
  const double both = irm_uneven_joined(state, mode, a, b);
  return weft_log(split_share(both, spreads_but(state, mode, a, b) + both, clusters));
}

/* ---- similarity ---- */

static irm_row row_of(const irm_state *state, int mode, int32_t l)
{
  const size_t row = (size_t) l * (size_t) state->k[1 - mode];
  return (irm_row){
    state->links[mode] + row, state->pairs[mode] + row, state->values[mode] ? state->values[mode] + row : NULL,
    state->active[1 - mode],  state->row_now[l],        state->sizes[mode][l]
  };
}

/* Gain in Σ f from merging two clusters into one. */
static double joined_gain(const irm_state *state, int mode, const irm_row *x, const irm_row *y)
{
  double sum = 0;
  for (int32_t place = 0; place < state->active_count[1 - mode]; place++) {
    const int32_t a = x->at ? x->at[place] : place, b = y->at ? y->at[place] : place;
    const int64_t values = x->values ? x->values[a] + y->values[b] : 0, pairs = x->pairs[a] + y->pairs[b];
    if (pairs) sum += irm_f_block(&state->tables, x->links[a] + y->links[b], values, pairs);
  }
  return sum - x->now - y->now;
}

static double merge_gain(const irm_state *state, int mode, int32_t a, int32_t b)
{
  if (state->one_mode) return irm_merge_gain(state, mode, a, b);
  const irm_row x = row_of(state, mode, a), y = row_of(state, mode, b);
  return joined_gain(state, mode, &x, &y);
}

/* Δ / 2 but for what is the same for all b. */
static double score_of(double gain, int64_t nodes_a, int64_t nodes_b)
{
  const double a = (double) nodes_a, b = (double) nodes_b;
  return SIMILARITY_SCALE * (gain + irm_log_gamma(a + b) - irm_log_gamma(a) - irm_log_gamma(b));
}

/* Fills scores with w(b | a) for the active clusters, in their order; 0 for a itself. */
static void similarities(const irm_state *state, int mode, int32_t a, double *scores)
{
  const int32_t count = state->active_count[mode], *active = state->active[mode];
  const int64_t *sizes = state->sizes[mode];
  double most = -WEFT_INFINITY, total = 0;
  for (int32_t at = 0; at < count; at++) {
    if (active[at] == a) continue;
    scores[at] = score_of(merge_gain(state, mode, a, active[at]), sizes[a], sizes[active[at]]);
    if (scores[at] > most) most = scores[at];
  }
  for (int32_t at = 0; at < count; at++) total += scores[at] = active[at] == a ? 0 : weft_exp(scores[at] - most);
  for (int32_t at = 0; at < count; at++)
    if (active[at] != a) scores[at] = FLAT_SHARE / (count - 1) + (1 - FLAT_SHARE) * scores[at] / total;
}

static double similarity(const irm_state *state, irm_trial *trial, int mode, int32_t a, int32_t b)
{
  similarities(state, mode, a, trial->scores);
  return trial->scores[state->place[mode][b]];
}

/* w(y | x) for the two clusters that the trial has made of cluster a, which the state still has as one. */
static double similarity_apart(const irm_state *state, irm_trial *trial, int mode, const irm_row *x, const irm_row *y)
{
  const int32_t count = state->active_count[mode], *active = state->active[mode];
  const double own = score_of(joined_gain(state, mode, x, y), x->nodes, y->nodes);
  double most = own, total = 0;
  for (int32_t at = 0; at < count; at++) {
    if (active[at] == trial->a) continue;
    const irm_row other = row_of(state, mode, active[at]);
    trial->scores[at] = score_of(joined_gain(state, mode, x, &other), x->nodes, other.nodes);
    if (trial->scores[at] > most) most = trial->scores[at];
  }
  for (int32_t at = 0; at < count; at++)
    if (active[at] != trial->a) total += weft_exp(trial->scores[at] - most);
  const double share = weft_exp(own - most);
  return FLAT_SHARE / count + (1 - FLAT_SHARE) * share / (total + share);
}

/* ---- restricted scans: in one-mode graphs through the state, in bipartite ones by two_clusters.c ---- */

static void list_members(const irm_state *state, irm_trial *trial, int mode, int32_t a, int32_t b)
{
  const int32_t *z = state->z[mode];
  trial->a = a;
  trial->b = b;
  trial->count = 0;
  trial->known = 0;
  trial->scans = DRAW_SCANS;
  for (int64_t i = 0; i < state->graph->n[mode]; i++)
    if (z[i] == a || z[i] == b) trial->members[trial->count++] = (int32_t) i;
}

/* Puts node i, which has been taken out, into a or b: at random, or where `forced` says (>= 0). Returns log of the
 * probability of the choice. */
static double choose_side(irm_state *state, irm_trial *trial, int mode, int64_t i, int32_t forced)
{
  const int32_t a = trial->a, b = trial->b;
  const double odds = irm_gain(state, mode, b) - irm_gain(state, mode, a) + weft_log((double) state->sizes[mode][b]) -
                      weft_log((double) state->sizes[mode][a]);
  const double log_b = odds > 0 ? -weft_log1p(weft_exp(-odds)) : odds - weft_log1p(weft_exp(odds)),
               log_a = log_b - odds;
  int32_t side = forced;
  if (side < 0) side = weft_log(irm_trial_next(trial)) < log_b ? b : a;
  irm_put_in(state, mode, i, side);
  return side == b ? log_b : log_a;
}

/* One scan over the members but the anchors; `target` NULL, or the label each member is to get. */
static weft_status scan(weft_ctx *poll, irm_state *state, irm_trial *trial, int mode, int32_t i, int32_t j,
                        const int32_t *target, double *log_q)
{
  *log_q = 0;
  for (int64_t at = 0; at < trial->count; at++) {
    const int32_t node = trial->members[at];
    if (node == i || node == j) continue;
    irm_take_out(state, mode, node);
    *log_q += choose_side(state, trial, mode, node, target ? target[at] : -1);
    if (poll && at % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
  return WEFT_OK;
}

/* The rates of a and b together with every active cluster, in `rates`: k for each direction. The four (undirected:
 * three) blocks among a and b are one. */
static void pooled_rates(const irm_state *state, int32_t a, int32_t b, double *rates)
{
  const size_t k = (size_t) state->k[0];
  for (int direction = 0; direction < state->directions; direction++) {
    const int64_t *links = state->links[direction], *pairs = state->pairs[direction];
    for (int32_t at = 0; at < state->active_count[0]; at++) {
      const size_t m = (size_t) state->active[0][at];
      int64_t n = links[a * k + m] + links[b * k + m], p = pairs[a * k + m] + pairs[b * k + m];
      if (m == (size_t) a || m == (size_t) b) {
        const int both = state->graph->type == WEFT_IRM_DIRECTED;
        n = links[a * k + a] + links[b * k + b] + links[a * k + b] + (both ? links[b * k + a] : 0);
        p = pairs[a * k + a] + pairs[b * k + b] + pairs[a * k + b] + (both ? pairs[b * k + a] : 0);
      }
      rates[direction * k + m] = p ? ((double) n + 0.5) / ((double) p + 1) : 0.5;
    }
    rates[direction * k + a] = rates[direction * k + b] =
        state->sizes[0][a] ? rates[direction * k + a] : rates[direction * k + b];
  }
}

/* log odds of the node of the profile for b against a, by its links alone. */
static double launch_odds(const irm_state *state, int32_t a, int32_t b, const double *rates)
{
  const size_t k = (size_t) state->k[0];
  double odds = 0;
  for (int direction = 0; direction < state->directions; direction++) {
    const int64_t *links = state->links[direction], *pairs = state->pairs[direction];
    for (int32_t at = 0; at < state->active_count[0]; at++) {
      const size_t m = (size_t) state->active[0][at];
      const double n = (double) state->profile.links[direction][m], p = (double) state->profile.pairs[direction][m],
                   prior = rates[direction * k + m];
      if (p == 0) continue;
      const double rate_a = ((double) links[a * k + m] + p * prior) / ((double) pairs[a * k + m] + p);
      const double rate_b = ((double) links[b * k + m] + p * prior) / ((double) pairs[b * k + m] + p);
      if (n > 0) odds += n * weft_log(rate_b / rate_a);
      odds += state->model->poisson ? p * (rate_a - rate_b) : (p - n) * (weft_log1p(-rate_b) - weft_log1p(-rate_a));
    }
  }
  return odds;
}

/* From all members in a or b to the launch state, anchors i in a and j in b, and RESTRICTED_SCANS that mix. */
static weft_status launch(weft_ctx *poll, irm_state *state, irm_trial *trial, int mode, int32_t i, int32_t j)
{
  const int32_t a = trial->a, b = trial->b;
  double unused;
  pooled_rates(state, a, b, state->rates);
  for (int64_t at = 0; at < trial->count; at++) irm_take_out(state, mode, trial->members[at]);
  irm_take_out(state, mode, i);
  irm_put_in(state, mode, i, a);
  irm_take_out(state, mode, j);
  irm_put_in(state, mode, j, b);
  for (int64_t at = 0; at < trial->count; at++) {
    const int32_t node = trial->members[at];
    if (node == i || node == j) continue;
    irm_take_out(state, mode, node);
    const double odds = launch_odds(state, a, b, state->rates), u = irm_trial_next(trial);
    irm_put_in(state, mode, node, weft_log(u / (1 - u)) < odds ? b : a);
    if (poll && at % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
  for (int k = 0; k < RESTRICTED_SCANS; k++)
    if (scan(poll, state, trial, mode, i, j, NULL, &unused) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  return WEFT_OK;
}

/* The launch and the scan that makes a proposal or, with `target`, is forced to it; skipped when the trial is
 * postponed. */
static weft_status propose(weft_ctx *poll, irm_state *state, irm_trial *trial, int mode, int32_t i, int32_t j,
                           const int32_t *target, double *log_q)
{
  weft_status st;
  if (state->one_mode) {
    st = launch(poll, state, trial, mode, i, j);
    return st == WEFT_OK ? scan(poll, state, trial, mode, i, j, target, log_q) : st;
  }
  trial->deferred = !irm_pair_load(state, trial, mode, i, j);
  if (trial->deferred) return WEFT_OK;
  st = irm_pair_launch(poll, state, trial);
  for (int k = 0; k < RESTRICTED_SCANS && st == WEFT_OK; k++) st = irm_pair_scan(poll, state, trial, NULL, NULL);
  return st == WEFT_OK ? irm_pair_scan(poll, state, trial, target, log_q) : st;
}

/* All members of a one-mode graph into a. */
static void join(irm_state *state, const irm_trial *trial, int mode)
{
  for (int64_t at = 0; at < trial->count; at++) {
    if (state->z[mode][trial->members[at]] == trial->a) continue;
    irm_take_out(state, mode, trial->members[at]);
    irm_put_in(state, mode, trial->members[at], trial->a);
  }
}

/* ---- the two proposals ---- */

/* log backward - log forward of a split, without q: sizes apart, L clusters together, `empty` of them free then; w of
 * both. */
static double log_ways(const irm_state *state, double size_a, double size_b, double clusters, double empty,
                       double log_v, double w)
{
  const double n = size_a + size_b;
  double ways = -log_v - weft_log(clusters + 1) + weft_log(w) - weft_log(2.0) - weft_log(size_a) - weft_log(size_b) +
                weft_log(n) + weft_log(n - 1);
  if (!state->model->collapsed) ways += weft_log(empty);
  return ways;
}

/* Decides whether the clusters that a split has made are kept. */
static int split_is_kept(const irm_state *state, irm_trial *trial, int mode, double log_v, double log_q)
{
  const int32_t clusters = state->active_count[mode] - (state->one_mode ? 1 : 0), empty = state->k[mode] - clusters;
  irm_row a = { .nodes = state->sizes[mode][trial->a] }, b = { .nodes = state->sizes[mode][trial->b] };
  double gain, similar;
  if (!state->one_mode) {
    a = irm_pair_row(trial, 0);
    b = irm_pair_row(trial, 1);
    gain = joined_gain(state, mode, &a, &b);
  } else {
    gain = irm_merge_gain(state, mode, trial->a, trial->b);
  }
  const double log_u = weft_log(draw_at(trial, DRAW_OUTCOME)),
               most = prior_apart(state, mode, trial->a, trial->b, a.nodes, b.nodes) - gain - log_q +
                      log_ways(state, (double) a.nodes, (double) b.nodes, clusters, empty, log_v, 2);
  if (log_u >= most) return 0; /* w of both is at most 2: most splits need no similarities */
  if (state->one_mode)
    similar = similarity(state, trial, mode, trial->a, trial->b) + similarity(state, trial, mode, trial->b, trial->a);
  else
    similar = similarity_apart(state, trial, mode, &a, &b) + similarity_apart(state, trial, mode, &b, &a);
  return log_u < most + weft_log(similar / 2);
}

/* Whether the scans of this trial are those of clusters a and b (-1 in a split) as they are now; and marking them as
 * such. */
static int is_known(const irm_state *state, const irm_trial *trial, int mode, int32_t a, int32_t b)
{
  if (state->one_mode || !trial->known || trial->of[0] != a || trial->of[1] != b) return 0;
  return trial->changes[0] == state->changes[mode][a] && (b < 0 || trial->changes[1] == state->changes[mode][b]);
}

static void know(const irm_state *state, irm_trial *trial, int mode, int32_t a, int32_t b)
{
  if (state->one_mode) return;
  trial->known = 1;
  trial->of[0] = a;
  trial->of[1] = b;
  trial->changes[0] = state->changes[mode][a];
  trial->changes[1] = b < 0 ? 0 : state->changes[mode][b];
}

/* Proposes to split a cluster and decides: trial->accepted and its clusters a and b. Only one-mode graphs change the
 * state, and put it back when the split is rejected. */
static weft_status weigh_split(weft_ctx *poll, irm_state *state, irm_trial *trial, int mode)
{
  weft_status st = WEFT_OK;
  const int32_t empty = state->k[mode] - state->active_count[mode];
  double log_v;
  const int32_t a = choose_split(state, trial, mode, &log_v);
  const int64_t n = state->sizes[mode][a];
  if (empty == 0 || n < 2 || n > IRM_SPLIT_NODES) return WEFT_OK;
  const int32_t b =
      irm_free_cluster(state, mode, state->model->collapsed ? 0 : (int32_t) below_at(trial, DRAW_LABEL, empty));
  if (!is_known(state, trial, mode, a, -1)) {
    const int64_t first = below_at(trial, DRAW_FIRST, n), drawn = below_at(trial, DRAW_SECOND, n - 1),
                  second = drawn + (drawn >= first);
    list_members(state, trial, mode, a, b);
    WEFT_TRY(propose(poll, state, trial, mode, trial->members[first], trial->members[second], NULL, &trial->log_q));
    if (trial->deferred) goto done;
    know(state, trial, mode, a, -1);
  }
  trial->b = b;
  trial->accepted = split_is_kept(state, trial, mode, log_v, trial->log_q);
  if (state->one_mode && !trial->accepted) join(state, trial, mode);
done:
  return st;
}

/* Two clusters a and b of this list, each drawn node by node: anchors, and where all members are. */
static void draw_anchors(const irm_state *state, irm_trial *trial, int mode, int32_t *i, int32_t *j)
{
  int64_t which_a = below_at(trial, DRAW_FIRST, state->sizes[mode][trial->a]),
          which_b = below_at(trial, DRAW_SECOND, state->sizes[mode][trial->b]);
  for (int64_t m = 0; m < trial->count; m++) {
    trial->targets[m] = state->z[mode][trial->members[m]];
    if (trial->targets[m] == trial->a && which_a-- == 0) *i = trial->members[m];
    if (trial->targets[m] == trial->b && which_b-- == 0) *j = trial->members[m];
  }
}

/* The active cluster that w(· | a) draws; its place among them. */
static int32_t draw_similar(const irm_state *state, irm_trial *trial, int mode, int32_t a)
{
  const int32_t clusters = state->active_count[mode], *active = state->active[mode];
  int32_t chosen = -1;
  double most = -WEFT_INFINITY;
  similarities(state, mode, a, trial->scores);
  for (int32_t at = 0; at < clusters; at++) {
    if (active[at] == a) continue;
    const double value = weft_log(trial->scores[at]) + noise(trial, SIMILAR_DRAWS, active[at]);
    if (chosen >= 0 && !(value > most || (value == most && active[at] < active[chosen]))) continue;
    most = value;
    chosen = at;
  }
  return chosen;
}

/* Proposes to merge two clusters and decides; cheap bounds come first, so that most proposals are rejected before
 * any scan. */
static weft_status weigh_merge(weft_ctx *poll, irm_state *state, irm_trial *trial, int mode)
{
  weft_status st = WEFT_OK;
  const int32_t clusters = state->active_count[mode], *active = state->active[mode];
  if (clusters < 2) return WEFT_OK;
  const int32_t from = choose_any(state, trial, mode), chosen = draw_similar(state, trial, mode, from);
  const int32_t to = active[chosen];
  const double w = trial->scores[chosen];
  const int stays = draw_at(trial, DRAW_STAYS) >= 0.5; /* which label: `from`'s */
  const int32_t a = stays ? from : to, b = stays ? to : from;
  const int64_t size_a = state->sizes[mode][a], size_b = state->sizes[mode][b];
  int32_t i = -1, j = -1;
  if (size_a + size_b > IRM_SPLIT_NODES) return WEFT_OK;
  const double least = w + FLAT_SHARE / (clusters - 1); /* of w of both */
  const double ways = log_ways(state, (double) size_a, (double) size_b, clusters - 1, state->k[mode] - clusters + 1,
                               log_share_of_both(state, mode, a, b), least);
  double ratio = merge_gain(state, mode, a, b) - prior_apart(state, mode, a, b, size_a, size_b) - ways;
  const double log_u = weft_log(draw_at(trial, DRAW_OUTCOME));
  if (log_u >= ratio) return WEFT_OK; /* q is at most 1: most merges need no more similarities, and no launch */
  ratio -= weft_log((w + similarity(state, trial, mode, to, from)) / least);
  if (log_u >= ratio) return WEFT_OK;
  if (!is_known(state, trial, mode, a, b)) {
    list_members(state, trial, mode, a, b);
    draw_anchors(state, trial, mode, &i, &j);
    WEFT_TRY(propose(poll, state, trial, mode, i, j, trial->targets, &trial->log_q));
    if (trial->deferred) goto done;
    know(state, trial, mode, a, b);
  }
  trial->accepted = log_u < ratio + trial->log_q;
  trial->joins = 1;
  if (state->one_mode && trial->accepted) join(state, trial, mode); /* the forced scan has put everything back */
done:
  return st;
}

weft_status irm_weigh(weft_ctx *poll, irm_state *state, irm_trial *trial, int mode, int number)
{
  trial->rng = irm_rng(state, IRM_DRAW_SEQUENCE);
  trial->index = irm_index(state, TRIAL_DRAWS + ((uint64_t) mode << MODE_BITS) + ((uint64_t) number << TRIAL_BITS));
  trial->accepted = trial->joins = trial->deferred = 0;
  return draw_at(trial, DRAW_KIND) < 0.5 ? weigh_split(poll, state, trial, mode)
                                         : weigh_merge(poll, state, trial, mode);
}
