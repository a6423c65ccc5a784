/* Chooses among the room's engines and predicts what they take; see plan.h. */
/* Build: shared. */
#include "bn/plan.h"

#define NAME(id, name, ...) name,
static const char *const engine_names[] = { WEFT_BN_ENGINES(NAME) NULL };
#undef NAME

/* ---- tables ---- */

int weft_bn_counts_jointly(weft_bn_score score, int interventions, double joint_sets, double sets)
{
  return weft_bn_kind(score)->joint && !interventions && joint_sets <= 2 * sets;
}

int weft_bn_device_counts(double max_parents, double n, double cells, double family_cells)
{
  return max_parents + 3 <= WEFT_BN_TABLE_MEMBERS && cells <= WEFT_BN_TABLE_CELLS &&
         fmin(cells, n) <= WEFT_BN_TABLE_LISTED && family_cells <= WEFT_BN_TABLE_Q;
}

/* Seconds of one count by sorted rows, of all sets of discrete nodes. */
static double seconds_of_sorted_count(double n) { return 1.3e-7 + 3e-11 * n; }

/* Memory of the work on a table, on the CPU: joint counting needs 8 bytes for every set of max_parents + 1 nodes, and
 * each thread bits of all rows, sorted, for each but two of a set's members (cpu/table/sorted_rows.h); each thread 8
 * bytes for every set of the largest node, and the batch at work as much again. */
static double bytes_of_work(const weft_bn_sizes *sizes, int joint)
{
  const double sorted = sizes->threads * fmax(sizes->max_parents - 1, 0) * sizes->plane_levels * 2 * sizes->n / 8;
  return (joint ? 8 * sizes->joint_sets + sorted : 0) + 8 * (sizes->threads + 1) * sizes->largest;
}

/* A set costs about two counts child by child, one jointly. Members beyond the candidates are tried by the CPU, for a
 * device too. */
static weft_plan plan_table(weft_bn_score score, const weft_bn_sizes *sizes, const weft_slowness *slow)
{
  const int gauss = weft_bn_kind(score)->data == WEFT_BN_GAUSS;
  const int joint = weft_bn_counts_jointly(score, sizes->interventions > 0, sizes->joint_sets, sizes->sets);
  const double sets = sizes->sets, n = sizes->n, work = bytes_of_work(sizes, joint);
  const double leaf = weft_on_core(slow, gauss ? 2e-7 : 1.5e-7 * fmax(1, n / 1000));
  const double beyond = 60 * sizes->outside * leaf / sizes->threads;
  const double count = joint && !gauss ? weft_on_core(slow, seconds_of_sorted_count(n)) : leaf;
  const double table = sizes->kept * sets * (2 * (16 + 8 * ceil(sizes->p / 64)) + 8 + 4 * sizes->width) + 134217728;
  const weft_plan plan = {
    .on_cpu = engine_names[!joint  ? WEFT_BN_COUNT
                           : gauss ? WEFT_BN_JOINT_BGE
                                   : WEFT_BN_SORTED_ROWS],
    .on_device = engine_names[WEFT_BN_DEVICE_TABLE],
    .cpu = ((joint ? sizes->joint_sets : 2 * sets) * count + weft_on_core(slow, sets * 1e-8)) / sizes->threads + beyond,
    .cuda = weft_launching(slow, 5e-4) + weft_on_device(slow, sets * fmax(1, n / 1000) / 2e9) + beyond,
    .bytes = work + table,
    .bytes_cuda = table,
    .beside = weft_called(slow, 0, 0) + weft_on_core(slow, 1.5e-8 * n * sizes->p + 1e-8 * sets),
    .stays = !weft_bn_kind(score)->device ? "Scores of this kind are counted"
             : !weft_bn_device_counts(sizes->max_parents, n, sizes->cells, sizes->family_cells)
                 ? "Parent sets with this many combinations of levels are counted"
                 : NULL
  };
  return plan;
}

/* Sets of four parents for all nodes, or a table of what settled orders ask for. */
static weft_plan plan_near(const weft_bn_sizes *sizes, const weft_slowness *slow)
{
  const double p = sizes->p, families = p < 5 ? 0 : nearbyint(p * (p - 1) * (p - 2) * (p - 3) * (p - 4) / 120);
  const double seconds = families * seconds_of_sorted_count(sizes->n);
  const weft_plan plan = {
    .on_cpu = engine_names[seconds > WEFT_BN_ALL_SETS_SECONDS ? WEFT_BN_NEAR_TABLE : WEFT_BN_SORTED_ROWS],
    .cpu = weft_on_core(slow, seconds),
    .cuda = INFINITY
  };
  return plan;
}

/* ---- chains ---- */

/* Steps of all chains. Each chain runs on one thread, through all its temperatures. On a device a single chain is slow,
 * and thousands take no longer than one. The host merges the chains' findings on both back ends. Half of the steps over
 * layers draw a parent set for every node. */
static weft_plan plan_chains(weft_bn_target target, const weft_bn_sizes *sizes, const weft_slowness *slow)
{
  static const weft_bn_engine engines[] = { WEFT_BN_MAX_CHAINS, WEFT_BN_SUM_CHAINS, WEFT_BN_LAYER_CHAINS,
                                            WEFT_BN_GRAPH_CHAINS };
  const double p = sizes->p, sets = sizes->node_sets, replicas = sizes->chains * sizes->temperatures;
  const int sums = target == WEFT_BN_TARGET_SUM, best = target == WEFT_BN_TARGET_MAX,
            graphs = target == WEFT_BN_TARGET_GRAPHS;
  /* of one step; masks of more than two words go slowly on a device */
  const double cpu = graphs ? p * (1e-6 + 1e-10 * sets)
                     : best ? 1.8e-7
                     : sums ? 5e-7 + 1.25e-8 * sets
                            : 5e-7 + 8e-8 * p + 4e-9 * sets;
  const double cuda = best ? (p <= 128 ? 1e-6 : 1e-4) : sums ? 3.4e-6 + 1.15e-7 * sets : 1e-5 + 2e-6 * p + 2e-8 * sets;
  const double joined = sizes->chains * (7e-5 + (best ? 0 : 3.2e-7 * p * p));
  const weft_plan plan = {
    .on_cpu = engine_names[engines[target]],
    .on_device = graphs ? NULL : engine_names[engines[target]],
    .cpu = weft_on_core(slow, sizes->iterations * replicas * cpu / fmin(sizes->threads, sizes->chains)),
    .cuda = weft_launching(slow, sums ? 0.005 : 0.0025) +
            weft_on_device(slow, sizes->iterations * cuda * fmax(1, replicas / 2000)),
    .bytes = 134217728,
    .beside = weft_on_core(slow, 1.2e-3 + joined),
    .divided = weft_on_device(slow, sizes->iterations * cuda * replicas / 2000),
    .stays = graphs                                        ? "Chains over graphs run"
             : sizes->temperatures > WEFT_BN_DEVICE_LADDER ? "Ladders of more than 16 temperatures run"
                                                           : NULL
  };
  return plan;
}

/* ---- exact answers ---- */

/* Bytes for each subset on both back ends: one number, or 12 bytes for each node and for two more. */
static double subset_bytes(weft_bn_posterior posterior, double p)
{
  return posterior == WEFT_BN_POSTERIOR_DAG ? 12 * (p + 2) : 8;
}

/* Bytes of the host. Over orders: one number per subset, the sets with what they are sorted by, and a buffer per thread
 * (cpu/exact/orders.c); over graphs subset_bytes() for each subset where the work is done, and the order of the subsets
 * on the host. */
static double bytes_of_exact(weft_bn_posterior posterior, const weft_bn_sizes *sizes, int on_device)
{
  const double p = sizes->p, all = exp2(p), subsets = all * (on_device ? 0.00390625 : 8);
  const double buffers =
      on_device ? 0 : 8 * sizes->threads * fmin(sizes->sets, p * 256) * exp2(fmin(8, ceil(fmax(p - 8, 0) / 2)));
  if (posterior == WEFT_BN_POSTERIOR_NONE) return subsets + p * 8 * exp2(fmin(p - 1, 20));
  if (posterior == WEFT_BN_POSTERIOR_ORDER) return subsets + 80 * sizes->sets + buffers;
  return 32 * sizes->sets + all * (on_device ? 4 : subset_bytes(posterior, p));
}

/* An optimum by dynamic programming, whose subsets a device holds itself, or a posterior. */
static weft_plan plan_exact(weft_bn_posterior posterior, const weft_bn_sizes *sizes, const weft_slowness *slow)
{
  static const weft_bn_engine engines[] = { WEFT_BN_BEST_GRAPH, WEFT_BN_ORDERS, WEFT_BN_GRAPHS };
  const double p = sizes->p, all = exp2(p);
  const double orders = posterior == WEFT_BN_POSTERIOR_ORDER ? p * p * all : 0;
  const double graphs = posterior == WEFT_BN_POSTERIOR_DAG ? pow(3, p) : 0;
  const weft_plan plan = { .on_cpu = engine_names[engines[posterior]],
                           .on_device = engine_names[engines[posterior]],
                           .cpu = weft_on_core(slow, ((p * all + orders) * 2e-9 + graphs * 1.5e-8) / sizes->threads),
                           .cuda = weft_launching(slow, 0.001) +
                                   weft_on_device(slow, p * all * 1e-11 + orders * 4e-12 + graphs * 6e-12),
                           .bytes = bytes_of_exact(posterior, sizes, 0),
                           .bytes_cuda = bytes_of_exact(posterior, sizes, 1),
                           .device_bytes = subset_bytes(posterior, p) * all,
                           .beside = weft_called(slow, 0, 0) };
  return plan;
}

weft_plan weft_bn_plan(weft_bn_operation operation, int kind, const weft_bn_sizes *sizes, const weft_slowness *slow)
{
  switch (operation) {
  case WEFT_BN_TABLE: return plan_table((weft_bn_score) kind, sizes, slow);
  case WEFT_BN_CHAINS: return plan_chains((weft_bn_target) kind, sizes, slow);
  case WEFT_BN_EXACT: return plan_exact((weft_bn_posterior) kind, sizes, slow);
  case WEFT_BN_NEAR: break;
  }
  return plan_near(sizes, slow);
}
