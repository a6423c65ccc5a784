/* How uneven the clusters of a mode are: by how much more their nodes differ than they would by chance. With n_im the
 * links of node i with cluster m of the other mode, of size n_m,
 *
 *   T = max(0, (X - E X) / sd X),   X = Σ_im (n_im - mean_m)² / var_m
 *
 * where mean and variance are those of homogeneous nodes (real values: n_im their sum, whose variance is that of the
 * block's values times n_m). The sum goes over every stride-th node, so that a cluster of the average size has some 64
 * in it: the stride depends on the sweep and the other mode, which do not change between the proposals of a mode. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/split/split_choice.h"

enum { SAMPLED_NODES = 64, SHARED_LINKS = 100000 };

static int in_sample(const irm_state *state, int64_t i) { return (i + state->sweep) % state->stride == 0; }

/* What is known of a cluster's nodes: of all, and of the sampled ones. */
typedef struct irm_crowd {
  int64_t nodes, sampled;
  const int64_t *links, *values, *reached;
  const uint64_t *squares;
} irm_crowd;

static irm_crowd crowd_of(const irm_state *state, int mode, int32_t c)
{
  const size_t row = (size_t) c * (size_t) state->k[1 - mode];
  return (irm_crowd){ state->sizes[mode][c],    state->sampled_nodes[c],
                      state->links[mode] + row, state->values[mode] ? state->values[mode] + row : NULL,
                      state->reached + row,     state->squares + row };
}

/* T of one cluster, or with `two` of both together. */
static double unevenness(const irm_state *state, int mode, const irm_crowd *one, const irm_crowd *two)
{
  const int other = 1 - mode;
  const int64_t all = one->nodes + (two ? two->nodes : 0);
  const double nodes = (double) all, sampled = (double) (one->sampled + (two ? two->sampled : 0));
  const double expected = sampled * (1 - 1 / nodes);
  double excess = 0, variance = 0;
  if (all < 2 || sampled < 1) return 0;
  for (int32_t at = 0; at < state->active_count[other]; at++) {
    const int32_t m = state->active[other][at];
    const double n = (double) (one->links[m] + (two ? two->links[m] : 0)), mean = n / nodes;
    const double reached = (double) (one->reached[m] + (two ? two->reached[m] : 0));
    const double squares = (double) one->squares[m] + (two ? (double) two->squares[m] : 0);
    const double apart = squares - 2 * mean * reached + sampled * mean * mean, size = (double) state->sizes[other][m];
    double var = state->model->poisson ? mean : mean * (1 - mean / size), spread = 2 + 1 / mean;
    if (one->values) {
      const double pairs = nodes * size;
      var = ((double) (one->values[m] + (two ? two->values[m] : 0)) - n * n / pairs) / pairs * size;
      spread = 2;
    }
    if (!(var > 0)) continue;
    excess += apart / var - expected;
    variance += expected * spread;
  }
  return excess > 0 ? excess / sqrt(variance) : 0;
}

static double unevenness_now(const irm_state *state, int mode, int32_t c)
{
  const irm_crowd crowd = crowd_of(state, mode, c);
  return crowd.nodes > IRM_SPLIT_NODES ? 0 : unevenness(state, mode, &crowd, NULL);
}

double irm_uneven_joined(const irm_state *state, int mode, int32_t a, int32_t b)
{
  const irm_crowd first = crowd_of(state, mode, a), second = crowd_of(state, mode, b);
  return unevenness(state, mode, &first, &second);
}

/* Adds the node's n_im and n_im² to its cluster's. With counts of billions the squares pass 2^64: other splits are
 * proposed then, which are as valid. */
static void add_node(irm_state *state, int mode, int64_t i, int64_t *count)
{
  const weft_irm_lists *links = &state->graph->links[mode];
  const int32_t c = state->z[mode][i], *z = state->z[1 - mode];
  int64_t *reached = state->reached + (size_t) c * (size_t) state->k[1 - mode];
  uint64_t *squares = state->squares + (size_t) c * (size_t) state->k[1 - mode];
  state->sampled_nodes[c]++;
  /* (x + w)² - x² = w (2 x + w), link by link */
  for (int64_t entry = links->start[i]; entry < links->start[i + 1]; entry++) count[z[links->to[entry]]] = 0;
  for (int64_t entry = links->start[i]; entry < links->start[i + 1]; entry++) {
    const int32_t m = z[links->to[entry]];
    const int64_t w = links->weight ? links->weight[entry] : 1;
    squares[m] += (uint64_t) w * (2 * (uint64_t) count[m] + (uint64_t) w);
    reached[m] += w;
    count[m] += w;
  }
}

static void clear(irm_state *state, int mode, int32_t c)
{
  const size_t width = (size_t) state->k[1 - mode];
  memset(state->reached + (size_t) c * width, 0, width * sizeof *state->reached);
  memset(state->squares + (size_t) c * width, 0, width * sizeof *state->squares);
  state->sampled_nodes[c] = 0;
}

void irm_uneven_add(irm_state *state, int mode, int32_t a, int32_t b)
{
  const size_t width = (size_t) state->k[1 - mode];
  for (size_t m = 0; m < width; m++) {
    state->reached[(size_t) a * width + m] += state->reached[(size_t) b * width + m];
    state->squares[(size_t) a * width + m] += state->squares[(size_t) b * width + m];
  }
  state->sampled_nodes[a] += state->sampled_nodes[b];
}

/* T, and Σ f over the cluster's blocks. */
static void sum_up(irm_state *state, int mode, int32_t c)
{
  const int other = 1 - mode;
  const size_t row = (size_t) c * (size_t) state->k[other];
  state->spreads[c] = state->row_now[c] = 0;
  if (state->sizes[mode][c] == 0) return;
  state->spreads[c] = unevenness_now(state, mode, c);
  for (int32_t at = 0; at < state->active_count[other]; at++)
    state->row_now[c] += irm_block_now(state, mode, row + (size_t) state->active[other][at]);
}

/* The sampled nodes, cluster by cluster, to state->order; where each cluster begins, to state->begins. */
static int64_t sort_sample(irm_state *state, int mode)
{
  const int32_t k = state->k[mode], *z = state->z[mode];
  int64_t links = 0;
  memset(state->begins, 0, ((size_t) k + 1) * sizeof *state->begins);
  for (int64_t i = (state->stride - state->sweep % state->stride) % state->stride; i < state->graph->n[mode];
       i += state->stride) {
    state->begins[z[i] + 1]++;
    links += state->graph->links[mode].start[i + 1] - state->graph->links[mode].start[i];
  }
  for (int32_t c = 0; c < k; c++) state->begins[c + 1] += state->begins[c];
  for (int64_t i = (state->stride - state->sweep % state->stride) % state->stride; i < state->graph->n[mode];
       i += state->stride)
    state->order[state->begins[z[i]]++] = (int32_t) i;
  for (int32_t c = k; c > 0; c--) state->begins[c] = state->begins[c - 1];
  state->begins[0] = 0;
  return links;
}

/* Counts T and f of every cluster of the mode from its sampled nodes, by threads that each take a trial's scratch. */
weft_status irm_uneven_begin(weft_ctx *poll, irm_state *state, int mode)
{
  const int64_t wanted = (int64_t) SAMPLED_NODES * (state->active_count[1 - mode] + 1);
  state->stride = state->graph->n[mode] > 2 * wanted ? state->graph->n[mode] / wanted : 1;
  const int most =
      state->threads < state->trial_count ? state->threads : state->trial_count; /* each has a trial's scratch */
  const int threads = sort_sample(state, mode) > SHARED_LINKS ? most : 1;
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int32_t c = 0; c < state->k[mode]; c++) {
    clear(state, mode, c);
    for (int64_t at = state->begins[c]; at < state->begins[c + 1]; at++)
      add_node(state, mode, state->order[at], state->trials[WEFT_THREAD()].counts);
    sum_up(state, mode, c);
  }
  return poll ? weft_poll(poll, 0, 0) : WEFT_OK;
}

void irm_uneven_renew(irm_state *state, int mode, const irm_trial *trial)
{
  clear(state, mode, trial->a);
  clear(state, mode, trial->b);
  for (int64_t at = 0; at < trial->count; at++)
    if (in_sample(state, trial->members[at])) add_node(state, mode, trial->members[at], trial->counts);
  sum_up(state, mode, trial->a);
  sum_up(state, mode, trial->b);
}
