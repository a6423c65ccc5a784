# Writes man/ and NAMESPACE from the comments in R/.
roxygen2::roxygenise(".", load_code = roxygen2::load_installed)
