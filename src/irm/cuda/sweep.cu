/* The blocked sweep on the device; see irm.h for the operations and units.h for the arithmetic. It goes shard by
 * shard (shards.cu). A shard's nodes are
 *
 *   light   at most 255 links: counts as bytes in shared memory, a product in 8-bit integers with the tables' three
 *           planes of bytes, and the draw, in one kernel (on Hopper light_hopper.cu)
 *   heavy   the others: counts in double, a product, which is exact on whole numbers, and a kernel that draws. So do
 *           nodes with missing pairs, and all nodes when a table is too wide for 32 bits.
 *
 * Real values have kernels of their own (real.cu), for their draws, their counts and their blocks' scores.
 *
 * With several devices, each draws its share of the nodes and gets the other labels from the others; counts are added
 * up.
 *
 * All sums are of whole numbers, so that neither order nor kernel changes a label. */
/* Build: exact. */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include "core/together/exchange.h"
#include "irm/cuda/sweep.cuh"
#include "irm/cuda/sweep_kernels.cuh"
#include "irm/cuda/real.cuh"
#include "irm/cuda/serial.cuh"

#define BATCH_BYTES 268435456.0 /* counts and scores of heavy nodes at once */

typedef unsigned long long u64;

/* values: NULL but for real ones, whose squares they are. */
struct chain_memory {
  uint16_t *z[2], *best[2];
  u64 *links, *values, *sizes[2];
  long long *pairs;
};

static irm_real_counts counts_of(const chain_memory *c) { return { c->links, c->values, c->pairs }; }

struct irm_engine {
  irm_serial *serial;    /* or NULL: for what is drawn node after node, for which nothing below is set up */
  irm_real_device *real; /* or NULL: for real values, which need none of the tables below */
  weft_device_arena mem;
  weft_arena host;
  const weft_irm_graph *graph;
  int poisson, wgmma, count_mode;
  int32_t k[2];
  int parts;        /* devices that share the nodes */
  size_t *share[2]; /* where the labels of each begin, in bytes */
  irm_shards shards;
  chain_memory *chains;
  irm_device_tables t[2];
  double *link, *none, *sums, *log_stick[2];
  int *narrow;
  double *counts, *scores;
  int64_t slots; /* heavy nodes at once */
  uint16_t *names[2];
  uint16_t *labels_host;
  int64_t *numbers_host;
  cudaEvent_t events[WEFT_IRM_STAGES + 1];
  double seconds[WEFT_IRM_STAGES];
};

/* ---- open and close ---- */

static void close_engine(irm_engine *e)
{
  weft_device_end(&e->mem);
  for (int k = 0; k <= WEFT_IRM_STAGES; k++)
    if (e->events[k]) cudaEventDestroy(e->events[k]);
  weft_arena host = e->host;
  delete e->shards.list;
  delete e;
  weft_arena_end(&host);
}

/* Room for one mode's tables on the device; real values have their own (real.cu). */
static weft_status take_tables(irm_engine *e, int mode)
{
  weft_status st = WEFT_OK;
  irm_device_tables *t = &e->t[mode];
  t->k = e->k[mode];
  t->k_other = e->k[1 - mode];
  t->width = (t->k + IRM_CHUNK - 1) / IRM_CHUNK * IRM_CHUNK;
  const size_t cells = (size_t) t->width * (size_t) t->k_other;
  TAKE_AT(e->log_stick[mode], &e->mem, (size_t) t->k);
  TAKE_AT(e->names[mode], &e->mem, (size_t) t->k);
  if (e->real) return st;
  WEFT_DEVICE_TAKE(t->link, &e->mem, cells);
  if (e->graph->missing_count[0]) WEFT_DEVICE_TAKE(t->missing, &e->mem, cells);
  WEFT_DEVICE_TAKE(t->base, &e->mem, (size_t) t->width);
  WEFT_DEVICE_TAKE(t->base_narrow, &e->mem, (size_t) t->width);
  WEFT_DEVICE_TAKE(t->nats, &e->mem, (size_t) t->width);
  if (!e->shards.light_ok[mode]) return st;
  WEFT_DEVICE_TAKE(t->planes, &e->mem, (size_t) PLANES * ((size_t) t->k_other + 3) / 4 * 4 * (size_t) t->width + 16);
  if (e->wgmma && irm_wgmma_fits(t->k, t->k_other))
    WEFT_DEVICE_TAKE(t->tiles, &e->mem, irm_wgmma_bytes(t->k, t->k_other));
done:
  return st;
}

/* Counts and scores of heavy nodes: a quarter of what is left. */
static weft_status take_slots(weft_ctx *ctx, irm_engine *e)
{
  weft_status st = WEFT_OK;
  double each = 0;
  for (int mode = 0; mode < 2; mode++) each = std::max(each, 8.0 * (e->t[mode].width + e->k[1 - mode]));
  const double room = weft_device_available(ctx), wanted = std::min(BATCH_BYTES, room / 4) / each;
  e->slots = (int64_t) std::min(std::max(wanted, 1.0), (double) std::max(e->graph->n[0], e->graph->n[1]));
  WEFT_DEVICE_TAKE(e->counts, &e->mem, (size_t) e->slots * (size_t) std::max(e->k[0], e->k[1]));
  WEFT_DEVICE_TAKE(e->scores, &e->mem, (size_t) e->slots * (size_t) std::max(e->t[0].width, e->t[1].width));
done:
  return st;
}

/* All device memory of the sweep but the shards, which get what is left, and the host's buffers for transfers. */
static weft_status take_memory(weft_ctx *ctx, irm_engine *e, irm_state *const *states, int chains)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *g = e->graph;
  const size_t cells = (size_t) e->k[0] * (size_t) e->k[1];
  if (g->unit > 0) WEFT_TRY(irm_real_open(ctx, &e->mem, &e->host, states[0], &e->real));
  WEFT_TAKE0(e->chains, &e->host, (size_t) chains);
  for (int c = 0; c < chains; c++) {
    chain_memory *m = &e->chains[c];
    for (int mode = 0; mode < 2; mode++) {
      TAKE_AT(m->z[mode], &e->mem, (size_t) g->n[mode]);
      TAKE_AT(m->best[mode], &e->mem, (size_t) g->n[mode]);
      TAKE_AT(m->sizes[mode], &e->mem, (size_t) e->k[mode]);
    }
    WEFT_DEVICE_TAKE(m->links, &e->mem, cells);
    WEFT_DEVICE_TAKE(m->pairs, &e->mem, cells);
    if (e->real) WEFT_DEVICE_TAKE(m->values, &e->mem, cells);
  }
  if (!e->real) WEFT_DEVICE_TAKE(e->link, &e->mem, cells);
  WEFT_DEVICE_TAKE(e->none, &e->mem, cells);
  WEFT_DEVICE_TAKE(e->sums, &e->mem, (size_t) e->k[0]);
  WEFT_DEVICE_TAKE(e->narrow, &e->mem, 2);
  for (int mode = 0; mode < 2; mode++) WEFT_TRY(take_tables(e, mode));
  WEFT_TAKE(e->labels_host, &e->host,
            (size_t) std::max(std::max(g->n[0], g->n[1]), (int64_t) std::max(e->k[0], e->k[1])));
  WEFT_TAKE(e->numbers_host, &e->host, cells);
  if (!e->real) WEFT_TRY(take_slots(ctx, e));
  WEFT_TRY(irm_shards_make(ctx, &e->shards, weft_device_available(ctx)));
done:
  return st;
}

/* Makes the engine for all chains of a call on this device: serial for what is drawn node after node, else tables,
 * chains and shards of its share of the nodes. */
static weft_status open_engine(const weft_irm_ops *ops, weft_ctx *ctx, struct irm_state *const *states, int chains,
                               int threads, struct irm_engine **out)
{
  weft_status st = WEFT_OK;
  irm_engine *e = new (std::nothrow) irm_engine;
  cudaDeviceProp properties;
  (void) ops;
  (void) threads;
  if (!e) return weft_fail_memory(ctx, "host", sizeof *e, -1, "");
  memset((void *) e, 0, sizeof *e);
  e->host = weft_arena_begin(ctx);
  e->mem = weft_device_begin(ctx);
  e->graph = states[0]->graph;
  e->shards.mem = &e->mem;
  e->shards.host = &e->host;
  e->shards.graph = e->graph;
  e->shards.list = new (std::nothrow) std::vector<irm_shard>;
  e->poisson = states[0]->model->poisson;
  e->count_mode = e->graph->n[0] <= e->graph->n[1] ? 0 : 1;
  if (!e->shards.list) {
    st = weft_fail_memory(ctx, "host", 64, -1, "");
    goto done;
  }
  if (e->mem.opened != WEFT_OK) {
    st = e->mem.opened;
    goto done;
  }
  if (states[0]->one_mode || states[0]->model->collapsed) {
    WEFT_TRY(irm_serial_open(ctx, &e->mem, &e->host, states[0], &e->serial));
    WEFT_CUDA(cudaStreamSynchronize(e->mem.stream));
    *out = e;
    return st;
  }
  e->parts = ctx->meeting ? ctx->meeting->parts : 1;
  for (int mode = 0; mode < 2; mode++) e->k[mode] = states[0]->k[mode];
  for (int mode = 0; mode < 2; mode++) {
    size_t *share;
    WEFT_TAKE(share, &e->host, (size_t) e->parts + 1);
    for (int r = 0; r <= e->parts; r++)
      share[r] = (size_t) irm_share_start(e->graph, mode, e->k, r, e->parts) * sizeof(uint16_t);
    e->share[mode] = share;
    e->shards.first[mode] = irm_share_start(e->graph, mode, e->k, ctx->part, e->parts);
    e->shards.end[mode] = irm_share_start(e->graph, mode, e->k, ctx->part + 1, e->parts);
  }
  for (int mode = 0; mode < 2; mode++)
    e->shards.light_ok[mode] = e->graph->unit == 0 && e->k[0] <= LIGHT_CLUSTERS && e->k[1] <= LIGHT_CLUSTERS;
  WEFT_CUDA(cudaGetDeviceProperties(&properties, ctx->device));
  for (int mode = 0; mode < 2; mode++) /* 64 KB on compute capability 7.5 */
    if (irm_light_shared(e->k[1 - mode], e->k[mode] + IRM_CHUNK) > properties.sharedMemPerBlockOptin)
      e->shards.light_ok[mode] = 0;
  e->wgmma = irm_wgmma_built() && properties.major == 9;
#ifdef WEFT_TESTS
  if (getenv("WEFT_IRM_NO_WGMMA")) e->wgmma = 0;
#endif
  for (int k = 0; k <= WEFT_IRM_STAGES; k++) WEFT_CUDA(cudaEventCreate(&e->events[k]));
  WEFT_CUDA(weft_device_allow_shared((const void *) irm_draw_light, irm_light_shared(LIGHT_CLUSTERS, LIGHT_CLUSTERS)));
  WEFT_TRY(take_memory(ctx, e, states, chains));
  WEFT_CUDA(cudaStreamSynchronize(e->mem.stream));
  *out = e;
  return st;
done:
  close_engine(e);
  return st;
}

/* ---- a mode ---- */

static weft_status draw_mode_real(weft_ctx *ctx, irm_engine *e, irm_state *s, int mode, double done_work, double total)
{
  weft_status st = WEFT_OK;
  chain_memory *c = &e->chains[s->index];
  WEFT_TRY(irm_real_begin(ctx, e->real, mode, c->sizes[1 - mode]));
  for (const irm_shard &shard : *e->shards.list) {
    irm_shard_view v;
    if (shard.mode != mode) continue;
    WEFT_TRY(irm_shard_bring(&e->shards, shard, &v));
    WEFT_TRY(
        irm_real_draw(ctx, e->real, s, shard, v, e->log_stick[mode], c->sizes[1 - mode], c->z[1 - mode], c->z[mode]));
    WEFT_CUDA(cudaStreamSynchronize(e->mem.stream));
    WEFT_TRY(weft_poll(ctx, done_work, total));
  }
done:
  return st;
}

/* Draws the parameters of every block from its counts and makes the tables of both modes, for real values by their
 * own kernels. */
static weft_status draw_tables(weft_ctx *ctx, irm_engine *e, irm_state *s)
{
  weft_status st = WEFT_OK;
  cudaStream_t q = e->mem.stream;
  chain_memory *c = &e->chains[s->index];
  const int64_t cells = (int64_t) e->k[0] * e->k[1];
  for (int mode = 0; mode < 2; mode++)
    WEFT_CUDA(cudaMemcpyAsync(e->log_stick[mode], s->log_stick[mode], (size_t) e->k[mode] * sizeof(double),
                              cudaMemcpyHostToDevice, q));
  if (e->real) return irm_real_parameters(ctx, e->real, s, counts_of(c));
  WEFT_CUDA(cudaMemsetAsync(e->narrow, 0xff, 2 * sizeof(int), q));
  irm_draw_eta<<<(unsigned) ((cells + 127) / 128), 128, 0, q>>>(irm_rng(s, IRM_DRAW_ETA), irm_index(s, 0), e->poisson,
                                                                s->chain->beta[0], s->chain->beta[1],
                                                                (const long long *) c->links, c->pairs, cells, e->link,
                                                                e->none);
  for (int mode = 0; mode < 2; mode++) {
    irm_device_tables *t = &e->t[mode];
    if (t->planes)
      WEFT_CUDA(
          cudaMemsetAsync(t->planes, 0, (size_t) PLANES * ((size_t) t->k_other + 3) / 4 * 4 * (size_t) t->width, q));
    irm_make_tables<<<(unsigned) t->k_other, 256, 0, q>>>(*t, e->link, e->none, mode, e->narrow + mode);
    if (t->tiles) WEFT_TRY(irm_wgmma_arrange(ctx, *t, q));
  }
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Nodes first .. last - 1 of the shard's order in doubles: counts, the product with the tables, the draw, as many
 * nodes at a time as there are slots. */
static weft_status draw_heavy(weft_ctx *ctx, irm_engine *e, irm_state *s, const irm_shard &shard,
                              const irm_shard_view &v, int64_t first, int64_t last)
{
  weft_status st = WEFT_OK;
  cudaStream_t q = e->mem.stream;
  const irm_device_tables *t = &e->t[shard.mode];
  const uint16_t *other = e->chains[s->index].z[1 - shard.mode];
  const size_t shared = t->k_other <= 8192 ? (size_t) t->k_other * 4 : 0;
  const irm_piece *host_pieces = e->shards.pieces[shard.mode] + shard.piece_at;
  int64_t piece = 0;
  for (int64_t at = first; at < last; at += e->slots) {
    const int64_t now = std::min(e->slots, last - at), end = at + now - shard.light;
    const irm_batch batch = { v.order + at, (int32_t) now, (int32_t) t->k_other, other, e->counts };
    const size_t count_bytes = (size_t) now * (size_t) t->k_other * sizeof(double);
    const dim3 tiles((unsigned) t->width / 64, (unsigned) ((now + 63) / 64));
    WEFT_CUDA(cudaMemsetAsync(e->counts, 0, count_bytes, q));
    if (at >= shard.light) { /* the lists of heavy nodes in pieces */
      while (piece < shard.pieces && (int64_t) host_pieces[piece].slot < at - shard.light) piece++;
      int64_t until = piece;
      while (until < shard.pieces && (int64_t) host_pieces[until].slot < end) until++;
      if (until > piece)
        irm_count_pieces<<<(unsigned) (until - piece), 256, shared, q>>>(batch, v.pieces + piece,
                                                                         (uint32_t) (at - shard.light), v.to, v.weight,
                                                                         shared != 0);
      piece = until;
    } else {
      irm_count_nodes<<<(unsigned) ((now + 7) / 8), 256, 0, q>>>(batch, v.start, v.to, v.weight);
    }
    irm_multiply<<<tiles, 256, 0, q>>>(batch, t->link, t->width, 1, e->scores);
    if (v.missing_start) {
      WEFT_CUDA(cudaMemsetAsync(e->counts, 0, count_bytes, q));
      irm_count_nodes<<<(unsigned) ((now + 7) / 8), 256, 0, q>>>(batch, v.missing_start, v.missing_to, NULL);
      irm_multiply<<<tiles, 256, 0, q>>>(batch, t->missing, t->width, -1, e->scores);
    }
    irm_draw_heavy<<<(unsigned) ((now + HEAVY_WARPS - 1) / HEAVY_WARPS), 32 * HEAVY_WARPS,
                     HEAVY_WARPS *(size_t) (t->width / IRM_CHUNK) * sizeof(irm_chunk), q>>>(
        batch, *t, e->scores, irm_rng(s, shard.mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL),
        irm_index(s, (uint64_t) shard.first), e->chains[s->index].z[shard.mode] + shard.first);
    WEFT_CUDA(cudaGetLastError());
  }
done:
  return st;
}

/* A mode's labels from links or counts, shard by shard: light nodes in 32 bits where the tables are narrow, the rest
 * in doubles. */
static weft_status draw_mode_links(weft_ctx *ctx, irm_engine *e, irm_state *s, int mode, double done_work, double total)
{
  weft_status st = WEFT_OK;
  cudaStream_t q = e->mem.stream;
  chain_memory *c = &e->chains[s->index];
  irm_device_tables *t = &e->t[mode];
  int narrow = 0;
  irm_base_nats<<<(unsigned) ((t->k + 63) / 64), 64, 0, q>>>(*t, e->log_stick[mode], e->none, c->sizes[1 - mode], mode);
  irm_base_units<<<1, 1024, 0, q>>>(*t);
  WEFT_CUDA(cudaMemcpyAsync(&narrow, e->narrow + mode, sizeof narrow, cudaMemcpyDeviceToHost, q));
  WEFT_CUDA(cudaStreamSynchronize(q));
  for (const irm_shard &shard : *e->shards.list) {
    irm_shard_view v;
    if (shard.mode != mode) continue;
    WEFT_TRY(irm_shard_bring(&e->shards, shard, &v));
    if (narrow && shard.light) {
      const irm_light_job job = { *t,
                                  v.start,
                                  v.to,
                                  v.weight,
                                  v.order,
                                  (int32_t) shard.light,
                                  c->z[1 - mode],
                                  c->z[mode] + shard.first,
                                  irm_rng(s, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL),
                                  irm_index(s, (uint64_t) shard.first) };
      if (t->tiles)
        WEFT_TRY(irm_wgmma_draw(ctx, job, q));
      else
        irm_draw_light<<<(unsigned) ((shard.light + LIGHT_TILE - 1) / LIGHT_TILE), 256,
                         irm_light_shared(t->k_other, t->width), q>>>(job);
      WEFT_CUDA(cudaGetLastError());
    } else if (shard.light) {
      WEFT_TRY(draw_heavy(ctx, e, s, shard, v, 0, shard.light));
    }
    WEFT_TRY(draw_heavy(ctx, e, s, shard, v, shard.light, shard.count));
    WEFT_CUDA(cudaStreamSynchronize(q));
    WEFT_TRY(weft_poll(ctx, done_work, total));
  }
done:
  return st;
}

/* A mode's labels, and then its sizes. */
static weft_status draw_mode(weft_ctx *ctx, irm_engine *e, irm_state *s, int mode, double done_work, double total)
{
  weft_status st = WEFT_OK;
  cudaStream_t q = e->mem.stream;
  chain_memory *c = &e->chains[s->index];
  WEFT_TRY((e->real ? draw_mode_real : draw_mode_links)(ctx, e, s, mode, done_work, total));
  if (e->parts > 1) WEFT_TRY(weft_device_join_shares(&e->mem, c->z[mode], e->share[mode]));
  WEFT_CUDA(cudaMemsetAsync(c->sizes[mode], 0, (size_t) e->k[mode] * sizeof(u64), q));
  irm_count_sizes<<<(unsigned) std::min<int64_t>(1024, (e->graph->n[mode] + 4095) / 4096), 256,
                    e->k[mode] <= 8192 ? (size_t) e->k[mode] * 4 : 0, q>>>(c->z[mode], e->graph->n[mode], e->k[mode],
                                                                           c->sizes[mode]);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* ---- operations ---- */

#define MARK(k) WEFT_CUDA(cudaEventRecord(e->events[k], e->mem.stream))

/* Draws all labels of a chain on the device; sizes come back to the state, labels stay. */
static weft_status labels(weft_ctx *ctx, irm_engine *e, irm_state *s, double done_work, double total)
{
  weft_status st = WEFT_OK;
  if (e->serial) return irm_serial_labels(ctx, e->serial, s, done_work, total);
  chain_memory *c = &e->chains[s->index];
  MARK(0);
  WEFT_TRY(draw_tables(ctx, e, s));
  MARK(1);
  WEFT_TRY(draw_mode(ctx, e, s, 0, done_work, total));
  MARK(2);
  WEFT_TRY(draw_mode(ctx, e, s, 1, done_work, total));
  MARK(3);
  for (int mode = 0; mode < 2; mode++)
    WEFT_CUDA(cudaMemcpyAsync(s->sizes[mode], c->sizes[mode], (size_t) e->k[mode] * sizeof(int64_t),
                              cudaMemcpyDeviceToHost, e->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(e->mem.stream));
done:
  return st;
}

/* Blocks from the labels and sizes on the device. */
static weft_status count_blocks(weft_ctx *ctx, irm_engine *e, irm_state *s, double done_work, double total)
{
  weft_status st = WEFT_OK;
  cudaStream_t q = e->mem.stream;
  chain_memory *c = &e->chains[s->index];
  const int64_t cells = (int64_t) e->k[0] * e->k[1];
  const int mode = e->count_mode, missing = e->graph->missing_count[0] > 0;
  const int64_t own_step = mode == 0 ? e->k[1] : 1, other_step = mode == 0 ? 1 : e->k[1];
  const size_t shared = e->k[1 - mode] <= 8192 ? (size_t) e->k[1 - mode] * 4 : 0;
  WEFT_CUDA(cudaMemsetAsync(c->links, 0, (size_t) cells * sizeof(u64), q));
  if (c->values) WEFT_CUDA(cudaMemsetAsync(c->values, 0, (size_t) cells * sizeof(u64), q));
  if (ctx->part == 0 || !missing)
    irm_count_pairs<<<(unsigned) ((cells + 255) / 256), 256, 0, q>>>(c->sizes[0], c->sizes[1], e->k[1], cells,
                                                                     c->pairs);
  else
    WEFT_CUDA(cudaMemsetAsync(c->pairs, 0, (size_t) cells * sizeof(u64), q)); /* part 0's are added */
  for (const irm_shard &shard : *e->shards.list) {
    irm_shard_view v;
    if (shard.mode != mode) continue;
    WEFT_TRY(irm_shard_bring(&e->shards, shard, &v));
    irm_blocks_job job = { v.start,
                           v.to,
                           v.weight,
                           (int32_t) shard.count,
                           (uint32_t) shard.links,
                           c->z[mode] + shard.first,
                           c->z[1 - mode],
                           e->k[1 - mode],
                           own_step,
                           other_step,
                           1,
                           c->links };
    if (e->real)
      WEFT_TRY(irm_real_count(ctx, e->real, shard, v, c->z[mode], c->z[1 - mode], counts_of(c)));
    else if (job.links)
      irm_count_links<<<(unsigned) ((shard.links + BLOCK_LINKS - 1) / BLOCK_LINKS), 256, shared, q>>>(job, shared != 0);
    job.start = v.missing_start;
    job.to = v.missing_to;
    job.weight = NULL;
    job.links = (uint32_t) shard.missing_links;
    job.by = -1;
    job.cells = (u64 *) c->pairs;
    if (job.links)
      irm_count_links<<<(unsigned) ((shard.missing_links + BLOCK_LINKS - 1) / BLOCK_LINKS), 256, shared, q>>>(job,
                                                                                                              shared !=
                                                                                                                  0);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(q));
    WEFT_TRY(weft_poll(ctx, done_work, total));
  }
  if (e->parts > 1) WEFT_TRY(weft_device_join_counts(&e->mem, c->links, (size_t) cells));
  if (e->parts > 1 && c->values) WEFT_TRY(weft_device_join_counts(&e->mem, c->values, (size_t) cells));
  if (e->parts > 1 && missing) WEFT_TRY(weft_device_join_counts(&e->mem, (u64 *) c->pairs, (size_t) cells));
done:
  return st;
}

/* Renames labels and sizes as s->place says, when `rename`, and counts the blocks on the device. */
static weft_status count(weft_ctx *ctx, irm_engine *e, irm_state *s, int rename, double done_work, double total)
{
  weft_status st = WEFT_OK;
  cudaStream_t q = e->mem.stream;
  chain_memory *c = &e->chains[s->index];
  for (int mode = 0; mode < 2 && rename; mode++) {
    int64_t *renamed = e->numbers_host; /* k words, for sizes */
    for (int32_t l = 0; l < e->k[mode]; l++) e->labels_host[l] = (uint16_t) s->place[mode][l];
    for (int32_t l = 0; l < e->k[mode]; l++) renamed[s->place[mode][l]] = s->sizes[mode][l];
    memcpy(s->sizes[mode], renamed, (size_t) e->k[mode] * sizeof(int64_t));
    WEFT_CUDA(cudaMemcpyAsync(e->names[mode], e->labels_host, (size_t) e->k[mode] * sizeof(uint16_t),
                              cudaMemcpyHostToDevice, q));
    WEFT_CUDA(cudaMemcpyAsync(c->sizes[mode], s->sizes[mode], (size_t) e->k[mode] * sizeof(int64_t),
                              cudaMemcpyHostToDevice, q));
    WEFT_CUDA(cudaStreamSynchronize(q));
    irm_rename<<<(unsigned) std::min<int64_t>(1024, (e->graph->n[mode] + 255) / 256), 256, 0, q>>>(c->z[mode],
                                                                                                   e->graph->n[mode],
                                                                                                   e->names[mode]);
  }
  WEFT_TRY(count_blocks(ctx, e, s, done_work, total));
  MARK(4);
done:
  return st;
}

/* Contributions of all blocks, summed by rows in the CPU's order; also adds up the stages' times. */
static weft_status block_sums(weft_ctx *ctx, irm_engine *e, irm_state *s, double *rows)
{
  weft_status st = WEFT_OK;
  cudaStream_t q = e->mem.stream;
  chain_memory *c = &e->chains[s->index];
  const int64_t cells = (int64_t) e->k[0] * e->k[1];
  float ms;
  if (e->real)
    WEFT_TRY(irm_real_scores(ctx, e->real, s, counts_of(c), e->none));
  else
    irm_block_scores<<<(unsigned) ((cells + 127) / 128), 128, 0, q>>>(e->poisson, s->chain->beta[0], s->chain->beta[1],
                                                                      (const long long *) c->links, c->pairs, cells,
                                                                      e->none);
  irm_row_sums<<<(unsigned) ((e->k[0] + 31) / 32), 32, 0, q>>>(e->none, e->k[0], e->k[1], e->sums);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(rows, e->sums, (size_t) e->k[0] * sizeof(double), cudaMemcpyDeviceToHost, q));
  MARK(5);
  WEFT_CUDA(cudaStreamSynchronize(q));
  for (int k = 0; k < WEFT_IRM_STAGES; k++) {
    WEFT_CUDA(cudaEventElapsedTime(&ms, e->events[k], e->events[k + 1]));
    e->seconds[k] += 1e-3 * ms;
  }
done:
  return st;
}

static weft_status bring_labels(weft_ctx *ctx, irm_engine *e, const uint16_t *from, int64_t n, int32_t *to)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaMemcpyAsync(e->labels_host, from, (size_t) n * sizeof *from, cudaMemcpyDeviceToHost, e->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(e->mem.stream));
  for (int64_t i = 0; i < n; i++) to[i] = e->labels_host[i];
done:
  return st;
}

static weft_status bring_numbers(weft_ctx *ctx, irm_engine *e, const void *from, const int32_t k[2], int64_t *rows,
                                 int64_t *turned)
{
  weft_status st = WEFT_OK;
  const size_t cells = (size_t) k[0] * (size_t) k[1];
  WEFT_CUDA(cudaMemcpyAsync(rows, from, cells * sizeof(int64_t), cudaMemcpyDeviceToHost, e->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(e->mem.stream));
  for (int32_t l = 0; l < k[0]; l++)
    for (int32_t m = 0; m < k[1]; m++) turned[(size_t) m * k[0] + l] = rows[(size_t) l * k[1] + m];
done:
  return st;
}

static weft_status fetch(weft_ctx *ctx, irm_engine *e, irm_state *s, int blocks)
{
  weft_status st = WEFT_OK;
  chain_memory *c = &e->chains[s->index];
  for (int mode = 0; mode < 2; mode++) WEFT_TRY(bring_labels(ctx, e, c->z[mode], e->graph->n[mode], s->z[mode]));
  if (!blocks) goto done;
  WEFT_TRY(bring_numbers(ctx, e, c->links, e->k, s->links[0], s->links[1]));
  WEFT_TRY(bring_numbers(ctx, e, c->pairs, e->k, s->pairs[0], s->pairs[1]));
  if (c->values) WEFT_TRY(bring_numbers(ctx, e, c->values, e->k, s->values[0], s->values[1]));
done:
  return st;
}

/* The state's labels, sizes and blocks to the device. */
static weft_status put(weft_ctx *ctx, irm_engine *e, irm_state *s)
{
  weft_status st = WEFT_OK;
  cudaStream_t q = e->mem.stream;
  chain_memory *c = &e->chains[s->index];
  const size_t cells = (size_t) e->k[0] * (size_t) e->k[1];
  for (int mode = 0; mode < 2; mode++) {
    for (int64_t i = 0; i < e->graph->n[mode]; i++) e->labels_host[i] = (uint16_t) s->z[mode][i];
    WEFT_CUDA(cudaMemcpyAsync(c->z[mode], e->labels_host, (size_t) e->graph->n[mode] * sizeof(uint16_t),
                              cudaMemcpyHostToDevice, q));
    WEFT_CUDA(cudaMemcpyAsync(c->sizes[mode], s->sizes[mode], (size_t) e->k[mode] * sizeof(int64_t),
                              cudaMemcpyHostToDevice, q));
    WEFT_CUDA(cudaStreamSynchronize(q));
  }
  WEFT_CUDA(cudaMemcpyAsync(c->links, s->links[0], cells * sizeof(int64_t), cudaMemcpyHostToDevice, q));
  WEFT_CUDA(cudaMemcpyAsync(c->pairs, s->pairs[0], cells * sizeof(int64_t), cudaMemcpyHostToDevice, q));
  if (c->values)
    WEFT_CUDA(cudaMemcpyAsync(c->values, s->values[0], cells * sizeof(int64_t), cudaMemcpyHostToDevice, q));
  WEFT_CUDA(cudaStreamSynchronize(q));
done:
  return st;
}

static weft_status keep(weft_ctx *ctx, irm_engine *e, irm_state *s)
{
  weft_status st = WEFT_OK;
  chain_memory *c = &e->chains[s->index];
  for (int mode = 0; mode < 2; mode++)
    WEFT_CUDA(cudaMemcpyAsync(c->best[mode], c->z[mode], (size_t) e->graph->n[mode] * sizeof(uint16_t),
                              cudaMemcpyDeviceToDevice, e->mem.stream));
done:
  return st;
}

static weft_status fetch_best(weft_ctx *ctx, irm_engine *e, irm_state *s)
{
  weft_status st = WEFT_OK;
  for (int mode = 0; mode < 2; mode++)
    WEFT_TRY(bring_labels(ctx, e, e->chains[s->index].best[mode], e->graph->n[mode], s->chain->best_z[mode]));
done:
  return st;
}

static void stages(irm_engine *e, double seconds[WEFT_IRM_STAGES]) { memcpy(seconds, e->seconds, sizeof e->seconds); }

extern "C" {
extern const weft_irm_ops weft_irm_cuda;
const weft_irm_ops weft_irm_cuda = { 1,     open_engine, close_engine, labels,     count, block_sums,
                                     fetch, put,         keep,         fetch_best, stages };
}
