# Every exported function and method, with each of its arguments missing or wrong in turn: what comes back must be a
# result or a classed condition. Each function has a process of its own, MC_CORES (else two) at a time, so that one that
# ends R is told too. Rscript proofs/errors.R [file for the findings] [function ...]
suppressMessages(library(weft))
`%||%` <- function(a, b) if (is.null(a)) b else a
for (file in c("helper-arguments.R", "helper-errors.R")) source(file.path("tests/testthat", file))
given <- commandArgs(TRUE)
options(weft.progress = FALSE)
valid <- valid_calls()
calls <- c(valid$exported, valid$methods)
left_out <- setdiff(getNamespaceExports("weft"), c(names(valid$exported), "augment", "glance", "tidy"))
cat(sprintf("%d functions and methods; not called here: %s\n", length(calls), paste(left_out, collapse = ", ")))
if (length(given) > 1L) calls <- calls[given[-1L]]

sweep <- function(name) {
  at <- tempfile() # where a process stood when it ended
  job <- parallel::mcparallel(wrong_calls(calls[name], note = function(label) writeLines(label, at)), silent = TRUE)
  out <- suppressWarnings(parallel::mccollect(job))[[1L]]
  if (!is.data.frame(out)) {
    out <- structure(data.frame(call = readLines(at), kind = "R ended", message = paste(out, collapse = " ")), made = 0)
  }
  cat(sprintf("%-34s %4d calls, %3d findings\n", name, attr(out, "made"), nrow(out)))
  out
}
found <- parallel::mclapply(stats::setNames(nm = names(calls)), sweep, mc.preschedule = FALSE)
made <- sum(vapply(found, attr, 0, "made"))
found <- do.call(rbind, unname(found))
if (nrow(found)) writeLines(sprintf("%s: %s: %s", found$call, found$kind, found$message),
                            if (length(given)) given[1L] else stdout())
cat(sprintf("%d calls, %d unclassed conditions\n", made, nrow(found)))
quit(status = nrow(found) > 0)
