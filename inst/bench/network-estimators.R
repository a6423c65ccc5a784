# Which estimator and which method rank the true edges of a gene network best on few samples: mean area under the
# precision-recall curve over simulated sets (weft_example("expression"): scale-free, saturating effects), beside minet
# and parmigene where they are installed. What gene_mi_network() takes by default was chosen by this table.
# Usage: Rscript network-estimators.R [sets] [file.csv] [quick] [300x500 ...]
#   quick: weft by Spearman only, up to 500 samples; 300x500: this many genes and samples, all sets
library(weft)
args <- commandArgs(TRUE)
sets <- if (length(args)) as.integer(args[1L]) else 20L
out <- if (length(args) > 1L) args[2L] else NA
quick <- "quick" %in% args
asked <- lapply(strsplit(grep("^[0-9]+x[0-9]+$", args, value = TRUE), "x"), as.integer)
has <- function(package) requireNamespace(package, quietly = TRUE)

# Edges in the order of their weight; within ties true and false ones rise in proportion (Davis and Goadrich 2006).
pr_area <- function(weights, truth) {
  w <- weights[upper.tri(weights)]
  t <- (truth | t(truth))[upper.tri(truth)]
  groups <- rev(rle(sort(w))$lengths)
  t <- t[order(-w)]
  last <- cumsum(groups)
  tp <- cumsum(t)[last]
  hits <- diff(c(0, tp))
  before_tp <- tp - hits
  before_n <- last - groups
  area <- 0
  single <- groups == 1L
  area <- sum((hits * tp / last)[single])
  for (g in which(!single & hits > 0)) {
    k <- seq_len(hits[g])
    area <- area + sum((before_tp[g] + k) / (before_n[g] + k * groups[g] / hits[g]))
  }
  area / sum(t)
}

methods <- c("aracne", "clr", "mrnet", "mrnetb")
weft_rows <- function(x) {
  estimators <- list(pearson = list(estimator = "pearson"), spearman = list(estimator = "spearman"),
                     kendall = list(estimator = "kendall"),
                     copula = list(estimator = "copula"), ksg3 = list(estimator = "ksg", k = 3),
                     ksg10 = list(estimator = "ksg", k = 10),
                     bins3 = list(bins = 3), bins5 = list(bins = 5),
                     `bins5, Miller-Madow` = list(estimator = "miller-madow", bins = 5))
  if (quick) estimators <- estimators["spearman"]
  do.call(rbind, lapply(names(estimators), function(e) {
    m <- do.call(mi_matrix, c(list(x), estimators[[e]]))
    plain <- as.matrix(m)
    nets <- c(list(none = plain), stats::setNames(lapply(methods, function(way) as.matrix(mi_network(m, way))),
                                                  methods))
    data.frame(package = "weft", estimator = e, method = names(nets), area = vapply(nets, pr_area, 0, truth = truth))
  }))
}
peer_rows <- function(x) {
  rows <- NULL
  note <- function(package, estimator, method, w) {
    rows <<- rbind(rows, data.frame(package = package, estimator = estimator, method = method,
                                    area = pr_area(w, truth)))
  }
  if (has("minet")) {
    d <- as.data.frame(x)
    mims <- list(spearman = minet::build.mim(d, "spearman"), pearson = minet::build.mim(d, "pearson"),
                 `mi.empirical, sqrt(n) bins` = minet::build.mim(d, "mi.empirical", "equalfreq"))
    for (e in names(mims)) for (way in c("aracne", "clr",
                                         "mrnet")) note("minet", e, way, getExportedValue("minet", way)(mims[[e]]))
  }
  if (has("parmigene")) {
    m <- parmigene::knnmi.all(t(x))
    note("parmigene", "knn", "aracne.a", parmigene::aracne.a(m))
    note("parmigene", "knn", "aracne.m", parmigene::aracne.m(m))
    note("parmigene", "knn", "clr", parmigene::clr(m))
    note("parmigene", "knn", "mrnet", parmigene::mrnet(m))
  }
  rows
}

all <- NULL
usual <- list(c(100, 50), c(100, 100), c(100, 200), c(200, 200), c(300, 500), c(100, 2000))
for (shape in if (length(asked)) asked else usual) {
  if (quick && !length(asked) && shape[2L] > 500) next
  for (set in seq_len(if (!quick && !length(asked) && shape[1L] * shape[2L] > 1e5) ceiling(sets / 4) else sets)) {
    example <- weft_example("expression", n = shape[2L], p = shape[1L], seed = set, batch = 0, missing = 0,
                            outliers = 0, spoilt = FALSE)
    truth <- example$truth == 1
    all <- rbind(all, data.frame(genes = shape[1L], samples = shape[2L], set = set,
                                 rbind(weft_rows(example$x), peer_rows(example$x))))
  }
  now <- all[all$genes == shape[1L] & all$samples == shape[2L], ]
  key <- interaction(now$package, now$estimator, now$method, drop = TRUE, sep = " | ")
  table <- data.frame(what = levels(key), mean = tapply(now$area, key, mean),
                      error = tapply(now$area, key, function(a) stats::sd(a) / sqrt(length(a))))
  cat(sprintf("\n%d genes, %d samples, %d sets: area under precision-recall, best first\n", shape[1L], shape[2L],
              max(now$set)))
  print(head(transform(table[order(-table$mean), ], mean = round(mean, 4), error = round(error, 4)), 20),
        row.names = FALSE)
  if (!is.na(out)) utils::write.csv(all, out, row.names = FALSE)
}
