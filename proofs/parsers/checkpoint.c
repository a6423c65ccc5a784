/* Checkpoints of irm(): whatever R's serialization may contain, read by a reader that makes only vectors and lists.
 * What is read has a checksum. R runs in this process. */
#include "parsers.h"
#include <Rinternals.h>
#include "begin_r.h"

SEXP C_weft_irm_saved_read(SEXP bytes);
SEXP C_weft_irm_saved_sum(SEXP x);

static void only_plain(SEXP x)
{
  switch (TYPEOF(x)) {
  case NILSXP: case LGLSXP: case INTSXP: case REALSXP: case STRSXP: return;
  case VECSXP:
    for (R_xlen_t k = 0; k < XLENGTH(x); k++) only_plain(VECTOR_ELT(x, k));
    return;
  default: abort();
  }
}

static SEXP read_it(void *data)
{
  SEXP x = PROTECT(C_weft_irm_saved_read(data));
  only_plain(x);
  (void) C_weft_irm_saved_sum(x);
  UNPROTECT(1);
  return R_NilValue;
}

static SEXP refused(SEXP condition, void *data)
{
  (void) condition;
  (void) data;
  return R_NilValue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  SEXP bytes = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t) size));
  if (size) memcpy(RAW(bytes), data, size);
  R_tryCatchError(read_it, bytes, refused, NULL);
  UNPROTECT(1);
  return 0;
}
