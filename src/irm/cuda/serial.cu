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
  WEFT_CUDA(cudaMemcpyAsync((void *) (to), from, (size_t) (count) * sizeof *(from), cudaMemcpyHostToDevice, \
                            serial->mem->stream))
#define BRING(to, from, count) \
  WEFT_CUDA(cudaMemcpyAsync((void *) (to), from, (size_t) (count) * sizeof *(from), cudaMemcpyDeviceToHost, \
                            serial->mem->stream))

static weft_status send_lists(weft_ctx *ctx, irm_serial *serial, const weft_irm_lists *from, int64_t n, int64_t count,
                              serial_lists *to)
{
  weft_status st = WEFT_OK;
  WEFT_DEVICE_TAKE(to->start, serial->mem, (size_t) n + 1);
  WEFT_DEVICE_TAKE(to->to, serial->mem, (size_t) count + 1);
  SEND(to->start, from->start, n + 1);
  if (count) SEND(to->to, from->to, count);
  if (!from->weight) goto done;
  WEFT_DEVICE_TAKE(to->weight, serial->mem, (size_t) count + 1);
  if (count) SEND(to->weight, from->weight, count);
done:
  return st;
}

/* Room on the device for the collapsed sampler: blocks, active clusters, a node's profile, gains and tables of log
 * gamma. */
static weft_status take_collapsed(irm_serial *serial, const irm_state *state)
{
  weft_status st = WEFT_OK;
  const size_t blocks = (size_t) state->k[0] * (size_t) state->k[1], most = (size_t) std::max(state->k[0], state->k[1]);
  WEFT_DEVICE_TAKE(serial->active_count, serial->mem, 2);
  for (int mode = 0; mode < state->modes; mode++) {
    TAKE_AT(serial->active[mode], serial->mem, (size_t) state->k[mode]);
    TAKE_AT(serial->place[mode], serial->mem, (size_t) state->k[mode]);
  }
  for (int turned = 0; turned < 2; turned++) {
    if (turned && state->links[1] == state->links[0]) {
      serial->blocks_links[1] = serial->blocks_links[0];
      serial->blocks_pairs[1] = serial->blocks_pairs[0];
      continue;
    }
    TAKE_AT(serial->blocks_links[turned], serial->mem, blocks);
    TAKE_AT(serial->blocks_pairs[turned], serial->mem, blocks);
    if (state->values[turned]) TAKE_AT(serial->blocks_values[turned], serial->mem, blocks);
  }
  if (state->values[0]) WEFT_DEVICE_TAKE(serial->squares, serial->mem, most);
  for (int direction = 0; direction < state->directions; direction++) {
    TAKE_AT(serial->count[direction], serial->mem, most);
    TAKE_AT(serial->pairs[direction], serial->mem, most);
  }
  WEFT_DEVICE_TAKE(serial->gains, serial->mem, (blocks + most) * (size_t) state->directions);
  WEFT_DEVICE_TAKE(serial->scores, serial->mem, most + 1);
  serial->tables = state->tables;
  WEFT_DEVICE_TAKE(serial->tables.links, serial->mem, (size_t) state->tables.size);
  WEFT_DEVICE_TAKE(serial->tables.others, serial->mem, (size_t) state->tables.size);
  WEFT_DEVICE_TAKE(serial->tables.pairs, serial->mem, (size_t) state->tables.size);
done:
  return st;
}

/* Room on the device for a one-mode graph's tables; what lies beyond k clusters in a row is 0. */
static weft_status take_one_mode(weft_ctx *ctx, irm_serial *serial, const irm_state *state)
{
  weft_status st = WEFT_OK;
  const size_t k = (size_t) state->k[0];
  serial->width = (state->k[0] + IRM_CHUNK - 1) / IRM_CHUNK * IRM_CHUNK;
  TAKE_AT(serial->blocks_links[0], serial->mem, k * k);
  TAKE_AT(serial->blocks_pairs[0], serial->mem, k * k);
  for (int direction = 0; direction < state->directions; direction++) {
    TAKE_AT(serial->link[direction], serial->mem, k * (size_t) serial->width);
    TAKE_AT(serial->none[direction], serial->mem, k * (size_t) serial->width);
    WEFT_CUDA(
        cudaMemsetAsync(serial->link[direction], 0, k * (size_t) serial->width * sizeof(double), serial->mem->stream));
    WEFT_CUDA(
        cudaMemsetAsync(serial->none[direction], 0, k * (size_t) serial->width * sizeof(double), serial->mem->stream));
  }
  WEFT_DEVICE_TAKE(serial->base, serial->mem, k);
  WEFT_DEVICE_TAKE(serial->sums, serial->mem, (size_t) serial->width);
  WEFT_DEVICE_TAKE(serial->log_stick, serial->mem, k);
done:
  return st;
}

/* Sends the graph and makes room for one chain, in `mem`; the record itself is the host's. */
weft_status irm_serial_open(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const irm_state *state,
                            irm_serial **out)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *graph = state->graph;
  irm_serial *serial;
  WEFT_TAKE0(serial, host, 1);
  serial->mem = mem;
  serial->graph = graph;
  for (int direction = 0; direction < (graph->type == WEFT_IRM_UNDIRECTED ? 1 : 2); direction++) {
    const int64_t n = graph->n[state->one_mode ? 0 : direction];
    WEFT_TRY(
        send_lists(ctx, serial, &graph->links[direction], n, graph->link_count[direction], &serial->links[direction]));
    if (graph->missing_count[0])
      WEFT_TRY(send_lists(ctx, serial, &graph->missing[direction], n, graph->missing_count[direction],
                          &serial->missing[direction]));
  }
  if (graph->self_pair) {
    WEFT_DEVICE_TAKE(serial->self_weight, mem, (size_t) graph->n[0]);
    WEFT_DEVICE_TAKE(serial->self_pair, mem, (size_t) graph->n[0]);
    SEND(serial->self_weight, graph->self_weight, graph->n[0]);
    SEND(serial->self_pair, graph->self_pair, graph->n[0]);
  }
  for (int mode = 0; mode < state->modes; mode++) {
    TAKE_AT(serial->z[mode], mem, (size_t) graph->n[mode]);
    TAKE_AT(serial->sizes[mode], mem, (size_t) state->k[mode]);
  }
  if (state->model->collapsed)
    WEFT_TRY(take_collapsed(serial, state));
  else
    WEFT_TRY(take_one_mode(ctx, serial, state));
  *out = serial;
done:
  return st;
}

template <typename Draw>
/* Runs `draw(first, last)` over slices of a mode's nodes, and polls in between. */
static weft_status in_slices(weft_ctx *ctx, irm_serial *serial, const irm_state *state, int mode, double done_work,
                             double total, Draw draw)
{
  weft_status st = WEFT_OK;
  const double cells =
      (double) state->active_count[mode] * state->active_count[irm_other(state, mode)] * state->directions;
  const double node = 10 + (state->model->collapsed ? cells * 2e-3 : state->k[mode] * 1e-2);
  for (int64_t first = 0, last; first < state->graph->n[mode]; first = last) {
    last = irm_slice_end(&state->graph->links[mode], first, state->graph->n[mode], node, 0.02 + state->k[mode] * 2e-5,
                         SLICE_MICROSECONDS);
    draw(first, last);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(serial->mem->stream));
    WEFT_TRY(weft_poll(ctx, done_work, total));
  }
done:
  return st;
}

/* Sends one chain's labels and blocks, draws all nodes in slices of some 30 ms, and brings the labels back. */
static weft_status labels_one_mode(weft_ctx *ctx, irm_serial *serial, irm_state *state, double done_work, double total)
{
  weft_status st = WEFT_OK;
  const int32_t k = state->k[0];
  const int64_t cells = (int64_t) k * k;
  const size_t shared = (size_t) (serial->width / IRM_CHUNK) * sizeof(irm_chunk);
  one_mode_job job = { { serial->links[0], serial->links[1] },
                       { serial->missing[0], serial->missing[1] },
                       serial->self_weight,
                       serial->self_pair,
                       state->directions,
                       serial->graph->missing_count[0] > 0,
                       k,
                       serial->width,
                       { serial->link[0], serial->link[1] },
                       { serial->none[0], serial->none[1] },
                       serial->base,
                       serial->sums,
                       serial->z[0],
                       irm_rng(state, IRM_DRAW_ROW),
                       irm_index(state, 0),
                       0,
                       0 };
  SEND(serial->z[0], state->z[0], serial->graph->n[0]);
  SEND(serial->sizes[0], state->sizes[0], k);
  SEND(serial->log_stick, state->log_stick[0], k);
  SEND(serial->blocks_links[0], state->links[0], cells);
  SEND(serial->blocks_pairs[0], state->pairs[0], cells);
  draw_parameters<<<(unsigned) ((cells + 127) / 128), 128, 0, serial->mem->stream>>>(
      irm_rng(state, IRM_DRAW_ETA), irm_index(state, 0), state->model->poisson, state->chain->beta[0],
      state->chain->beta[1], serial->blocks_links[0], serial->blocks_pairs[0], k, serial->width, state->directions == 2,
      serial->link[0], serial->link[1], serial->none[0], serial->none[1]);
  make_base<<<(unsigned) ((k + 63) / 64), 64, 0, serial->mem->stream>>>(k, serial->width, state->directions,
                                                                        serial->none[0], serial->none[1],
                                                                        serial->sizes[0], serial->log_stick,
                                                                        serial->base);
  WEFT_CUDA(cudaGetLastError());
  WEFT_TRY(in_slices(ctx, serial, state, 0, done_work, total, [&](int64_t first, int64_t last) {
    job.first = first;
    job.last = last;
    draw_one_mode<<<1, THREADS, shared, serial->mem->stream>>>(job);
  }));
  BRING(state->z[0], serial->z[0], serial->graph->n[0]);
  WEFT_CUDA(cudaStreamSynchronize(serial->mem->stream));
  memset(state->sizes[0], 0, (size_t) k * sizeof(int64_t));
  for (int64_t i = 0; i < serial->graph->n[0]; i++) state->sizes[0][state->z[0][i]]++;
done:
  return st;
}

/* Tables of log Γ are the host's, and change with β only. */
static weft_status send_tables(weft_ctx *ctx, irm_serial *serial, const irm_tables *tables)
{
  weft_status st = WEFT_OK;
  if (serial->tables_sent && memcmp(tables->beta, serial->tables.beta, sizeof tables->beta) == 0) return st;
  SEND(serial->tables.pairs, tables->pairs, tables->size);
  if (tables->unit == 0) SEND(serial->tables.links, tables->links, tables->size);
  if (tables->unit == 0 && !tables->poisson) SEND(serial->tables.others, tables->others, tables->size);
  memcpy(serial->tables.beta, tables->beta, sizeof tables->beta);
  serial->tables.base = tables->base;
  serial->tables_sent = true;
done:
  return st;
}

/* Sends one chain's state, draws all nodes of each mode, and brings labels, sizes, active clusters and blocks back. */
static weft_status labels_collapsed(weft_ctx *ctx, irm_serial *serial, irm_state *state, double done_work, double total)
{
  weft_status st = WEFT_OK;
  const int64_t cells = (int64_t) state->k[0] * state->k[1];
  const bool symmetric = state->links[0] == state->links[1];
  WEFT_TRY(send_tables(ctx, serial, &state->tables));
  for (int mode = 0; mode < state->modes; mode++) {
    SEND(serial->z[mode], state->z[mode], state->graph->n[mode]);
    SEND(serial->sizes[mode], state->sizes[mode], state->k[mode]);
    SEND(serial->active[mode], state->active[mode], state->k[mode]);
    SEND(serial->place[mode], state->place[mode], state->k[mode]);
  }
  SEND(serial->active_count, state->active_count, 2);
  for (int turned = 0; turned < (symmetric ? 1 : 2); turned++) {
    SEND(serial->blocks_links[turned], state->links[turned], cells);
    SEND(serial->blocks_pairs[turned], state->pairs[turned], cells);
    if (state->values[turned]) SEND(serial->blocks_values[turned], state->values[turned], cells);
  }
  for (int mode = 0; mode < state->modes; mode++) {
    const int other = irm_other(state, mode);
    collapsed_job job;
    memset((void *) &job, 0, sizeof job);
    for (int direction = 0; direction < state->directions; direction++) {
      const int near = state->one_mode ? direction : mode;
      job.links[direction] = serial->links[near];
      job.missing[direction] = serial->missing[near];
      job.near_links[direction] = serial->blocks_links[near];
      job.near_pairs[direction] = serial->blocks_pairs[near];
      job.far_links[direction] = serial->blocks_links[1 - near];
      job.far_pairs[direction] = serial->blocks_pairs[1 - near];
      job.count[direction] = serial->count[direction];
      job.pairs[direction] = serial->pairs[direction];
    }
    job.near_values = serial->blocks_values[mode];
    job.far_values = serial->blocks_values[1 - mode];
    job.squares = serial->squares;
    job.self_weight = serial->self_weight;
    job.self_pair = serial->self_pair;
    job.one_mode = state->one_mode;
    job.directions = state->directions;
    job.any_missing = state->graph->missing_count[0] > 0;
    job.symmetric = symmetric;
    job.k = state->k[mode];
    job.k_other = state->k[state->one_mode ? 0 : 1 - mode];
    job.z = serial->z[mode];
    job.z_other = serial->z[other];
    job.sizes = serial->sizes[mode];
    job.sizes_other = serial->sizes[other];
    job.active = serial->active[mode];
    job.active_other = serial->active[other];
    job.place = serial->place[mode];
    job.active_count = serial->active_count + mode;
    job.active_count_other = serial->active_count + other;
    job.gains = serial->gains;
    job.scores = serial->scores;
    job.alpha = state->chain->alpha[mode];
    job.tables = serial->tables;
    job.rng = irm_rng(state, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL);
    job.index = irm_index(state, 0);
    WEFT_TRY(in_slices(ctx, serial, state, mode, done_work, total, [&](int64_t first, int64_t last) {
      job.first = first;
      job.last = last;
      draw_collapsed<<<1, THREADS, 0, serial->mem->stream>>>(job);
    }));
    BRING(state->z[mode], serial->z[mode], state->graph->n[mode]);
    BRING(state->sizes[mode], serial->sizes[mode], state->k[mode]);
    BRING(state->active[mode], serial->active[mode], state->k[mode]);
    BRING(state->place[mode], serial->place[mode], state->k[mode]);
    BRING(&state->active_count[mode], serial->active_count + mode, 1);
  }
  for (int turned = 0; turned < (symmetric ? 1 : 2); turned++) {
    BRING(state->links[turned], serial->blocks_links[turned], cells);
    BRING(state->pairs[turned], serial->blocks_pairs[turned], cells);
    if (state->values[turned]) BRING(state->values[turned], serial->blocks_values[turned], cells);
  }
  WEFT_CUDA(cudaStreamSynchronize(serial->mem->stream));
done:
  return st;
}

weft_status irm_serial_labels(weft_ctx *ctx, irm_serial *serial, irm_state *state, double done_work, double total)
{
  return state->model->collapsed ? labels_collapsed(ctx, serial, state, done_work, total)
                                 : labels_one_mode(ctx, serial, state, done_work, total);
}
