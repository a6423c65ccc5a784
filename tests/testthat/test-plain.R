# Random calls against plain R code, and some against the same call on permuted, doubled or split data and in other
# units (helper-plain-mi.R, helper-plain-sums.R); proofs/plain.R runs thousands. A failure names its seed:
# run_plain(<seed>, <name>).

for (name in names(plain_checks())) {
  test_that(paste("random calls are what plain code says:", name), {
    for (seed in sample(1e8, 1) + seq_len(12)) {
      expect_null(run_plain(seed, name)$text, info = paste("seed", seed))
    }
  })
}
