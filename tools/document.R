# Writes man/ and NAMESPACE from the comments in R/, against the installed package.
.libPaths(c(normalizePath(".lib"), .libPaths()))
roxygen2::roxygenise(".", load_code = roxygen2::load_installed)

# The table of capabilities in README.md.
readme <- readLines("README.md")
at <- grep("^<!-- capabilities", readme)
readme <- c(readme[seq_len(at[1L])], weft:::capability_lines("inst/capabilities.csv"), readme[at[2L]:length(readme)])
writeLines(readme, "README.md")
