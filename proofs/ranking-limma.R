# gene_ranking() beside limma on random small designs (tests/testthat/helper-ranking-limma.R): two classes, several
# levels with and without contrasts, batches, pairs, a covariate, a number as outcome, gaps, trends, counts by voom().
# Statistics, p-values, fold changes, d0 and s02 must agree to 1e-6.
#
#   Rscript proofs/ranking-limma.R [--calls 200] [--seed S]
#
# A difference is a line with its seed. Exit status 1 if there was any.
suppressPackageStartupMessages(library(weft))
for (file in c("options.R", "../tests/testthat/helper-calls.R", "../tests/testthat/helper-ranking-limma.R")) {
  source(file.path("proofs", file))
}
options(weft.progress = FALSE)
given <- options_given(calls = "200", seed = as.character(sample(1e8, 1L)))
first <- as.numeric(given$seed)
different <- 0
for (seed in first + seq_len(as.numeric(given$calls)) - 1) {
  found <- limma_difference(seed)
  if (is.null(found)) next
  different <- different + 1
  cat("DIFFERENT", found, "\n")
}
cat(sprintf("%s designs from seed %.0f on, %d different\n", given$calls, first, different))
quit(status = as.integer(different > 0))
