/* PLINK's files. The first byte says what the rest is: genotypes of a .bed file, with the number of samples and of
 * variants from the next two bytes, or the lines of a .bim or .fam file, for which R runs in this process. */
#include "parsers.h"
#include <Rinternals.h>
#include "begin_r.h"
#include "mi/mi.h"

SEXP C_weft_mi_fields(SEXP lines, SEXP count);

/* What the linked files need for work that is not done here. */
#define NOT_HERE(name) void name(void); void name(void) { abort(); }
NOT_HERE(weft_glue_columns) NOT_HERE(weft_glue_matrix) NOT_HERE(weft_glue_ncol)
NOT_HERE(weft_glue_nrow) NOT_HERE(weft_glue_run) NOT_HERE(weft_glue_vector) NOT_HERE(weft_result_put)

static void genotypes(const uint8_t *data, size_t size)
{
  if (size < 3) return;
  const size_t n = 1 + (size_t) data[0], p = 1 + data[1] % 16;
  double wanted[16];
  char path[64];
  weft_ctx ctx = one_thread();
  for (size_t j = 0; j < p; j++) wanted[j] = (double) (data[2] % 3 == 0 ? p - 1 - j : j);
  int32_t *out = malloc((n * p + 1) * sizeof *out);
  if (!out) abort();
  const int file = file_of(data + 3, size - 3, path);
  const weft_status status = weft_mi_genotypes(&ctx, path, n, wanted, p, out);
  const int whole = size - 3 >= 3 + p * ((n + 3) / 4);
  if ((status == WEFT_OK) != whole) abort();
  if (status == WEFT_OK)
    for (size_t k = 0; k < n * p; k++)
      if (out[k] != INT32_MIN && (out[k] < 0 || out[k] > 2)) abort();
  close(file);
  free(out);
  nothing_left();
}

static void fields(const uint8_t *data, size_t size)
{
  static unsigned often;
  SEXP lines = PROTECT(Rf_allocVector(STRSXP, 8));
  size_t at = 0;
  for (int k = 0; k < 8; k++) {
    size_t end = at;
    while (end < size && data[end] != '\n' && data[end]) end++;
    SET_STRING_ELT(lines, k, Rf_mkCharLenCE((const char *) data + at, (int) (end - at), CE_BYTES));
    at = end < size ? end + 1 : size;
  }
  SEXP count = PROTECT(Rf_ScalarInteger(6)), out = PROTECT(C_weft_mi_fields(lines, count));
  if (TYPEOF(out) != VECSXP && TYPEOF(out) != REALSXP) abort();
  if (TYPEOF(out) == VECSXP)
    for (int k = 0; k < 6; k++)
      for (R_xlen_t i = 0; i < XLENGTH(VECTOR_ELT(out, k)); i++)
        if (LENGTH(STRING_ELT(VECTOR_ELT(out, k), i)) < 1) abort();
  UNPROTECT(3);
  if (++often % 100000 == 0) R_gc();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 1) return 0;
  if (data[0] & 1) genotypes(data + 1, size - 1);
  else fields(data + 1, size - 1);
  return 0;
}
