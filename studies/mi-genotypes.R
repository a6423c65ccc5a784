# Pairs and triples of genotypes: rates of whole calls from packed data, and whole calls from .bed files.
#   Rscript studies/mi-genotypes.R rates          packed data on a device; 35 s on one H200 with 16 cores
#   Rscript studies/mi-genotypes.R triples [S]    a grid of sizes for S seconds (40)
#   Rscript studies/mi-genotypes.R file [S]       500,000 samples and growing numbers of variants from .bed to table
#                                                    for about S seconds (60): planted pairs, growth; 5,000 x 500,000
#   Rscript studies/mi-genotypes.R planes [N P]   from .bed to planes on the host and on a device, beside copies of
#                                                    as many bytes (500,000 x 20,000); 25 s
#   Rscript studies/mi-genotypes.R cpu            one thread, every kind of processor, beside PLINK 1.9
# T: 10^12 pair-samples, rows of a pair, per second. The tensor cores of an H200 make 7,737 T products of planes; a pair
# of complete genotypes takes four, one with missing calls nine, a triple of complete ones twelve.
library(weft)
arguments <- commandArgs(TRUE)
rows <- if (length(arguments)) arguments[1] else "rates"
seconds <- if (length(arguments) > 1) as.numeric(arguments[2])

# Bytes of a .bed file: four genotypes each, of codes 0 (two copies), 2 (one), 3 (none), and 1 (missing).
some_bytes <- function(count, missing) {
  codes <- function() sample(c(0:3), count, TRUE, c(0.1, missing, 0.35, 0.55))
  as.raw(codes() + 4L * codes() + 16L * codes() + 64L * codes())
}

# A data set of n samples and p variants: a block of random variants, and copies of it with samples shifted, so that no
# two variants are alike. Processes write parts of the file. Returns the files' stem.
write_plink <- function(n, p, missing = 0, processes = 1L) {
  stem <- tempfile("genotypes")
  each <- 100L
  bytes <- (n + 3L) %/% 4L
  block <- matrix(some_bytes(bytes * each, missing), bytes)
  bed <- paste0(stem, ".bed")
  writeBin(as.raw(c(0x6c, 0x1b, 1)), bed)
  write_blocks <- function(blocks) {
    out <- file(bed, "r+b")
    on.exit(close(out))
    for (k in blocks) {
      seek(out, 3 + (k - 1) * as.double(bytes) * each, rw = "write")
      shift <- (7919 * k) %% bytes
      writeBin(as.vector(block[c(seq_len(bytes - shift) + shift, seq_len(shift)), ]), out)
    }
  }
  parts <- parallel::splitIndices(p %/% each, processes)
  if (processes > 1L) parallel::mclapply(parts, write_blocks, mc.cores = processes) else write_blocks(parts[[1L]])
  writeLines(sprintf("1 rs%d 0 %d A G", seq_len(p), 1000L * seq_len(p)), paste0(stem, ".bim"))
  writeLines(sprintf("f i%d 0 0 1 -9", seq_len(n)), paste0(stem, ".fam"))
  stem
}

remove_plink <- function(stem) unlink(paste0(stem, c(".bed", ".bim", ".fam")))

elapsed <- function(f) system.time(f(), gcFirst = FALSE)[["elapsed"]]
least <- function(times, f) min(vapply(seq_len(times), function(k) elapsed(f), 0))

line <- function(what, took, pair_samples = NA, goal = NA) { # or triple-samples
  rate <- pair_samples / took / 1e12
  cat(sprintf("%-66s %8.3f s%s%s\n", what, took, if (is.na(rate)) "" else sprintf("  %6.3g T", rate),
              if (is.na(goal)) "" else sprintf("  (goal %s)", goal)))
}

pairs_of <- function(p) p * (p - 1) / 2

# ---- packed data ----

packed <- function(what, x, class, p, n, goal = NA, ..., times = 3, by = c("mi", "interaction")) {
  pack <- mi_pack(x, class, ...)
  on.exit(weft_free(pack))
  for (b in by) {
    call <- function() mi_pairs(pack, top = 1000, by = b, run = "cuda")
    call()
    line(sprintf("%s, %d x %d, %s", what, n, p, b), least(times, call), n * pairs_of(as.double(p)), goal)
  }
}

genotypes <- function(n, p, goal = NA, missing = 0, na = "drop", classes = 2L, ...) {
  stem <- write_plink(n, p, missing)
  on.exit(remove_plink(stem))
  what <- sprintf("genotypes, %g%% missing%s, %d classes", 100 * missing, if (missing) paste0(" ", na) else "", classes)
  packed(what, plink_file(stem), sample.int(classes, n, TRUE), p, n, goal, na = na, ...)
}

levels_of <- function(levels, n, p) {
  base <- vapply(seq_len(200L), function(k) as.raw(sample.int(levels, n, TRUE) - 1L), raw(n))
  do.call(cbind, lapply(seq_len(ceiling(p / 200)), function(k) {
    base[1L + (seq_len(n) - 1L + 7919L * k) %% n, ]
  }))[, seq_len(p)]
}

within_strata <- function() {
  x <- levels_of(3, 10000, 10000)
  class <- sample(2, 10000, TRUE)
  strata <- sample(3, 10000, TRUE)
  call <- function() mi_pairs(x, class, strata = strata, top = 1000, run = "cuda")
  line("three levels, 2 classes, 3 strata, 10000 x 10000, with packing", least(2, call), 1e4 * pairs_of(1e4))
}

permuted <- function(n, p) {
  pack <- mi_pack(levels_of(3, n, p), sample(2, n, TRUE))
  on.exit(weft_free(pack))
  search <- function(...) mi_pairs(pack, top = 100, run = "cuda", ...)
  search()
  once <- least(5, search)
  tested <- elapsed(function() search(permutations = 99, seed = 1))
  line(sprintf("99 permutations, three levels, %d x %d: %.0f searches (goal 30)", n, p, (tested - once) / once), tested)
}

rates <- function() {
  genotypes(50000L, 20000L, 700)
  genotypes(10000L, 100000L, 700, times = 2)
  genotypes(10000L, 20000L)
  genotypes(10000L, 20000L, missing = 0.01, by = "mi")
  genotypes(50000L, 20000L, missing = 0.01, by = "mi")
  genotypes(10000L, 20000L, classes = 4L)
  packed("four levels, 2 classes", levels_of(4, 5000, 20000), sample(2, 5000, TRUE), 20000L, 5000L, by = "mi")
  packed("five levels, 4 classes", levels_of(5, 2000, 20000), sample(4, 2000, TRUE), 20000L, 2000L, 50, by = "mi")
  within_strata()
  permuted(10000L, 20000L)
  permuted(2000L, 5000L)
}

# ---- triples: seconds of whole calls from packed data, sizes by growing work ----

triples <- function(until) {
  began <- proc.time()[[3L]]
  grid <- expand.grid(levels = 2:3, n = c(500, 1000, 5000), p = c(150, 500, 1000, 3000, 10000))
  goal <- grid$levels == 3 & grid$n == 5000 & grid$p == 3000
  grid <- rbind(grid[goal, ], grid[!goal, ])
  slowest <- c(0, 0) # seconds a triple of so many levels at its last size, and for how few rows
  for (k in seq_len(nrow(grid))) {
    g <- grid[k, ]
    about <- slowest[g$levels - 1] * choose(g$p, 3)
    if (proc.time()[[3L]] - began + about > until) {
      cat(sprintf("triples of %d levels, %d x %d: left out, some %.0f s\n", g$levels, g$n, g$p, about))
      next
    }
    pack <- mi_pack(levels_of(g$levels, g$n, g$p), sample(2, g$n, TRUE))
    for (by in c("mi", if (k == 1) "interaction")) {
      call <- function() mi_triples(pack, top = 1000, by = by, run = "cuda")
      if (k < 3 || g$p == 150) call()
      took <- elapsed(call)
      if (took < 0.2) took <- min(took, elapsed(call))
      line(sprintf("triples, %d levels, 2 classes, %d x %d, %s", g$levels, g$n, g$p, by), took,
           g$n * choose(g$p, 3), if (k == 1) 300 else NA)
    }
    weft_free(pack)
    if (g$p >= 1000) slowest[g$levels - 1] <- took / choose(g$p, 3)
  }
}

# ---- from files ----

# Cases and controls by three pairs of variants that say nothing alone (an exclusive or of carrying) and one that acts
# by itself.
planted <- list(c(1001, 2002), c(1503, 7004), c(3105, 9106))
penetrance <- function(stem, strength) {
  acts <- 500
  at <- c(unlist(planted), acts)
  x <- as.matrix(plink_file(stem, variants = at))
  carried <- function(k) { y <- x[, match(k, at)]; !is.na(y) & y > 0 }
  effect <- sapply(planted, function(pair) strength * (xor(carried(pair[1L]), carried(pair[2L])) - 0.5))
  stats::rbinom(nrow(effect), 1, stats::plogis(rowSums(effect) + 0.1 * carried(acts)))
}

found_planted <- function(table, by) {
  named <- paste(table$feature1, table$feature2)
  at <- match(vapply(planted, function(pair) paste(sprintf("rs%d", pair), collapse = " "), ""), named)
  sprintf("planted pairs at places %s of %d by %s", toString(at), nrow(table), by)
}

# One whole call in stages, as it goes where a device has no room for planes, and in one. Returns the seconds of stages.
scan <- function(stem, class, n, p, ..., by = "interaction", goal = NA) {
  say <- NULL
  whole <- elapsed(function() {
    at <- c(0, 0, 0)
    at[1] <- elapsed(function() x <<- plink_file(stem, variants = seq_len(p)))
    at[2] <- elapsed(function() pack <<- mi_pack(x, class, na = "drop"))
    at[3] <- elapsed(function() table <<- mi_pairs(pack, top = 1000, by = by, run = "cuda", ...))
    say <<- at
  })
  line(sprintf("from .bed to table, %d x %d: file %.2f, planes %.2f (%.1f G genotypes/s, goal 10), search %.2f s", n, p,
               say[1], say[2], n * as.double(p) / say[2] / 1e9, say[3]), whole, n * pairs_of(as.double(p)), goal)
  cat(sprintf("   search with its way to the device: %.3g T; %s\n", n * pairs_of(p) / say[3] / 1e12,
              found_planted(table, by)))
  more <- list(...)
  if (!length(more)) {
    again <- elapsed(function() mi_pairs(pack, top = 1000, by = by, run = "cuda"))
    cat(sprintf("   again, planes on the device: %.3f s, %.3g T\n", again, n * pairs_of(p) / again / 1e12))
  }
  weft_free(pack)
  whole_call <- elapsed(function() {
    table <<- mi_pairs(plink_file(stem, variants = seq_len(p)), class, na = "drop", top = 1000, by = by, run = "cuda",
                       ...)
  })
  cat(sprintf("   mi_pairs() of the file, which makes planes on one device: %.3f s, %.3g T; %s\n", whole_call,
              n * pairs_of(p) / whole_call / 1e12, found_planted(table, by)))
  c(p = p, planes = say[1] + say[2], search = say[3], whole = whole)
}
x <- pack <- table <- NULL # of scan(), between its stages

# Seconds by size: reading grows with the variants, searching with their pairs.
growth <- function(seen, n) {
  p <- seen[, "p"]
  reading <- stats::coef(stats::lm(seen[, "planes"] ~ p))
  searching <- stats::coef(stats::lm(seen[, "search"] ~ 0 + p + I(p^2), weights = 1 / p))
  to <- 8e5
  cat(sprintf("growth: planes %.2f s + %.3g s per variant, search %.3g s per variant + %.3g s per pair\n", reading[1],
              reading[2], searching[1], 2 * searching[2]))
  line(sprintf("%d x %d by this growth, planes %.0f and search %.0f s", n, to, reading[1] + reading[2] * to,
               searching[1] * to + searching[2] * to^2), sum(reading * c(1, to)) + sum(searching * c(to, to^2)),
       goal = "360 s, two devices 190 s")
}

from_files <- function(until) {
  began <- proc.time()[[3L]]
  left <- function() until - (proc.time()[[3L]] - began)
  processes <- min(16L, parallel::detectCores())
  make <- function(n, p) {
    if (!is.null(stem)) remove_plink(stem)
    took <- elapsed(function() stem <<- write_plink(n, p, processes = processes))
    cat(sprintf("%.2f GB of .bed written in %.1f s by %d processes\n", file.size(paste0(stem, ".bed")) / 1e9, took,
                processes))
    took
  }
  n <- 500000L
  sizes <- c(12500L, 25000L, 50000L)
  if (make(n, 50000L) < 6) { # a disk that is quick enough for twice as many
    sizes <- c(sizes, 100000L)
    make(n, 100000L)
  }
  class <- penetrance(stem, 0.25)
  mi_pairs(levels_of(3, 100, 200), sample(2, 100, TRUE), run = "cuda") # the device's own start is not a search's
  seen <- NULL
  for (p in sizes) seen <- rbind(seen, scan(stem, class, n, p))
  growth(seen, n)
  if (nrow(weft_devices()) > 1L) scan(stem, class, n, max(sizes), devices = "all")
  if (left() > 12) {
    make(5000L, 500000L)
    scan(stem, penetrance(stem, 1.2), 5000L, 500000L, by = "mi", goal = "15 s")
  }
  remove_plink(stem)
}
stem <- NULL

# ---- from two-bit codes to planes, beside the bytes that have to move ----

# Seconds in which as many processes as there are threads copy so many bytes within memory: they read what the codes
# take, and write what the planes take, to fresh pages.
copying <- function(bytes, processes) {
  own <- ceiling(bytes / processes)
  copied <- function(k) {
    from <- rep_len(as.raw(1:255), own)
    copy <- function() { to <- from; to[1L] <- as.raw(0) }
    min(vapply(1:5, function(k) elapsed(copy), 0))
  }
  max(unlist(parallel::mclapply(seq_len(processes), copied, mc.cores = processes)))
}

# Bytes per second of the link to the first device, each way, as the driver describes it; NA where it does not.
link_speed <- function() {
  ask <- c("--query-gpu=pcie.link.gen.max,pcie.link.width.max", "--format=csv,noheader", "--id=0")
  said <- tryCatch(suppressWarnings(system2("nvidia-smi", ask, stdout = TRUE, stderr = FALSE)),
                   error = function(e) character())
  link <- suppressWarnings(as.integer(strsplit(paste0(said, ""), ",")[[1L]]))
  if (length(link) != 2L || anyNA(link) || !link[1L] %in% 3:5) return(NA)
  2^link[1L] * 1e9 * 128 / 130 / 8 * link[2L]
}

planes_line <- function(what, genotypes, took, floor, of, goal = NA) {
  cat(sprintf("%-66s %8.3f s  %6.1f GB/s%s; floor %.3f s, %.0f %% of %s\n", what, took, genotypes / took / 1e9,
              if (is.na(goal)) "" else sprintf(" (goal %s)", goal), floor, 100 * floor / took, of))
}

# Rates in bytes of raw codes, one per genotype. On a device planes are made with the search of a file: what that takes
# longer than a search whose planes are there.
from_codes <- function(n, p) {
  threads <- weft_threads()
  stem <- write_plink(n, p, processes = min(16L, parallel::detectCores()))
  on.exit(remove_plink(stem))
  genotypes <- as.double(n) * p
  of_copies <- sprintf("copies by %d processes", threads)
  floor <- copying(genotypes / 4, threads)
  x <- plink_file(stem)
  class <- sample.int(2L, n, TRUE)
  making <- least(3, function() weft_free(mi_pack(x, class, na = "drop")))
  planes_line(sprintf("planes of %d x %d on the host, %d threads", n, p, threads), genotypes, making, floor, of_copies,
              10)
  if (!nrow(weft_devices())) return(cat("There is no device.\n"))
  mi_pairs(levels_of(3, 100, 200), sample(2, 100, TRUE), run = "cuda") # the device's own start is not sending
  pack <- mi_pack(x, class, na = "drop")
  on.exit(weft_free(pack), add = TRUE)
  search <- function(x, ...) mi_pairs(x, ..., top = 1, run = "cuda")
  first <- elapsed(function() search(pack))
  there <- least(3, function() search(pack))
  planes_line("   planes to the device alone", genotypes, first - there, genotypes / 4 / link_speed(),
              "the link's speed")
  weft_free(pack)
  planted <- least(3, function() search(x, class, na = "drop")) - there
  planes_line("   planes made on the device", genotypes, planted, genotypes / 4 / link_speed(), "the link's speed", 40)
}

# ---- the CPU, beside PLINK ----

on_cpu <- function() {
  n <- 1000L
  p <- 2000L
  stem <- write_plink(n, p)
  on.exit(unlink(paste0(stem, "*")))
  class <- stats::rbinom(n, 1, 0.5)
  fam <- sprintf("f i%d 0 0 1 %d", seq_len(n), class + 1L)
  writeLines(fam, paste0(stem, ".fam"))
  file <- plink_file(stem)
  pack <- mi_pack(file, class)
  on.exit(weft_free(pack), add = TRUE)
  kinds <- c("portable", "avx2", "avx512")
  before <- .Call(weft:::C_weft_simd, NULL)
  has <- !vapply(seq_along(kinds), function(k) is.null(.Call(weft:::C_weft_simd, k - 1L)), TRUE)
  .Call(weft:::C_weft_simd, match(before, kinds) - 1L)
  with_kind <- function(kind, f) {
    force(kind)
    function() {
      .Call(weft:::C_weft_simd, match(kind, kinds) - 1L)
      on.exit(.Call(weft:::C_weft_simd, match(before, kinds) - 1L))
      f()
    }
  }
  by_mi <- function() mi_pairs(pack, top = 1000, by = "mi", run = weft_run("cpu", threads = 1))
  by_interaction <- function() mi_pairs(pack, top = 1000, by = "interaction", run = weft_run("cpu", threads = 1))
  planes <- function() weft_free(mi_pack(file, class, run = weft_run(threads = 1)))
  calls <- list()
  for (kind in kinds[has]) {
    calls[[paste0(kind, ", planes")]] <- with_kind(kind, planes)
    calls[[paste0(kind, ", mi")]] <- with_kind(kind, by_mi)
    calls[[paste0(kind, ", interaction")]] <- with_kind(kind, by_interaction)
  }
  plink <- Sys.which(c("plink1.9", "plink"))
  plink <- plink[nzchar(plink)][1L]
  if (!is.na(plink)) {
    program <- function(...) system2(plink, c("--bfile", stem, "--allow-no-sex", ..., "--out", paste0(stem, "-plink")),
                                     stdout = TRUE, stderr = TRUE)
    calls[["PLINK, --fast-epistasis boost"]] <- function() program("--fast-epistasis boost", "--threads 1")
    calls[["PLINK, --freq alone"]] <- function() program("--freq")
  }
  least_of_rounds(calls, sprintf("three levels, %d x %d, one thread: ", n, p))
  if (is.na(plink)) cat("PLINK is not installed.\n")
}

# Calls take turns, so that what else runs on the machine meets all of them; the least of nine rounds, of processor time
# (of programs that a call starts, too) and by the clock.
least_of_rounds <- function(calls, what) {
  rounds <- replicate(9, vapply(calls, function(f) {
    times <- system.time(f(), gcFirst = FALSE)
    c(sum(times[-3L]), times[[3L]])
  }, c(0, 0)), simplify = FALSE)
  best <- do.call(pmin, rounds)
  cat(sprintf("%-70s processor %6.3f s, clock %6.3f s\n", paste0(what, names(calls)), best[1L, ], best[2L, ]), sep = "")
  cat("(goal: 0.03 s a search)\n")
}

set.seed(1)
cat("R", format(getRversion()), "on", format(Sys.Date()), "with", weft_threads(), "threads:", rows, "\n")
if (rows == "cpu") {
  on_cpu()
} else if (rows == "planes") {
  size <- if (length(arguments) > 2) as.integer(arguments[2:3]) else c(500000L, 20000L)
  from_codes(size[1L], size[2L])
} else {
  if (rows != "file") invisible(mi_pairs(levels_of(2, 100, 200), sample(2, 100, TRUE), run = "cuda"))
  switch(rows, rates = rates(), triples = triples(if (is.null(seconds)) 40 else seconds),
         file = from_files(if (is.null(seconds)) 60 else seconds), stop("rates, triples, file, planes or cpu"))
}
