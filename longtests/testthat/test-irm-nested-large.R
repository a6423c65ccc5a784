# Nested groups of a graph that is large enough for slices of nodes, which threads look at together. From this folder:
# Rscript -e 'testthat::test_file("test-irm-nested-large.R")'
library(testthat)
library(weft)

test_that("a large graph's groups are found, with the threads that were asked for, and the same with all", {
  set.seed(1)
  n <- 70000
  z <- rep(1:30, length.out = n)
  theta <- pmin((1 - runif(n))^(-1 / 1.5), 100)
  from <- sample.int(n, 1.2e6, TRUE, theta)
  to <- sample.int(n, 1.2e6, TRUE, theta)
  inside <- runif(1.2e6) < 0.7
  for (group in 1:30) {
    at <- which(inside & z[from] == group)
    members <- which(z == group)
    to[at] <- members[sample.int(length(members), length(at), TRUE, theta[members])]
  }
  fit_on <- function(threads) {
    irm(data.frame(pmin(from, to), pmax(from, to)), "undirected", "poisson", prior = irm_prior(degrees = TRUE),
        chains = 1, sweeps = 1, seed = 1, control = list(dim = n, self = TRUE),
        run = weft_run("cpu", threads = threads, progress = FALSE))
  }
  woken <- .Call(weft:::C_weft_woken)
  one <- fit_on(1)
  expect_identical(.Call(weft:::C_weft_woken), woken)
  expect_gt(irm_nmi(one$row_cluster, z), 0.98)
  two <- fit_on(2)
  expect_identical(two$run$state, one$run$state)
})
