# Groups of samples and genes: what the workflow says of them.

# Three groups of samples, modules of genes that they raise or lower by `effect`, and genes of noise.
grouped <- function(key, n = c(30, 20, 10), effect = 2) {
  module <- rep(0:3, c(40, 15, 15, 10))
  means <- effect * rbind(c(0, 0, 0, 0.5), c(0, 1, 0, -0.7), c(0, 0, 1, -0.7))
  sample <- rep(1:3, n)
  x <- means[sample, module + 1] + matrix(weft:::draws("normal", sum(n) * length(module), key = key), sum(n))
  dimnames(x) <- list(paste0("s", seq_along(sample)), paste0("g", seq_along(module)))
  list(x = x + 8, sample = sample, module = module)
}

test_that("expression is grouped by its values, without a limit", {
  e <- grouped(1)
  expect_no_warning(fit <- gene_clusters(e$x, method = "irm", chains = 2, sweeps = 60, seed = 1))
  expect_identical(fit$family, "gaussian")
  expect_identical(irm_nmi(fit$row_cluster, e$sample), 1)
  expect_gt(irm_nmi(fit$col_cluster, e$module), 0.9)
  # a gene's level and unit are not what is grouped
  moved <- e$x * rep(2^(seq_len(80) %% 3), each = 60) + rep(seq_len(80), each = 60)
  expect_identical(gene_clusters(moved, method = "irm", chains = 2, sweeps = 60, seed = 1)$row_cluster, fit$row_cluster)
  levels <- 1 * (e$x > 8)
  storage.mode(levels) <- "integer"
  expect_identical(suppressWarnings(gene_clusters(levels, method = "irm", chains = 1, sweeps = 20, seed = 1))$family,
                   "bernoulli")
})

test_that("noise is one group", {
  for (key in 1:4) {
    fit <- gene_clusters(grouped(key, effect = 0)$x, method = "irm", chains = 2, sweeps = 40, seed = key)
    expect_identical(c(max(fit$row_cluster), max(fit$col_cluster)), c(1L, 1L))
  }
})

test_that("a number of groups goes with its posterior, and a limit is no finding", {
  e <- grouped(2)
  fit <- gene_network(e$x, factor(e$sample), seed = 1, run = weft_run(progress = FALSE),
                      steps = list(network = FALSE, bayes = FALSE, pairs = FALSE,
                                   clusters = list(method = "irm", chains = 2, sweeps = 60)))
  text <- gsub(" +", " ", paste(utils::capture.output(print(fit)), collapse = " "))
  expect_match(text, "3 groups of samples \\(probabilities: 3 \\([01]\\.[0-9]+\\)")
  withr::local_pdf(NULL)
  expect_invisible(plot(fit, "clusters"))
  few <- suppressWarnings(gene_clusters(e$x, max_clusters = 2, method = "irm", chains = 2, sweeps = 60, seed = 1),
                          "weft_warning_truncation")
  expect_match(weft:::clusters_text(few), "at least 2 groups of samples")
})

test_that("groups whose table of tests has gaps were changed", {
  groups <- gene_clusters(grouped(1)$x, seed = 1)
  for (column in c("p_value", "level")) {
    groups$stability[[column]][1L] <- NA
    expect_error(print(groups), "unmodified", class = "weft_error_input")
  }
})

test_that("far units of the genes do not matter", {
  x <- grouped(1)$x
  groups <- gene_clusters(x, seed = 1)
  for (power in c(-700, 660)) {
    expect_identical(suppressWarnings(gene_clusters(gene_quality(x * 2^power, transform = "none"), seed = 1))$cluster,
                     groups$cluster)
  }
})
