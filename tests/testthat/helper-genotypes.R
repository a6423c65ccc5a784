# Writes a matrix of 0, 1, 2 and NA as stem.bed, .bim and .fam.
write_genotypes <- function(stem, g, bim = NULL) {
  codes <- ifelse(is.na(g), 1L, c(3L, 2L, 0L)[g + 1L])
  block <- function(bits) as.raw(colSums(matrix(c(bits, rep(0L, -length(bits) %% 4)), 4) * c(1L, 4L, 16L, 64L)))
  blocks <- unlist(lapply(seq_len(ncol(g)), function(j) block(codes[, j])))
  writeBin(c(as.raw(c(0x6c, 0x1b, 0x01)), blocks), paste0(stem, ".bed"))
  writeLines(bim %||% sprintf("1 rs%d 0 %d A G", seq_len(ncol(g)), 100 * seq_len(ncol(g))), paste0(stem, ".bim"))
  writeLines(sprintf("f i%d 0 0 1 -9", seq_len(nrow(g))), paste0(stem, ".fam"))
  stem
}
`%||%` <- function(a, b) if (is.null(a)) b else a

# Rare and common variants, constants, missing calls here and there.
some_genotypes <- function(n, p, missing = 0.05) {
  g <- matrix(stats::rbinom(n * p, 2, rep(stats::runif(p), each = n)), n)
  g[stats::runif(n * p) < missing] <- NA
  g[, seq_len(p %/% 3)][is.na(g[, seq_len(p %/% 3)])] <- 0L
  if (p > 4) g[, p - 0:3] <- rep(list(0L, 2L, NA, c(1L, rep(2L, n - 1L))), each = 1) |> lapply(rep_len, n) |> unlist()
  g
}

# Five populations that differ in a part of the variants, with missing genotypes; a constant variant where there are
# many.
planted_genotypes <- function(n, p, missing = 0.03) {
  often <- matrix(stats::runif(p, 0.1, 0.9), 5, p, byrow = TRUE)
  own <- sample(length(often), length(often) %/% 3)
  often[own] <- stats::runif(length(own), 0.05, 0.95)
  g <- matrix(stats::rbinom(n * p, 2, often[rep_len(1:5, n), ]), n)
  g[cbind(sample(n, p, TRUE), seq_len(p))[stats::runif(p) < min(1, missing * n), , drop = FALSE]] <- NA
  if (p > 50) g[, 7] <- 2L
  g
}
