# 10,000 x 10,000 nodes, about 1e6 links, 50 clusters a mode: one chain finds the planted partition from every seed.
test_that("large planted partitions are found", {
  for (seed in 1:5) {
    planted <- irm_sample(10000, 10000, 50, 0.01, seed = seed)
    fit <- irm(planted$A, chains = 1, sweeps = 60, seed = seed)
    expect_gt(max(fit$log_posterior), irm_log_posterior(planted$A, planted$row_cluster, planted$col_cluster) - 10)
  }
})
