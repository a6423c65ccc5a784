/* The graph on the device. Each mode's nodes go in shards of their own, with their lists and an order of work, which
 * stay on the device when they fit and are sent again every sweep when not. Shards are independent of each other.
 *
 *   shard's memory   | start: count + 1 | to | weight | missing: start | to | order | pieces | */
#include <algorithm>
#include <cstring>
#include "irm/cuda/shards.cuh"
#include "core/call/parallel.h"

#define SHARD_LINKS ((int64_t) 1 << 26)
#define SHARD_NODES ((int64_t) 1 << 24)
#define PIECE 16384 /* links that one block counts */

/* ---- sending ---- */

static size_t aligned(size_t bytes) { return (bytes + 15) / 16 * 16; }

/* Where the parts of a shard lie when its memory begins at `at`; with NULL, how long it is. */
static irm_shard_view view_of(const irm_shards *all, const irm_shard &s, uint8_t *at)
{
  irm_shard_view v;
  memset(&v, 0, sizeof v);
  v.start = (uint32_t *) at;
  at += aligned((size_t) (s.count + 1) * 4);
  v.to = (int32_t *) at;
  at += aligned((size_t) s.links * 4);
  if (all->graph->links[s.mode].weight) {
    v.weight = (int32_t *) at;
    at += aligned((size_t) s.links * 4);
  }
  if (all->graph->missing_count[s.mode]) {
    v.missing_start = (uint32_t *) at;
    at += aligned((size_t) (s.count + 1) * 4);
    v.missing_to = (int32_t *) at;
    at += aligned((size_t) s.missing_links * 4);
  }
  v.order = (int32_t *) at;
  at += aligned((size_t) s.count * 4);
  v.pieces = (irm_piece *) at;
  return v;
}

static size_t shard_bytes(const irm_shards *all, const irm_shard &s)
{
  const irm_shard_view v = view_of(all, s, NULL);
  return (size_t) v.pieces + aligned((size_t) s.pieces * sizeof(irm_piece));
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
static weft_status send_shard(irm_shards *all, const irm_shard &s, uint8_t *to)
{
  weft_status st = WEFT_OK;
  const irm_shard_view v = view_of(all, s, to);
  const weft_irm_lists *links = &all->graph->links[s.mode], *missing = &all->graph->missing[s.mode];
  const starts a = { links->start + s.first, s.link_first };
  const starts b = { missing->start ? missing->start + s.first : NULL, s.missing_first };
#define SEND(out, from, items) \
  WEFT_TRY(weft_device_upload(all->mem, out, (size_t) (items) * sizeof *(out), 1, weft_fill_bytes, from))
  WEFT_TRY(weft_device_upload(all->mem, v.start, (size_t) s.count + 1, 4, fill_starts, &a));
  SEND(v.to, links->to + s.link_first, s.links);
  if (v.weight) SEND(v.weight, links->weight + s.link_first, s.links);
  if (v.missing_start) {
    WEFT_TRY(weft_device_upload(all->mem, v.missing_start, (size_t) s.count + 1, 4, fill_starts, &b));
    SEND(v.missing_to, missing->to + s.missing_first, s.missing_links);
  }
  SEND(v.order, all->order[s.mode] + s.order_at, s.count);
  if (s.pieces) SEND(v.pieces, all->pieces[s.mode] + s.piece_at, s.pieces);
#undef SEND
done:
  return st;
}

/* ---- cutting ---- */

/* What decides between light and heavy: links, counts summed, and one too many when a pair is missing. */
static int64_t node_load(const weft_irm_graph *g, int mode, int64_t i)
{
  const weft_irm_lists *a = &g->links[mode];
  int64_t load = a->start[i + 1] - a->start[i];
  for (int64_t e = a->start[i]; a->weight && e < a->start[i + 1]; e++) load += a->weight[e] - 1;
  if (g->missing_count[mode] && g->missing[mode].start[i + 1] > g->missing[mode].start[i]) load += IRM_LIGHT + 1;
  return load;
}

/* Cuts a mode's nodes into shards of at most `most` bytes of links, orders each shard's nodes: light ones by load, then
 * heavy ones, the longest first; and cuts the heavy ones' lists into pieces. */
static weft_status cut_mode(weft_ctx *ctx, irm_shards *all, int mode, double most)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *g = all->graph;
  const weft_irm_lists *a = &g->links[mode], *missing = &g->missing[mode];
  const int64_t from = all->first[mode], until = all->end[mode],
                link_budget = std::min(SHARD_LINKS, (int64_t) (most / (a->weight ? 8 : 4)) + 1);
  int32_t *order;
  irm_piece *pieces;
  int64_t piece_count = 0;
  const int light_ok = all->light_ok[mode];
  const auto load_of = [&](int64_t i) {
    return light_ok ? std::min<int64_t>(node_load(g, mode, i), IRM_LIGHT + 1) : IRM_LIGHT + 1;
  };
  WEFT_TAKE(order, all->host, (size_t) (until - from));
  for (int64_t i = from; i < until; i++)
    if (load_of(i) > IRM_LIGHT) piece_count += (a->start[i + 1] - a->start[i] + PIECE - 1) / PIECE;
  WEFT_TAKE(pieces, all->host, (size_t) piece_count + 1);
  piece_count = 0;
  for (int64_t first = from; first < until;) {
    irm_shard s;
    int64_t last = first, at[IRM_LIGHT + 3], heavy;
    memset(&s, 0, sizeof s);
    while (last < until && last - first < SHARD_NODES &&
           (last == first || a->start[last + 1] - a->start[first] <= link_budget))
      last++;
    s.mode = mode;
    s.first = first;
    s.count = last - first;
    s.link_first = a->start[first];
    s.links = a->start[last] - s.link_first;
    s.order_at = first - from;
    s.piece_at = piece_count;
    if (g->missing_count[mode]) {
      s.missing_first = missing->start[first];
      s.missing_links = missing->start[last] - s.missing_first;
    }
    if (s.links > UINT32_MAX || s.missing_links > UINT32_MAX) {
      st = weft_fail(ctx, WEFT_ERR_INPUT, "One node has too many links for the device; use `backend = \"cpu\"`.");
      goto done;
    }
    memset(at, 0, sizeof at);
    for (int64_t i = first; i < last; i++) at[load_of(i) + 1]++;
    for (int l = 0; l < IRM_LIGHT + 2; l++) at[l + 1] += at[l];
    s.light = at[IRM_LIGHT + 1];
    for (int64_t i = first; i < last; i++) order[s.order_at + at[load_of(i)]++] = (int32_t) (i - first);
    heavy = s.count - s.light;
    std::sort(order + s.order_at + s.light, order + s.order_at + s.count, [&](int32_t x, int32_t y) {
      const int64_t dx = a->start[first + x + 1] - a->start[first + x],
                    dy = a->start[first + y + 1] - a->start[first + y];
      return dx != dy ? dx > dy : x < y;
    });
    for (int64_t slot = 0; slot < heavy; slot++) {
      const int64_t i = first + order[s.order_at + s.light + slot], begin = a->start[i] - s.link_first,
                    end = a->start[i + 1] - s.link_first;
      for (int64_t x = begin; x < end; x += PIECE) {
        const irm_piece piece = { (uint32_t) slot, (uint32_t) x, (uint32_t) std::min<int64_t>(x + PIECE, end) };
        pieces[piece_count++] = piece;
      }
    }
    s.pieces = piece_count - s.piece_at;
    s.bytes = shard_bytes(all, s);
    all->list->push_back(s);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    first = last;
  }
  all->order[mode] = order;
  all->pieces[mode] = pieces;
done:
  return st;
}

/* Shards that fit stay on the device; when not all do, room for the largest is kept for sending the others anew. */
weft_status irm_shards_make(weft_ctx *ctx, irm_shards *all, double room)
{
  weft_status st = WEFT_OK;
  double wanted = 0, largest = 0, left = room - 1e6;
  for (int mode = 0; mode < 2; mode++) WEFT_TRY(cut_mode(ctx, all, mode, room / 3));
  for (const irm_shard &s : *all->list) {
    wanted += (double) s.bytes;
    largest = std::max(largest, (double) s.bytes);
  }
  if (wanted > left) {
    WEFT_DEVICE_TAKE(all->streamed, all->mem, (size_t) largest);
    left -= largest;
  }
  for (irm_shard &s : *all->list) {
    if ((double) s.bytes > left) continue;
    WEFT_DEVICE_TAKE(s.resident, all->mem, s.bytes);
    WEFT_TRY(send_shard(all, s, s.resident));
    left -= (double) s.bytes;
  }
done:
  return st;
}

weft_status irm_shard_bring(irm_shards *all, const irm_shard &s, irm_shard_view *v)
{
  *v = view_of(all, s, s.resident ? s.resident : all->streamed);
  return s.resident ? WEFT_OK : send_shard(all, s, all->streamed);
}
