# Every use of every damaged copy of what the rooms of networks and components save: Rscript longtests/damaged.R [name
# of a case ...]
suppressPackageStartupMessages(library(weft))
library(generics, warn.conflicts = FALSE)
for (file in c("helper.R", "helper-bn.R", "helper-spoilt.R")) source(file.path("tests/testthat", file))
cases <- damage_cases(drawn = TRUE)
wrong <- 0
for (name in if (length(commandArgs(TRUE))) commandArgs(TRUE) else names(cases)) {
  case <- cases[[name]]
  found <- unclassed_uses(case[[1L]], case[[2L]])
  wrong <- wrong + length(found)
  cat(sprintf("%s: %d copies, %d uses each, %d unclassed\n", name, length(damaged_copies(case[[1L]])),
              length(case[[2L]]), length(found)))
  cat(found, sep = "\n")
}
quit(status = wrong > 0)
