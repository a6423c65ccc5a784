# inst/capabilities.csv says which function runs where and takes what. ?weft_backend and README.md show it, and
# tests/testthat/test-capabilities.R calls every cell.

# The table in Markdown, one string per line.
capability_lines <- function(file = system.file("capabilities.csv", package = "weft")) {
  table <- utils::read.csv(file, check.names = FALSE)
  heads <- c("function", "CPU", "CUDA", "several devices", "MPI", "sparse", "DelayedMatrix", "missing values", "seed")
  cells <- ifelse(table[-1L] == "yes", "yes", "")
  c(paste0("| ", paste(heads, collapse = " | "), " |"), paste0("|---|", strrep(":-:|", length(heads) - 1L)),
    paste0("| `", sub(",.*", "", table[[1L]]), "()`", sub("^[^,]*", "", table[[1L]]), " | ",
           apply(cells, 1L, paste, collapse = " | "), " |"))
}
