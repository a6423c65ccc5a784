# The valid calls that the other proofs spoil (helper-errors.R, helper-variants.R), with four threads: for
# ThreadSanitizer (races.sh), which so sees ways that random calls seldom take. A line of counts; exit status 1 if a
# call ends in an error that is not weft's.
suppressPackageStartupMessages(library(weft))
`%||%` <- function(a, b) if (is.null(a)) b else a
for (file in c("helper-arguments.R", "helper-errors.R", "helper-variants.R", "helper-store.R",
               "helper-store-files.R")) {
  source(file.path("tests/testthat", file))
}
options(weft.progress = FALSE, weft.threads = 4)
valid <- valid_calls(variants = TRUE)
calls <- c(valid$exported, valid$methods, valid$variants)
grDevices::pdf(NULL)
setwd(tempdir())
woke <- unclassed <- 0
for (name in names(calls)) {
  call <- calls[[name]]
  call$args[intersect("threads", names(call$args))] <- 4
  before <- .Call(weft:::C_weft_woken)
  utils::capture.output(tryCatch(suppressMessages(suppressWarnings(do.call(call$f, call$args, quote = TRUE))),
                                 weft_error = identity, error = function(e) {
                                   unclassed <<- unclassed + 1
                                   message(name, ": ", conditionMessage(e))
                                 }))
  woke <- woke + (.Call(weft:::C_weft_woken) > before)
}
cat(sprintf("%d valid calls, of which %d woke threads, %d errors that are not weft's\n", length(calls), woke,
            unclassed))
quit(status = unclassed > 0)
