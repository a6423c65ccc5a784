/* The micro-kernels, included once for each instruction set, whose macros are undefined at the end.
 *   tile   tile (ROWS × COLS, column major) := sum over k of a_k b_k', where `a` holds ROWS and `b` COLS numbers for
 *          each k; ROWS is VECTORS vectors of LANES doubles
 *   dots   out (DOTS_X × DOTS_U, column major) := inner products of the columns x (less their centre) with the columns
 *          u */
typedef double KERNEL_NAME(_vector) __attribute__((vector_size(8 * LANES), aligned(8)));

/* A tile of C: VECTORS * LANES rows by COLS columns, sums over `depth` of packed a and b, held in registers
 * throughout. */
KERNEL_TARGET static void KERNEL_NAME(_tile)(size_t depth, const double *a, const double *b, double *tile)
{
  KERNEL_NAME(_vector) sum[COLS][VECTORS];
#pragma GCC unroll 8
  for (int j = 0; j < COLS; j++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) sum[j][v] = (KERNEL_NAME(_vector)){ 0 };
  for (size_t k = 0; k < depth; k++, a += VECTORS * LANES, b += COLS) {
    KERNEL_NAME(_vector) x[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) x[v] = *(const KERNEL_NAME(_vector) *) (a + v * LANES);
#pragma GCC unroll 8
    for (int j = 0; j < COLS; j++)
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) sum[j][v] += x[v] * b[j];
  }
#pragma GCC unroll 8
  for (int j = 0; j < COLS; j++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) *(KERNEL_NAME(_vector) *) (tile + (j * VECTORS + v) * LANES) = sum[j][v];
}

/* All dot products of DOTS_X columns of x, centred, with DOTS_U columns of u, of length `depth`: each number loaded
 * serves several sums. What is left after whole vectors is added first. */
KERNEL_TARGET static void KERNEL_NAME(_dots)(size_t depth, const double *const *x, const double *center,
                                             const double *const *u, double *out)
{
  KERNEL_NAME(_vector) sum[DOTS_U][DOTS_X];
  size_t k = 0;
#pragma GCC unroll 8
  for (int j = 0; j < DOTS_U; j++)
#pragma GCC unroll 6
    for (int v = 0; v < DOTS_X; v++) sum[j][v] = (KERNEL_NAME(_vector)){ 0 };
  for (; k + LANES <= depth; k += LANES) {
    KERNEL_NAME(_vector) a[DOTS_X];
#pragma GCC unroll 6
    for (int v = 0; v < DOTS_X; v++) a[v] = *(const KERNEL_NAME(_vector) *) (x[v] + k) - center[v];
#pragma GCC unroll 8
    for (int j = 0; j < DOTS_U; j++)
#pragma GCC unroll 6
      for (int v = 0; v < DOTS_X; v++) sum[j][v] += a[v] * *(const KERNEL_NAME(_vector) *) (u[j] + k);
  }
  for (int j = 0; j < DOTS_U; j++)
    for (int v = 0; v < DOTS_X; v++) {
      double total = 0;
      for (size_t rest = k; rest < depth; rest++) total += (x[v][rest] - center[v]) * u[j][rest];
      for (int l = 0; l < LANES; l++) total += sum[j][v][l];
      out[v + j * DOTS_X] = total;
    }
}

#undef LANES
#undef VECTORS
#undef COLS
#undef DOTS_X
#undef DOTS_U
#undef KERNEL_NAME
#undef KERNEL_TARGET
