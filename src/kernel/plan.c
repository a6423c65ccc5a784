/* Predicts what the room's engines take; see plan.h. */
#include "kernel/plan.h"

#define NAME(id, name, ...) name,
static const char *const engine_names[] = { WEFT_KERNEL_ENGINES(NAME) NULL };
#undef NAME

#define VALUE(name, value) value,
const weft_kernel_limits weft_kernel_limit = { WEFT_KERNEL_LIMITS(VALUE) };
#undef VALUE

double weft_kernel_unit_seconds(void) { return 1 / 1.6e10; }

/* Work of a pair, in units of one dimension of one pair, .045 ns on AVX-512. Only ratios matter: within 1.4 of direct
 * sums of every kernel in 1, 4 and 10 dimensions with 1 and 4 columns of weights. */
static double work_of_pair(double value, double d, double m)
{
  return d + (m > 1 ? fmax(value, 10) + 1.5 * (m - 1) : value);
}

/* Fitted to 193 walks in 1 to 8 dimensions: nine of ten within 14 %. Nodes are those of 32 queries. */
weft_walk_costs weft_kernel_walk_costs(double value, double d, double m)
{
  const double pair = work_of_pair(value, d, m);
  const weft_walk_costs costs = { .pairs = pair,
                                  .nodes = 240 + 380 * d + 160 * value + 2200 * (m - 1),
                                  .samples = 3 * pair,
                                  .looks = 340 + 64 * d,
                                  .ordered = 1100 * m,
                                  .products = 13,
                                  .queries = 1600 };
  return costs;
}

/* Building a tree: each level reads the points, splits and bounds them. */
static double work_of_tree(double n, double d) { return n > 0 ? n * (d + 8) * fmax(1, log2(n / 32)) * 26 : 0; }

static weft_plan plan_direct(weft_kernel_precision precision, const weft_kernel_sizes *sizes, const weft_slowness *slow)
{
  static const weft_kernel_engine on_device[] = { WEFT_KERNEL_DEVICE_DIRECT, WEFT_KERNEL_DEVICE_SINGLE,
                                                  WEFT_KERNEL_TENSOR_CORES };
  const double pairs = sizes->references * sizes->queries, d = sizes->d, m = sizes->m;
  const double bytes = 8 * (sizes->references * (d + m) + sizes->queries * (d + 2 * m));
  const int in_double = precision == WEFT_KERNEL_DOUBLE;
  const double unit = weft_on_core(slow, in_double ? weft_kernel_unit_seconds() : 1 / 3.5e10);
  const double rate = (in_double                         ? 8e12 / (2 * d + 14 + 2 * m)
                       : precision == WEFT_KERNEL_SINGLE ? 1.3e13 / (d + 3 + m)
                                                         : 2.4e12) /
                      (in_double ? slow->device_core : slow->device_single);
  const weft_plan plan = { .on_cpu = engine_names[in_double ? WEFT_KERNEL_DIRECT : WEFT_KERNEL_CPU_SINGLE],
                           .on_device = engine_names[on_device[precision]],
                           .cpu = pairs * work_of_pair(sizes->value, d, m) * unit / sizes->threads,
                           .cuda = pairs / rate + weft_sent(slow, 4 * bytes) + weft_launching(slow, 0.001),
                           .bytes = bytes,
                           .divided = pairs / rate };
  return plan;
}

/* On a device by Gaussian sums on tensor cores (cuda/direct/gaussian.cu), where these take less than the plan. Blocks
 * of 8 dimensions, each of which is a step of two products for exponents, three for slopes. */
static weft_plan on_tensor_cores(weft_plan plan, int slopes, const weft_kernel_sizes *sizes, const weft_slowness *slow)
{
  const double pairs = sizes->references * sizes->queries, blocks = ceil(sizes->d / 8);
  const double of_pair = (slopes ? 3e-13 + 2.1e-13 * blocks : 2.6e-13 + 1e-13 * blocks) * slow->device_single;
  const double sent = 8 * (sizes->references * (sizes->d + 1) + sizes->queries * (sizes->d * (1 + slopes) + 1));
  const double seconds = pairs * of_pair + weft_sent(slow, sent) + weft_launching(slow, 0.003);
  if (seconds >= plan.cuda) return plan;
  plan.on_device = engine_names[WEFT_KERNEL_GAUSSIAN_TENSOR];
  plan.cuda = seconds;
  plan.divided = pairs * of_pair;
  return plan;
}

/* All pairs by differences on a device (cuda/direct/slopes.cu), beside as many columns of a direct sum on the CPU. */
static weft_plan plan_slopes(weft_kernel_precision precision, const weft_kernel_sizes *sizes, const weft_slowness *slow)
{
  weft_plan plan = plan_direct(WEFT_KERNEL_DOUBLE, sizes, slow);
  const double pairs = sizes->references * sizes->queries;
  const double rate = 6.6e12 / (3 * sizes->d + 25) / slow->device_core;
  plan.on_device = engine_names[WEFT_KERNEL_DEVICE_SLOPES];
  plan.cuda = pairs / rate + weft_sent(slow, 8 * (sizes->references + 2 * sizes->queries) * (sizes->d + 1)) +
              weft_launching(slow, 0.002);
  plan.divided = pairs / rate;
  return precision == WEFT_KERNEL_RELATIVE ? on_tensor_cores(plan, 1, sizes, slow) : plan;
}

static weft_plan plan_trees(const weft_kernel_sizes *sizes, const weft_slowness *slow)
{
  const double work = work_of_tree(sizes->references, sizes->d) + work_of_tree(sizes->queries, sizes->d);
  const weft_plan plan = { .on_cpu = engine_names[WEFT_KERNEL_TREES],
                           .cpu = weft_on_core(slow, weft_kernel_unit_seconds()) * work,
                           .cuda = INFINITY };
  return plan;
}

/* References sorted by one thread, or put into cells for few queries, which take most of it then; queries by all. */
static weft_plan plan_line(const weft_kernel_sizes *sizes, const weft_slowness *slow)
{
  const double n = sizes->references, queries = sizes->queries;
  const int cells = n >= weft_kernel_limit.line_few_queries * queries;
  const double summed = 4e-7 * queries * (1 + 0.2 * (sizes->m - 1));
  const double seconds = (cells ? 6e-9 : 3e-8) * n + summed / fmax(1, sizes->threads);
  const weft_plan plan = { .on_cpu = engine_names[cells ? WEFT_KERNEL_LINE_CELLS : WEFT_KERNEL_LINE],
                           .cpu = weft_on_core(slow, seconds),
                           .cuda = INFINITY,
                           .bytes = 32 * (n + queries) };
  return plan;
}

/* `native`, on a device what travels, and on both the host's own passes over the points, which for several columns of
 * weights also divide these by their signs. Fitted to whole calls of 10^5
 * to 10^7 points in one to three dimensions on an H200 and its host of 16 threads: most are within a factor of two. */
static weft_plan plan_mesh(const weft_kernel_sizes *sizes, const weft_slowness *slow)
{
  const double points = sizes->references + sizes->queries;
  const double travels = weft_sent(slow, 8 * (points * sizes->d + sizes->references * sizes->m)) +
                         weft_fetched(slow, 8 * sizes->queries * sizes->m);
  const double passes = weft_on_core(slow, (7.5e-9 + 3e-8 * (sizes->m - 1)) * points);
  const weft_plan plan = { .on_cpu = engine_names[WEFT_KERNEL_MESH],
                           .on_device = engine_names[WEFT_KERNEL_DEVICE_MESH],
                           .cpu = weft_on_core(slow, sizes->native) / fmin(sizes->threads, 5) + passes,
                           .cuda =
                               weft_launching(slow, 0.0015) + weft_on_device(slow, sizes->native) + travels + passes,
                           .bytes = 8 * (sizes->nodes + 3 * points) };
  return plan;
}

static weft_plan plan_factor(const weft_kernel_sizes *sizes, const weft_slowness *slow)
{
  const double n = sizes->references;
  const weft_plan plan = { .on_cpu = engine_names[WEFT_KERNEL_MATRIX],
                           .cpu = n * n * n / 6 * weft_on_core(slow, 5e-11),
                           .cuda = INFINITY,
                           .bytes = 4 * n * n };
  return plan;
}

weft_plan weft_kernel_plan(weft_kernel_operation operation, weft_kernel_precision precision,
                           const weft_kernel_sizes *sizes, const weft_slowness *slow)
{
  switch (operation) {
  case WEFT_KERNEL_PLAN_DIRECT:
    return precision == WEFT_KERNEL_RELATIVE
               ? on_tensor_cores(plan_direct(WEFT_KERNEL_DOUBLE, sizes, slow), 0, sizes, slow)
               : plan_direct(precision, sizes, slow);
  case WEFT_KERNEL_PLAN_SLOPES: return plan_slopes(precision, sizes, slow);
  case WEFT_KERNEL_PLAN_TREES: return plan_trees(sizes, slow);
  case WEFT_KERNEL_PLAN_LINE: return plan_line(sizes, slow);
  case WEFT_KERNEL_PLAN_MESH: return plan_mesh(sizes, slow);
  case WEFT_KERNEL_PLAN_FACTOR: break;
  }
  return plan_factor(sizes, slow);
}
