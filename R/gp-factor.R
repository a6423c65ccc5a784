# The whole matrix of a Gaussian process, factored: exact as a preconditioner, so that conjugate gradients end after a
# step or two, which also check the factor. Half of the matrix is kept, in panels of 256 columns.

# The rank that `rank = NULL` stands for: all points where their matrix has room and takes less time than so many
# products with kernels evaluated anew, on one thread of the reference machine, else 100. Beside a device, which
# multiplies but does not factor, on four threads, whatever their number here. iterations: of conjugate gradients.
gp_rank <- function(n, d, kernel, backend, iterations = gp_iterations) {
  limits <- kernel_limits()
  if (n > limits[["factor_points"]]) return(100)
  free <- host_free()
  if (free > 0 && 8 * (n^2 / 2 + 4 * 256 * n) > free / 4) return(100)
  matrix <- n^2 * kernel_work(kernel, d, 1)[["pairs"]] * limits[["unit"]]
  product <- matrix + 3e-4 # and the call
  factor <- at_reference(kernel_plan("factor", references = n)$cpu) + matrix / 2
  if (backend == "cuda" || (backend == "auto" && is.null(cuda_missing()))) {
    direct <- at_reference(kernel_plan("direct", precision = "double", references = n, queries = n, d = d, m = 1,
                                       value = kernel_kinds[[kernel]]$cost, threads = 1))
    product <- min(if (backend == "auto") product, direct$cuda + limits[["device_call"]])
    factor <- factor / 4
  }
  iterative <- iterations * product + n * gp_low_rank # and the preconditioner
  if (n <= limits[["factor_always"]] || factor < iterative) n else 100
}

gp_iterations <- 150 # of conjugate gradients with a preconditioner of rank 100, kernels neither wide nor narrow
gp_low_rank <- 1e-5 # seconds of a point for that preconditioner

# Where the factor of the whole matrix takes much longer than a low rank, that one is made first: what it leaves of the
# matrix bounds the condition that conjugate gradients meet, and so their iterations. In 36 processes (1 to 8
# dimensions, narrow and wide kernels) they took a sixth to a nineteenth of the bound, mostly a ninth. list(rank, root),
# the root of the preconditioner where it has been made.
gp_look <- function(object, run) {
  n <- object$n
  factor <- at_reference(kernel_plan("factor", references = n)$cpu)
  if (object$rank < n || factor < 5 * n * gp_low_rank) return(list(rank = object$rank))
  problem <- kernel_problem(object$data, NULL, NULL, object$kernel, object$bandwidth,
                            run = as_run(weft_run(threads = run$threads)))
  low <- pivoted_cholesky(native_points(object$data, problem), problem, 100, function(residual) FALSE)
  condition <- 1 + object$variance * sum(low$residual) / object$noise
  iterations <- 1 + sqrt(condition) * log(2 / object$tolerance) / 18
  rank <- gp_rank(n, object$d, object$kernel, object$backend, iterations)
  list(rank = rank, root = if (rank < n) low$root)
}

# A function that applies (variance K + noise I)^-1, or NULL where rounding leaves the matrix without a Cholesky factor.
# z: points and h as in native_points().
gp_factor <- function(z, kernel, h, variance, noise, control, width = 256L) {
  plan <- list(kernel = native_kernel(kernel), h = h, variance = variance, noise = noise, width = width)
  panels <- .Call(C_weft_kernel_factor, z, plan, control)
  if (!is.null(panels)) function(v) .Call(C_weft_kernel_solve, panels, v, control)
}
