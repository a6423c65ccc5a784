# The co-clustering room's rows of the table in test-twins.R: labels, traces and predictions of whole runs. They are
# short, so that a tool that follows every access ends.
twins_irm <- function() {
  run <- function(make, ..., sweeps = 5) {
    list(tolerance = 0, work = function(backend) {
      given <- make()
      fit <- call_with(irm, c(given, list(chains = 2, sweeps = sweeps, seed = sample(1e6, 1), backend = backend, ...)))
      fit[c("row_cluster", "col_cluster", "log_posterior", "n_clusters", "eta", "auc", "log_loss", "consensus", "alpha",
            "beta")]
    })
  }
  planted <- function(rows, cols, k, density, ...) {
    list(x = irm_sample(sample(rows, 1), sample(cols, 1), k, density, seed = sample(1e6, 1))$A, ...)
  }
  graphs <- function(n, links) data.frame(sample.int(n, links, TRUE), sample.int(n %/% 3, links, TRUE))
  list(
    "irm, light nodes" = run(function() planted(100:300, 100:300, 4, 0.1), split_merge = FALSE),
    "irm, many clusters" = run(function() planted(300:500, 300:500, 5, 0.1, max_clusters = c(300, 140)),
                               split_merge = FALSE),
    "irm, heavy nodes" = run(function() planted(40:80, 2000:3000, 4, 0.5, max_clusters = c(7, 150)),
                             split_merge = FALSE),
    "irm, split-merge and sampled parameters" = run(function() planted(100:200, 100:200, 4, 0.2), alpha = "sample",
                                                    beta = "sample"),
    "irm, missing pairs" = run(function() planted(200:300, 300:500, 4, 0.1), hold_out = 0.05, split_merge = 2),
    "irm, counts" = run(function() list(x = matrix(stats::rpois(60 * 900, 0.8), 60), family = "poisson"),
                        split_merge = 3),
    "irm, tiny shapes beta" = run(function() planted(30:60, 30:60, 3, 0.2, beta = c(1e-3, 1e-3)), split_merge = FALSE),
    "irm, edge list" = run(function() list(x = graphs(3000, 40000)), split_merge = FALSE),
    "irm, shards on three parts" = run(function() {
      A <- planted(60:120, 200:300, 3, 0.3)$x
      list(x = irm_shards(function(i) A[seq(i, i + 19), ], 41))
    }, split_merge = FALSE, devices = c(0, 0, 0)),
    "irm, sweeps that three parts share" = run(function() planted(60:120, 400:700, 4, 0.3), hold_out = 0.05,
                                               devices = c(0, 0, 0), sweeps = 4),
    "irm, large alpha" = run(function() planted(30:60, 30:60, 3, 0.2, alpha = 40), hold_out = 0.05, sweeps = 4),
    "irm, counts of billions" = run(function() {
      list(x = matrix(sample(c(0, 1, 2e9), 40 * 30, TRUE), 40), family = "poisson")
    }, split_merge = 3, max_clusters = 30)
  )
}
