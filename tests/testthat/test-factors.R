# A class that is said to be a factor, whose codes have no level, would lead native code past its tables.

test_that("factors whose codes have no level are refused, wherever categories are taken", {
  n <- 24
  set.seed(1)
  x <- matrix(sample(3, n * 3, TRUE), n, dimnames = list(NULL, c("a", "b", "c")))
  stem <- withr::local_tempfile()
  write_genotypes(stem, matrix(sample(0:2, n * 4, TRUE), n))
  halves <- rep(1:2, n / 2)
  known <- data.frame(a = factor(x[, 1]), b = factor(x[, 2]))
  network <- bn_fit(known, matrix(c(0, 0, 1, 0), 2, dimnames = rep(list(c("a", "b")), 2)))
  pairs <- mi_pairs(cbind(a = x[, 1], b = halves), halves)
  measured <- x + stats::rnorm(n * 3)
  takes <- list(
    mi_rank = function(f) mi_rank(x, f, na = "drop"), mi_pairs = function(f) mi_pairs(x, f, na = "drop"),
    genotypes = function(f) mi_pairs(plink_file(stem), f, na = "drop"),
    strata = function(f) mi_pairs(x, halves, strata = f, na = "drop"), mi_pack = function(f) mi_pack(x, f, na = "drop"),
    mi_select = function(f) mi_select(x, f, na = "drop"),
    discretize = function(f) discretize(x + 0.5, "mdl", class = f),
    bn_search = function(f) bn_search(data.frame(f = f, g = factor(x[, 1])), na = "drop"),
    bn_log_lik = function(f) bn_log_lik(network, data.frame(a = f, b = known$b)),
    predict = function(f) predict(network, data.frame(a = f), "b"),
    do = function(f) bn_sample(network, 5, do = list(a = f[1])),
    interventions = function(f) bn_search(known, interventions = f),
    entries = function(f) bn_search(known, interventions = rep(list(f), n)),
    prior = function(f) bn_search(known, prior = bn_prior(names(known), required = data.frame(from = f, to = "a"))),
    mi_trait = function(f) mi_trait(data.frame(a = f, b = halves), pairs, seq_len(n)),
    irm = function(f) irm(data.frame(from = f, to = 1L), type = "bipartite"),
    missing = function(f) irm(diag(3), missing = data.frame(f[1:2], 1L)),
    irm_log_posterior = function(f) irm_log_posterior(diag(n), f),
    gene_sets = function(f) gene_sets("a", data.frame(f, "a"), c("a", "b")),
    covariates = function(f) gene_network(measured, covariates = f),
    regulation = function(f) regulation(measured, compare = f, control = list(steps = 2, resamples = 4)),
    gene_network = function(f) gene_network(measured, class = f)
  )
  factors <- list(
    said_to_be("factor", rep_len(c(1L, 5L, -3L), n)), said_to_be("factor", rep_len(c(1L, 5L), n), levels = c("a", "b")),
    said_to_be("factor", rep_len(c(0L, 1L), n), levels = "a"),
    said_to_be("factor", halves, levels = 1:2)
  )
  for (name in names(takes)) {
    for (f in factors) expect_error(takes[[name]](f), class = "weft_error_input", info = name)
  }
  expect_error(mi_rank(x, factors[[2L]]), "codes range from 1 to 5, but it has 2 levels")
})
