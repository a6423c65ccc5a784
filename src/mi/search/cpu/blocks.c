/* See blocks.h. */
/* Build: shared. */
#include <string.h>
#include "mi/search/both/blocks.h"

static double weight_of(const weft_mi_pack *pack, size_t place, double plane)
{
  const uint32_t planes = pack->groups[pack->group_of[place]].shape.planes;
  return plane * (planes < 2 ? 2 : planes);
}

/* Cuts the places of a pack, in order, into blocks of one side each whose planes weigh at most `max_bytes` bytes; an
 * attribute that is heavier has a block of its own. */
weft_status weft_mi_blocks_make(weft_arena *mem, const weft_mi_pack *pack, double plane, double max_bytes,
                                weft_mi_block **out, size_t *count)
{
  weft_status st = WEFT_OK;
  double weight = 0;
  *count = 0;
  WEFT_TAKE(*out, mem, pack->p);
  for (size_t place = 0; place < pack->p; place++) {
    const int side = pack->groups[pack->group_of[place]].side;
    const double own = weight_of(pack, place, plane);
    weft_mi_block *last = *count ? &(*out)[*count - 1] : NULL;
    if (!last || last->side != side || weight + own > max_bytes) {
      last = &(*out)[(*count)++];
      last->first = place;
      last->side = side;
      weight = 0;
    }
    last->end = place + 1;
    weight += own;
  }
done:
  return st;
}

/* Whether a search has pairs of one from each set. */
static int are_searched(int one, int other) { return ((one & 1) && (other & 2)) || ((one & 2) && (other & 1)); }

static void mark(const weft_mi_pack *pack, const weft_mi_block *b, uint8_t value, uint8_t *side)
{
  for (size_t place = b->first; place < b->end; place++) side[pack->column[place]] = value;
}

static int any_coded(const weft_mi_pack *pack)
{
  for (size_t g = 0; g < pack->group_count; g++)
    if (pack->groups[g].coded) return 1;
  return 0;
}

static double pairs_of(const weft_mi_block *a, const weft_mi_block *b)
{
  const double rows = (double) (a->end - a->first);
  return a == b ? rows * (rows - 1) / 2 : rows * (double) (b->end - b->first);
}

/* Calls `search` for every pair of blocks that has pairs to search, with a part of the pack that has these two; the
 * second and third numbers are the share that is done and that of this part. */
weft_status weft_mi_blocks_each(weft_ctx *ctx, const weft_mi_pack *pack, double plane, double max_bytes,
                                weft_mi_block_search *search, void *data)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx), step = weft_arena_begin(ctx);
  const int copied = any_coded(pack); /* large tables are counted on the host */
  weft_mi_block *blocks;
  double all = 0, done = 0;
  uint8_t *side;
  size_t count;
  WEFT_TRY(weft_mi_blocks_make(&mem, pack, plane, max_bytes, &blocks, &count));
  WEFT_TAKE0(side, &mem, pack->columns);
  for (size_t i = 0; i < count; i++)
    for (size_t j = i; j < count; j++)
      if (are_searched(blocks[i].side, blocks[j].side)) all += pairs_of(&blocks[i], &blocks[j]);
  for (size_t i = 0; i < count; i++)
    for (size_t j = i; j < count; j++) {
      const double pairs = pairs_of(&blocks[i], &blocks[j]);
      weft_mi_pack part;
      if (!are_searched(blocks[i].side, blocks[j].side) || pairs == 0) continue;
      mark(pack, &blocks[i], i == j ? 3 : 1, side);
      if (i != j) mark(pack, &blocks[j], 2, side);
      if (copied)
        WEFT_TRY(weft_mi_pack_select(ctx, &step, pack, side, &part));
      else
        WEFT_TRY(weft_mi_pack_view(&step, pack, side, &part));
      WEFT_TRY(search(ctx, data, &part, done / all, pairs / all));
      done += pairs;
      mark(pack, &blocks[i], 0, side);
      mark(pack, &blocks[j], 0, side);
      weft_arena_end(&step);
      step = weft_arena_begin(ctx);
    }
done:
  weft_arena_end(&step);
  weft_arena_end(&mem);
  return st;
}
