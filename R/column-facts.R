# What must be known of all columns of a double matrix before anything else is computed from it
# (src/core/data/column_facts.h). R's own loops over tens of thousands of columns, and its copies of the matrix, would
# take longer than what follows.

# list(missing, infinite, least, greatest) and, with `same`, how many values of a column are its commonest one, and
# whether it has at most five different ones, whole and below a hundred.
matrix_facts <- function(x, threads = NULL, same = FALSE) {
  .Call(C_weft_column_facts, x, same, run_control("cpu", threads, FALSE))
}

# list(median, mad: the median distance from it) of a complete matrix.
column_spreads <- function(x, threads = NULL) {
  if (!is.double(x)) storage.mode(x) <- "double"
  .Call(C_weft_column_medians, x, run_control("cpu", threads, FALSE))
}

# Of every row the sum of its squares, centred and scaled.
row_squares <- function(x, center, scale, threads = NULL) {
  .Call(C_weft_row_squares, x, as.double(center), as.double(scale), run_control("cpu", threads, FALSE))
}

all_finite <- function(x) {
  if (!is.double(x)) return(all(is.finite(x)))
  .Call(C_weft_all_finite, x, run_control("cpu", NULL, FALSE))
}
