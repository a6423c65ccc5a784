# Makes the symbols of inst/extdata/golub-symbols.csv.gz again, from the repository's root: of the probe sets of Golub
# and others (1999), data set golub of multtest. A probe set's name begins with a GenBank accession, whose gene and
# symbol org.Hs.eg.db 3.16 has (Entrez Gene of September 2022). Probe sets whose accession it does not know were looked
# up by the symbol or name in their description; these rows stay as they are in the file.
suppressPackageStartupMessages(library(org.Hs.eg.db))
file <- "inst/extdata/golub-symbols.csv.gz"
lines <- readLines(file)
table <- utils::read.csv(text = lines, comment.char = "#")
accession <- sub("_.*", "", table$probe)
known <- accession %in% AnnotationDbi::keys(org.Hs.eg.db, "ACCNUM")
before <- table$symbol
table$symbol[known] <- suppressMessages(AnnotationDbi::mapIds(org.Hs.eg.db, accession[known], "SYMBOL", "ACCNUM",
                                                              multiVals = "first"))
cat(sum(known), "of", nrow(table), "by accession;", sum(table$symbol != before), "changed\n")
to <- gzfile(file, "w")
writeLines(grep("^#", lines, value = TRUE), to)
utils::write.csv(table, to, row.names = FALSE, quote = FALSE)
close(to)
