# Twelve columns of factors and noise, without randomness.
wave_data <- function(n = 60, p = 12) {
  i <- seq_len(n)
  vapply(seq_len(p), function(j) sin(i * (1 + j %% 3)) + 0.6 * cos(i^1.3 * j), numeric(n))
}
wave_matrix <- function(...) as.matrix(mi_matrix(wave_data(...), estimator = "spearman"))

# Edge ij goes when some triangle has it weakest and below the second weakest by enough.
ref_aracne <- function(m, eps = 0, tau = 0) {
  out <- m
  p <- nrow(m)
  for (i in seq_len(p)) for (j in seq_len(p)) for (k in seq_len(p)) {
    if (i == j || k == i || k == j) next
    s <- min(m[i, k], m[j, k])
    if (m[i, j] < s && m[i, j] < (1 - tau) * s - eps) out[i, j] <- 0
  }
  diag(out) <- 0
  out
}

ref_mrnet <- function(m) {
  p <- nrow(m)
  out <- matrix(0, p, p)
  for (t in seq_len(p)) {
    left <- setdiff(seq_len(p), t)
    chosen <- integer()
    while (length(left)) {
      score <- vapply(left, function(j) m[j, t] - if (length(chosen)) mean(m[j, chosen]) else 0, 0)
      if (max(score) <= 0) break
      best <- left[which.max(score)]
      out[best, t] <- max(score)
      chosen <- c(chosen, best)
      left <- setdiff(left, best)
    }
  }
  pmax(out, t(out))
}

ref_mrnetb <- function(m) {
  p <- nrow(m)
  out <- matrix(0, p, p)
  for (t in seq_len(p)) {
    inside <- setdiff(seq_len(p), t)
    score_of <- function(i, set) m[i, t] - sum(m[i, setdiff(set, i)]) / length(set)
    worst_of <- function(set) { s <- vapply(set, score_of, 0, set); list(who = set[which.min(s)], score = min(s)) }
    repeat {
      worst <- worst_of(inside)
      if (length(inside) == 1 || worst$score >= 0) break
      inside <- setdiff(inside, worst$who)
    }
    repeat {
      worst <- worst_of(inside)
      outside <- setdiff(seq_len(p), c(inside, t))
      if (!length(outside)) break
      s <- vapply(outside, function(b) score_of(b, c(setdiff(inside, worst$who), b)), 0)
      if (max(s) <= worst$score + 1e-12) break
      inside <- sort(c(setdiff(inside, worst$who), outside[which.max(s)]))
    }
    for (i in inside) out[i, t] <- max(0, score_of(i, inside))
  }
  pmax(out, t(out))
}

test_that("ARACNE is the definition, with eps, tau and negative entries", {
  m <- wave_matrix()
  expect_equal(plain_matrix(mi_network(m, "aracne")), unname(ref_aracne(m)), tolerance = 1e-14)
  expect_equal(plain_matrix(mi_network(m, "aracne", eps = 0.01)), unname(ref_aracne(m, eps = 0.01)), tolerance = 1e-14)
  expect_equal(plain_matrix(mi_network(m, "aracne", tau = 0.15)), unname(ref_aracne(m, tau = 0.15)), tolerance = 1e-14)
  negative <- m - 0.05
  expect_equal(plain_matrix(mi_network(negative, "aracne", tau = 0.3)), unname(ref_aracne(negative, tau = 0.3)),
               tolerance = 1e-14)
  tied <- round(m, 1)
  expect_equal(plain_matrix(mi_network(tied, "aracne")), unname(ref_aracne(tied)), tolerance = 1e-14)
  diag(m) <- 1e9 # does not matter
  expect_equal(plain_matrix(mi_network(m, "aracne")), unname(ref_aracne(wave_matrix())), tolerance = 1e-14)
})

test_that("a chain keeps its links and loses the long edges", {
  set.seed(1)
  x <- matrix(rnorm(400 * 5), 400)
  for (j in 2:5) x[, j] <- 0.8 * x[, j - 1] + 0.6 * x[, j]
  w <- as.matrix(mi_network(x, "aracne", estimator = "pearson"))
  for (j in 1:4) expect_gt(w[j, j + 1], 0)
  expect_identical(w[1, 3], 0)
  expect_identical(w[2, 4], 0)
})

test_that("CLR is the definition; a constant gene gets 0", {
  m <- wave_matrix()
  off <- m
  diag(off) <- NA
  z <- pmax((m - rowMeans(off, na.rm = TRUE)) / apply(off, 1, sd, na.rm = TRUE), 0)
  expected <- sqrt(z^2 + t(z)^2)
  diag(expected) <- 0
  expect_equal(plain_matrix(mi_network(m, "clr")), unname(expected), tolerance = 1e-12)
  m[3, ] <- m[, 3] <- 0
  w <- mi_network(m, "clr")
  expect_false(anyNA(w))
  expect_identical(unname(w[3, ]), numeric(12))
  expect_identical(plain_matrix(mi_network(matrix(1, 2, 2), "clr")), matrix(0, 2, 2))
})

test_that("MRNET and MRNETB are the definitions", {
  for (m in list(wave_matrix(), wave_matrix(40, 30), wave_matrix(30, 7))) {
    expect_equal(plain_matrix(mi_network(m, "mrnet")), unname(ref_mrnet(m)), tolerance = 1e-12)
    expect_equal(plain_matrix(mi_network(m, "mrnetb")), unname(ref_mrnetb(m)), tolerance = 1e-12)
  }
})

test_that("networks have minet's and parmigene's numbers where they follow the definitions", {
  m <- wave_matrix()[1:5, 1:5]
  pick <- function(w) plain_matrix(w)[upper.tri(w)]
  # minet 3.6.0: aracne(m, 0.001), mrnet(m); parmigene 1.1.1: mrnet(m)
  aracne <- c(0, 0.0015998865479, 0.0145861647368, 0.6083838539094, 0, 0, 0, 0.6284534242958, 0, 0.0124721259513)
  mrnet <- c(0, 0.00159595701793, 0.01458616473683, 0.60838385390943, 0.00325179997254, 0, 0, 0.62845342429575, 0,
             0.01244756603783)
  expect_equal(pick(mi_network(m, "aracne", eps = 0.001)), aracne, tolerance = 1e-9)
  expect_equal(pick(mi_network(m, "mrnet")), mrnet, tolerance = 1e-9)
})

test_that("relevance networks: threshold and false discovery rate", {
  m <- mi_matrix(wave_data(), estimator = "pearson")
  w <- mi_network(m, "relnet", threshold = 0.1)
  expect_identical(plain_matrix(w), unname(ifelse(as.matrix(m) > 0.1 & row(m) != col(m), as.matrix(m), 0)))
  w <- mi_network(m, "relnet", fdr = 0.1)
  p <- weft:::pair_p_values(m)[upper.tri(m)]
  expect_identical(as.matrix(w)[upper.tri(w)] > 0, p.adjust(p, "BH") <= 0.1)
  counts <- mi_matrix(wave_data(), bins = 3)
  williams <- 1 + 4 * 4 / (6 * 60)
  g <- pchisq(2 * 60 * log(2) * as.matrix(counts) / williams, 4, lower.tail = FALSE)[upper.tri(counts)]
  edges <- as.data.frame(mi_network(counts, "relnet", fdr = 0.5))
  expect_identical(nrow(edges), sum(p.adjust(g, "BH") <= 0.5))
  expect_true(all(edges$q_value <= 0.5))
  expect_error(mi_network(as.matrix(m), "relnet"), "threshold", class = "weft_error_input")
  expect_error(mi_network(wave_data(), "relnet", estimator = "ksg"), "threshold", class = "weft_error_input")
})

test_that("Kendall's test is that of the normal approximation where it is the more cautious one", {
  x <- wave_data()
  edges <- as.data.frame(mi_network(x, "relnet", threshold = -1, estimator = "kendall"))
  tau <- cor(x, method = "kendall")
  first <- edges[1, ]
  i <- as.integer(sub("V", "", first$from))
  j <- as.integer(sub("V", "", first$to))
  z <- tau[i, j] / sqrt(2 * (2 * 60 + 5) / (9 * 60 * 59))
  expect_equal(first$p_value, 2 * pnorm(-abs(z)), tolerance = 1e-8)
})

test_that("what is not a matrix of information is an error", {
  m <- wave_matrix()
  m[1, 2] <- NA
  m[2, 1] <- NA
  expect_error(mi_network(m, "aracne"), class = "weft_error_input")
  strange <- structure(m, class = "weft_mi_matrix", format = 1L, test = list(estimator = "ksg"))
  expect_error(mi_network(strange, "aracne"), "finite", class = "weft_error_input")
  expect_error(mi_network(mi_matrix(mtcars[1:2], mtcars[3:4], estimator = "pearson")), "square",
               class = "weft_error_input")
  expect_error(mi_network(wave_matrix(), eps = 1, tau = 0.1), class = "weft_error_input")
  expect_error(mi_network(wave_matrix(), "aracne", tau = 2), class = "weft_error_input")
})

test_that("empty and tiny networks", {
  for (method in whole_networks) {
    for (p in 0:3) {
      w <- mi_network(matrix(0.5, p, p), method)
      expect_identical(dim(w), c(p, p))
      expect_false(anyNA(w))
      expect_true(all(diag(plain_matrix(w)) == 0))
    }
  }
  w <- mi_network(matrix(0, 4, 4), "mrnet")
  expect_identical(nrow(as.data.frame(w)), 0L)
  expect_output(print(w), "0 edges")
})

test_that("networks do not depend on threads and vectors", {
  set.seed(2)
  m <- as.matrix(mi_matrix(matrix(rnorm(50 * 203), 50), estimator = "spearman"))
  before <- .Call(weft:::C_weft_simd, NULL)
  for (method in whole_networks) {
    one <- as.matrix(mi_network(m, method, run = weft_run(threads = 1)))
    expect_identical(as.matrix(mi_network(m, method, run = weft_run(threads = 3))), one)
    for (level in 0:2) {
      if (!is.null(.Call(weft:::C_weft_simd, level))) expect_identical(as.matrix(mi_network(m, method)), one,
                                                                       info = method)
    }
    .Call(weft:::C_weft_simd, match(before, c("portable", "avx2", "avx512")) - 1L)
  }
})

test_that("networks print, convert and plot", {
  net <- mi_network(mtcars, "aracne", estimator = "spearman")
  edges <- as.data.frame(net)
  expect_identical(names(edges), c("from", "to", "weight", "mi", "p_value", "q_value"))
  expect_false(is.unsorted(-edges$weight))
  expect_identical(generics::tidy(net), weft:::broom_names(edges))
  expect_identical(generics::glance(net)$edges, nrow(edges) + 0)
  expect_output(print(net), "Network of 11 features")
  expect_identical(summary(net)$edges, nrow(edges) + 0)
  withr::local_pdf(NULL)
  expect_identical(plot(net), net)
  plot(net, edges = 3, labels = c("mpg", "wt"), groups = rep(c("a", "b"), length.out = 11))
  plot(mi_network(matrix(0, 4, 4), "clr"))
  expect_error(plot(net, groups = 1:2), class = "weft_error_input")
  odd <- c("\xff", "\xff")
  Encoding(odd) <- c("bytes", "UTF-8")
  for (name in odd) expect_no_error(plot(net, groups = rep(c(name, "a"), length.out = 11)))
  expect_identical(levels(weft:::check_groups(c("b", "A", "a", "B"), 4)), c("A", "B", "a", "b")) # in every locale
  skip_if_not_installed("igraph")
  g <- as_igraph(net)
  expect_equal(igraph::gorder(g), 11)
  expect_equal(sort(igraph::E(g)$weight), sort(edges$weight))
  twice <- mtcars[c(1:3, 1)]
  names(twice)[4] <- "mpg"
  expect_error(as_igraph(mi_network(twice, "clr", estimator = "spearman")), "unique names",
               class = "weft_error_input")
})

test_that("both back ends build the same ARACNE network", {
  skip_if_no_cuda()
  set.seed(3)
  for (p in c(3, 63, 65, 200, 333)) {
    m <- as.matrix(mi_matrix(matrix(rnorm(40 * p), 40), estimator = "spearman"))
    tied <- round(m, 2)
    close <- m * (1 + 1e-9 * (row(m) + col(m)))
    chain <- exp(-abs(row(m) - col(m)) / 3)
    for (w in list(m, tied, close, chain, m - 0.02, m * 1e200)) {
      for (run in list(list(), list(eps = 0.01), list(tau = 0.2))) {
        build <- function(backend) as.matrix(call_with(mi_network, c(list(w, "aracne", backend = backend), run)))
        expect_identical(build("cuda"), build("cpu"), info = p)
      }
    }
  }
})

# Two columns of two levels that are linked, and three of twelve that are not.
unequal_levels <- function() {
  withr::local_seed(13)
  n <- 150
  a <- rbinom(n, 1, 0.5)
  data.frame(a, b = ifelse(runif(n) < 0.72, a, 1 - a), x = sample(12, n, TRUE), y = sample(12, n, TRUE),
             z = sample(12, n, TRUE))
}

test_that("each pair passes by its own test, with every method", {
  m <- mi_matrix(unequal_levels())
  levels <- c(2, 2, 12, 12, 12)
  df <- outer(levels - 1, levels - 1)
  williams <- 1 + outer(levels + 1, levels + 1) / (6 * 150)
  p <- pchisq(2 * 150 * log(2) * plain_matrix(m) / williams, df, lower.tail = FALSE)
  upper <- upper.tri(p)
  q <- p.adjust(p[upper], "BH")
  net <- as.data.frame(mi_network(m, "relnet"))
  expect_identical(c(net$from, net$to), c("a", "b"))
  expect_equal(net$q_value, min(q), tolerance = 1e-10)
  for (fdr in c(0.01, 0.5, 0.9, 0.99)) {
    for (method in names(weft:::network_methods)) {
      whole <- plain_matrix(if (method == "relnet") mi_network(m, method, threshold = 0) else mi_network(m, method))
      expect_equal(plain_matrix(mi_network(m, method, fdr = fdr))[upper], ifelse(q <= fdr, whole[upper], 0),
                   info = paste(method, fdr))
    }
  }
  nats <- mi_matrix(unequal_levels(), unit = "nats")
  expect_identical(plain_matrix(mi_network(nats, "relnet")) > 0, plain_matrix(mi_network(m, "relnet")) > 0)
})

test_that("rows that differ by pair count for each pair", {
  x <- wave_data(80, 8)
  x[, 2] <- x[, 1] + c(-0.9, 0.9)
  x[1:74, 1] <- NA # few rows: much information, and no evidence
  x[30:70, 4] <- NA
  for (estimator in c("pearson", "kendall")) {
    m <- mi_matrix(x, estimator = estimator, na = "drop")
    p <- weft:::pair_p_values(m)
    rho <- cor(x, method = estimator, use = "pairwise.complete.obs")
    for (at in list(c(1, 2), c(3, 4), c(5, 6))) {
      rows <- stats::complete.cases(x[, at])
      expect_within_factor(p[at[1], at[2]], stats::cor.test(x[rows, at[1]], x[rows, at[2]], method = estimator)$p.value,
                           if (sum(rows) < 10) 3 else 1.25)
    }
    upper <- upper.tri(p)
    passes <- p.adjust(p[upper], "BH") <= 0.3
    expect_identical(plain_matrix(mi_network(m, "relnet", fdr = 0.3))[upper] > 0, passes, info = estimator)
    expect_identical(plain_matrix(mi_network(m, "clr", fdr = 0.3))[upper] > 0,
                     passes & plain_matrix(mi_network(m, "clr"))[upper] > 0)
  }
})

test_that("arguments that a method has no use for are errors", {
  m <- mi_matrix(wave_data(), estimator = "pearson")
  for (method in c("clr", "mrnet", "mrnetb", "relnet")) {
    expect_error(mi_network(m, method, eps = 0.1), "`eps`.*aracne", class = "weft_error_input")
    expect_error(mi_network(m, method, tau = 0.1), "`tau`.*aracne", class = "weft_error_input")
  }
  expect_error(mi_network(m, "aracne", threshold = 0.1), "`threshold`.*relnet", class = "weft_error_input")
  for (untested in list(as.matrix(m), mi_matrix(wave_data(), estimator = "ksg"),
                        mi_matrix(wave_data(), bins = 3, estimator = "shrink"))) {
    for (method in names(weft:::network_methods)) {
      expect_error(mi_network(untested, method, fdr = 0.1), "no test", class = "weft_error_input")
    }
    expect_s3_class(mi_network(untested, "clr", fdr = 1), "weft_network")
  }
})

test_that("what rounding leaves of 0 is no edge", {
  withr::local_seed(5)
  methods <- c("aracne", "clr", "mrnet", "mrnetb")
  m <- matrix(c(0, 0.1, 0.3, 0.1, 0, 0.2, 0.3, 0.2, 0), 3)
  m <- rbind(cbind(m, 0), 0) # the fourth has no link
  for (backend in test_backends()) {
    expect_identical(plain_matrix(mi_network(m, "mrnetb", run = backend))[, 4], numeric(4))
    for (p in c(5, 20, 61)) {
      whole <- matrix(0, p, p)
      whole[upper.tri(whole)] <- sample(1e6, p * (p - 1) / 2)
      whole[, p] <- 0
      whole <- whole + t(whole)
      for (method in methods) {
        exact <- plain_matrix(mi_network(whole, method, run = backend)) # sums of whole numbers have no rounding
        tenth <- plain_matrix(mi_network(whole * 0.1, method, run = backend))
        expect_identical(tenth > 0, exact > 0, info = paste(method, p))
        expect_identical(tenth[, p], numeric(p))
      }
    }
    flat <- matrix(0.1 * 3, 9, 9)
    flat[upper.tri(flat)] <- flat[upper.tri(flat)] + rep(c(0, 5e-17), 18) # 0.1 * 3 and 0.3 are neighbours
    flat[lower.tri(flat)] <- t(flat)[lower.tri(flat)]
    expect_identical(max(plain_matrix(mi_network(flat, "clr", run = backend))), 0)
    # 0.2 is the mean of all rows
    even <- matrix(c(0, 0.1, 0.2, 0.3, 0.1, 0, 0.3, 0.2, 0.2, 0.3, 0, 0.1, 0.3, 0.2, 0.1, 0), 4)
    clr <- plain_matrix(mi_network(even, "clr", run = backend))
    expect_identical(clr[cbind(c(1, 2, 1, 3), c(3, 4, 2, 4))], numeric(4))
    expect_true(all(clr[cbind(c(1, 2), c(4, 3))] > 1))
    independent <- expand.grid(a = 1:2, b = 1:3, c = 1:2)[rep(1:12, 3), ]
    for (method in methods) expect_identical(nrow(as.data.frame(mi_network(independent, method, run = backend))),
                                             0L)
    expect_identical(nrow(as.data.frame(mi_network(independent, "relnet", threshold = 0))), 0L)
  }
})

test_that("ARACNE of many features works in place, with the same edges", {
  x <- wave_data(40, 30) + 0.7 * wave_data(40, 30)[, rep(c(30, 1:29), length.out = 30)]
  colnames(x) <- sprintf("G%d", 1:30)
  of <- function(fdr, ...) call_with(mi_network, list(x, "aracne", estimator = "spearman", fdr = fdr, run = "cpu", ...))
  q <- suppressWarnings(gene_quality(x))
  genes <- function(fdr) gene_mi_network(q, method = "aracne", fdr = fdr, run = "cpu")
  plain <- function(net) {
    edges <- as.data.frame(net)
    edges[setdiff(names(edges), "q_value")]
  }
  tied <- function(fdr) mi_network(round(2 * x), "aracne", estimator = "spearman", fdr = fdr, run = "cpu")
  nets <- function() {
    list(of(NULL), of(0.05), of(0.3), of(NULL, eps = 0.02), of(0.3, tau = 0.1), genes(0.05), genes(1), tied(0.3))
  }
  apart <- nets()
  over <- with_internal("many_features", 10L, nets())
  for (k in seq_along(over)) {
    expect_null(attr(over[[k]], "mi"))
    expect_identical(as.matrix(over[[k]]), as.matrix(apart[[k]]))
    expect_equal(plain(over[[k]]), plain(apart[[k]]), tolerance = 1e-12)
    expect_identical(summary(over[[k]])[-7L], summary(apart[[k]])[-7L]) # but for the time
  }
  for (k in c(3L, 8L)) expect_gt(nrow(plain(over[[k]])), 0)
  m <- mi_matrix(x, estimator = "spearman")
  before <- m + 0
  expect_identical(attr(mi_network(m, "aracne"), "mi"), m)
  expect_identical(as.matrix(m), as.matrix(before))
})

test_that("ARACNE's bar is exact where rounding decides", {
  set.seed(5)
  for (run in 1:20) {
    p <- 14
    m <- matrix(sample(c(0, 1e-9, 0.1, 0.1 + 1e-17, 0.3, 0.1 * 3, 0.7, 1), p * p, TRUE), p)
    m <- pmax(m, t(m))
    for (eps in c(0, 0.1, 0.2, 1e-17, 0.6)) {
      expect_identical(unname(as.matrix(mi_network(m, "aracne", eps = eps, run = "cpu"))), ref_aracne(m, eps = eps))
    }
    for (tau in c(0.1, 2 / 3, 1)) {
      expect_identical(unname(as.matrix(mi_network(m, "aracne", tau = tau, run = "cpu"))), ref_aracne(m, tau = tau))
    }
  }
})

test_that("with targets, only their pairs are tested and kept", {
  withr::local_seed(16)
  x <- matrix(stats::rnorm(60 * 12), 60, dimnames = list(NULL, sprintf("g%d", 1:12)))
  x[, 2:6] <- x[, 1] + x[, 2:6]
  x[, 7] <- round(x[, 7]) # ties have a law of their own
  gaps <- x
  gaps[1:5, 3] <- NA
  aims <- c(3L, 1L, 9L)
  for (m in list(mi_matrix(x, estimator = "spearman"), mi_matrix(gaps, estimator = "pearson", na = "drop"),
                 mi_matrix(round(x), estimator = "empirical"))) {
    p <- weft:::pair_p_values(m)
    of_aims <- row(p) %in% aims | col(p) %in% aims
    for (method in c("clr", "aracne", "mrnet")) {
      whole <- as.matrix(mi_network(m, method))
      net <- mi_network(m, method, targets = colnames(m)[aims])
      expect_identical(as.matrix(net), whole * of_aims)
      once <- of_aims & upper.tri(p)
      q <- matrix(NA_real_, 12, 12)
      q[once] <- stats::p.adjust(p[once], "BH")
      q <- pmax(q, t(q), na.rm = TRUE)
      tested <- as.matrix(mi_network(m, method, fdr = 0.1, targets = aims))
      expect_identical(tested, whole * (of_aims & !is.na(q) & q <= 0.1))
      edges <- as.data.frame(net)
      expect_equal(edges$q_value, q[cbind(match(edges$from, colnames(m)), match(edges$to, colnames(m)))])
    }
  }
  one <- mi_network(x, "relnet", estimator = "spearman", targets = "g1")
  expect_setequal(unlist(as.data.frame(one)[c("from", "to")]), sprintf("g%d", 1:6))
  expect_identical(sum(mi_network(x[, 8:12], "relnet", estimator = "spearman", fdr = 1e-9, targets = 1)), 0)
  expect_error(mi_network(x, estimator = "spearman", targets = "g99"), "no feature `g99`", class = "weft_error_input")
  q <- suppressWarnings(gene_quality(x, transform = "none"))
  few <- as.data.frame(gene_mi_network(q, targets = c("g2", "g9"), fdr = 0.05))
  expect_true(all(few$from %in% c("g2", "g9") | few$to %in% c("g2", "g9")))
  expect_gt(nrow(few), 0)
  spoilt <- one
  attr(spoilt, "targets") <- 99
  expect_error(print(spoilt), "targets", class = "weft_error_input")
})
