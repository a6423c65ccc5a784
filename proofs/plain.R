# Random calls of mi_*(), mi_select() and discretize() (tests/testthat/helper-plain-mi.R), kernel sums and models of
# them, scores and posteriors of Bayesian networks, and components (helper-plain-sums.R) against plain R code that shares
# nothing with weft; of the first also against the same call on permuted, doubled or split data and in other units.
#
#   Rscript proofs/plain.R [--calls 5000] [--seed S] [--only mi_pairs,units] [--seconds Inf]
#
# A difference is a line with its seed. Exit status 1 if there was any.
suppressPackageStartupMessages(library(weft))
source("proofs/options.R")
for (file in c("arguments", "calls", "calls-mi", "mi-more", "bn", "plain-mi", "plain-sums")) {
  source(sprintf("tests/testthat/helper-%s.R", file))
}
options(weft.progress = FALSE)
given <- options_given(calls = "5000", seed = as.character(sample(1e8, 1L)), only = NA, seconds = "Inf")
only <- if (is.na(given$only)) NULL else strsplit(given$only, ",")[[1L]]
first <- as.numeric(given$seed)
ends <- proc.time()[[3L]] + as.numeric(given$seconds)
counts <- c(calls = 0, different = 0)
for (seed in first + seq_len(as.numeric(given$calls)) - 1) {
  if (proc.time()[[3L]] > ends) break
  found <- run_plain(seed, only)
  counts <- counts + c(1, !is.null(found$text))
  if (!is.null(found$text)) {
    cat(sprintf("DIFFERENT %s: %s\n  Rscript proofs/plain.R --calls 1 --seed %.0f --only %s\n",
                found$name, found$text, seed, found$name))
  }
}
cat(sprintf("%.0f calls from seed %.0f on, %.0f different\n", counts[["calls"]], first, counts[["different"]]))
quit(status = as.integer(counts[["different"]] > 0))
