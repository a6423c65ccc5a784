# Time series: steps and their outcomes beside plain loops, null copies that keep neighbours, and mistakes.

# Of every sample that has a later one in its series, row by row: predictors, outcomes.
plain_steps <- function(x, time, unit) {
  rows <- which(!is.na(time) & !is.na(unit))
  lengths <- NULL
  steps <- list()
  for (u in sort(unique(unit[rows]))) {
    points <- sort(unique(time[rows][unit[rows] == u]))
    for (k in seq_along(points)[-1]) for (i in rows[unit[rows] == u & time[rows] == points[k - 1]]) {
      nexts <- rows[unit[rows] == u & time[rows] == points[k]]
      steps <- c(steps, list(list(from = i, to = nexts, length = points[k] - points[k - 1])))
    }
  }
  h <- median(vapply(steps, `[[`, 0, "length"))
  moved <- lapply(steps, function(s) {
    r <- 0.5^(s$length / h)
    (colMeans(x[s$to, , drop = FALSE]) - r * x[s$from, ]) / (1 - r)
  })
  used <- unlist(lapply(steps, function(s) c(s$from, s$to)))
  rest <- setdiff(seq_len(nrow(x)), used)
  from <- vapply(steps, `[[`, 0L, "from")
  list(sample = c(from, rest), outcomes = rbind(do.call(rbind, moved), x[rest, , drop = FALSE]))
}

series <- function(units = 4, points = 8, p = 10, keep = 0.5) {
  x <- NULL
  for (u in seq_len(units)) {
    now <- rnorm(p)
    for (k in seq_len(points)) {
      x <- rbind(x, now)
      now <- keep * now + rnorm(p)
      now[3] <- now[3] + 2 * x[nrow(x), 1]
      now[5] <- now[5] - 2 * x[nrow(x), 2]
    }
  }
  dimnames(x) <- list(NULL, sprintf("g%d", seq_len(p)))
  list(x = x, time = rep(seq_len(points), units), unit = rep(letters[seq_len(units)], each = points))
}

test_that("steps, their lengths, replicates and samples at rest are those of plain loops", {
  withr::local_seed(81)
  rows_of <- function(x, time, unit) {
    weft:::series_rows(x, weft:::sample_times(list(time, unit), NULL, nrow(x)), NULL)
  }
  same <- function(x, time, unit) {
    found <- rows_of(x, time, unit)
    expected <- plain_steps(x, time, unit)
    expect_identical(found$sample, expected$sample)
    expect_equal(found$outcomes, expected$outcomes, ignore_attr = TRUE)
    expect_identical(found$data, x[expected$sample, ])
  }
  d <- series()
  same(d$x, d$time, d$unit)
  same(d$x, d$time^1.5, d$unit)
  same(d$x, d$time %/% 2, d$unit) # replicates
  order <- sample(nrow(d$x))
  same(d$x[order, ], d$time[order], d$unit[order])
  same(d$x, replace(d$time, c(3, 9:15), NA), replace(d$unit, 20, NA)) # a series of one time is at rest
  about <- rows_of(d$x, replace(d$time, c(3, 9:15), NA), replace(d$unit, 20, NA))$about
  expect_identical(about, list(series = 3L, steps = 19L, rest = 10L))
  # a gene at rest stays where it is
  expect_equal(rows_of(0 * d$x + 7, d$time^1.5, d$unit)$outcomes, 0 * d$x[1:28, ] + 7, ignore_attr = TRUE)
})

test_that("areas are those of regressions of the outcomes", {
  skip_if(.Machine$sizeof.longdouble == 8, "areas depend on the last digit of scores")
  withr::local_seed(82)
  d <- series()
  net <- regulation(d$x, time = list(d$time, d$unit), seed = 5,
                    control = list(resamples = 2, null_copies = 1, steps = 2, stability = FALSE))
  steps <- plain_steps(d$x, d$time, d$unit)
  x <- d$x[steps$sample, ]
  n <- nrow(x)
  samples <- regulation_samples(x, 2, 0, weft:::mi_key(5), weft:::half_of(n))
  genes <- seq_len(ncol(x)) - 1L
  choices <- reference_choices(rbind(reference_scores(x), reference_scores(steps$outcomes)), genes, genes, samples$rows,
                               matrix(c(n + seq_len(n) - 1L, seq_len(n) - 1L)), 2, TRUE)
  edges <- attr(net, "edges")
  area <- matrix(0, 10, 10)
  area[cbind(edges$from, edges$to)] <- edges$area / 4
  expect_equal(area, reference_area(choices, 10, 2))
  expect_equal(as.matrix(net), reference_weights(area, reference_scores(x)), ignore_attr = TRUE)
})

test_that("what moves a gene later is found; at one time it is not", {
  withr::local_seed(83)
  d <- series(6, 15)
  net <- regulation(d$x, time = list(unit = d$unit, time = d$time), seed = 1, control = list(null_copies = 10))
  edges <- as.data.frame(net, fdr = 0.05)
  expect_setequal(paste(edges$from, edges$to)[1:2], c("g1 g3", "g2 g5"))
  expect_identical(sign(edges$sign[match(c("g1 g3", "g2 g5"), paste(edges$from, edges$to))]), c(1, -1))
  expect_output(print(net), "targets\\s+in\\s+84\\s+steps\\s+of\\s+6\\s+series\\.")
  one <- regulation(d$x[1:15, ], time = d$time[1:15], seed = 1, control = list(resamples = 20))
  expect_output(print(one), "14 steps of one series")
  dates <- as.Date("2020-01-01") + d$time
  again <- regulation(d$x, time = list(dates, factor(d$unit)), seed = 1, control = list(null_copies = 10))
  expect_identical(attr(again, "edges"), attr(net, "edges"))
})

test_that("in null copies neighbours stay neighbours", {
  order <- c(4L, 1L, 2L, 6L, 3L)
  partner <- matrix(c(6:0, 1:6, 0L), 7)
  out <- weft:::series_partners(partner, order, c(3, 4))
  for (copy in 1:2) {
    expect_setequal(out[, copy], 0:6)
    expect_setequal(out[c(5, 7), copy], c(4, 6))
    places <- match(out[order, copy] + 1, order)
    expect_length(unique((places - seq_along(order)) %% 5), 1)
    expect_false(any(places == seq_along(order)))
  }
})

test_that("interventions and time go together", {
  withr::local_seed(84)
  d <- series(3, 8)
  of <- rep(c("", "g1", "g2"), c(10, 4, 4))
  still <- matrix(rnorm(18 * 10), 18, dimnames = list(NULL, colnames(d$x)))
  still[of == "g1", c(1, 3)] <- still[of == "g1", c(1, 3)] - 6
  still[of == "g2", c(2, 5)] <- still[of == "g2", c(2, 5)] + rep(c(-6, 6), each = 4)
  x <- rbind(still, d$x)
  times <- list(c(rep(NA, 18), d$time), c(rep("no", 18), d$unit))
  net <- regulation(x, interventions = c(of, rep(NA, 24)), time = times,
                    seed = 1, control = list(resamples = 20, stability = TRUE))
  expect_output(print(net), "8 samples, compared with 10\\s+controls") # those of series are none
  alone <- regulation(still, interventions = of, seed = 1, control = list(resamples = 20))
  both <- merge(as.data.frame(net), as.data.frame(alone), by = c("from", "to"))
  expect_equal(both$shift.x, both$shift.y)
  # perturbed in the course of series: no outcome before or after
  within <- rep("", 24)
  within[4:5] <- "g3"
  rows <- weft:::series_rows(d$x, weft:::sample_times(list(d$time, d$unit), NULL, 24),
                             weft:::perturbations(within, NULL, colnames(d$x), 24))
  replaced <- d$x
  replaced[4:5, 3] <- median(d$x[-(4:5), 3])
  expect_equal(rows$outcomes, plain_steps(replaced, d$time, d$unit)$outcomes, ignore_attr = TRUE)
  expect_identical(rows$data, d$x[rows$sample, ])
})

test_that("mistakes in times are classed errors", {
  x <- regulated(12, 4)
  fails <- function(time, regexp, ...) {
    expect_error(regulation(x, time = time, ...), class = "weft_error_input", regexp = regexp)
  }
  fails(1:11, "one value per row of `x` .12")
  fails(letters[1:12], "finite numbers")
  fails(c(Inf, 1:11), "finite numbers")
  fails(rep(1, 12), "at least two times")
  fails(rep(NA_real_, 12), "at least two times")
  fails(list(1:12, 1:12), "at least two times")
  fails(list(1:12, 1:11), "one value per row")
  fails(list(), "list\\(time, unit\\)")
  fails(list(time = 1:12, series = 1), "list\\(time, unit\\)")
  fails(1:12, "`compare` must not be given", compare = rep(1:2, 6))
  x <- x[1:4, ]
  fails(1:4, "at least 4 time steps")
  expect_error(regulation(x, unit = 1:4), class = "weft_error_input", regexp = "`unit`; did you mean `time")
})

test_that("gene_network() passes times on", {
  withr::local_seed(85)
  d <- series(4, 8)
  x <- rbind(d$x, bad = NA)
  fit <- gene_network(x, time = list(c(d$time, 9), c(d$unit, "d")), seed = 1, run = weft_run(progress = FALSE),
                      steps = list(components = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE))
  expect_output(print(fit), "28\\s+steps\\s+of\\s+4\\s+series")
  own <- regulation(fit$quality$x, time = list(d$time, d$unit), seed = fit$seed + 5,
                    control = list(null_copies = weft:::usual_copies(10)))
  expect_identical(attr(fit$network, "edges"), attr(own, "edges"))
})
