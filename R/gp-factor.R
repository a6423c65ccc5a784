# The whole matrix of a Gaussian process, factored: exact as a preconditioner, so that conjugate gradients end after a
# step or two, which also check the factor. Half of the matrix is kept, in panels of 256 columns.

# The rank that `rank = NULL` stands for: all points where their matrix has room and takes less time than so many
# products with kernels evaluated anew, on one thread of the reference machine, else 100.
gp_rank <- function(n, d, kernel, backend) {
  limits <- kernel_limits()
  if (backend == "cuda" || n > limits[["factor_points"]]) return(100)
  if (backend == "auto" && n > limits[["factor_points_device"]] && is.null(cuda_missing())) return(100)
  there <- host_free()
  if (there > 0 && 8 * (n^2 / 2 + 4 * 256 * n) > there / 4) return(100)
  product <- n^2 * kernel_work(kernel, d, 1)[["pairs"]] * limits[["unit"]]
  iterative <- gp_iterations * (product + 3e-4) + n * 1e-5 # each a call; the preconditioner
  factor <- at_reference(kernel_plan("factor", references = n)$cpu)
  if (n <= limits[["factor_always"]] || product / 2 + factor < iterative) n else 100
}

gp_iterations <- 150 # of conjugate gradients with a preconditioner of rank 100, kernels neither wide nor narrow

# A function that applies (variance K + noise I)^-1, or NULL where rounding leaves the matrix without a Cholesky factor.
# z: points and h as in native_points().
gp_factor <- function(z, kernel, h, variance, noise, control, width = 256L) {
  plan <- list(kernel = native_kernel(kernel), h = h, variance = variance, noise = noise, width = width)
  panels <- .Call(C_weft_kernel_factor, z, plan, control)
  if (!is.null(panels)) function(v) .Call(C_weft_kernel_solve, panels, v, control)
}
