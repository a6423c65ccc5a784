/* Labels drawn one node after another on the device: the collapsed sampler, and the blocked one of one-mode graphs,
 * where every label depends on all others. The arithmetic and its order are those of collapsed.c, state.c and
 * draw_one() in blocked.c, so that the labels are the CPU's.
 *
 * One block of threads does it. Its threads share the work of a node: links, and
 *
 *   collapsed   candidates x clusters of the other mode: each gain by itself, then a candidate's in the CPU's order
 *   one-mode    clusters, and links where there are fewer clusters than threads: whole numbers, in any order
 *
 * State, blocks and labels are sent for a sweep and brought back after it, since counting and split-merge are the
 * host's. A node takes 4 microseconds at least. On one H200 a sweep of 2,000 x 2,000 nodes by the collapsed sampler
 * took 25, 58 and 283 ms at 10, 50 and 150 clusters of each mode, against 5, 50 and 403 ms on one thread of its host;
 * one of a directed graph of 5,000 nodes and 100,000 links 20, 31 and 51 ms at 20, 128 and 512 clusters, against 4, 24
 * and 147. */
/* Build: exact. */
#include <algorithm>
#include <cstring>
#include "irm/cuda/serial.cuh"
#include "irm/cuda/serial_kernels.cuh"

#define SLICE_MICROSECONDS 30000.0 /* between two polls, by a rough estimate */

struct irm_serial {
  weft_device_arena *mem;
  const weft_irm_graph *graph;
  serial_lists links[2], missing[2];
  int32_t *self_weight;
  uint8_t *self_pair;
  int32_t *z[2];
  int64_t *sizes[2];
  /* collapsed */
  int32_t *active[2], *place[2], *active_count;
  int64_t *blocks_links[2], *blocks_pairs[2], *blocks_values[2]; /* the last: of real values, or NULL */
  int64_t *count[2], *pairs[2], *squares;
  double *gains, *scores;
  irm_tables tables;
  bool tables_sent;
  /* one-mode */
  int32_t width;
  double *link[2], *none[2], *base, *sums, *log_stick;
};

/* ---- open ---- */

#define SEND(to, from, count) \
  WEFT_CUDA( \
      cudaMemcpyAsync((void *) (to), from, (size_t) (count) * sizeof *(from), cudaMemcpyHostToDevice, r->mem->stream))
#define BRING(to, from, count) \
  WEFT_CUDA( \
      cudaMemcpyAsync((void *) (to), from, (size_t) (count) * sizeof *(from), cudaMemcpyDeviceToHost, r->mem->stream))

static weft_status send_lists(weft_ctx *ctx, irm_serial *r, const weft_irm_lists *from, int64_t n, int64_t count,
                              serial_lists *to)
{
  weft_status st = WEFT_OK;
  WEFT_DEVICE_TAKE(to->start, r->mem, (size_t) n + 1);
  WEFT_DEVICE_TAKE(to->to, r->mem, (size_t) count + 1);
  SEND(to->start, from->start, n + 1);
  if (count) SEND(to->to, from->to, count);
  if (!from->weight) goto done;
  WEFT_DEVICE_TAKE(to->weight, r->mem, (size_t) count + 1);
  if (count) SEND(to->weight, from->weight, count);
done:
  return st;
}

/* Room on the device for the collapsed sampler: blocks, active clusters, a node's profile, gains and tables of log
 * gamma. */
static weft_status take_collapsed(irm_serial *r, const irm_state *s)
{
  weft_status st = WEFT_OK;
  const size_t blocks = (size_t) s->k[0] * (size_t) s->k[1], most = (size_t) std::max(s->k[0], s->k[1]);
  WEFT_DEVICE_TAKE(r->active_count, r->mem, 2);
  for (int mode = 0; mode < s->modes; mode++) {
    TAKE_AT(r->active[mode], r->mem, (size_t) s->k[mode]);
    TAKE_AT(r->place[mode], r->mem, (size_t) s->k[mode]);
  }
  for (int turned = 0; turned < 2; turned++) {
    if (turned && s->links[1] == s->links[0]) {
      r->blocks_links[1] = r->blocks_links[0];
      r->blocks_pairs[1] = r->blocks_pairs[0];
      continue;
    }
    TAKE_AT(r->blocks_links[turned], r->mem, blocks);
    TAKE_AT(r->blocks_pairs[turned], r->mem, blocks);
    if (s->values[turned]) TAKE_AT(r->blocks_values[turned], r->mem, blocks);
  }
  if (s->values[0]) WEFT_DEVICE_TAKE(r->squares, r->mem, most);
  for (int d = 0; d < s->directions; d++) {
    TAKE_AT(r->count[d], r->mem, most);
    TAKE_AT(r->pairs[d], r->mem, most);
  }
  WEFT_DEVICE_TAKE(r->gains, r->mem, (blocks + most) * (size_t) s->directions);
  WEFT_DEVICE_TAKE(r->scores, r->mem, most + 1);
  r->tables = s->tables;
  WEFT_DEVICE_TAKE(r->tables.links, r->mem, (size_t) s->tables.size);
  WEFT_DEVICE_TAKE(r->tables.others, r->mem, (size_t) s->tables.size);
  WEFT_DEVICE_TAKE(r->tables.pairs, r->mem, (size_t) s->tables.size);
done:
  return st;
}

/* Room on the device for a one-mode graph's tables; what lies beyond k clusters in a row is 0. */
static weft_status take_one_mode(weft_ctx *ctx, irm_serial *r, const irm_state *s)
{
  weft_status st = WEFT_OK;
  const size_t k = (size_t) s->k[0];
  r->width = (s->k[0] + IRM_CHUNK - 1) / IRM_CHUNK * IRM_CHUNK;
  TAKE_AT(r->blocks_links[0], r->mem, k * k);
  TAKE_AT(r->blocks_pairs[0], r->mem, k * k);
  for (int d = 0; d < s->directions; d++) {
    TAKE_AT(r->link[d], r->mem, k * (size_t) r->width);
    TAKE_AT(r->none[d], r->mem, k * (size_t) r->width);
    WEFT_CUDA(cudaMemsetAsync(r->link[d], 0, k * (size_t) r->width * sizeof(double), r->mem->stream));
    WEFT_CUDA(cudaMemsetAsync(r->none[d], 0, k * (size_t) r->width * sizeof(double), r->mem->stream));
  }
  WEFT_DEVICE_TAKE(r->base, r->mem, k);
  WEFT_DEVICE_TAKE(r->sums, r->mem, (size_t) r->width);
  WEFT_DEVICE_TAKE(r->log_stick, r->mem, k);
done:
  return st;
}

/* Sends the graph and makes room for one chain, in `mem`; the record itself is the host's. */
weft_status irm_serial_open(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const irm_state *s,
                            irm_serial **out)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *g = s->graph;
  irm_serial *r;
  WEFT_TAKE0(r, host, 1);
  r->mem = mem;
  r->graph = g;
  for (int d = 0; d < (g->type == WEFT_IRM_UNDIRECTED ? 1 : 2); d++) {
    const int64_t n = g->n[s->one_mode ? 0 : d];
    WEFT_TRY(send_lists(ctx, r, &g->links[d], n, g->link_count[d], &r->links[d]));
    if (g->missing_count[0]) WEFT_TRY(send_lists(ctx, r, &g->missing[d], n, g->missing_count[d], &r->missing[d]));
  }
  if (g->self_pair) {
    WEFT_DEVICE_TAKE(r->self_weight, mem, (size_t) g->n[0]);
    WEFT_DEVICE_TAKE(r->self_pair, mem, (size_t) g->n[0]);
    SEND(r->self_weight, g->self_weight, g->n[0]);
    SEND(r->self_pair, g->self_pair, g->n[0]);
  }
  for (int mode = 0; mode < s->modes; mode++) {
    TAKE_AT(r->z[mode], mem, (size_t) g->n[mode]);
    TAKE_AT(r->sizes[mode], mem, (size_t) s->k[mode]);
  }
  if (s->model->collapsed)
    WEFT_TRY(take_collapsed(r, s));
  else
    WEFT_TRY(take_one_mode(ctx, r, s));
  *out = r;
done:
  return st;
}

template <typename Draw>
/* Runs `draw(first, last)` over slices of a mode's nodes, and polls in between. */
static weft_status in_slices(weft_ctx *ctx, irm_serial *r, const irm_state *s, int mode, double done_work, double total,
                             Draw draw)
{
  weft_status st = WEFT_OK;
  const double cells = (double) s->active_count[mode] * s->active_count[irm_other(s, mode)] * s->directions;
  const double node = 10 + (s->model->collapsed ? cells * 2e-3 : s->k[mode] * 1e-2);
  for (int64_t first = 0, last; first < s->graph->n[mode]; first = last) {
    last = irm_slice_end(&s->graph->links[mode], first, s->graph->n[mode], node, 0.02 + s->k[mode] * 2e-5,
                         SLICE_MICROSECONDS);
    draw(first, last);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(r->mem->stream));
    WEFT_TRY(weft_poll(ctx, done_work, total));
  }
done:
  return st;
}

/* Sends one chain's labels and blocks, draws all nodes in slices of some 30 ms, and brings the labels back. */
static weft_status labels_one_mode(weft_ctx *ctx, irm_serial *r, irm_state *s, double done_work, double total)
{
  weft_status st = WEFT_OK;
  const int32_t k = s->k[0];
  const int64_t cells = (int64_t) k * k;
  const size_t shared = (size_t) (r->width / IRM_CHUNK) * sizeof(irm_chunk);
  one_mode_job job = { { r->links[0], r->links[1] },
                       { r->missing[0], r->missing[1] },
                       r->self_weight,
                       r->self_pair,
                       s->directions,
                       r->graph->missing_count[0] > 0,
                       k,
                       r->width,
                       { r->link[0], r->link[1] },
                       { r->none[0], r->none[1] },
                       r->base,
                       r->sums,
                       r->z[0],
                       irm_rng(s, IRM_DRAW_ROW),
                       irm_index(s, 0),
                       0,
                       0 };
  SEND(r->z[0], s->z[0], r->graph->n[0]);
  SEND(r->sizes[0], s->sizes[0], k);
  SEND(r->log_stick, s->log_stick[0], k);
  SEND(r->blocks_links[0], s->links[0], cells);
  SEND(r->blocks_pairs[0], s->pairs[0], cells);
  draw_parameters<<<(unsigned) ((cells + 127) / 128), 128, 0, r->mem->stream>>>(irm_rng(s, IRM_DRAW_ETA),
                                                                                irm_index(s, 0), s->model->poisson,
                                                                                s->chain->beta[0], s->chain->beta[1],
                                                                                r->blocks_links[0], r->blocks_pairs[0],
                                                                                k, r->width, s->directions == 2,
                                                                                r->link[0], r->link[1], r->none[0],
                                                                                r->none[1]);
  make_base<<<(unsigned) ((k + 63) / 64), 64, 0, r->mem->stream>>>(k, r->width, s->directions, r->none[0], r->none[1],
                                                                   r->sizes[0], r->log_stick, r->base);
  WEFT_CUDA(cudaGetLastError());
  WEFT_TRY(in_slices(ctx, r, s, 0, done_work, total, [&](int64_t first, int64_t last) {
    job.first = first;
    job.last = last;
    draw_one_mode<<<1, THREADS, shared, r->mem->stream>>>(job);
  }));
  BRING(s->z[0], r->z[0], r->graph->n[0]);
  WEFT_CUDA(cudaStreamSynchronize(r->mem->stream));
  memset(s->sizes[0], 0, (size_t) k * sizeof(int64_t));
  for (int64_t i = 0; i < r->graph->n[0]; i++) s->sizes[0][s->z[0][i]]++;
done:
  return st;
}

/* Tables of log Γ are the host's, and change with β only. */
static weft_status send_tables(weft_ctx *ctx, irm_serial *r, const irm_tables *t)
{
  weft_status st = WEFT_OK;
  if (r->tables_sent && memcmp(t->beta, r->tables.beta, sizeof t->beta) == 0) return st;
  SEND(r->tables.pairs, t->pairs, t->size);
  if (t->unit == 0) SEND(r->tables.links, t->links, t->size);
  if (t->unit == 0 && !t->poisson) SEND(r->tables.others, t->others, t->size);
  memcpy(r->tables.beta, t->beta, sizeof t->beta);
  r->tables.base = t->base;
  r->tables_sent = true;
done:
  return st;
}

/* Sends one chain's state, draws all nodes of each mode, and brings labels, sizes, active clusters and blocks back. */
static weft_status labels_collapsed(weft_ctx *ctx, irm_serial *r, irm_state *s, double done_work, double total)
{
  weft_status st = WEFT_OK;
  const int64_t cells = (int64_t) s->k[0] * s->k[1];
  const bool symmetric = s->links[0] == s->links[1];
  WEFT_TRY(send_tables(ctx, r, &s->tables));
  for (int mode = 0; mode < s->modes; mode++) {
    SEND(r->z[mode], s->z[mode], s->graph->n[mode]);
    SEND(r->sizes[mode], s->sizes[mode], s->k[mode]);
    SEND(r->active[mode], s->active[mode], s->k[mode]);
    SEND(r->place[mode], s->place[mode], s->k[mode]);
  }
  SEND(r->active_count, s->active_count, 2);
  for (int turned = 0; turned < (symmetric ? 1 : 2); turned++) {
    SEND(r->blocks_links[turned], s->links[turned], cells);
    SEND(r->blocks_pairs[turned], s->pairs[turned], cells);
    if (s->values[turned]) SEND(r->blocks_values[turned], s->values[turned], cells);
  }
  for (int mode = 0; mode < s->modes; mode++) {
    const int other = irm_other(s, mode);
    collapsed_job job;
    memset((void *) &job, 0, sizeof job);
    for (int d = 0; d < s->directions; d++) {
      const int near = s->one_mode ? d : mode;
      job.links[d] = r->links[near];
      job.missing[d] = r->missing[near];
      job.near_links[d] = r->blocks_links[near];
      job.near_pairs[d] = r->blocks_pairs[near];
      job.far_links[d] = r->blocks_links[1 - near];
      job.far_pairs[d] = r->blocks_pairs[1 - near];
      job.count[d] = r->count[d];
      job.pairs[d] = r->pairs[d];
    }
    job.near_values = r->blocks_values[mode];
    job.far_values = r->blocks_values[1 - mode];
    job.squares = r->squares;
    job.self_weight = r->self_weight;
    job.self_pair = r->self_pair;
    job.one_mode = s->one_mode;
    job.directions = s->directions;
    job.any_missing = s->graph->missing_count[0] > 0;
    job.symmetric = symmetric;
    job.k = s->k[mode];
    job.k_other = s->k[s->one_mode ? 0 : 1 - mode];
    job.z = r->z[mode];
    job.z_other = r->z[other];
    job.sizes = r->sizes[mode];
    job.sizes_other = r->sizes[other];
    job.active = r->active[mode];
    job.active_other = r->active[other];
    job.place = r->place[mode];
    job.active_count = r->active_count + mode;
    job.active_count_other = r->active_count + other;
    job.gains = r->gains;
    job.scores = r->scores;
    job.alpha = s->chain->alpha[mode];
    job.tables = r->tables;
    job.rng = irm_rng(s, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL);
    job.index = irm_index(s, 0);
    WEFT_TRY(in_slices(ctx, r, s, mode, done_work, total, [&](int64_t first, int64_t last) {
      job.first = first;
      job.last = last;
      draw_collapsed<<<1, THREADS, 0, r->mem->stream>>>(job);
    }));
    BRING(s->z[mode], r->z[mode], s->graph->n[mode]);
    BRING(s->sizes[mode], r->sizes[mode], s->k[mode]);
    BRING(s->active[mode], r->active[mode], s->k[mode]);
    BRING(s->place[mode], r->place[mode], s->k[mode]);
    BRING(&s->active_count[mode], r->active_count + mode, 1);
  }
  for (int turned = 0; turned < (symmetric ? 1 : 2); turned++) {
    BRING(s->links[turned], r->blocks_links[turned], cells);
    BRING(s->pairs[turned], r->blocks_pairs[turned], cells);
    if (s->values[turned]) BRING(s->values[turned], r->blocks_values[turned], cells);
  }
  WEFT_CUDA(cudaStreamSynchronize(r->mem->stream));
done:
  return st;
}

weft_status irm_serial_labels(weft_ctx *ctx, irm_serial *r, irm_state *s, double done_work, double total)
{
  return s->model->collapsed ? labels_collapsed(ctx, r, s, done_work, total)
                             : labels_one_mode(ctx, r, s, done_work, total);
}
