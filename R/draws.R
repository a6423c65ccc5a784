# The package's random draws, seen from R: draw i is a function of (key, stream, first + i) and of nothing else
# (src/base/draws.h). The tests hold them to their laws and hold the back ends to each other.

# In the order of weft_draw_kind (src/base/draws_fill.h).
draw_kinds <- c(
  "words", "curand_words", "uniform", "normal", "exponential", "gumbel", "gamma", "log_gamma", "beta", "log_beta",
  "log1m_beta", "below", "categorical", "categorical_log"
)

#' Draws of one kind
#'
#' @param kind One of `draw_kinds`.
#' @param n Number of draws.
#' @param a,b Parameters of the kind: the sub-counter of words, the shapes of gammas and betas, n of below; for
#'   categoricals the number of categories and the slope of their weights `1 + b * j`, j from 0.
#' @param key,first A whole number below 2^53, or its 32-bit halves `c(high, low)`.
#' @param stream A whole number below 2^32.
#' @param backend "cpu" or "cuda".
#' @return A double vector: n draws, or 4 n words.
#' @noRd
draws <- function(kind, n, a = 0, b = 0, key = 1, stream = 0, first = 0, backend = "cpu",
                  threads = NULL) {
  .Call(
    C_weft_draws, match(kind, draw_kinds) - 1L, as.double(n), as.double(a), as.double(b), as_halves(key),
    as.double(stream), as_halves(first), run_control(choose_backend(backend)$name, threads, FALSE)
  )
}

as_halves <- function(x) {
  if (length(x) == 2L) as.double(x) else c(x %/% 2^32, x %% 2^32)
}
