# Kernels convolved with themselves, g(r) = integral of k(|y|) k(|y - r e|): what the integral of a squared density sums
# over pairs. list(kernel, wider, at_zero) where g(r) is at_zero times a kernel of kernel_sum() at bandwidth `wider`;
# else list(radial), a table of cubic pieces for C_weft_kernel_pairs.
kernel_convolution <- function(kernel, d) {
  at_zero <- convolution_at_zero(kernel, d)
  known <- function(kernel, wider) list(kernel = kernel, wider = wider, at_zero = at_zero)
  if (kernel == "gaussian") return(known("gaussian", sqrt(2)))
  if (kernel == "cauchy" && d == 1L) return(known("cauchy", 2))
  if (kernel == "uniform" && d == 1L) return(known("triangular", 2))
  if (kernel %in% c("laplacian", "matern12") && d == 1L) return(known("matern32", sqrt(3)))
  if (kernel %in% c("laplacian", "matern12") && d == 3L) return(known("matern52", sqrt(5)))
  end <- if (is_compact(kernel)) 2 else 45
  r <- seq(0, end, length.out = if (is_compact(kernel)) 513L else 2049L)
  list(radial = radial_table(r, convolution_values(kernel, d, r, at_zero)))
}

log_sphere <- function(d) log(2) + d / 2 * log(pi) - lgamma(d / 2) # surface of the unit sphere

# The integral of k squared.
convolution_at_zero <- function(kernel, d) {
  if (kernel == "gaussian") return(pi^(d / 2))
  upper <- if (is_compact(kernel)) 1 else Inf
  radial <- stats::integrate(function(r) r^(d - 1) * kernel_value(kernel, r)^2, 0, upper, rel.tol = 1e-10)$value
  radial * exp(log_sphere(d))
}

convolution_values <- function(kernel, d, r, at_zero) {
  if (kernel == "uniform") { # two balls of radius 1 have a lens in common
    ball <- exp(log_sphere(d)) / d
    return(ball * stats::pbeta(pmax(1 - r^2 / 4, 0), (d + 1) / 2, 0.5))
  }
  if (!is_compact(kernel)) { # the spectrum (1 + |w|^2)^-(nu + d/2), squared, is that of order 2 nu + d / 2
    nu <- kernel_kinds[[kernel]]$nu
    u <- sqrt(2 * nu) * r
    order <- 2 * nu + d / 2
    g <- exp((1 - order) * log(2) - lgamma(order) + order * log(u) + log(besselK(u, order, TRUE)) - u)
    g[u == 0] <- 1
    return(at_zero * g)
  }
  # Twice the integral over the half of the first ball beyond r / 2, where both kernels are smooth but for the tip of
  # the second
  vapply(r, function(r) if (r >= 2) 0 else lens_integral(kernel, d, r), 0)
}

# Along the axis t = r / 2 .. 1, cut at the tip t = r, and at right angles to it rho = v sqrt(1 - t^2).
lens_integral <- function(kernel, d, r) {
  rule <- gauss_legendre()
  cuts <- unique(c(r / 2, if (r > 0 && r < 1) r, 1))
  total <- 0
  for (k in seq_len(length(cuts) - 1L)) {
    # in the angle acos(t), which takes the root at t = 1 away
    from <- acos(cuts[k + 1L])
    width <- acos(cuts[k]) - from
    angle <- from + width * rule$x
    t <- cos(angle)
    weight <- rule$w * width * sin(angle)
    if (d == 1L) {
      total <- total + sum(weight * kernel_value(kernel, abs(t)) * kernel_value(kernel, abs(t - r)))
      next
    }
    v <- rep(rule$x, each = length(t))
    rho <- v * sin(angle)
    both <- kernel_value(kernel, sqrt(t^2 + rho^2)) * kernel_value(kernel, sqrt((t - r)^2 + rho^2))
    f <- both * rho^(d - 2) * sin(angle)
    total <- total + sum(weight * f * rep(rule$w, each = length(t)))
  }
  2 * total * if (d == 1L) 1 else exp(log_sphere(d - 1))
}

# Nodes and weights on 0..1, 32 of them (Golub and Welsch 1969).
gauss_legendre <- function(n = 32L) {
  k <- seq_len(n - 1L)
  off <- k / sqrt(4 * k^2 - 1)
  m <- matrix(0, n, n)
  m[cbind(k, k + 1L)] <- m[cbind(k + 1L, k)] <- off
  e <- eigen(m, symmetric = TRUE)
  list(x = (e$values + 1) / 2, w = e$vectors[1L, ]^2)
}

# Cubic pieces by an interpolating spline; `bend` is half of the second derivative by r^2, the greatest from a piece on.
radial_table <- function(r, g) {
  spline <- environment(stats::splinefun(r, g, "fmm"))$z
  width <- r[2L]
  last <- length(r)
  pieces <- rbind(g, spline$b * width, spline$c * width^2, spline$d * width^3)[, -last]
  second <- 2 * spline$c
  bend <- abs(second - spline$b / r) / (8 * r^2)
  bend[1L] <- Inf
  # between knots the derivatives are monotone but for a bend or two: the next knot's value and a margin
  bend <- 1.5 * pmax(bend, c(bend[-1L], 0))
  list(coefficients = pieces, per_unit = 1 / width, bend = rev(cummax(rev(bend))))
}

pair_sums <- function(radial, query, reference, h, rel_error, run) {
  .Call(C_weft_kernel_pairs, radial, as.double(h), rel_error, query$native, reference$native,
        run_control("cpu", run$threads, run$progress, task = "Summing pairs"))
}
