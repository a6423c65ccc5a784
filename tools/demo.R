# make demo: the workflow on real data (Golub's leukaemias, from the Bioconductor package multtest) or, without that package,
# on the simulated example; writes the report and says where it is.
suppressMessages(library(weft))
started <- proc.time()[[3L]]
print(weft_sitrep())
real <- requireNamespace("multtest", quietly = TRUE)
example <- weft_example(if (real) "golub" else "expression")
cat("\n", example$source, "\n\n", sep = "")
x <- example$x
# the network is of the 1,000 genes that say most about the class
fit <- gene_network(x, example$class, batch = example$batch, seed = 1, quality = list(symbols = example$symbols),
                    network = if (real) list(genes = 1000) else list(),
                    progress = TRUE)
cat("\n")
print(fit)
dir.create("demo-output", showWarnings = FALSE)
file <- weft_report(fit, file.path("demo-output", "gene-network.html"), open = FALSE,
                    title = if (real) "Two kinds of leukaemia (Golub and others 1999)" else "A simulated regulatory network")
cat(sprintf("\n%.0f s. The report is in %s\n", proc.time()[[3L]] - started, file))
