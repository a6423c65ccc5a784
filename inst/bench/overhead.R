# What a call costs beside its work: every exported function on tiny data (50 rows, 5 columns), with one thread and with
# the default number, in microseconds: by the clock the least of many calls, and of processor their mean, on which other
# work on the machine has little influence. Processes of two libraries run in turn, three times each; of the three the
# least of either figure counts.
#
# Left out are what is a whole workflow or an installation by its nature (gene_network(), weft_report(),
# weft_install_cuda(), add_results()) and what needs a device (weft_upload()).
#
# Usage: Rscript overhead.R [--rounds 3] [--threads one] [--csv overhead.csv] [library before] [library after]
# (default: the installed weft alone, with one thread and with all). `--csv` writes the table, with the machine and the
# day in its first line; the vignette on benchmarks shows it. A process of its own (`--one`) prints name, threads and
# both figures.

tiny_calls <- function() {
  set.seed(1)
  n <- 50
  names <- c("a", "b", "c", "d", "e")
  binary <- matrix(rbinom(5 * n, 1, 0.4), n, dimnames = list(NULL, names))
  class <- rep(0:1, n / 2)
  numbers <- matrix(rnorm(5 * n), n, dimnames = list(sprintf("s%d", 1:n), names))
  counts <- matrix(rpois(5 * n, 50), n, dimnames = list(sprintf("s%d", 1:n), names))
  y <- numbers[, 1]
  few <- list(iterations = 100, chains = 1, seed = 1, run = weft_run(progress = FALSE))
  pack <- mi_pack(binary, class)
  table <- bn_scores(binary, max_parents = 2, run = weft_run(progress = FALSE))
  nodes <- as.data.frame(lapply(as.data.frame(binary), factor, levels = 0:1))
  learned <- do.call(bn_learn, c(list(nodes, max_parents = 2), few))
  dag <- learned$best[[1]]$adjacency %||% learned$map
  best <- bn_exact(nodes, max_parents = 2, run = weft_run(progress = FALSE))
  fit <- pca(numbers, 2)
  m <- mi_matrix(numbers, estimator = "spearman")
  blocks <- irm(binary, chains = 1, sweeps = 4, seed = 1, run = weft_run(progress = FALSE))
  labels <- list(rep(1:2, n / 2), c(1, 1, 2, 2, 2))
  tree <- kernel_tree(numbers)
  machine <- if (requireNamespace("e1071", quietly = TRUE)) e1071::svm(numbers, factor(class), scale = FALSE)
  edges <- mi_network(m, method = "clr")
  fitted <- bn_fit(nodes, best$dag)
  calls <- list(
    mi_rank = function() mi_rank(binary, class), mi_pairs = function() mi_pairs(binary, class),
    mi_triples = function() mi_triples(binary, class),
    mi_tuples = function() mi_tuples(binary, class, order = 3, features = 1:4),
    mi_pack = function() weft_free(mi_pack(binary, class)), mi_matrix = function() mi_matrix(binary),
    "mi_matrix, spearman" = function() mi_matrix(numbers, estimator = "spearman"),
    "mi_network, clr" = function() mi_network(m, method = "clr"),
    "mi_network, aracne" = function() mi_network(m, method = "aracne"),
    "mi_network, mrnet" = function() mi_network(m, method = "mrnet"),
    mi_select = function() mi_select(binary, class, k = 2), "mi_rank, pack" = function() mi_rank(pack),
    discretize = function() discretize(numbers, bins = 3),
    regulation = function() regulation(numbers, regulators = 1:2), pca = function() pca(numbers, 2),
    pca_choose_k = function() pca_choose_k(numbers, method = "gavish_donoho"),
    bn_scores = function() bn_scores(nodes, max_parents = 2),
    bn_learn = function() do.call(bn_learn, c(list(nodes, max_parents = 2), few)),
    bn_exact = function() bn_exact(nodes, max_parents = 2),
    bn_prior = function() bn_prior(names, required = cbind("a", "b")), bn_score = function() bn_score(nodes, best$dag),
    bn_fit = function() bn_fit(nodes, best$dag), bn_cpdag = function() bn_cpdag(best$dag),
    bn_local_score = function() bn_local_score(nodes, "a", c("b", "c")),
    bn_log_lik = function() bn_log_lik(fitted, nodes), bn_sample = function() bn_sample(fitted, 10, seed = 1),
    bn_compare = function() bn_compare(best$dag, best$dag), bn_convert = function() bn_convert(best$dag, "adjacency"),
    irm = function() irm(binary, chains = 1, sweeps = 4, seed = 1),
    irm_log_posterior = function() irm_log_posterior(binary, labels[[1]], labels[[2]]),
    irm_nmi = function() irm_nmi(labels[[1]], rev(labels[[1]])), irm_auc = function() irm_auc(y, class),
    irm_sample = function() irm_sample(50, 5, 2, seed = 1), kernel_sum = function() kernel_sum(numbers, bandwidth = 1),
    "kernel_sum, tree" = function() kernel_sum(numbers, bandwidth = 1, method = "tree"),
    kernel_tree = function() kernel_tree(numbers),
    "kernel_sum, made tree" = function() kernel_sum(numbers, tree, bandwidth = 1),
    kde = function() kde(numbers, bandwidth = "scott"),
    kernel_bandwidth = function() kernel_bandwidth(numbers, "lscv", grid = c(0.5, 1)),
    kernel_regression = function() kernel_regression(numbers, y, bandwidth = 1),
    gp_regression = function() gp_regression(numbers, y), kernel_pca = function() kernel_pca(numbers, 2),
    svm_predict = function() svm_predict(machine, numbers), gene_ranking = function() gene_ranking(counts, class),
    gene_pairs = function() gene_pairs(counts, class), gene_components = function() gene_components(counts, k = 2),
    gene_mi_network = function() gene_mi_network(counts), gene_clusters = function() gene_clusters(counts, sweeps = 5),
    gene_quality = function() gene_quality(counts), gene_outliers = function() gene_outliers(counts),
    gene_regulation = function() gene_regulation(counts, regulators = c("a", "b")),
    gene_bayes = function() gene_bayes(counts, genes = 3, iterations = 100),
    network_convert = function() network_convert(edges, "igraph"), network_tables = function() network_tables(edges),
    tidy = function() tidy(fit), glance = function() glance(fit), augment = function() augment(fit),
    weft_backend = function() weft_backend(), weft_threads = function() weft_threads(),
    weft_devices = function() weft_devices(), weft_ranks = function() weft_ranks(),
    weft_sitrep = function() weft_sitrep(), weft_example = function() weft_example()
  )
  calls <- c(calls, tiny_files(edges, counts, binary, nodes, best))
  works <- function(name) {
    why <- tryCatch({ suppressWarnings(calls[[name]]()); NULL }, error = conditionMessage)
    if (!is.null(why)) cat("#", name, ":", sub("\n.*", "", why), "\n", file = stderr())
    is.null(why)
  }
  calls[vapply(names(calls), works, NA)]
}

# Calls that read or write files, and others that take what those above return.
tiny_files <- function(edges, counts, binary, nodes, best) {
  file <- function(...) tempfile(fileext = paste0(".", ...))
  gmt <- file("gmt")
  writeLines(c("one\tan example\ta\tb\tc", "two\tanother\tc\td"), gmt)
  bif <- file("bif")
  writeLines(c("network example { }", "variable a { type discrete [ 2 ] { y, n }; }",
               "variable b { type discrete [ 2 ] { y, n }; }", "probability ( a ) { table 0.2, 0.8; }",
               "probability ( b | a ) { (y) 0.9, 0.1; (n) 0.05, 0.95; }"), bif)
  numbers <- file("bin")
  writeBin(as.double(counts), numbers)
  stem <- tempfile()
  writeBin(as.raw(c(0x6c, 0x1b, 0x01, 0xdc, 0x0f)), paste0(stem, ".bed"))
  writeLines(c("1 rs1 0 100 A G", "1 rs2 0 200 C T"), paste0(stem, ".bim"))
  writeLines(sprintf("f%d i%d 0 0 0 -9", 1:4, 1:4), paste0(stem, ".fam"))
  words <- Matrix::Matrix(binary, sparse = TRUE, dimnames = list(sprintf("w%d", seq_len(nrow(binary))), NULL))
  bag <- tempfile()
  write_bag_of_words(words, bag, paste0(bag, ".vocab"))
  sparse <- Matrix::Matrix(counts, sparse = TRUE)
  stored <- if (exists("weft_import")) weft_import(sparse, file("weft"))
  checkpoint <- tempfile()
  irm(binary, chains = 1, sweeps = 4, seed = 1, run = weft_run(progress = FALSE),
      control = list(checkpoint = checkpoint))
  posterior <- tryCatch(bn_exact(nodes, max_parents = 2, posterior = "dag",
                                 run = weft_run(progress = FALSE)), error = function(e) NULL)
  list(
    read_gmt = function() read_gmt(gmt), gene_sets = function() gene_sets(c("a", "b"), read_gmt(gmt), letters),
    bn_read = function() bn_read(bif), bn_features = function() bn_features(posterior, draws = 100, seed = 1),
    weft_file = function() weft_file(numbers, ncol = 5)[1:2, ],
    read_plink = function() read_plink(stem), plink_file = function() plink_file(stem),
    read_bag_of_words = function() read_bag_of_words(bag, paste0(bag, ".vocab")),
    write_bag_of_words = function() write_bag_of_words(words, bag, paste0(bag, ".vocab")),
    write_network = function() write_network(edges, file("graphml")),
    as_igraph = function() as_igraph(edges), irm_resume = function() irm_resume(checkpoint),
    irm_words = function() irm_words(irm(words, chains = 1, sweeps = 4, seed = 1), top = 2),
    weft_import = function() weft_import(sparse, file("weft")), weft_store = function() stored[1:2, 1:2],
    store_normalise = function() store_normalise(stored), store_data = function() store_data(stored),
    weft_calibrate = function() weft_calibrate(save = FALSE)
  )
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

option <- function(name, default) {
  given <- commandArgs(TRUE)
  at <- match(paste0("--", name), given)
  if (is.na(at)) default else given[at + 1L]
}

one_process <- function(of) {
  library(weft)
  calls <- tiny_calls()
  for (threads in of) {
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
  lines <- system2(file.path(R.home("bin"), "Rscript"),
                   c(shQuote(script), "--one", "--threads", option("threads", "both")), stdout = TRUE,
                   env = paste0("R_LIBS=", shQuote(paths)))
  out <- utils::read.delim(text = lines, header = FALSE, col.names = c("call", "threads", "least", "processor"))
  out$library <- library
  out
}

least_of <- function(rounds) {
  stats::aggregate(cbind(least, processor) ~ call + threads + library, do.call(rbind, rounds), min)
}

# What calls that take more than a millisecond do in that time.
checked <- "what gene_quality() looks at: orientation, scale, duplicates, missing values"
clustered <- "sweeps of a co-clustering, consensus of their samples, what clusters are worth"
halves <- "regressions in 200 halves of the samples, with all of them and three times without one"
work_of <- c(
  gene_bayes = "20 halves of the samples: scores, chains and diagnostics of each",
  gene_outliers = "components, a plane of the others for each sample, 10,000 draws of what distances do by chance",
  gp_regression = "a factor of the kernel matrix, solved and checked", gene_sets = "a test for each set, and tables",
  bn_features = "100 graphs are drawn; paths, blankets and equivalence class of each different one",
  gene_components = "the data, 19 permutations of them and 19 draws of their signs are decomposed",
  gene_regulation = halves, regulation = halves, gene_clusters = clustered, irm = clustered, irm_words = clustered,
  irm_resume = clustered, gene_quality = checked, gene_ranking = checked, gene_pairs = checked,
  gene_mi_network = checked, kernel_pca = "all 49 eigenvectors of the centred kernel",
  kernel_bandwidth = "scores of the bandwidths asked for", bn_learn = "scores, 100 steps, best graphs and diagnostics",
  write_network = "text of every node and edge"
)

given <- commandArgs(TRUE)
if ("--one" %in% given) {
  one_process(switch(option("threads", "both"), both = c("one", "all"), option("threads", "both")))
} else {
  options <- which(startsWith(given, "--"))
  libraries <- given[-c(options, options + 1L, length(given) + 1L)]
  if (!length(libraries)) libraries <- dirname(find.package("weft"))
  rounds <- seq_len(as.integer(option("rounds", 3)))
  found <- least_of(unlist(lapply(rounds, function(k) lapply(libraries, asked)), recursive = FALSE))
  wide <- stats::reshape(found, direction = "wide", idvar = c("call", "library"), timevar = "threads")
  if (length(libraries) > 1L) {
    wide$library <- c("before", "after")[match(wide$library, libraries)]
    wide <- stats::reshape(wide, direction = "wide", idvar = "call", timevar = "library")
  } else wide$library <- NULL
  shown <- wide[order(-wide[[ncol(wide)]]), ]
  shown[-1L] <- lapply(shown[-1L], round)
  shown$work <- unname(ifelse(shown[[ncol(shown)]] > 1000, work_of[shown$call], NA))
  print(shown, row.names = FALSE)
  if (nzchar(file <- option("csv", ""))) {
    writeLines(sprintf("# inst/bench/overhead.R: %d processors, %s", parallel::detectCores(), Sys.Date()), file)
    suppressWarnings(utils::write.table(shown, file, append = TRUE, sep = ",", row.names = FALSE))
  }
}
