/* Triples on the CPU. */
#include "mi_tile.h"

weft_status weft_mi_search_triples(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_search *search, weft_arena *mem,
                                   weft_mi_found *out)
{
  (void) pack, (void) search, (void) mem, (void) out;
  return weft_fail(ctx, WEFT_ERR_INTERNAL, "triples");
}
