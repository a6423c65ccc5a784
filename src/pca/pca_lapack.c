/* LAPACK calls; see pca_lapack.h. */
#ifndef USE_FC_LEN_T
# define USE_FC_LEN_T
#endif
#include <R_ext/Lapack.h>
#ifndef FCONE
# define FCONE
#endif
#include "../base/arena.h"
#include "pca_lapack.h"

weft_status weft_pca_tridiagonal(weft_ctx *ctx, size_t order, double *diagonal, double *off, size_t k, double *values,
                                 double *vectors)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  int m = (int) order, first = (int) (order - k) + 1, found = 0, info = 0;
  int lwork = 20 * m, liwork = 10 * m, *support, *iwork;
  double none = 0, *work, *value, swap;
  if (order == 1) { values[0] = diagonal[0]; vectors[0] = 1; return WEFT_OK; }
  WEFT_TAKE(support, &mem, 2 * order);
  WEFT_TAKE(iwork, &mem, (size_t) liwork);
  WEFT_TAKE(work, &mem, (size_t) lwork);
  WEFT_TAKE(value, &mem, order);
  F77_CALL(dstevr)
  ("V", "I", &m, diagonal, off, &none, &none, &first, &m, &none, &found, value, vectors, &m, support, work, &lwork,
   iwork, &liwork, &info FCONE FCONE);
  if (info || found != (int) k) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "LAPACK's dstevr failed (info %d, %d of %d eigenvalues)", info, found,
                   (int) k);
    goto done;
  }
  for (size_t j = 0; j < k; j++) values[j] = value[k - 1 - j];
  for (size_t j = 0; j < k / 2; j++)
    for (size_t i = 0; i < order; i++) {
      swap = vectors[i + j * order];
      vectors[i + j * order] = vectors[i + (k - 1 - j) * order];
      vectors[i + (k - 1 - j) * order] = swap;
    }
done:
  weft_arena_end(&mem);
  return st;
}
