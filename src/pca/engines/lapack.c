/* LAPACK calls; see lapack.h. */
#ifndef USE_FC_LEN_T
#  define USE_FC_LEN_T
#endif
#include <string.h>
#include <R_ext/Lapack.h>
#ifndef FCONE
#  define FCONE
#endif
#include "core/call/arena.h"
#include "pca/engines/lapack.h"

/* Finds all eigenpairs by QR and puts the k largest into `value` and `vectors`, in ascending order. */
static weft_status by_qr(weft_ctx *ctx, weft_arena *mem, size_t order, double *diagonal, double *off, size_t k,
                         double *value, double *vectors)
{
  weft_status st = WEFT_OK;
  int m = (int) order, info = 0;
  double *all, *work;
  WEFT_TAKE(all, mem, order * order);
  WEFT_TAKE(work, mem, 2 * order);
  F77_CALL(dstev)("V", &m, diagonal, off, all, &m, work, &info FCONE);
  if (info) return weft_fail(ctx, WEFT_ERR_INTERNAL, "LAPACK's dstev failed (info %d)", info);
  memcpy(value, diagonal + (order - k), k * sizeof *value);
  memcpy(vectors, all + (order - k) * order, k * order * sizeof *vectors);
done:
  return st;
}

/* The k largest eigenvalues (descending) and vectors (order × k) of a symmetric tridiagonal matrix, whose diagonals are
 * destroyed: by dstevr, or by QR where that fails. */
weft_status weft_pca_tridiagonal(weft_ctx *ctx, size_t order, double *diagonal, double *off, size_t k, double *values,
                                 double *vectors)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  int m = (int) order, first = (int) (order - k) + 1, found = 0, info = 0;
  int lwork = 20 * m, liwork = 10 * m, *support, *iwork;
  double none = 0, *work, *value, *again, swap;
  if (order == 1) {
    values[0] = diagonal[0];
    vectors[0] = 1;
    return WEFT_OK;
  }
  WEFT_TAKE(support, &mem, 2 * order);
  WEFT_TAKE(iwork, &mem, (size_t) liwork);
  WEFT_TAKE(work, &mem, (size_t) lwork);
  WEFT_TAKE(value, &mem, order);
  WEFT_TAKE(again, &mem, 2 * order);
  memcpy(again, diagonal, order * sizeof *again);
  memcpy(again + order, off, order * sizeof *again);
  F77_CALL(dstevr)
  ("V", "I", &m, diagonal, off, &none, &none, &first, &m, &none, &found, value, vectors, &m, support, work, &lwork,
   iwork, &liwork, &info FCONE FCONE);
  /* Its bisection silently loses eigenvalues that are equal up to rounding (LAPACK 3.11). */
  if (info || found != (int) k) WEFT_TRY(by_qr(ctx, &mem, order, again, again + order, k, value, vectors));
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
