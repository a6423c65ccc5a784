/* Measured rates: what this machine does in a second. Plans (plan.h) scale their seconds by them. */
#pragma once

#include "core/call/context.h"

/* Name, as R knows it. All are per second. */
/* clang-format off */
#define WEFT_HOST_RATES(X) \
  X(core)   /* double multiply-adds of one core, in vectors */ \
  X(memory) /* bytes that all threads of the call read from memory together */ \
  X(gather) /* places of a large table that one core looks up */
/* clang-format on */

/* clang-format off */
#define WEFT_DEVICE_RATES(X) \
  X(calls)         /* kernels that are started and waited for */ \
  X(up)            /* bytes to the device, from ordinary memory */ \
  X(down)          /* and back */ \
  X(device_memory) /* bytes that the device reads or writes */ \
  X(device_core)   /* double multiply-adds of the whole device */ \
  X(device_single) /* single ones */
/* clang-format on */

#define WEFT_RATE_NUMBER(name) WEFT_RATE_##name,
enum { WEFT_HOST_RATES(WEFT_RATE_NUMBER) WEFT_HOST_RATE_COUNT };
enum { WEFT_DEVICE_RATES(WEFT_RATE_NUMBER) WEFT_DEVICE_RATE_COUNT };

/* In weft.so alone. The device's are in its table (backend.h). */
weft_status weft_host_rates(weft_ctx *ctx, double rates[WEFT_HOST_RATE_COUNT]);
