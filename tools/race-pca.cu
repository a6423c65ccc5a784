/* Kernels of principal components alone, for compute-sanitizer: within R its racecheck fails itself at clusters of
 * blocks, and at cuBLAS's products of halves, whose results its initcheck takes for unwritten. nvcc -O2 -arch=sm_90 -I
 * src -o race-pca tools/race-pca.cu && compute-sanitizer --tool racecheck ./race-pca [rows] [columns] [genotypes].
 * Three steps of GS-PCA on random numbers, the last one checked against loops; a Gram matrix from halves, whose
 * products are loops; products of genotypes with all widths of vectors, whole and by shares of the terms, checked
 * against loops. */
#include "pca/cuda/gs_step.cu"
#include "pca/cuda/genotype_kernels.cuh"
#include "pca/cuda/gram_kernels.cuh"
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

bool weft_device_compiled_for(const void *, int) { return true; }
cudaError_t weft_device_allow_shared(const void *kernel, size_t bytes)
{
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
}

#define RUN(step) \
  do { \
    const cudaError_t e_ = (step); \
    if (e_) { \
      printf("%s: %s\n", #step, cudaGetErrorString(e_)); \
      return 1; \
    } \
  } while (0)

static double dot(const double *a, const double *b, size_t n)
{
  double s = 0;
  for (size_t i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

static int steps_of_gs(int64_t n, int64_t p)
{
  const int64_t ld = n + 3, steps = 3;
  std::vector<double> x((size_t) (ld * p)), v((size_t) p), u((size_t) n), w((size_t) p), got((size_t) p),
      found((size_t) p);
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
  if (!weft_pca_fused_fits(p)) {
    printf("no clusters here\n");
    return 1;
  }
  RUN(weft_pca_tile(dx, n, p, ld, tiled, stream));
  const weft_pca_dense m = { tiled, n, p };
  for (int k = 1; k <= steps; k++) {
    RUN(weft_pca_fused(&m, dv, du, partial, &parts, stream));
    RUN(weft_pca_after(dfound, 1, partial, parts, dv, du, dw, n, p, numbers, k, stream));
    RUN(cudaStreamSynchronize(stream));
    for (int64_t i = 0; i < n; i++) u[i] = 0;
    for (int64_t j = 0; j < p; j++)
      for (int64_t i = 0; i < n; i++) u[i] += x[i + j * ld] * v[j];
    for (int64_t j = 0; j < p; j++) w[j] = dot(&x[j * ld], u.data(), u.size());
    const double along = dot(w.data(), found.data(), w.size());
    for (int64_t j = 0; j < p; j++) w[j] -= along * found[j];
    const double norm = sqrt(dot(w.data(), w.data(), w.size()));
    for (int64_t j = 0; j < p; j++) v[j] = w[j] / norm;
  }
  RUN(cudaMemcpy(got.data(), dv, got.size() * 8, cudaMemcpyDeviceToHost));
  for (int64_t j = 0; j < p; j++) worst = fmax(worst, fabs(got[j] - v[j]));
  printf("%d clusters, %lld x %lld: loadings off by %.2g, step %g\n", parts, (long long) n, (long long) p, worst,
         numbers[3]);
  return !(worst < 1e-12 && numbers[3] == steps);
}

static int gram_from_halves(int64_t n, int64_t p)
{
  const int64_t ld = (n + 15) / 16 * 16, columns = (p + 15) / 16 * 16, count = ld * p, padded = ld * columns;
  std::vector<double> x((size_t) count), want((size_t) (p * p)), got((size_t) (p * p)), diagonal((size_t) p);
  std::vector<__half> high((size_t) padded), low((size_t) padded);
  std::vector<float> main((size_t) (columns * columns)), cross((size_t) (columns * columns));
  const unsigned squares = (unsigned) ((p + 31) / 32);
  double *dx, *dg, *ddiagonal, largest, worst = 0, most = 0;
  float *dmain, *dcross;
  __half *dhigh, *dlow;
  unsigned long long *dbits;
  int exponent;
  for (int64_t j = 0; j < p; j++)
    for (int64_t i = 0; i < n; i++) x[(size_t) (i + j * ld)] = exp(5.0 * rand() / RAND_MAX) - 50;
  RUN(cudaMalloc(&dx, x.size() * 8));
  RUN(cudaMalloc(&dg, got.size() * 8));
  RUN(cudaMalloc(&ddiagonal, diagonal.size() * 8));
  RUN(cudaMalloc(&dmain, main.size() * 4));
  RUN(cudaMalloc(&dcross, cross.size() * 4));
  RUN(cudaMalloc(&dhigh, high.size() * 2));
  RUN(cudaMalloc(&dlow, low.size() * 2));
  RUN(cudaMalloc(&dbits, 8));
  RUN(cudaMemcpy(dx, x.data(), x.size() * 8, cudaMemcpyHostToDevice));
  RUN(cudaMemset(dbits, 0, 8));
  largest_bits<<<16, 256>>>(dx, count, dbits);
  RUN(cudaMemcpy(&largest, dbits, 8, cudaMemcpyDeviceToHost));
  frexp(largest, &exponent);
  exponent = 14 - exponent;
  split<<<16, 256>>>(dx, count, padded, ldexp(1, exponent), dhigh, dlow);
  RUN(cudaMemcpy(high.data(), dhigh, high.size() * 2, cudaMemcpyDeviceToHost));
  RUN(cudaMemcpy(low.data(), dlow, low.size() * 2, cudaMemcpyDeviceToHost));
  for (int64_t j = 0; j < columns; j++)
    for (int64_t i = 0; i < columns; i++) {
      double h = 0, c = 0;
      for (int64_t k = 0; k < ld; k++) {
        h += (double) __half2float(high[(size_t) (k + i * ld)]) * __half2float(high[(size_t) (k + j * ld)]);
        c += (double) __half2float(high[(size_t) (k + i * ld)]) * __half2float(low[(size_t) (k + j * ld)]);
      }
      main[(size_t) (i + j * columns)] = i >= j ? (float) h : NAN;
      cross[(size_t) (i + j * columns)] = (float) c;
    }
  RUN(cudaMemcpy(dmain, main.data(), main.size() * 4, cudaMemcpyHostToDevice));
  RUN(cudaMemcpy(dcross, cross.data(), cross.size() * 4, cudaMemcpyHostToDevice));
  join<<<dim3(squares, squares), dim3(32, 8)>>>(dmain, dcross, columns, p, ldexp(1, -exponent), 0, dg);
  mirror<<<dim3(squares, squares), dim3(32, 8)>>>(dg, p, ddiagonal);
  RUN(cudaMemcpy(got.data(), dg, got.size() * 8, cudaMemcpyDeviceToHost));
  RUN(cudaMemcpy(diagonal.data(), ddiagonal, diagonal.size() * 8, cudaMemcpyDeviceToHost));
  for (int64_t j = 0; j < p; j++)
    for (int64_t i = 0; i < p; i++) {
      want[(size_t) (i + j * p)] = dot(&x[(size_t) (i * ld)], &x[(size_t) (j * ld)], (size_t) n);
      most = fmax(most, fabs(want[(size_t) (i + j * p)]));
    }
  for (int64_t k = 0; k < p * p; k++)
    worst = fmax(worst, !(fabs(got[(size_t) k] - want[(size_t) k]) <= most) ? INFINITY
                                                                            : fabs(got[(size_t) k] - want[(size_t) k]));
  for (int64_t j = 0; j < p; j++) worst = fmax(worst, fabs(diagonal[(size_t) j] - got[(size_t) (j + j * p)]));
  printf("Gram matrix from halves, %lld x %lld: off by %.2g of the largest entry\n", (long long) n, (long long) p,
         worst / most);
  return !(worst < 1e-6 * most);
}

/* X v or X'u of random genotypes, n people x p variants, with b vectors; in two shares of the terms where `shared`. */
static int genotype_products(int64_t n, int64_t p, int b, bool transposed, bool shared)
{
  const int64_t pitch = (n + 255) / 256 * 64, rows = transposed ? p : n, terms = transposed ? n : p;
  std::vector<uint8_t> codes((size_t) (pitch * p));
  std::vector<double> values((size_t) (4 * p)), in((size_t) (terms * b)), got((size_t) (rows * b)),
      times((size_t) rows);
  double worst = 0;
  genotype_job job = {};
  uint8_t *dcodes;
  double *dvalues, *din, *dtimes;
  for (uint8_t &a : codes) a = (uint8_t) (rand() >> 4);
  for (double &a : values) a = rand() / (double) RAND_MAX - 0.5;
  for (double &a : in) a = rand() / (double) RAND_MAX - 0.5;
  for (double &a : times) a = rand() / (double) RAND_MAX;
  RUN(cudaMalloc(&dcodes, codes.size()));
  RUN(cudaMalloc(&dvalues, values.size() * 8));
  RUN(cudaMalloc(&din, in.size() * 8));
  RUN(cudaMalloc(&dtimes, times.size() * 8));
  RUN(cudaMalloc(&job.out, got.size() * 8));
  RUN(cudaMalloc(&job.partial, 2 * got.size() * 8));
  RUN(cudaMemcpy(dcodes, codes.data(), codes.size(), cudaMemcpyHostToDevice));
  RUN(cudaMemcpy(dvalues, values.data(), values.size() * 8, cudaMemcpyHostToDevice));
  RUN(cudaMemcpy(din, in.data(), in.size() * 8, cudaMemcpyHostToDevice));
  RUN(cudaMemcpy(dtimes, times.data(), times.size() * 8, cudaMemcpyHostToDevice));
  double *partial = job.partial;
  job.codes = dcodes;
  job.pitch = pitch;
  job.values = dvalues;
  job.rows = job.out_rows = rows;
  job.terms = job.in_rows = terms;
  job.in = din;
  job.b = b;
  job.times = dtimes;
  job.depth = shared ? (terms / 2 + DEPTH - 1) / DEPTH * DEPTH : terms;
  if (!shared) job.partial = NULL;
  const int shares = (int) ((terms + job.depth - 1) / job.depth);
  const dim3 blocks((unsigned) ((rows + ROWS - 1) / ROWS), (unsigned) shares);
  if (transposed)
    launch<true>(job, blocks, 0);
  else
    launch<false>(job, blocks, 0);
  RUN(cudaGetLastError());
  if (shared) add_shares<<<(unsigned) ((rows * b + 255) / 256), 256>>>(job, shares);
  RUN(cudaMemcpy(got.data(), job.out, got.size() * 8, cudaMemcpyDeviceToHost));
  for (int c = 0; c < b; c++)
    for (int64_t r = 0; r < rows; r++) {
      double sum = 0;
      for (int64_t k = 0; k < terms; k++) {
        const int64_t person = transposed ? k : r, variant = transposed ? r : k;
        const int code = codes[(size_t) (variant * pitch + person / 4)] >> 2 * (person % 4) & 3;
        sum += values[(size_t) (4 * variant + code)] * in[(size_t) (k + c * terms)];
      }
      const double off = fabs(got[(size_t) (r + c * rows)] - times[(size_t) r] * sum);
      worst = !(off <= worst) ? off : worst;
    }
  cudaFree(dcodes);
  cudaFree(dvalues);
  cudaFree(din);
  cudaFree(dtimes);
  cudaFree(job.out);
  cudaFree(partial);
  printf("genotypes, %lld x %lld, %d vectors%s%s: off by %.2g\n", (long long) n, (long long) p, b,
         transposed ? ", transposed" : "", shared ? ", shared" : "", worst);
  return !(worst < 1e-10);
}

static int all_genotype_products(int64_t n, int64_t p)
{
  int failed = 0;
  for (int b : { 1, 13, 32, 41, 64 })
    for (int kind = 0; kind < 4; kind++) failed |= genotype_products(n, p, b, kind & 1, kind & 2);
  return failed;
}

int main(int argc, char **argv)
{
  const int64_t n = argc > 1 ? atoll(argv[1]) : 301, p = argc > 2 ? atoll(argv[2]) : 203;
  if (argc > 3) return all_genotype_products(n, p); /* these alone */
  return steps_of_gs(n, p) || gram_from_halves(n, p < 203 ? p : 203) || all_genotype_products(n, p < 700 ? p : 700);
}
