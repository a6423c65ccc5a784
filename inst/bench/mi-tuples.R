# All tuples of four features on a device: tuple-samples per second of whole calls on packed data, and the same table as
# the CPU's for a few features. From the root of the sources.
#   Rscript inst/bench/mi-tuples.R                   the same tables, 30 random data sets
#   Rscript inst/bench/mi-tuples.R 16384 250 cpu     rows, features; cpu: also the CPU's rate, for 24 of the features
library(weft)
asked <- commandArgs(TRUE)

check <- function(sets = 30) {
  same <- 0
  for (set in seq_len(sets)) {
    set.seed(set)
    n <- sample(c(2, 100, 256, 1000, 5000), 1)
    p <- sample(c(4, 7, 20, 40), 1)
    levels <- sample(list(2, 1:3, 3), 1)[[1]]
    x <- vapply(seq_len(p), function(j) sample.int(rep(levels, 2)[sample(2 * length(levels), 1)], n, TRUE), integer(n))
    x[, 2] <- x[, 1]
    class <- sample(0:1, n, TRUE, c(sample(c(1, 5), 1), 1))
    class[1:2] <- 0:1
    top <- sample(c(1, 20, 3000), 1)
    chosen <- sort(sample(p, if (p > 4) sample(4:p, 1) else 4))
    tables <- lapply(c("cpu", "cuda"), function(run) {
      as.data.frame(mi_tuples(x, class, features = chosen, top = top, run = run))
    })
    fine <- identical(tables[[1]], tables[[2]])
    same <- same + fine
    if (!fine) cat(sprintf("set %d (%d x %d, top %g) differs:", set, n, p, top),
                   toString(utils::head(all.equal(tables[[1]], tables[[2]]), 3)), "\n")
  }
  cat(same, "of", sets, "tables are the same on both back ends\n")
}

rates <- function(n, p, cpu) {
  for (levels in 2:3) {
    set.seed(9)
    x <- matrix(sample.int(levels, n * p, TRUE), n)
    class <- (x[, 3] + x[, 50 %% p + 1] + x[, p - 1] + x[, p] + sample(0:3, n, TRUE)) %% 2
    pack <- mi_pack(x, class)
    once <- function() system.time(found <<- mi_tuples(pack, top = 1000, run = "cuda"))[["elapsed"]]
    first <- once()
    took <- vapply(1:5, function(k) once(), 0)
    work <- choose(p, 4) * n / 1e12
    cat(sprintf("%d levels, %d x %d: %.4f s (standard error %.4f; first %.2f), %.0f T tuple-samples/s; best: %s\n",
                levels, n, p, mean(took), stats::sd(took) / sqrt(5), first, work / mean(took),
                paste(unlist(found[1, 1:4]), collapse = " ")))
    if (cpu) {
      few <- sort(c(3, 50 %% p + 1, p - 1, p, sample(setdiff(4:(p - 2), 50 %% p + 1), 20)))
      slow <- system.time(other <- mi_tuples(pack, features = few, top = 50, run = "cpu"))[["elapsed"]]
      here <- mi_tuples(pack, features = few, top = 50, run = "cuda")
      cat(sprintf("  CPU, 24 features: %.2g T; the same table: %s\n", choose(24, 4) * n / 1e12 / slow,
                  identical(as.data.frame(here), as.data.frame(other))))
    }
    weft_free(pack)
  }
}

if (length(asked)) rates(as.numeric(asked[1]), as.numeric(asked[2]), identical(asked[3], "cpu")) else check()
