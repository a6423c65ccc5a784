# Directed networks from interventions and time series held against the truth: average precision over all ordered pairs
# of genes, of regulation() and of peers in the same run, on DREAM4 and on simulated networks; and how often noise has
# an edge at a false discovery rate of .05.
# Usage: Rscript interventions.R [FOLDER] [sets] [noise sets]
# FOLDER has, of networks of size 100 as DREAM4's archive has them, NUMBER/wildtype.tsv.gz, knockouts.tsv.gz,
# knockdowns.tsv.gz, timeseries.tsv.gz (a column Time and the genes) and gold.csv (Gene1, Gene2); "-": none.
# Four sets by default of each simulated kind, of four shapes each; 200 of noise.
library(weft)

args <- commandArgs(TRUE)
folder <- if (length(args) && dir.exists(args[1])) args[1]
given <- function(k, usual) if (length(args) >= k) as.integer(args[k]) else usual
sets <- given(2, 4L)
noise_sets <- given(3, 200L)

# The shapes of networks are those of regulation.R.
code <- parse(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)[1])), "regulation.R"))
names <- vapply(code, function(e) if (is.call(e) && length(e) > 2) as.character(e[[2]])[1] else "", "")
for (e in code[names %in% c("topology", "average_precision")]) eval(e)

precision <- function(w, truth) {
  off <- row(w) != col(w)
  set.seed(1)
  average_precision(w[off], truth[off])
}

# ---- data ----

table_of <- function(network, name) {
  lines <- readLines(path <- gzfile(file.path(folder, network, paste0(name, ".tsv.gz"))))
  close(path)
  as.matrix(utils::read.delim(text = lines[nzchar(trimws(lines))], check.names = FALSE))
}

dream4 <- function(network) {
  knocked <- lapply(c("wildtype", "knockouts", "knockdowns"), table_of, network = network)
  course <- table_of(network, "timeseries")
  genes <- colnames(knocked[[2]])
  gold <- utils::read.csv(file.path(folder, network, "gold.csv"))
  truth <- matrix(FALSE, length(genes), length(genes))
  truth[cbind(match(gold$Gene1, genes), match(gold$Gene2, genes))] <- TRUE
  list(x = do.call(rbind, knocked), of = c("", genes, genes), truth = truth, series = course[, -1], time = course[, 1],
       unit = cumsum(course[, 1] == 0))
}

# What genes do: kinetic() steps of dx/dt = rate * (what regulators allow) - x by Hill functions; linear() of sums.
kinetic <- function(sign) {
  p <- ncol(sign)
  half <- matrix(stats::runif(p * p, 0.3, 0.9), p)
  steep <- matrix(sample(c(1, 2, 4), p * p, TRUE), p)
  together <- sample(c("and", "or", "mean"), p, TRUE)
  function(x, rate) {
    allowed <- vapply(seq_len(p), function(j) {
      parents <- which(sign[, j] != 0)
      if (!length(parents)) return(rep(0.6, nrow(x)))
      acts <- vapply(parents, function(i) {
        f <- x[, i]^steep[i, j] / (x[, i]^steep[i, j] + half[i, j]^steep[i, j])
        if (sign[i, j] > 0) f else 1 - f
      }, numeric(nrow(x)))
      acts <- matrix(acts, nrow(x))
      switch(together[j], and = apply(acts, 1, prod), or = 1 - apply(1 - acts, 1, prod), mean = rowMeans(acts))
    }, numeric(nrow(x)))
    rate * (0.05 + 0.95 * matrix(allowed, nrow(x))) - x
  }
}

named <- function(x) {
  colnames(x) <- sprintf("g%d", seq_len(ncol(x)))
  x
}

# gene: perturbed in each sample, 0 in none; left: what is left of it.
kinetic_set <- function(shape, p, gene, left, varied, noise) {
  sign <- topology(shape, p, max(5, p %/% 4))
  change <- kinetic(sign)
  n <- length(gene)
  rate <- exp(matrix(stats::rnorm(n * p, 0, varied), n))
  hit <- which(gene > 0)
  rate[cbind(hit, gene[hit])] <- rate[cbind(hit, gene[hit])] * left[hit]
  x <- 0.5 * rate
  for (round in 1:60) x <- x + 0.5 * change(x, rate)
  x <- named(log2(x + 0.02) + stats::rnorm(n * p, 0, noise))
  list(x = x, of = c("", colnames(x))[gene + 1], truth = sign != 0)
}

linear_set <- function(shape, p, gene, left, varied, noise) {
  sign <- topology(shape, p, max(5, p %/% 4))
  effect <- sign * matrix(stats::runif(p * p, 0.4, 0.9), p)
  effect <- effect / max(1, 1.25 * max(Mod(eigen(effect)$values)))
  own <- matrix(stats::rnorm(length(gene) * p, 0, varied), length(gene))
  hit <- cbind(which(gene > 0), gene[gene > 0])
  x <- own
  for (round in 1:80) {
    x <- x %*% effect + own
    x[hit] <- log2(left[hit[, 1]] + 0.06) + own[hit]
  }
  x <- named(x + stats::rnorm(length(x), 0, noise))
  list(x = x, of = c("", colnames(x))[gene + 1], truth = sign != 0)
}

course_set <- function(shape, p, points, step) {
  sign <- topology(shape, p, max(5, p %/% 4))
  change <- kinetic(sign)
  decay <- stats::runif(p, 0.5, 1.5)
  rows <- lapply(1:10, function(series) {
    rest <- exp(stats::rnorm(p, 0, 0.05))
    moved <- rest * ifelse(stats::runif(p) < 1 / 3, exp(stats::rnorm(p)), 1)
    times <- c(0, cumsum(sample(c(0.5, 1, 2) * step, points - 1, TRUE)))
    x <- matrix(0.5, 1, p)
    move <- function(rate, length) x <<- pmax(x + length * decay * change(x, rate), 1e-3)
    for (round in 1:400) move(t(rest), 0.1)
    now <- 0
    seen <- lapply(times, function(until) {
      while (now < until - 1e-9) {
        length <- min(0.05, until - now)
        move(t(if (now < max(times) / 2) moved else rest), length)
        now <<- now + length
      }
      log2(x + 0.02) + stats::rnorm(p, 0, 0.15)
    })
    list(x = do.call(rbind, seen), time = times, unit = rep(series, points))
  })
  list(series = named(do.call(rbind, lapply(rows, `[[`, "x"))), time = unlist(lapply(rows, `[[`, "time")),
       unit = unlist(lapply(rows, `[[`, "unit")), truth = sign != 0)
}

shapes <- c("scale-free", "random", "modules", "layers")
kinds <- list(
  `kinetic, each of 100 knocked out and down` = function(shape) {
    kinetic_set(shape, 100, c(0, 1:100, 1:100), c(1, rep(c(0.01, 0.5), each = 100)), 0.1, 0.15)
  },
  `kinetic, each of 100 knocked out, much variation` = function(shape) {
    kinetic_set(shape, 100, 0:100, c(1, rep(0.01, 100)), 0.5, 0.15)
  },
  `kinetic, 25 of 100 knocked out three times, 20 controls` = function(shape) {
    kinetic_set(shape, 100, c(rep(0, 20), rep(1:25, each = 3)), rep(c(1, 0.01), c(20, 75)), 0.3, 0.15)
  },
  `linear, each of 100 knocked out and down` = function(shape) {
    linear_set(shape, 100, c(0, 1:100, 1:100), c(1, rep(c(0.01, 0.5), each = 100)), 0.5, 0.3)
  },
  `linear, 15 of 60 in 20 cells each, 100 controls` = function(shape) {
    linear_set(shape, 60, c(rep(0, 100), rep(1:15, each = 20)), rep(c(1, 0.2), c(100, 300)), 0.5, 1)
  },
  `kinetic, 10 series of 20 points` = function(shape) course_set(shape, 60, 20, 0.5),
  `kinetic, 10 series of 8 points` = function(shape) course_set(shape, 60, 8, 1.5)
)

# ---- methods ----

few <- list(null_copies = 0, stability = FALSE)
weights <- function(...) as.matrix(regulation(..., seed = 1, control = few))

# The distance of the first sample of each perturbed gene from the mean of these, in their standard deviations.
z_of_knockouts <- function(d) {
  first <- which(d$of != "" & !duplicated(d$of))
  w <- 0 * d$truth
  w[match(d$of[first], colnames(d$x)), ] <- abs(scale(d$x[first, ]))
  w
}

measured <- function(d) {
  out <- c()
  if (!is.null(d$x)) {
    out <- c(out, `z of knock-outs` = precision(z_of_knockouts(d), d$truth),
             `samples pooled` = precision(weights(d$x), d$truth),
             interventions = precision(weights(d$x, interventions = d$of), d$truth))
  }
  if (!is.null(d$series)) {
    out <- c(out, `series pooled` = precision(weights(d$series), d$truth),
             correlation = precision(abs(stats::cor(d$series)), d$truth),
             time = precision(weights(d$series, time = list(d$time, d$unit)), d$truth))
  }
  if (!is.null(d$x) && !is.null(d$series)) {
    still <- rep(NA, nrow(d$x))
    both <- weights(rbind(d$x, d$series), interventions = c(d$of, rep(NA, nrow(d$series))),
                    time = list(c(still, d$time), c(still, d$unit)))
    out <- c(out, `interventions and time` = precision(both, d$truth))
  }
  out
}

show <- function(name, d) {
  cat(sprintf("%-58s %s\n", name, paste(sprintf("%s %.3f", names(d), d), collapse = ", ")))
}

for (network in if (!is.null(folder)) list.files(folder)) {
  show(paste("DREAM4, network", network), measured(dream4(network)))
}
for (kind in names(kinds)) {
  rows <- lapply(seq_len(sets), function(set) {
    set.seed(1000 + set)
    measured(kinds[[kind]](shapes[(set - 1) %% 4 + 1]))
  })
  show(kind, colMeans(do.call(rbind, rows)))
}

# ---- noise: 40 genes, 60 samples; perturbed genes change themselves and nothing else ----

designs <- list(`20 controls, 20 genes twice` = c(rep("", 20), rep(sprintf("g%d", 1:20), each = 2)),
                `40 genes, once or twice` = c("", rep(sprintf("g%d", 1:40), length.out = 59)),
                `10 controls, 10 genes five times` = c(rep("", 10), rep(sprintf("g%d", 1:10), each = 5)),
                `two genes, no controls` = rep(c("g1", "g2"), each = 30))
for (design in names(designs)) {
  edges <- vapply(seq_len(noise_sets), function(set) {
    set.seed(set)
    of <- designs[[design]]
    x <- named(matrix(stats::rnorm(2400), 60))
    hit <- which(of != "")
    at <- cbind(hit, match(of[hit], colnames(x)))
    x[at] <- x[at] - 5 * (set %% 2)
    net <- regulation(x, interventions = of, seed = set, control = list(null_copies = 10, stability = FALSE))
    nrow(as.data.frame(net, fdr = 0.05)) > 0
  }, NA)
  cat(sprintf("noise, %-50s %d of %d sets have an edge\n", design, sum(edges), noise_sets))
}
for (keep in c(0, 0.6, 0.9)) {
  edges <- vapply(seq_len(noise_sets), function(set) {
    set.seed(set)
    x <- named(matrix(stats::filter(matrix(stats::rnorm(60 * 30), 60), keep, "recursive"), 60))
    net <- regulation(x, time = list(rep(1:12, 5), rep(1:5, each = 12)), seed = set,
                      control = list(null_copies = 10, stability = FALSE))
    nrow(as.data.frame(net, fdr = 0.05)) > 0
  }, NA)
  cat(sprintf("noise, five series of 12 points, autocorrelation %-10.1f %d of %d sets have an edge\n", keep, sum(edges),
              noise_sets))
}
