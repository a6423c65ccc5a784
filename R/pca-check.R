# Checks of saved principal components: see R/saved.R.

check_pca <- function(x, arg) {
  need <- parts_of(x, arg, "pca()")
  named <- function(v, rows, columns) is_table(v, rows, columns) && is.character(colnames(v))
  need("rotation", function(v) is.matrix(v) && length(v) > 0L && named(v, nrow(v), ncol(v)),
       "a matrix of finite numbers with one named column per component")
  p <- nrow(x[["rotation"]])
  k <- ncol(x[["rotation"]])
  need("n", function(v) is_numbers(v, 1L, min = 1, whole = TRUE), "the number of rows")
  n <- x[["n"]]
  need("x", function(v) named(v, n, k), sprintf("a matrix of finite scores, %.0f rows of %d components", n, k))
  need("sdev", function(v) is_numbers(v, k, min = 0), "standard deviations, one per component")
  need("d", function(v) is_numbers(v, k, min = 0), "singular values, one per component")
  need("share", function(v) is_numbers(v, k, min = 0), "proportions of the variance, one per component")
  need("center", function(v) isFALSE(v) || is_numbers(v, p), "FALSE or finite numbers, one per column")
  need("scale", function(v) isFALSE(v) || (is_numbers(v, p, min = 0, finite = FALSE) && all(v > 0)),
       "FALSE or positive numbers, one per column")
  need("weights", function(v) is.null(v) || is_numbers(v, n, min = 0), "NULL or weights of at least 0, one per row")
  need("total_variance", function(v) is_numbers(v, 1L, min = 0, finite = FALSE), "a number of at least 0")
  need("rank", function(v) is_numbers(v, 1L, min = 0, max = k), "the numerical rank")
  need("residual", function(v) is_numbers(v, k, min = 0, finite = FALSE), "numbers of at least 0, one per component")
  need("iterations", function(v) is_numbers(v, k, min = 0, whole = TRUE), "whole numbers, one per component")
  need("converged", function(v) is.logical(v) && length(v) == k && !anyNA(v), "TRUE or FALSE, one per component")
  need("method", is_word, "the name of a method")
  check_run_record(need)
  invisible(x)
}

check_pca_k <- function(x, arg) {
  need <- parts_of(x, arg, "pca_choose_k()")
  need("method", function(v) is_word(v, c("parallel", "signs", "broken_stick", "gavish_donoho", "q2")),
       "the name of a method")
  need("k", function(v) is_numbers(v, 1L, min = 0, whole = TRUE), "a whole number")
  need("curve", function(v) {
    is_frame(v) && nrow(v) > 0L && all(vapply(unclass(v)[c("component", "value", "threshold")], is_numbers, NA))
  }, "a data frame of `component`, `value` and `threshold`")
  invisible(x)
}
