/* Packed panels behind external pointers. */
#pragma once

#include "glue.h"
#include "packed.h"

extern const weft_handle_kind weft_packed_kind; /* of a weft_packed */
