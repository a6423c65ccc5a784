/* The handle by which one room gives packed panels to another; see device/packed.h. */
#include "core/r/packed.h"

static void release(void *object)
{
  weft_packed *x = object;
  if (x->mem.blocks) weft_arena_end(&x->mem);
}

const weft_handle_kind weft_packed_kind = { "weft_packed", release };
