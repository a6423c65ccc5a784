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

/* Where everything goes, as the directory knows how long blocks are: how many bytes in all. */
static uint64_t lay_out(const packing *all, const weft_store_recipe *recipe, weft_packed_panel *panel,
                        weft_packed_block *block, uint64_t *at_bytes)
{
  const weft_store_block *b = &all->store->block[all->first];
  const uint64_t each = (uint64_t) panel->p * sizeof(uint32_t);
  uint64_t at = 0, entry = 0;
  weft_packed_reserve(&at, panel->blocks * sizeof *block);
  panel->at_size = recipe->size ? weft_packed_reserve(&at, panel->n * sizeof(double)) : 0;
  panel->at_first = weft_packed_reserve(&at, panel->blocks * each);
  panel->at_place = weft_packed_reserve(&at, (panel->blocks + 1) * each);
  for (size_t k = 0; k < panel->blocks; k++) {
    const uint64_t chunks = weft_store_chunks(b[k].values) * sizeof(uint64_t);
    block[k].row = b[k].first - b[0].first;
    block[k].rows = b[k].rows;
    block[k].values = b[k].values;
    block[k].entry = entry;
    entry += b[k].values;
    block[k].gaps.begin = weft_packed_reserve(&at, chunks);
    block[k].raw_bytes = b[k].kind == WEFT_STORE_WHOLE ? 0 : b[k].kind == WEFT_STORE_SINGLE ? 4 : 8;
    if (!block[k].raw_bytes) block[k].whole.begin = weft_packed_reserve(&at, chunks);
    at_bytes[k] = weft_packed_reserve(&at, b[k].bytes);
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
  panel->there = NULL;
  panel->size = (size_t) lay_out(&all, recipe, panel, all.block, all.at_bytes);
  WEFT_TRY(weft_packed_room(ctx, to, panel->size));
  all.first_entry = (uint32_t *) (void *) (panel->bytes + panel->at_first);
  all.place = (uint32_t *) (void *) (panel->bytes + panel->at_place);
  if (recipe->size) memcpy(panel->bytes + panel->at_size, recipe->size + block->first, panel->n * sizeof(double));
  WEFT_TRY(pack_blocks(ctx, &all));
  memcpy(panel->bytes, all.block, count * sizeof *all.block);
  st = weft_packed_places(ctx, panel, most);
done:
  weft_arena_end(&mem);
  return st;
}
