/* Gaussian sums on tensor cores outside R: errors of many shapes beside sums in double and their bounds, and pairs per
 * second of blocks of several sizes. nvcc -O3 -std=c++17 -arch=native -I src -o kernel-tensor tools/kernel-tensor.cu
 * kernel-tensor check [REFERENCES]    errors; with few references for compute-sanitizer
 * kernel-tensor time [POINTS QUERIES] 16 dimensions */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>
#include "kernel/cuda/direct/gaussian_tensor.cuh"

#define TRY(step) \
  do { \
    const cudaError_t e_ = (step); \
    if (e_ != cudaSuccess) { \
      printf("%s: %s\n", #step, cudaGetErrorString(e_)); \
      exit(1); \
    } \
  } while (0)

template <typename T> static T *on_device(size_t n)
{
  T *p;
  TRY(cudaMalloc(&p, n * sizeof(T) + 16));
  TRY(cudaMemset(p, 0, n * sizeof(T) + 16));
  return p;
}
template <typename T> static T *sent(const std::vector<T> &x)
{
  T *p = on_device<T>(x.size());
  TRY(cudaMemcpy(p, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}
template <typename T> static std::vector<T> fetched(const T *p, size_t n)
{
  std::vector<T> x(n);
  TRY(cudaMemcpy(x.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
  return x;
}

/* p, p z_j and p r^2 in double, of every `step`-th query: a block for each. */
__global__ void in_double(gauss_scheme s, const double *x, const double *w, int64_t n, const double *q, int64_t step,
                          double *out)
{
  __shared__ double part[128];
  const int64_t i = blockIdx.x * step;
  for (int c = 0; c < s.d + 1; c++) {
    double sum = 0;
    for (int64_t k = threadIdx.x; k < n; k += 128) {
      double square = 0;
      for (int j = 0; j < s.d; j++) {
        const double gap = (x[k * s.d + j] - q[i * s.d + j]) * s.factor;
        square += gap * gap;
      }
      sum += w[k] * exp2(-square / 2) *
             (c ? (x[k * s.d + c - 1] - q[i * s.d + c - 1]) * s.factor / 1.2011224087864498 : 1);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half; half >>= 1) {
      if ((int) threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x * (s.d + 1) + c] = part[0];
    __syncthreads();
  }
}

struct shape {
  int64_t n, nq;
  int d, blocks;
  gauss_scheme s;
  double *x, *w, *q, *centre;
  unsigned *tiles, *words;
  bool own;
  gauss_query *about;
  gauss_left_out *left;
  int64_t padded_n, padded_q;
};

/* kind: 0 normal points, 1 far from zero, 2 an outlier, 3 weights of many sizes, 4 copies */
static shape make(int64_t n, int64_t nq, int d, double h, int kind, bool self)
{
  shape a;
  std::mt19937_64 draw(n + d + kind);
  std::normal_distribution<double> normal;
  std::vector<double> x(n * d), w(n, 1.0), q(nq * d), centre(d, 0.0);
  for (auto &v : x) v = normal(draw);
  for (auto &v : q) v = normal(draw);
  if (kind == 4)
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < d; j++) x[i * d + j] = x[i % 7 * d + j];
  if (self)
    for (int64_t i = 0; i < nq * d; i++) q[i] = x[i % (n * d)];
  if (kind == 1) {
    for (auto &v : x) v += 1000;
    for (auto &v : q) v += 1000;
    for (auto &v : centre) v = 1000;
  }
  if (kind == 2) x[0] = 1e9, x[d] = 40 * h;
  if (kind == 3)
    for (auto &v : w) v = exp(4 * normal(draw));
  a.n = n, a.nq = nq, a.d = d;
  a.blocks = d <= 8 ? 1 : d <= 16 ? 2 : d <= 24 ? 3 : d <= 32 ? 4 : d <= 48 ? 6 : 8;
  a.padded_n = (n + 63) / 64 * 64, a.padded_q = (nq + 511) / 512 * 512;
  double grid = 1.0 / 256, longest = 0, square = 0;
  for (int64_t i = 0; i < std::min<int64_t>(n, 4096); i++) {
    double s = 0;
    if (kind == 2 && i < 2) continue;
    for (int j = 0; j < d; j++) {
      const double z = (x[i * d + j] - centre[j]) * 1.2011224087864498 / h;
      longest = std::max(longest, fabs(z)), s += z * z;
    }
    square = std::max(square, s);
  }
  while (grid < 1.0 / 64 && (1.5 * longest > GAUSS_STEPS * grid || 1.5 * square / 2 > GAUSS_LIMIT * grid * grid))
    grid *= 2;
  a.x = sent(x), a.w = sent(w), a.q = sent(q), a.centre = sent(centre);
  a.s = { a.centre, d, 1.2011224087864498 / h, grid, *std::max_element(w.begin(), w.end()) };
  a.own = self && kind != 3;
  a.tiles = on_device<unsigned>(a.padded_n / 64 * gauss_words(a.blocks, true));
  a.words = on_device<unsigned>(a.padded_q / 16 * 6 * a.blocks * 32);
  a.about = on_device<gauss_query>(a.padded_q);
  a.left = on_device<gauss_left_out>(1);
  const gauss_left_out none = { 0, 0, 0x7f800000u, 0, 0 };
  TRY(cudaMemcpy(a.left, &none, sizeof none, cudaMemcpyHostToDevice));
  gauss_probe<<<1, 32>>>(a.left);
  gauss_references<<<(a.padded_n + 255) / 256, 256>>>(a.s, { a.x, NULL, d, 1 }, a.w, n, a.padded_n, a.blocks, true,
                                                      a.tiles, a.left);
  gauss_queries<<<(a.padded_q + 255) / 256, 256>>>(a.s, { a.q, NULL, d, 1 }, nq, a.padded_q, a.blocks, a.words,
                                                   a.about);
  TRY(cudaDeviceSynchronize());
  return a;
}
static void drop(shape &a)
{
  for (void *p : { (void *) a.x, (void *) a.w, (void *) a.q, (void *) a.centre, (void *) a.tiles, (void *) a.words,
                   (void *) a.about, (void *) a.left })
    TRY(cudaFree(p));
}

/* Sums of all queries: columns * padded_q, in double; seconds of the kernels. */
template <int B, int MT, int WARPS, int RESIDENT, gauss_mode MODE>
static double sum_all(const shape &a, std::vector<double> *total)
{
  const int64_t tile = 16 * MT * WARPS, slab = 65536, all = a.padded_n / 64;
  const int64_t columns = gauss_columns(MODE, a.d), chunk = 1024, chunks = (all + chunk - 1) / chunk;
  static double *partial;
  static size_t held;
  if (held < (size_t) (chunks * columns * slab)) {
    if (partial) TRY(cudaFree(partial));
    held = chunks * columns * slab;
    partial = on_device<double>(held);
  }
  const size_t bytes = gauss_bytes<B, MT, WARPS, MODE>();
  const auto kernel = gauss_sums<B, MT, WARPS, RESIDENT, MODE>;
  TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes));
  if (total) total->assign(columns * a.padded_q, 0.0);
  TRY(cudaDeviceSynchronize());
  const auto begun = std::chrono::steady_clock::now();
  for (int64_t first = 0; first < a.padded_q; first += slab) {
    const int64_t count = std::min(slab, a.padded_q - first);
    const gauss_args args = {
      a.tiles, a.words + first / 16 * 6 * B * 32, a.about + first, gauss_words(B, true), all, chunk, a.d, partial, slab
    };
    kernel<<<dim3(chunks, count / tile), 32 * WARPS, bytes>>>(args);
    TRY(cudaGetLastError());
    if (total) {
      const std::vector<double> part = fetched(partial, chunks * columns * slab);
      for (int64_t c = 0; c < columns; c++)
        for (int64_t k = 0; k < chunks; k++)
          for (int64_t i = 0; i < count; i++)
            (*total)[c * a.padded_q + first + i] += part[(k * columns + c) * slab + i];
    }
  }
  TRY(cudaDeviceSynchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

static int failures;
template <int B, gauss_mode MODE> static void check_shape(int64_t n, int64_t nq, int d, double h, int kind, bool self)
{
  constexpr bool SLOPES = MODE == GAUSS_SLOPES;
  shape a = make(n, nq, d, h, kind, self);
  std::vector<double> total, again;
  constexpr int M = B <= 2 ? 2 : 1;
  if (SLOPES && !a.own) {
    sum_all<B, M, 4, 1, GAUSS_SUMS>(a, &total);
    double *sums = sent(total);
    gauss_shift<<<(a.padded_q + 255) / 256, 256>>>(nq, sums, a.about);
    TRY(cudaDeviceSynchronize());
    TRY(cudaFree(sums));
  }
  sum_all<B, M, 4, 1, MODE>(a, &total);
  sum_all<B, M, 4, 1, MODE>(a, &again);
  const bool same = !memcmp(total.data(), again.data(), total.size() * 8);
  const int64_t step = std::max<int64_t>(1, nq / 64), some = (nq + step - 1) / step;
  double *out = on_device<double>(some * (d + 1));
  in_double<<<some, 128>>>(a.s, a.x, a.w, n, a.q, step, out);
  const std::vector<double> want = fetched(out, some * (d + 1)), q = fetched(a.q, nq * d),
                            centre = fetched(a.centre, d);
  const std::vector<gauss_query> about = fetched(a.about, a.padded_q);
  const gauss_left_out left = fetched(a.left, 1)[0];
  float nearest, rounding;
  memcpy(&nearest, &left.nearest, 4), memcpy(&rounding, &left.rounding, 4);
  double off[2] = { 0, 0 }, worst[2] = { 0, 0 };
  std::vector<double> bounds[2];
  int unbounded = 0;
  for (int64_t k = 0; k < some; k++) {
    const int64_t i = k * step;
    double bound[2], error[2] = { 0, 0 };
    const double p = total[i], unshift = exp2(-GAUSS_TOP - (double) about[i].shift);
    gauss_bounds(a.s, left, nearest, rounding, B, (double) n, about[i], p * unshift,
                 SLOPES ? gauss_square(p, total[a.padded_q + i], about[i]) : 0, bound, bound + 1);
    if (!SLOPES) bound[1] = bound[0];
    const double scale = exp2((double) about[i].rest) * a.s.top_weight * unshift, sum = p * scale;
    const double size = want[k * (d + 1)];
    error[0] = fabs(sum / size - 1);
    for (int j = 0; SLOPES && j < d; j++) {
      const double z = (q[i * d + j] - centre[j]) * a.s.factor;
      const double got = (total[(2 + j) * a.padded_q + i] * scale - z * sum) / 1.2011224087864498;
      error[1] = std::max(error[1], fabs(got - want[k * (d + 1) + 1 + j]) / size);
    }
    if (bound[0] > 0.01 || bound[1] > 0.01) {
      unbounded++;
      continue;
    }
    for (int e = 0; e < 1 + SLOPES; e++) {
      off[e] = std::max(off[e], error[e]), worst[e] = std::max(worst[e], error[e] / bound[e]);
      if (!(error[e] <= bound[e])) failures++;
      bounds[e].push_back(bound[e]);
    }
  }
  for (auto &b : bounds) std::sort(b.begin(), b.end());
  const auto middle = [](const std::vector<double> &b) { return b.empty() ? 0 : b[b.size() / 2]; };
  const auto last = [](const std::vector<double> &b) { return b.empty() ? 0 : b.back(); };
  if (!same) failures++;
  printf("%s %lld x %d kind %d h %.2f grid 2^%.0f %s: sum off %.1e of bound %.1e (median, most %.1e; %.2f), slopes "
         "%.1e of %.1e "
         "(%.1e; %.2f); %d of %lld unbounded; left out %llu far, %llu faint%s\n",
         SLOPES ? "slopes" : "sums", (long long) n, d, kind, h, log2(a.s.grid), self ? "self" : "", off[0],
         middle(bounds[0]), last(bounds[0]), worst[0], off[1], middle(bounds[1]), last(bounds[1]), worst[1], unbounded,
         (long long) some, left.far, left.faint, same ? "" : " NOT THE SAME TWICE");
  TRY(cudaFree(out));
  drop(a);
}
template <int B> static void check_both(int64_t n, int64_t nq, int d, double h, int kind, bool self)
{
  check_shape<B, GAUSS_SUMS>(n, nq, d, h, kind, self);
  check_shape<B, GAUSS_SLOPES>(n, nq, d, h, kind, self);
}

template <int MT, int WARPS, int RESIDENT, gauss_mode MODE> static void time_of(const shape &a)
{
  cudaFuncAttributes f;
  TRY(cudaFuncGetAttributes(&f, gauss_sums<2, MT, WARPS, RESIDENT, MODE>));
  sum_all<2, MT, WARPS, RESIDENT, MODE>(a, NULL);
  const double seconds = sum_all<2, MT, WARPS, RESIDENT, MODE>(a, NULL);
  printf(
      "%s %d x 16 queries of %d warps, %d blocks resident, %d registers, %zu spilled: %.4f s, %.3g pairs per second\n",
      MODE == GAUSS_SLOPES ? "slopes" : "sums", MT, WARPS, RESIDENT, f.numRegs, f.localSizeBytes, seconds,
      (double) a.n * (double) a.padded_q / seconds);
  fflush(stdout);
}

int main(int argc, char **argv)
{
  const bool timing = argc > 1 && !strcmp(argv[1], "time");
  if (timing) {
    const int64_t n = argc > 2 ? atoll(argv[2]) : 1000000, nq = argc > 3 ? atoll(argv[3]) : 131072;
    cudaDeviceProp device;
    TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s, %d processors\n", device.name, device.multiProcessorCount);
    shape a = make(n, nq, 16, 0.5623, 0, false);
    time_of<2, 8, 1, GAUSS_SLOPES>(a);
    time_of<2, 4, 3, GAUSS_SLOPES>(a);
    time_of<1, 8, 2, GAUSS_SLOPES>(a);
    time_of<1, 8, 3, GAUSS_SLOPES>(a);
    time_of<2, 8, 1, GAUSS_SUMS>(a);
    time_of<2, 8, 2, GAUSS_SUMS>(a);
    time_of<2, 4, 3, GAUSS_SUMS>(a);
    return 0;
  }
  const int64_t n = argc > 2 ? atoll(argv[2]) : 100000, nq = std::min<int64_t>(n, 3000);
  check_both<2>(n, nq, 16, 0.62, 0, true);
  check_both<2>(n, nq, 16, 0.62, 0, false);
  check_both<2>(n + 1, nq, 16, 0.62, 3, true);
  check_both<1>(n - 1, nq, 4, 0.3, 0, false);
  check_both<1>(n, nq, 8, 0.5, 1, true);
  if (n > 10000) {
    check_both<2>(n, nq, 10, 0.5, 2, true);
    check_both<2>(n, nq, 13, 0.6, 4, true);
    check_both<2>(77, 5, 16, 0.62, 0, false);
    check_both<2>(1, 1, 9, 1, 0, false);
    check_both<1>(n, nq, 4, 0.1, 0, false);
    check_both<1>(n, nq, 5, 2, 3, false);
    check_both<2>(n, nq, 16, 2, 0, false);
    check_both<2>(n, nq, 16, 20, 1, false);
    check_both<6>(n, nq, 40, 0.8, 0, true);
  }
  check_both<3>(n, nq, 20, 0.7, 0, true);
  check_both<4>(n, nq, 32, 0.8, 0, true);
  check_both<8>(n, nq, 64, 0.9, 0, true);
  printf("%d failures\n", failures);
  return failures != 0;
}
