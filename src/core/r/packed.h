/* Packed panels behind external pointers. */
#pragma once

#include "core/r/glue.h"
#include "core/device/packed.h"

extern const weft_handle_kind weft_packed_kind; /* of a weft_packed */
