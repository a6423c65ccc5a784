# Graphs drawn from the posterior by bn_learn(target = "uniform"), over graphs and over partitions, beside Gibby (Nikzad
# and others, arXiv 2510.25254), from the same table of scores.
#   [WEFT_GIBBY=program] Rscript inst/bench/bn-sampling.R [rows.csv] [sets = 1-7] [methods = graphs,partitions,gibby]
# Data: random graphs of degree 2, 500 rows, numbers (BGe) or categories of two or three levels (BDeu); up to 4 parents
# among 12 candidates for each node. Set 1 has 15 nodes and all parents as candidates, so that exact answers are there.
# Each method runs CHAINS chains from starts of their own. Seconds are processor time of one thread for one chain,
# without making tables, and without a run of one step, which stands for reading and starts. Effective draws of edges:
# the sum of all edges' variances over the sum of the variances of their means between chains; of the score: from
# autocorrelations. R-hat is of the score; `apart`: the greatest difference of an edge between chains; `wrong`: from
# exact edges on average over ordered pairs, and at most. Gibby runs with its default moves and keeps sets down to
# 2^-30 of the others. At the end, sets 2 and 5 are drawn with one parent more from outside the candidates: in how many
# of the drawn sets there is one.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
argument <- function(k, default) if (length(given) >= k) given[k] else default
file <- argument(1, "bn-sampling.csv")
range <- as.integer(strsplit(argument(2, "1-7"), "-")[[1L]])
methods <- strsplit(argument(3, "graphs,partitions,gibby"), ",")[[1L]]
CHAINS <- 4 # nolint: object_name_linter.
machine_line()
one <- weft_run("cpu", threads = 1)
sets <- data.frame(kind = c("numbers", "numbers", "numbers", "numbers", "categories", "categories", "categories"),
                   nodes = c(15, 100, 150, 200, 100, 150, 200))

draw <- function(kind, p, n, seed) {
  set.seed(seed)
  dag <- matrix(0, p, p)
  dag[sample(which(upper.tri(dag)), p)] <- 1
  x <- matrix(0, n, p)
  for (j in seq_len(p)) {
    parents <- which(dag[, j] > 0)
    if (kind == "numbers") {
      x[, j] <- x[, parents, drop = FALSE] %*% (stats::runif(length(parents), 0.4, 1) *
                                                  sample(c(-1, 1), length(parents), TRUE)) + stats::rnorm(n)
    } else {
      levels <- sample(2:3, 1)
      cell <- as.integer(interaction(c(list(rep(0, n)), as.data.frame(x[, parents, drop = FALSE])), drop = TRUE))
      weight <- matrix(stats::rgamma(levels * max(cell), 0.5), levels)
      reached <- t(apply(weight, 2L, function(v) cumsum(v) / sum(v)))[cell, , drop = FALSE]
      x[, j] <- rowSums(stats::runif(n) > reached[, -levels, drop = FALSE])
    }
  }
  x <- as.data.frame(x[, sample(p)])
  names(x) <- paste0("v", seq_len(p))
  if (kind == "numbers") x else as.data.frame(lapply(x, function(v) factor(v, 0:2)))
}

scored <- function(set, plus_one = FALSE) {
  score <- if (sets$kind[set] == "numbers") "bge" else "bdeu"
  bn_scores(draw(sets$kind[set], sets$nodes[set], 500, 100 + set), 4, score, candidates = if (set > 1L) 12,
            keep = if (set > 1L) "sum" else "all", run = one, control = list(plus_one = plus_one))
}

by_weft <- function(table, space, iterations) {
  learn <- function(iterations, seed) {
    took <- system.time(fit <- bn_learn(table, iterations = iterations, target = "uniform", chains = 1, seed = seed,
                                        run = one, control = list(space = space, burn_in = iterations %/% 4)))
    kept <- utils::tail(fit$trace[, 1L], -nrow(fit$trace) %/% 4)
    list(seconds = sum(took[1:2]), edges = as.vector(fit$edges), trace = kept)
  }
  runs <- lapply(seq_len(CHAINS), learn, iterations = iterations)
  list(runs = runs, start = learn(1, 1)$seconds)
}

# The table in the form that Gibby reads.
write_jkl <- function(table, file) {
  lines <- lapply(seq_along(table$nodes), function(i) {
    at <- (table$start[i] + 1):table$start[i + 1L]
    members <- table$parents[, at, drop = FALSE]
    c(sprintf("%d %d", i - 1L, length(at)),
      trimws(sprintf("%.10f %d %s", table$score[at], colSums(members > 0),
                     apply(members, 2L, function(v) paste(sort(v[v > 0]) - 1L, collapse = " ")))))
  })
  writeLines(c(as.character(length(table$nodes)), unlist(lines)), file)
}

by_gibby <- function(table, iterations) {
  folder <- tempfile()
  dir.create(folder)
  write_jkl(table, file.path(folder, "table.jkl"))
  old <- setwd(folder)
  on.exit(setwd(old))
  learn <- function(iterations, seed) {
    took <- system.time(system(sprintf("%s table.jkl -P 2 -a 30 -d 4 -R %d -iter %d -burnin %d > out 2> err",
                                       Sys.getenv("WEFT_GIBBY"), seed, ceiling(iterations * 0.75), iterations %/% 4)))
    edges <- as.matrix(utils::read.table(Sys.glob(sprintf("results/*_p_R%d_*", seed)), comment.char = "#"))
    list(seconds = sum(took[4:5]), edges = as.vector(edges),
         trace = scan(Sys.glob(sprintf("results/*_s_R%d_*", seed)), quiet = TRUE))
  }
  runs <- lapply(seq_len(CHAINS), learn, iterations = iterations)
  list(runs = runs, start = learn(2, 99)$seconds)
}

line_of <- function(set, method, found, exact) {
  edges <- vapply(found$runs, `[[`, double(sets$nodes[set]^2), "edges")
  trace <- do.call(cbind, lapply(found$runs, `[[`, "trace"))
  seconds <- mean(vapply(found$runs, `[[`, 0, "seconds")) - found$start
  mean <- rowMeans(edges)
  between <- sum(apply(edges, 1L, stats::var))
  off <- if (is.null(exact)) NA else abs(mean - exact)
  data.frame(kind = sets$kind[set], nodes = sets$nodes[set], method = method, seconds = seconds, start = found$start,
             score = mean(trace), between = stats::sd(colMeans(trace)), r_hat = weft:::split_r_hat(trace),
             score_draws = weft:::effective_size(trace) / CHAINS / seconds,
             edge_draws = sum(mean * (1 - mean)) / between / seconds,
             apart = max(apply(edges, 1L, function(v) diff(range(v)))), wrong_mean = mean(off), wrong_max = max(off))
}

rows <- if (file.exists(file)) utils::read.csv(file)
for (set in range[1L]:range[length(range)]) {
  table <- scored(set)
  exact <- if (set == 1L) as.vector(bn_exact(table, posterior = "dag")$edges)
  for (method in methods) {
    if (method == "gibby" && !nzchar(Sys.getenv("WEFT_GIBBY"))) next
    found <- switch(method, gibby = by_gibby(table, 200), graphs = by_weft(table, "graphs", 4000),
                    partitions = by_weft(table, "partitions", if (set == 1L) 20000 else 2000))
    rows <- rbind(rows, line_of(set, method, found, exact))
    print(format(rows[nrow(rows), ], digits = 3), row.names = FALSE)
    utils::write.csv(format(rows, digits = 4), file, row.names = FALSE, quote = FALSE)
  }
}
for (set in intersect(c(2, 5), range[1L]:range[length(range)])) {
  table <- scored(set, plus_one = TRUE)
  near <- scored(set)
  fit <- bn_learn(table, iterations = 2000, target = "uniform", chains = 2, seed = 1, run = one)
  outside <- vapply(seq_along(table$nodes), function(i) {
    candidates <- unique(as.vector(near$parents[, (near$start[i] + 1):near$start[i + 1L]]))
    own <- table$parents[, table$start[i] + fit$sampled[i, , ] + 1, drop = FALSE]
    mean(colSums(matrix(!own %in% c(0, candidates), nrow(own))) > 0)
  }, 0)
  cat(sprintf("%s, %d nodes: %.2f of the drawn sets have a parent from outside 12 candidates\n", sets$kind[set],
              sets$nodes[set], mean(outside)))
}
