# The whole matrix of a Gaussian process, factored: exact as a preconditioner, so that conjugate gradients end after a
# step or two, which then is their check. What takes the time are products of blocks by the BLAS that R uses. Panels of
# 256 columns are factored one after another, each less what those before it give; R looks for interrupts between
# products.

# The rank that `rank = NULL` stands for: all points where their matrix has room and takes less time than so many
# products with kernels evaluated anew, else 100.
gp_rank <- function(n, d, kernel, backend, threads) {
  if (backend == "cuda" || n > 20000) return(100)
  if (backend == "auto" && n > 5000 && is.null(cuda_missing())) return(100)
  there <- host_free()
  if (there > 0 && 8 * (n^2 / 2 + 4 * 256 * n) > there / 4) return(100)
  product <- n^2 * pair_cost(kernel, d, 1) * core_seconds("double") / threads_for(threads)
  iterative <- gp_iterations * (product + 3e-4) + n * 1e-5 # each a call; the preconditioner
  # less than the matrix itself takes: the BLAS need not be timed
  if (n > 200 && n^2 / 2 * matrix_entry > iterative) return(100)
  if (n <= 200 || n^2 / 2 * matrix_entry + n^3 / 3 * product_seconds() < iterative) n else 100
}

gp_iterations <- 150 # of conjugate gradients with a preconditioner of rank 100, kernels neither wide nor narrow
matrix_entry <- 4e-8 # seconds of an entry in R's own arithmetic

# Seconds of one multiplication and addition in a product of matrices by R's BLAS, as timed once per session: by the
# clock, or by the processor where that is less, since other work on the machine is no part of it.
product_seconds <- function() {
  if (is.null(session$product_seconds)) {
    a <- matrix(0.5, 256L, 256L)
    b <- a[, 256:1]
    once <- function() {
      times <- 0
      took <- c(0, 0)
      started <- proc.time()
      while (max(took) < 0.005) {
        tcrossprod(a, b)
        times <- times + 1
        now <- proc.time() - started
        took <- c(now[[3L]], now[[1L]] + now[[2L]])
      }
      min(took[took > 0]) / times
    }
    session$product_seconds <- min(once(), once()) / 256^3
  }
  session$product_seconds
}

# A function that applies (K + noise I)^-1, or NULL where rounding leaves the matrix without a root. z: points; h as in
# native_points().
gp_factor <- function(z, kernel, h, variance, noise, width = 256L) {
  n <- nrow(z)
  starts <- seq.int(1L, n, by = width)
  panels <- list() # of rows from their first column on
  for (first in starts) {
    own <- seq_len(min(width, n - first + 1L))
    a <- variance * kernel_matrix(z[first:n, , drop = FALSE], z[first - 1L + own, , drop = FALSE], kernel, h)
    a[cbind(own, own)] <- a[cbind(own, own)] + noise
    for (k in seq_along(panels)) {
      rows <- panels[[k]][(first - starts[k] + 1L):nrow(panels[[k]]), , drop = FALSE]
      a <- a - tcrossprod(rows, rows[own, , drop = FALSE])
    }
    root <- tryCatch(chol(a[own, , drop = FALSE]), error = function(e) NULL)
    if (is.null(root)) return(NULL)
    below <- a[-own, , drop = FALSE]
    if (nrow(below)) below <- t(backsolve(root, t(below), transpose = TRUE))
    panels[[length(panels) + 1L]] <- rbind(t(root), below)
  }
  function(v) gp_solve_factor(panels, starts, v)
}

gp_solve_factor <- function(panels, starts, v) {
  for (k in seq_along(panels)) {
    own <- seq_len(ncol(panels[[k]]))
    at <- starts[k] - 1L + own
    v[at, ] <- forwardsolve(panels[[k]][own, , drop = FALSE], v[at, , drop = FALSE])
    if (k == length(panels)) break
    below <- seq.int(at[length(at)] + 1L, nrow(v))
    v[below, ] <- v[below, , drop = FALSE] - panels[[k]][-own, , drop = FALSE] %*% v[at, , drop = FALSE]
  }
  for (k in rev(seq_along(panels))) {
    own <- seq_len(ncol(panels[[k]]))
    at <- starts[k] - 1L + own
    left <- v[at, , drop = FALSE]
    if (k < length(panels)) {
      below <- seq.int(at[length(at)] + 1L, nrow(v))
      left <- left - crossprod(panels[[k]][-own, , drop = FALSE], v[below, , drop = FALSE])
    }
    v[at, ] <- forwardsolve_transposed(panels[[k]][own, , drop = FALSE], left)
  }
  v
}

forwardsolve_transposed <- function(lower, v) backsolve(lower, v, upper.tri = FALSE, transpose = TRUE)
