/* Network methods on the device besides ARACNE; m is there already. */
#pragma once

#include "core/device/device.cuh"
#include "mi/networks/network.h"

/* MRNET or MRNETB of m on the device into `out` on the host; greatest: from weft_network_check(). */
weft_status weft_network_steps(weft_ctx *ctx, weft_device_arena *mem, const weft_network_job *job, const double *m,
                               double greatest, double *out);
