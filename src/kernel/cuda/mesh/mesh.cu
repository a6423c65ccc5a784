/* Sums over a mesh on a device.
 *
 * Points are sorted by the node at which their windows begin, so that those of a cell lie together; a run of them is a
 * warp's. To spread, its lanes keep the sums for blocks of 8 nodes per dimension in registers, and add them to the
 * nodes where the next cell begins. The nodes are whole numbers, in units of at most 2^-60 of the sum of weights: their
 * sums are the same in whatever order warps come. To gather, a lane has a query, and the warp a copy of the cell's
 * nodes. Windows of more than 8 nodes are taken in blocks of 8, one after another. */
#include <cub/device/device_radix_sort.cuh>
#include "kernel/cuda/mesh/mesh.cuh"

#define WARPS 4             /* of a block */
#define BLOCK 8             /* nodes per dimension that a warp has at once */
#define ROW (3 * BLOCK + 1) /* numbers of a point's windows in shared memory; odd, so that lanes do not collide */
#define FULL ~0u
#define AT_ONCE ((int64_t) 1 << 27) /* points of a launch, by blocks that their windows have: some 50 ms */

/* Strides and counts are of nodes on the device: windows end on whole blocks there. */
struct mesh_place {
  int cells[3], count[3];
  int64_t stride[3], nodes;
  double least[3], per_node;
  uint32_t nowhere; /* the number of cells: what a point beyond the mesh has for a cell */
};

struct mesh_window {
  int degree, lanes;
  double piece[(WEFT_MESH_DEGREE + 1) * WEFT_MESH_WIDTH];
};

/* On the device; coordinate j of point i is x[i * point + j * dimension]. */
struct mesh_points {
  const double *x;
  int64_t n, point, dimension;
};

struct mesh_sorted {
  uint32_t *cell, *order; /* in the order of the cells */
  uint32_t *cell_other, *order_other;
  unsigned char *scratch;
  size_t scratch_bytes, room; /* room: points */
};

struct mesh_run {
  weft_ctx *ctx;
  weft_device_arena *mem;
  const weft_mesh *mesh;
  mesh_place place;
  mesh_window window;
  unsigned long long *node; /* m * place.nodes: whole numbers, later replaced by doubles */
  double *other;            /* place.nodes */
  mesh_sorted sorted;
  double flushes; /* to a node, at most */
};

/* ---- windows ---- */

__device__ static inline double place_of(const mesh_place &place, const mesh_points &p, int64_t i, int j)
{
  const int64_t k = i * p.point + j * p.dimension;
  return (p.x[k] - place.least[j]) * place.per_node;
}

/* Eight values of the window from lane `first` on, of a point at `at`. */
__device__ static inline void window_of(const mesh_window &w, double at, int first, double *value)
{
  const double *piece = w.piece + w.degree * w.lanes + first;
  const double y = 2 * (at - (double) (int64_t) at) - 1;
#pragma unroll
  for (int l = 0; l < BLOCK; l++) value[l] = piece[l];
  for (int k = w.degree - 1; k >= 0; k--) {
    piece -= w.lanes;
#pragma unroll
    for (int l = 0; l < BLOCK; l++) value[l] = fma(value[l], y, piece[l]);
  }
}

__device__ static inline int64_t node_of(const mesh_place &place, uint32_t cell, int block, int d)
{
  int64_t node = 0;
  for (int j = 0; j < d; j++) {
    node += ((int64_t) (cell % (uint32_t) place.cells[j]) + BLOCK * (block >> j & 1)) * place.stride[j];
    cell /= (uint32_t) place.cells[j];
  }
  return node;
}

/* Leaves of points first .. end - 1 those of this warp: `run` of them, fewer at the end, or none. */
__device__ static inline void take_run(int64_t *first, int64_t *end, int run)
{
  *first += (blockIdx.x * (int64_t) WARPS + (threadIdx.x >> 5)) * run;
  if (*end - *first > run) *end = *first + run;
}

/* ---- cells ---- */

__global__ void find_mesh_cells(const __grid_constant__ mesh_place place, const __grid_constant__ mesh_points p, int d,
                                uint32_t *cell, uint32_t *order)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < p.n; i += (int64_t) gridDim.x * blockDim.x) {
    uint32_t c = 0;
    bool on = true;
    for (int j = d - 1; j >= 0; j--) {
      const double at = place_of(place, p, i, j);
      on = on && at >= 0 && at < (double) place.cells[j];
      if (on) c = c * (uint32_t) place.cells[j] + (uint32_t) at;
    }
    cell[i] = on ? c : place.nowhere, order[i] = (uint32_t) i;
  }
}

/* ---- spreading ---- */

/* What a lane keeps: node (lane % 8) of the first dimension, 2 (lane / 8) and the next of the second, all eight of the
 * third. Points in one or two dimensions have one node in those that they lack. */
template <int D> struct spread_sums {
  static const int rows = D > 1 ? 2 : 1, planes = D > 2 ? BLOCK : 1;
  double sum[rows][planes];
};

/* Adds a warp's sums to the nodes where the cell's window begins, as whole numbers of 1 / scale, and clears them.
 * Nothing is added for a cell beyond the mesh. */
template <int D>
__device__ static inline void flush(const mesh_place &place, uint32_t cell, int block, double scale, spread_sums<D> *s,
                                    unsigned long long *node)
{
  const int lane = threadIdx.x & 31, row = 2 * (lane >> 3);
  if (cell < place.nowhere && (D > 1 || lane < BLOCK)) {
    unsigned long long *at = node + node_of(place, cell, block, D) + (lane & 7) + (D > 1 ? row * place.stride[1] : 0);
#pragma unroll
    for (int b = 0; b < s->rows; b++)
#pragma unroll
      for (int c = 0; c < s->planes; c++) {
        const long long units = __double2ll_rn(s->sum[b][c] * scale);
        if (units)
          atomicAdd(at + (b ? place.stride[1] : 0) + (c ? c * place.stride[2] : 0), (unsigned long long) units);
      }
  }
#pragma unroll
  for (int b = 0; b < s->rows; b++)
#pragma unroll
    for (int c = 0; c < s->planes; c++) s->sum[b][c] = 0;
}

/* A warp's run of sorted references. Its lanes evaluate the windows of 32 points, then all lanes add them one by one to
 * sums in registers, which are flushed to the nodes where the next cell begins. */
template <int D>
__global__ void __launch_bounds__(32 * WARPS)
    spread_run(const __grid_constant__ mesh_place place, const __grid_constant__ mesh_window w, const mesh_points p,
               const uint32_t *cells, const uint32_t *order, int64_t first, int64_t end, int run, const double *weights,
               int64_t stride, double scale, unsigned long long *node)
{
  __shared__ double windows[WARPS][32][ROW];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, block = blockIdx.y, row = 2 * (lane >> 3);
  uint32_t cell = place.nowhere;
  spread_sums<D> s = { { { 0 } } };
  take_run(&first, &end, run);
  for (int64_t from = first; from < end; from += 32) {
    const int64_t i = from + lane;
    const uint32_t own = i < end ? cells[i] : place.nowhere;
    const int count = end - from < 32 ? (int) (end - from) : 32;
    __syncwarp();
    if (own < place.nowhere) {
      const int64_t k = order[i];
      double *to = windows[warp][lane], value[BLOCK];
      const double weight = weights ? weights[k * stride] : 1;
      for (int j = 0; j < D; j++) {
        window_of(w, place_of(place, p, k, j), BLOCK * (block >> j & 1), value);
#pragma unroll
        for (int l = 0; l < BLOCK; l++) to[j * BLOCK + l] = j ? value[l] : weight * value[l];
      }
    }
    __syncwarp();
    for (int q = 0; q < count; q++) {
      const uint32_t now = __shfl_sync(FULL, own, q);
      if (now != cell) {
        flush<D>(place, cell, block, scale, &s, node);
        cell = now;
      }
      if (now >= place.nowhere) break; /* these come last */
      const double *at = windows[warp][q], by_column = at[lane & 7];
#pragma unroll
      for (int b = 0; b < s.rows; b++) {
        const double by_row = D > 1 ? by_column * at[BLOCK + row + b] : by_column;
#pragma unroll
        for (int c = 0; c < s.planes; c++) s.sum[b][c] += D > 2 ? by_row * at[2 * BLOCK + c] : by_row;
      }
    }
  }
  flush<D>(place, cell, block, scale, &s, node);
}

/* ---- convolving ---- */

struct mesh_taps {
  int taps;
  double tap[2 * WEFT_MESH_TAPS + 1];
};

/* Along one dimension. `unit`: of the numbers. */
template <typename Number>
__global__ void convolve(const Number *in, double unit, const __grid_constant__ mesh_taps taps, int64_t nodes,
                         int64_t stride, int count, double *out)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < nodes; i += (int64_t) gridDim.x * blockDim.x) {
    const int at = (int) (i / stride % count);
    double sum = 0;
    for (int k = -taps.taps; k <= taps.taps; k++)
      if ((unsigned) (at + k) < (unsigned) count) sum += taps.tap[k + taps.taps] * (double) in[i + k * stride];
    out[i] = sum * unit;
  }
}

/* ---- gathering ---- */

template <int D> __device__ static inline double sum_block(const double *node, const double (*window)[BLOCK])
{
  double total = 0;
#pragma unroll
  for (int c = 0; c < (D > 2 ? BLOCK : 1); c++) {
    double of_plane = 0;
#pragma unroll
    for (int b = 0; b < (D > 1 ? BLOCK : 1); b++) {
      double of_row = 0;
#pragma unroll
      for (int a = 0; a < BLOCK; a++) of_row += window[0][a] * node[(c * BLOCK + b) * BLOCK + a];
      of_plane += D > 1 ? window[D > 1 ? 1 : 0][b] * of_row : of_row;
    }
    total += D > 2 ? window[D - 1][c] * of_plane : of_plane;
  }
  return total;
}

/* A warp's run of sorted queries: out[k] = the sum of query k. A lane has a query; the warp copies the nodes of a
 * cell's window to shared memory once for all queries of that cell. */
template <int D>
__global__ void __launch_bounds__(32 * WARPS)
    gather_run(const __grid_constant__ mesh_place place, const __grid_constant__ mesh_window w, const mesh_points p,
               const uint32_t *cells, const uint32_t *order, int64_t first, int64_t end, int run, int blocks,
               const double *node, double *out)
{
  constexpr int size = D > 2 ? BLOCK * BLOCK * BLOCK : D > 1 ? BLOCK * BLOCK : BLOCK;
  __shared__ __align__(16) double copies[WARPS][size];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  double *copy = copies[warp];
  uint32_t copied = place.nowhere;
  int copied_block = 0;
  take_run(&first, &end, run);
  for (int64_t from = first; from < end; from += 32) {
    const int64_t i = from + lane;
    const uint32_t own = i < end ? cells[i] : place.nowhere;
    const int64_t k = i < end ? order[i] : 0;
    double at[D], total = 0;
    for (int j = 0; j < D; j++) at[j] = own < place.nowhere ? place_of(place, p, k, j) : 0;
    for (int block = 0; block < blocks; block++) {
      double window[D][BLOCK];
#pragma unroll
      for (int j = 0; j < D; j++) window_of(w, at[j], BLOCK * (block >> j & 1), window[j]);
      unsigned left = __ballot_sync(FULL, own < place.nowhere);
      while (left) {
        const uint32_t cell = __shfl_sync(FULL, own, __ffs(left) - 1);
        if (cell != copied || block != copied_block) {
          const int64_t begin = node_of(place, cell, block, D);
          __syncwarp();
          for (int e = lane; e < size; e += 32)
            copy[e] = node[begin + (e & 7) + (D > 1 ? (e >> 3 & 7) * place.stride[1] : 0) +
                           (D > 2 ? (e >> 6) * place.stride[2] : 0)];
          __syncwarp();
          copied = cell, copied_block = block;
        }
        if (own == cell) total += sum_block<D>(copy, window);
        left &= ~__ballot_sync(FULL, own == cell);
      }
    }
    if (i < end) out[k] = total;
  }
}

/* ---- host ---- */

/* Weights are counted in 2^-exponent, so that their sum is less than 2^61. */
static int exponent_of(double total)
{
  int e = 0;
  (void) frexp(total, &e);
  return 61 - (e < -960 ? -960 : e);
}

/* Points of a warp: more if there are many points, so that their sums are added to the nodes less often. */
static int run_of(int64_t n) { return n < 1 << 24 ? 256 : n < 1 << 28 ? 1024 : 4096; }

static int blocks_of(const mesh_run *run) { return run->window.lanes > BLOCK ? 1 << run->mesh->d : 1; }

/* The mesh as the device holds it: windows are filled up to whole blocks of 8 nodes, so that rows are longer. */
static void place_there(const weft_mesh *mesh, mesh_place *place)
{
  const weft_mesh_scheme *scheme = mesh->scheme;
  double cells = 1;
  memset(place, 0, sizeof *place);
  place->nodes = 1, place->per_node = mesh->per_node;
  for (size_t j = 0; j < mesh->d; j++) {
    place->cells[j] = (int) mesh->count[j] - scheme->width + 1;
    place->count[j] = place->cells[j] + scheme->lanes - 1;
    place->least[j] = mesh->least[j];
    place->stride[j] = place->nodes;
    place->nodes *= place->count[j];
    cells *= place->cells[j];
  }
  place->nowhere = (uint32_t) cells; /* fewer than 2^32: WEFT_MESH_MAX_NODES */
}

static double bytes_of_point(void) { return 4 * sizeof(uint32_t) + 1; }

static double bytes_of_mesh(const weft_mesh *mesh)
{
  mesh_place place;
  place_there(mesh, &place);
  return ((double) mesh->m + 1) * (double) place.nodes * sizeof(double) + 16e6;
}

/* Keys of the points beside a cell number: `nowhere` is one of them. */
static int bits_of(const mesh_run *run)
{
  int bits = 1;
  while (bits < 32 && run->place.nowhere >> bits) bits++;
  return bits;
}

/* Takes the device memory of a run: nodes, which begin at 0, and room for `room` sorted points. All of it belongs to
 * mem. */
static weft_status begin_run(mesh_run *run, weft_ctx *ctx, weft_device_arena *mem, const weft_mesh *mesh, size_t room)
{
  weft_status st = WEFT_OK;
  mesh_sorted *sorted = &run->sorted;
  memset(run, 0, sizeof *run);
  run->ctx = ctx, run->mem = mem, run->mesh = mesh, sorted->room = room;
  place_there(mesh, &run->place);
  run->window.degree = mesh->scheme->degree, run->window.lanes = mesh->scheme->lanes;
  memcpy(run->window.piece, mesh->scheme->piece, sizeof run->window.piece);
  WEFT_DEVICE_TAKE(run->node, mem, mesh->m * (size_t) run->place.nodes);
  WEFT_DEVICE_TAKE(run->other, mem, (size_t) run->place.nodes);
  WEFT_DEVICE_TAKE(sorted->cell, mem, room);
  WEFT_DEVICE_TAKE(sorted->cell_other, mem, room);
  WEFT_DEVICE_TAKE(sorted->order, mem, room);
  WEFT_DEVICE_TAKE(sorted->order_other, mem, room);
  {
    cub::DoubleBuffer<uint32_t> keys(sorted->cell, sorted->cell_other), values(sorted->order, sorted->order_other);
    WEFT_CUDA(cub::DeviceRadixSort::SortPairs(NULL, sorted->scratch_bytes, keys, values, (int64_t) room, 0,
                                              bits_of(run), mem->stream));
  }
  WEFT_DEVICE_TAKE(sorted->scratch, mem, sorted->scratch_bytes);
  WEFT_CUDA(cudaMemsetAsync(run->node, 0, mesh->m * (size_t) run->place.nodes * sizeof *run->node, mem->stream));
done:
  return st;
}

/* Sorts the points by cell: run->sorted has the cells and the points' numbers in that order. */
static weft_status sort_by_cell(mesh_run *run, const mesh_points *p)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = run->ctx;
  mesh_sorted *sorted = &run->sorted;
  size_t bytes = sorted->scratch_bytes;
  cub::DoubleBuffer<uint32_t> keys(sorted->cell, sorted->cell_other), values(sorted->order, sorted->order_other);
  find_mesh_cells<<<grid_for((double) p->n), 256, 0, run->mem->stream>>>(run->place, *p, (int) run->mesh->d,
                                                                         sorted->cell, sorted->order);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(
      cub::DeviceRadixSort::SortPairs(sorted->scratch, bytes, keys, values, p->n, 0, bits_of(run), run->mem->stream));
  sorted->cell = keys.Current(), sorted->cell_other = keys.Alternate();
  sorted->order = values.Current(), sorted->order_other = values.Alternate();
done:
  return st;
}

/* Launches in slices of whole runs; between them other work can run. */
#define IN_SLICES(r, p, launch) \
  do { \
    const int run = run_of((p)->n); \
    const int64_t slice = AT_ONCE / blocks_of(r); \
    for (int64_t first = 0; first < (p)->n; first += slice) { \
      const int64_t end = (p)->n - first < slice ? (p)->n : first + slice; \
      const unsigned grid = (unsigned) ((end - first + (int64_t) run * WARPS - 1) / ((int64_t) run * WARPS)); \
      WEFT_TRY(weft_poll(ctx, (double) first, (double) (p)->n)); \
      launch WEFT_CUDA(cudaGetLastError()); \
      WEFT_CUDA(cudaStreamSynchronize((r)->mem->stream)); \
    } \
  } while (0)

/* Launches in slices between which the user is asked. r->flushes counts how often a node may be added to, for the bound
 * of rounding. */
static weft_status spread_column(mesh_run *r, const mesh_points *p, const double *weights, size_t c, double total)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = r->ctx;
  const double scale = ldexp(1, exponent_of(total));
  const double *w = weights ? weights + c : NULL;
  const int64_t m = (int64_t) r->mesh->m;
  unsigned long long *node = r->node + c * (size_t) r->place.nodes;
#define SPREAD(D) \
  spread_run<D><<<dim3(grid, (unsigned) blocks_of(r)), 32 * WARPS, 0, r->mem->stream>>>(r->place, r->window, *p, \
                                                                                        r->sorted.cell, \
                                                                                        r->sorted.order, first, end, \
                                                                                        run, w, m, scale, node)
  IN_SLICES(r, p, if (r->mesh->d == 1) SPREAD(1); else if (r->mesh->d == 2) SPREAD(2); else SPREAD(3););
  if (c == 0) r->flushes += (double) p->n / run_of(p->n) + 2 * pow(r->window.lanes, (double) r->mesh->d);
done:
  return st;
}

/* Makes doubles of column c's whole numbers and convolves them, one dimension after another, between run->node and
 * run->other; the result is in run->node. */
static weft_status convolve_column(mesh_run *run, size_t c, double total)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = run->ctx;
  const mesh_place *place = &run->place;
  double *node = (double *) (run->node + c * (size_t) place->nodes);
  const unsigned blocks = grid_for((double) place->nodes);
  mesh_taps taps;
  taps.taps = run->mesh->scheme->taps;
  memcpy(taps.tap, run->mesh->scheme->tap, sizeof taps.tap);
  for (size_t j = 0; j < run->mesh->d; j++) {
    WEFT_TRY(weft_poll(ctx, 1, 2));
    if (!j)
      convolve<<<blocks, 256, 0, run->mem->stream>>>((const long long *) node, ldexp(1, -exponent_of(total)), taps,
                                                     place->nodes, place->stride[j], place->count[j], run->other);
    else
      convolve<<<blocks, 256, 0, run->mem->stream>>>(j & 1 ? run->other : node, 1.0, taps, place->nodes,
                                                     place->stride[j], place->count[j], j & 1 ? node : run->other);
    WEFT_CUDA(cudaGetLastError());
  }
  if (run->mesh->d & 1)
    WEFT_CUDA(cudaMemcpyAsync(node, run->other, (size_t) place->nodes * sizeof *node, cudaMemcpyDeviceToDevice,
                              run->mem->stream));
done:
  return st;
}

static weft_status gather_column(mesh_run *r, const mesh_points *p, size_t c, double *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = r->ctx;
  const double *node = (const double *) (r->node + c * (size_t) r->place.nodes);
#define GATHER(D) \
  gather_run<D><<<grid, 32 * WARPS, 0, r->mem->stream>>>(r->place, r->window, *p, r->sorted.cell, r->sorted.order, \
                                                         first, end, run, blocks_of(r), node, out)
  IN_SLICES(r, p, if (r->mesh->d == 1) GATHER(1); else if (r->mesh->d == 2) GATHER(2); else GATHER(3););
done:
  return st;
}

/* The rounding error relative to the sum of weights: that of double sums within a run and over dimensions, and half a
 * unit of the whole numbers each time that a node is added to. */
static double rounding_of(const mesh_run *run)
{
  const weft_mesh_scheme *scheme = run->mesh->scheme;
  const double d = (double) run->mesh->d, adds = 4096 + d * (2 * scheme->taps + 1) + 3 * scheme->lanes + 64;
  return 1.1102230246251565e-16 * adds * pow(scheme->size, d) + run->flushes * ldexp(1, -61) * pow(scheme->gain, d);
}

/* ---- the operation ---- */

/* Points first .. first + count - 1 of a task; room: d numbers of each. */
static weft_status send_points(weft_device_arena *mem, const weft_points *p, int columns, size_t first, size_t count,
                               double *x, mesh_points *out)
{
  weft_status st = WEFT_OK;
  const size_t d = p->d;
  out->x = x, out->n = (int64_t) count;
  out->point = columns ? 1 : (int64_t) d, out->dimension = columns ? (int64_t) count : 1;
  if (!columns) {
    WEFT_TRY(weft_device_upload(mem, x, count * d, sizeof *x, weft_fill_doubles, p->x + first * d));
    goto done;
  }
  for (size_t j = 0; j < d; j++)
    WEFT_TRY(weft_device_upload(mem, x + j * count, count, sizeof *x, weft_fill_doubles, p->x + j * p->n + first));
done:
  return st;
}

/* ops->mesh() of the device. References and queries come in batches that fit its memory; the nodes stay. Points are
 * sorted by cell anew for each batch, and only once where queries are the references and fit. */
weft_status weft_kernel_mesh_cuda(weft_ctx *ctx, const weft_kernel_task *task, const weft_mesh *mesh,
                                  const double *total, double *out, double *rounding)
{
  weft_status st = WEFT_OK;
  const weft_points *reference = &task->reference, *query = &task->query;
  const size_t n = reference->n, nq = query->n, d = reference->d, m = task->m, most = n > nq ? n : nq;
  const bool self = query->x == reference->x;
  const size_t of_point = (d + m + 1) * sizeof(double);
  double *x, *weights = NULL, *sums;
  size_t room;
  mesh_run run;
  mesh_points points;
  weft_device_arena mem = weft_device_begin(ctx);
  if (mem.opened != WEFT_OK) {
    st = mem.opened;
    goto done;
  }
  room = weft_device_chunk(ctx, most < (size_t) 1 << 31 ? most : (size_t) 1 << 31, bytes_of_point() + (double) of_point,
                           bytes_of_mesh(mesh));
  if (!room) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_TRY(begin_run(&run, ctx, &mem, mesh, room));
  WEFT_DEVICE_TAKE(x, &mem, room * d);
  if (task->weights) WEFT_DEVICE_TAKE(weights, &mem, room * m);
  WEFT_DEVICE_TAKE(sums, &mem, room);
  for (size_t first = 0; first < n; first += room) {
    const size_t count = n - first < room ? n - first : room;
    WEFT_TRY(send_points(&mem, reference, task->columns, first, count, x, &points));
    if (weights)
      WEFT_TRY(
          weft_device_upload(&mem, weights, count * m, sizeof *weights, weft_fill_doubles, task->weights + first * m));
    WEFT_TRY(sort_by_cell(&run, &points));
    for (size_t c = 0; c < m; c++) WEFT_TRY(spread_column(&run, &points, weights, c, total[c]));
  }
  for (size_t c = 0; c < m; c++) WEFT_TRY(convolve_column(&run, c, total[c]));
  for (size_t first = 0; first < nq; first += room) {
    const size_t count = nq - first < room ? nq - first : room;
    if (!self || n > room) {
      WEFT_TRY(send_points(&mem, query, task->columns, first, count, x, &points));
      WEFT_TRY(sort_by_cell(&run, &points));
    }
    for (size_t c = 0; c < m; c++) {
      WEFT_TRY(gather_column(&run, &points, c, sums));
      WEFT_TRY(weft_device_download(&mem, out + c * nq + first, sums, count * sizeof *sums));
    }
  }
  *rounding = rounding_of(&run);
done:
  weft_device_end(&mem);
  return st;
}
