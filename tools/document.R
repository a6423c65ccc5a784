# Writes man/ and NAMESPACE from the comments in R/, against the installed package.
.libPaths(c(normalizePath(".lib"), .libPaths()))
roxygen2::roxygenise(".", load_code = roxygen2::load_installed)

# A name that two files define is the later file's, without a word.
defined <- unlist(lapply(list.files("R", "[.]R$", full.names = TRUE), function(file) {
  of <- Filter(function(e) is.call(e) && identical(e[[1L]], quote(`<-`)) && is.name(e[[2L]]), as.list(parse(file)))
  vapply(of, function(e) as.character(e[[2L]]), "")
}))
if (anyDuplicated(defined)) stop("defined more than once: ", toString(unique(defined[duplicated(defined)])))
