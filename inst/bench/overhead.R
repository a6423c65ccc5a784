# What a call costs beside its work: every exported function on tiny data (50 rows, 5 columns), with one thread and with
# the default number, in microseconds: by the clock the least of many calls, and of processor their mean, on which other
# work on the machine has little influence. Processes of two libraries run in turn, three times each; of the three the
# least of either figure counts.
#
# Usage: Rscript overhead.R [library before] [library after]    (default: the installed weft alone)
# A process of its own (`--one`) prints name, threads and both figures.

tiny_calls <- function() {
  set.seed(1)
  n <- 50
  names <- c("a", "b", "c", "d", "e")
  binary <- matrix(rbinom(5 * n, 1, 0.4), n, dimnames = list(NULL, names))
  class <- rep(0:1, n / 2)
  numbers <- matrix(rnorm(5 * n), n, dimnames = list(sprintf("s%d", 1:n), names))
  counts <- matrix(rpois(5 * n, 50), n, dimnames = list(sprintf("s%d", 1:n), names))
  y <- numbers[, 1]
  few <- list(iterations = 100, chains = 1, seed = 1, progress = FALSE)
  pack <- mi_pack(binary, class)
  table <- bn_scores(binary, max_parents = 2, progress = FALSE)
  nodes <- as.data.frame(lapply(as.data.frame(binary), factor, levels = 0:1))
  learned <- do.call(bn_learn, c(list(nodes, max_parents = 2), few))
  dag <- learned$best[[1]]$adjacency %||% learned$map
  best <- bn_exact(nodes, max_parents = 2, progress = FALSE)
  fit <- pca(numbers, 2)
  m <- mi_matrix(numbers, estimator = "spearman")
  blocks <- irm(binary, chains = 1, sweeps = 4, seed = 1, progress = FALSE)
  labels <- list(rep(1:2, n / 2), c(1, 1, 2, 2, 2))
  tree <- kernel_tree(numbers)
  machine <- if (requireNamespace("e1071", quietly = TRUE)) e1071::svm(numbers, factor(class), scale = FALSE)
  edges <- mi_network(m, method = "clr")
  fitted <- bn_fit(best$dag, nodes)
  calls <- list(
    mi_rank = function() mi_rank(binary, class), mi_pairs = function() mi_pairs(binary, class),
    mi_triples = function() mi_triples(binary, class), mi_tuples = function() mi_tuples(binary, class, order = 3,
                                                                                        features = 1:4),
    mi_pack = function() weft_free(mi_pack(binary, class)), mi_matrix = function() mi_matrix(binary),
    "mi_matrix, spearman" = function() mi_matrix(numbers, estimator = "spearman"),
    "mi_network, clr" = function() mi_network(m, method = "clr"), "mi_network, aracne" = function() mi_network(m,
        method = "aracne"),
    "mi_network, mrnet" = function() mi_network(m, method = "mrnet"),
    mi_select = function() mi_select(binary, class, k = 2), "mi_rank, pack" = function() mi_rank(pack),
    discretize = function() discretize(numbers, bins = 3), regulation = function() regulation(numbers,
        regulators = 1:2),
    pca = function() pca(numbers, 2), pca_choose_k = function() pca_choose_k(numbers, method = "gavish_donoho"),
    bn_scores = function() bn_scores(nodes, max_parents = 2), bn_learn = function() do.call(bn_learn, c(list(nodes,
        max_parents = 2), few)),
    bn_exact = function() bn_exact(nodes, max_parents = 2), bn_prior = function() bn_prior(names, required = cbind("a",
        "b")),
    bn_score = function() bn_score(nodes, best$dag), bn_fit = function() bn_fit(best$dag, nodes),
      bn_cpdag = function() bn_cpdag(best$dag),
    bn_local_score = function() bn_local_score(nodes, "a", c("b", "c")),
    bn_log_lik = function() bn_log_lik(fitted, nodes),
    bn_sample = function() bn_sample(fitted, 10, seed = 1),
    bn_compare = function() bn_compare(best$dag, best$dag), bn_convert = function() bn_convert(best$dag, "adjacency"),
    irm = function() irm(binary, chains = 1, sweeps = 4, seed = 1),
    irm_log_posterior = function() irm_log_posterior(binary, labels[[1]], labels[[2]]),
    irm_nmi = function() irm_nmi(labels[[1]], rev(labels[[1]])), irm_auc = function() irm_auc(y, class),
    irm_sample = function() irm_sample(50, 5, 2, seed = 1),
    kernel_sum = function() kernel_sum(numbers, bandwidth = 1), "kernel_sum, tree" = function() kernel_sum(numbers,
        bandwidth = 1, method = "tree"),
    kernel_tree = function() kernel_tree(numbers), "kernel_sum, made tree" = function() kernel_sum(numbers, tree,
        bandwidth = 1),
    kde = function() kde(numbers, bandwidth = "scott"), kernel_bandwidth = function() kernel_bandwidth(numbers, "lscv",
        grid = c(0.5, 1)),
    kernel_regression = function() kernel_regression(numbers, y, bandwidth = 1),
      gp_regression = function() gp_regression(numbers, y),
    kernel_pca = function() kernel_pca(numbers, 2), svm_predict = function() svm_predict(machine, numbers),
    gene_ranking = function() gene_ranking(counts, class), gene_pairs = function() gene_pairs(counts, class),
    gene_components = function() gene_components(counts, k = 2), gene_mi_network = function() gene_mi_network(counts),
    gene_clusters = function() gene_clusters(counts, sweeps = 5), gene_quality = function() gene_quality(counts),
    gene_outliers = function() gene_outliers(counts), gene_regulation = function() gene_regulation(counts,
        regulators = c("a", "b")),
    gene_bayes = function() gene_bayes(counts, genes = 3, iterations = 100),
    network_convert = function() network_convert(edges, "igraph"), network_tables = function() network_tables(edges),
    tidy = function() tidy(fit), glance = function() glance(fit), augment = function() augment(fit),
    weft_backend = function() weft_backend(), weft_threads = function() weft_threads(),
      weft_devices = function() weft_devices(),
    weft_ranks = function() weft_ranks(), weft_sitrep = function() weft_sitrep(),
      weft_example = function() weft_example()
  )
  works <- function(name) {
    why <- tryCatch({ suppressWarnings(calls[[name]]()); NULL }, error = conditionMessage)
    if (!is.null(why)) cat("#", name, ":", sub("\n.*", "", why), "\n", file = stderr())
    is.null(why)
  }
  calls[vapply(names(calls), works, NA)]
}

`%||%` <- function(a, b) if (is.null(a)) b else a

# Microseconds of a call: of processor on average, and by the clock at least.
microseconds <- function(f) {
  f()
  began <- proc.time()
  least <- Inf
  calls <- 0
  repeat {
    at <- as.double(Sys.time()) # finer than proc.time()
    f()
    least <- min(least, as.double(Sys.time()) - at)
    calls <- calls + 1
    spent <- proc.time() - began
    if (sum(spent[1:2]) > 0.06 && calls > 2 || spent[[3L]] > 0.6) break
  }
  1e6 * c(least = least, processor = sum(spent[1:2]) / calls)
}

one_process <- function() {
  library(weft)
  calls <- tiny_calls()
  for (threads in c("one", "all")) {
    options(weft.threads = if (threads == "one") 1)
    for (name in names(calls)) {
      t <- suppressWarnings(microseconds(calls[[name]]))
      cat(name, threads, t[["least"]], t[["processor"]], sep = "\t")
      cat("\n")
    }
  }
}

# Of a library: a data frame with a row for each function and number of threads.
asked <- function(library) {
  script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  paths <- paste(c(library, .libPaths()), collapse = ":")
  lines <- system2(file.path(R.home("bin"), "Rscript"), c(shQuote(script), "--one"), stdout = TRUE,
                   env = paste0("R_LIBS=", shQuote(paths)))
  out <- utils::read.delim(text = lines, header = FALSE, col.names = c("call", "threads", "least", "processor"))
  out$library <- library
  out
}

least_of <- function(rounds) {
  stats::aggregate(cbind(least, processor) ~ call + threads + library, do.call(rbind, rounds), min)
}

given <- commandArgs(TRUE)
if ("--one" %in% given) {
  one_process()
} else {
  libraries <- if (length(given)) given else dirname(find.package("weft"))
  found <- least_of(unlist(lapply(1:3, function(k) lapply(libraries, asked)), recursive = FALSE))
  wide <- stats::reshape(found, direction = "wide", idvar = c("call", "library"), timevar = "threads")
  if (length(libraries) > 1L) {
    wide$library <- c("before", "after")[match(wide$library, libraries)]
    wide <- stats::reshape(wide, direction = "wide", idvar = "call", timevar = "library")
  } else wide$library <- NULL
  shown <- wide[order(-wide[[ncol(wide)]]), ]
  shown[-1L] <- lapply(shown[-1L], round)
  print(shown, row.names = FALSE)
}
