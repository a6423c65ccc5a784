/* Packed panels that stay on devices; see resident.h. */
#include <string.h>
#include "core/device/resident.h"

weft_status weft_resident_begin(weft_ctx *ctx, weft_resident *x, size_t room, size_t n, size_t p)
{
  weft_status st = WEFT_OK;
  x->own.memory = ctx->memory;
  x->mem = weft_arena_begin(ctx);
  WEFT_TAKE0(x->panel, &x->mem, room);
  WEFT_TAKE0(x->there, &x->mem, room);
  WEFT_TAKE0(x->part, &x->mem, room);
  x->room = room;
  x->n = n;
  x->p = p;
done:
  x->mem.ctx = &x->own; /* the call ends before this does */
  return st;
}

/* The bytes go to the device; the heads of blocks and where their columns begin also stay on the host. */
weft_status weft_resident_add(weft_ctx *ctx, const weft_device_ops *ops, weft_resident *x,
                              const weft_packed_panel *panel, size_t part)
{
  weft_status st = WEFT_OK;
  const size_t last = x->panels, row = last ? weft_resident_row(x, last) : 0;
  const size_t head = (size_t) panel->at_place + (panel->blocks + 1) * panel->p * sizeof(uint32_t);
  if (last == x->room || panel->p != x->p || panel->row != row || panel->n > x->n - row || panel->at_size ||
      panel->there || (last ? part - x->part[last - 1] > 1 : part))
    return weft_fail(ctx, WEFT_ERR_INTERNAL, "Panel %.0f cannot follow those before.", (double) last + 1);
  x->mem.ctx = ctx;
  WEFT_TAKE(x->panel[last].bytes, &x->mem, head);
  WEFT_TRY(ops->upload(ctx, (const double *) (const void *) panel->bytes, (int64_t) (panel->size / 8), 1, 0,
                       &x->there[last]));
  const weft_packed_panel kept = { .row = row,
                                   .n = panel->n,
                                   .p = panel->p,
                                   .blocks = panel->blocks,
                                   .stored = panel->stored,
                                   .bytes = x->panel[last].bytes,
                                   .size = head,
                                   .there = x->there[last].data,
                                   .at_first = panel->at_first,
                                   .at_place = panel->at_place };
  memcpy(kept.bytes, panel->bytes, head);
  x->panel[last] = kept;
  x->part[last] = part;
  x->ops = ops;
  x->panels = last + 1;
  x->parts = part + 1;
done:
  x->mem.ctx = &x->own;
  return st;
}

void weft_resident_end(weft_resident *x)
{
  for (size_t t = 0; t < x->panels; t++) x->ops->release(&x->own, &x->there[t]);
  if (x->mem.blocks) weft_arena_end(&x->mem);
  x->panels = x->room = 0;
}

size_t weft_resident_first(const weft_resident *x, size_t part)
{
  size_t t = 0;
  while (t < x->panels && x->part[t] < part) t++;
  return t;
}

size_t weft_resident_row(const weft_resident *x, size_t panel)
{
  return panel < x->panels ? x->panel[panel].row : panel ? x->panel[panel - 1].row + x->panel[panel - 1].n : 0;
}

static uint32_t *words(const weft_packed_panel *panel, uint64_t at)
{
  return (uint32_t *) (void *) (panel->bytes + at);
}

/* Only the columns that were chosen, and size factors of these rows; the blocks themselves stay where they are. */
weft_status weft_resident_fetch(weft_ctx *ctx, void *choice, size_t index, const weft_packed_panel **out)
{
  weft_status st = WEFT_OK;
  weft_resident_choice *c = choice;
  const int whole = c->part == WEFT_RESIDENT_ALL;
  const size_t begin = whole ? 0 : weft_resident_first(c->of, c->part), p = c->p;
  const weft_packed_panel *all = &c->of->panel[begin + index];
  weft_packed_panel *panel = &c->to.panel;
  uint64_t at = 0;
  weft_packed_reserve(&at, all->blocks * sizeof(weft_packed_block));
  const uint64_t at_size = c->size ? weft_packed_reserve(&at, all->n * sizeof *c->size) : 0;
  const uint64_t at_first = weft_packed_reserve(&at, (uint64_t) all->blocks * p * sizeof(uint32_t));
  const uint64_t at_place = weft_packed_reserve(&at, (uint64_t) (all->blocks + 1) * p * sizeof(uint32_t));
  WEFT_TRY(weft_packed_room(ctx, &c->to, (size_t) at));
  const weft_packed_panel made = { .row = all->row - weft_resident_row(c->of, begin),
                                   .n = all->n,
                                   .p = p,
                                   .blocks = all->blocks,
                                   .bytes = panel->bytes,
                                   .size = (size_t) at,
                                   .there = all->there,
                                   .at_size = at_size,
                                   .at_first = at_first,
                                   .at_place = at_place,
                                   .log1p = c->log1p };
  *panel = made;
  memcpy(panel->bytes, all->bytes, all->blocks * sizeof(weft_packed_block));
  if (c->size) memcpy(panel->bytes + at_size, c->size + all->row, all->n * sizeof *c->size);
  for (size_t k = 0; k < all->blocks; k++) {
    const uint32_t *first = words(all, all->at_first) + k * all->p, *place = words(all, all->at_place) + k * all->p;
    uint32_t *to_first = words(panel, at_first) + k * p, *to_count = words(panel, at_place) + (k + 1) * p;
    for (size_t j = 0; j < p; j++) {
      const size_t from = c->columns ? (size_t) c->columns[j] : j;
      to_first[j] = first[from];
      to_count[j] = place[from + all->p] - place[from];
    }
  }
  WEFT_TRY(weft_packed_places(ctx, panel, (double) all->stored));
  *out = panel;
done:
  return st;
}
