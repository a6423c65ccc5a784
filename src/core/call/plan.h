/* A plan: what a room's plan.c predicts of a call: the engines that would do the work, their costs on both back ends,
 * and why. The constants of plans are seconds on the machine of `reference_rates` (R/rates.R), of one core where a core
 * does the work; each part is scaled by the rate of this machine that bounds it. They were fitted to whole calls
 * (inst/bench/auto.R). Seconds of a device include sending the data and fetching the result, but not starting the
 * device, which R adds once per session. Sizes are doubles: products of them exceed what integers hold. */
#pragma once

#include <math.h>
#include "core/call/rates.h"

/* How many times as long as on the reference machine work takes here that is bound by a rate; of `up` and `down`,
 * seconds of a byte. R's slownesses() has them in this order. */
typedef struct weft_slowness {
#define WEFT_SLOWNESS_FIELD(name) double name;
  WEFT_HOST_RATES(WEFT_SLOWNESS_FIELD)
  WEFT_DEVICE_RATES(WEFT_SLOWNESS_FIELD)
} weft_slowness;

typedef struct weft_plan {
  /* Names of rows of the room's engines.h: on the CPU, on a device, and on one of capability 9.0 where that has another
   * one. NULL: none. */
  const char *on_cpu, *on_device, *on_hopper;
  double cpu, cuda; /* seconds of the work; INFINITY: the back end cannot do it */
  /* bytes: host memory beside the input. bytes_cuda: the same where a device does the work (0: as `bytes`).
   * device_bytes: memory that the device must have (0: it works in parts that fit). */
  double bytes, bytes_cuda, device_bytes;
  double beside;  /* seconds that no choice changes: checks, packing, R's memory for the result */
  double divided; /* those of the device's that several devices share */
  /* Why the work stays on the CPU whatever it costs, as the beginning of a sentence that ends "on the CPU only"; NULL
   * where a device can do it. */
  const char *stays;
} weft_plan;

/* Seconds on the reference machine as seconds here, by what bounds them. */
static inline double weft_on_core(const weft_slowness *slow, double seconds) { return seconds * slow->core; }
static inline double weft_in_memory(const weft_slowness *slow, double seconds) { return seconds * slow->memory; }
static inline double weft_on_device(const weft_slowness *slow, double seconds) { return seconds * slow->device_core; }
static inline double weft_in_device_memory(const weft_slowness *slow, double seconds)
{
  return seconds * slow->device_memory;
}
/* Small calls on a device: kernels started, memory taken and given back. */
static inline double weft_launching(const weft_slowness *slow, double seconds) { return seconds * slow->calls; }
static inline double weft_sent(const weft_slowness *slow, double bytes) { return bytes * slow->up; }
static inline double weft_fetched(const weft_slowness *slow, double bytes) { return bytes * slow->down; }
/* A result in R's memory: from the system, page by page, where it is larger than what the allocator keeps. */
static inline double weft_written(const weft_slowness *slow, double bytes)
{
  return weft_in_memory(slow, bytes * (bytes > 33554432 ? 1.5e-9 : 2e-10));
}
/* Checks of arguments and an R object to return; and n rows of p columns looked at, of which each costs something. */
static inline double weft_called(const weft_slowness *slow, double n, double p)
{
  return weft_on_core(slow, 7e-4 + 5e-7 * p) + weft_in_memory(slow, 3e-10 * n * p);
}

/* Loops that wait for memory rather than for arithmetic gain from few threads only. */
static inline double weft_memory_threads(double threads) { return fmin(threads, 4.5); }
