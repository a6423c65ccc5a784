/* A grid of points on the device: its plan, and the points sorted by cell (radix sort), with what each is within its
 * cell as bytes. sum.cu sums over it.
 *
 * Cells of 31 to 62 points: with half as many, a query in ten dimensions would meet more than twice as many cells. */
#include <cub/device/device_radix_sort.cuh>
#include "kernel/cuda/grid/grid.cuh"

/* ---- the plan, on the host ---- */

static void find_reach(grid_plan *plan, double h)
{
  for (int j = 0; j < plan->dims; j++) {
    plan->reach[j] = (int) ceil(h * (1 + 1e-6) / (plan->k[j] * plan->unit) + 1e-6);
    if (plan->reach[j] > plan->cells[j] - 1) plan->reach[j] = plan->cells[j] - 1;
  }
  const double units = h / plan->unit;
  plan->within = (float) ((units + 0.01) * (units + 0.01) * (1 + 1e-5));
  plan->near = (int) ceil((units + sqrt((double) plan->dims) + 0.01) * (units + sqrt((double) plan->dims) + 0.01));
}

/* The widest dimensions are halved, the widest of all each time, until cells hold some GRID_CELL points or are as
 * narrow as half of h. Then come the unit of the lattice, strides, and the order of points within a cell. */
bool weft_grid_plan(grid_plan *plan, size_t n, size_t d, const double *low, const double *high, double h)
{
  double width[GRID_DIMS], cells = 1, range[GRID_DIMS];
  int halved[GRID_DIMS];
  memset(plan, 0, sizeof *plan);
  plan->d = (int) d;
  /* the widest dimensions */
  for (plan->dims = 0; plan->dims < GRID_DIMS && plan->dims < (int) d; plan->dims++) {
    int best = -1;
    for (size_t j = 0; j < d; j++) {
      bool taken = false;
      for (int t = 0; t < plan->dims; t++) taken |= plan->axis[t] == (int) j;
      if (!taken && (best < 0 || high[j] - low[j] > high[best] - low[best])) best = (int) j;
    }
    plan->axis[plan->dims] = best;
    range[plan->dims] = width[plan->dims] = (high[best] - low[best]) * (1 + 1e-6);
    plan->low[plan->dims] = low[best];
    halved[plan->dims] = 0;
  }
  if (!(width[0] > 0)) return false;
  if (plan->dims & 1) { /* code is there for even numbers of dimensions: one more that has no extent */
    const int j = plan->dims++;
    plan->axis[j] = plan->axis[0], plan->low[j] = low[plan->axis[0]], width[j] = range[j] = 0, halved[j] = 0;
  }
  plan->words = (plan->dims + 3) / 4;
  while (cells * GRID_CELL < (double) n) {
    int widest = -1;
    for (int j = 0; j < plan->dims; j++)
      if (width[j] / 2 >= 0.51 * h && halved[j] < 20 && (widest < 0 || width[j] > width[widest])) widest = j;
    if (widest < 0) break;
    width[widest] /= 2, halved[widest]++, cells *= 2;
  }
  /* A single cell would save nothing. Where some dimension is cut, its cells are no narrower than 0.51 h, and those
   * that the kernel reaches are 126 units together: so h is less than 83 units, and whole numbers and halves hold every
   * distance that counts. */
  if (cells < 2) return false;
  double unit = 0;
  for (int j = 0; j < plan->dims; j++) {
    const double reach = halved[j] ? ceil(h * (1 + 1e-6) / width[j] + 1e-6) : 0;
    unit = fmax(unit, (fmin(reach, GRID_REACH) + 1) * width[j] / 126);
  }
  if (!(unit > 0) || !(range[0] / unit < 1e9)) return false;
  plan->unit = unit, plan->inv_unit = 1 / unit;
  plan->total = 1;
  for (int j = 0; j < plan->dims; j++) {
    plan->k[j] = (int) ceil(width[j] / unit);
    if (plan->k[j] < 1) plan->k[j] = 1;
    plan->cells[j] = halved[j] ? (int) ceil(range[j] / (plan->k[j] * unit)) : 1;
    if (plan->cells[j] < 1) plan->cells[j] = 1;
  }
  for (int j = plan->dims; j-- > 0;) {
    plan->stride[j] = plan->total;
    if ((double) plan->total * plan->cells[j] > 2e9) return false;
    plan->total *= (uint32_t) plan->cells[j];
  }
  int level[GRID_DIMS] = { 0 }, bits = 0;
  while (bits < 32 && (plan->total - 1) >> bits) bits++;
  for (plan->fine = 0; plan->fine < GRID_FINE && bits + plan->fine < 32; plan->fine++) {
    int widest = 0;
    for (int j = 1; j < plan->dims; j++)
      if (plan->k[j] >> level[j] > plan->k[widest] >> level[widest]) widest = j;
    plan->fine_dim[plan->fine] = widest, plan->fine_level[plan->fine] = ++level[widest];
  }
  find_reach(plan, h);
  for (int j = 0; j < plan->dims; j++)
    if (plan->reach[j] > GRID_REACH || (plan->reach[j] + 1) * plan->k[j] > 128) return false;
  return true;
}

/* ---- building ---- */

__device__ static inline int lattice_of(const grid_plan &plan, int j, double x)
{
  const double t = floor((x - plan.low[j]) * plan.inv_unit);
  const int most = plan.cells[j] * plan.k[j] - 1;
  return t < 0 ? 0 : t > most ? most : (int) t;
}

__global__ void find_cells(const grid_plan plan, const double *rows, int64_t n, uint32_t *cell, uint32_t *order)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x) {
    uint32_t c = 0;
    for (int j = 0; j < plan.dims; j++)
      c += (uint32_t) (lattice_of(plan, j, rows[i * plan.d + plan.axis[j]]) / plan.k[j]) * plan.stride[j];
    for (int f = 0; f < plan.fine; f++) {
      const int j = plan.fine_dim[f], within = lattice_of(plan, j, rows[i * plan.d + plan.axis[j]]) % plan.k[j];
      c = 2 * c + (((uint32_t) within << plan.fine_level[f]) / plan.k[j] & 1);
    }
    cell[i] = c, order[i] = (uint32_t) i;
  }
}

__global__ void move_rows(const double *from, const uint32_t *order, int64_t n, int d, double *to)
{
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < n * d; k += (int64_t) gridDim.x * blockDim.x)
    to[k] = from[(int64_t) order[k / d] * d + k % d];
}

__global__ void find_local(const grid_plan plan, const double *rows, int64_t n, int32_t *local)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
    for (int w = 0; w < plan.words; w++) {
      uint32_t word = 0;
      for (int j = 4 * w; j < 4 * w + 4 && j < plan.dims; j++)
        word |= (uint32_t) (lattice_of(plan, j, rows[i * plan.d + plan.axis[j]]) % plan.k[j]) << 8 * (j & 3);
      local[i * plan.words + w] = (int32_t) word;
    }
}

/* start[c]: the first point of cell c or of a later one. */
__global__ void find_starts(const uint32_t *cell, int fine, int64_t n, uint32_t total, uint32_t *start)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i <= n; i += (int64_t) gridDim.x * blockDim.x) {
    const uint32_t before = i ? (cell[i - 1] >> fine) + 1 : 0, here = i < n ? cell[i] >> fine : total;
    for (uint32_t c = before; c <= here; c++) start[c] = (uint32_t) i;
  }
}

/* Sorts the points by cell and moves them in that order, then finds each one's bytes within its cell and the first
 * point of every cell. Takes `out` from mem and drops `from`; the user is asked between the steps. */
weft_status weft_grid_build(weft_ctx *ctx, weft_device_arena *mem, const grid_plan &plan, int64_t n, double *from,
                            double *from_lo, grid_points *out)
{
  weft_status st = WEFT_OK;
  uint32_t *cell, *cell_other, *order, *order_other;
  unsigned char *scratch;
  size_t scratch_bytes = 0;
  int bits = 1;
  while (bits < 32 && (plan.total - 1) >> bits) bits++;
  bits += plan.fine;
  out->n = n;
  WEFT_DEVICE_TAKE(cell, mem, n);
  WEFT_DEVICE_TAKE(cell_other, mem, n);
  WEFT_DEVICE_TAKE(order, mem, n);
  WEFT_DEVICE_TAKE(order_other, mem, n);
  WEFT_TRY(weft_poll(ctx, 0, 1));
  find_cells<<<grid_for((double) n), 256, 0, mem->stream>>>(plan, from, n, cell, order);
  WEFT_CUDA(cudaGetLastError());
  {
    cub::DoubleBuffer<uint32_t> keys(cell, cell_other), values(order, order_other);
    WEFT_CUDA(cub::DeviceRadixSort::SortPairs(NULL, scratch_bytes, keys, values, n, 0, bits, mem->stream));
    WEFT_DEVICE_TAKE(scratch, mem, scratch_bytes);
    WEFT_CUDA(cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, keys, values, n, 0, bits, mem->stream));
    WEFT_CUDA(cudaStreamSynchronize(mem->stream));
    weft_device_drop(mem, scratch);
    weft_device_drop(mem, keys.Alternate());
    weft_device_drop(mem, values.Alternate());
    cell = keys.Current(), order = values.Current();
  }
  out->order = order;
  WEFT_TRY(weft_poll(ctx, 0, 1));
  WEFT_DEVICE_TAKE(out->rows, mem, n * plan.d);
  move_rows<<<grid_for((double) n * plan.d), 256, 0, mem->stream>>>(from, order, n, plan.d, out->rows);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, from);
  out->lo = NULL;
  if (from_lo) {
    WEFT_DEVICE_TAKE(out->lo, mem, n * plan.d);
    move_rows<<<grid_for((double) n * plan.d), 256, 0, mem->stream>>>(from_lo, order, n, plan.d, out->lo);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(mem->stream));
    weft_device_drop(mem, from_lo);
  }
  WEFT_DEVICE_TAKE(out->local, mem, n * plan.words);
  find_local<<<grid_for((double) n), 256, 0, mem->stream>>>(plan, out->rows, n, out->local);
  WEFT_CUDA(cudaGetLastError());
  WEFT_DEVICE_TAKE(out->start, mem, (size_t) plan.total + 1);
  find_starts<<<grid_for((double) n + 1), 256, 0, mem->stream>>>(cell, plan.fine, n, plan.total, out->start);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, cell);
done:
  return st;
}
