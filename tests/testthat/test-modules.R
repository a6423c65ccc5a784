# Modules of genes: what is found in planted data and in none, every number beside plain R, and what is refused.

# Genes that follow one factor each, then background: list(x, truth).
planted_modules <- function(seed, sizes = c(30, 25, 20), n = 80, p = 150, loading = c(0.5, 0.9)) {
  set.seed(seed)
  truth <- c(rep(seq_along(sizes), sizes), integer(p - sum(sizes)))
  weight <- runif(p, loading[1], loading[2]) * (truth > 0)
  u <- matrix(rnorm(n * max(1, length(sizes))), n)
  x <- u[, pmax(truth, 1)] * rep(weight, each = n) + matrix(rnorm(n * p), n) * rep(sqrt(1 - weight^2), each = n) + 8
  dimnames(x) <- list(sprintf("s%03d", seq_len(n)), sprintf("g%03d", seq_len(p)))
  list(x = x, truth = truth, factors = u)
}

modules_of <- function(x, ..., seed = 1) gene_modules(x, ..., seed = seed)
scores_of <- function(x) apply(x, 2, function(v) qnorm((rank(v) - 0.5) / length(v)))

test_that("planted modules are found, and background stays outside", {
  for (seed in 1:2) {
    d <- planted_modules(seed)
    m <- modules_of(d$x, seed = seed)
    both <- table(d$truth, m$module)
    expect_identical(dim(both), c(4L, 4L))
    expect_gt(sum(apply(both, 1, max)) / length(d$truth), 0.93)
    expect_identical(m$modules$size, sort(m$modules$size, decreasing = TRUE))
    expect_true(all(m$modules$stability >= 0.5 & m$modules$p_value <= 0.05 / 3))
  }
})

test_that("independent genes have no module, and one factor makes one at most", {
  set.seed(3)
  for (n in c(15, 60)) {
    noise <- matrix(rt(n * 200, 3), n)
    expect_identical(nrow(modules_of(noise)$modules), 0L)
    one <- outer(rnorm(n), runif(200, 0.3, 0.8)) + matrix(rnorm(n * 200, sd = 0.8), n)
    expect_lte(nrow(modules_of(one)$modules), 1L)
  }
  none <- modules_of(noise)
  expect_true(all(none$module == 0L))
  expect_output(print(none), "no module")
  expect_error(plot(none), "must have modules", class = "weft_error_input")
  expect_identical(nrow(glance(none)), 1L)
  expect_true(all(is.na(as.data.frame(none)$membership)))
})

test_that("`signed` divides genes that fall where others rise", {
  d <- planted_modules(5, sizes = 60)
  d$x[, 1:30] <- -d$x[, 1:30]
  expect_identical(nrow(modules_of(d$x)$modules), 1L)
  apart <- modules_of(d$x, signed = TRUE)
  expect_identical(nrow(apart$modules), 2L)
  expect_true(all(diag(apart$membership[names(apart$module)[apart$module == 1L][1:5], rep("M1", 5)]) > 0))
  both <- table(rep(1:3, c(30, 30, 90)), apart$module)
  expect_gt(sum(apply(both, 1, max)), 140)
})

test_that("units, outliers and copies of genes change nothing that they should not", {
  d <- planted_modules(6)
  m <- modules_of(d$x)
  as_is <- function(x) modules_of(gene_quality(x, transform = "none"))
  expect_identical(as_is(d$x * rep(2^seq(-149, 149, 2), each = 80))$module, m$module)
  expect_identical(as_is(exp(d$x))$module, m$module) # only ranks matter
  spoilt <- d$x
  at <- cbind(sample(80, 150, TRUE), 1:150)
  spoilt[at] <- spoilt[at] * 1e6
  expect_gt(mean(as_is(spoilt)$module == m$module), 0.95)
  tied <- round(d$x)
  expect_gt(mean(modules_of(tied)$module == m$module), 0.8)
  copied <- cbind(d$x[, 140], d$x[, rep(141, 12)])
  colnames(copied) <- sprintf("c%d", 1:13)
  found <- modules_of(cbind(d$x, copied))
  expect_identical(length(unique(found$module[sprintf("c%d", 2:13)])), 1L)
  expect_true(all(found$module[sprintf("c%d", 2:13)] > 0))
})

test_that("missing values are filled, and the same seed gives the same on any number of threads", {
  d <- planted_modules(7)
  d$x[cbind(sample(80, 60, TRUE), sample(150, 60, TRUE))] <- NA
  q <- gene_quality(d$x)
  same <- c("module", "modules", "eigengenes", "membership", "left_out")
  one <- modules_of(q, run = weft_run(threads = 1))
  for (threads in 2:3) expect_identical(modules_of(q, run = weft_run(threads = threads))[same], one[same])
  expect_identical(modules_of(q, seed = 1)[same], one[same])
})

# ---- numbers ----

test_that("neighbours are those of the whole matrix of correlations", {
  set.seed(8)
  z <- weft:::unit_columns(matrix(rnorm(30 * 500), 30) + rnorm(30))
  control <- weft:::run_control("cpu", 2, FALSE)
  r <- crossprod(z)
  diag(r) <- 0
  for (positive in c(FALSE, TRUE)) {
    got <- .Call(weft:::C_weft_modules_neighbours, z, list(k = 7, least = 0.5, positive = positive), control)
    strength <- if (positive) r else abs(r)
    for (j in c(1, 2, 191, 192, 193, 499, 500)) {
      best <- order(-strength[, j])[1:7]
      best <- best[strength[best, j] >= 0.5]
      expect_identical(got$index[seq_along(best), j], best)
      expect_equal(got$value[seq_along(best), j], r[best, j], tolerance = 1e-12)
      expect_true(all(got$index[-seq_along(best), j] == 0L))
    }
  }
})

test_that("the correlation that chance exceeds is that of the t distribution", {
  r <- weft:::chance_correlation(3, 40, 1001, FALSE)
  x <- rnorm(40)
  e <- residuals(lm(rnorm(40) ~ x))
  y <- r * as.vector(scale(x)) + sqrt(1 - r^2) * e / sd(e)
  expect_equal(cor(x, y), r)
  expect_equal(cor.test(x, y)$p.value, 3 / 1000)
  expect_equal(weft:::chance_p(r, 40, 5, FALSE), 1 - (1 - 3 / 1000)^5)
  expect_equal(cor.test(x, y, alternative = "greater")$p.value, weft:::chance_p(r, 40, 1, TRUE))
})

# Topological overlap and communities of a small graph, from their definitions.
overlap_in_r <- function(a, shared) {
  k <- colSums(a)
  w <- (a %*% a + a) / (outer(k, k, pmin) + 1 - a)
  w[a == 0 | crossprod(a > 0) < shared] <- 0
  w
}

communities_in_r <- function(w, order) {
  label <- seq_len(nrow(w))
  repeat {
    own <- seq_len(nrow(w))
    degree <- colSums(w) # a diagonal counts twice, as edges inside are there in both directions
    twice <- sum(degree)
    any <- FALSE
    repeat {
      moved <- FALSE
      for (i in order) {
        to <- vapply(own, function(community) sum(w[i, own == community & seq_along(own) != i]), 0)
        total <- vapply(own, function(community) sum(degree[own == community & seq_along(own) != i]), 0)
        near <- which(w[i, ] > 0 & seq_along(own) != i)
        gain <- to - degree[i] / twice * total
        choice <- c(match(own[i], own), near)
        best <- choice[which.max(gain[choice])]
        if (gain[best] > gain[match(own[i], own)] + 1e-12 * degree[i]) {
          own[i] <- own[best]
          moved <- any <- TRUE
        }
      }
      if (!moved) break
    }
    if (!any) return(label)
    number <- match(own, unique(own))
    label <- number[label]
    w <- rowsum(t(rowsum(w, number)), number)
    order <- seq_len(nrow(w))
  }
}

test_that("communities are those of the definition, on topological overlap", {
  control <- weft:::run_control("cpu", 2, FALSE)
  for (seed in 1:6) {
    set.seed(seed)
    p <- 40
    group <- sample(4, p, TRUE)
    a <- matrix(0, p, p)
    a[upper.tri(a)] <- runif(p * (p - 1) / 2) * rbinom(p * (p - 1) / 2, 1, ifelse(outer(group, group, `==`), 0.6,
                                                                                     0.08)[upper.tri(a)])
    pairs <- which(a > 0, arr.ind = TRUE) # by columns: ordered by the second gene
    a <- a + t(a)
    for (shared in c(0, 2)) {
      order <- sample(p)
      graph <- list(from = as.integer(pairs[, 1]), to = as.integer(pairs[, 2]), weight = a[pairs], shared = shared)
      got <- .Call(weft:::C_weft_modules_communities, graph, order - 1L, control)
      expect_identical(match(got, unique(got)),
                       (\(z) match(z, unique(z)))(communities_in_r(if (shared) overlap_in_r(a, shared) else a, order)))
    }
  }
})

test_that("a gene's membership in the search leaves out its own part", {
  d <- planted_modules(9, sizes = c(12, 12), n = 30, p = 30)
  z <- weft:::module_scores(d$x)
  label <- d$truth
  eigen <- weft:::eigengenes_of(z, label)
  r <- weft:::memberships(z, label, eigen, weft:::run_control("cpu", 1, FALSE))
  for (j in 1:12) {
    others <- setdiff(1:12, j)
    rest <- z[, others] %*% crossprod(z[, others], eigen[, 1])
    expect_equal(r[j, 1], cor(z[, j], rest)[1], tolerance = 1e-10)
    expect_equal(r[j, 2], cor(z[, j], eigen[, 2]), tolerance = 1e-10)
  }
  large <- scores_of(matrix(rnorm(40 * 150), 40) + rnorm(40)) # by power iteration
  expect_equal(abs(cor(weft:::first_direction(weft:::unit_columns(large)), prcomp(large, scale. = TRUE)$x[, 1]))[1], 1,
               tolerance = 1e-6)
})

test_that("held-out p-values are uniform among independent genes", {
  set.seed(10)
  how <- list(key = c(0, 1), signed = FALSE, smallest = 5L, control = weft:::run_control("cpu", 1, FALSE))
  p <- replicate(200, {
    z <- weft:::unit_columns(matrix(rnorm(20 * 10), 20))
    held <- rep(c(FALSE, TRUE), c(15, 5))
    kept <- z[!held, ]
    weight <- prcomp(kept)$rotation[, 1]
    other <- weft:::unit_columns(z[held, ])
    pchisq(sum((other %*% weight)^2) / sum(weight^2) * 4, 4, lower.tail = FALSE)
  })
  expect_gt(ks.test(p, "punif")$p.value, 0.001)
  d <- planted_modules(10)
  tried <- weft:::validate_modules(weft:::module_scores(d$x), d$truth, how)
  expect_true(all(tried$jaccard > 0.5 & tried$p_value < 1e-6))
  random <- weft:::validate_modules(weft:::module_scores(d$x), c(integer(75), rep(1:3, 25)), how)
  expect_true(all(random$jaccard < 0.2))
})

test_that("eigengenes, memberships and hubs are those of prcomp() and cor()", {
  d <- planted_modules(11)
  m <- modules_of(d$x)
  z <- scores_of(d$x)
  for (k in 1:3) {
    own <- which(m$module == k)
    pc <- prcomp(scale(z)[, own])
    expect_equal(abs(cor(pc$x[, 1], m$eigengenes[, k])), 1, tolerance = 1e-10)
    expect_gt(cor(m$eigengenes[, k], rowMeans(z[, own])), 0)
    expect_equal(m$modules$explained[k], pc$sdev[1]^2 / sum(pc$sdev^2), tolerance = 1e-10)
    expect_identical(m$modules$hub[k], colnames(z)[own[which.max(abs(m$membership[own, k]))]])
  }
  expect_equal(m$membership, cor(z, m$eigengenes), tolerance = 1e-10)
  expect_equal(unname(apply(m$eigengenes, 2, sd)), rep(1, 3))
  genes <- as.data.frame(m)
  expect_setequal(genes$gene, colnames(d$x))
  expect_identical(genes$gene[!is.na(genes$rank) & genes$rank == 1L], m$modules$hub)
  expect_equal(genes$membership[1], m$membership[genes$gene[1], 1])
})

test_that("relations are those of linear models with batch and covariates, on values as measured", {
  d <- planted_modules(12)
  set.seed(12)
  batch <- rep_len(c("u", "v"), 80)
  age <- rnorm(80, 50, 10)
  class <- ifelse(d$factors[, 1] + rnorm(80) > 0, "b", "a")
  d$x <- d$x + 2 * (batch == "v") + 0.02 * age
  dose <- d$factors[, 2] + rnorm(80)
  kind <- factor(cut(d$factors[, 3] + rnorm(80), 3, c("l", "m", "h")))
  traits <- data.frame(dose, kind, gap = replace(dose, 1:5, NA))
  q <- gene_quality(d$x, class, batch, covariates = data.frame(age))
  m <- modules_of(q, traits = traits)
  expect_identical(unique(m$relations$variable), c("class", "dose", "kind", "gap"))
  expect_equal(m$relations$q_value, p.adjust(m$relations$p_value, "BH"))
  z <- scale(scores_of(q$x))
  raw <- scale(scores_of(q$measured))
  eigen <- sapply(1:3, function(k) {
    own <- m$module == k
    pc <- prcomp(z[, own])
    raw[, own] %*% pc$rotation[, 1] * sign(cor(pc$x[, 1], m$eigengenes[, k]))[1] / pc$sdev[1]
  })
  row <- function(name, k) m$relations[m$relations$variable == name & m$relations$module == k, ]
  colnames(eigen) <- c("a", "b", "c")
  checked <- gene_quality(eigen, class, batch, covariates = data.frame(age), transform = "none")
  ranked <- gene_ranking(checked, control = list(weights = "none", trend = FALSE, shape = FALSE))
  for (k in 1:3) {
    rest <- residuals(lm(eigen[, k] ~ factor(batch) + age))
    expect_equal(row("class", k)$correlation, cor(rest, residuals(lm((class == "b") ~ factor(batch) + age))),
                 tolerance = 1e-8)
    expect_equal(row("dose", k)$correlation, cor(rest, residuals(lm(dose ~ factor(batch) + age))), tolerance = 1e-8)
    with <- lm(eigen[, k] ~ factor(batch) + age + kind)
    expect_equal(row("kind", k)$correlation, sqrt(1 - sum(residuals(with)^2) / sum(rest^2)), tolerance = 1e-8)
    known <- 6:80
    expect_equal(row("gap", k)$correlation,
                 cor(residuals(lm(eigen[known, k] ~ factor(batch)[known] + age[known])),
                     residuals(lm(dose[known] ~ factor(batch)[known] + age[known]))), tolerance = 1e-8)
    expect_equal(row("class", k)$t, ranked$t[match(letters[k], ranked$gene)], tolerance = 1e-6)
    expect_equal(row("class", k)$p_value, ranked$p_value[match(letters[k], ranked$gene)], tolerance = 1e-6)
  }
  expect_true(all(is.na(m$relations$t[m$relations$variable == "kind"])))
  expect_error(as.data.frame(modules_of(planted_modules(12)$x), what = "relations"), "must contain relations",
               class = "weft_error_input")
})

test_that("preservation has the statistics of the definition, and tells modules from chance", {
  d <- planted_modules(13, n = 160)
  m <- modules_of(d$x[1:80, ])
  other <- d$x[81:160, c(120:150, 1:100)]
  found <- module_preservation(m, other, permutations = 99, seed = 2)
  expect_identical(module_preservation(m, other, permutations = 99, seed = 2, run = weft_run(threads = 2)), found)
  z <- scale(scores_of(other))
  for (k in 1:3) {
    genes <- intersect(names(m$module)[m$module == k], colnames(other))
    weight <- m$membership[genes, k]
    r <- cor(z[, genes]) * outer(sign(weight), sign(weight))
    expect_equal(found$density[k], mean(r[upper.tri(r)]), tolerance = 1e-10)
    own <- sapply(genes, function(g) {
      rest <- setdiff(genes, g)
      cor(z[, g] * sign(weight[g]), z[, rest, drop = FALSE] %*% weight[rest])
    })
    expect_equal(found$agreement[k], cor(abs(weight), own), tolerance = 1e-8)
    expect_identical(found$common[k], as.double(length(genes)))
  }
  expect_true(all(found$z > 4 & found$p_value == 0.01))
  common <- intersect(names(m$module), colnames(other)) # z and p of one module, from random genes in its place
  genes <- intersect(names(m$module)[m$module == 3L], common)
  weight <- m$membership[genes, 3]
  values <- function(at) {
    y <- z[, at] * rep(sign(weight), each = 80)
    own <- sapply(seq_along(at), function(g) cor(y[, g], y[, -g] %*% abs(weight)[-g]))
    c(mean(cor(y)[upper.tri(diag(length(at)))]), cor(abs(weight), own))
  }
  random <- sapply(1:99, function(b) {
    values(common[order(weft:::draws("uniform", length(common), key = c(0, 2), stream = 3,
                                     first = b * length(common)))[seq_along(genes)]])
  })
  each <- (values(genes) - rowMeans(random)) / apply(random, 1, sd)
  expect_equal(c(found$z_density[3], found$z_agreement[3], found$z[3]), c(each, mean(each)), tolerance = 1e-6)
  noise <- matrix(rnorm(length(other)), nrow(other), dimnames = dimnames(other))
  chance <- module_preservation(m, noise, permutations = 99, seed = 2)
  expect_true(all(abs(chance$z) < 4 & chance$p_value > 0.02))
  expect_gt(max(chance$p_value), 0.3)
  lost <- module_preservation(m, d$x[81:160, c(names(m$module)[m$module != 2L], names(m$module)[m$module == 2L][1:2])],
                              permutations = 19, seed = 1)
  expect_identical(is.na(lost$z), c(FALSE, TRUE, FALSE))
  expect_error(module_preservation(m, unname(d$x[81:160, ])), "genes of the modules", class = "weft_error_input")
})

# ---- what else goes in and comes out ----

test_that("a network can be where the search begins", {
  d <- planted_modules(14, sizes = c(20, 15), p = 50)
  net <- mi_network(d$x, "clr", estimator = "spearman")
  m <- modules_of(d$x, network = net)
  expect_identical(nrow(m$modules), 2L)
  expect_gt(sum(apply(table(d$truth, m$module), 1, max)), 45)
  directed <- regulation(d$x, seed = 1, run = weft_run(progress = FALSE), control = list(resamples = 20))
  expect_identical(nrow(modules_of(d$x, network = directed)$modules), 2L)
  expect_error(modules_of(d$x[, 1:40], network = net), "genes in `x`", class = "weft_error_input")
  expect_error(modules_of(d$x, network = 1), "returned by", class = "weft_error_input")
})

test_that("sets are tested against modules, with all genes as the universe", {
  d <- planted_modules(15)
  sets <- list(first = sprintf("g%03d", 1:30), other = sprintf("g%03d", 100:130))
  m <- modules_of(d$x, sets = sets)
  own <- m$module[["g001"]]
  best <- m$enrichment[1, ]
  expect_identical(best$query, sprintf("M%d", own))
  expect_identical(best$set, "first")
  overlap <- sum(names(m$module)[m$module == own] %in% sets$first)
  expect_equal(best$p_value, phyper(overlap - 1, 30, 120, sum(m$module == own), lower.tail = FALSE))
  expect_identical(gene_sets(m, sets), m$enrichment)
  expect_error(gene_sets(m, sets, names(m$module)), "must not be given", class = "weft_error_input")
})

test_that("what is printed and drawn names modules, hubs and what is outside", {
  d <- planted_modules(16)
  class <- rep_len(c("a", "b"), 80)
  m <- modules_of(d$x, class)
  expect_output(print(m), "150 genes of 80 samples: 3 modules of")
  expect_output(print(m), m$modules$hub[1])
  expect_output(print(m, n = 1), "and 2 more")
  expect_output(summary(m), "3 modules")
  withr::local_pdf(NULL)
  expect_invisible(plot(m))
  expect_invisible(plot(modules_of(d$x), main = "sizes"))
  expect_identical(tidy(m), as.data.frame(m))
  expect_identical(glance(m)$modules, 3L)
  skip_if_not_installed("ggplot2")
  expect_s3_class(ggplot2::autoplot(m), "ggplot")
  expect_s3_class(ggplot2::autoplot(modules_of(d$x)), "ggplot")
})

test_that("wrong input is refused in words", {
  d <- planted_modules(17)
  refused <- function(..., words) expect_error(modules_of(...), words, class = "weft_error_input")
  refused(d$x[1:8, ], words = "at least 12 samples")
  refused(matrix(rep_len(0:2, 400) + 0, 40)[, 1:10], words = "must contain expression")
  refused(d$x, traits = 1:3, words = "`traits` must have a value or row for every sample")
  refused(d$x, traits = rep(1, 80), words = "at least two values")
  refused(d$x, min_size = 1, words = "min_size")
  refused(d$x, signed = NA, words = "signed")
  refused(d$x, sets = 3, words = "sets")
  refused(d$x, power = 6, words = "power")
  refused(d$x, seed = -1, words = "seed")
  expect_error(modules_of(d$x, run = "cuda"), "CPU only", class = "weft_error_device")
})
