/* Collapsed Gibbs sampling of labels, and sampling of α and β.
 *
 * With μ and η integrated out, node i joins cluster l with probability proportional to n_l exp(gain_l), or a new one to
 * α exp(gain); `max_clusters` conditions the prior on at most k clusters. α and β get gamma priors and Metropolis steps
 * on their logarithms. */
#include "irm/cpu/collapsed.h"

/* Draws the labels of nodes first .. last - 1 one after another, each given all others. */
void irm_collapsed_nodes(irm_state *state, int mode, int64_t first, int64_t last)
{
  const weft_rng rng = irm_rng(state, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL);
  const int32_t *active = state->active[mode];
  double *scores = state->scores;
  for (int64_t i = first; i < last; i++) {
    irm_take_out(state, mode, i);
    const int32_t count = state->active_count[mode],
                  empty = count < state->k[mode] ? irm_free_cluster(state, mode, 0) : -1;
    double most = -WEFT_INFINITY, total = 0;
    for (int32_t a = 0; a <= count; a++) {
      if (a == count && empty < 0) break;
      const int32_t l = a < count ? active[a] : empty;
      const double prior = a < count ? (double) state->sizes[mode][l] : state->chain->alpha[mode];
      scores[a] = irm_gain(state, mode, l) + weft_log(prior);
      if (scores[a] > most) most = scores[a];
    }
    const int32_t choices = count + (empty >= 0);
    for (int32_t a = 0; a < choices; a++) total += scores[a] = weft_exp(scores[a] - most);
    double target = total * weft_draw_uniform(rng, irm_index(state, (uint64_t) i));
    int32_t chosen = 0;
    while (chosen < choices - 1 && (target -= scores[chosen]) >= 0) chosen++;
    irm_put_in(state, mode, i, chosen < count ? active[chosen] : empty);
  }
}

/* ---- hyper-parameters ---- */

enum { HYPER_STEPS = 4 };
#define HYPER_SCALE 0.5
/* The range in which scores of billions of pairs are still finite; the priors are truncated to it. */
#define MIN_HYPER 1e-9
#define MAX_HYPER 1e12

static double log_prior(double x, const double prior[2])
{
  return prior[0] * weft_log(x) - prior[1] * x;
} /* of log x */

static int may_be(double x) { return x >= MIN_HYPER && x <= MAX_HYPER; }

/* x times a log-normal factor. */
static double walk(irm_state *state, double x)
{
  return x * weft_exp(HYPER_SCALE *
                      weft_draw_normal(irm_rng(state, IRM_DRAW_SEQUENCE), irm_index(state, state->counter++)));
}

static double alpha_target(const irm_state *state, int mode, double alpha)
{
  const double partition = state->model->collapsed ? irm_log_crp(alpha, state->sizes[mode], state->k[mode])
                                                   : irm_log_sticks(alpha, state->sizes[mode], state->k[mode]);
  return partition + log_prior(alpha, state->model->alpha_prior);
}

void irm_sample_alpha(irm_state *state, int mode)
{
  double *alpha = &state->chain->alpha[mode], now = alpha_target(state, mode, *alpha);
  for (int step = 0; step < HYPER_STEPS; step++) {
    const double proposed = walk(state, *alpha),
                 then = may_be(proposed) ? alpha_target(state, mode, proposed) : -WEFT_INFINITY;
    if (weft_log(irm_next(state)) < then - now) {
      *alpha = proposed;
      now = then;
    }
  }
}

static double beta_target(const irm_state *state, const double beta[2])
{
  double sum = log_prior(beta[0], state->model->beta_prior) + log_prior(beta[1], state->model->beta_prior);
  for (int32_t l = 0; l < state->k[0]; l++) {
    if (state->sizes[0][l] == 0) continue;
    for (int32_t m = state->graph->type == WEFT_IRM_UNDIRECTED ? l : 0; m < state->k[1]; m++) {
      const size_t at = (size_t) l * (size_t) state->k[1] + (size_t) m;
      const double links = (double) state->links[0][at], pairs = (double) state->pairs[0][at];
      if (pairs > 0)
        sum += state->values[0] ? irm_f_real(beta, state->graph->unit, links, (double) state->values[0][at], pairs)
                                : irm_f(state->model->poisson, beta, links, pairs);
    }
  }
  return sum;
}

void irm_sample_beta(irm_state *state)
{
  double *beta = state->chain->beta, now = beta_target(state, beta);
  for (int step = 0; step < HYPER_STEPS; step++)
    for (int which = 0; which < 2; which++) {
      double proposed[2] = { beta[0], beta[1] };
      proposed[which] = walk(state, beta[which]);
      const double then = may_be(proposed[which]) ? beta_target(state, proposed) : -WEFT_INFINITY;
      if (weft_log(irm_next(state)) < then - now) {
        beta[which] = proposed[which];
        now = then;
      }
    }
  irm_tables_fill(&state->tables, state->model->poisson, beta);
}
