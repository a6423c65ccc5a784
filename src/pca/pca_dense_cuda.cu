/* One iteration of GS-PCA, u = X v and w = X'u, with X read once. A cluster of 8 blocks takes panels of 8 rows; each block
 * holds its eighth of the columns in shared memory, the next panels on their way:
 *
 *             columns:  block 0 | block 1 | ... | block 7
 *   8 rows              tile[column][8 rows], 64 bytes a column, STAGES tiles a block
 *
 *   1. every block sums its part of u for the 8 rows; the parts are exchanged through distributed shared memory
 *   2. with u known, every block adds tile' u to the w of its columns, which stay in registers over all panels
 *
 * Clusters' parts of w are added in order at the end: the same bits in every run. */
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include "pca_cuda.cuh"

namespace cg = cooperative_groups;

enum { CLUSTER = 8, ROWS = 8, THREADS = 512, GROUPS = THREADS / 4, STAGES = 3, MOST = 9 /* columns a thread */ };

static __host__ __device__ inline int columns_each(int64_t p) { return (int) ((p + CLUSTER - 1) / CLUSTER); }

static size_t shared_bytes(int64_t p)
{
  return sizeof(double) * ((size_t) columns_each(p) * (STAGES * ROWS + 1) + 2 * CLUSTER * ROWS + THREADS / 32 * ROWS);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

static __device__ void load_tile(const weft_pca_dense &m, int64_t row, int64_t first, int columns, double *tile)
{
  const double *from = m.x + (first + threadIdx.x / 4) * m.ld + row + 2 * (threadIdx.x % 4);
  for (int c = threadIdx.x; c < columns * 4; c += THREADS, from += GROUPS * m.ld) __pipeline_memcpy_async(tile + 2 * c, from, 16);
}

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
fused(weft_pca_dense m, const double *v, double *u, double *partial)
{
  extern __shared__ __align__(16) double shared[];
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = (int) cluster.block_rank(), t = threadIdx.x, pair = t % 4, group = t / 4;
  const int each = columns_each(m.p);
  const int64_t first = (int64_t) rank * each, panels = m.ld / ROWS;
  const int columns = first >= m.p ? 0 : (int) (m.p - first < each ? m.p - first : each);
  const int64_t clusters = gridDim.x / CLUSTER, mine = blockIdx.x / CLUSTER;
  double *tiles = shared, *own_v = tiles + (size_t) each * STAGES * ROWS, *parts = own_v + each;
  double *warps = parts + 2 * CLUSTER * ROWS; /* parts: [parity][block][row] */
  double sum[MOST];
#pragma unroll
  for (int i = 0; i < MOST; i++) sum[i] = 0;
  for (int j = t; j < columns; j += THREADS) own_v[j] = v[first + j];
  for (int s = 0; s < STAGES - 1; s++) {
    const int64_t panel = mine + s * clusters;
    if (panel < panels) load_tile(m, panel * ROWS, first, columns, tiles + (size_t) s * each * ROWS);
    __pipeline_commit();
  }
  cluster.sync();
  int turn = 0;
  for (int64_t panel = mine; panel < panels; panel += clusters, turn++) {
    const double2 *tile = (const double2 *) (tiles + (size_t) (turn % STAGES) * each * ROWS);
    double *part = parts + (turn & 1) * CLUSTER * ROWS;
    double2 a = make_double2(0, 0);
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    /* the tile read in the turn before is free now: the panel STAGES - 1 ahead goes there */
    const int64_t ahead = panel + (STAGES - 1) * clusters;
    if (ahead < panels) load_tile(m, ahead * ROWS, first, columns, tiles + (size_t) ((turn + STAGES - 1) % STAGES) * each * ROWS);
    __pipeline_commit();
#pragma unroll 4
    for (int j = group; j < columns; j += GROUPS) {
      const double2 x = tile[j * 4 + pair];
      a.x += x.x * own_v[j];
      a.y += x.y * own_v[j];
    }
    for (int lane = 4; lane < 32; lane *= 2) {
      a.x += __shfl_xor_sync(0xffffffff, a.x, lane);
      a.y += __shfl_xor_sync(0xffffffff, a.y, lane);
    }
    if (t % 32 < 4) {
      warps[t / 32 * ROWS + 2 * pair] = a.x;
      warps[t / 32 * ROWS + 2 * pair + 1] = a.y;
    }
    __syncthreads();
    if (t < CLUSTER * ROWS) {
      double x = 0;
      for (int w = 0; w < THREADS / 32; w++) x += warps[w * ROWS + t % ROWS];
      cluster.map_shared_rank(part, t / ROWS)[rank * ROWS + t % ROWS] = x;
    }
    cluster.sync();
    double2 now = make_double2(0, 0);
    for (int b = 0; b < CLUSTER; b++) {
      now.x += part[b * ROWS + 2 * pair];
      now.y += part[b * ROWS + 2 * pair + 1];
    }
    if (rank == 0 && group == 0) {
      const int64_t row = panel * ROWS + 2 * pair;
      if (row < m.n) u[row] = now.x;
      if (row + 1 < m.n) u[row + 1] = now.y;
    }
#pragma unroll
    for (int i = 0; i < MOST; i++) {
      const int j = group + i * GROUPS;
      if (j >= columns) break;
      const double2 x = tile[j * 4 + pair];
      sum[i] += x.x * now.x + x.y * now.y;
    }
  }
#pragma unroll
  for (int i = 0; i < MOST; i++) {
    const int j = group + i * GROUPS;
    double x = sum[i];
    x += __shfl_xor_sync(0xffffffff, x, 1);
    x += __shfl_xor_sync(0xffffffff, x, 2);
    if (j < columns && pair == 0) partial[mine * m.p + first + j] = x;
  }
  cluster.sync(); /* no block leaves while others may write to its shared memory */
}

#else
__global__ void fused(weft_pca_dense, const double *, double *, double *) {}
#endif

__global__ void add_parts(const double *partial, int parts, int64_t p, double *w)
{
  const int64_t j = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  double x = 0;
  if (j >= p) return;
  for (int c = 0; c < parts; c++) x += partial[c * p + j];
  w[j] = x;
}

/* As many clusters as run at once; 0 when the device has none (before compute capability 9.0). */
static int clusters_at_once(int64_t p)
{
  int device = 0, major = 0, found = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess || major < 9) return 0;
  if (cudaFuncSetAttribute(fused, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) shared_bytes(p)) != cudaSuccess) {
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
  config.dynamicSmemBytes = shared_bytes(p);
  config.attrs = attribute;
  config.numAttrs = 1;
  if (cudaOccupancyMaxActiveClusters(&found, fused, &config) != cudaSuccess) { (void) cudaGetLastError(); return 0; }
  return found > 32 ? 32 : found;
}

bool weft_pca_fused_fits(int64_t p)
{
  return columns_each(p) <= MOST * GROUPS && shared_bytes(p) <= 225 * 1024 && clusters_at_once(p) > 0;
}

size_t weft_pca_fused_partial(int64_t p) { return 32 * (size_t) p; }

cudaError_t weft_pca_fused(const weft_pca_dense *m, const double *v, double *u, double *w, double *partial, cudaStream_t stream)
{
  const int clusters = clusters_at_once(m->p);
  fused<<<clusters * CLUSTER, THREADS, shared_bytes(m->p), stream>>>(*m, v, u, partial);
  cudaError_t e = cudaGetLastError();
  if (e != cudaSuccess) return e;
  add_parts<<<(unsigned) ((m->p + 255) / 256), 256, 0, stream>>>(partial, clusters, m->p, w);
  return cudaGetLastError();
}

/* ---- what follows the products ---- */

enum { AFTER = 1024, MOST_FOUND = 256 };

static __device__ double sum_block(double x, double *warps)
{
  for (int lane = 16; lane; lane /= 2) x += __shfl_xor_sync(0xffffffff, x, lane);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  x = warps[threadIdx.x % 32];
  for (int lane = 16; lane; lane /= 2) x += __shfl_xor_sync(0xffffffff, x, lane);
  return x;
}

__global__ void __launch_bounds__(AFTER) after(const double *found, int k, double *v, const double *u, double *w, int64_t n,
                                               int64_t p, double *out)
{
  __shared__ double warps[32], c[MOST_FOUND];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  double x = 0, size, norm;
  for (int twice = 0; k && twice < 2; twice++) {
    for (int j = warp; j < k; j += AFTER / 32) {
      double s = 0;
      for (int64_t i = lane; i < p; i += 32) s += found[i + j * p] * w[i];
      for (int l = 16; l; l /= 2) s += __shfl_xor_sync(0xffffffff, s, l);
      if (lane == 0) c[j] = s;
    }
    __syncthreads();
    for (int64_t i = t; i < p; i += AFTER) {
      double s = w[i];
      for (int j = 0; j < k; j++) s -= found[i + j * p] * c[j];
      w[i] = s;
    }
    __syncthreads();
  }
  for (int64_t i = t; i < n; i += AFTER) x += u[i] * u[i];
  size = sqrt(sum_block(x, warps));
  x = 0;
  for (int64_t i = t; i < p; i += AFTER) x += w[i] * w[i];
  norm = sqrt(sum_block(x, warps));
  x = 0;
  for (int64_t i = t; i < p && size > 0; i += AFTER) { const double d = w[i] / size - size * v[i]; x += d * d; }
  x = sqrt(sum_block(x, warps));
  if (t == 0) { out[0] = size; out[1] = norm; out[2] = x; }
  for (int64_t i = t; i < p && norm > 0; i += AFTER) v[i] = w[i] / norm;
}

cudaError_t weft_pca_after(const double *found, int k, double *v, const double *u, double *w, int64_t n, int64_t p, double *out,
                           cudaStream_t stream)
{
  after<<<1, AFTER, 0, stream>>>(found, k, v, u, w, n, p, out);
  return cudaGetLastError();
}
