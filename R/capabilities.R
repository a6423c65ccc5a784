# inst/capabilities.csv says which function runs where and accepts what, and why some stay on the CPU: `why` is what was
# measured on one core of a Xeon (AVX-512). ?weft_backend and the vignette on devices show it, and
# tests/testthat/test-capabilities.R calls every cell.

# The table in Markdown, one string per line.
capability_lines <- function(file = system.file("capabilities.csv", package = "weft")) {
  table <- utils::read.csv(file, check.names = FALSE)
  heads <- c("function", "CPU", "CUDA", "several devices", "MPI", "sparse", "store", "DelayedMatrix", "missing values",
             "seed")
  cells <- ifelse(table[setdiff(names(table), c("function", "why"))] == "yes", "yes", "")
  setting <- gsub("(\\w+ = \"\\w+\")", "`\\1`", sub("^[^,]*", "", table[[1L]]))
  shown <- paste0("`", sub(",.*", "", table[[1L]]), "()`", setting)
  c(paste0("| ", paste(heads, collapse = " | "), " |"), paste0("|---|", strrep(":-:|", length(heads) - 1L)),
    paste0("| ", shown, " | ", apply(cells, 1L, paste, collapse = " | "), " |"), "",
    paste("Functions that run only on the CPU, with the reason (times on one core of a Xeon with AVX-512, measured",
          "on 23 November 2026):"), "",
    sprintf("* %s: %s.", shown, table$why)[nzchar(table$why)], "")
}

# The section of ?weft_backend.
capability_section <- function() {
  c("@section What runs where:",
    paste("MPI means `weft_run(ranks = TRUE)`. The functions of mutual information and [pca()] read a DelayedMatrix in",
          "blocks; the others load it into memory. A store that [weft_upload()] keeps on one or several devices is for",
          "[pca()] and [gene_cells()] with CUDA."), "",
    capability_lines())
}
