# gene_ranking() beside limma (3.54: lmFit, eBayes, voom) and edgeR's factors, on public data, permuted classes, noise,
# classes of unequal variance, and planted differences. Both get the same values, after gene_quality().
# Usage: Rscript ranking.R part [folder] [runs]
#   real      calls at q <= .05: Marioni (NOISeq), Golub (multtest), ALL (ALL), and with `folder` the sets of de Souto
#             and others (2008), which biclustlib from PyPI has in datasets/data/cancer_benchmark; two largest classes
#   draws     Golub 6 v 6 and 10 v 10, and the sets 6 v 6, at the same options
#   permuted  how many permutations of the class have any call
#   noise     share of p <= .05 in seven kinds of noise
#   unequal   the same where classes have variances 1 and 9
#   planted   false discovery proportion and power; noise with a batch; counts whose depth goes with the class
#   time      60,000 genes x 500 samples
suppressMessages({
  library(weft)
  library(limma)
})
given <- commandArgs(TRUE)
part <- given[1L]
folder <- if (length(given) > 1L && nzchar(given[2L])) given[2L]
runs <- if (length(given) > 2L) as.integer(given[3L]) else 100L

# ---- data ----

read_set <- function(file) {
  lines <- readLines(file)
  table <- utils::read.delim(text = lines[-1L], header = FALSE, row.names = NULL, check.names = FALSE)
  x <- t(as.matrix(table[, -1L]))
  dimnames(x) <- list(paste0("s", seq_len(nrow(x))), make.unique(as.character(table[, 1L])))
  list(x = x, class = strsplit(lines[1L], "\t")[[1L]][-1L])
}

two_largest <- function(d) {
  sizes <- sort(table(d$class), decreasing = TRUE)
  keep <- d$class %in% names(sizes)[1:2]
  list(x = d$x[keep, ], class = factor(d$class[keep]))
}

# One version of each set: the first.
cancer_sets <- function() {
  files <- list.files(folder, "_database[.]txt$", full.names = TRUE)
  names <- sub("_database.txt", "", basename(files))
  first <- !duplicated(sub("-v[0-9]+$", "", names)) & !grepl("golub", names)
  lapply(stats::setNames(files[first], names[first]), function(file) two_largest(read_set(file)))
}

public_sets <- function() {
  golub <- weft_example("golub")[c("x", "class")]
  found <- new.env()
  utils::data("ALL", package = "ALL", envir = found)
  kept <- grepl("^B", found$ALL$BT) & found$ALL$mol.biol %in% c("BCR/ABL", "NEG")
  list(golub = golub, all = list(x = t(Biobase::exprs(found$ALL)[, kept]), class = factor(found$ALL$mol.biol[kept])))
}

marioni <- function() {
  found <- new.env()
  utils::data("Marioni", package = "NOISeq", envir = found)
  list(x = t(as.matrix(found$mycounts)), class = factor(found$myfactors$Tissue))
}

# Intensities and ratios are never negative, and some are beyond 20: their logarithms are taken, log2(1 + x).
checked <- function(d, batch = NULL, transform = NULL) {
  transform <- transform %||% if (min(d$x, na.rm = TRUE) >= 0 && max(d$x, na.rm = TRUE) > 20) "log2" else "none"
  suppressWarnings(gene_quality(d$x, d$class, batch, transform = transform))
}

`%||%` <- function(a, b) if (is.null(a)) b else a
calls <- function(q, level = 0.05) sum(q <= level, na.rm = TRUE)
adjusted <- function(p) stats::p.adjust(p, "BH")

# p-values of the peers, for the values that gene_ranking() tests.
limma_p <- function(q, class = q$class, batch = NULL, ...) {
  design <- if (is.null(batch)) stats::model.matrix(~class) else stats::model.matrix(~ batch + class)
  values <- if (is.null(q$counts)) t(q$measured %||% q$x) else {
    voom(t(q$counts), design, rowSums(q$counts) * edgeR::calcNormFactors(t(q$counts)))
  }
  fit <- suppressWarnings(eBayes(lmFit(values, design), ...))
  fit$p.value[, ncol(design)]
}

weft_p <- function(q, ...) {
  r <- gene_ranking(q, control = list(shape = FALSE, ...), run = weft_run(threads = 1))
  list(p = r$p_value, q = r$q_value, gene = r$gene, model = attr(r, "model"))
}

# limma with the trend and robustness that gene_ranking() chose.
same_options <- function(q, model) limma_p(q, trend = model$trend, robust = model$robust)

row <- function(...) cat(sprintf(...), "\n", sep = "")

# ---- parts ----

real <- function() {
  d <- marioni()
  q <- checked(d, transform = "counts")
  r <- weft_p(q)
  row("marioni: tested %d, weft %d, voom %d", ncol(q$counts), calls(r$q), calls(adjusted(limma_p(q))))
  sets <- c(public_sets(), if (!is.null(folder)) cancer_sets())
  ratios <- NULL
  for (name in names(sets)) {
    q <- tryCatch(checked(sets[[name]]), error = function(e) NULL)
    if (is.null(q)) next
    r <- weft_p(q)
    peer <- calls(adjusted(limma_p(q)))
    row("%-20s %3d v %3d  weft %5d  limma %5d  same options %5d  trend %d  weights %s", name, table(q$class)[1L],
        table(q$class)[2L], calls(r$q), peer, calls(adjusted(same_options(q, r$model))), r$model$trend, r$model$weights)
    if (peer >= 20 && !name %in% c("golub", "all")) ratios[[name]] <- calls(r$q) / peer
  }
  ratios <- unlist(ratios)
  if (length(ratios)) {
    row("%d sets with 20 calls of limma or more: geometric mean %.3f, least %.3f (%s)", length(ratios),
        exp(mean(log(pmax(ratios, 1e-3)))), min(ratios), names(which.min(ratios)))
  }
}

# Sums over draws of `size` samples of each class.
drawn <- function(name, d, size, draws) {
  sums <- c(weft = 0, limma = 0, same = 0)
  for (seed in seq_len(draws)) {
    set.seed(seed)
    rows <- unlist(lapply(split(seq_along(d$class), d$class), sample, size))
    q <- checked(list(x = d$x[rows, ], class = d$class[rows]))
    r <- weft_p(q)
    sums <- sums + c(calls(r$q), calls(adjusted(limma_p(q))), calls(adjusted(same_options(q, r$model))))
  }
  row("%-20s %d v %d, %d draws: weft %d, limma %d, same options %d", name, size, size, draws, sums[1L], sums[2L],
      sums[3L])
  sums
}

draws <- function() {
  golub <- public_sets()$golub
  for (size in c(6, 10)) drawn("golub", golub, size, 20)
  if (is.null(folder)) return()
  sets <- Filter(function(d) min(table(d$class)) >= 8, cancer_sets())
  all <- vapply(names(sets), function(name) drawn(name, sets[[name]], 6, 20), numeric(3))
  all <- all[, all["limma", ] >= 20, drop = FALSE]
  row("%d sets 6 v 6: geometric mean of weft / limma %.3f, weft / same options %.3f", ncol(all),
      exp(mean(log(all[1L, ] / all[2L, ]))), exp(mean(log(pmax(all[1L, ], 1) / pmax(all[3L, ], 1)))))
}

permuted <- function() {
  sets <- c(public_sets()["golub"], list(marioni = marioni()), if (!is.null(folder)) cancer_sets()[c(1, 4, 8, 12)])
  for (name in names(sets)) {
    q <- checked(sets[[name]], transform = if (name == "marioni") "counts")
    any <- vapply(seq_len(runs), function(seed) {
      set.seed(seed)
      q$class[] <- sample(q$class)
      c(calls(weft_p(q)$q), calls(adjusted(limma_p(q)))) > 0
    }, c(NA, NA))
    row("%-20s permuted %d times: any call weft %.2f, limma %.2f (s.e. %.2f)", name, runs, mean(any[1L, ]),
        mean(any[2L, ]), sqrt(max(mean(any[2L, ]) * (1 - mean(any[2L, ])), 1 / runs) / runs))
  }
}

noise_of <- function(kind, n, p) {
  z <- matrix(stats::rnorm(n * p), n)
  switch(kind,
    normal = z, t3 = matrix(stats::rt(n * p, 3), n), lognormal = exp(z), ties = round(1.5 * z),
    `noisy samples` = z * ifelse(stats::runif(n) < 0.3, 3, 1), outlier = z * c(5, rep(1, n - 1L)),
    shifted = z + stats::rnorm(n))
}

noise <- function() {
  row("%-14s %4s  weft   limma  s.e. (over sets of 1,000 genes)", "kind", "n")
  for (kind in c("normal", "t3", "lognormal", "noisy samples", "outlier", "ties", "shifted")) {
    for (n in c(6L, 8L, 12L, 20L, 50L, 200L)) {
      sets <- if (n > 20L) max(10L, runs %/% 5L) else runs
      shares <- vapply(seq_len(sets), function(seed) {
        set.seed(seed)
        x <- noise_of(kind, n, 1000L)
        dimnames(x) <- list(paste0("s", seq_len(n)), paste0("g", 1:1000))
        q <- checked(list(x = x, class = factor(sample(rep(c("a", "b"), n / 2)))), transform = "none")
        c(mean(weft_p(q)$p <= 0.05), mean(limma_p(q) <= 0.05))
      }, c(0, 0))
      row("%-14s %4d  %.4f %.4f %.4f", kind, n, mean(shares[1L, ]), mean(shares[2L, ]),
          stats::sd(shares[2L, ]) / sqrt(sets))
    }
  }
}

# Variances 1 and 9: of the classes (one ratio), or of either class by gene (ratios that differ).
unequal <- function() {
  for (sizes in list(c(4, 8), c(6, 12), c(6, 18), c(12, 6), c(18, 6), c(10, 30), c(30, 10))) {
    for (kind in c("one", "differ")) {
      result <- vapply(seq_len(max(5L, runs %/% 5L)), function(seed) {
        set.seed(seed)
        n <- sum(sizes)
        x <- matrix(stats::rnorm(n * 1000L), n, dimnames = list(paste0("s", seq_len(n)), paste0("g", 1:1000)))
        first <- seq_len(sizes[1L])
        wide <- if (kind == "one") rep(TRUE, 1000L) else stats::runif(1000L) < 0.5
        x[first, wide] <- 3 * x[first, wide]
        x[-first, !wide] <- 3 * x[-first, !wide]
        q <- checked(list(x = x, class = factor(rep(c("a", "b"), sizes))), transform = "none")
        r <- weft_p(q)
        c(mean(r$p <= 0.05), mean(limma_p(q) <= 0.05), length(r$model$notes) > 0, r$model$weights == "group")
      }, numeric(4))
      row("%2d v %2d, ratio%s: weft %.3f, limma %.3f, said %.2f, weighted %.2f", sizes[1L], sizes[2L],
          if (kind == "one") " 9 for all genes" else "s 9 and 1/9", mean(result[1L, ]), mean(result[2L, ]),
          mean(result[3L, ]), mean(result[4L, ]))
    }
  }
}

planted <- function() {
  for (size in c(4, 7, 20)) {
    result <- vapply(seq_len(max(20L, runs %/% 2L)), function(seed) {
      set.seed(seed)
      class <- factor(rep(c("a", "b"), each = size))
      x <- matrix(stats::rnorm(2 * size * 2000L), 2 * size) * rep(sqrt(5 / stats::rchisq(2000L, 5)), each = 2 * size)
      dimnames(x) <- list(paste0("s", seq_len(2 * size)), paste0("g", 1:2000))
      x[class == "b", 1:200] <- x[class == "b", 1:200] + 3 / sqrt(size / 4)
      q <- checked(list(x = x, class = class), transform = "none")
      r <- weft_p(q)
      of <- function(genes) c(mean(!genes %in% paste0("g", 1:200)), sum(genes %in% paste0("g", 1:200)))
      c(of(r$gene[r$q <= 0.05]), of(colnames(q$x)[adjusted(limma_p(q)) <= 0.05]))
    }, numeric(4))
    result[is.nan(result)] <- 0
    row("planted 200 of 2,000, %d v %d: FDP weft %.4f, limma %.4f; found %.0f, %.0f", size, size, mean(result[1L, ]),
        mean(result[3L, ]), mean(result[2L, ]), mean(result[4L, ]))
  }
  for (agree in c(0.5, 0.7, 0.8, 0.9)) {
    any <- vapply(seq_len(2L * runs), function(seed) {
      set.seed(seed)
      class <- factor(rep(c("a", "b"), each = 20))
      same <- rep(seq_len(20) <= round(20 * agree), 2)
      batch <- factor(ifelse(same == (class == "a"), "u", "v"))
      x <- matrix(stats::rnorm(40 * 500), 40) + outer(batch == "v", stats::rnorm(500))
      dimnames(x) <- list(paste0("s", 1:40), paste0("g", 1:500))
      calls(weft_p(checked(list(x = x, class = class), batch, transform = "none"))$q) > 0
    }, NA)
    row("noise with a batch, %d %% agreement: any call in %d of %d sets", 100 * agree, sum(any), length(any))
  }
  for (tied in c(1, 2, 4)) {
    result <- vapply(seq_len(max(20L, runs %/% 2L)), function(seed) {
      set.seed(seed)
      class <- factor(rep(c("a", "b"), each = 8))
      depth <- ifelse(class == "b", tied, 1) * stats::runif(16, 0.8, 1.25)
      mu <- outer(depth, exp(stats::rnorm(1500, 1, 1.5)))
      x <- matrix(stats::rnbinom(length(mu), mu = mu, size = 5), 16,
                  dimnames = list(paste0("s", 1:16), paste0("g", 1:1500)))
      q <- checked(list(x = x, class = class), transform = "counts")
      r <- weft_p(q)
      c(mean(r$p <= 0.05), calls(r$q) > 0, any(grepl("depth", r$model$notes)), mean(limma_p(q) <= 0.05))
    }, numeric(4))
    row("equal counts, depth %d times: p <= .05 weft %.3f, voom %.3f; any call %.2f; said %.2f", tied,
        mean(result[1L, ]), mean(result[4L, ]), mean(result[2L, ]), mean(result[3L, ]))
  }
}

time <- function() {
  set.seed(1)
  n <- 500L
  p <- 60000L
  x <- matrix(stats::rnorm(n * p), n, dimnames = list(paste0("s", seq_len(n)), paste0("g", seq_len(p))))
  class <- factor(rep(c("a", "b"), n / 2))
  samples <- data.frame(class = class)
  q <- structure(list(x = x, class = class), class = "weft_quality")
  model <- weft:::ranking_model(~class, samples)
  run <- weft:::run_control("cpu", NULL, FALSE)
  values <- list(y = x, unit = 1, plenty = TRUE)
  control <- weft:::ranking_control(list())
  seconds <- function(expr) system.time(expr)[[3L]]
  ours <- seconds({
    fit <- weft:::weighted_fit(values, model, control, run)
    weft:::ranking_table(values, model, fit, control, run)
  })
  across <- t(x)
  peer <- seconds(eBayes(lmFit(across, stats::model.matrix(~class))))
  row("60,000 genes x 500 samples: weft with all columns %.2f s, lmFit + eBayes %.2f s (%d threads)", ours, peer,
      weft_threads())
}

switch(part, real = real(), draws = draws(), permuted = permuted(), noise = noise(), unequal = unequal(),
       planted = planted(), time = time(), stop("Unknown part."))
