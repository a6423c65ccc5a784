/* Views of what R holds columns in: lists, matrices, sparse matrices, variants of a mapped file; see columns.h. */
#include "core/data/genotypes.h"
#include "core/r/glue.h"

static SEXP slot(SEXP x, const char *name) { return R_do_slot(x, Rf_install(name)); }
static int is_sparse(SEXP x) { return Rf_isS4(x) && R_has_slot(x, Rf_install("p")); }
static int is_genotypes(SEXP x) { return TYPEOF(x) == VECSXP && Rf_inherits(x, "weft_genotypes"); }

size_t weft_glue_ncol(SEXP x)
{
  if (is_sparse(x)) return (size_t) INTEGER(slot(x, "Dim"))[1];
  if (is_genotypes(x)) return (size_t) Rf_xlength(weft_glue_element(x, "wanted"));
  return TYPEOF(x) == VECSXP ? (size_t) Rf_xlength(x) : (size_t) Rf_ncols(x);
}

size_t weft_glue_nrow(SEXP x)
{
  if (is_sparse(x)) return (size_t) INTEGER(slot(x, "Dim"))[0];
  if (is_genotypes(x)) return (size_t) Rf_asReal(weft_glue_element(x, "n"));
  if (TYPEOF(x) == VECSXP) return Rf_xlength(x) ? (size_t) Rf_xlength(VECTOR_ELT(x, 0)) : 0;
  return (size_t) Rf_nrows(x);
}

/* The type, the bytes of an element, and the start of an ordinary vector. */
static weft_column view_of(SEXP x, size_t *size)
{
  weft_column v = { WEFT_COLUMN_I32, NULL, NULL, 0 };
  *size = sizeof(int32_t);
  switch (TYPEOF(x)) {
  case INTSXP: v.values = INTEGER(x); break;
  case LGLSXP: v.values = LOGICAL(x); break;
  case REALSXP:
    v.type = WEFT_COLUMN_F64;
    v.values = REAL(x);
    *size = sizeof(double);
    break;
  case RAWSXP:
    v.type = WEFT_COLUMN_U8;
    v.values = RAW(x);
    *size = 1;
    break;
  default: weft_glue_fail(WEFT_ERR_INTERNAL, "A column of type %s reached the native code.", Rf_type2char(TYPEOF(x)));
  }
  return v;
}

static void sparse_columns(SEXP x, weft_column *views)
{
  const int *start = INTEGER(slot(x, "p")), *rows = INTEGER(slot(x, "i"));
  const double *values = R_has_slot(x, Rf_install("x")) ? REAL(slot(x, "x")) : NULL;
  size_t p = weft_glue_ncol(x);
  for (size_t j = 0; j < p; j++) {
    weft_column v = { values ? WEFT_COLUMN_SPARSE : WEFT_COLUMN_PATTERN, values ? values + start[j] : NULL,
                      rows + start[j], (size_t) (start[j + 1] - start[j]) };
    views[j] = v;
  }
}

/* What genotype_columns() in R/plink.R makes: variants of a mapped .bed file. */
static void genotype_columns(SEXP x, weft_column *views)
{
  const weft_mapped *file = weft_glue_mapped(weft_glue_element(x, "pointer"));
  const double *wanted = REAL(weft_glue_element(x, "wanted"));
  const size_t p = weft_glue_ncol(x), bytes = weft_genotype_bytes(weft_glue_nrow(x));
  for (size_t j = 0; j < p; j++) {
    const size_t at = WEFT_GENOTYPE_HEAD + (size_t) wanted[j] * bytes;
    if (!(wanted[j] >= 0) || at + bytes > file->size)
      weft_glue_fail(WEFT_ERR_INTERNAL, "Variant %.0f reached the native code.", wanted[j]);
    views[j] = (weft_column){ WEFT_COLUMN_GENOTYPE, file->data + at, NULL, 0 };
  }
}

/* Fills p views of an R object's columns (data frame, matrix, sparse matrix, genotypes), without copying; the object
 * must outlive them. */
void weft_glue_columns(SEXP x, weft_column *views)
{
  size_t p = weft_glue_ncol(x), size;
  if (is_sparse(x)) {
    sparse_columns(x, views);
  } else if (is_genotypes(x)) {
    genotype_columns(x, views);
  } else if (TYPEOF(x) == VECSXP) {
    for (size_t j = 0; j < p; j++) views[j] = view_of(VECTOR_ELT(x, (R_xlen_t) j), &size);
  } else {
    size_t n = weft_glue_nrow(x);
    weft_column first = view_of(x, &size);
    for (size_t j = 0; j < p; j++) {
      views[j] = first;
      views[j].values = (const char *) first.values + j * n * size;
    }
  }
}

/* Whether a column goes into native code as it is: a factor, or whole numbers, numbers, logical values or bytes without
 * a class, and without dimensions. */
static int is_plain(SEXP column)
{
  const int type = TYPEOF(column);
  if (Rf_getAttrib(column, R_DimSymbol) != R_NilValue) return 0;
  if (Rf_isObject(column)) return type == INTSXP && Rf_inherits(column, "factor");
  return type == INTSXP || type == REALSXP || type == LGLSXP || type == RAWSXP;
}

/* One answer for each column of a list, which may have a million. */
SEXP C_weft_plain_columns(SEXP columns)
{
  const R_xlen_t p = Rf_xlength(columns);
  SEXP out = PROTECT(Rf_allocVector(LGLSXP, p));
  for (R_xlen_t j = 0; j < p; j++) LOGICAL(out)[j] = is_plain(VECTOR_ELT(columns, j));
  UNPROTECT(1);
  return out;
}
