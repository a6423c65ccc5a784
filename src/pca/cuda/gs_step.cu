/* One iteration of GS-PCA, u = X v and w = X'u, with X read once. X is laid out in panels of 16 rows, each from its
 * first column to its last, so that memory is read in long runs. A cluster of 8 blocks takes a panel; every block has
 * an eighth of the columns, every thread two rows of up to 15 of them:
 *
 *   columns:  block 0 | block 1 | ... | block 7          thread = 8 group + pair: rows 2 pair, 2 pair + 1 of the
 *   16 rows   a cell a thread and column: 16 bytes       block's columns group, group + 64, ...
 *
 *   1. a thread takes its cells of a panel from shared memory into registers, asks for cells of panels to come in their
 *      place (nobody else touches them: no barrier), and sums its part of u; parts meet through distributed shared
 *      memory
 *   2. with u known, the cells in registers give the parts of w, which stay in registers over all panels
 *
 * So the memory is kept busy while parts are exchanged. Clusters' parts of w are added in order at the end, by the
 * kernel that follows: the same bits in every run. */
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include "pca/cuda/pca.cuh"
#include "pca/cuda/gs_step.cuh"

namespace cg = cooperative_groups;

enum {
  CLUSTER = 8,
  ROWS = 16,
  THREADS = 512,
  GROUPS = THREADS / 8,
  CELLS = 15 /* a thread and panel */,
  RING = 24 /* asked for */
};

static __host__ __device__ inline int columns_each(int64_t p) { return (int) ((p + CLUSTER - 1) / CLUSTER); }

static size_t shared_bytes(void)
{
  return sizeof(double) * ((size_t) RING * THREADS * 2 + CELLS * GROUPS + 2 * CLUSTER * ROWS + THREADS / 32 * ROWS);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

static __device__ void barrier_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
static __device__ void barrier_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/* What a thread asks for, in order: the cells of its first panel, of the next one, ... */
struct asked {
  int64_t panel;
  int cell, slot;
};

static __device__ void ask(const double *own, int64_t p, asked &next, int64_t clusters, int64_t panels, int columns,
                           int group, double2 *ring)
{
  if (next.panel < panels && group + next.cell * GROUPS < columns)
    __pipeline_memcpy_async(ring + next.slot * THREADS, own + (next.panel * p + next.cell * GROUPS) * ROWS, 16);
  __pipeline_commit();
  next.slot = next.slot + 1 == RING ? 0 : next.slot + 1;
  if (++next.cell == CELLS) {
    next.cell = 0;
    next.panel += clusters;
  }
}

/* u = X v and this cluster's part of X'u with one reading of X. A cluster shares a panel's columns: each block sums
 * its columns' part of 16 rows, the blocks add these up through each other's shared memory, and use the result at
 * once for X'u. Cells arrive through a ring of asynchronous copies. */
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    fused(weft_pca_dense m, const double *v, double *u, double *partial)
{
  extern __shared__ __align__(16) double shared[];
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = (int) cluster.block_rank(), t = threadIdx.x, pair = t % 8, group = t / 8;
  const int each = columns_each(m.p);
  const int64_t first = (int64_t) rank * each, panels = (m.n + ROWS - 1) / ROWS;
  const int columns = first >= m.p ? 0 : (int) (m.p - first < each ? m.p - first : each);
  const int64_t clusters = gridDim.x / CLUSTER, mine = blockIdx.x / CLUSTER;
  double2 *ring = (double2 *) shared + t;
  /* parts: [parity][block][row] */
  double *own_v = shared + (size_t) RING * THREADS * 2, *parts = own_v + CELLS * GROUPS;
  double *warps = parts + 2 * CLUSTER * ROWS; /* [warp][row] */
  /* the thread's first column may lie outside: not asked for */
  const double *own = m.tiled + (first + group) * ROWS + 2 * pair;
  asked next = { mine, 0, 0 };
  double sum[CELLS];
#  pragma unroll
  for (int i = 0; i < CELLS; i++) sum[i] = 0;
  for (int i = 0; i < RING; i++) ask(own, m.p, next, clusters, panels, columns, group, ring);
  for (int j = t; j < CELLS * GROUPS; j += THREADS) own_v[j] = j < columns ? v[first + j] : 0;
  int slot = 0, parity = 0;
  cluster.sync();
  for (int64_t panel = mine; panel < panels; panel += clusters, parity ^= 1) {
    double2 cell[CELLS], a = make_double2(0, 0);
#  pragma unroll
    for (int i = 0; i < CELLS; i++) {
      __pipeline_wait_prior(RING - 1);
      cell[i] = group + i * GROUPS < columns ? ring[slot * THREADS] : make_double2(0, 0);
      slot = slot + 1 == RING ? 0 : slot + 1;
      ask(own, m.p, next, clusters, panels, columns, group, ring);
      a.x += cell[i].x * own_v[group + i * GROUPS];
      a.y += cell[i].y * own_v[group + i * GROUPS];
    }
    for (int lane = 8; lane < 32; lane *= 2) {
      a.x += __shfl_xor_sync(0xffffffff, a.x, lane);
      a.y += __shfl_xor_sync(0xffffffff, a.y, lane);
    }
    if (t % 32 < 8) ((double2 *) warps)[t / 32 * 8 + pair] = a;
    __syncthreads();
    if (t < CLUSTER * ROWS) { /* thread = 16 block + row: the sum of the warps goes to that block */
      double x = 0;
      for (int w = 0; w < THREADS / 32; w++) x += warps[w * ROWS + t % ROWS];
      cluster.map_shared_rank(parts, t / ROWS)[(parity * CLUSTER + rank) * ROWS + t % ROWS] = x;
    }
    barrier_arrive();
    barrier_wait();
    double2 now = make_double2(0, 0);
    const double2 *part = (const double2 *) (parts + parity * CLUSTER * ROWS);
    for (int b = 0; b < CLUSTER; b++) {
      now.x += part[b * 8 + pair].x;
      now.y += part[b * 8 + pair].y;
    }
    if (rank == 0 && group == 0) {
      const int64_t row = panel * ROWS + 2 * pair;
      if (row < m.n) u[row] = now.x;
      if (row + 1 < m.n) u[row + 1] = now.y;
    }
#  pragma unroll
    for (int i = 0; i < CELLS; i++) sum[i] += cell[i].x * now.x + cell[i].y * now.y;
  }
#  pragma unroll
  for (int i = 0; i < CELLS; i++) {
    const int j = group + i * GROUPS;
    double x = sum[i];
    for (int lane = 1; lane < 8; lane *= 2) x += __shfl_xor_sync(0xffffffff, x, lane);
    if (j < columns && pair == 0) partial[mine * m.p + first + j] = x;
  }
  cluster.sync(); /* no block leaves while others may write to its shared memory */
}

#else
__global__ void fused(weft_pca_dense, const double *, double *, double *) {}
#endif

/* x, ld rows per column, in panels of ROWS rows: to[(panel p + j) ROWS + row]. */
__global__ void tile(const double *x, int64_t n, int64_t p, int64_t ld, double *to)
{
  const int64_t panels = (n + ROWS - 1) / ROWS, panel = (int64_t) blockIdx.x * 16 + threadIdx.x / ROWS,
                i = panel * ROWS + threadIdx.x % ROWS;
  if (panel >= panels) return;
  for (int64_t j = blockIdx.y; j < p; j += gridDim.y)
    to[(panel * p + j) * ROWS + threadIdx.x % ROWS] = i < n ? x[i + j * ld] : 0;
}

size_t weft_pca_tiled_count(int64_t n, int64_t p) { return (size_t) ((n + ROWS - 1) / ROWS * ROWS * p); }

cudaError_t weft_pca_tile(const double *x, int64_t n, int64_t p, int64_t ld, double *to, cudaStream_t stream)
{
  const int64_t panels = (n + ROWS - 1) / ROWS;
  tile<<<dim3((unsigned) ((panels + 15) / 16), (unsigned) (p < 2048 ? p : 2048)), 16 * ROWS, 0, stream>>>(x, n, p, ld,
                                                                                                          to);
  return cudaGetLastError();
}

/* How many clusters can run at once; 0 on devices without clusters (compute capability below 9.0). */
static int ask_clusters()
{
  int found = 0;
  if (!weft_device_compiled_for((const void *) fused, 90)) return 0;
  if (weft_device_allow_shared((const void *) fused, shared_bytes()) != cudaSuccess) {
    (void) cudaGetLastError();
    return 0;
  }
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = CLUSTER;
  attribute[0].val.clusterDim.y = 1;
  attribute[0].val.clusterDim.z = 1;
  config.gridDim = dim3(CLUSTER * 32);
  config.blockDim = dim3(THREADS);
  config.dynamicSmemBytes = shared_bytes();
  config.attrs = attribute;
  config.numAttrs = 1;
  if (cudaOccupancyMaxActiveClusters(&found, fused, &config) != cudaSuccess) {
    (void) cudaGetLastError();
    return 0;
  }
  return found > 32 ? 32 : found;
}

static int clusters_at_once(void)
{
  static int known[64]; /* one more than there are, once asked */
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= 64) return 0;
  if (!known[device]) known[device] = ask_clusters() + 1;
  return known[device] - 1;
}

bool weft_pca_fused_fits(int64_t p) { return columns_each(p) <= CELLS * GROUPS && clusters_at_once() > 0; }

size_t weft_pca_fused_partial(int64_t p) { return 32 * (size_t) p; }

cudaError_t weft_pca_fused(const weft_pca_dense *m, const double *v, double *u, double *partial, int *parts,
                           cudaStream_t stream)
{
  *parts = clusters_at_once();
  fused<<<*parts * CLUSTER, THREADS, shared_bytes(), stream>>>(*m, v, u, partial);
  return cudaGetLastError();
}

/* ---- what follows the products ---- */

/* One cluster, or one block where there are none; element i of w is always the same thread's. */
enum { AFTER = 1024, MAX_FOUND = 256 };

struct meeting {
  double own[MAX_FOUND + 1], all[MAX_FOUND + 1], warps[32][33];
};

/* all[j] := sum over all threads of what `part(j)` gives, j < k. Ends with all threads together. */
template <typename F> static __device__ void sum_all(meeting &m, int k, int blocks, F part)
{
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  for (int first = 0; first < k; first += 32) {
    for (int j = first; j < k && j < first + 32; j++) {
      double x = part(j);
      for (int l = 16; l; l /= 2) x += __shfl_xor_sync(0xffffffff, x, l);
      if (lane == 0) m.warps[j - first][warp] = x;
    }
    __syncthreads();
    if (first + warp < k) {
      double x = m.warps[warp][lane];
      for (int l = 16; l; l /= 2) x += __shfl_xor_sync(0xffffffff, x, l);
      if (lane == 0) m.own[first + warp] = x;
    }
    __syncthreads();
  }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (blocks > 1) {
    cg::cluster_group cluster = cg::this_cluster();
    cluster.sync();
    if (t < k) {
      double x = 0;
      for (int b = 0; b < blocks; b++) x += cluster.map_shared_rank(m.own, b)[t];
      m.all[t] = x;
    }
    cluster.sync();
    return;
  }
#endif
  if (t < k) m.all[t] = m.own[t];
  __syncthreads();
}

/* What follows the products, in one launch: the parts of w added up, w freed of what was found, norms, and the next v.
 * One cluster of blocks; every block takes the same decisions from the same sums. */
__global__ void __launch_bounds__(AFTER)
    after(const double *found, int k, const double *partial, int parts, double *v, const double *u, double *w,
          int64_t n, int64_t p, volatile double *out, double turn)
{
  __shared__ meeting m;
  const int blocks = (int) gridDim.x;
  const int64_t first = blockIdx.x * AFTER + threadIdx.x, step = (int64_t) AFTER * blocks;
  for (int64_t i = first; parts && i < p; i += step) {
    double x = 0;
    for (int c = 0; c < parts; c++) x += partial[c * p + i];
    w[i] = x;
  }
  for (int twice = 0; k && twice < 2; twice++) {
    double off = 0;
    sum_all(m, k + 1, blocks, [&](int j) {
      const double *x = j < k ? found + j * p : w;
      double s = 0;
      for (int64_t i = first; i < p; i += step) s += x[i] * w[i];
      return s;
    });
    for (int j = 0; j < k; j++) off += m.all[j] * m.all[j];
    for (int64_t i = first; i < p; i += step) {
      double s = w[i];
      for (int j = 0; j < k; j++) s -= found[i + j * p] * m.all[j];
      w[i] = s;
    }
    const bool clean = off < 0.5 * m.all[k]; /* twice is needed only when much was taken off */
    __syncthreads();
    if (clean) break;
  }
  sum_all(m, 2, blocks, [&](int j) {
    const double *x = j ? w : u;
    double s = 0;
    for (int64_t i = first; i < (j ? p : n); i += step) s += x[i] * x[i];
    return s;
  });
  const double size = sqrt(m.all[0]), norm = sqrt(m.all[1]);
  __syncthreads();
  sum_all(m, 1, blocks, [&](int) {
    double s = 0;
    for (int64_t i = first; i < p && size > 0; i += step) {
      const double d = w[i] / size - size * v[i];
      s += d * d;
    }
    return s;
  });
  for (int64_t i = first; i < p && norm > 0; i += step) v[i] = w[i] / norm;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    out[0] = size;
    out[1] = norm;
    out[2] = sqrt(m.all[0]);
    __threadfence_system();
    out[3] = turn;
  }
}

/* Launches after() on one cluster, or on one block where the device has no clusters. */
cudaError_t weft_pca_after(const double *found, int k, const double *partial, int parts, double *v, const double *u,
                           double *w, int64_t n, int64_t p, double *out, double turn, cudaStream_t stream)
{
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute[1];
  const unsigned blocks = clusters_at_once() ? CLUSTER : 1;
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = blocks;
  attribute[0].val.clusterDim.y = 1;
  attribute[0].val.clusterDim.z = 1;
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(AFTER);
  config.stream = stream;
  config.attrs = attribute;
  config.numAttrs = blocks > 1 ? 1 : 0;
  return cudaLaunchKernelEx(&config, after, found, k, partial, parts, v, u, w, n, p, (volatile double *) out, turn);
}
