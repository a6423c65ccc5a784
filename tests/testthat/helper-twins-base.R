# The base layer's rows of the table in test-twins.R.
twins_base <- function() {
  kinds <- c("uniform", "normal", "exponential", "gumbel")
  operations <- lapply(kinds, function(kind) {
    list(work = function(backend) weft:::draws(kind, 4999, key = 1e6 * stats::runif(1) %/% 1, backend = backend),
         tolerance = 0)
  })
  stats::setNames(operations, paste0("draws, ", kinds))
}
