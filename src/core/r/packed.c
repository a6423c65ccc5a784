/* The handle by which one room gives packed panels to another; see device/packed.h. */
#include "core/r/packed.h"

static void release(void *object) { weft_packed_end(object); }

const weft_handle_kind weft_packed_kind = { "weft_packed", release };
