/* Chooses among the room's engines and predicts what they take; see plan.h. */
#include "regulation/plan.h"

#define NAME(id, name, ...) name,
static const char *const engine_names[] = { WEFT_REGULATION_ENGINES(NAME) NULL };
#undef NAME

/* The counts in both kinds of plans: features, and targets with their copies. */
static double features_of(const weft_regulation_sizes *sizes) { return sizes->regulators * (1 + sizes->hinges); }
static double targets_of(const weft_regulation_sizes *sizes) { return sizes->targets * (1 + sizes->copies); }

/* Forward selection on halves of the samples: products of features and targets, gains in turns, values put into halves,
 * choices written down. */
static weft_plan plan_dense(const weft_regulation_sizes *sizes, const weft_slowness *slow)
{
  const double features = features_of(sizes), targets = targets_of(sizes), n = sizes->n;
  const int screens = sizes->regulators >= WEFT_REGULATION_SCREENED;
  const double chosen = sizes->resamples * targets * sizes->steps;
  const double products = sizes->resamples * features * (features / 2 + targets) * n / 2;
  const double taken = sizes->resamples * targets * n * 5e-9 + chosen * 2.8e-7;
  const double work = products * 1.9e-11 + chosen * features * (screens ? 6e-10 : 1.3e-9) + taken;
  const double there = weft_on_device(slow, products / 1e13 + chosen * features / 5e11);
  const weft_plan plan = { .on_cpu = engine_names[screens ? WEFT_REGULATION_SCREEN : WEFT_REGULATION_EXACT_GAINS],
                           .on_device = engine_names[WEFT_REGULATION_DEVICE_SELECTION],
                           .cpu = weft_on_core(slow, work / sizes->threads),
                           .cuda = weft_launching(slow, 0.03) +
                                   sizes->calls * weft_launching(slow, 0.0065 + 3e-5 * features + 2e-5 * n) +
                                   weft_on_core(slow, 1.2e-5 * targets) + there,
                           .bytes = 4 * features * (features + targets) + 24 * sizes->regulators * sizes->targets,
                           .beside = weft_on_core(slow, 0.011),
                           .divided = there };
  return plan;
}

/* Plans for sparse cells: the CPU goes block by block over the stored values, a device over dense ones. */
static weft_plan plan_cells(const weft_regulation_sizes *sizes, const weft_slowness *slow)
{
  const double features = features_of(sizes), targets = targets_of(sizes), stored = sizes->stored;
  const double density = stored / (sizes->n * sizes->p), resamples = sizes->resamples;
  const double groups = ceil(resamples * 4 * features * features / fmax(2e8, 6 * stored));
  const double products = groups * density * density * sizes->n * features * (features + targets);
  const double sums = 25 * resamples * features * (features + targets);
  const double turns = resamples * targets * sizes->steps * features;
  const double dense = resamples * features * (features + targets) * sizes->n / 2;
  const weft_plan plan = { .on_cpu = engine_names[WEFT_REGULATION_SPARSE_CELLS],
                           .on_device = engine_names[WEFT_REGULATION_DEVICE_SELECTION],
                           .cpu = weft_on_core(slow, (products * 1e-9 + sums * 1e-10 + turns * 2e-9) / sizes->threads),
                           .cuda = weft_launching(slow, 0.05) + weft_sent(slow, 12 * stored) +
                                   weft_on_device(slow, dense / 1e14 + turns / 5e11),
                           .bytes = 8 * stored + 24 * sizes->regulators * sizes->targets };
  return plan;
}

weft_plan weft_regulation_plan(weft_regulation_operation operation, const weft_regulation_sizes *sizes,
                               const weft_slowness *slow)
{
  return operation == WEFT_REGULATION_DENSE ? plan_dense(sizes, slow) : plan_cells(sizes, slow);
}
