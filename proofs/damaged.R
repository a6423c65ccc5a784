# Every use of every damaged copy of what is saved: Rscript proofs/damaged.R [name of a case ...]
suppressPackageStartupMessages(library(weft))
library(generics, warn.conflicts = FALSE)
for (file in list.files("tests/testthat", "^helper.*[.]R$", full.names = TRUE)) source(file)
cases <- damage_cases(drawn = 3)
deep <- mi_damage_cases() # parts of parts of parts; of the others parts of parts
mi_cases <- c(deep, rest_damage_cases())
asked <- if (length(commandArgs(TRUE))) commandArgs(TRUE) else c(names(cases), names(mi_cases))
made <- c(0, 0)
wrong <- 0
tell <- function(name, copies, uses, found) {
  wrong <<- wrong + length(found)
  made <<- made + c(copies, copies * length(uses))
  cat(sprintf("%s: %d copies, %d uses each, %d unclassed\n", name, copies, length(uses), length(found)))
  cat(found, sep = "\n")
}
for (name in intersect(asked, names(cases))) {
  case <- cases[[name]]
  tell(name, length(damaged_copies(case[[1L]])), case[[2L]], unclassed_uses(case[[1L]], case[[2L]]))
}
for (name in intersect(asked, names(mi_cases))) {
  case <- mi_cases[[name]]
  copies <- mi_damaged(case[[1L]], if (name %in% names(deep)) 2L else 1L)
  tell(name, length(copies), case[[2L]], mi_unclassed_uses(copies, case[[2L]]))
}
cat(sprintf("%.0f damaged copies of %d results, %.0f uses, %d unclassed\n", made[1L], length(asked), made[2L], wrong))
quit(status = wrong > 0)
