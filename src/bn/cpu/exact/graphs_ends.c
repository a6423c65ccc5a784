/* What the exact posteriors over graphs start from and end with on both back ends: weights of parent sets, subsets by
 * size, and the edges. See graphs.h. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "bn/both/graphs.h"
#include "bn/both/graphs_ends.h"
#include "bn/both/joint.h"

#define LN_2 0.693147180559945309417232121458176568L
#define MAX_GAP 1e7 /* nats; sums of p exponents fit into 32 bits */
#define WORST_ERROR 1e-6
#define SUBSETS_EACH (1 << 22) /* between polls */

weft_status weft_bn_reals_take(weft_arena *mem, size_t count, weft_bn_reals *out)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE0(out->fraction, mem, count);
  WEFT_TAKE0(out->exponent, mem, count);
done:
  return st;
}

/* exp(-nats). What is not worth exp(-MAX_GAP) of the best graph is 0. */
static weft_bn_real weight_of(long double nats)
{
  int exponent;
  if (nats > 2 * MAX_GAP) return weft_bn_real_of(0, 0);
  const long double power = rintl(nats / LN_2), fraction = frexpl(expl(power * LN_2 - nats), &exponent);
  return weft_bn_real_of((uint64_t) ldexpl(fraction, 64), exponent - (int) power - 64);
}

/* Refuses scores that lie more than MAX_GAP nats apart, whose exponents would not fit. */
weft_status weft_bn_graph_plan_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table, int64_t optimum,
                                    weft_bn_graph_plan *out)
{
  weft_status st = WEFT_OK;
  const size_t p = table->p, sets = (size_t) table->start[p];
  double gap = -ldexp((double) optimum, -table->bits);
  size_t at[WEFT_BN_MAX_GRAPH_NODES + 1];
  memset(out, 0, sizeof *out);
  if (p > WEFT_BN_MAX_GRAPH_NODES) return weft_fail(ctx, WEFT_ERR_INTERNAL, "Sums over graphs of %d nodes.", (int) p);
  out->p = p;
  out->all = (size_t) 1 << p;
  out->sets = sets;
  for (size_t v = 0; v < p; v++) gap += ldexp((double) table->score[table->start[v]], -table->bits);
  if (!(gap <= MAX_GAP))
    return weft_fail(ctx, WEFT_ERR_INPUT,
                     "The scores differ too much for sums over graphs: the best network scores %.3g nats less than the "
                     "best parents of each node, and at most %.0e nats are possible.",
                     gap, MAX_GAP);
  WEFT_TRY(weft_bn_reals_take(mem, sets, &out->weight));
  WEFT_TRY(weft_bn_reals_take(mem, sets, &out->through));
  for (size_t v = 0; v < p; v++)
    for (int64_t k = table->start[v]; k < table->start[v + 1]; k++)
      weft_bn_write(out->weight, (size_t) k,
                    weight_of(ldexpl((long double) (table->score[table->start[v]] - table->score[k]), -table->bits)));
  WEFT_TAKE(out->by_size, mem, out->all);
  for (size_t k = 0, subsets = 1; k <= p; k++, subsets = subsets * (p + 1 - k) / k) {
    at[k] = out->begin[k];
    out->begin[k + 1] = out->begin[k] + subsets;
  }
  for (size_t c = 0; c < out->all; c++) {
    out->by_size[at[__builtin_popcountll(c)]++] = (uint32_t) c;
    if (c % SUBSETS_EACH == 0) WEFT_TRY(weft_poll(ctx, 0, 1));
  }
done:
  return st;
}

/* Clears and fills `edges`; an input error when a node's probabilities differ from 1 in sum by WORST_ERROR or more. */
weft_status weft_bn_graph_edges(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_graph_plan *plan,
                                weft_bn_real none, uint64_t closed, double *edges, double *log_total, double *error)
{
  weft_status st = WEFT_OK;
  const size_t p = table->p;
  double offset = 0;
  memset(edges, 0, p * p * sizeof *edges);
  *error = fabs(ldexp((double) (int64_t) closed, -WEFT_BN_GRAPH_BITS) - 1);
  for (size_t v = 0; v < p; v++) {
    double total = 0;
    for (int64_t k = table->start[v]; k < table->start[v + 1]; k++) {
      const weft_bn_real weight = weft_bn_read(plan->weight, (size_t) k);
      const weft_bn_real through = weft_bn_read(plan->through, (size_t) k);
      const double probability =
          ldexp((double) weight.fraction * (double) (int64_t) through.fraction, weight.exponent + through.exponent);
      total += probability;
      for (uint64_t left = table->mask[k]; left; left &= left - 1)
        edges[(size_t) __builtin_ctzll(left) + p * v] += probability;
    }
    *error = fmax(*error, fabs(total - 1));
    for (size_t u = 0; u < p; u++) edges[u + p * v] = fmin(fmax(edges[u + p * v], 0), 1);
    offset += ldexp((double) table->score[table->start[v]], -table->bits);
    WEFT_TRY(weft_poll(ctx, 1, 1));
  }
  *log_total = offset + log((double) none.fraction) + (double) ((long double) none.exponent * LN_2);
  if (!(*error < WORST_ERROR))
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT,
                       "The sums over graphs cancel: probabilities of a node's parents "
                       "differ from 1 by %.2g in sum.",
                       *error));
done:
  return st;
}
