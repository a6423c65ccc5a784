/* The kernels of GS-PCA's step alone, for compute-sanitizer's racecheck, which fails itself when they run within R:
 *   nvcc -O2 -arch=sm_90 -I src/pca -o race-gs tools/race-gs.cu && compute-sanitizer --tool racecheck ./race-gs [rows] [columns]
 * Three steps on random numbers, the last one checked against loops. */
#include "../src/pca/pca_dense_cuda.cu"
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

bool weft_device_compiled_for(const void *, int) { return true; }

#define RUN(step) do { const cudaError_t e_ = (step); if (e_) { printf("%s: %s\n", #step, cudaGetErrorString(e_)); return 1; } } while (0)

static double dot(const double *a, const double *b, size_t n)
{
  double s = 0;
  for (size_t i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

int main(int argc, char **argv)
{
  const int64_t n = argc > 1 ? atoll(argv[1]) : 301, p = argc > 2 ? atoll(argv[2]) : 203, ld = n + 3, steps = 3;
  std::vector<double> x((size_t) (ld * p)), v((size_t) p), u((size_t) n), w((size_t) p), got((size_t) p), found((size_t) p);
  double *dx, *tiled, *dv, *du, *dw, *dfound, *partial, *numbers, worst = 0;
  cudaStream_t stream;
  int parts;
  for (double &a : x) a = rand() / (double) RAND_MAX - 0.5;
  for (double &a : found) a = rand() / (double) RAND_MAX - 0.5;
  const double length = sqrt(dot(found.data(), found.data(), found.size()));
  for (double &a : found) a /= length;
  v[0] = 1;
  RUN(cudaStreamCreate(&stream));
  RUN(cudaMalloc(&dx, x.size() * 8));
  RUN(cudaMalloc(&tiled, weft_pca_tiled_count(n, p) * 8));
  RUN(cudaMalloc(&dv, v.size() * 8));
  RUN(cudaMalloc(&du, u.size() * 8));
  RUN(cudaMalloc(&dw, w.size() * 8));
  RUN(cudaMalloc(&dfound, found.size() * 8));
  RUN(cudaMalloc(&partial, weft_pca_fused_partial(p) * 8));
  RUN(cudaHostAlloc((void **) &numbers, 4 * sizeof *numbers, cudaHostAllocDefault));
  RUN(cudaMemcpy(dx, x.data(), x.size() * 8, cudaMemcpyHostToDevice));
  RUN(cudaMemcpy(dv, v.data(), v.size() * 8, cudaMemcpyHostToDevice));
  RUN(cudaMemcpy(dfound, found.data(), found.size() * 8, cudaMemcpyHostToDevice));
  if (!weft_pca_fused_fits(p)) { printf("no clusters here\n"); return 1; }
  RUN(weft_pca_tile(dx, n, p, ld, tiled, stream));
  const weft_pca_dense m = { tiled, n, p };
  for (int k = 1; k <= steps; k++) {
    RUN(weft_pca_fused(&m, dv, du, partial, &parts, stream));
    RUN(weft_pca_after(dfound, 1, partial, parts, dv, du, dw, n, p, numbers, k, stream));
    RUN(cudaStreamSynchronize(stream));
    for (int64_t i = 0; i < n; i++) u[i] = 0;
    for (int64_t j = 0; j < p; j++) for (int64_t i = 0; i < n; i++) u[i] += x[i + j * ld] * v[j];
    for (int64_t j = 0; j < p; j++) w[j] = dot(&x[j * ld], u.data(), u.size());
    const double along = dot(w.data(), found.data(), w.size());
    for (int64_t j = 0; j < p; j++) w[j] -= along * found[j];
    const double norm = sqrt(dot(w.data(), w.data(), w.size()));
    for (int64_t j = 0; j < p; j++) v[j] = w[j] / norm;
  }
  RUN(cudaMemcpy(got.data(), dv, got.size() * 8, cudaMemcpyDeviceToHost));
  for (int64_t j = 0; j < p; j++) worst = fmax(worst, fabs(got[j] - v[j]));
  printf("%d clusters, %lld x %lld: loadings off by %.2g, step %g\n", parts, (long long) n, (long long) p, worst, numbers[3]);
  return !(worst < 1e-12 && numbers[3] == steps);
}
