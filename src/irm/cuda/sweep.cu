/* The blocked sweep on the device; see irm.h for the operations and units.h for the arithmetic. It goes shard by
 * shard (shards.cu). A shard's nodes are
 *
 *   light   at most 255 links: counts as bytes in shared memory, a product in 8-bit integers with the tables' three
 *           planes of bytes, and the draw, in one kernel (on Hopper light_hopper.cu)
 *   heavy   the others: counts in double, a product, which is exact on whole numbers, and a kernel that draws. So do
 *           nodes with missing pairs, and all nodes when a table is too wide for 32 bits.
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
#include "irm/cuda/light_hopper.cuh"

#define BATCH_BYTES 268435456.0 /* counts and scores of heavy nodes at once */

typedef unsigned long long u64;

struct chain_memory {
  uint16_t *z[2], *best[2];
  u64 *links, *sizes[2];
  long long *pairs;
};

struct irm_engine {
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

static void close_engine(irm_engine *engine)
{
  weft_device_end(&engine->mem);
  for (int k = 0; k <= WEFT_IRM_STAGES; k++)
    if (engine->events[k]) cudaEventDestroy(engine->events[k]);
  weft_arena host = engine->host;
  delete engine->shards.list;
  delete engine;
  weft_arena_end(&host);
}

/* Room for one mode's tables on the device. */
static weft_status take_tables(irm_engine *engine, int mode)
{
  weft_status st = WEFT_OK;
  irm_device_tables *tables = &engine->t[mode];
  tables->k = engine->k[mode];
  tables->k_other = engine->k[1 - mode];
  tables->width = (tables->k + IRM_CHUNK - 1) / IRM_CHUNK * IRM_CHUNK;
  const size_t cells = (size_t) tables->width * (size_t) tables->k_other;
  TAKE_AT(engine->log_stick[mode], &engine->mem, (size_t) tables->k);
  TAKE_AT(engine->names[mode], &engine->mem, (size_t) tables->k);
  WEFT_DEVICE_TAKE(tables->link, &engine->mem, cells);
  if (engine->graph->missing_count[0]) WEFT_DEVICE_TAKE(tables->missing, &engine->mem, cells);
  WEFT_DEVICE_TAKE(tables->base, &engine->mem, (size_t) tables->width);
  WEFT_DEVICE_TAKE(tables->base_narrow, &engine->mem, (size_t) tables->width);
  WEFT_DEVICE_TAKE(tables->nats, &engine->mem, (size_t) tables->width);
  if (!engine->shards.light_ok[mode]) return st;
  WEFT_DEVICE_TAKE(tables->planes, &engine->mem,
                   (size_t) PLANES * ((size_t) tables->k_other + 3) / 4 * 4 * (size_t) tables->width + 16);
  if (engine->wgmma && irm_wgmma_fits(tables->k, tables->k_other))
    WEFT_DEVICE_TAKE(tables->tiles, &engine->mem, irm_wgmma_bytes(tables->k, tables->k_other));
done:
  return st;
}

/* Counts and scores of heavy nodes: a quarter of what is left. */
static weft_status take_slots(weft_ctx *ctx, irm_engine *engine)
{
  weft_status st = WEFT_OK;
  double each = 0;
  for (int mode = 0; mode < 2; mode++) each = std::max(each, 8.0 * (engine->t[mode].width + engine->k[1 - mode]));
  const double room = weft_device_available(ctx), wanted = std::min(BATCH_BYTES, room / 4) / each;
  engine->slots =
      (int64_t) std::min(std::max(wanted, 1.0), (double) std::max(engine->graph->n[0], engine->graph->n[1]));
  WEFT_DEVICE_TAKE(engine->counts, &engine->mem,
                   (size_t) engine->slots * (size_t) std::max(engine->k[0], engine->k[1]));
  WEFT_DEVICE_TAKE(engine->scores, &engine->mem,
                   (size_t) engine->slots * (size_t) std::max(engine->t[0].width, engine->t[1].width));
done:
  return st;
}

/* All device memory of the sweep but the shards, which get what is left, and the host's buffers for transfers. */
static weft_status take_memory(weft_ctx *ctx, irm_engine *engine, irm_state *const *states, int chains)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *graph = engine->graph;
  const size_t cells = (size_t) engine->k[0] * (size_t) engine->k[1];
  WEFT_TAKE0(engine->chains, &engine->host, (size_t) chains);
  for (int c = 0; c < chains; c++) {
    chain_memory *memory = &engine->chains[c];
    for (int mode = 0; mode < 2; mode++) {
      TAKE_AT(memory->z[mode], &engine->mem, (size_t) graph->n[mode]);
      TAKE_AT(memory->best[mode], &engine->mem, (size_t) graph->n[mode]);
      TAKE_AT(memory->sizes[mode], &engine->mem, (size_t) engine->k[mode]);
    }
    WEFT_DEVICE_TAKE(memory->links, &engine->mem, cells);
    WEFT_DEVICE_TAKE(memory->pairs, &engine->mem, cells);
  }
  WEFT_DEVICE_TAKE(engine->link, &engine->mem, cells);
  WEFT_DEVICE_TAKE(engine->none, &engine->mem, cells);
  WEFT_DEVICE_TAKE(engine->sums, &engine->mem, (size_t) engine->k[0]);
  WEFT_DEVICE_TAKE(engine->narrow, &engine->mem, 2);
  for (int mode = 0; mode < 2; mode++) WEFT_TRY(take_tables(engine, mode));
  WEFT_TAKE(engine->labels_host, &engine->host,
            (size_t) std::max(std::max(graph->n[0], graph->n[1]), (int64_t) std::max(engine->k[0], engine->k[1])));
  WEFT_TAKE(engine->numbers_host, &engine->host, cells);
  WEFT_TRY(take_slots(ctx, engine));
  WEFT_TRY(irm_shards_make(ctx, &engine->shards, weft_device_available(ctx)));
done:
  return st;
}

/* Makes the engine for all chains of a call on this device: tables, chains and shards of its share of the nodes. What
 * is drawn node after node and real values have none: R keeps them on the CPU. */
static weft_status open_engine(const weft_irm_ops *ops, weft_ctx *ctx, struct irm_state *const *states, int chains,
                               int threads, struct irm_engine **out)
{
  weft_status st = WEFT_OK;
  irm_engine *engine = new (std::nothrow) irm_engine;
  int shared = 0, major = 0;
  (void) ops;
  (void) threads;
  if (!engine) return weft_fail_memory(ctx, "host", sizeof *engine, -1, "");
  memset((void *) engine, 0, sizeof *engine);
  engine->host = weft_arena_begin(ctx);
  engine->mem = weft_device_begin(ctx);
  engine->graph = states[0]->graph;
  engine->shards.mem = &engine->mem;
  engine->shards.host = &engine->host;
  engine->shards.graph = engine->graph;
  engine->shards.list = new (std::nothrow) std::vector<irm_shard>;
  engine->poisson = states[0]->model->poisson;
  engine->count_mode = engine->graph->n[0] <= engine->graph->n[1] ? 0 : 1;
  if (!engine->shards.list) {
    st = weft_fail_memory(ctx, "host", 64, -1, "");
    goto done;
  }
  if (engine->mem.opened != WEFT_OK) {
    st = engine->mem.opened;
    goto done;
  }
  if (states[0]->one_mode || states[0]->model->collapsed || engine->graph->unit > 0) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "a device has no sampler for this graph");
    goto done;
  }
  engine->parts = ctx->meeting ? ctx->meeting->parts : 1;
  for (int mode = 0; mode < 2; mode++) engine->k[mode] = states[0]->k[mode];
  for (int mode = 0; mode < 2; mode++) {
    size_t *share;
    WEFT_TAKE(share, &engine->host, (size_t) engine->parts + 1);
    for (int r = 0; r <= engine->parts; r++)
      share[r] = (size_t) irm_share_start(engine->graph, mode, engine->k, r, engine->parts) * sizeof(uint16_t);
    engine->share[mode] = share;
    engine->shards.first[mode] = irm_share_start(engine->graph, mode, engine->k, ctx->part, engine->parts);
    engine->shards.end[mode] = irm_share_start(engine->graph, mode, engine->k, ctx->part + 1, engine->parts);
  }
  for (int mode = 0; mode < 2; mode++)
    engine->shards.light_ok[mode] = engine->k[0] <= LIGHT_CLUSTERS && engine->k[1] <= LIGHT_CLUSTERS;
  WEFT_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, ctx->device));
  WEFT_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ctx->device));
  for (int mode = 0; mode < 2; mode++) /* 64 KB on compute capability 7.5 */
    if (irm_light_shared(engine->k[1 - mode], engine->k[mode] + IRM_CHUNK) > (size_t) shared)
      engine->shards.light_ok[mode] = 0;
  engine->wgmma = irm_wgmma_built() && major == 9;
#ifdef WEFT_TESTS
  if (getenv("WEFT_IRM_NO_WGMMA")) engine->wgmma = 0;
#endif
  for (int k = 0; k <= WEFT_IRM_STAGES; k++) WEFT_CUDA(cudaEventCreate(&engine->events[k]));
  WEFT_CUDA(weft_device_allow_shared((const void *) irm_draw_light, irm_light_shared(LIGHT_CLUSTERS, LIGHT_CLUSTERS)));
  WEFT_TRY(take_memory(ctx, engine, states, chains));
  WEFT_CUDA(cudaStreamSynchronize(engine->mem.stream));
  *out = engine;
  return st;
done:
  close_engine(engine);
  return st;
}

/* ---- a mode ---- */

/* Draws the parameters of every block from its counts and makes the tables of both modes. */
static weft_status draw_tables(weft_ctx *ctx, irm_engine *engine, irm_state *state)
{
  weft_status st = WEFT_OK;
  cudaStream_t stream = engine->mem.stream;
  chain_memory *memory = &engine->chains[state->index];
  const int64_t cells = (int64_t) engine->k[0] * engine->k[1];
  for (int mode = 0; mode < 2; mode++)
    WEFT_CUDA(cudaMemcpyAsync(engine->log_stick[mode], state->log_stick[mode],
                              (size_t) engine->k[mode] * sizeof(double), cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(cudaMemsetAsync(engine->narrow, 0xff, 2 * sizeof(int), stream));
  irm_draw_eta<<<(unsigned) ((cells + 127) / 128), 128, 0, stream>>>(irm_rng(state, IRM_DRAW_ETA), irm_index(state, 0),
                                                                     engine->poisson, state->chain->beta[0],
                                                                     state->chain->beta[1],
                                                                     (const long long *) memory->links, memory->pairs,
                                                                     cells, engine->link, engine->none);
  for (int mode = 0; mode < 2; mode++) {
    irm_device_tables *tables = &engine->t[mode];
    if (tables->planes)
      WEFT_CUDA(cudaMemsetAsync(tables->planes, 0,
                                (size_t) PLANES * ((size_t) tables->k_other + 3) / 4 * 4 * (size_t) tables->width,
                                stream));
    irm_make_tables<<<(unsigned) tables->k_other, 256, 0, stream>>>(*tables, engine->link, engine->none, mode,
                                                                    engine->narrow + mode);
    if (tables->tiles) WEFT_TRY(irm_wgmma_arrange(ctx, *tables, stream));
  }
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Nodes first .. last - 1 of the shard's order in doubles: counts, the product with the tables, the draw, as many
 * nodes at a time as there are slots. */
static weft_status draw_heavy(weft_ctx *ctx, irm_engine *engine, irm_state *state, const irm_shard &shard,
                              const irm_shard_view &view, int64_t first, int64_t last)
{
  weft_status st = WEFT_OK;
  cudaStream_t stream = engine->mem.stream;
  const irm_device_tables *tables = &engine->t[shard.mode];
  const uint16_t *other = engine->chains[state->index].z[1 - shard.mode];
  const size_t shared = tables->k_other <= 8192 ? (size_t) tables->k_other * 4 : 0;
  const irm_piece *host_pieces = engine->shards.pieces[shard.mode] + shard.piece_at;
  int64_t piece = 0;
  for (int64_t at = first; at < last; at += engine->slots) {
    const int64_t now = std::min(engine->slots, last - at), end = at + now - shard.light;
    const irm_batch batch = { view.order + at, (int32_t) now, (int32_t) tables->k_other, other, engine->counts };
    const size_t count_bytes = (size_t) now * (size_t) tables->k_other * sizeof(double);
    const dim3 tiles((unsigned) tables->width / 64, (unsigned) ((now + 63) / 64));
    WEFT_CUDA(cudaMemsetAsync(engine->counts, 0, count_bytes, stream));
    if (at >= shard.light) { /* the lists of heavy nodes in pieces */
      while (piece < shard.pieces && (int64_t) host_pieces[piece].slot < at - shard.light) piece++;
      int64_t until = piece;
      while (until < shard.pieces && (int64_t) host_pieces[until].slot < end) until++;
      if (until > piece)
        irm_count_pieces<<<(unsigned) (until - piece), 256, shared, stream>>>(batch, view.pieces + piece,
                                                                              (uint32_t) (at - shard.light), view.to,
                                                                              view.weight, shared != 0);
      piece = until;
    } else {
      irm_count_nodes<<<(unsigned) ((now + 7) / 8), 256, 0, stream>>>(batch, view.start, view.to, view.weight);
    }
    irm_multiply<<<tiles, 256, 0, stream>>>(batch, tables->link, tables->width, 1, engine->scores);
    if (view.missing_start) {
      WEFT_CUDA(cudaMemsetAsync(engine->counts, 0, count_bytes, stream));
      irm_count_nodes<<<(unsigned) ((now + 7) / 8), 256, 0, stream>>>(batch, view.missing_start, view.missing_to, NULL);
      irm_multiply<<<tiles, 256, 0, stream>>>(batch, tables->missing, tables->width, -1, engine->scores);
    }
    irm_draw_heavy<<<(unsigned) ((now + HEAVY_WARPS - 1) / HEAVY_WARPS), 32 * HEAVY_WARPS,
                     HEAVY_WARPS *(size_t) (tables->width / IRM_CHUNK) * sizeof(irm_chunk), stream>>>(
        batch, *tables, engine->scores, irm_rng(state, shard.mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL),
        irm_index(state, (uint64_t) shard.first), engine->chains[state->index].z[shard.mode] + shard.first);
    WEFT_CUDA(cudaGetLastError());
  }
done:
  return st;
}

/* A mode's labels, shard by shard: light nodes in 32 bits where the tables are narrow, the rest in doubles. */
static weft_status draw_mode_labels(weft_ctx *ctx, irm_engine *engine, irm_state *state, int mode, double done_work,
                                    double total)
{
  weft_status st = WEFT_OK;
  cudaStream_t stream = engine->mem.stream;
  chain_memory *memory = &engine->chains[state->index];
  irm_device_tables *tables = &engine->t[mode];
  int narrow = 0;
  irm_base_nats<<<(unsigned) ((tables->k + 63) / 64), 64, 0, stream>>>(*tables, engine->log_stick[mode], engine->none,
                                                                       memory->sizes[1 - mode], mode);
  irm_base_units<<<1, 1024, 0, stream>>>(*tables);
  WEFT_CUDA(cudaMemcpyAsync(&narrow, engine->narrow + mode, sizeof narrow, cudaMemcpyDeviceToHost, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream));
  for (const irm_shard &shard : *engine->shards.list) {
    irm_shard_view view;
    if (shard.mode != mode) continue;
    WEFT_TRY(irm_shard_bring(&engine->shards, shard, &view));
    if (narrow && shard.light) {
      const irm_light_job job = { *tables,
                                  view.start,
                                  view.to,
                                  view.weight,
                                  view.order,
                                  (int32_t) shard.light,
                                  memory->z[1 - mode],
                                  memory->z[mode] + shard.first,
                                  irm_rng(state, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL),
                                  irm_index(state, (uint64_t) shard.first) };
      if (tables->tiles)
        WEFT_TRY(irm_wgmma_draw(ctx, job, stream));
      else
        irm_draw_light<<<(unsigned) ((shard.light + LIGHT_TILE - 1) / LIGHT_TILE), 256,
                         irm_light_shared(tables->k_other, tables->width), stream>>>(job);
      WEFT_CUDA(cudaGetLastError());
    } else if (shard.light) {
      WEFT_TRY(draw_heavy(ctx, engine, state, shard, view, 0, shard.light));
    }
    WEFT_TRY(draw_heavy(ctx, engine, state, shard, view, shard.light, shard.count));
    WEFT_CUDA(cudaStreamSynchronize(stream));
    WEFT_TRY(weft_poll(ctx, done_work, total));
  }
done:
  return st;
}

/* A mode's labels, and then its sizes. */
static weft_status draw_mode(weft_ctx *ctx, irm_engine *engine, irm_state *state, int mode, double done_work,
                             double total)
{
  weft_status st = WEFT_OK;
  cudaStream_t stream = engine->mem.stream;
  chain_memory *memory = &engine->chains[state->index];
  WEFT_TRY(draw_mode_labels(ctx, engine, state, mode, done_work, total));
  if (engine->parts > 1) WEFT_TRY(weft_device_join_shares(&engine->mem, memory->z[mode], engine->share[mode]));
  WEFT_CUDA(cudaMemsetAsync(memory->sizes[mode], 0, (size_t) engine->k[mode] * sizeof(u64), stream));
  irm_count_sizes<<<(unsigned) std::min<int64_t>(1024, (engine->graph->n[mode] + 4095) / 4096), 256,
                    engine->k[mode] <= 8192 ? (size_t) engine->k[mode] * 4 : 0, stream>>>(memory->z[mode],
                                                                                          engine->graph->n[mode],
                                                                                          engine->k[mode],
                                                                                          memory->sizes[mode]);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* ---- operations ---- */

#define MARK(k) WEFT_CUDA(cudaEventRecord(engine->events[k], engine->mem.stream))

/* Draws all labels of a chain on the device; sizes come back to the state, labels stay. */
static weft_status labels(weft_ctx *ctx, irm_engine *engine, irm_state *state, double done_work, double total)
{
  weft_status st = WEFT_OK;
  chain_memory *memory = &engine->chains[state->index];
  MARK(0);
  WEFT_TRY(draw_tables(ctx, engine, state));
  MARK(1);
  WEFT_TRY(draw_mode(ctx, engine, state, 0, done_work, total));
  MARK(2);
  WEFT_TRY(draw_mode(ctx, engine, state, 1, done_work, total));
  MARK(3);
  for (int mode = 0; mode < 2; mode++)
    WEFT_CUDA(cudaMemcpyAsync(state->sizes[mode], memory->sizes[mode], (size_t) engine->k[mode] * sizeof(int64_t),
                              cudaMemcpyDeviceToHost, engine->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(engine->mem.stream));
done:
  return st;
}

/* Blocks from the labels and sizes on the device. */
static weft_status count_blocks(weft_ctx *ctx, irm_engine *engine, irm_state *state, double done_work, double total)
{
  weft_status st = WEFT_OK;
  cudaStream_t stream = engine->mem.stream;
  chain_memory *memory = &engine->chains[state->index];
  const int64_t cells = (int64_t) engine->k[0] * engine->k[1];
  const int mode = engine->count_mode, missing = engine->graph->missing_count[0] > 0;
  const int64_t own_step = mode == 0 ? engine->k[1] : 1, other_step = mode == 0 ? 1 : engine->k[1];
  const size_t shared = engine->k[1 - mode] <= 8192 ? (size_t) engine->k[1 - mode] * 4 : 0;
  WEFT_CUDA(cudaMemsetAsync(memory->links, 0, (size_t) cells * sizeof(u64), stream));
  if (ctx->part == 0 || !missing)
    irm_count_pairs<<<(unsigned) ((cells + 255) / 256), 256, 0, stream>>>(memory->sizes[0], memory->sizes[1],
                                                                          engine->k[1], cells, memory->pairs);
  else
    WEFT_CUDA(cudaMemsetAsync(memory->pairs, 0, (size_t) cells * sizeof(u64), stream)); /* part 0's are added */
  for (const irm_shard &shard : *engine->shards.list) {
    irm_shard_view view;
    if (shard.mode != mode) continue;
    WEFT_TRY(irm_shard_bring(&engine->shards, shard, &view));
    irm_blocks_job job = { view.start,
                           view.to,
                           view.weight,
                           (int32_t) shard.count,
                           (uint32_t) shard.links,
                           memory->z[mode] + shard.first,
                           memory->z[1 - mode],
                           engine->k[1 - mode],
                           own_step,
                           other_step,
                           1,
                           memory->links };
    if (job.links)
      irm_count_links<<<(unsigned) ((shard.links + BLOCK_LINKS - 1) / BLOCK_LINKS), 256, shared, stream>>>(job,
                                                                                                           shared != 0);
    job.start = view.missing_start;
    job.to = view.missing_to;
    job.weight = NULL;
    job.links = (uint32_t) shard.missing_links;
    job.by = -1;
    job.cells = (u64 *) memory->pairs;
    if (job.links)
      irm_count_links<<<(unsigned) ((shard.missing_links + BLOCK_LINKS - 1) / BLOCK_LINKS), 256, shared, stream>>>(
          job, shared != 0);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(stream));
    WEFT_TRY(weft_poll(ctx, done_work, total));
  }
  if (engine->parts > 1) WEFT_TRY(weft_device_join_counts(&engine->mem, memory->links, (size_t) cells));
  if (engine->parts > 1 && missing)
    WEFT_TRY(weft_device_join_counts(&engine->mem, (u64 *) memory->pairs, (size_t) cells));
done:
  return st;
}

/* Renames labels and sizes as state->place says, when `rename`, and counts the blocks on the device. */
static weft_status count(weft_ctx *ctx, irm_engine *engine, irm_state *state, int rename, double done_work,
                         double total)
{
  weft_status st = WEFT_OK;
  cudaStream_t stream = engine->mem.stream;
  chain_memory *memory = &engine->chains[state->index];
  for (int mode = 0; mode < 2 && rename; mode++) {
    int64_t *renamed = engine->numbers_host; /* k words, for sizes */
    for (int32_t l = 0; l < engine->k[mode]; l++) engine->labels_host[l] = (uint16_t) state->place[mode][l];
    for (int32_t l = 0; l < engine->k[mode]; l++) renamed[state->place[mode][l]] = state->sizes[mode][l];
    memcpy(state->sizes[mode], renamed, (size_t) engine->k[mode] * sizeof(int64_t));
    WEFT_CUDA(cudaMemcpyAsync(engine->names[mode], engine->labels_host, (size_t) engine->k[mode] * sizeof(uint16_t),
                              cudaMemcpyHostToDevice, stream));
    WEFT_CUDA(cudaMemcpyAsync(memory->sizes[mode], state->sizes[mode], (size_t) engine->k[mode] * sizeof(int64_t),
                              cudaMemcpyHostToDevice, stream));
    WEFT_CUDA(cudaStreamSynchronize(stream));
    irm_rename<<<(unsigned) std::min<int64_t>(1024, (engine->graph->n[mode] + 255) / 256), 256, 0, stream>>>(
        memory->z[mode], engine->graph->n[mode], engine->names[mode]);
  }
  WEFT_TRY(count_blocks(ctx, engine, state, done_work, total));
  MARK(4);
done:
  return st;
}

/* Contributions of all blocks, summed by rows in the CPU's order; also adds up the stages' times. */
static weft_status block_sums(weft_ctx *ctx, irm_engine *engine, irm_state *state, double *rows)
{
  weft_status st = WEFT_OK;
  cudaStream_t stream = engine->mem.stream;
  chain_memory *memory = &engine->chains[state->index];
  const int64_t cells = (int64_t) engine->k[0] * engine->k[1];
  float ms;
  irm_block_scores<<<(unsigned) ((cells + 127) / 128), 128, 0, stream>>>(engine->poisson, state->chain->beta[0],
                                                                         state->chain->beta[1],
                                                                         (const long long *) memory->links,
                                                                         memory->pairs, cells, engine->none);
  irm_row_sums<<<(unsigned) ((engine->k[0] + 31) / 32), 32, 0, stream>>>(engine->none, engine->k[0], engine->k[1],
                                                                         engine->sums);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(
      cudaMemcpyAsync(rows, engine->sums, (size_t) engine->k[0] * sizeof(double), cudaMemcpyDeviceToHost, stream));
  MARK(5);
  WEFT_CUDA(cudaStreamSynchronize(stream));
  for (int k = 0; k < WEFT_IRM_STAGES; k++) {
    WEFT_CUDA(cudaEventElapsedTime(&ms, engine->events[k], engine->events[k + 1]));
    engine->seconds[k] += 1e-3 * ms;
  }
done:
  return st;
}

static weft_status bring_labels(weft_ctx *ctx, irm_engine *engine, const uint16_t *from, int64_t n, int32_t *to)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaMemcpyAsync(engine->labels_host, from, (size_t) n * sizeof *from, cudaMemcpyDeviceToHost,
                            engine->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(engine->mem.stream));
  for (int64_t i = 0; i < n; i++) to[i] = engine->labels_host[i];
done:
  return st;
}

static weft_status bring_numbers(weft_ctx *ctx, irm_engine *engine, const void *from, const int32_t k[2], int64_t *rows,
                                 int64_t *turned)
{
  weft_status st = WEFT_OK;
  const size_t cells = (size_t) k[0] * (size_t) k[1];
  WEFT_CUDA(cudaMemcpyAsync(rows, from, cells * sizeof(int64_t), cudaMemcpyDeviceToHost, engine->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(engine->mem.stream));
  for (int32_t l = 0; l < k[0]; l++)
    for (int32_t m = 0; m < k[1]; m++) turned[(size_t) m * k[0] + l] = rows[(size_t) l * k[1] + m];
done:
  return st;
}

static weft_status fetch(weft_ctx *ctx, irm_engine *engine, irm_state *state, int blocks)
{
  weft_status st = WEFT_OK;
  chain_memory *memory = &engine->chains[state->index];
  for (int mode = 0; mode < 2; mode++)
    WEFT_TRY(bring_labels(ctx, engine, memory->z[mode], engine->graph->n[mode], state->z[mode]));
  if (!blocks) goto done;
  WEFT_TRY(bring_numbers(ctx, engine, memory->links, engine->k, state->links[0], state->links[1]));
  WEFT_TRY(bring_numbers(ctx, engine, memory->pairs, engine->k, state->pairs[0], state->pairs[1]));
done:
  return st;
}

/* The state's labels, sizes and blocks to the device. */
static weft_status put(weft_ctx *ctx, irm_engine *engine, irm_state *state)
{
  weft_status st = WEFT_OK;
  cudaStream_t stream = engine->mem.stream;
  chain_memory *memory = &engine->chains[state->index];
  const size_t cells = (size_t) engine->k[0] * (size_t) engine->k[1];
  for (int mode = 0; mode < 2; mode++) {
    for (int64_t i = 0; i < engine->graph->n[mode]; i++) engine->labels_host[i] = (uint16_t) state->z[mode][i];
    WEFT_CUDA(cudaMemcpyAsync(memory->z[mode], engine->labels_host, (size_t) engine->graph->n[mode] * sizeof(uint16_t),
                              cudaMemcpyHostToDevice, stream));
    WEFT_CUDA(cudaMemcpyAsync(memory->sizes[mode], state->sizes[mode], (size_t) engine->k[mode] * sizeof(int64_t),
                              cudaMemcpyHostToDevice, stream));
    WEFT_CUDA(cudaStreamSynchronize(stream));
  }
  WEFT_CUDA(cudaMemcpyAsync(memory->links, state->links[0], cells * sizeof(int64_t), cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(cudaMemcpyAsync(memory->pairs, state->pairs[0], cells * sizeof(int64_t), cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream));
done:
  return st;
}

static weft_status keep(weft_ctx *ctx, irm_engine *engine, irm_state *state)
{
  weft_status st = WEFT_OK;
  chain_memory *memory = &engine->chains[state->index];
  for (int mode = 0; mode < 2; mode++)
    WEFT_CUDA(cudaMemcpyAsync(memory->best[mode], memory->z[mode], (size_t) engine->graph->n[mode] * sizeof(uint16_t),
                              cudaMemcpyDeviceToDevice, engine->mem.stream));
done:
  return st;
}

static weft_status fetch_best(weft_ctx *ctx, irm_engine *engine, irm_state *state)
{
  weft_status st = WEFT_OK;
  for (int mode = 0; mode < 2; mode++)
    WEFT_TRY(bring_labels(ctx, engine, engine->chains[state->index].best[mode], engine->graph->n[mode],
                          state->chain->best_z[mode]));
done:
  return st;
}

static void stages(irm_engine *engine, double seconds[WEFT_IRM_STAGES])
{
  memcpy(seconds, engine->seconds, sizeof engine->seconds);
}

extern "C" {
extern const weft_irm_ops weft_irm_cuda;
const weft_irm_ops weft_irm_cuda = { 1,     open_engine, close_engine, labels,     count, block_sums,
                                     fetch, put,         keep,         fetch_best, stages };
}
