# make demo: the workflow on real data (Golub's leukaemias, from the Bioconductor package multtest) or, without that
# package, on the simulated example. `demo.R analyse` leaves the result in demo-output/fit.rds, `demo.R report` writes
# it up.
suppressMessages(library(weft))
part <- match.arg(commandArgs(TRUE), c("analyse", "report"))
real <- requireNamespace("multtest", quietly = TRUE)
saved <- file.path("demo-output", "fit.rds")
if (part == "analyse") {
  print(weft_sitrep())
  example <- weft_example(if (real) "golub" else "expression")
  cat("\n", example$source, "\n\n", sep = "")
  fit <- gene_network(example$x, example$class, batch = example$batch, seed = 1, run = weft_run(progress = TRUE),
                      symbols = example$symbols, steps = list(quality = list(descriptions = example$gene_names)))
  print(fit)
  dir.create("demo-output", showWarnings = FALSE)
  saveRDS(fit, saved)
} else {
  weft_report(readRDS(saved), file.path("demo-output", "gene-network.html"), open = FALSE,
              title = if (real) "Two kinds of leukaemia (Golub and others 1999)" else "A simulated regulatory network")
}
