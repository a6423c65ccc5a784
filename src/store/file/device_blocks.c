/* Blocks as they are in the file, compared with their checksums, and what a device needs to unpack them; see
 * core/device/packed.h. Everything that leads to a place is checked here: a device can then meet rows that a block does
 * not have, but nothing outside of the panel. */
#include <string.h>
#include "store/file/device_blocks.h"
#include "store/file/read.h"
#include "store/file/blocks_parallel.h"

typedef struct {
  const weft_store *store;
  const weft_store_choice *choice;
  const weft_packed_panel *panel;
  size_t first, from; /* block; from: of the panel's, the one that item 0 is */
  weft_packed_block *block;
  uint64_t *at_bytes; /* of each block, as the file has it */
  uint32_t *first_entry, *place;
} packing;

/* Places behind one another, each for words of up to eight bytes. */
static uint64_t reserve(uint64_t *at, uint64_t bytes)
{
  const uint64_t here = *at;
  *at += (bytes + 7) / 8 * 8;
  return here;
}

/* Where everything goes, as the directory knows how long blocks are: how many bytes in all. */
static uint64_t lay_out(const packing *all, const weft_store_recipe *recipe, weft_packed_panel *panel,
                        weft_packed_block *block, uint64_t *at_bytes)
{
  const weft_store_block *b = &all->store->block[all->first];
  const uint64_t each = (uint64_t) panel->p * sizeof(uint32_t);
  uint64_t at = 0, entry = 0;
  reserve(&at, panel->blocks * sizeof *block);
  panel->at_size = recipe->size ? reserve(&at, panel->n * sizeof(double)) : 0;
  panel->at_first = reserve(&at, panel->blocks * each);
  panel->at_place = reserve(&at, (panel->blocks + 1) * each);
  for (size_t k = 0; k < panel->blocks; k++) {
    const uint64_t chunks = weft_store_chunks(b[k].values) * sizeof(uint64_t);
    block[k].row = b[k].first - b[0].first;
    block[k].rows = b[k].rows;
    block[k].values = b[k].values;
    block[k].entry = entry;
    entry += b[k].values;
    block[k].gaps.begin = reserve(&at, chunks);
    block[k].raw_bytes = b[k].kind == WEFT_STORE_WHOLE ? 0 : b[k].kind == WEFT_STORE_SINGLE ? 4 : 8;
    if (!block[k].raw_bytes) block[k].whole.begin = reserve(&at, chunks);
    at_bytes[k] = reserve(&at, b[k].bytes);
  }
  return at;
}

/* Where numbers lie, and where their chunks begin. */
static void place_numbers(const weft_packed_panel *panel, const weft_store_packed *from, uint64_t values,
                          weft_packed_numbers *to)
{
  to->widths = (uint64_t) (from->widths - panel->bytes);
  to->high = from->high ? (uint64_t) (from->high - panel->bytes) : 0;
  to->bits = (uint64_t) (from->bits - panel->bytes);
  memcpy(panel->bytes + to->begin, from->begin, weft_store_chunks(values) * sizeof *from->begin);
}

/* Reads one block, checks it, and writes into the panel where its streams lie and where each chosen column begins. */
static weft_status pack_one(weft_ctx *ctx, size_t item, void *data)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const packing *all = data;
  const weft_packed_panel *panel = all->panel;
  const size_t p = panel->p, k = all->from + item;
  weft_packed_block *block = &all->block[k];
  weft_store_view view;
  WEFT_TRY(weft_store_load_to(ctx, all->store, all->first + k, panel->bytes + all->at_bytes[k], &mem, &view));
  place_numbers(panel, &view.gaps, block->values, &block->gaps);
  if (block->raw_bytes)
    block->raw = (uint64_t) (view.raw - panel->bytes);
  else
    place_numbers(panel, &view.whole, block->values, &block->whole);
  for (size_t j = 0; j < p; j++) {
    const size_t c = all->choice->columns ? (size_t) all->choice->columns[j] : j;
    all->first_entry[k * p + j] = view.starts[c];
    all->place[(k + 1) * p + j] = view.starts[c + 1] - view.starts[c];
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* From how many entries the columns of blocks have to where they go. */
static weft_status find_places(weft_ctx *ctx, const packing *all, double most, size_t *stored)
{
  const size_t p = all->panel->p, blocks = all->panel->blocks;
  uint32_t *place = all->place;
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
  *stored = (size_t) total;
  return WEFT_OK;
}

/* Makes room for `bytes` bytes, kept for the panels that follow: new pages would take longer than reading into them. */
static weft_status give_room(weft_ctx *ctx, weft_packed *to, size_t bytes)
{
  weft_status st = WEFT_OK;
  if (bytes <= to->room) return st;
  if (to->mem.blocks) weft_arena_end(&to->mem);
  to->room = 0;
  to->own.memory = ctx->memory;
  to->mem = weft_arena_begin(ctx);
  WEFT_TAKE(to->panel.bytes, &to->mem, bytes + bytes / 8);
  to->room = bytes + bytes / 8;
done:
  to->mem.ctx = &to->own; /* the call ends before the panels do */
  return st;
}

static weft_status pack_blocks(weft_ctx *ctx, packing *all)
{
  weft_status st = WEFT_OK;
  const weft_store_block *block = &all->store->block[all->first];
  for (size_t k = 0; k < all->panel->blocks; k += WEFT_STORE_TOGETHER) {
    const size_t left = all->panel->blocks - k, count = left < WEFT_STORE_TOGETHER ? left : WEFT_STORE_TOGETHER;
    double bytes = 0;
    WEFT_TRY(weft_poll(ctx, (double) block[k].first, (double) all->store->n));
    for (size_t i = 0; i < count; i++) bytes += (double) block[k + i].bytes;
    all->from = k;
    WEFT_TRY(weft_store_together(ctx, count, bytes, pack_one, all));
  }
done:
  return st;
}

/* `count` blocks from `first` on as one panel that a device can unpack (core/device/packed.h): bytes as in the file,
 * with a directory in front. Memory is to->panel's, and is kept for the next panel. */
weft_status weft_store_pack_panel(weft_ctx *ctx, const weft_store *store, size_t first, size_t count,
                                  const weft_store_choice *choice, const weft_store_recipe *recipe, double most,
                                  weft_packed *to)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_store_block *block = &store->block[first];
  weft_packed_panel *panel = &to->panel;
  packing all = { .store = store, .choice = choice, .panel = panel, .first = first };
  WEFT_TAKE0(all.block, &mem, count);
  WEFT_TAKE(all.at_bytes, &mem, count);
  panel->row = (size_t) block->first;
  panel->n = (size_t) (block[count - 1].first + block[count - 1].rows - block->first);
  panel->p = choice->column_count;
  panel->blocks = count;
  panel->log1p = recipe->log1p;
  panel->size = (size_t) lay_out(&all, recipe, panel, all.block, all.at_bytes);
  WEFT_TRY(give_room(ctx, to, panel->size));
  all.first_entry = (uint32_t *) (void *) (panel->bytes + panel->at_first);
  all.place = (uint32_t *) (void *) (panel->bytes + panel->at_place);
  if (recipe->size) memcpy(panel->bytes + panel->at_size, recipe->size + block->first, panel->n * sizeof(double));
  WEFT_TRY(pack_blocks(ctx, &all));
  memcpy(panel->bytes, all.block, count * sizeof *all.block);
  st = find_places(ctx, &all, most, &panel->stored);
done:
  weft_arena_end(&mem);
  return st;
}
