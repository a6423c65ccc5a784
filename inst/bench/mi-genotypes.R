# Pairs of genotypes on a device: rates of whole calls from packed data, and whole calls from .bed files.
#   Rscript inst/bench/mi-genotypes.R            what takes a minute and a half on one H200 with 16 cores
#   Rscript inst/bench/mi-genotypes.R biobank P  500,000 samples of P variants (10,000), from .bed to table
# T: 10^12 pair-samples, rows of a pair, per second. The tensor cores of an H200 make 7,737 T products of planes; a pair
# of complete genotypes takes four, one with missing calls nine.
library(weft)
arguments <- commandArgs(TRUE)

# Bytes of a .bed file: four genotypes each, of codes 0 (two copies), 2 (one), 3 (none), and 1 (missing).
some_bytes <- function(count, missing) {
  codes <- function() sample(c(0:3), count, TRUE, c(0.1, missing, 0.35, 0.55))
  as.raw(codes() + 4L * codes() + 16L * codes() + 64L * codes())
}

# A data set of n samples and p variants: a block of random variants, and copies of it with samples shifted, so that no
# two variants are alike. Returns the files' stem.
write_plink <- function(n, p, missing = 0) {
  stem <- tempfile("genotypes")
  each <- 100L
  bytes <- (n + 3L) %/% 4L
  block <- matrix(some_bytes(bytes * each, missing), bytes)
  out <- file(paste0(stem, ".bed"), "wb")
  writeBin(as.raw(c(0x6c, 0x1b, 1)), out)
  for (k in seq_len(p %/% each)) writeBin(as.vector(block[1L + (seq_len(bytes) - 1L + 7919L * k) %% bytes, ]), out)
  close(out)
  writeLines(sprintf("1 rs%d 0 %d A G", seq_len(p), 1000L * seq_len(p)), paste0(stem, ".bim"))
  writeLines(sprintf("f i%d 0 0 1 -9", seq_len(n)), paste0(stem, ".fam"))
  stem
}

least <- function(times, f) min(vapply(seq_len(times), function(k) system.time(f())[["elapsed"]], 0))

line <- function(what, took, pair_samples = NA, goal = NA) { # or triple-samples
  rate <- pair_samples / took / 1e12
  cat(sprintf("%-66s %8.3f s%s%s\n", what, took, if (is.na(rate)) "" else sprintf("  %6.0f T", rate),
              if (is.na(goal)) "" else sprintf("  (goal %s)", goal)))
}

# Whole calls of mi_pairs() on packed data.
packed <- function(what, x, class, p, n, goal = NA, ..., times = 3, by = c("mi", "interaction")) {
  pack <- mi_pack(x, class, ...)
  on.exit(weft_free(pack))
  for (b in by) {
    call <- function() mi_pairs(pack, top = 1000, by = b, backend = "cuda")
    call()
    line(sprintf("%s, %d x %d, %s", what, n, p, b), least(times, call), n * as.double(p) * (p - 1) / 2, goal)
  }
}

genotypes <- function(n, p, goal = NA, missing = 0, na = "drop", classes = 2L, ...) {
  stem <- write_plink(n, p, missing)
  on.exit(unlink(paste0(stem, c(".bed", ".bim", ".fam"))))
  what <- sprintf("genotypes, %g%% missing%s, %d classes", 100 * missing, if (missing) paste0(" ", na) else "", classes)
  packed(what, plink_file(stem), sample.int(classes, n, TRUE), p, n, goal, na = na, ...)
}

levels_of <- function(levels, n, p) {
  base <- vapply(seq_len(200L), function(k) as.raw(sample.int(levels, n, TRUE) - 1L), raw(n))
  do.call(cbind, lapply(seq_len(p %/% 200L), function(k) base[1L + (seq_len(n) - 1L + 7919L * k) %% n, ]))
}

from_file <- function(n, p, ...) {
  stem <- write_plink(n, p, 0.01)
  on.exit(unlink(paste0(stem, c(".bed", ".bim", ".fam"))))
  class <- stats::rbinom(n, 1, 0.5)
  pack <- NULL
  line(sprintf("plink_file() to planes, 1%% missing, %d x %d", n, p),
       system.time(pack <- mi_pack(plink_file(stem), class, na = "drop"))[["elapsed"]])
  weft_free(pack)
  line(sprintf("from .bed to table, 1%% missing, %d x %d", n, p),
       least(1, function() mi_pairs(plink_file(stem), class, na = "drop", top = 1000, backend = "cuda")),
       n * as.double(p) * (p - 1) / 2)
}

set.seed(1)
cat(weft_devices()$name[1], format(Sys.Date()), "\n")
invisible(mi_pairs(levels_of(2, 100, 200), sample(2, 100, TRUE), backend = "cuda")) # opens the device
if (length(arguments) && arguments[1] == "biobank") {
  from_file(500000L, as.integer(if (length(arguments) > 1) arguments[2] else 10000L))
} else {
  genotypes(10000L, 20000L, 700)
  genotypes(50000L, 20000L, 700, by = "mi")
  genotypes(10000L, 20000L, missing = 0.01)
  genotypes(10000L, 20000L, missing = 0.01, na = "level", by = "mi")
  genotypes(50000L, 20000L, missing = 0.01, by = "mi")
  genotypes(10000L, 20000L, missing = 0.01, classes = 4L, by = "mi")
  packed("four levels, 2 classes", levels_of(4, 5000, 20000), sample(2, 5000, TRUE), 20000L, 5000L)
  packed("five levels, 4 classes", levels_of(5, 2000, 20000), sample(4, 2000, TRUE), 20000L, 2000L, 50)
  x <- levels_of(3, 5000, 3000)
  pack <- mi_pack(x, sample(2, 5000, TRUE))
  for (by in c("mi", "interaction"))
    line(sprintf("triples, three levels, 2 classes, 5000 x 3000, %s", by),
         least(1, function() mi_triples(pack, top = 1000, by = by, backend = "cuda")), 5000 * choose(3000, 3), 300)
  weft_free(pack)
  x <- levels_of(3, 10000, 10000)
  class <- sample(2, 10000, TRUE)
  strata <- sample(3, 10000, TRUE)
  within <- function(p) mi_pairs(x[, seq_len(p)], class, strata = strata, top = 1000, backend = "cuda")
  line("three levels, 2 classes, 3 strata, 10000 x 10000, packing included", least(2, function() within(10000L)),
       10000 * 1e4 * (1e4 - 1) / 2)
  from_file(20000L, 20000L)
  from_file(500000L, 2000L)
}
