/* Uphill: single nodes go where the posterior is greatest, then the two clusters whose union raises it most become one,
 * until nothing helps. The best partition may have a share of the samples of 1e-4 or less, but be a few moves away from
 * many of them, and from other good ones: one ascent of four starts at the sample, the others at the chain's best
 * partition with the nodes of one cluster reassigned. The sample itself is left as it is. */
#include <string.h>
#include "irm/cpu/greedy_ascent.h"

/* Gains of a pass over the nodes for each sweep: larger graphs wait for as many sweeps as it takes. */
#define GAINS_A_SWEEP 12000.0
enum { MAX_PASSES = 50, POLL_NODES = 16 };
#define MIN_GAIN 1e-9
#define INLINE static inline __attribute__((always_inline)) /* the innermost loops are worth two copies */

/* Depends on the sweep's number and its sample alone, so that cutting a run in two changes nothing. */
int irm_ascent_start(const irm_state *state)
{
  double gains = 0;
  for (int mode = 0; mode < state->modes; mode++)
    gains += (double) state->graph->n[mode] * (state->active_count[mode] + 1) *
             state->active_count[irm_other(state, mode)] * state->directions;
  const int64_t wait = 1 + (int64_t) (gains / GAINS_A_SWEEP);
  return state->sweep % wait ? IRM_STAY : state->sweep / wait % 4 == 1 ? IRM_FROM_SAMPLE : IRM_FROM_BEST;
}

/* f of cluster l's blocks, valid as long as its nodes stay: half of the work of finding where a node belongs. */
static void renew_blocks(irm_state *state, int mode, int32_t l)
{
  const size_t row = (size_t) l * (size_t) state->k[1 - mode];
  for (int32_t a = 0; a < state->active_count[1 - mode]; a++) {
    const size_t at = row + (size_t) state->active[1 - mode][a];
    state->block_now[at] = irm_block_now(state, mode, at);
  }
}

/* irm_gain() of a bipartite graph with those; of a node that is still in cluster l (`inside`), the gain of coming back.
 * in_tables: all log Γ are in tables. */
INLINE double gain_of(const irm_state *state, int mode, int in_tables, int inside, int32_t l)
{
  const irm_profile *p = &state->profile;
  const int32_t *active = state->active[1 - mode];
  const int by = inside ? -1 : 1;
  double sum = 0;
  for (int32_t a = 0; a < state->active_count[1 - mode]; a++) {
    const int32_t m = active[a];
    const size_t at = (size_t) l * (size_t) state->k[1 - mode] + (size_t) m;
    const int64_t links = state->links[mode][at] + by * p->links[0][m],
                  pairs = state->pairs[mode][at] + by * p->pairs[0][m];
    if (p->pairs[0][m] == 0) continue;
    const double with = inside && pairs == 0 ? 0
                        : in_tables          ? irm_f_in_tables(&state->tables, links, pairs)
                                             : irm_f_block(&state->tables, links,
                                                  p->values ? state->values[mode][at] + by * p->values[m] : 0, pairs);
    sum += by * (with - state->block_now[at]);
  }
  return sum;
}

/* Node i, which is out of its cluster, to where the posterior is greatest. */
static void settle_outside(irm_state *state, int mode, int32_t from, int alone, int32_t *to)
{
  const int32_t count = state->active_count[mode];
  const int32_t empty = alone ? from : count < state->k[mode] ? irm_free_cluster(state, mode, 0) : -1;
  const double prior_here = weft_log(alone ? state->chain->alpha[mode] : (double) state->sizes[mode][from]);
  double most =
      (state->one_mode ? irm_gain(state, mode, from) : gain_of(state, mode, 0, 0, from)) + prior_here + MIN_GAIN;
  *to = from;
  for (int32_t a = 0; a < count + (empty >= 0); a++) {
    const int32_t l = a < count ? state->active[mode][a] : empty;
    const double gain = (state->one_mode ? irm_gain(state, mode, l) : gain_of(state, mode, 0, 0, l)) +
                        weft_log(a < count ? (double) state->sizes[mode][l] : state->chain->alpha[mode]);
    if (l == from || gain <= most) continue;
    most = gain;
    *to = l;
  }
}

/* The best cluster of the node of the profile, which is in `from` with others. log_sizes: of each cluster. */
INLINE int32_t best_cluster(const irm_state *state, int mode, int in_tables, int32_t from, const double *log_sizes)
{
  const int32_t count = state->active_count[mode];
  const int32_t empty = count < state->k[mode] ? irm_free_cluster(state, mode, 0) : -1;
  double most = gain_of(state, mode, in_tables, 1, from) + weft_log((double) (state->sizes[mode][from] - 1)) + MIN_GAIN;
  int32_t to = from;
  for (int32_t a = 0; a < count + (empty >= 0); a++) {
    const int32_t l = a < count ? state->active[mode][a] : empty;
    if (l == from) continue;
    const double gain =
        gain_of(state, mode, in_tables, 0, l) + (a < count ? log_sizes[l] : weft_log(state->chain->alpha[mode]));
    if (gain <= most) continue;
    most = gain;
    to = l;
  }
  return to;
}

static int64_t nodes_of(const irm_state *state)
{
  return state->graph->n[0] + (state->modes == 2 ? state->graph->n[1] : 0);
}

/* Every node of a mode to its best cluster; `better` when one moved. `still`: nodes that have been looked at since one
 * moved; once these are all nodes, no more will. */
static weft_status move_nodes(weft_ctx *poll, irm_state *state, int mode, int64_t *still, int *better)
{
  const int64_t all = nodes_of(state);
  const int in_tables = !state->one_mode && state->graph->unit == 0 && !state->model->poisson &&
                        (double) state->graph->n[0] * (double) state->graph->n[1] < (double) state->tables.size;
  double *log_sizes = state->scores;
  for (int32_t l = 0; l < state->k[mode] && !state->one_mode; l++) {
    renew_blocks(state, mode, l);
    log_sizes[l] = weft_log((double) state->sizes[mode][l]);
  }
  for (int64_t i = 0; i < state->graph->n[mode] && *still < all; i++, (*still)++) {
    if (poll && i % POLL_NODES == 0 && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
    const int32_t from = state->z[mode][i], alone = state->sizes[mode][from] == 1, outside = alone || state->one_mode;
    int32_t to;
    if (outside) {
      irm_take_out(state, mode, i);
      if (!state->one_mode) renew_blocks(state, mode, from);
      settle_outside(state, mode, from, alone, &to);
    } else {
      irm_profile_node(state, mode, i);
      to = in_tables ? best_cluster(state, mode, 1, from, log_sizes) : best_cluster(state, mode, 0, from, log_sizes);
      if (to == from) continue;
      irm_take_out(state, mode, i);
      renew_blocks(state, mode, from);
    }
    irm_put_in(state, mode, i, to);
    if (!state->one_mode) renew_blocks(state, mode, to);
    if (!state->one_mode) log_sizes[to] = weft_log((double) state->sizes[mode][to]);
    if (to == from) continue;
    if (!state->one_mode) log_sizes[from] = weft_log((double) state->sizes[mode][from]);
    *still = -1;
    *better = 1;
  }
  return WEFT_OK;
}

/* The best union of two clusters, if one helps. */
static weft_status join_best(weft_ctx *poll, irm_state *state, int mode, int *better)
{
  const int32_t count = state->active_count[mode], *active = state->active[mode];
  double most = MIN_GAIN;
  int32_t into = -1, gone = -1;
  for (int32_t x = 0; x < count; x++) {
    if (poll && weft_poll(poll, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
    for (int32_t y = x + 1; y < count; y++) {
      const double a = (double) state->sizes[mode][active[x]], b = (double) state->sizes[mode][active[y]];
      const double gain = irm_merge_gain(state, mode, active[x], active[y]) + irm_log_gamma(a + b) - irm_log_gamma(a) -
                          irm_log_gamma(b) - weft_log(state->chain->alpha[mode]);
      if (gain <= most) continue;
      most = gain;
      into = active[x];
      gone = active[y];
    }
  }
  if (into < 0) return WEFT_OK;
  for (int64_t i = 0; i < state->graph->n[mode]; i++) {
    if (state->z[mode][i] != gone) continue;
    irm_take_out(state, mode, i);
    irm_put_in(state, mode, i, into);
  }
  *better = 1;
  return WEFT_OK;
}

/* Makes these the labels, by moving the nodes whose labels differ. */
static void go_to(irm_state *state, int32_t *const labels[2])
{
  for (int mode = 0; mode < state->modes; mode++) {
    for (int64_t i = 0; i < state->graph->n[mode]; i++) {
      if (state->z[mode][i] == labels[mode][i]) continue;
      irm_take_out(state, mode, i);
      irm_put_in(state, mode, i, labels[mode][i]);
    }
    irm_state_count_active(state, mode);
  }
}

/* The nodes of one cluster are distributed at random: over it and a new one, or over all clusters. */
static void disturb(irm_state *state)
{
  const int mode = state->modes == 2 ? (int) irm_next_below(state, 2) : 0;
  const int32_t a = state->active[mode][irm_next_below(state, state->active_count[mode])];
  const int32_t empty = irm_free_cluster(state, mode, 0), two = empty >= 0 && irm_next(state) < 0.5;
  for (int64_t i = 0; i < state->graph->n[mode]; i++) {
    if (state->z[mode][i] != a) continue;
    const int32_t to = two ? (irm_next(state) < 0.5 ? a : empty)
                           : state->active[mode][irm_next_below(state, state->active_count[mode])];
    if (to == a) continue;
    irm_take_out(state, mode, i);
    irm_put_in(state, mode, i, to);
  }
}

/* Saves the sample, goes to the best partition and disturbs it when `from_best`, then moves nodes and joins clusters
 * until nothing helps or MAX_PASSES are over. */
weft_status irm_ascend(weft_ctx *poll, irm_state *state, int from_best)
{
  weft_status st = WEFT_OK;
  int64_t still = 0;
  for (int mode = 0; mode < state->modes; mode++)
    memcpy(state->sampled[mode], state->z[mode], (size_t) state->graph->n[mode] * sizeof(int32_t));
  if (from_best) {
    go_to(state, state->chain->best_z);
    disturb(state);
  }
  for (int pass = 0, better = 1; better && pass < MAX_PASSES; pass++) {
    better = 0;
    for (int mode = 0; mode < state->modes; mode++) WEFT_TRY(move_nodes(poll, state, mode, &still, &better));
    for (int mode = 0; mode < state->modes && !better; mode++) WEFT_TRY(join_best(poll, state, mode, &better));
    if (better && still >= nodes_of(state)) still = 0; /* two clusters were joined */
  }
done:
  return st;
}

void irm_ascend_back(irm_state *state) { go_to(state, state->sampled); }
