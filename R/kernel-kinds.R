# What R knows of each kernel; what native code needs is in src/kernel/kinds.h, by the same names. A record:
#   value(r)         k at distance r with h = 1
#   log_radial(d)    log of the integral of r^(d - 1) k(r) over r
#   cost             of a value, in units of one dimension of one pair; measured on AVX-512 (inst/bench/kernel.R)
#   definite         the most dimensions in which it is offered as a covariance
#   nu               of a Matern kernel: its spectrum is (1 + |w|^2 / 2 nu)^-(nu + d / 2)
#   native           its name in native code
kernel_kind <- function(value, log_radial, cost, definite = 0, nu = NULL, native = NULL) {
  list(value = value, log_radial = log_radial, cost = cost, definite = definite, nu = nu, native = native)
}

#' Kernels
#'
#' The kernels of [kernel_sum()] and of the functions that are built on it, such as [kde()] and [kernel_regression()].
#'
#' In the table, \eqn{r} is the Euclidean distance and \eqn{h} the bandwidth. None of the kernels is normalised:
#'
#' | `kernel` | \eqn{k} | |
#' |---|---|---|
#' | `"gaussian"` | \eqn{\exp(-r^2 / 2h^2)} | |
#' | `"epanechnikov"` | \eqn{1 - r^2/h^2} | 0 from \eqn{r = h} on |
#' | `"laplacian"`, `"matern12"` | \eqn{\exp(-r/h)} | |
#' | `"triangular"` | \eqn{1 - r/h} | 0 from \eqn{r = h} on |
#' | `"uniform"` | 1 | where \eqn{r \le h}: the boundary counts |
#' | `"biweight"` | \eqn{(1 - r^2/h^2)^2} | 0 from \eqn{r = h} on |
#' | `"cosine"` | \eqn{\cos(\pi r / 2h)} | 0 from \eqn{r = h} on |
#' | `"cauchy"` | \eqn{1 / (1 + r^2/h^2)} | |
#' | `"matern32"` | \eqn{(1 + u) e^{-u}} | \eqn{u = \sqrt 3\, r/h} |
#' | `"matern52"` | \eqn{(1 + u + u^2/3) e^{-u}} | \eqn{u = \sqrt 5\, r/h} |
#' | `"matern72"` | \eqn{(1 + u + 2u^2/5 + u^3/15) e^{-u}} | \eqn{u = \sqrt 7\, r/h} |
#' | `"wendland"` | \eqn{(1 - r/h)^4 (4r/h + 1)} | 0 from \eqn{r = h} on |
#' | `"polynomial"` | \eqn{(scale\, x \cdot y + offset)^{degree}} | exact products only |
#'
#' If the bandwidth is one number, it is \eqn{h}. A vector scales each dimension. A matrix is a covariance: \eqn{r} is
#' then the Mahalanobis distance, and \eqn{h = 1}.
#'
#' The Gaussian, Laplacian, Cauchy and Matern kernels are positive definite in any number of dimensions. Wendland's
#' kernel (1995) is positive definite in up to three.
#'
#' @name kernels
#' @references Wendland (1995), Piecewise polynomial, positive definite and compactly supported radial functions of
#' minimal degree, Advances in Computational Mathematics 4, 389-396.
#' @seealso [kernel_sum()], [kernel_polynomial()], [kernel_bandwidth()]
#' @examples
#' kernel_sum(c(0, 1, 2), 0, kernel = "gaussian", bandwidth = 1)
#' kernel_sum(c(0, 1, 2), 0, kernel = "wendland", bandwidth = 2)
NULL

inside <- function(r, v) ifelse(r < 1, v, 0)

kernel_kinds <- list(
  gaussian = kernel_kind(
    value = function(r) exp(-r^2 / 2), log_radial = function(d) (d / 2 - 1) * log(2) + lgamma(d / 2),
    cost = 12, definite = Inf
  ),
  epanechnikov = kernel_kind(
    value = function(r) inside(r, 1 - r^2), log_radial = function(d) log(2 / (d * (d + 2))), cost = 2
  ),
  uniform = kernel_kind(value = function(r) as.numeric(r <= 1), log_radial = function(d) -log(d), cost = 3),
  triangular = kernel_kind(
    value = function(r) inside(r, 1 - r), log_radial = function(d) -log(d * (d + 1)), cost = 15
  ),
  laplacian = kernel_kind(
    value = function(r) exp(-r), log_radial = function(d) lgamma(d), cost = 20, definite = Inf, nu = 0.5
  ),
  biweight = kernel_kind(
    value = function(r) inside(r, (1 - r^2)^2), log_radial = function(d) log(8 / (d * (d + 2) * (d + 4))), cost = 2
  ),
  cosine = kernel_kind(
    value = function(r) inside(r, cos(pi * r / 2)),
    log_radial = function(d) {
      log(stats::integrate(function(r) r^(d - 1) * cos(pi * r / 2), 0, 1, rel.tol = 1e-12)$value)
    },
    cost = 7
  ),
  cauchy = kernel_kind( # its integral is finite in one dimension only
    value = function(r) 1 / (1 + r^2), log_radial = function(d) log(pi / 2), cost = 10, definite = Inf
  ),
  matern12 = kernel_kind(
    value = function(r) exp(-r), log_radial = function(d) lgamma(d), cost = 20, definite = Inf, nu = 0.5,
    native = "laplacian"
  ),
  matern32 = kernel_kind(
    value = function(r) (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
    log_radial = function(d) -d / 2 * log(3) + lgamma(d) + log1p(d),
    cost = 20, definite = Inf, nu = 1.5
  ),
  matern52 = kernel_kind(
    value = function(r) (1 + sqrt(5) * r + 5 * r^2 / 3) * exp(-sqrt(5) * r),
    log_radial = function(d) -d / 2 * log(5) + lgamma(d) + log(1 + d + d * (d + 1) / 3),
    cost = 21, definite = Inf, nu = 2.5
  ),
  matern72 = kernel_kind(
    value = function(r) {
      u <- sqrt(7) * r
      (1 + u + 2 * u^2 / 5 + u^3 / 15) * exp(-u)
    },
    log_radial = function(d) {
      -d / 2 * log(7) + lgamma(d) + log(1 + d + 2 * d * (d + 1) / 5 + d * (d + 1) * (d + 2) / 15)
    },
    cost = 21, definite = Inf, nu = 3.5
  ),
  wendland = kernel_kind(
    value = function(r) inside(r, (1 - r)^4 * (4 * r + 1)),
    log_radial = function(d) log(beta(d, 5) + 4 * beta(d + 1, 5)), cost = 13, definite = 3
  )
)

kernel_names <- names(kernel_kinds)
definite_kernels <- Filter(function(kernel) kernel_kinds[[kernel]]$definite > 0, kernel_names)

# The name that native code knows a kernel by.
native_kernel <- function(kernel) kernel_kinds[[kernel]]$native %||% kernel

# Native code's sheet of kernels, a row each: name, form, single and the slopes that kernel/kinds.h explains.
kernel_sheet <- local({
  sheet <- NULL
  function() {
    if (is.null(sheet)) sheet <<- as.data.frame(.Call(C_weft_kernel_kinds))
    sheet
  }
})

of_sheet <- function(kernel, what) kernel_sheet()[[what]][match(native_kernel(kernel), kernel_sheet()$name)]
is_compact <- function(kernel) of_sheet(kernel, "form") %in% c("COMPACT", "STEP")

# k at distance r with h = 1.
kernel_value <- function(kernel, r) kernel_kinds[[kernel]]$value(r)

# log of the integral of k over d-dimensional space at h = 1: the surface of the unit sphere times the radial integral.
log_integral <- function(kernel, d) log_sphere(d) + kernel_kinds[[kernel]]$log_radial(d)

# An error where a kernel is not a covariance of points in d dimensions.
check_definite <- function(kernel, d) {
  most <- kernel_kinds[[kernel]]$definite
  if (d > most) {
    abort_input(sprintf("The %s kernel is positive definite in up to %d dimensions.", kernel, most),
                x = sprintf("`x` has %d columns.", d), i = "Use another kernel, for example \"matern52\".")
  }
}

# What arguments are called in other packages (ks, KernSmooth, stats, sklearn), and here.
kernel_names_elsewhere <- c(query = "x", h = "bandwidth", H = "bandwidth", bw = "bandwidth", width = "bandwidth",
                            lambda = "bandwidth",
                            kern = "kernel", w = "weights", eval.points = "x", gridsize = "grid", ncomp = "k",
                            features = "k", n_components = "k", rtol = "rel_error", atol = "abs_error")
