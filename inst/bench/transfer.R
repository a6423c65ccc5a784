# transfer_entropy(): seconds beside the floor, both back ends, level and precision. From the root of the sources.
#   Rscript inst/bench/transfer.R same              every engine: do both back ends give the same? (a device; a minute)
#   Rscript inst/bench/transfer.R speed             22,469 genes: 3,000 and 100,955 cells, 20 permutations (a device)
#   Rscript inst/bench/transfer.R levels            share of p <= .05 of independent series of five kinds
#   Rscript inst/bench/transfer.R precision FOLDER  average precision beside regulation(time = ): FOLDER/dream4 and
#                                                   simulated series
# TENEX's largest set, CeNGEN, has 22,469 genes and 100,955 cells; its authors report 87 s for it on one device.
library(weft)

clock <- function(work) {
  started <- proc.time()[[3L]]
  value <- work()
  list(value = value, seconds = proc.time()[[3L]] - started)
}

# ---- both back ends ----

same <- function() {
  set.seed(1)
  shapes <- expand.grid(genes = c(7, 130, 700), steps = c(40, 257, 3000), bins = c(2:6, 16))
  shapes <- shapes[shapes$genes < 700 | shapes$bins < 7, ]
  differ <- 0
  for (k in seq_len(nrow(shapes))) {
    s <- shapes[k, ]
    x <- matrix(rnorm(s$genes * s$steps), s$steps)
    x[-1, 2] <- x[-1, 2] + x[-s$steps, 1]
    x[, 3] <- round(x[, 3])
    time <- list(rep(seq_len(s$steps / 2), length.out = s$steps), rep(1:2, each = s$steps / 2, length.out = s$steps))
    found <- lapply(c("cpu", "cuda"), function(on) {
      as.data.frame(transfer_entropy(x, time, bins = s$bins, permutations = 4, fdr = 1, seed = k, run = on))
    })
    differ <- differ + !identical(found[[1L]], found[[2L]])
  }
  cat(sprintf("%d of %d data sets differ\n", differ, nrow(shapes)))
}

# ---- speed ----

# A thousand different genes again and again, zero in nine cells of ten.
sparse_cells <- function(genes, cells, density = 0.1) {
  kinds <- min(genes, 1000L)
  rows <- lapply(seq_len(kinds), function(j) which(runif(cells) < density) - 1L)
  kind <- rep_len(seq_len(kinds), genes)
  counts <- lengths(rows)[kind]
  one <- unlist(rows)
  i <- rep_len(one, sum(counts))
  x <- new("dgCMatrix")
  x@i <- i
  x@p <- as.integer(c(0, cumsum(counts)))
  x@x <- rep_len(1 + rgeom(length(one), 0.4), length(i)) + 0
  x@Dim <- as.integer(c(cells, genes))
  x
}

# Bits that the products of all passes multiply, over what an H200's tensor cores do (README.md of mi).
floor_seconds <- function(genes, steps, levels, permutations) {
  as.double(genes)^2 * (levels - 1) * (levels^2 - 1) * steps * (permutations + 2) / 7737e12
}

time_one <- function(name, x, bins, levels, permutations) {
  took <- vapply(1:2, function(turn) {
    clock(function() {
      transfer_entropy(x, seq_len(nrow(x)), bins = bins, permutations = permutations, seed = 1, run = "cuda")
    })$seconds
  }, 0)
  least <- floor_seconds(ncol(x), nrow(x) - 1, levels, permutations)
  cat(sprintf("%s, %d permutations: %.2f and %.2f s, %.2f s of products at full rate: %.1f times\n", name, permutations,
              took[1L], took[2L], least, took[2L] / least))
}

speed <- function() {
  library(Matrix)
  print(weft_devices()$name)
  set.seed(1)
  x <- matrix(rnorm(3000 * 22469), 3000)
  for (bins in 2:4) time_one(sprintf("22,469 genes, 3,000 samples, %d levels", bins), x, bins, bins, 20)
  time_one("22,469 genes, 3,000 samples, 3 levels", x, 3, 3, 0)
  rm(x)
  x <- sparse_cells(22469L, 100955L)
  time_one("22,469 genes, 100,955 cells, zero or not", x, 3, 2, 20)
  dense <- rnorm(nrow(x))
  x <- cbind(Matrix::Matrix(dense, ncol = 1, sparse = TRUE), x[, -1]) # one gene of three levels: all have nine states
  time_one("22,469 genes, 100,955 cells, 3 levels", x, 3, 3, 20)
  time_one("22,469 genes, 100,955 cells, 3 levels", x, 3, 3, 0)
}

# ---- level ----

series_of <- function(kind, n, p) {
  slow <- function(a) as.vector(stats::arima.sim(list(ar = a), n))
  vapply(seq_len(p), function(j) {
    switch(kind,
      noise = rnorm(n),
      `autoregressive, .05 to .98` = slow(c(0.05, 0.9, 0.98)[j %% 3 + 1]),
      `slow with noise` = if (j %% 2) rnorm(n) else slow(0.98) / 5 + rnorm(n),
      `trends with noise` = sin(2 * pi * (seq_len(n) / n * runif(1, 0.3, 2) + runif(1))) * runif(1, 0, 2) + rnorm(n),
      `20 series` = slow(0.7))
  }, numeric(n))
}

levels_of_tests <- function(sets = 10, n = 600, p = 60) {
  set.seed(2)
  kinds <- c("noise", "autoregressive, .05 to .98", "slow with noise", "trends with noise", "20 series")
  for (kind in kinds) for (bins in 2:3) {
    shares <- replicate(sets, {
      time <- if (kind == "20 series") list(rep(seq_len(n / 20), 20), rep(1:20, each = n / 20)) else seq_len(n)
      e <- transfer_entropy(series_of(kind, n, p), time, bins = bins, fdr = 1, seed = sample(1e6, 1))
      plain <- stats::pchisq(2 * log(2) * attr(e, "steps") * (e$te + e$bias), (bins - 1)^2 * bins, lower.tail = FALSE)
      c(mean(e$p_value <= 0.05), sum(e$q_value <= 0.05), mean(plain <= 0.05),
        sum(stats::p.adjust(plain, "BH") <= 0.05))
    })
    cat(sprintf("%-27s %d levels: p <= .05 in %.3f (%.3f), %.1f edges at q <= .05; chi-squared %.3f, %.1f edges\n",
                kind, bins, mean(shares[1, ]), sd(shares[1, ]) / sqrt(sets), mean(shares[2, ]), mean(shares[3, ]),
                mean(shares[4, ])))
  }
}

# ---- precision ----

average_precision <- function(score, truth) {
  off <- row(truth) != col(truth)
  score <- score[off] + stats::runif(sum(off)) * 1e-9
  hit <- truth[off][order(-score)]
  mean((cumsum(hit) / seq_along(hit))[hit])
}

dream_series <- function(folder) {
  lapply(list.files(folder), function(number) {
    d <- utils::read.delim(gzfile(file.path(folder, number, "timeseries.tsv.gz")), check.names = FALSE)
    d <- d[stats::complete.cases(d), ]
    gold <- utils::read.csv(file.path(folder, number, "gold.csv"))
    x <- as.matrix(d[, -1])
    list(x = x, time = list(d[[1L]], cumsum(c(TRUE, diff(d[[1L]]) < 0))), from = gold[[1L]], to = gold[[2L]])
  })
}

# Genes that follow others with a delay: linear, by thresholds or by products, with noise of measurement.
simulated_series <- function(kind, n = 2000, p = 60) {
  from <- lapply(seq_len(p), function(j) if (j > 6) sample.int(j - 1L, 2L) else integer())
  x <- matrix(0, n, p, dimnames = list(NULL, sprintf("g%d", seq_len(p))))
  for (t in seq_len(n)[-1L]) {
    for (j in seq_len(p)) {
      past <- x[t - 1L, from[[j]]]
      drive <- if (!length(past)) 0 else switch(kind, linear = sum(past), thresholds = sum(abs(past) > 0.7) - 0.9,
                                                products = prod(past))
      x[t, j] <- 0.5 * x[t - 1L, j] + 0.7 * drive / (1 + abs(drive) / 4) + rnorm(1)
    }
  }
  to <- rep(colnames(x), lengths(from))
  list(x = x + rnorm(n * p) / 4, time = list(seq_len(n), rep(1, n)), from = colnames(x)[unlist(from)], to = to)
}

score_of <- function(made, bins) {
  genes <- colnames(made$x)
  score <- matrix(-100, length(genes), length(genes), dimnames = list(genes, genes))
  if (is.null(bins)) {
    net <- regulation(made$x, time = made$time, seed = 1, regulators = "all", control = list(null_copies = 0))
    score[rownames(net), colnames(net)] <- as.matrix(net)
  } else {
    e <- transfer_entropy(made$x, made$time, bins = bins, fdr = 1, seed = 1, permutations = 20)
    score[cbind(e$from, e$to)] <- e$z
  }
  score
}

precision <- function(folder) {
  set.seed(3)
  sets <- c(list(DREAM4 = dream_series(file.path(folder, "dream4"))),
            lapply(c(linear = "linear", thresholds = "thresholds", products = "products"),
                   function(kind) replicate(3, simulated_series(kind), simplify = FALSE)))
  for (name in names(sets)) {
    cat(sprintf("%-10s", name))
    for (bins in list(2, 3, 4, NULL)) {
      each <- vapply(sets[[name]], function(made) {
        genes <- colnames(made$x)
        truth <- matrix(FALSE, length(genes), length(genes), dimnames = list(genes, genes))
        truth[cbind(made$from, made$to)] <- TRUE
        average_precision(score_of(made, bins), truth)
      }, 0)
      cat(sprintf("  %s %.3f (%s)", if (is.null(bins)) "regulation(time = )" else paste(bins, "levels"), mean(each),
                  paste(sprintf("%.3f", each), collapse = " ")))
    }
    cat("\n")
  }
}

args <- commandArgs(TRUE)
switch(args[1L], same = same(), speed = speed(), levels = levels_of_tests(), precision = precision(args[2L]),
       stop("What to do must be same, speed, levels or precision."))
