/* Exact edge posteriors over graphs on the CPU; see graphs.h. A task is a subset C; those with equally many members
 * do not depend on each other, but for what they add to Q. */
/* Build: shared. */
#include <string.h>
#include "bn/both/graphs.h"
#include "bn/both/graphs_ends.h"
#include "bn/both/joint.h"

#define LOW (1 << WEFT_BN_LOW_NODES)
#define MIDDLE (1 << WEFT_BN_MIDDLE_NODES)

/* Products of a_v(C) over the subsets of some nodes, and the members. */
typedef struct part {
  size_t count;
  weft_bn_real product[LOW];
  uint32_t members[LOW];
} part;

typedef struct bench {
  size_t node[WEFT_BN_MAX_GRAPH_NODES];
  weft_bn_real a[WEFT_BN_MAX_GRAPH_NODES];
  part low, middle;
  weft_bn_real base[LOW];
  uint64_t low_sum[LOW], middle_sum[MIDDLE], top_sum[WEFT_BN_MAX_GRAPH_NODES]; /* of terms with that part, that node */
} bench;

typedef struct graphs_job {
  const weft_bn_graph_plan *plan;
  weft_bn_reals a, after;
  uint64_t *closed; /* Q, while it is being added up */
  int shared;       /* by several threads */
  bench *benches;
  const uint32_t *sets;
  size_t bit;
} graphs_job;

/* The nodes outside C, with their a_v(C); returns how many. */
static size_t open_nodes(const graphs_job *job, bench *own, size_t c)
{
  size_t k = 0;
  for (size_t left = job->plan->all - 1 - c; left; left &= left - 1, k++) {
    own->node[k] = (size_t) __builtin_ctzll(left);
    own->a[k] = weft_bn_read(job->a, own->node[k] * job->plan->all + c);
  }
  return k;
}

static void make_part(const bench *own, size_t from, size_t to, weft_bn_real start, part *out)
{
  out->count = 1;
  out->product[0] = start;
  out->members[0] = 0;
  for (size_t j = from; j < to; j++, out->count *= 2)
    for (size_t r = 0; r < out->count; r++) {
      out->product[r + out->count] = weft_bn_real_product(out->product[r], own->a[j]);
      out->members[r + out->count] = out->members[r] | UINT32_C(1) << own->node[j];
    }
}

static void add_shared(uint64_t *x, uint64_t y, int shared)
{
  if (shared)
    __atomic_fetch_add(x, y, __ATOMIC_RELAXED);
  else
    *x += y;
}

/* All terms of C, whose sums by part are left in `own`; with `closed`, they are added to it. `negative`: with the other
 * sign. */
static void add_terms(const graphs_job *job, bench *own, size_t c, size_t k, weft_bn_real start, int32_t unit,
                      int negative, uint64_t *closed)
{
  const size_t low_end = k < WEFT_BN_LOW_NODES ? k : WEFT_BN_LOW_NODES;
  const size_t middle_end = k < low_end + WEFT_BN_MIDDLE_NODES ? k : low_end + WEFT_BN_MIDDLE_NODES;
  make_part(own, 0, low_end, start, &own->low);
  make_part(own, low_end, middle_end, weft_bn_one(), &own->middle);
  memset(own->low_sum, 0, sizeof own->low_sum);
  memset(own->middle_sum, 0, sizeof own->middle_sum);
  memset(own->top_sum, 0, sizeof own->top_sum);
  for (size_t t = 0; t < (size_t) 1 << (k - middle_end); t++) {
    weft_bn_real top = weft_bn_one();
    size_t top_members = c;
    uint64_t sum = 0;
    for (size_t left = t; left; left &= left - 1) {
      const size_t j = middle_end + (size_t) __builtin_ctzll(left);
      top = weft_bn_real_product(top, own->a[j]);
      top_members |= (size_t) 1 << own->node[j];
    }
    for (size_t r = 0; r < own->low.count; r++) own->base[r] = weft_bn_real_product(own->low.product[r], top);
    for (size_t m = 0; m < own->middle.count; m++) {
      const weft_bn_real middle = own->middle.product[m];
      const size_t members = top_members | own->middle.members[m];
      const int odd = negative + __builtin_popcountll(m) + __builtin_popcountll(t);
      uint64_t row = 0;
      for (size_t r = !(m | t); r < own->low.count; r++) { /* R is not empty */
        const size_t next = members | own->low.members[r];
        const uint64_t term = weft_bn_graph_term(own->base[r], middle, weft_bn_read(job->after, next), unit);
        const uint64_t signed_term = (odd + __builtin_popcountll(r)) & 1 ? term : 0 - term;
        own->low_sum[r] += signed_term;
        row += signed_term;
        if (closed && term) add_shared(closed + next, signed_term, job->shared);
      }
      own->middle_sum[m] += row;
      sum += row;
    }
    for (size_t left = t; left; left &= left - 1) own->top_sum[__builtin_ctzll(left)] += sum;
  }
}

/* B(C) */
static void backward_task(void *data, size_t t, int thread)
{
  const graphs_job *job = data;
  const size_t c = job->sets[t];
  bench *own = &job->benches[thread];
  const size_t k = open_nodes(job, own, c);
  weft_bn_real step[WEFT_BN_MAX_GRAPH_NODES];
  int32_t most = INT32_MIN, unit;
  uint64_t bound = 0, sum = 0;
  for (size_t j = 0; j < k; j++) {
    step[j] = weft_bn_graph_step(own->a[j], weft_bn_read(job->after, c | (size_t) 1 << own->node[j]));
    if (step[j].fraction && step[j].exponent > most) most = step[j].exponent;
  }
  for (size_t j = 0; j < k; j++) bound += weft_bn_graph_bound(step[j], most);
  if (bound) {
    unit = weft_bn_graph_unit(bound, most);
    add_terms(job, own, c, k, weft_bn_one(), unit, 0, NULL);
    for (size_t r = 0; r < own->low.count; r++) sum += own->low_sum[r];
    weft_bn_write(job->after, c, weft_bn_real_of_units(sum, unit));
  }
  if (!k) weft_bn_write(job->after, c, weft_bn_one());
}

/* What C adds to Q, and S_v(C) / a_v(C) in the place of a_v(C). */
static void forward_task(void *data, size_t t, int thread)
{
  const graphs_job *job = data;
  const size_t c = job->sets[t], all = job->plan->all;
  bench *own = &job->benches[thread];
  const size_t k = open_nodes(job, own, c);
  const uint64_t closed = job->closed[c];
  const weft_bn_real scale = weft_bn_graph_scale(closed, weft_bn_read(job->after, c));
  for (size_t left = c; left; left &= left - 1)
    weft_bn_write(job->a, (size_t) __builtin_ctzll(left) * all + c, weft_bn_real_of(0, 0));
  if (scale.fraction) add_terms(job, own, c, k, scale, -WEFT_BN_GRAPH_BITS, weft_bn_is_negative(closed), job->closed);
  for (size_t j = 0; j < k; j++) {
    const size_t m = j - WEFT_BN_LOW_NODES;
    uint64_t sum = 0;
    if (!scale.fraction)
      sum = 0;
    else if (j < WEFT_BN_LOW_NODES)
      for (size_t r = 0; r < own->low.count; r++) sum += r >> j & 1 ? own->low_sum[r] : 0;
    else if (m < WEFT_BN_MIDDLE_NODES)
      for (size_t r = 0; r < own->middle.count; r++) sum += r >> m & 1 ? own->middle_sum[r] : 0;
    else
      sum = own->top_sum[m - WEFT_BN_MIDDLE_NODES];
    weft_bn_write(job->a, own->node[j] * all + c, weft_bn_graph_share(sum, own->a[j]));
  }
}

static void subsets_task(void *data, size_t v, int thread)
{
  const graphs_job *job = data;
  const size_t all = job->plan->all, bit = job->bit;
  (void) thread;
  for (size_t k = v * all; k < (v + 1) * all; k += 2 * bit)
    for (size_t s = k; s < k + bit; s++)
      weft_bn_write(job->a, s + bit, weft_bn_real_sum(weft_bn_read(job->a, s + bit), weft_bn_read(job->a, s)));
}

static void supersets_task(void *data, size_t v, int thread)
{
  const graphs_job *job = data;
  const size_t all = job->plan->all, bit = job->bit;
  (void) thread;
  for (size_t k = v * all; k < (v + 1) * all; k += 2 * bit)
    for (size_t s = k; s < k + bit; s++)
      weft_bn_write(job->a, s, weft_bn_signed_sum(weft_bn_read(job->a, s), weft_bn_read(job->a, s + bit)));
}

/* Sums of each node's numbers over subsets or supersets. */
static weft_status sum_all(weft_ctx *ctx, graphs_job *job, weft_bn_task *task, double progress)
{
  weft_status st = WEFT_OK;
  for (job->bit = 1; job->bit < job->plan->all; job->bit *= 2)
    WEFT_TRY(weft_bn_run_tasks(ctx, (size_t) ctx->threads, job->plan->p, task, job, progress, progress));
done:
  return st;
}

/* All sets of all sizes, from the largest or from none; progress by how many subsets are left to choose from. */
static weft_status visit_sets(weft_ctx *ctx, graphs_job *job, int forward, double from, double to)
{
  weft_status st = WEFT_OK;
  const weft_bn_graph_plan *plan = job->plan;
  const size_t p = plan->p;
  double whole = 1, done = 0;
  for (size_t v = 0; v < p; v++) whole *= 3;
  for (size_t step = 0; step <= p; step++) {
    const size_t size = forward ? step : p - step, count = plan->begin[size + 1] - plan->begin[size];
    const double now = done + (double) count * (double) ((size_t) 1 << (p - size));
    job->sets = plan->by_size + plan->begin[size];
    WEFT_TRY(weft_bn_run_tasks(ctx, (size_t) ctx->threads, count, forward ? forward_task : backward_task, job,
                               from + (to - from) * done / whole, from + (to - from) * now / whole));
    done = now;
  }
done:
  return st;
}

/* Makes a_v(C) and B(C) of all subsets, in `mem`. Refuses a table without any graph. */
static weft_status complete(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table, graphs_job *job, double to)
{
  weft_status st = WEFT_OK;
  const weft_bn_graph_plan *plan = job->plan;
  WEFT_TAKE(job->benches, mem, (size_t) ctx->threads);
  WEFT_TRY(weft_bn_reals_take(mem, plan->p * plan->all, &job->a));
  WEFT_TRY(weft_bn_reals_take(mem, plan->all, &job->after));
  for (size_t v = 0; v < plan->p; v++)
    for (int64_t k = table->start[v]; k < table->start[v + 1]; k++)
      weft_bn_write(job->a, v * plan->all + table->mask[k], weft_bn_read(plan->weight, (size_t) k));
  WEFT_TRY(sum_all(ctx, job, subsets_task, 0));
  WEFT_TRY(visit_sets(ctx, job, 0, 0, to));
  if (!job->after.fraction[0])
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "No graph has all required parents within the limits."));
done:
  return st;
}

weft_status weft_bn_graph_completions(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table,
                                      const weft_bn_graph_plan *plan, double progress, weft_bn_reals *a,
                                      weft_bn_reals *after)
{
  weft_status st = WEFT_OK;
  graphs_job job = { .plan = plan };
  WEFT_TRY(complete(ctx, mem, table, &job, progress));
  *a = job.a;
  *after = job.after;
done:
  return st;
}

/* Both directions on the CPU; threads add to Q with atomic additions of whole numbers, whose order does not matter. */
weft_status weft_bn_edges_graphs_cpu(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum, double *edges,
                                     double *log_total, double *error)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_bn_graph_plan plan;
  graphs_job job = { .plan = &plan, .shared = ctx->threads > 1 };
  WEFT_TRY(weft_bn_graph_plan_make(ctx, &mem, table, optimum, &plan));
  WEFT_TRY(complete(ctx, &mem, table, &job, 0.4));
  WEFT_TAKE0(job.closed, &mem, plan.all);
  job.closed[0] = UINT64_C(1) << WEFT_BN_GRAPH_BITS;
  WEFT_TRY(visit_sets(ctx, &job, 1, 0.4, 1));
  WEFT_TRY(sum_all(ctx, &job, supersets_task, 1));
  for (size_t v = 0; v < plan.p; v++)
    for (int64_t k = table->start[v]; k < table->start[v + 1]; k++)
      weft_bn_write(plan.through, (size_t) k, weft_bn_read(job.a, v * plan.all + table->mask[k]));
  WEFT_TRY(weft_bn_graph_edges(ctx, table, &plan, weft_bn_read(job.after, 0), job.closed[plan.all - 1], edges,
                               log_total, error));
done:
  weft_arena_end(&mem);
  return st;
}
