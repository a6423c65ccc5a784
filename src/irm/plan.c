/* Chooses among the room's engines and predicts what they take; see plan.h. */
#include "irm/plan.h"

#define NAME(id, name, ...) name,
static const char *const engine_names[] = { WEFT_IRM_ENGINES(NAME) NULL };
#undef NAME

/* Why a call stays on the CPU; NULL: it has device code. */
static const char *stays(const weft_irm_sizes *sizes)
{
  if (sizes->nested) return "Nested groups are found";
  if (sizes->collapsed) return "The collapsed sampler runs";
  if (sizes->one_mode) return "One-mode graphs are co-clustered";
  if (sizes->real) return "Real values are co-clustered";
  return NULL;
}

static weft_irm_engine on_cpu(const weft_irm_sizes *sizes)
{
  if (sizes->nested) return WEFT_IRM_NESTED;
  if (sizes->collapsed) return WEFT_IRM_COLLAPSED;
  if (sizes->one_mode) return WEFT_IRM_ONE_MODE;
  return sizes->real ? WEFT_IRM_REAL : WEFT_IRM_NODES;
}

/* A sweep draws labels and what the blocks have, in loops too short for many threads. Between the sweeps the host
 * splits and merges clusters, whichever the back end. */
static weft_plan plan_run(const weft_irm_sizes *sizes, const weft_slowness *slow)
{
  const double threads = fmin(sizes->threads, 4), kr = sizes->k_rows, kc = sizes->k_columns;
  const double labels =
      sizes->sweeps *
      (sizes->links * (kr + kc) * 1e-10 + (sizes->rows * kr + sizes->columns * kc) * 1e-9 + kr * kc * 4e-7) / threads;
  const double between = weft_on_core(slow, sizes->sweeps * (sizes->rows + sizes->columns) * 7e-6 / threads);
  const int wgmma = kr <= WEFT_IRM_WGMMA_CLUSTERS && kc <= WEFT_IRM_WGMMA_CLUSTERS;
  const weft_plan plan = { .on_cpu = engine_names[on_cpu(sizes)],
                           .on_device = engine_names[WEFT_IRM_DEVICE_NODES],
                           .on_hopper = engine_names[wgmma ? WEFT_IRM_LIGHT_HOPPER : WEFT_IRM_DEVICE_NODES],
                           .cpu = weft_on_core(slow, labels) + between,
                           .cuda = weft_on_device(slow, labels / 20) + between +
                                   weft_launching(slow, sizes->sweeps * 5e-4) + weft_sent(slow, 40 * sizes->links),
                           .bytes = 16 * sizes->links,
                           .stays = stays(sizes) };
  return plan;
}

/* One sweep of a chain on a device, or shared by several: they meet several times per sweep. Fitted to sweeps of 5.5e8
 * links and 500 clusters, 30.1, 16.1 and 9.1 ms on 1, 2 and 4 devices. */
static weft_plan plan_sweep(const weft_irm_sizes *sizes, const weft_slowness *slow)
{
  const double kr = sizes->k_rows, kc = sizes->k_columns;
  const double alone = (sizes->links * (kr + kc) + 10 * (sizes->rows * kr + sizes->columns * kc)) * 5e-14;
  const weft_plan plan = { .on_device = engine_names[WEFT_IRM_DEVICE_NODES],
                           .cpu = INFINITY,
                           .cuda = sizes->devices == 1 ? alone : alone / sizes->devices + 1e-3 + 2e-4 * sizes->devices,
                           .beside = weft_launching(slow, 5e-4) + weft_on_core(slow, 1e-7 * sizes->nodes) };
  return plan;
}

weft_plan weft_irm_plan(weft_irm_operation operation, const weft_irm_sizes *sizes, const weft_slowness *slow)
{
  return operation == WEFT_IRM_RUN ? plan_run(sizes, slow) : plan_sweep(sizes, slow);
}
