# The package's random draws, seen from R: draw i is a function of (key, stream, first + i) and of nothing else
# (src/core/numbers/draws.h). The tests check their distributions, and that both back ends draw the same.

#' Draws of one kind
#'
#' @param kind A name in WEFT_DRAW_LIST (src/core/numbers/draws_fill.h).
#' @param n Number of draws.
#' @param a,b Parameters of the kind: the sub-counter of words, the shapes of gammas and betas, n of below; for
#'   categoricals the number of categories and the slope of their weights `1 + b * j`, j from 0.
#' @param key,first A whole number below 2^53, or its 32-bit halves `c(high, low)`.
#' @param stream A whole number below 2^32.
#' @param backend "cpu" or "cuda".
#' @return A double vector: n draws, or 4 n words.
#' @noRd
draws <- function(kind, n, a = 0, b = 0, key = 1, stream = 0, first = 0, backend = "cpu", threads = NULL) {
  law <- list(kind = kind, n = n, a = a, b = b, key = as_halves(key), stream = stream, first = as_halves(first))
  where <- if (identical(backend, "cpu")) "cpu" else choose_backend(backend)$name
  .Call(C_weft_draws, law, run_control(where, threads, FALSE))
}

as_halves <- function(x) {
  if (length(x) == 2L) as.double(x) else c(x %/% 2^32, x %% 2^32)
}
