/* The graph on the device. Each mode's nodes go in shards of their own, with their lists and an order of work, which
 * stay on the device when they fit and are sent again every sweep when not. Shards are independent of each other.
 *
 *   shard's memory   | start: count + 1 | to | weight | missing: start | to | order | pieces | */
#include <algorithm>
#include <cstring>
#include "irm/cuda/shards.cuh"

#define SHARD_LINKS ((int64_t) 1 << 26)
#define SHARD_NODES ((int64_t) 1 << 24)
#define PIECE 16384 /* links that one block counts */

/* ---- sending ---- */

static size_t aligned(size_t bytes) { return (bytes + 15) / 16 * 16; }

/* Where the parts of a shard lie when its memory begins at `at`; with NULL, how long it is. */
static irm_shard_view view_of(const irm_shards *all, const irm_shard &shard, uint8_t *at)
{
  irm_shard_view view;
  memset(&view, 0, sizeof view);
  view.start = (uint32_t *) at;
  at += aligned((size_t) (shard.count + 1) * 4);
  view.to = (int32_t *) at;
  at += aligned((size_t) shard.links * 4);
  if (all->graph->links[shard.mode].weight) {
    view.weight = (int32_t *) at;
    at += aligned((size_t) shard.links * 4);
  }
  if (all->graph->missing_count[shard.mode]) {
    view.missing_start = (uint32_t *) at;
    at += aligned((size_t) (shard.count + 1) * 4);
    view.missing_to = (int32_t *) at;
    at += aligned((size_t) shard.missing_links * 4);
  }
  view.order = (int32_t *) at;
  at += aligned((size_t) shard.count * 4);
  view.pieces = (irm_piece *) at;
  return view;
}

static size_t shard_bytes(const irm_shards *all, const irm_shard &shard)
{
  const irm_shard_view view = view_of(all, shard, NULL);
  return (size_t) view.pieces + aligned((size_t) shard.pieces * sizeof(irm_piece));
}

struct starts {
  const int64_t *from;
  int64_t base;
};

static void fill_starts(const void *data, size_t first, size_t count, void *out, int threads)
{
  const starts *s = (const starts *) data;
  (void) threads;
  for (size_t i = 0; i < count; i++) ((uint32_t *) out)[i] = (uint32_t) (s->from[first + i] - s->base);
}

/* Copies a shard's lists, order and pieces to `to` on the device. */
static weft_status send_shard(irm_shards *all, const irm_shard &shard, uint8_t *to)
{
  weft_status st = WEFT_OK;
  const irm_shard_view view = view_of(all, shard, to);
  const weft_irm_lists *links = &all->graph->links[shard.mode], *missing = &all->graph->missing[shard.mode];
  const starts a = { links->start + shard.first, shard.link_first };
  const starts b = { missing->start ? missing->start + shard.first : NULL, shard.missing_first };
#define SEND(out, from, items) \
  WEFT_TRY(weft_device_upload(all->mem, out, (size_t) (items) * sizeof *(out), 1, weft_fill_bytes, from))
  WEFT_TRY(weft_device_upload(all->mem, view.start, (size_t) shard.count + 1, 4, fill_starts, &a));
  SEND(view.to, links->to + shard.link_first, shard.links);
  if (view.weight) SEND(view.weight, links->weight + shard.link_first, shard.links);
  if (view.missing_start) {
    WEFT_TRY(weft_device_upload(all->mem, view.missing_start, (size_t) shard.count + 1, 4, fill_starts, &b));
    SEND(view.missing_to, missing->to + shard.missing_first, shard.missing_links);
  }
  SEND(view.order, all->order[shard.mode] + shard.order_at, shard.count);
  if (shard.pieces) SEND(view.pieces, all->pieces[shard.mode] + shard.piece_at, shard.pieces);
#undef SEND
done:
  return st;
}

/* ---- cutting ---- */

/* What decides between light and heavy: links, counts summed, and one too many when a pair is missing. */
static int64_t node_load(const weft_irm_graph *graph, int mode, int64_t i)
{
  const weft_irm_lists *lists = &graph->links[mode];
  int64_t load = lists->start[i + 1] - lists->start[i];
  for (int64_t entry = lists->start[i]; lists->weight && entry < lists->start[i + 1]; entry++)
    load += lists->weight[entry] - 1;
  if (graph->missing_count[mode] && graph->missing[mode].start[i + 1] > graph->missing[mode].start[i])
    load += IRM_LIGHT + 1;
  return load;
}

/* Cuts a mode's nodes into shards of at most `most` bytes of links, orders each shard's nodes: light ones by load, then
 * heavy ones, the longest first; and cuts the heavy ones' lists into pieces. */
static weft_status cut_mode(weft_ctx *ctx, irm_shards *all, int mode, double most)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *graph = all->graph;
  const weft_irm_lists *lists = &graph->links[mode], *missing = &graph->missing[mode];
  const int64_t from = all->first[mode], until = all->end[mode],
                link_budget = std::min(SHARD_LINKS, (int64_t) (most / (lists->weight ? 8 : 4)) + 1);
  int32_t *order;
  irm_piece *pieces;
  int64_t piece_count = 0;
  const int light_ok = all->light_ok[mode];
  const auto load_of = [&](int64_t i) {
    return light_ok ? std::min<int64_t>(node_load(graph, mode, i), IRM_LIGHT + 1) : IRM_LIGHT + 1;
  };
  WEFT_TAKE(order, all->host, (size_t) (until - from));
  for (int64_t i = from; i < until; i++)
    if (load_of(i) > IRM_LIGHT) piece_count += (lists->start[i + 1] - lists->start[i] + PIECE - 1) / PIECE;
  WEFT_TAKE(pieces, all->host, (size_t) piece_count + 1);
  piece_count = 0;
  for (int64_t first = from; first < until;) {
    irm_shard shard;
    int64_t last = first, at[IRM_LIGHT + 3], heavy;
    memset(&shard, 0, sizeof shard);
    while (last < until && last - first < SHARD_NODES &&
           (last == first || lists->start[last + 1] - lists->start[first] <= link_budget))
      last++;
    shard.mode = mode;
    shard.first = first;
    shard.count = last - first;
    shard.link_first = lists->start[first];
    shard.links = lists->start[last] - shard.link_first;
    shard.order_at = first - from;
    shard.piece_at = piece_count;
    if (graph->missing_count[mode]) {
      shard.missing_first = missing->start[first];
      shard.missing_links = missing->start[last] - shard.missing_first;
    }
    if (shard.links > UINT32_MAX || shard.missing_links > UINT32_MAX) {
      st = weft_fail(ctx, WEFT_ERR_INPUT, "One node has too many links for the device; use `run = \"cpu\"`.");
      goto done;
    }
    memset(at, 0, sizeof at);
    for (int64_t i = first; i < last; i++) at[load_of(i) + 1]++;
    for (int l = 0; l < IRM_LIGHT + 2; l++) at[l + 1] += at[l];
    shard.light = at[IRM_LIGHT + 1];
    for (int64_t i = first; i < last; i++) order[shard.order_at + at[load_of(i)]++] = (int32_t) (i - first);
    heavy = shard.count - shard.light;
    std::sort(order + shard.order_at + shard.light, order + shard.order_at + shard.count, [&](int32_t x, int32_t y) {
      const int64_t dx = lists->start[first + x + 1] - lists->start[first + x],
                    dy = lists->start[first + y + 1] - lists->start[first + y];
      return dx != dy ? dx > dy : x < y;
    });
    for (int64_t slot = 0; slot < heavy; slot++) {
      const int64_t i = first + order[shard.order_at + shard.light + slot], begin = lists->start[i] - shard.link_first,
                    end = lists->start[i + 1] - shard.link_first;
      for (int64_t x = begin; x < end; x += PIECE) {
        const irm_piece piece = { (uint32_t) slot, (uint32_t) x, (uint32_t) std::min<int64_t>(x + PIECE, end) };
        pieces[piece_count++] = piece;
      }
    }
    shard.pieces = piece_count - shard.piece_at;
    shard.bytes = shard_bytes(all, shard);
    all->list->push_back(shard);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    first = last;
  }
  all->order[mode] = order;
  all->pieces[mode] = pieces;
done:
  return st;
}

/* Shards that fit stay on the device; when not all do, room for the largest is kept for sending the others anew. What
 * is left is asked for each, since memory goes in pieces of 2 MB. */
weft_status irm_shards_make(weft_ctx *ctx, irm_shards *all, double room)
{
  weft_status st = WEFT_OK;
  const double spare = 1e6, piece = 2e6;
  double wanted = 0, largest = 0;
  bool all_stay = true;
  for (int mode = 0; mode < 2; mode++) WEFT_TRY(cut_mode(ctx, all, mode, room / 3));
  for (const irm_shard &shard : *all->list) {
    wanted += (double) shard.bytes;
    largest = std::max(largest, (double) shard.bytes);
  }
  if (wanted + piece * (double) all->list->size() > room - spare)
    WEFT_DEVICE_TAKE(all->streamed, all->mem, (size_t) largest);
  for (irm_shard &shard : *all->list) {
    if ((double) shard.bytes > weft_device_available(ctx) - spare) {
      all_stay = false;
      continue;
    }
    WEFT_DEVICE_TAKE(shard.resident, all->mem, shard.bytes);
    WEFT_TRY(send_shard(all, shard, shard.resident));
    WEFT_TRY(weft_poll(ctx, 0, 1));
  }
  if (!all_stay && !all->streamed) WEFT_DEVICE_TAKE(all->streamed, all->mem, (size_t) largest);
done:
  return st;
}

weft_status irm_shard_bring(irm_shards *all, const irm_shard &shard, irm_shard_view *view)
{
  *view = view_of(all, shard, shard.resident ? shard.resident : all->streamed);
  return shard.resident ? WEFT_OK : send_shard(all, shard, all->streamed);
}
