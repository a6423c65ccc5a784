/* What a device does in a second; see rates.h. */
#pragma once

#include "core/device/device.cuh"

/* rates.h */
weft_status weft_device_rates(weft_ctx *ctx, double *rates);
