# Groups by consensus: their number, who belongs to which, and what is refused.

# Groups with different means of a third of the genes.
planted <- function(key, sizes, effect = 2, p = 60) {
  set.seed(key)
  z <- rep(seq_along(sizes), sizes)
  means <- matrix(rnorm(length(sizes) * p), length(sizes)) * effect * rep(rbinom(p, 1, 0.4), each = length(sizes))
  list(x = means[z, ] + matrix(rnorm(length(z) * p), length(z)) + 8, z = z)
}

# Adjusted Rand index, from the definition of Hubert and Arabie (1985).
adjusted_rand <- function(a, b) {
  shared <- table(a, b)
  pairs <- function(counts) sum(choose(counts, 2))
  expected <- pairs(rowSums(shared)) * pairs(colSums(shared)) / choose(length(a), 2)
  (pairs(shared) - expected) / ((pairs(rowSums(shared)) + pairs(colSums(shared))) / 2 - expected)
}

groups_of <- function(x, ..., seed = 1) suppressWarnings(call_with(gene_clusters, list(x, ..., seed = seed)))

test_that("planted groups are found, of equal and unequal sizes", {
  for (sizes in list(c(30, 30, 30), c(50, 25, 12), c(40, 40))) {
    for (key in 1:3) {
      e <- planted(key, sizes)
      fit <- groups_of(e$x, seed = key)
      expect_identical(fit$k, length(sizes))
      expect_gt(adjusted_rand(fit$cluster, e$z), 0.9)
      expect_true(fit$converged && all(fit$stability$kept == (fit$stability$k <= fit$k)))
      expect_identical(tabulate(fit$cluster), sort(tabulate(fit$cluster), decreasing = TRUE))
    }
  }
})

test_that("groups are found beside a factor that all of them share", {
  e <- planted(4, c(30, 25, 20))
  set.seed(4)
  x <- e$x + outer(rnorm(75), rnorm(60))
  expect_gt(adjusted_rand(groups_of(x)$cluster, e$z), 0.95)
})

test_that("data without groups are one group", {
  set.seed(2)
  n <- 70
  noise <- function() matrix(rnorm(n * 60), n)
  sets <- list(noise = noise(), t3 = matrix(rt(n * 60, 3), n), noisy = noise() * sample(c(1, 3), n, TRUE),
               factor = outer(rnorm(n), rnorm(60)) + noise(), even = outer(runif(n, -2, 2), rnorm(60)) + noise(),
               skewed = outer(rexp(n), rnorm(60)) + noise(), heavy = outer(rt(n, 3), rnorm(60)) + noise())
  for (name in names(sets)) expect_identical(groups_of(sets[[name]])$k, 1L, label = name)
  alone <- groups_of(sets$noise)
  expect_output(print(alone), "one group: no component exceeds")
  expect_true(all(alone$probability == 1))
})

# Depths of the cuts behind each of the sorted numbers but three at either end, from the definition.
depths_of <- function(y) {
  n <- length(y)
  m <- 3
  while (m[length(m)] < n) m <- c(m, m[length(m)] + if (m[length(m)] > 5) m[length(m)] %/% 3 else 1)
  rise <- function(u) { # u: distances from the last point before the cut, ascending
    m <- m[m < length(u)]
    max(vapply(m, function(m) (mean(u[seq_len(m)]) / u[m + 1] - 0.5) * sqrt(12 * m), 0), -Inf)
  }
  vapply(4:(n - 4), function(i) min(rise(y[i + 1] - y[i:1]), rise(y[(i + 1):n] - y[i])), 0)
}

test_that("the depth of a valley is that of its definition", {
  set.seed(3)
  x <- c(rnorm(30), rnorm(20, 6))
  tree <- weft:::valley_tree(matrix(x, 1), 2, 0, list(key = c(0, 1), control = weft:::run_control(progress = FALSE)))
  depth <- depths_of(sort(x))
  expect_equal(tree$nodes$valley[1L], max(depth), tolerance = 1e-12)
  expect_setequal(tree$rows[seq_len(tree$nodes$count[2L])], which(x <= sort(x)[(4:46)[which.max(depth)]]))
})

test_that("the discriminant direction of two sides deepens their valley", {
  set.seed(6)
  n <- 120
  side <- rep(0:1, c(90, 30))
  x <- cbind(rnorm(n, 0, 6), 3.2 * side) + matrix(rnorm(2 * n), n)
  x <- x %*% rbind(c(cos(1), sin(1)), c(-sin(1), cos(1)))
  how <- list(key = c(0, 1), control = weft:::run_control(progress = FALSE))
  found <- weft:::valley_tree(t(x), 2, 0, how)$nodes$valley[1L]
  turned <- stats::prcomp(x)$x
  deepest <- function(direction) max(depths_of(sort(drop(turned %*% direction))))
  discriminant <- function(low) { # as in src/clusters/discriminant.c, in the units of equalise()
    variance <- colMeans(turned^2)
    unit <- 1 / sqrt(variance + 0.1 * mean(variance))
    z <- turned * rep(unit, each = n)
    within <- Reduce(`+`, lapply(split(seq_len(n), low), function(i) crossprod(scale(z[i, ], scale = FALSE)))) / n
    within <- within + diag(0.1 * mean(diag(within)), 2)
    unit * solve(within, colMeans(z[!low, ]) - colMeans(z[low, ]))
  }
  axes <- max(deepest(c(1, 0)), deepest(c(0, 1)))
  expect_gte(found, axes - 1e-9)
  # from the cut along the second axis, again and again
  best <- axes
  projection <- turned[, if (deepest(c(0, 1)) > deepest(c(1, 0))) 2L else 1L]
  for (round in 1:4) {
    depth <- depths_of(sort(projection))
    low <- projection <= sort(projection)[(4:(n - 4))[which.max(depth)]]
    projection <- drop(turned %*% discriminant(low))
    now <- max(depths_of(sort(projection)))
    if (now <= best + 1e-9) break
    best <- now
  }
  expect_gt(best, axes)
  expect_gte(found, best - 1e-6)
})

test_that("a small group that few subsamples divide first is kept", {
  set.seed(5)
  z <- rep(1:5, c(90, 70, 60, 40, 12))
  x <- matrix(rnorm(5 * 60), 5)[z, ] * 1.6 + matrix(rnorm(length(z) * 60), length(z))
  fit <- groups_of(x)
  expect_identical(fit$k, 5L)
  expect_gt(adjusted_rand(fit$cluster, z), 0.97)
})

test_that("subsamples' divisions are undone where that agrees best with the groups", {
  # a subsample's groups 0, 1, 2 and 3; 1 and 2 were divided from 0, and 3 from 1
  own <- c(0, 0, 0, 1, 1, 3, 3, 2, 2, 2)
  grown <- list(rows = matrix(0:9), labels = matrix(as.integer(own)), parents = matrix(c(0L, 0L, 0L, 1L)), found = 4L)
  agreement <- function(a, b) {
    shared <- table(a, b)
    sum(apply(shared / (outer(rowSums(shared), colSums(shared), `+`) - shared), 2, max))
  }
  may <- list(`3` = replace(own, own == 3, 1), `2` = replace(own, own == 2, 0)) # 1 was divided since
  for (labels in list(c(1, 1, 1, 2, 2, 2, 2, 3, 3, 3), c(1, 1, 1, 2, 2, 3, 3, 1, 1, 1))) {
    best <- may[[which.max(vapply(may, agreement, 0, b = labels))]]
    merged <- weft:::merged_subsamples(grown, labels, 3)
    expect_identical(merged$found, 3L)
    expect_identical(adjusted_rand(merged$labels[, 1L], best), 1)
    expect_setequal(merged$labels, 0:2)
  }
  expect_identical(weft:::merged_subsamples(grown, labels, 4), grown)
})

test_that("a given number of groups is k-means, which every start and R's agree on", {
  e <- planted(5, c(30, 20, 15, 10))
  fit <- groups_of(e$x, k = 4)
  scores <- fit$components$x
  squares <- function(z) sum((scores - apply(scores, 2L, ave, z))^2)
  reference <- stats::kmeans(scores, 4, nstart = 50, iter.max = 100)
  expect_equal(squares(fit$cluster), reference$tot.withinss, tolerance = 1e-8)
  expect_identical(adjusted_rand(fit$cluster, reference$cluster), 1)
  expect_output(print(fit), "number of groups was given")
  expect_identical(groups_of(e$x, k = 1)$k, 1L)
})

test_that("seeds, units and threads change nothing", {
  e <- planted(6, c(30, 20, 15))
  fit <- groups_of(e$x, threads = 1)
  same <- c("cluster", "probability", "stability", "gene_cluster")
  expect_identical(groups_of(e$x, threads = 2)[same], fit[same])
  pc <- stats::prcomp(e$x, scale. = TRUE)
  pc$x <- pc$x[, 1:3]
  pc$rotation <- pc$rotation[, 1:3]
  by_pc <- groups_of(pc)
  for (unit in c(2^-1010, 2^-500, 2^-8, 2^8, 2^500, 2^1010)) {
    moved <- pc
    moved$x <- pc$x * unit
    moved$sdev <- pc$sdev * unit
    again <- groups_of(moved)
    expect_identical(again[same], by_pc[same])
    expect_identical(again$components$share, by_pc$components$share)
    expect_identical(glance(again)$k, by_pc$k)
  }
  for (unit in c(1e-250, 1e201)) {
    moved$x <- pc$x * unit
    moved$sdev <- pc$sdev * unit
    again <- groups_of(moved)
    expect_identical(again[c("cluster", "probability", "gene_cluster")],
                     by_pc[c("cluster", "probability", "gene_cluster")])
    expect_equal(again$stability, by_pc$stability, tolerance = 1e-6)
  }
  expect_identical(adjusted_rand(by_pc$cluster, e$z), 1)
  z <- weft:::scaled_columns(e$x[, 1:5])
  for (unit in c(2^-1010, 2^1010)) expect_identical(weft:::scaled_columns(e$x[, 1:5] * unit), z)
})

test_that("hard inputs have an answer or a reason", {
  e <- planted(7, c(20, 20))
  expect_error(groups_of(e$x[1:7, ]), "at least 8 samples", class = "weft_error_input")
  constant <- cbind(e$x, matrix(3, 40, 5))
  expect_identical(unname(groups_of(constant)$cluster), unname(groups_of(e$x)$cluster))
  expect_error(groups_of(replace(e$x, cbind(1:40, 1), NA)[, 1:3]), class = "weft_error_input")
  twice <- e$x[rep(1:40, 2), ]
  expect_identical(groups_of(twice)$k, 2L)
  one <- matrix(c(seq(0, 1, length.out = 30), seq(9, 10, length.out = 30)), ncol = 1)
  expect_identical(groups_of(stats::prcomp(one))$k, 2L)
  expect_identical(groups_of(stats::prcomp(matrix(seq(0, 1, length.out = 60))))$k, 1L)
  expect_identical(groups_of(stats::prcomp(one[rep(1:2, 10), , drop = FALSE]))$k, 1L) # two different values
  pc <- stats::prcomp(e$x)
  pc$x[3, 1] <- NA
  expect_error(groups_of(pc), "returned by `gene_components\\(\\)`", class = "weft_error_input")
  expect_error(groups_of(e$x, k = 11), "from 1 to 10", class = "weft_error_input")
  expect_error(groups_of(e$x, k = 4, max_clusters = 2), "at most `max_clusters`", class = "weft_error_input")
  expect_error(groups_of(e$x, sweeps = 3), "method = \"irm\"", class = "weft_error_input")
  expect_error(groups_of(e$x, method = "irm", k = 3), "must not be given", class = "weft_error_input")
  expect_error(groups_of(e$x, components = gene_components(planted(1, c(9, 9))$x)), "must be computed from `x`",
               class = "weft_error_input")
})

test_that("many samples are assigned from a pool", {
  set.seed(8)
  z <- sample(3, 12000, TRUE, c(0.6, 0.3, 0.1))
  x <- rbind(c(0, 0), c(6, 0), c(0, 7))[z, ] + matrix(rnorm(24000), ncol = 2)
  pc <- structure(list(x = x, sdev = apply(x, 2, sd), rotation = diag(2)), class = "prcomp")
  fit <- groups_of(pc)
  expect_identical(fit$k, 3L)
  expect_gt(adjusted_rand(fit$cluster, z), 0.98)
})

test_that("a large normal group is not divided at a valley that normal data have by chance", {
  set.seed(23)
  z <- rep(1:3, c(3000, 2000, 1000))
  means <- matrix(rnorm(18), 3) * 3
  x <- means[z, ] + matrix(rnorm(36000), 6000)
  pc <- structure(list(x = x, sdev = apply(x, 2, sd), rotation = diag(6)[1:4, ]), class = "prcomp")
  fit <- groups_of(pc, seed = 23)
  expect_identical(fit$k, 3L) # with null data that are all uniform: 4 (p 0.009)
  expect_identical(adjusted_rand(fit$cluster, z), 1)
})

test_that("results are tables and a picture, and damaged ones are refused", {
  fit <- groups_of(planted(9, c(20, 20))$x)
  d <- as.data.frame(fit)
  expect_named(d, c("sample", "cluster", "probability"))
  expect_identical(nrow(as.data.frame(fit, what = "genes")), 60L)
  expect_identical(glance(fit)$k, 2L)
  expect_identical(tidy(fit), d)
  withr::local_pdf(NULL)
  expect_invisible(plot(fit))
  bad <- fit
  bad$cluster[1] <- -1L
  expect_error(print(bad), "damaged", class = "weft_error_input")
  three <- groups_of(planted(9, c(20, 20, 20))$x)
  expect_error(plot(three, components = c(1, 99)), "components", class = "weft_error_input")
})

test_that("the workflow takes these groups", {
  e <- planted(10, c(25, 20))
  fit <- suppressWarnings(gene_network(e$x, factor(e$z), seed = 1, run = weft_run(progress = FALSE),
                                       steps = list(network = FALSE, bayes = FALSE, pairs = FALSE)))
  expect_identical(fit$clusters$k, 2L)
  expect_output(print(fit), "2 groups")
  expect_identical(adjusted_rand(as.data.frame(fit, "samples")$cluster, e$z), 1)
  withr::local_pdf(NULL)
  expect_invisible(plot(fit, "clusters"))
})

test_that("co-clustering says whether it converged", {
  e <- planted(11, c(15, 15))
  fit <- suppressWarnings(gene_clusters(e$x, method = "irm", chains = 2, sweeps = 4, seed = 1))
  expect_identical(fit$converged, max(fit$rhat[is.finite(fit$rhat)], 1) <= 1.1)
  fit$rhat[] <- 4.1
  expect_match(weft:::clusters_text(fit), "did not converge \\(R-hat 4.10?, target 1.1\\): do not interpret the groups")
})
