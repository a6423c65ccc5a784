# bn_search() beside searches of others on 60 sets: FLOP (Python's flopsearch) with 20 restarts and with none ("flop0"),
# BOSS (causal-learn), and bnlearn's hc(), tabu() and mmhc(), each with its defaults.
#   [WEFT_PEERS_PYTHON=python] [WEFT_BN_NETWORKS=folder] Rscript inst/bench/bn-peers.R rows.csv
#     [seed = 1] [sets = 1-60] [methods = all] [limit = 120]
# Sets: random graphs of 20 to 1,000 nodes, of numbers and of categories, with edges at random ("er") or by preferential
# attachment ("sf"), of degree 3 to 10, with 200 to 5,000 rows; and networks of the folder's files .bif and .rds
# (bnlearn's bn.fit of numbers). rows.csv gets a line for each set and method; lines that it has are not computed again.
# The tables at the end are of all its lines. Each search is a process of its own, which is ended after `limit` seconds.
#
# Scores of numbers are BGe with the prior of an edge that bn_search() has by default, and FLOP's BIC ("bic"), with a
# penalty of log(n) for each edge. Scores of categories are BDeu with that prior, and the BIC: the line "weft-bic" is of
# bn_search(data, "bic", gamma = 1), which has the peers' own score. Two seeds are drawn for each set: what is chosen by
# one is judged by the other. Seconds are processor time of one thread; of Python's methods without loading them.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
argument <- function(k, default) if (length(given) >= k) given[k] else default
file <- argument(1, "bn-peers.csv")
seed <- as.integer(argument(2, 1))
range <- as.integer(strsplit(argument(3, "1-60"), "-")[[1L]])
chosen <- argument(4, "all")
limit <- as.numeric(argument(5, 120))
python <- Sys.getenv("WEFT_PEERS_PYTHON")
networks <- Sys.getenv("WEFT_BN_NETWORKS")
machine_line()

# ---- sets ----

# Small sets first. Rows, shapes and degrees are spread over the sizes.
plan_sets <- function() {
  random <- function(kind, nodes, degree, shape) expand.grid(kind = kind, nodes = nodes, shape = shape, degree = degree)
  known <- c("child", "insurance", "water", "alarm", "ecoli70", "magic-niab", "hailfinder", "hepar2",
             "win95pts", "arth150", "andes", "pigs")
  both <- c("er", "sf")
  sets <- rbind(
    random("gauss", c(20, 30, 50, 100), c(3, 6, 10), both), random("gauss", 200, c(4, 10), both),
    random("categories", c(20, 50, 100), c(3, 5), both), random("categories", 200, 3, both),
    random("gauss", 500, 6, both), random("gauss", 1000, 4, both), random("categories", c(500, 1000), 3, "sf")
  )
  sets$rows <- c(200, 1000, 5000)[(seq_len(nrow(sets)) * 7) %/% 4 %% 3 + 1]
  sets$rows[sets$nodes >= 500] <- 1000
  sets <- rbind(sets, data.frame(kind = "network", nodes = c(20, 27, 32, 37, 46, 44, 56, 70, 76, 107, 223, 441),
                                 shape = known, degree = 0, rows = rep_len(c(1000, 5000, 200), length(known))))
  sets <- sets[order(sets$nodes), ]
  row.names(sets) <- NULL
  sets
}

# [from, to], parents first. Preferential attachment: each node has degree / 2 edges with earlier ones, chosen by their
# number of edges; directions follow a random order, so that hubs have children and parents.
random_dag <- function(p, degree, shape) {
  dag <- matrix(0L, p, p)
  if (shape == "er") {
    dag[sample(which(upper.tri(dag)), min(p * degree / 2, p * (p - 1) / 2))] <- 1L
    return(dag)
  }
  for (j in 2:p) {
    edges <- min(j - 1, floor(degree / 2) + (degree %% 2 && j %% 2))
    ends <- rowSums(dag)[seq_len(j - 1)] + colSums(dag)[seq_len(j - 1)] + 1
    dag[sample.int(j - 1L, edges, prob = ends), j] <- 1L
  }
  order <- sample(p)
  either <- (dag + t(dag))[order, order]
  either * upper.tri(either)
}

# Weights from -1 to 1 and error variances from 1 to 2.
draw_numbers <- function(dag, n) {
  x <- matrix(0, n, ncol(dag))
  for (j in seq_len(ncol(dag))) {
    parents <- which(dag[, j] > 0)
    x[, j] <- x[, parents, drop = FALSE] %*% stats::runif(length(parents), -1, 1) +
      stats::rnorm(n, sd = sqrt(stats::runif(1, 1, 2)))
  }
  x
}

# Two or three levels; probabilities from a Dirichlet distribution with 1/2 for each level.
draw_categories <- function(dag, n) {
  p <- ncol(dag)
  levels <- sample(2:3, p, TRUE)
  x <- matrix(0L, n, p)
  for (j in seq_len(p)) {
    parents <- which(dag[, j] > 0)
    weight <- matrix(stats::rgamma(prod(levels[parents]) * levels[j], 0.5) + 1e-9, ncol = levels[j])
    reached <- t(apply(weight / rowSums(weight), 1L, cumsum))
    row <- 1 + x[, parents, drop = FALSE] %*% cumprod(c(1, levels[parents]))[seq_along(parents)]
    x[, j] <- rowSums(stats::runif(n) > reached[row, -levels[j], drop = FALSE])
  }
  x
}

# A network of a file: of numbers from the coefficients of bnlearn's bn.fit.
draw_known <- function(name, n) {
  path <- file.path(networks, paste0(name, ".bif"))
  if (file.exists(path)) {
    network <- bn_read(path)
    return(list(data = bn_sample(network, n, seed = seed), dag = network$dag, kind = "categories"))
  }
  nodes <- readRDS(file.path(networks, paste0(name, ".rds")))
  dag <- matrix(0L, length(nodes), length(nodes), dimnames = list(names(nodes), names(nodes)))
  for (node in names(nodes)) dag[nodes[[node]]$parents, node] <- 1L
  x <- matrix(0, n, length(nodes), dimnames = list(NULL, names(nodes)))
  while (length(left <- setdiff(names(nodes), names(nodes)[attr(x, "done")]))) {
    ready <- Find(function(node) !any(dag[left, node] > 0), left)
    of <- nodes[[ready]]
    x[, ready] <- of$coefficients[[1L]] + x[, of$parents, drop = FALSE] %*% of$coefficients[of$parents] +
      stats::rnorm(n, sd = of$sd)
    attr(x, "done") <- c(attr(x, "done"), match(ready, names(nodes)))
  }
  attr(x, "done") <- NULL
  list(data = as.data.frame(scale(x)), dag = dag, kind = "gauss")
}

# bn-missing.R draws its sets here, too.
draw <- function(p, degree, n, seed, shape = "er", of = kind) {
  set.seed(seed)
  dag <- random_dag(p, degree, shape)
  gauss <- of == "gauss"
  if (!gauss) for (j in seq_len(p)) dag[utils::tail(which(dag[, j] > 0), -4L), j] <- 0L
  x <- if (gauss) draw_numbers(dag, n) else draw_categories(dag, n)
  dimnames(dag) <- rep(list(sprintf("v%04d", seq_len(p))), 2L)
  colnames(x) <- colnames(dag)
  mixed(list(data = if (gauss) as.data.frame(scale(x)) else as.data.frame(lapply(as.data.frame(x), factor)), dag = dag,
             kind = of))
}

# Columns in random order: files name parents before their children, and hc() directs edges of equal score by the order
# of the columns. Categories that do not vary are left out.
mixed <- function(drawn) {
  order <- sample(length(drawn$data))
  order <- order[vapply(drawn$data[order], function(column) is.double(column) || length(unique(column)) > 1L, NA)]
  list(data = drawn$data[order], dag = drawn$dag[order, order], kind = drawn$kind)
}

draw_set <- function(set, number) {
  set.seed(1000 * seed + number)
  if (set$kind == "network") return(mixed(draw_known(as.character(set$shape), set$rows)))
  draw(set$nodes, set$degree, set$rows, 1000 * seed + number, set$shape, as.character(set$kind))
}

# ---- methods ----

# A graph of an equivalence class (1: from row to column, 2: undirected): again and again a node without children
# whose undirected neighbours are adjacent to all others that are adjacent to it. NULL when there is none.
graph_of_class <- function(class) {
  dag <- (class == 1L) + 0L
  arrow <- class == 1L
  line <- class == 2L
  left <- seq_len(nrow(class))
  while (length(left)) {
    sink <- Find(function(x) {
      joined <- left[line[x, left] | arrow[left, x]]
      !any(arrow[x, left]) && all(vapply(left[line[x, left]], function(y) {
        others <- setdiff(joined, y)
        all(line[y, others] | arrow[y, others] | arrow[others, y])
      }, NA))
    }, left)
    if (is.null(sink)) return(NULL)
    dag[left[line[sink, left]], sink] <- 1L
    left <- setdiff(left, sink)
  }
  dag
}

by_python <- function(method, data) {
  files <- tempfile(fileext = c(".csv", ".csv"))
  utils::write.table(as.matrix(data), files[1L], sep = ",", row.names = FALSE, col.names = FALSE)
  said <- system2(python, c("-W", "ignore", "inst/bench/bn-peers.py", method, files), stdout = TRUE, stderr = FALSE,
                  timeout = limit - 10) # before the process that waits for it is ended
  class <- as.matrix(utils::read.csv(files[2L], header = FALSE))
  dimnames(class) <- list(names(data), names(data))
  list(dag = graph_of_class(class), seconds = as.numeric(utils::tail(said, 1L)))
}

methods_for <- function(kind) {
  methods <- c(if (kind == "gauss") "weft" else c("weft", "weft-bic"),
               if (nzchar(python) && kind == "gauss") c("flop", "flop0", "boss"),
               if (requireNamespace("bnlearn", quietly = TRUE)) c("hc", "tabu", "mmhc"))
  if (chosen == "all") methods else intersect(methods, strsplit(chosen, ",")[[1L]])
}

learn <- function(method, data) {
  if (method %in% c("flop", "flop0", "boss")) return(by_python(method, data))
  took <- system.time(dag <- switch(
    method,
    weft = bn_search(data, seed = 1, run = weft_run(threads = 1))$dag,
    "weft-bic" = bn_search(data, "bic", gamma = 1, seed = 1, run = weft_run(threads = 1))$dag,
    bnlearn::amat(getExportedValue("bnlearn", method)(data))[names(data), names(data)]
  ))
  list(dag = dag, seconds = sum(took[1:2]))
}

# In a process of its own. An empty list when it fails, or is not done in time.
learn_in_time <- function(method, data) {
  child <- parallel::mcparallel(tryCatch(learn(method, data), error = function(e) list()))
  until <- Sys.time() + limit
  found <- NULL
  while (is.null(found) && Sys.time() < until) found <- parallel::mccollect(child, wait = FALSE, timeout = 5)
  if (is.null(found)) {
    tools::pskill(child$pid, tools::SIGKILL)
    parallel::mccollect(child)
  }
  if (is.list(found[[1L]])) found[[1L]] else list()
}

# FLOP's score in nats: the log-likelihood of standardised columns less log(n) for each edge.
gauss_bic <- function(data, dag) {
  n <- nrow(data)
  within <- crossprod(scale(data)) / (n - 1)
  variance <- vapply(seq_along(data), function(j) {
    parents <- which(dag[, j] > 0)
    if (!length(parents)) return(1)
    1 - drop(crossprod(within[parents, j], solve(within[parents, parents], within[parents, j])))
  }, 0)
  -n / 2 * sum(log(variance)) - log(n) * sum(dag)
}

scores_of <- function(kind, data, dag) {
  gamma <- 1 / sqrt(ncol(data))
  if (kind == "gauss") c(score = bn_score(data, dag, "bge", gamma = gamma), bic = gauss_bic(data, dag))
  else c(score = bn_score(data, dag, "bdeu", gamma = gamma), bic = bn_score(data, dag, "bic"))
}

# ---- tables ----

# Compares one method with a peer: on how many sets the score is as good or better, and the mean ratio of wrong
# edges with its 95 % interval. `own`: the method of ours.
compare <- function(rows, kind, own, peer, score) {
  mine <- rows[rows$kind == kind & rows$method == own, ]
  their <- rows[rows$kind == kind & rows$method == peer, ]
  shared <- intersect(mine$key, their$key)
  if (length(shared) < 2L) return(invisible())
  mine <- mine[match(shared, mine$key), ]
  their <- their[match(shared, their$key), ]
  ahead <- mine[[score]] >= their[[score]] - 1e-3
  ratio <- log((mine$shd + 1) / (their$shd + 1))
  interval <- exp(mean(ratio) + stats::qt(c(0.5, 0.025, 0.975), length(ratio) - 1) * stats::sd(ratio) /
                    sqrt(length(ratio)))
  share <- stats::binom.test(sum(ahead), length(ahead))$conf.int
  cat(sprintf(paste("%-10s %-8s beside %-5s by %-5s: ahead or equal on %d of %d (%.2f to %.2f), mean %+.2f nats;",
                    "SHD + 1 %.3f (%.3f to %.3f); seconds %.2f, above both peer and 2 s on %d\n"),
              kind, own, peer, if (score == "bic") "BIC" else if (kind == "gauss") "BGe" else "BDeu", sum(ahead),
              length(ahead), share[1L], share[2L], mean(mine[[score]] - their[[score]]), interval[1L], interval[2L],
              interval[3L], sum(mine$seconds) / sum(their$seconds), sum(mine$seconds > pmax(their$seconds, 2))))
}

report <- function(rows) {
  rows$key <- paste(rows$seed, rows$number)
  for (kind in unique(rows$kind)) {
    for (own in intersect(c("weft", "weft-bic"), rows$method[rows$kind == kind])) {
      score <- if (own == "weft") "score" else "bic"
      of <- rows[rows$kind == kind, ]
      for (peer in intersect(c("flop", "flop0", "boss", "hc", "tabu", "mmhc"), of$method)) {
        compare(rows, kind, own, peer, score)
      }
      best <- tapply(of[[score]][!startsWith(of$method, "weft")], of$key[!startsWith(of$method, "weft")], max)
      mine <- of[of$method == own & of$key %in% names(best), ]
      behind <- mine[mine[[score]] < best[mine$key] - 1e-3, ]
      cat(sprintf("%-10s %-8s ahead of or equal to all peers on %d of %d\n", kind, own, nrow(mine) - nrow(behind),
                  nrow(mine)))
      for (k in seq_len(nrow(behind))) {
        cat(sprintf("  behind by %.2f nats: set %s, %s\n", best[[behind$key[k]]] - behind[[score]][k], behind$key[k],
                    behind$set[k]))
      }
    }
  }
}

sets <- plan_sets()
done <- if (file.exists(file)) utils::read.csv(file) else NULL
for (number in seq.int(range[1L], min(utils::tail(range, 1L), nrow(sets)))) {
  set <- sets[number, ]
  if (set$kind == "network" && !nzchar(networks)) next
  drawn <- draw_set(set, number)
  name <- if (set$kind == "network") sprintf("%s, %d rows", set$shape, as.integer(set$rows))
          else sprintf("%s, %d nodes, %s, degree %d, %d rows", set$kind, as.integer(set$nodes), set$shape,
                       as.integer(set$degree), as.integer(set$rows))
  for (method in methods_for(drawn$kind)) {
    if (any(done$seed == seed & done$number == number & done$method == method)) next
    found <- learn_in_time(method, drawn$data)
    failed <- is.null(found$dag)
    scores <- if (failed) c(score = NA, bic = NA) else scores_of(drawn$kind, drawn$data, found$dag)
    row <- data.frame(seed, number, set = name, kind = drawn$kind, method, score = scores[["score"]],
                      bic = scores[["bic"]], seconds = if (failed) NA else round(found$seconds, 3),
                      shd = if (failed) NA else as.integer(bn_compare(found$dag, drawn$dag)$shd_cpdag))
    cat(sprintf("%d %s: %s %.2f (BIC %.2f), SHD %d, %.2f s\n", as.integer(number), name, method, row$score, row$bic,
                row$shd, row$seconds))
    utils::write.table(row, file, sep = ",", row.names = FALSE, append = file.exists(file),
                       col.names = !file.exists(file))
  }
}
report(stats::na.omit(utils::read.csv(file)))
