# Interventions: shifts and their tests beside plain formulas, one score, what is said of edges, and mistakes.

# Twelve genes; g1 drives g2, which drives g3. Each regulator's samples and some controls.
perturbed_data <- function(n = 8, controls = 10, p = 8, genes = c("g1", "g2"), drop = 4) {
  of <- c(rep("", controls), rep(genes, each = n))
  x <- matrix(rnorm(length(of) * p, 5), length(of))
  dimnames(x) <- list(sprintf("s%d", seq_along(of)), sprintf("g%d", seq_len(p)))
  x[, "g1"] <- x[, "g1"] - drop * (of == "g1")
  x[, "g2"] <- 0.5 * x[, "g2"] + x[, "g1"] - drop * (of == "g2")
  x[, "g3"] <- 0.5 * x[, "g3"] - x[, "g2"]
  list(x = x, of = of)
}

shifts_of <- function(x, of, regulators = seq_len(ncol(x))) {
  set <- weft:::perturbations(of, x, colnames(x), nrow(x))
  weft:::intervention_shifts(x, set, regulators)
}

# One after the other, with loops; a gene's own perturbed samples have its median elsewhere.
plain_shifts <- function(x, of) {
  genes <- intersect(colnames(x), of)
  masked <- x
  for (g in genes) masked[of == g, g] <- median(x[of != g, g])
  unit <- apply(masked, 2, sd)
  x <- x / rep(unit, each = nrow(x))
  masked <- masked / rep(unit, each = nrow(x))
  controls <- of == ""
  n <- nrow(x)
  own <- vapply(colnames(x), function(g) sum(of == g), 0)
  rest <- masked
  for (g in c(genes, if (sum(controls) > 2) "")) {
    rest[of == g, ] <- scale(masked[of == g, , drop = FALSE], scale = FALSE)
  }
  used <- if (sum(controls) > 2) rep(TRUE, n) else !controls
  df <- sum(used) - length(genes) - (sum(controls) > 2) - pmax(own - 1, 0)
  s2 <- colSums(rest[used, , drop = FALSE]^2) / df
  if (any(df < 0.37 * (n - own))) {
    df <- 0.37 * (n - own)
    s2 <- vapply(colnames(x), function(g) mad(x[of != g, g])^2, 0)
  }
  prior <- plain_prior(s2, df)
  post <- if (is.finite(prior$d0)) (prior$d0 * prior$s02 + df * s2) / (prior$d0 + df) else 0 * s2 + prior$s02
  total <- 0 * s2 + pmin(prior$d0 + df, sum(df))
  shift <- t <- p <- matrix(0, length(genes), ncol(x), dimnames = list(genes, colnames(x)))
  for (g in genes) for (j in colnames(x)) {
    rows <- of == g
    about <- if (sum(controls) > 2) mean(masked[controls, j]) else median(masked[!rows, j])
    error <- if (sum(controls) > 2) 1 / sum(controls) else pi / 2 / sum(!rows)
    shift[g, j] <- mean(masked[rows, j]) - about
    t[g, j] <- shift[g, j] / sqrt(post[[j]] * (1 / sum(rows) + error))
    p[g, j] <- 2 * pt(-abs(t[g, j]), total[[j]])
  }
  list(shift = shift * rep(unit, each = length(genes)), t = t, p = p)
}

test_that("shifts and their p-values are those of plain formulas", {
  withr::local_seed(61)
  settings <- list(perturbed_data(), perturbed_data(n = 4, controls = 3), perturbed_data(n = 6, controls = 0),
                   perturbed_data(n = 1, controls = 2, genes = sprintf("g%d", 1:8)),
                   perturbed_data(n = 2, controls = 1, genes = sprintf("g%d", 1:6)),
                   perturbed_data(n = 3, controls = 20, genes = "g1"))
  for (d in settings) {
    expected <- plain_shifts(d$x, d$of)
    found <- shifts_of(d$x, d$of)
    others <- outer(colnames(d$x)[found$gene], colnames(d$x), `!=`)
    expect_equal((found$shift * rep(found$unit, each = nrow(found$shift)))[others], expected$shift[others])
    expect_equal(found$t[others], expected$t[others], tolerance = 1e-6)
    expect_equal(found$p[others], expected$p[others], tolerance = 1e-6)
    expect_equal(2 * stats::pnorm(-abs(found$z[others])), found$p[others], tolerance = 1e-8)
    expect_equal(sign(found$z[others]), sign(found$shift[others]))
  }
})

test_that("several perturbations of a sample are separated by least squares", {
  withr::local_seed(63)
  of <- rep(c("", "g1", "g2", "g1+g2"), each = 6)
  x <- matrix(rnorm(24 * 6), 24, dimnames = list(NULL, sprintf("g%d", 1:6)))
  x[, "g5"] <- x[, "g5"] + 3 * grepl("g1", of) - 2 * grepl("g2", of)
  found <- shifts_of(x, of)
  centred <- x[, "g5"] - mean(x[of == "", "g5"])
  expected <- coef(lm(centred ~ 0 + as.numeric(grepl("g1", of)) + as.numeric(grepl("g2", of))))
  expect_equal(found$shift[, 5] * found$unit[5], unname(expected))
  same <- list(strsplit(of, "+", fixed = TRUE), sub("+", "; ", of, fixed = TRUE), factor(of), ifelse(of == "", NA, of),
               ifelse(of == "", "Control", of), cbind(g1 = grepl("g1", of), g2 = grepl("g2", of)),
               Matrix::Matrix(cbind(g1 = grepl("g1", of), g2 = grepl("g2", of)) * 1, sparse = TRUE))
  for (given in same) expect_equal(shifts_of(x, given), found)
  together <- ifelse(of == "", "", "g1+g2")
  expect_error(regulation(x, interventions = together), class = "weft_error_input", regexp = "always perturbed")
})

test_that("over-expression counts with the opposite sign", {
  withr::local_seed(64)
  d <- perturbed_data(n = 6, controls = 12, genes = "g1", drop = 8)
  d$x[d$of == "g1", ][1:2, ] <- d$x[d$of == "", ][1:2, ] + rep(c(8, 8, -8, 0, 0, 0, 0, 0), each = 2)
  found <- shifts_of(d$x, d$of)
  controls <- colMeans(d$x[d$of == "", ])
  rows <- which(d$of == "g1")
  expected <- colMeans(c(-1, -1, 1, 1, 1, 1) * (d$x[rows, ] - rep(controls, each = 6)))
  expect_equal(found$shift[1, ] * found$unit, expected, ignore_attr = TRUE)
  expect_false(found$raised)
})

test_that("medians without some rows", {
  withr::local_seed(65)
  for (n in c(5, 8, 31)) {
    x <- matrix(sample(6, n * 7, TRUE) + 0, n)
    without <- weft:::medians_without(x)
    for (k in 1:20) {
      rows <- sample(n, sample(n - 1, 1))
      expect_identical(without(rows), apply(x[-rows, , drop = FALSE], 2, median))
    }
  }
})

test_that("what another perturbed regulator passes on is taken out", {
  withr::local_seed(66)
  d <- perturbed_data(n = 10, controls = 20)
  found <- shifts_of(d$x, d$of)
  direct <- weft:::direct_evidence(found)
  s <- found$shift
  e <- found$se
  share <- s[1, 2] / s[2, 2]
  share_se <- sqrt(e[1, 2]^2 + share^2 * e[2, 2]^2) / abs(s[2, 2])
  left <- abs(s[1, 3] - share * s[2, 3]) / sqrt(e[1, 3]^2 + share^2 * e[2, 3]^2 + s[2, 3]^2 * share_se^2)
  expect_gt(abs(found$z[1, 3]), 5)
  expect_equal(direct[1, 3], 0.3 * abs(found$z[1, 3]) + 0.7 * unname(left))
  expect_lt(direct[1, 3], direct[1, 2] / 2)
  expect_equal(direct[2, ], abs(found$z[2, ]), ignore_attr = TRUE)
})

area_of_edges <- function(net) {
  edges <- attr(net, "edges")
  out <- matrix(0, nrow(net), ncol(net))
  out[cbind(edges$from, edges$to)] <- edges$area / (attr(net, "steps") * attr(net, "resamples"))
  out
}

plain_scale <- function(found) {
  others <- !is.na(found$p)
  z <- sort(abs(found$z[others]), decreasing = TRUE)
  count <- length(z)
  kept <- which(2 * stats::pnorm(-z) <= 0.05 * seq_len(count) / count)
  max(1, 3 * ((if (length(kept)) z[max(kept)] else -stats::qnorm(0.025 / count)) - 3))
}

test_that("where few shifts stand out, small ones count less", {
  withr::local_seed(73)
  found <- shifts_of(perturbed_data(n = 3, p = 200, drop = 0)$x, perturbed_data(n = 3, p = 200)$of)
  expect_equal(weft:::evidence_scale(found$z, found$p), plain_scale(found), tolerance = 1e-6)
  expect_gt(plain_scale(found), 1.5)
  expect_identical(weft:::evidence_scale(c(rep(6, 20), 2.2, 0), c(rep(1e-9, 20), 0.028, NA)), 1)
})

# The weights of regression alone: perturbed genes are no outcomes, in the rows of halves that the data draw.
plain_observed <- function(x, of, steps, key) {
  masked <- x
  for (g in intersect(colnames(x), of)) masked[of == g, g] <- median(x[of != g, g])
  n <- nrow(x)
  samples <- regulation_samples(x, 2, 0, key, weft:::half_of(n))
  both <- rbind(reference_scores(x), reference_scores(masked))
  genes <- seq_len(ncol(x)) - 1L
  choices <- reference_choices(both, genes, genes, samples$rows, matrix(c(n + seq_len(n) - 1L, seq_len(n) - 1L)), steps,
                               TRUE)
  area <- reference_area(choices, ncol(x), 2)
  list(area = area, weights = reference_weights(area, reference_scores(x)))
}

test_that("regression and shifts make one weight, and one q-value", {
  skip_if(.Machine$sizeof.longdouble == 8, "areas depend on the last digit of scores")
  withr::local_seed(67)
  for (controls in c(0, 12)) {
    d <- perturbed_data(n = 5, controls = controls, p = 9)
    rownames(d$x) <- NULL
    net <- regulation(d$x, interventions = d$of, seed = 3,
                      control = list(resamples = 2, null_copies = 1, steps = 2, stability = FALSE))
    expected <- plain_observed(d$x, d$of, 2, weft:::mi_key(3))
    expect_equal(area_of_edges(net), expected$area, ignore_attr = TRUE)
    found <- shifts_of(d$x, d$of)
    total <- 0.7 * log(1 + 99 * expected$weights / max(expected$weights))
    scale <- plain_scale(found)
    total[found$gene, ] <- total[found$gene, ] + sqrt(scale^2 + weft:::direct_evidence(found)^2) - scale
    diag(total) <- 0
    expect_equal(as.matrix(net), total / (3 + total), ignore_attr = TRUE)
    edges <- as.data.frame(net)
    at <- cbind(match(edges$from, colnames(d$x)[found$gene]), match(edges$to, colnames(d$x)))
    tested <- !is.na(at[, 1])
    p <- found$p
    expect_equal(edges$shift_q[tested], matrix(stats::p.adjust(p, "BH"), nrow(p))[at[tested, ]])
    expect_true(all(is.na(edges$shift[!tested])) && !anyNA(edges$shift[tested]))
    expect_identical(edges$evidence == "observed", !(tested & edges$shift_q <= 0.05 | edges$area == 0) %in% TRUE)
    lowered <- edges$evidence != "observed"
    expect_equal(edges$sign[lowered], -sign(edges$shift[lowered])) # both were knocked down
    expect_equal(edges$weight, as.matrix(net)[cbind(edges$from, edges$to)])
  }
})

test_that("q-values are those of Benjamini and Hochberg of Simes' p-values", {
  withr::local_seed(68)
  d <- perturbed_data(n = 5, controls = 12, p = 9)
  null <- c(3L, 3L, 5L, 9L, 20L)
  area <- c(0L, 1L, 4L, 9L, 30L)
  expected <- c(1, 6, 4, 3, 1) / 101
  expected[1] <- 1
  expect_equal(weft:::area_p_values(area, null, 100), expected)
  expect_equal(weft:::area_p_values(integer(), null, 100), numeric())
  net <- regulation(d$x, interventions = d$of, seed = 1, control = list(resamples = 20, null_copies = 0))
  edges <- attr(net, "edges")
  found <- shifts_of(d$x, d$of)
  p <- found$p[cbind(match(edges$from, found$gene), edges$to)]
  expect_equal(edges$q_value, stats::p.adjust(ifelse(is.na(p), 1, pmin(2 * p, 1)), "BH", 9 * 8))
})

test_that("planted edges are found, which way and with which sign", {
  withr::local_seed(69)
  d <- perturbed_data(n = 6, controls = 20, p = 20)
  net <- regulation(d$x, interventions = d$of, seed = 1, control = list(null_copies = 10))
  edges <- as.data.frame(net, fdr = 0.05)
  pairs <- paste(edges$from, edges$to)
  expect_true(all(c("g1 g2", "g2 g3") %in% utils::head(pairs, 3)))
  expect_identical(edges$sign[match(c("g1 g2", "g2 g3"), pairs)], c(1, -1))
  expect_false("g2 g1" %in% pairs[edges$evidence != "observed"])
  expect_output(print(net), "2 regulators perturbed in 12 samples, compared with\\s+20 controls")
  alone <- regulation(d$x[d$of != "", ], interventions = d$of[d$of != ""], seed = 1, control = list(resamples = 20))
  expect_output(print(alone), "median of all other\\s+samples")
})

test_that("neither the order of samples nor threads matter, and units do not", {
  withr::local_seed(70)
  d <- perturbed_data(n = 4, controls = 9, p = 12)
  few <- list(resamples = 20, null_copies = 2, stability = FALSE)
  net <- regulation(d$x, interventions = d$of, seed = 1, run = weft_run(threads = 1), control = few)
  again <- regulation(d$x, interventions = d$of, seed = 1, run = weft_run(threads = 2), control = few)
  expect_identical(as.matrix(again), as.matrix(net))
  expect_identical(attr(again, "edges"), attr(net, "edges"))
  order <- sample(nrow(d$x))
  moved <- regulation(d$x[order, ], interventions = d$of[order], seed = 1, control = few)
  expect_equal(as.matrix(moved), as.matrix(net))
  scaled <- d$x * rep(c(1e-200, 1, 1e200, 3), each = nrow(d$x), length.out = length(d$x))
  expect_equal(as.matrix(regulation(scaled, interventions = d$of, seed = 1, control = few)), as.matrix(net))
})

test_that("hard data with interventions", {
  withr::local_seed(71)
  d <- perturbed_data(n = 3, controls = 6)
  few <- list(resamples = 10, stability = TRUE)
  d$x[, "g5"] <- 7
  d$x[, "g6"] <- rep(0:1, length.out = nrow(d$x))
  d$x[, "g7"] <- d$x[, "g8"]
  net <- regulation(d$x, interventions = d$of, seed = 1, control = few)
  expect_true(all(is.finite(as.matrix(net)) & as.matrix(net) >= 0 & as.matrix(net) < 1))
  expect_identical(unname(diag(as.matrix(net))), numeric(8))
  expect_true(all(as.matrix(net)[, "g5"] == 0))
  constant <- 0 * d$x + 3
  expect_true(all(as.matrix(regulation(constant, interventions = d$of, seed = 1, control = few)) == 0))
  every <- regulation(d$x, interventions = rep("g1", nrow(d$x)), seed = 1, control = few)
  expect_true(all(is.finite(as.matrix(every))))
  one <- regulation(d$x, interventions = replace(rep(NA, nrow(d$x)), 2, "g4"), seed = 1, control = few)
  expect_output(print(one), "1 regulator perturbed in 1 sample,")
  four <- regulation(d$x[1:4, ], interventions = c("", "g1", "g2", "g3"), seed = 1, control = few)
  expect_true(all(is.finite(as.matrix(four))))
  named <- regulation(d$x, regulators = c("g2", "g4"), targets = c("g2", "g3", "g1"), interventions = d$of, seed = 1,
                      control = few)
  expect_identical(dim(named), 2:3)
  expect_identical(as.matrix(named)["g2", "g2"], 0)
})

test_that("noise has no edges, whatever its own perturbations do", {
  skip_on_cran()
  calls <- vapply(1:40, function(k) {
    withr::local_seed(100 + k)
    of <- rep(c("g1", "g2", "g3"), each = 8)
    x <- matrix(rnorm(24 * 20), 24, dimnames = list(NULL, sprintf("g%d", 1:20)))
    x[cbind(seq_along(of), match(of, colnames(x)))] <- -6
    net <- regulation(x, interventions = of, seed = k,
                      control = list(resamples = 20, null_copies = 10, stability = FALSE))
    nrow(as.data.frame(net, fdr = 0.05)) > 0
  }, NA)
  expect_lte(sum(calls), 6) # at .05: more in one run of a hundred
})

test_that("mistakes in interventions are classed errors", {
  x <- regulated(10, 4)
  of <- rep(c("", "g1"), 5)
  fails <- function(..., regexp) {
    expect_error(regulation(x, ...), class = "weft_error_input", regexp = regexp)
  }
  fails(interventions = of[-1], regexp = "one entry per row of `x` .10.*It has 9")
  fails(interventions = replace(of, 3, "nobody"), regexp = "Not in `x`: `nobody`")
  fails(interventions = rep(NA, 10), regexp = "All samples are controls")
  fails(interventions = 1:10, regexp = "contain the perturbed gene")
  fails(interventions = data.frame(of), regexp = "contain the perturbed gene")
  fails(interventions = list(1, 2, 3, 4, 5, 6, 7, 8, 9, "g1"), regexp = "Entry 1 is 1")
  fails(interventions = matrix(TRUE, 10, 2), regexp = "named after genes")
  fails(interventions = matrix("g1", 10, 2), regexp = "logical or numeric")
  fails(interventions = matrix(NA, 10, 4), regexp = "missing values")
  fails(interventions = matrix(TRUE, 9, 4), regexp = "as many rows")
  fails(interventions = of, regulators = "g2", regexp = "one of the `regulators`")
  fails(interventions = of, compare = rep(1:2, 5), regexp = "`compare` must not be given")
  x[1, 1] <- Inf
  fails(interventions = of, regexp = "finite")
})

test_that("gene_network() passes interventions on, of samples and genes that are kept", {
  withr::local_seed(72)
  d <- perturbed_data(n = 6, controls = 20, p = 20)
  d$x <- rbind(d$x, bad = NA)
  d$x[, "g20"] <- 1 # is left out
  of <- c(d$of, "g1")
  of[32] <- "g20"
  quiet <- weft_run(progress = FALSE)
  others <- list(components = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE)
  fit <- gene_network(d$x, interventions = of, seed = 1, run = quiet, steps = others)
  expect_identical(nrow(fit$quality$x), 32L)
  expect_output(print(fit), "2 regulators perturbed in\\s+11 samples,\\s+compared\\s+with\\s+20 controls")
  edges <- as.data.frame(fit, "edges")
  expect_true(all(c("evidence", "shift") %in% names(edges)))
  expect_error(gene_network(d$x, interventions = of[-1], run = quiet), class = "weft_error_input", regexp = "one entry")
  expect_error(gene_network(d$x, interventions = of, run = quiet, steps = list(network = list(method = "clr"))),
               class = "weft_error_input", regexp = "directed network")
  expect_error(gene_network(d$x, interventions = of, run = quiet, steps = list(network = list(interventions = of))),
               class = "weft_error_input", regexp = "given once")
  counts <- Matrix::Matrix(matrix(rpois(2000 * 6, 1), 2000), sparse = TRUE)
  expect_error(gene_network(counts, interventions = rep("V1", 2000), run = quiet), class = "weft_error_input",
               regexp = "Metacells")
})

# Counts of cells, some with two guides; 48 % of them are zero.
guided_cells <- function(n = 600, p = 40) {
  of <- sample(c("", sprintf("g%d", 1:5), "g1+g2", "g3+g4"), n, TRUE, c(0.3, rep(0.12, 5), 0.05, 0.05))
  rate <- rep(exp(rnorm(p, -0.5)), each = n) * exp(rnorm(n) / 3)
  dim(rate) <- c(n, p)
  for (g in 1:5) {
    rows <- grepl(sprintf("g%d", g), of)
    rate[rows, g] <- rate[rows, g] * 0.15
    rate[rows, 10 + g] <- rate[rows, 10 + g] * 3
  }
  x <- matrix(rpois(n * p, rate), n, dimnames = list(sprintf("c%d", seq_len(n)), sprintf("g%d", seq_len(p))))
  list(x = methods::as(x, "dgCMatrix"), of = of)
}

stored <- function(x, env = parent.frame()) {
  weft_import(x, withr::local_tempfile(fileext = ".weft", .local_envir = env), run = weft_run(progress = FALSE))
}

test_that("cells in a store give what they give in memory", {
  skip_if_not_installed("Matrix")
  withr::local_seed(71)
  d <- guided_cells()
  few <- list(resamples = 10, stability = FALSE)
  store <- stored(d$x)
  both <- lapply(list(d$x, store), function(x) {
    suppressMessages(regulation(x, interventions = d$of, seed = 1, control = few))
  })
  expect_equal(as.matrix(both[[2L]]), as.matrix(both[[1L]]), tolerance = 1e-10)
  expect_equal(as.data.frame(both[[2L]]), as.data.frame(both[[1L]]), tolerance = 1e-10)
  expect_equal(attr(both[[2L]], "interventions"), attr(both[[1L]], "interventions"))
  expect_true(all(c("g11", "g12", "g13", "g14", "g15") %in%
                    with(as.data.frame(both[[2L]]), to[evidence != "observed" & shift_q <= 0.05])))
  # as it is, with columns left out, and normalised by the user
  values <- d$x
  values@x <- log1p(values@x / 2)
  plain <- list(list(values, stored(values)))
  part <- store_normalise(store, genes = 1:20)
  plain[[2L]] <- list(methods::as(as.matrix(part), "dgCMatrix"), part)
  for (x in plain) {
    both <- lapply(x, function(x) {
      suppressMessages(regulation(x, interventions = d$of, seed = 1, control = few, transform = "none"))
    })
    expect_equal(as.matrix(both[[2L]]), as.matrix(both[[1L]]), tolerance = 1e-10)
  }
})

test_that("a store's regressions take some cells, its shifts all", {
  skip_if_not_installed("Matrix")
  withr::local_seed(72)
  d <- guided_cells(2400, 16)
  few <- list(resamples = 4, stability = FALSE, null_copies = 0)
  store <- stored(d$x)
  expect_message(net <- regulation(store, interventions = d$of, seed = 1, control = few), "use 2,000 of 2,400 cells")
  size <- pmax(Matrix::rowSums(d$x), 1)
  data <- log2(1 + as.matrix(d$x) / (size / mean(size)))
  expected <- shifts_of(data, d$of)
  edges <- attr(net, "edges")
  known <- which(!is.na(edges$shift))
  at <- cbind(match(edges$from, expected$gene), edges$to)[known, ]
  expect_equal(edges$shift[known], (expected$shift * rep(expected$unit, each = 5))[at], tolerance = 1e-10)
  expect_equal(log(edges$shift_q[known]), log(matrix(stats::p.adjust(expected$p, "BH"), 5)[at]), tolerance = 1e-10)
  expect_equal(attr(net, "interventions")$perturbed, sum(d$of != ""))
})

test_that("a store's shifts bear values of any size", {
  skip_if_not_installed("Matrix")
  withr::local_seed(77)
  d <- guided_cells(300, 16)
  z_of <- function(x) {
    set <- weft:::perturbations(d$of, x, sprintf("g%d", 1:16), 300)
    weft:::stored_shifts(weft:::stored_moments(weft:::stored_values_of(x, "none"), set), 1:16)
  }
  plain <- z_of(stored(d$x))
  expect_equal(plain$z, shifts_of(as.matrix(d$x), d$of)$z, tolerance = 1e-10, ignore_attr = TRUE)
  expect_equal(z_of(stored(d$x * 2^40))$z, plain$z, tolerance = 1e-10)
  huge <- z_of(stored(d$x * 1e120)) # the cubes overflow: normal tails
  expect_equal(huge$t, plain$t, tolerance = 1e-10)
  expect_true(all(is.finite(huge$z)))
  far <- z_of(stored(methods::as(as.matrix(d$x) + 1e6, "dgCMatrix"))) # rounding leaves nothing of the third moments
  expect_equal(far$z, huge$z, tolerance = 1e-2)
})

test_that("guides of cells act one way", {
  withr::local_seed(73)
  d <- guided_cells(400, 30)
  data <- log2(1 + as.matrix(d$x))
  expect_gt(mean(data == 0), 0.25)
  found <- shifts_of(data, d$of)
  alone <- d$of == "g5"
  expect_equal((found$shift * rep(found$unit, each = 5))[[5, 15]],
               mean(data[alone, 15]) - mean(data[d$of == "", 15]))
})

# The tail of Pearson's type III by its density; the light one as it is up to 1 / g.
plain_tail <- function(z, g) {
  if (g < 0) g <- -min(-g, 1 / z)
  density <- function(x) exp((4 / g^2 - 1) * log(pmax(1 + g * x / 2, 0)) - 2 * x / g)
  ends <- if (g > 0) c(-2 / g, 40) else c(-40, -2 / g)
  part <- function(from, to) {
    pieces <- seq(from, to, length.out = ceiling(to - from) + 1)
    sum(mapply(function(a, b) stats::integrate(density, a, b, rel.tol = 1e-10)$value, pieces[-length(pieces)],
               pieces[-1]))
  }
  above <- part(z, max(ends[2], z + 1))
  above / (above + part(ends[1], z))
}

test_that("tails of skewed laws are integrals of their densities", {
  for (g in c(-0.7, -0.3, -0.1, 0.1, 0.3, 0.7, 1.5)) for (z in c(0.5, 1.3, 2.8, 4.5)) {
    expect_equal(exp(weft:::skewed_tail(z, g)), min(plain_tail(z, g), 0.5), tolerance = 1e-6)
  }
  z <- c(0, 1, 4, 30)
  expect_equal(weft:::skewed_tail(z, rep(0, 4)), stats::pnorm(-z, log.p = TRUE))
  expect_equal(weft:::skewed_tail(z, rep(1e-6, 4)), stats::pnorm(-z, log.p = TRUE), tolerance = 1e-4)
  for (g in c(-100, -1, -1e-3, 1e-3, 1, 100)) { # finite, and falling
    tail <- weft:::skewed_tail(z <- 10^seq(-2, 4, 0.1), rep(g, 61))
    expect_true(all(is.finite(tail)) && all(diff(tail) <= 0))
  }
})

test_that("p-values of cells know how skewed their means are", {
  withr::local_seed(75)
  d <- guided_cells(1500, 20)
  x <- log2(1 + as.matrix(d$x))
  found <- shifts_of(x, d$of)
  controls <- d$of == ""
  design <- vapply(1:5, function(g) as.numeric(grepl(sprintf("g%d", g), d$of)), numeric(1500))
  weights <- solve(crossprod(design), t(design))
  cube <- rowSums(weights^3) - 1 / sum(controls)^2
  for (j in c(1, 4, 8, 15, 20)) {
    y <- x[, j] - mean(x[controls, j])
    own <- j <= 5 & design[, min(j, 5)] == 1
    y[own] <- 0
    rest <- residuals(lm(y ~ 0 + design)) / found$unit[[j]]
    left <- sum(!own)
    third <- sum(rest^3) * left^2 / (left - 5 - !any(own))^3
    for (k in setdiff(1:5, j)) {
      g <- sign(found$t[k, j]) * cube[k] * third / found$se[k, j]^3
      t <- abs(found$t[k, j])
      expected <- min(1, 2 * plain_tail(t, g))
      if (expected > 1e-8) expect_lt(abs(log(found$p[k, j] / expected)), 1e-3 * (1 + t^2 + t^4 / 4)) # 1,500 cells
    }
  }
})

# 0 and 1: 200 of all cells have a 1; the numbers of those with a guide that does nothing are hypergeometric.
test_that("p-values of rarely seen genes are those of exact tests, or somewhat larger", {
  counts <- 3:16
  cells <- 10000
  guided <- 250
  x <- vapply(counts, function(k) {
    rep(c(1, 0, 1, 0), c(k, guided - k, 200 - k, cells - guided - 200 + k))
  }, numeric(cells))
  x <- cbind(g0 = 1, x)
  colnames(x) <- sprintf("g%d", seq_len(ncol(x)) - 1)
  found <- shifts_of(x, rep(c("g0", ""), c(guided, cells - guided)))
  exact <- stats::phyper(counts - 1, 200, cells - 200, guided, lower.tail = FALSE)
  more <- counts > 8
  ratio <- found$p[1, -1][more] / exact[more]
  expect_true(all(ratio > 1 & ratio < 4))
  normal <- 2 * stats::pnorm(-abs(found$t[1, -1]))
  expect_lt(min(normal / exact), 0.05) # what they would be
})

test_that("guides that do nothing have p-values as they should be", {
  skip_on_cran()
  withr::local_seed(76)
  of <- rep(c("", sprintf("g%d", 1:40)), c(4000, rep(100, 40)))
  x <- vapply(rep(c(0.01, 0.03, 0.1), each = 100), function(rate) {
    log2(1 + stats::rnbinom(8000, size = 0.5, mu = rate))
  }, numeric(8000))
  colnames(x) <- sprintf("g%d", 1:300)
  found <- shifts_of(x, of)
  known <- !is.na(found$p)
  share <- function(p, at) mean(p[known] <= at)
  expect_lt(share(found$p, 1e-3), 1.5e-3) # of 11,960
  expect_lt(share(found$p, 1e-4), 6e-4)
  expect_gt(share(found$p, 0.05), 0.02)
  expect_gt(share(2 * stats::pnorm(-abs(found$t)), 1e-4), 1e-3) # and would not be
})

test_that("mistakes with stores are named", {
  skip_if_not_installed("Matrix")
  withr::local_seed(74)
  d <- guided_cells(60, 16)
  store <- stored(d$x)
  guides <- function(of) {
    suppressMessages(regulation(store, interventions = of, seed = 1, control = list(resamples = 4)))
  }
  expect_error(guides(replace(d$of, d$of == "", "g6")), "at least 3 controls for a store", class = "weft_error_input")
  expect_error(guides(rep("", 60)), "in at least one sample", class = "weft_error_input")
  expect_error(guides(replace(d$of, 1, "other")), "Not in `x`", class = "weft_error_input")
  expect_error(guides(d$of[-1]), "one entry per row", class = "weft_error_input")
  bad <- d$x
  bad@x[3] <- NA
  store <- stored(bad)
  expect_error(guides(d$of), "missing or infinite", class = "weft_error_input")
})
