/* Packed panels behind external pointers: one on the host, or all of a matrix on devices. */
#pragma once

#include "core/r/glue.h"
#include "core/device/resident.h"

extern const weft_handle_kind weft_packed_kind; /* of a weft_packed */
extern const weft_handle_kind weft_panels_kind; /* of a weft_resident */
