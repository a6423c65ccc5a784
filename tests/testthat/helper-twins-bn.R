# The Bayesian-network room's rows of the table in test-twins.R: tables, chains and optima are the same bits.
twins_bn <- function() {
  some <- function(levels, n) {
    hidden <- stats::rnorm(n)
    list2DF(stats::setNames(lapply(levels, function(l) {
      factor(pmin(l, 1 + floor(l * stats::pnorm(hidden * sample(c(-1, 0, 1), 1) + stats::rnorm(n)))), seq_len(l))
    }), sprintf("x%02d", seq_along(levels))))
  }
  fields <- function(table) unclass(table)[c("start", "score", "parents", "bits")]
  scores <- function(levels, n, ...) {
    list(tolerance = 0, work = function(backend) fields(bn_scores(some(levels(), sample(n, 1)), ..., backend = backend)))
  }
  list(
    "bn_scores, mixed levels" = scores(function() sample(2:5, sample(5:14, 1), TRUE), 900),
    "bn_scores, all sets kept" = scores(function() sample(1:3, 7, TRUE), 300, max_parents = 5, keep = "all"),
    "bn_scores, 100 levels" = scores(function() c(100, 2, 3, 40, 2, 2), 500, max_parents = 2, score = "bic"),
    "bn_scores, K2, limits of each node" = scores(function() rep(3, 8), 400, max_parents = c(x01 = 0, x02 = 2), score = "k2"),
    "bn_scores, sums, prior and gamma" = list(tolerance = 0, work = function(backend) {
      d <- some(sample(2:4, 9, TRUE), 500)
      prior <- bn_prior(names(d), required = cbind("x02", "x01"), forbidden = cbind("x03", "x04"), known = cbind("x05", "x06"))
      fields(bn_scores(d, 3, "aic", prior = prior, gamma = 0.5, keep = "sum", slack = 5, backend = backend))
    }),
    "bn_scores, interventions" = list(tolerance = 0, work = function(backend) {
      d <- some(sample(2:4, 7, TRUE), 400)
      fields(bn_scores(d, 3, interventions = sample(c(NA, "x01", "x05"), 400, TRUE), backend = backend))
    }),
    "bn_scores, candidates and one outsider" = list(tolerance = 0, work = function(backend) {
      fields(bn_scores(some(rep(2:3, 20), 300), 3, candidates = 5, backend = backend))
    }),
    "bn_scores, little device memory" = list(tolerance = 0, work = function(backend) {
      withr::local_options(weft.device_memory = 2e6)
      fields(bn_scores(some(rep(2:3, 8), 300), 4, backend = backend))
    }),
    "bn_exact" = list(tolerance = 0, work = function(backend) {
      exact <- bn_exact(some(sample(2:3, sample(3:16, 1), TRUE), 300), 3, backend = backend)
      list(exact$dag, exact$score)
    }),
    "bn_exact, every node with many possible parents" = list(tolerance = 0, work = function(backend) {
      exact <- bn_exact(bn_scores(some(rep(2, 14), 60), 2, keep = "all", backend = "cpu"), backend = backend)
      list(exact$dag, exact$score)
    })
  )
}
