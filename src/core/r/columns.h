/* Columns of R objects as views. */
#pragma once

#ifndef R_NO_REMAP
#  define R_NO_REMAP
#endif
#ifndef STRICT_R_HEADERS
#  define STRICT_R_HEADERS
#endif
#include <R.h>
#include <Rinternals.h>
#include "core/data/columns.h"

/* Number of columns and rows of a matrix, a list of columns or a sparse matrix, and the views of its columns.
 * `views` has room for weft_glue_ncol(x) columns. */
size_t weft_glue_ncol(SEXP x);
size_t weft_glue_nrow(SEXP x);
void weft_glue_columns(SEXP x, weft_column *views);
