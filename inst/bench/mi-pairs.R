# Pairs, triples and matrices: seconds, and how many times a named floor or peer of the same run.
#   Rscript inst/bench/mi-pairs.R         on the CPU: against a naive C loop over rows, compiled here
#   Rscript inst/bench/mi-pairs.R cuda    on a device: pair-samples per second
library(weft)
source("inst/bench/bench.R")
device <- identical(commandArgs(TRUE)[1], "cuda")

machine <- function() {
  cpu <- grep("model name", readLines("/proc/cpuinfo"), value = TRUE)[1]
  paste(c(Sys.info()[["sysname"]], sub(".*: ", "", cpu), if (device) weft_devices()$name[1], format(Sys.Date())),
        collapse = ", ")
}

# The clock counts milliseconds: what is short is done ten times over.
seconds <- function(expr, times = 5) {
  expr <- substitute(expr)
  frame <- parent.frame()
  clock <- function(often) system.time(for (i in seq_len(often)) eval(expr, frame))[["elapsed"]] / often
  often <- if (clock(1) < 0.05) 10 else 1
  stats::median(vapply(seq_len(times), function(k) clock(often), 0))
}

line <- function(what, took, per = NA, of = "") {
  cat(sprintf("%-52s %10.4f s   %s\n", what, took, if (is.na(per)) "" else sprintf("%.3g %s", per, of)))
}

binary <- function(n, p, levels = 2L) matrix(sample.int(levels, n * p, TRUE) - 1L, n)

cat(machine(), "\n")
set.seed(1)

if (!device) {
  load_naive()
  for (case in list(c(1000, 1000, 2, 1), c(1000, 1000, 2, 2), c(10000, 1000, 2, 2), c(2000, 1000, 3, 1),
                    c(2000, 1000, 3, 2))) {
    p <- case[1]
    n <- case[2]
    x <- binary(n, p, case[3])
    class <- sample(0:1, n, TRUE)
    pack <- mi_pack(x, class)
    some <- min(p, 600)
    floor <- system.time(.Call("naive_pairs", x[, seq_len(some)], class, as.integer(case[3])))[["elapsed"]]
    floor <- floor * choose(p, 2) / choose(some, 2)
    what <- sprintf("pairs N=%d n=%d, %d levels, %d threads", p, n, case[3], case[4])
    took <- seconds(mi_pairs(pack, run = weft_run("cpu", threads = case[4])))
    line(paste(what, "packed"), took, floor / took, "x naive C, 1 thread")
    took <- seconds(mi_pairs(x, class, run = weft_run("cpu", threads = case[4])))
    line(what, took, floor / took, "x naive C, 1 thread")
  }
  x <- mi_pack(binary(500, 2000, 5L))
  for (threads in 1:2)
    line(sprintf("matrix 2000 x 500, 5 bins, %d threads", threads),
         seconds(weft:::mi_counts_matrix(x, control = weft:::run_control("cpu", threads)), 3))
  pack <- mi_pack(binary(1000, 300), sample(0:1, 1000, TRUE))
  line("triples N=300 n=1000, 2 threads", seconds(mi_triples(pack, run = weft_run("cpu", threads = 2)), 3))
  x <- binary(10000, 1000)
  line("rank N=1000 n=10000, 1000 permutations, 2 threads",
       seconds(mi_rank(x, x[, 1], permutations = 1000, seed = 1, run = weft_run("cpu", threads = 2)), 1))
} else {
  rate <- function(tuples, n, took) tuples * n / took / 1e12
  invisible(mi_pairs(binary(100, 300), sample(0:1, 100, TRUE), run = "cuda")) # opens the device
  x <- binary(1000, 10000)
  class <- sample(0:1, 1000, TRUE)
  took <- seconds(mi_pairs(x, class, run = "cuda"), 7)
  line("pairs N=10000 n=1000 top 1000, from R", took, rate(choose(10000, 2), 1000, took), "T pair-samples/s")
  pack <- mi_pack(x, class)
  took <- seconds(mi_pairs(pack, run = "cuda"), 7)
  line("  packed", took, rate(choose(10000, 2), 1000, took), "T pair-samples/s")
  took <- seconds(mi_pairs(pack, run = "cpu"), 3)
  line("  on the CPU, all threads", took, rate(choose(10000, 2), 1000, took), "T pair-samples/s")
  took <- seconds(mi_triples(pack, run = "cuda"), 2)
  line("triples N=10000 n=1000, packed", took, rate(choose(10000, 3), 1000, took), "T triple-samples/s")
  weft_free(pack)
  x <- binary(1000, 2000, 3L)
  pack <- mi_pack(x, class)
  line("pairs N=2000 n=1000, 3 levels, packed", seconds(mi_pairs(pack, run = "cuda")))
  x <- binary(1000, 100000)
  pack <- mi_pack(x, class)
  rm(x)
  invisible(mi_pairs(pack, run = "cuda"))
  took <- seconds(mi_pairs(pack, run = "cuda"), 3)
  line("pairs N=100000 n=1000, packed", took, rate(choose(1e5, 2), 1000, took), "T pair-samples/s")
  weft_free(pack)
  # every feature is a window of one long random vector: quick to make, and no two windows agree
  n <- 10000
  class <- sample(0:1, n, TRUE)
  flat <- as.raw(sample.int(2L, 3.1e7, TRUE) - 1L)
  for (p in c(1e5, 1e6)) {
    columns <- lapply(seq_len(p), function(j) flat[seq.int(30L * j, length.out = n)])
    class(columns) <- "data.frame"
    attr(columns, "names") <- paste0("V", seq_len(p))
    attr(columns, "row.names") <- .set_row_names(n)
    packing <- system.time(pack <- mi_pack(columns, class))[["elapsed"]]
    line(sprintf("mi_pack N=%g n=%d", p, n), packing)
    rm(columns)
    took <- system.time(mi_pairs(pack, run = "cuda"))[["elapsed"]]
    line(sprintf("pairs N=%g n=%d top 1000, upload included", p, n), took, rate(choose(p, 2), n, took),
         "T pair-samples/s")
    took <- seconds(mi_pairs(pack, run = "cuda"), if (p > 5e5) 1 else 3)
    line("  again", took, rate(choose(p, 2), n, took), "T pair-samples/s")
    weft_free(pack)
  }
}
