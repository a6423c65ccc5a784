# gene_ranking() on some random designs beside limma (helper-ranking-limma.R); proofs/ranking-limma.R runs hundreds.
# A failure names its seed.

test_that("t, F, p, fold changes, d0 and s02 of random designs are limma's", {
  skip_if_not_installed("limma")
  for (seed in sample(1e8, 1) + seq_len(12)) expect_null(limma_difference(seed))
})
