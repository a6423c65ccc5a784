# Calls of what stands on kernel sums, for helper-calls.R: densities, regressions, Gaussian processes, components and
# support vectors. Which way sums go is the library's choice here, so results agree to the error that was asked for.
calls_models <- function() {
  list(kde = list(share = 3, make = draw_kde), kernel_gradient = list(share = 3, make = draw_gradient),
       kernel_regression = list(share = 3, make = draw_regression),
       gp_regression = list(share = 2, make = draw_gp), kernel_pca = list(share = 2, make = draw_kernel_pca),
       svm_predict = list(share = 2, make = draw_svm))
}

model_call <- function(text, run, agree) list(text = text, run = run, agree = agree, exact = FALSE)

model_points <- function() {
  p <- some_points(max(2, some_size(150)), pick(1, 1, 2, 3, 5))
  p$h <- some_bandwidth(p)
  p
}

# A model that f makes, and what it predicts.
predicted_call <- function(f, made, how, agree) {
  run <- function(side) {
    fit <- call_on(side, f, made)
    predicted <- do.call(stats::predict, c(list(fit), how, list(run = weft_run(threads = side$threads))))
    list(bandwidth = plain(fit$bandwidth), predicted = as.vector(predicted), scale = fit$log_scale)
  }
  same_bandwidth <- function(a, b) first_of(within(a$bandwidth, b$bandwidth, 0, "bandwidth"), agree(a, b))
  model_call(sprintf("predict(%s, %s)", call_text(f, made), call_text("", how)), run, same_bandwidth)
}

draw_kde <- function() {
  p <- model_points()
  kernels <- if (ncol(p$x) > 1L) setdiff(call_kernels, "cauchy") else call_kernels
  bandwidth <- if (chance(0.3)) pick("scott", "silverman") else p$h
  made <- list(x = p$x, bandwidth = bandwidth, kernel = sample(kernels, 1), rel_error = pick(0, 1e-4, 0.1))
  how <- c(maybe(0.6, newdata = some_queries(p, p$h)), maybe(0.3, log = TRUE))
  if (is.null(how$newdata)) how <- c(how, maybe(0.4, leave_one_out = TRUE))
  error <- 2 * made$rel_error + 1e-11
  predicted_call("kde", made, how, function(a, b) {
    f <- b$predicted
    least <- exp(log(1e-299) + log(nrow(p$x)) + b$scale) # values of the kernel below 1e-299 may count as 0
    bound <- if (isTRUE(how$log)) -2 * log1p(-error) + 4e-10 * pmax(1, abs(f)) else error * abs(f) + least
    within(a$predicted, f, bound, "density")
  })
}

# Numerator and denominator each keep their bound on each side, relative to the greatest distance from the mean.
draw_regression <- function() {
  p <- model_points()
  n <- nrow(p$x)
  y <- switch(pick("line", "noise", "constant", "large"), line = rowSums(p$x) / max(p$spread, p$offset),
              noise = stats::rnorm(n), constant = rep(3, n), large = 1e6 + stats::rnorm(n))
  made <- list(x = p$x, y = y, bandwidth = if (chance(0.3)) pick("scott", "silverman") else p$h,
               kernel = sample(call_kernels, 1), rel_error = pick(0, 1e-4, 1e-2))
  if (chance(0.3)) made$weights <- stats::rexp(n)
  how <- maybe(0.5, newdata = some_queries(p, p$h))
  bound <- (8 * made$rel_error + 1e-9) * max(abs(y - mean(y))) + 1e-15 * max(abs(y))
  predicted_call("kernel_regression", made, how, function(a, b) {
    reached <- exact_sums(list(x = how$newdata %||% p$x, reference = p$x, weights = made$weights,
                               kernel = made$kernel, bandwidth = a$bandwidth))$sum
    some <- abs(reached / sum(made$weights %||% rep(1, n)) / 1e-290 - 1) > 1e-2 # there one side may say NA
    within(a$predicted[some], b$predicted[some], bound, "fit")
  })
}

# Components within the error over the bandwidth, times the sum of what the slope's kernel gives.
draw_gradient <- function() {
  p <- model_points()
  kernel <- sample(names(weft:::kernel_slopes), 1)
  d <- ncol(p$x)
  shape <- if (d == 1L) "one" else pick("one", "each", "matrix")
  h <- switch(shape, one = p$h, each = p$h * stats::runif(d, 0.5, 2), matrix = some_covariance(p$h, d))
  made <- c(list(x = some_queries(p, p$h), reference = p$x, kernel = kernel, bandwidth = h,
                 rel_error = pick(0, 1e-3, 0.1)), maybe(0.3, weights = stats::rnorm(nrow(p$x))))
  slope <- weft:::kernel_slopes[[kernel]]
  size <- slope$times * weft::kernel_sum(made$x, p$x, abs(made$weights %||% rep(1, nrow(p$x))), slope$kernel,
                                         weft:::scale_bandwidth(h, slope$wider), run = "cpu")
  each <- if (shape == "matrix") sqrt(diag(h)) else rep_len(h, d)
  ends <- max(apply(rbind(made$x, p$x), 2L, function(v) diff(range(v))) / each)
  all <- slope$times * sum(abs(made$weights %||% rep(1, nrow(p$x))))
  run <- function(side) lapply(call_on(side, "kernel_gradient", made), plain)
  model_call(call_text("kernel_gradient", made), run, function(a, b) {
    bound <- outer(2 * made$rel_error * size + 1e-13 * all * (1 + ends), 1 / each)
    edge <- kernel == "epanechnikov" # whose slope ends in a step
    if (edge) NULL else within(a$gradient, b$gradient, bound, "gradient")
  })
}

# Both solve to `tolerance`: residuals of that size move predictions by the norm of a row of the kernel over the noise.
draw_gp <- function() {
  n <- max(1, some_size(60))
  d <- pick(1, 2, 4)
  x <- matrix(stats::rnorm(n * d), n) + pick(0, 1000)
  made <- list(x = x, y = stats::rnorm(n), kernel = sample(definite_names(d), 1), bandwidth = log_uniform(-0.7, 0.7),
               noise = log_uniform(-2, 1), variance = log_uniform(-1, 1), rank = pick(0, 10, 100),
               tolerance = pick(1e-6, 1e-10))
  q <- matrix(stats::rnorm(5 * d), 5) + x[1L]
  se <- chance(0.3)
  run <- function(side) {
    fit <- call_on(side, "gp_regression", made)
    out <- stats::predict(fit, q, se = se, run = weft_run(threads = side$threads))
    c(list(alpha = fit$alpha), if (se) out else list(fit = out))
  }
  move <- 2 * made$tolerance / made$noise * sqrt(sum(made$y^2)) + 1e-12
  moved_variance <- 4 * made$tolerance * made$variance^2 * n / made$noise + 1e-9 * made$variance
  model_call(call_text("gp_regression", made), run, function(a, b) {
    first_of(within(a$alpha, b$alpha, move, "alpha"),
             within(as.vector(a$fit), as.vector(b$fit), move * made$variance * sqrt(n) + 1e-11, "fit"),
             if (se) within(a$se^2, b$se^2, moved_variance, "variances"))
  })
}

# Values to the tolerance asked for; vectors of near values may turn.
draw_kernel_pca <- function() {
  n <- whole(3, 60)
  x <- matrix(stats::rnorm(n * 2), n) * pick(1, 1e-3, 1e3) + pick(0, 100)
  made <- list(x = x, k = whole(1, min(3, n - 1)), kernel = sample(c(definite_names(2), "epanechnikov"), 1),
               bandwidth = log_uniform(-0.5, 1) * stats::sd(x), seed = whole(0, 1e5))
  run <- function(side) list(values = call_on(side, "kernel_pca", made)$values)
  model_call(call_text("kernel_pca", made), run, function(a, b) {
    within(a$values, b$values, 1e-7 * max(abs(a$values), 1e-300), "values")
  })
}

# A model as e1071 keeps it.
draw_svm <- function() {
  d <- whole(1, 5)
  classes <- whole(2, 4)
  each <- sample(whole(1, 20), classes, TRUE)
  total <- sum(each)
  model <- structure(class = "svm", list(
    sparse = FALSE, type = 0, kernel = 2, gamma = log_uniform(-2, 1), scaled = rep(FALSE, d), nclasses = classes,
    SV = matrix(stats::rnorm(total * d), total), nSV = each, rho = stats::rnorm(choose(classes, 2)),
    coefs = matrix(stats::rnorm(total * (classes - 1)), total), labels = sample(classes),
    levels = letters[seq_len(classes)]
  ))
  args <- list(model = model, new = matrix(stats::rnorm(whole(1, 30) * d), ncol = d), decision = TRUE,
               rel_error = pick(0, 1e-3))
  bound <- (2 * args$rel_error + 1e-11) * sum(abs(model$coefs))
  drawn_call("svm_predict", args, agree = function(a, b) within(a, b, bound, "decision values"), exact = FALSE)
}
