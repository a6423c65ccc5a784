# Every slot of a fit damaged in every way, and every method used on it; the tests of the suite use a few of each. Run
# from the package's root: Rscript -e 'testthat::test_file("longtests/testthat/test-irm-damage.R")'
library(testthat)
library(weft)
source("../../tests/testthat/helper-irm-damage.R")
test_that("no method comes to harm by a damaged fit", {
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  uses <- list(print, function(x) print(summary(x)), function(x) predict(x, cbind(1:2, 1:2)), fitted, coef,
               as.data.frame, function(x) as.data.frame(x, what = "blocks"), generics::glance, generics::tidy,
               function(x) update(x, sweeps = 1), plot, function(x) plot(x, "trace"), function(x) plot(x, "eta"),
               function(x) plot(x, "sizes"), function(x) if (!is.null(unclass(x)$levels)) plot(x, "tree"), irm_words)
  A <- matrix(rep(c(1, 0, 0, 1, 1), 24), 12)
  fits <- list(
    irm(A, chains = 2, sweeps = 6, seed = 1, hold_out = 0.1, control = list(thin = 2)),
    irm(A[1:10, ], "directed", chains = 1, sweeps = 4, seed = 1),
    irm(A + 1, family = "poisson", chains = 2, sweeps = 4, seed = 1,
        prior = irm_prior(alpha = "sample", beta = "sample"), control = list(sampler = "collapsed")),
    irm(A + 1, family = "poisson", chains = 2, sweeps = 4, seed = 1, prior = irm_prior(degrees = TRUE),
        max_clusters = 3)
  )
  for (fit in fits) {
    for (path in slot_paths(fit, "call")) {
      changes <- damages(get_slot(fit, path))
      if (slot_name(fit, path) == "run$model$attempts") changes$large <- NULL # a million proposals per sweep
      for (change in names(changes)) {
        expect_null(irm_unclassed(set_slot(fit, path, changes[[change]]), uses),
                    label = paste(slot_name(fit, path), change))
      }
    }
  }
})
