# Networks of the Bayesian network repository: learned from drawn rows by bn_learn() ("learn") and bn_search(), which
# expects few edges ("sparse"), each by the BIC and by BDeu, their default; by bn_search() with the plain BIC
# ("search"), and by chains that start from what this found ("both"); beside bnlearn's hc(), tabu() and mmhc() by either
# score; and sampled under a prior that is uniform over graphs, beside BiDAG's partitionMCMC() and sumu's Gadget; peers
# where they are installed.
#   WEFT_BN_NETWORKS=folder [WEFT_SUMU_PYTHON=python] Rscript inst/bench/bn-repository.R [rows = 5000]
#     [sampled = alarm] [seed = 1]
#   WEFT_BN_NETWORKS=folder[:folder] Rscript inst/bench/bn-repository.R files [rows = 1000] [seed = 1]
#   Rscript inst/bench/bn-repository.R independent: edges that bn_search() finds among 20 independent columns
# A folder has files .bif, .net or .dsc, compressed or not, .rds of bnlearn's `bn.fit`, or .json of linear Gaussian
# networks (as in the wheel of Python's pgmpy). `sampled` names the one on which samplers are compared, on its first
# 1,000 rows; WEFT_SUMU_PYTHON is a Python that has sumu. "files" reads, learns and scores each network: the score of
# the network found less the true one's, and the log-likelihood of a new row given the network found, with parameters
# from the same rows, less its log-likelihood given the true one. Seconds are processor time of one thread, so that
# other work on the machine matters less. Columns are in a random order, which the seed determines: in the files,
# parents come before their children, and hc() directs edges of equal score by the order of the columns.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
if (identical(given, "independent")) {
  for (levels in c(3, 10)) for (rows in c(50, 200, 1000)) {
    edges <- vapply(1:3, function(seed) {
      set.seed(seed)
      x <- as.data.frame(lapply(1:20, function(j) factor(sample(levels, rows, TRUE), seq_len(levels))),
                         col.names = sprintf("v%d", 1:20))
      vapply(c("bdeu", "bic"), function(score) sum(bn_search(x, score, seed = 1, run = weft_run(threads = 1))$dag), 0)
    }, c(bdeu = 0, bic = 0))
    cat(sprintf("%2d levels, %4d rows: BDeu %.1f edges, BIC %.1f\n", levels, rows, mean(edges["bdeu", ]),
                mean(edges["bic", ])))
  }
  quit()
}
only_files <- length(given) > 0L && given[1L] == "files"
if (only_files) given <- c(if (length(given) > 1L) given[2L] else 1000, "", given[-(1:2)])
n <- if (length(given)) as.numeric(given[1L]) else 5000
sampled <- if (length(given) > 1L) given[2L] else "alarm"
seed <- if (length(given) > 2L) as.numeric(given[3L]) else 1
folders <- strsplit(Sys.getenv("WEFT_BN_NETWORKS"), ":", fixed = TRUE)[[1L]]
endings <- "[.]((bif|net|dsc)([.](gz|bz2|xz))?|rds|json)$"
files <- list.files(folders, endings, full.names = TRUE)
if (!length(files)) stop("WEFT_BN_NETWORKS must be a folder with files .bif, .net, .dsc, .rds or .json.")
machine_line()

read_network <- function(file) {
  if (endsWith(file, ".rds")) return(bn_convert(readRDS(file), "fit"))
  if (!endsWith(file, ".json")) return(bn_read(file))
  parts <- jsonlite::fromJSON(file)
  nodes <- lapply(parts$cpds[parts$nodes], function(node) {
    list(parents = as.character(node$parents), coefficients = unlist(node$coefficients), sd = sqrt(node$variance))
  })
  bn_convert(structure(nodes, class = "bn.fit"), "fit")
}

# Rows of a network, the columns in random order.
sample_rows <- function(network, rows, seed) {
  data <- bn_sample(network, rows, seed = seed)
  set.seed(seed)
  data[sample(length(data))]
}

peers <- c("hc", "tabu", "mmhc")

timed <- function(f) {
  took <- system.time(value <- f())
  list(value = value, seconds = sum(took[1:2]))
}

# One line for a file. bn_learn() is for up to 60 nodes here.
read_learn_score <- function(file) {
  read <- timed(function() read_network(file))
  network <- read$value
  data <- sample_rows(network, n, seed)
  new <- bn_sample(network, 1000, seed = seed + 1)[names(data)]
  true <- network$dag[names(data), names(data)]
  score <- if (network$gaussian) "bge" else "bdeu"
  gamma <- 1 / sqrt(length(data))
  found <- timed(function() bn_search(data, score, seed = 1, run = weft_run(threads = 1)))
  learned <- if (length(data) <= 60) {
    timed(function() bn_learn(data, score = score, gamma = gamma, seed = 1, run = weft_run("cpu", threads = 1)))
  }
  truth <- bn_score(data, true, score, gamma = gamma)
  lost <- mean(bn_log_lik(bn_fit(data, found$value$dag), new)) - mean(bn_log_lik(network, new))
  cat(sprintf(paste0("%-20s %4d nodes %4d edges, up to %3d states, read %.1f s; bn_search() %.1f s, %+.1f nats, ",
                     "SHD %g, %+.2f nats a row%s\n"),
              basename(file), nrow(network$dag), sum(network$dag), max(lengths(network$labels), 0L), read$seconds,
              found$seconds, found$value$score - truth, as.numeric(bn_compare(found$value, true)$shd_cpdag), lost,
              if (is.null(learned)) "" else sprintf("; bn_learn() %.1f s, %+.1f", learned$seconds,
                                                    learned$value$score - truth)))
}

# F1 of adjacencies, and of arrows among the directed edges, both of equivalence classes.
f1_scores <- function(dag, truth) {
  found <- bn_cpdag(dag) != 0
  true <- bn_cpdag(truth) != 0
  f1 <- function(a, b) if (any(a) || any(b)) 2 * sum(a & b) / (sum(a) + sum(b)) else 1
  c(adjacency = f1(found | t(found), true | t(true)), arrow = f1(found & !t(found), true & !t(true)))
}

# Chains over all sets of up to four of a node's neighbours in the search's network and of the six nodes that tell most
# of it. A node that has more parents there may lose some, so that the better of both networks counts.
search_and_chains <- function(data) {
  found <- bn_search(data, "bic", gamma = 1, seed = 1, run = weft_run(threads = 1))$dag
  near <- (found | t(found)) + 0
  information <- mi_matrix(data, estimator = "empirical", run = weft_run(threads = 1))
  diag(information) <- -Inf
  for (v in colnames(near)) near[names(utils::head(sort(information[, v], decreasing = TRUE), 6L)), v] <- 1
  diag(near) <- 0
  table <- bn_scores(data, 4, "bic", candidates = pmax(near, t(near)), run = weft_run(threads = 1))
  fit <- bn_learn(table, iterations = 2e5, chains = 4, start = found, seed = 1, run = weft_run("cpu", threads = 1))
  if (fit$score > bn_score(data, found, "bic")) fit$dag else found
}

bdeu_name <- function(learner) paste0(learner, ", BDeu")
kind_of <- function(learner) if (endsWith(learner, bdeu_name(""))) "bdeu" else "bic"

# A row for each learner.
learn_all <- function(name, data, truth) {
  learn <- function(score) function() bn_learn(data, score = score, seed = 1, run = weft_run("cpu", threads = 1))$dag
  learners <- list(
    learn = learn("bic"),
    search = function() bn_search(data, "bic", gamma = 1, seed = 1, run = weft_run(threads = 1))$dag,
    sparse = function() bn_search(data, "bic", seed = 1, run = weft_run(threads = 1))$dag,
    both = function() search_and_chains(data)
  )
  learners[[bdeu_name("learn")]] <- learn("bdeu")
  learners[[bdeu_name("sparse")]] <- function() bn_search(data, seed = 1, run = weft_run(threads = 1))$dag
  if (requireNamespace("bnlearn", quietly = TRUE)) {
    peer <- function(method, ...) function() {
      bnlearn::amat(getExportedValue("bnlearn", method)(data, ...))[names(data), names(data)]
    }
    learners[peers] <- lapply(peers, peer)
    by_bdeu <- list(score = "bde", iss = 1)
    learners[bdeu_name(peers)] <- list(peer("hc", score = "bde", iss = 1), peer("tabu", score = "bde", iss = 1),
                                       peer("mmhc", maximize.args = by_bdeu))
  }
  rows <- NULL
  for (learner in names(learners)) {
    done <- tryCatch(timed(learners[[learner]]), error = identity)
    if (inherits(done, "error")) {
      cat(sprintf("%-12s %-12s failed: %s\n", name, learner, conditionMessage(done)))
      next
    }
    f1 <- f1_scores(done$value, truth)
    score <- bn_score(data, done$value, kind_of(learner))
    shd <- as.integer(bn_compare(done$value, truth)$shd_cpdag)
    cat(sprintf("%-12s %-12s score %14.2f  SHD of classes %4d  F1 %.3f (arrows %.3f)  %8.2f s\n", name, learner,
                score, shd, f1[["adjacency"]], f1[["arrow"]], done$seconds))
    rows <- rbind(rows, data.frame(network = name, learner, score, shd))
  }
  rows
}

# On how many networks a learner of ours is as good as every peer or better: by the score among those with the same one,
# by wrong edges also among those with the BIC, which is the peers' own default.
tally <- function(rows) {
  theirs <- c(peers, bdeu_name(peers))
  for (learner in setdiff(rows$learner, theirs)) {
    better <- vapply(split(rows, rows$network), function(of) {
      own <- of[of$learner == learner, ]
      same <- of[of$learner %in% theirs & vapply(of$learner, kind_of, "") == kind_of(learner), ]
      c(score = own$score >= max(same$score) - 1e-6 * abs(own$score), same = own$shd <= min(same$shd),
        bic = own$shd <= min(of$shd[of$learner %in% peers]))
    }, c(score = NA, same = NA, bic = NA))
    cat(sprintf("%s, best or tied of %d networks: score on %d, SHD on %d, SHD beside peers by the BIC on %d\n", learner,
                ncol(better), sum(better["score", ]), sum(better["same", ]), sum(better["bic", ])))
  }
}

# Independent draws that a chain's mean of each edge is worth: p (1 - p) over the variance between chains. `edges`: a
# column per chain. Edges near 0 and 1 are left out: few chains say nothing of their errors.
effective_draws <- function(edges) {
  mean <- rowMeans(edges)
  open <- mean > 0.05 & mean < 0.95
  (mean * (1 - mean) / apply(edges, 1L, stats::var))[open]
}

report_sampler <- function(what, edges, seconds) {
  each <- effective_draws(edges) * ncol(edges) / seconds
  cat(sprintf("%-24s %d chains, %.1f s; effective draws per second: median of %d edges %.1f, harmonic mean %.1f\n",
              what, ncol(edges), seconds, length(each), stats::median(each), 1 / mean(1 / each)))
}

# The same candidates for both: neighbours in the best graph, and one more parent each.
sample_all <- function(data, chains = 8) {
  p <- length(data)
  best <- bn_learn(data, 4, seed = 1)$dag
  allowed <- (best | t(best)) + 0
  most <- max(colSums(allowed)) + 1
  table <- bn_scores(data, most, candidates = allowed, keep = "sum")
  ours <- timed(function() {
    vapply(seq_len(chains), function(seed) {
      as.vector(bn_learn(table, target = "uniform", iterations = 20000, chains = 1, seed = seed,
                         run = weft_run(threads = 1))$edges)
    }, double(p * p))
  })
  report_sampler("weft, uniform", ours$value, ours$seconds)
  if (!requireNamespace("BiDAG", quietly = TRUE)) return(cat("BiDAG is not installed\n"))
  codes <- as.data.frame(lapply(data, function(x) as.integer(x) - 1L))
  theirs <- tryCatch(timed(function() {
    scores <- BiDAG::scoreparameters("bdecat", codes, bdecatpar = list(chi = 1, edgepf = 1))
    vapply(seq_len(chains), function(seed) {
      set.seed(seed)
      fit <- BiDAG::partitionMCMC(scores, startspace = allowed, iterations = 20000)
      kept <- utils::tail(fit$traceadd$incidence, ceiling(0.75 * length(fit$traceadd$incidence)))
      as.vector(as.matrix(Reduce(`+`, kept))) / length(kept)
    }, double(p * p))
  }), error = identity)
  if (inherits(theirs, "error")) return(cat(sprintf("BiDAG failed: %s\n", conditionMessage(theirs))))
  report_sampler("BiDAG, partitionMCMC", theirs$value, theirs$seconds)
  cat(sprintf("greatest difference of the means %.3f\n", max(abs(rowMeans(ours$value) - rowMeans(theirs$value)))))
}

# Gadget has a prior and candidates of its own (inst/bench/bn-sumu.py).
sample_sumu <- function(data, chains = 8) {
  python <- Sys.getenv("WEFT_SUMU_PYTHON")
  if (!nzchar(python)) return(cat("WEFT_SUMU_PYTHON is not set\n"))
  script <- "inst/bench/bn-sumu.py"
  codes <- tempfile(fileext = ".csv")
  out <- tempfile(fileext = ".csv")
  utils::write.table(vapply(data, function(x) as.integer(x) - 1L, integer(nrow(data))), codes, row.names = FALSE,
                     col.names = FALSE)
  if (system2(python, c("-W", "ignore", script, codes, chains, 20000, out))) return(cat("sumu failed\n"))
  lines <- as.matrix(utils::read.table(out))
  report_sampler("sumu, Gadget", t(lines[, -1L]), sum(lines[, 1L]))
}

if (only_files) {
  failed <- 0
  for (file in files) {
    failed <- failed + tryCatch({
      read_learn_score(file)
      0
    }, error = function(e) {
      cat(sprintf("%-20s FAILED: %s\n", basename(file), conditionMessage(e)))
      1
    })
  }
  cat(sprintf("%d files, %d failed\n", length(files), as.integer(failed)))
  quit(status = failed > 0)
}

rows <- NULL
for (file in files) {
  network <- read_network(file)
  if (any(lengths(network$labels) == 0L) || network$gaussian) next # learn_all() is for categories
  name <- sub(endings, "", basename(file))
  data <- sample_rows(network, n, seed)
  rows <- rbind(rows, learn_all(name, data, network$dag[names(data), names(data)]))
  if (name != sampled) next
  sample_all(utils::head(data, 1000))
  sample_sumu(utils::head(data, 1000))
}
if (any(rows$learner == "hc")) tally(rows)
