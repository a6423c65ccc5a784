/* Collapsed Gibbs sampling of labels, and sampling of α and β.
 *
 * With μ and η integrated out, node i joins cluster l with probability proportional to n_l exp(gain_l), or a new one to
 * α exp(gain); `max_clusters` conditions the prior on at most k clusters. α and β get gamma priors and Metropolis steps
 * on their logarithms. */
#include "irm/cpu/moves.h"

/* Draws the labels of nodes first .. last - 1 one after another, each given all others. */
void irm_collapsed_nodes(irm_state *s, int mode, int64_t first, int64_t last)
{
  const weft_rng rng = irm_rng(s, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL);
  const int32_t *active = s->active[mode];
  double *scores = s->scores;
  for (int64_t i = first; i < last; i++) {
    irm_take_out(s, mode, i);
    const int32_t count = s->active_count[mode], empty = count < s->k[mode] ? irm_free_cluster(s, mode, 0) : -1;
    double most = -WEFT_INFINITY, total = 0;
    for (int32_t a = 0; a <= count; a++) {
      if (a == count && empty < 0) break;
      const int32_t l = a < count ? active[a] : empty;
      const double prior = a < count ? (double) s->sizes[mode][l] : s->chain->alpha[mode];
      scores[a] = irm_gain(s, mode, l) + weft_log(prior);
      if (scores[a] > most) most = scores[a];
    }
    const int32_t choices = count + (empty >= 0);
    for (int32_t a = 0; a < choices; a++) total += scores[a] = weft_exp(scores[a] - most);
    double target = total * weft_draw_uniform(rng, irm_index(s, (uint64_t) i));
    int32_t chosen = 0;
    while (chosen < choices - 1 && (target -= scores[chosen]) >= 0) chosen++;
    irm_put_in(s, mode, i, chosen < count ? active[chosen] : empty);
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
static double walk(irm_state *s, double x)
{
  return x * weft_exp(HYPER_SCALE * weft_draw_normal(irm_rng(s, IRM_DRAW_SEQUENCE), irm_index(s, s->counter++)));
}

static double alpha_target(const irm_state *s, int mode, double alpha)
{
  const double partition = s->model->collapsed ? irm_log_crp(alpha, s->sizes[mode], s->k[mode])
                                               : irm_log_sticks(alpha, s->sizes[mode], s->k[mode]);
  return partition + log_prior(alpha, s->model->alpha_prior);
}

void irm_sample_alpha(irm_state *s, int mode)
{
  double *alpha = &s->chain->alpha[mode], now = alpha_target(s, mode, *alpha);
  for (int step = 0; step < HYPER_STEPS; step++) {
    const double proposed = walk(s, *alpha), then = may_be(proposed) ? alpha_target(s, mode, proposed) : -WEFT_INFINITY;
    if (weft_log(irm_next(s)) < then - now) {
      *alpha = proposed;
      now = then;
    }
  }
}

static double beta_target(const irm_state *s, const double beta[2])
{
  double sum = log_prior(beta[0], s->model->beta_prior) + log_prior(beta[1], s->model->beta_prior);
  for (int32_t l = 0; l < s->k[0]; l++) {
    if (s->sizes[0][l] == 0) continue;
    for (int32_t m = s->graph->type == WEFT_IRM_UNDIRECTED ? l : 0; m < s->k[1]; m++) {
      const size_t at = (size_t) l * (size_t) s->k[1] + (size_t) m;
      const double links = (double) s->links[0][at], pairs = (double) s->pairs[0][at];
      if (pairs > 0)
        sum += s->values[0] ? irm_f_real(beta, s->graph->unit, links, (double) s->values[0][at], pairs)
                            : irm_f(s->model->poisson, beta, links, pairs);
    }
  }
  return sum;
}

void irm_sample_beta(irm_state *s)
{
  double *beta = s->chain->beta, now = beta_target(s, beta);
  for (int step = 0; step < HYPER_STEPS; step++)
    for (int which = 0; which < 2; which++) {
      double proposed[2] = { beta[0], beta[1] };
      proposed[which] = walk(s, beta[which]);
      const double then = may_be(proposed[which]) ? beta_target(s, proposed) : -WEFT_INFINITY;
      if (weft_log(irm_next(s)) < then - now) {
        beta[which] = proposed[which];
        now = then;
      }
    }
  irm_tables_fill(&s->tables, s->model->poisson, beta);
}
