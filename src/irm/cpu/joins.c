/* Unions of clusters. With the blocks of a bipartite graph at hand, the union of clusters a and b of one mode changes
 * the log posterior by
 *
 *   Σ_m [f(N_am + N_bm, P_am + P_bm) - f(N_am, P_am) - f(N_bm, P_bm)] + log Γ(n_a + n_b) / (Γ(n_a) Γ(n_b)) - log α
 *
 * whatever else is joined in this mode. A round therefore joins all pairs of clusters of which each is the other's best
 * partner, and looks again at those whose partner has changed. Scores of K clusters take K² L evaluations of f, and no
 * node is visited. As parts of clusters in one mode keep those of the other apart, modes take turns.
 *
 * Early in a chain most clusters are mixtures that look alike, and joining them would undo what sweeps are about to
 * find. The nodes of a union must therefore differ no more than those of one cluster do, T of split_choice.c: parts of
 * one cluster pass, mixtures and nodes with degrees of their own do not. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/joins.h"
#include "irm/cpu/split/split_choice.h"

#define MIN_GAIN 1e-6
/* The most standard deviations by which the nodes of a union may differ more than those of one cluster. */
#define MAX_UNEVENNESS 1.0
/* No scores for a mode that would take more evaluations than this; and evaluations of a thread between two polls. */
#define MAX_SCORES 2e10
#define POLL_SCORES 3e6

static double prior_gain(const irm_state *state, int mode, int32_t a, int32_t b)
{
  const double x = (double) state->sizes[mode][a], y = (double) state->sizes[mode][b];
  return irm_log_gamma(x + y) - irm_log_gamma(x) - irm_log_gamma(y) - weft_log(state->chain->alpha[mode]);
}

/* f of a cluster's blocks. */
static void fill_row(irm_state *state, int mode, int32_t a)
{
  const size_t row = (size_t) a * (size_t) state->k[1 - mode];
  for (int32_t at = 0; at < state->active_count[1 - mode]; at++) {
    const size_t m = row + (size_t) state->active[1 - mode][at];
    state->block_now[m] = irm_block_now(state, mode, m);
  }
}

static double times_log(double x, double y) { return x > 0 ? x * weft_log(x / y) : 0; }

/* rest[at]: the most that blocks at, at + 1, .. of a cluster can gain by a union, whatever joins them: the log of their
 * greatest likelihood less f, as a mean over rates is at most the greatest value. Real values have no such bound. */
static void fill_bounds(const irm_state *state, int mode, int32_t a, double *rest)
{
  const int32_t count = state->active_count[1 - mode];
  rest[count] = 0;
  for (int32_t at = count - 1; at >= 0; at--) {
    const size_t m = (size_t) a * (size_t) state->k[1 - mode] + (size_t) state->active[1 - mode][at];
    const double links = (double) state->links[mode][m], pairs = (double) state->pairs[mode][m];
    const double none = state->model->poisson ? -links : times_log(pairs - links, pairs);
    const double most = times_log(links, pairs) + none - state->block_now[m];
    rest[at] = rest[at + 1] + (state->values[mode] ? WEFT_INFINITY : most);
  }
}

/* Gain in log posterior by the union of a cluster, whose bounds are `rest`, and b; minus infinity as soon as it is sure
 * to be none. */
static double union_gain(const irm_state *state, int mode, int32_t a, int32_t b, const double *rest)
{
  const size_t width = (size_t) state->k[1 - mode], row_a = (size_t) a * width, row_b = (size_t) b * width;
  const int64_t *links = state->links[mode], *pairs = state->pairs[mode], *values = state->values[mode];
  double sum = prior_gain(state, mode, a, b);
  for (int32_t at = 0; at < state->active_count[1 - mode]; at++) {
    const size_t m = (size_t) state->active[1 - mode][at], x = row_a + m, y = row_b + m;
    if (sum + rest[at] < -1) return -WEFT_INFINITY;
    if (!(pairs[x] + pairs[y])) continue;
    sum += irm_f_block(&state->tables, links[x] + links[y], values ? values[x] + values[y] : 0, pairs[x] + pairs[y]) -
           state->block_now[x] - state->block_now[y];
  }
  return sum;
}

/* The best partner of a cluster, the smaller of two equal ones: among all, when it or its partner has changed; else
 * only changed clusters may be better. */
static void find_partner(irm_state *state, int mode, int32_t a, double *rest)
{
  irm_joins *joins = &state->joins;
  fill_bounds(state, mode, a, rest);
  const int all = joins->changed[a] || joins->best[a] < 0 || joins->changed[joins->best[a]];
  if (all) {
    joins->gain[a] = -WEFT_INFINITY;
    joins->best[a] = -1;
  }
  for (int32_t at = 0; at < state->active_count[mode]; at++) {
    const int32_t b = state->active[mode][at];
    if (b == a || !(all || joins->changed[b])) continue;
    const double gain = union_gain(state, mode, a < b ? a : b, a < b ? b : a, rest);
    if (!(gain > joins->gain[a] || (gain == joins->gain[a] && b < joins->best[a]))) continue;
    joins->gain[a] = gain;
    joins->best[a] = b;
  }
}

/* The best partners of all clusters of a mode. */
static weft_status find_partners(weft_ctx *poll, irm_state *state, int mode)
{
  weft_status st = WEFT_OK;
  const int32_t count = state->active_count[mode], *active = state->active[mode];
  const double each = (double) count * state->active_count[1 - mode] + 1;
  const int most = state->threads < state->trial_count ? state->threads : state->trial_count; /* each has a scratch */
  const int threads = weft_threads_worth(most, 20 * each * count);
  const int32_t slice = (int32_t) (POLL_SCORES * threads / each) + 1;
  for (int32_t at = 0; at < count; at++)
    if (state->joins.changed[active[at]]) fill_row(state, mode, active[at]);
  for (int32_t first = 0; first < count; first += slice) {
    const int32_t last = first + slice < count ? first + slice : count;
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int32_t at = first; at < last; at++)
      find_partner(state, mode, active[at], state->trials[WEFT_THREAD()].bounds);
    if (poll) WEFT_TRY(weft_poll(poll, 0, 0));
  }
done:
  return st;
}

/* Adds the blocks and nodes of b to those of a. */
static void add_cluster(irm_state *state, int mode, int32_t a, int32_t b)
{
  const size_t width = (size_t) state->k[1 - mode], height = (size_t) state->k[mode];
  int64_t *const near[] = { state->links[mode], state->pairs[mode], state->values[mode] };
  int64_t *const far[] = { state->links[1 - mode], state->pairs[1 - mode], state->values[1 - mode] };
  for (int which = 0; which < (state->values[0] ? 3 : 2); which++)
    for (size_t m = 0; m < width; m++) {
      int64_t *to = near[which] + (size_t) a * width + m, *from = near[which] + (size_t) b * width + m;
      far[which][m * height + (size_t) a] = *to += *from;
      far[which][m * height + (size_t) b] = *from = 0;
    }
  state->sizes[mode][a] += state->sizes[mode][b];
  state->sizes[mode][b] = 0;
}

/* Whether a cluster and its best partner, the greater of the two, prefer each other. */
static int is_pair(const irm_joins *joins, int32_t a)
{
  const int32_t b = joins->best[a];
  return b > a && joins->best[b] == a && joins->gain[a] > MIN_GAIN;
}

/* Joins the pairs whose nodes look like those of one cluster; returns their number. */
static int64_t join_pairs(irm_state *state, int mode)
{
  irm_joins *joins = &state->joins;
  int64_t joined = 0;
  memset(joins->changed, 0, (size_t) state->k[mode]);
  for (int32_t at = 0; at < state->active_count[mode]; at++) {
    const int32_t a = state->active[mode][at], b = joins->best[a];
    if (!is_pair(joins, a) || irm_uneven_joined(state, mode, a, b) > MAX_UNEVENNESS) continue;
    irm_uneven_add(state, mode, a, b);
    add_cluster(state, mode, a, b);
    joins->into[b] = a;
    joins->changed[a] = joins->changed[b] = 1;
    joined++;
  }
  irm_state_count_active(state, mode);
  return joined;
}

/* All unions of a mode, and then its labels. Nodes are looked at only if some union raises the log posterior. */
static weft_status join_mode(weft_ctx *poll, irm_state *state, int mode, int64_t *joined)
{
  weft_status st = WEFT_OK;
  irm_joins *joins = &state->joins;
  const int32_t k = state->k[mode];
  const double count = state->active_count[mode];
  int64_t all = 0;
  if (count * count * state->active_count[1 - mode] > MAX_SCORES) return st;
  memset(joins->changed, 1, (size_t) k);
  for (int32_t l = 0; l < k; l++) joins->into[l] = l;
  for (int64_t now = 1, measured = 0; now > 0; all += now) {
    now = 0;
    WEFT_TRY(find_partners(poll, state, mode));
    for (int32_t at = 0; at < state->active_count[mode]; at++) now += is_pair(joins, state->active[mode][at]);
    if (now && !measured) WEFT_TRY(irm_uneven_begin(poll, state, mode));
    measured |= now > 0;
    if (now) now = join_pairs(state, mode);
  }
  if (!all) return st;
  for (int32_t l = 0; l < k; l++) joins->into[l] = joins->into[joins->into[l]]; /* a smaller label, which is done */
  for (int64_t i = 0; i < state->graph->n[mode]; i++) state->z[mode][i] = joins->into[state->z[mode][i]];
  *joined += all;
done:
  return st;
}

weft_status irm_join_all(weft_ctx *poll, irm_state *state, int64_t *joined)
{
  weft_status st = WEFT_OK;
  *joined = 0;
  for (int64_t before = -1; before < *joined;) {
    before = *joined;
    for (int mode = 0; mode < state->modes; mode++) WEFT_TRY(join_mode(poll, state, mode, joined));
  }
done:
  return st;
}
