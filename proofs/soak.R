# Random valid calls for an hour: the native memory and that of the process stay where they were.
#
#   Rscript proofs/soak.R [--seconds 3600] [--seed S] [--backend cpu]
suppressPackageStartupMessages(library(weft))
source("proofs/options.R")
for (file in c("tests/testthat/helper-arguments.R", "tests/testthat/helper-simd.R",
               Sys.glob("tests/testthat/helper-calls*.R"))) source(file)
given <- options_given(seconds = "3600", seed = as.character(sample(1e8, 1L)), backend = "cpu")
side <- list(backend = given$backend, threads = 2)
makers <- call_makers()
resident <- function() {
  status <- readLines("/proc/self/status")
  as.numeric(gsub("[^0-9]", "", grep("^VmRSS", status, value = TRUE))) / 1024
}
live <- function() sum(.Call(weft:::C_weft_memory, NULL)[c("host", "device")])
seed <- as.numeric(given$seed)
began <- proc.time()[[3L]]
seconds <- as.numeric(given$seconds)
made <- 0
seen <- data.frame()
cat(sprintf("%.0f s of random calls from seed %.0f on\n", seconds, seed))
look <- function(at) {
  gc()
  seen <<- rbind(seen, data.frame(seconds = round(at), calls = made, native = live(), resident = round(resident())))
}
repeat {
  at <- proc.time()[[3L]] - began
  if (at >= nrow(seen) * seconds / 20) look(at)
  if (at >= seconds) break
  call <- seeded_call(seed + made, makers = makers)
  invisible(outcome(call, side))
  rm(call)
  made <- made + 1
}
print(seen, row.names = FALSE)
later <- seen[seen$seconds >= seconds / 4, ] # the caches of R and of its packages fill first
slope <- if (nrow(later) > 2L) stats::coef(stats::lm(resident ~ calls, later))[["calls"]] else 0
growth <- slope * diff(range(later$calls))
cat(sprintf("%.0f calls, %.0f bytes of native memory at the end, process %+.1f MB over the last three quarters\n", made,
            seen$native[nrow(seen)], growth))
quit(status = seen$native[nrow(seen)] > 0 || growth > 0.1 * max(later$resident))
