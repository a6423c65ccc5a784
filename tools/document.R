# Writes man/ and NAMESPACE from the comments in R/, against the installed package.
.libPaths(c(normalizePath(".lib"), .libPaths()))
roxygen2::roxygenise(".", load_code = roxygen2::load_installed)
