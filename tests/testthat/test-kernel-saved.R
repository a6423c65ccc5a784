# Models and trees that a file may bring: each part is replaced by what it cannot be, and by what looks right. Whatever
# is asked of the result then ends in an error of weft's or is what the sound one gives.

# Other values for a part: of another type, length, range, or nearly right.
damages <- function(part) {
  out <- list(NULL, NA, NaN, Inf, -1, 0, 2^31, "a", list(), numeric(), TRUE, identity, quote(a + b), factor("a"),
              data.frame())
  if (is.atomic(part) && length(part)) {
    set <- function(k, value) { part[[k]] <- value; part }
    out <- c(out, list(part[-1L], rep(part, 2), rev(part), structure(part, class = "odd"), as.list(part)))
    if (is.numeric(part)) {
      values <- if (is.integer(part)) list(NA_integer_, -1L, .Machine$integer.max, part[[1L]] + 1L)
                else list(NaN, Inf, -1e9, 1e300, part[[1L]] + 1)
      for (value in values) out <- c(out, list(set(sample(length(part), 1L), value)))
      out <- c(out, list(structure(part, dim = NULL), as.character(part),
                         structure(as.integer(pmin(abs(part), 1e9)), dim = dim(part))))
      if (!is.null(dim(part))) out <- c(out, list(part[, -1L, drop = FALSE], part[-1L, , drop = FALSE], t(part)))
    }
  }
  out
}

# Every damaged copy of `object`: list(value, what), in its own parts and in those of its lists.
damaged_copies <- function(object, skip, path = character()) {
  out <- list()
  for (name in setdiff(names(object), skip)) {
    part <- object[[name]]
    for (value in damages(part)) {
      copy <- object
      copy[name] <- list(value)
      text <- paste(c(path, name, deparse(value, nlines = 1L, width.cutoff = 60L)), collapse = " ")
      out <- c(out, list(list(value = copy, what = text)))
    }
    copy <- object
    copy[[name]] <- NULL
    out <- c(out, list(list(value = copy, what = paste(c(path, name, "gone"), collapse = " "))))
    if (is.list(part) && !is.data.frame(part)) {
      for (inner in damaged_copies(part, skip, c(path, name))) {
        copy <- object
        copy[[name]] <- inner$value
        out <- c(out, list(list(value = copy, what = inner$what)))
      }
    }
  }
  out
}

# What `use` gives, or the error; a warning is an error of another kind.
outcome_of <- function(use, object) {
  tryCatch(list(value = use(object)), error = function(e) list(error = e), warning = function(w) list(error = w))
}

# Texts for what is neither; `uses`: functions of the object.
wrong_of <- function(object, uses, skip) {
  withr::local_options(weft.threads = 1) # calls are thousands, and small
  right <- lapply(uses, function(use) use(object))
  wrong <- character()
  for (copy in damaged_copies(object, skip)) {
    for (name in names(uses)) {
      got <- outcome_of(uses[[name]], copy$value)
      fine <- if (is.null(got$error)) isTRUE(all.equal(got$value, right[[name]], tolerance = 1e-8))
              else inherits(got$error, "weft_error")
      text <- if (is.null(got$error)) "another result" else conditionMessage(got$error)
      if (!fine) wrong <- c(wrong, sprintf("%s of %s: %s", name, copy$what, text))
    }
  }
  wrong
}

# Whether it works, whatever comes out.
only <- function(f) {
  function(x) {
    f(x)
    "done"
  }
}

printed <- function(x) utils::capture.output(print(x))
drawn <- function(x, ...) {
  plot(x, ...)
  "drawn"
}

test_that("damaged trees are errors", {
  withr::local_seed(1)
  x <- matrix(stats::rnorm(160), ncol = 2, dimnames = list(NULL, c("a", "b")))
  q <- matrix(stats::rnorm(6), ncol = 2)
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  uses <- list(tree = function(t) kernel_sum(q, t, bandwidth = 0.5, method = "tree"),
               both = function(t) kernel_sum(q, x, control = list(tree = t)),
               print = function(t) sub("[(]built.*", "", printed(t)), plot = function(t) drawn(t, depth = 1))
  expect_identical(wrong_of(kernel_tree(x, leaf_size = 32), uses, skip = c("seconds", "names")), character())
  ball <- kernel_tree(x, "ball", leaf_size = 32)
  expect_identical(wrong_of(ball, uses["tree"], setdiff(names(ball), "native")), character())
  tree <- kernel_tree(x)
  expect_error(kernel_sum(q, x[80:1, ], control = list(tree = tree)), class = "weft_error_input",
               regexp = "built from `reference`")
  expect_error(kernel_sum(cbind(q, 1), cbind(x, 1), control = list(tree = tree)), class = "weft_error_input",
               regexp = "has 80 with 3")
  for (type in c("vp", "rp")) { # balls that are too small
    tree <- kernel_tree(x, type, seed = 1)
    tree$native$centre[3L, 1L] <- tree$native$centre[3L, 1L] / 2
    expect_error(kernel_sum(q, tree, method = "tree"), class = "weft_error_input", regexp = "`centre` is damaged")
  }
})

test_that("damaged densities and regressions are errors", {
  withr::local_seed(2)
  x <- matrix(stats::rnorm(80), ncol = 2)
  one <- x[, 1L]
  q <- matrix(stats::rnorm(4), ncol = 2)
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  skip <- c("seconds", "call", "names", "rows", "backend", "rule")
  at <- list(at = function(d) predict(d, q))
  for (fit in list(kde(x, matrix(c(0.5, 0.2, 0.2, 0.4), 2)), kde(x, c(0.3, 0.5), "epanechnikov", tree = "vp"))) {
    expect_identical(wrong_of(fit, at, skip), character())
  }
  line <- kde(one, 0.4)
  classed <- list(print = only(printed), summary = only(summary), glance = only(glance),
                  plot = function(d) drawn(d, n = 5))
  unseen <- c("names", "rows", "native", "parts", "log_scale", "call") # by print() and glance()
  expect_identical(wrong_of(line, classed, unseen), character())
  expect_identical(wrong_of(line, list(at = function(d) predict(d, 0)), skip), character())
  fit <- kernel_regression(one, one^2, 0.4)
  # of these any numbers of the right kind are a model
  free <- c("response", "weights", "residual_square", "centre", "scores", "r_squared", "rel_error")
  at <- list(at = function(r) predict(r, c(0, 1), interval = "confidence"))
  expect_identical(wrong_of(fit, at, c(skip, free)), character())
  classed <- list(print = only(printed), plot = function(r) drawn(r, n = 5), residuals = only(residuals))
  expect_identical(wrong_of(fit, classed, c("call", "native", "parts")), character())
})

test_that("damaged components and processes are errors", {
  withr::local_seed(3)
  x <- matrix(stats::rnorm(60), ncol = 2)
  q <- matrix(stats::rnorm(4), ncol = 2)
  classed <- list(print = only(printed), at = only(function(m) predict(m, q)))
  for (kernel in c("gaussian", "polynomial")) {
    expect_identical(wrong_of(kernel_pca(x, 2, kernel, 1.5, seed = 1), classed, "call"), character())
  }
  fit <- gp_regression(x, x[, 1L], bandwidth = 0.5, noise = 0.1)
  settings <- c("noise", "variance", "rank", "tolerance", "max_iterations") # of solves that may take long
  classed$se <- only(function(m) predict(m, q, se = TRUE))
  expect_identical(wrong_of(fit, classed, c("call", settings)), character())
  fit$tolerance <- "a"
  expect_error(predict(fit, q, se = TRUE), class = "weft_error_input", regexp = "`tolerance` is damaged")
})
