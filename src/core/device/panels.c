/* Functions for packed panels of any origin; see packed.h. */
#include <string.h>
#include "core/device/packed.h"

weft_status weft_packed_room(weft_ctx *ctx, weft_packed *x, size_t bytes)
{
  weft_status st = WEFT_OK;
  if (bytes <= x->room) return st;
  weft_packed_end(x);
  x->own.memory = ctx->memory;
  x->mem = weft_arena_begin(ctx);
  WEFT_TAKE(x->panel.bytes, &x->mem, bytes + bytes / 8);
  x->room = bytes + bytes / 8;
done:
  x->mem.ctx = &x->own; /* the call ends before the panels do */
  return st;
}

void weft_packed_end(weft_packed *x)
{
  if (x->mem.blocks) weft_arena_end(&x->mem);
  x->room = 0;
}

weft_status weft_packed_places(weft_ctx *ctx, weft_packed_panel *panel, double most)
{
  const size_t p = panel->p, blocks = panel->blocks;
  uint32_t *place = (uint32_t *) (void *) (panel->bytes + panel->at_place);
  uint64_t total = 0;
  memset(place, 0, p * sizeof *place);
  for (size_t k = 0; k < blocks; k++)
    for (size_t j = 0; j < p; j++) place[j] += place[(k + 1) * p + j];
  for (size_t j = 0; j < p; j++) {
    const uint32_t count = place[j];
    place[j] = (uint32_t) total;
    total += count;
  }
  if ((double) total > most)
    return weft_fail(ctx, WEFT_ERR_INTERNAL, "%.0f values in a panel of at most %.0f.", (double) total, most);
  for (size_t k = 0; k < blocks; k++)
    for (size_t j = 0; j < p; j++) place[(k + 1) * p + j] += place[k * p + j];
  panel->stored = (size_t) total;
  return WEFT_OK;
}
