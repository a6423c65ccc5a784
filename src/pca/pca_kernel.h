/* One micro-kernel, included once for each instruction set: tile (ROWS × COLS, column major) := sum over k of a_k b_k', where
 * `a` holds ROWS and `b` COLS numbers for each k. ROWS is VECTORS vectors of LANES doubles. */
typedef double KERNEL_NAME(_vector) __attribute__((vector_size(8 * LANES), aligned(8)));

KERNEL_TARGET static void KERNEL_NAME(_tile)(size_t depth, const double *a, const double *b, double *tile)
{
  KERNEL_NAME(_vector) sum[COLS][VECTORS];
#pragma GCC unroll 8
  for (int j = 0; j < COLS; j++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) sum[j][v] = (KERNEL_NAME(_vector)) { 0 };
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
