# Calls with one wrong argument at a time: what comes back must be a result or a classed condition of weft's.

# Valid, quick calls: list(exported, methods), by name list(f, args); arguments that are not named keep their defaults.
# `variants`: the same functions otherwise, too (helper-variants.R).
valid_calls <- function(variants = FALSE) {
  path <- errors_folder()
  d <- errors_data(path)
  fits <- errors_fits(d, path)
  exported <- c(mi_arguments(d, fits, path), kernel_arguments(d), bn_arguments(d, fits), irm_arguments(d, fits, path),
                gene_arguments(d, fits, path), optional_arguments(d))
  list(exported = exported_calls(exported), methods = errors_methods(d, fits), fits = fits,
       variants = if (variants) variant_calls(d, fits, path))
}

# list(f, args, sweep) of exported functions, from the arguments by the function's name.
exported_calls <- function(arguments) {
  lapply(stats::setNames(nm = names(arguments)), function(name) {
    f <- getExportedValue("weft", name)
    list(f = f, args = as_arguments(f, c(arguments[[name]], quiet_arguments(f, names(arguments[[name]])))),
         sweep = setdiff(names(formals(f)), "..."))
  })
}

# Where files go: a function of their names.
errors_folder <- function() {
  folder <- tempfile("errors")
  dir.create(folder)
  function(name) file.path(folder, name)
}

quiet_arguments <- function(f, given) {
  quiet <- list(run = weft_run("cpu", threads = 1, progress = FALSE), seed = 1)
  quiet[setdiff(intersect(names(quiet), names(formals(f))), given)]
}

# Without `sparse`, package Matrix stays unloaded.
errors_data <- function(path, sparse = TRUE) {
  set.seed(1)
  n <- 30L
  numbers <- matrix(stats::rnorm(n * 4), n, dimnames = list(NULL, c("a", "b", "c", "d")))
  levels <- as.data.frame(lapply(1:4, function(j) factor(sample(c("u", "v"), n, TRUE))),
                          col.names = c("a", "b", "c", "d"))
  writeBin(as.raw(c(0x6c, 0x1b, 0x01, 0xdc, 0x0f)), path("snps.bed"))
  writeLines(c("1 rs1 0 100 A G", "1 rs2 0 200 C T"), path("snps.bim"))
  writeLines(sprintf("f%d i%d 0 0 0 -9", 1:4, 1:4), path("snps.fam"))
  writeBin(as.double(1:6), path("numbers"))
  writeLines("one\tan example\ta\tb", path("sets.gmt"))
  words <- if (sparse) Matrix::sparseMatrix(i = c(1, 2, 2), j = c(1, 1, 3), dims = c(2, 3),
                                            dimnames = list(c("gene", "cell"), NULL))
  if (sparse) write_bag_of_words(words, path("words"), path("words.vocab"))
  dag <- matrix(0L, 3, 3, dimnames = list(letters[1:3], letters[1:3]))
  dag["a", "b"] <- 1L
  variants <- matrix(rep_len(c(0L, 1L, 2L, 1L, 0L, NA, 2L), n * 4), n, dimnames = dimnames(numbers))
  list(numbers = numbers, levels = levels, variants = variants,
       class = rep(c("case", "control"), length.out = n), words = words, dag = dag,
       y = numbers[, 1]^2, links = if (sparse) irm_sample(12, 12, k = 2, seed = 1)$A else diag(12),
       counts = matrix(stats::rpois(40 * 12, 3), 40, dimnames = list(NULL, letters[1:12])),
       genes = weft_example("expression", n = 40, p = 12, seed = 1, spoilt = FALSE),
       modules = matrix(c(rep(sin((1:28)^2), 6), rep(cos((1:28)^2), 6)) + 0.4 * sin((1:336)^2 / 3), 28,
                        dimnames = list(NULL, sprintf("m%d", 1:12))))
}

errors_fits <- function(d, path) {
  quiet <- function(...) call_with(gene_network, list(..., seed = 1, run = weft_run(progress = FALSE),
                                                      steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE,
                                                                   outliers = FALSE)))
  bn <- bn_learn(d$levels[1:3], iterations = 50, chains = 1, seed = 1, run = weft_run(progress = FALSE))
  checked <- gene_quality(d$genes$x, d$genes$class)
  components <- gene_components(checked, 3, leading = 2, seed = 1)
  other <- d$dag
  other[] <- c(0, .2, .3, .9, 0, .1, .2, .3, 0)
  list(
    weft_mi = mi_rank(d$levels, d$class), weft_mi_tuples = mi_pairs(d$levels, d$class),
       weft_mi_matrix = mi_matrix(d$levels), weft_pair_scan = pair_scan(d$variants, d$class, d$numbers[, 2]),
    weft_transfer = transfer_entropy(d$numbers, seq_len(nrow(d$numbers)), permutations = 2, fdr = 1, seed = 1),
    weft_network = mi_network(d$numbers, "mrnet", estimator = "pearson"),
       weft_selection = mi_select(d$levels, d$class, 2),
    weft_bins = discretize(as.data.frame(d$numbers), bins = 3), weft_mi_pack = mi_pack(d$levels, d$class),
    weft_file = weft_file(path("numbers"), 2), weft_kernel_tree = kernel_tree(d$numbers[, 1:2]),
    weft_bn = bn, weft_bn_fit = bn_fit(d$levels[1:3], bn), weft_bn_scores = bn_scores(d$levels[1:3], 2),
    weft_bn_exact = bn_exact(d$levels[1:3]), weft_bn_compare = bn_compare(other, d$dag),
    weft_bn_features = bn_features(bn_exact(d$levels[1:3], posterior = "dag"), draws = 20, seed = 1),
    weft_bn_search = bn_search(d$levels[1:3], seed = 1, control = list(kicks = 5)),
    weft_irm = irm(d$links, chains = 1, sweeps = 6, seed = 1, run = weft_run(progress = FALSE),
                   control = list(checkpoint = path("checkpoint"))),
    weft_irm_shards = irm_shards(function(i) d$links, 2),
    weft_pca = pca(d$numbers, 2, seed = 1), weft_pca_k = pca_choose_k(d$numbers, seed = 1, permutations = 2),
    weft_kde = kde(d$numbers[, 1:2], .5), weft_kernel_regression = kernel_regression(d$numbers[, 2], d$y, .5),
    weft_gp = gp_regression(d$numbers[, 2], d$y, bandwidth = 1, noise = .1), weft_kernel_pca = kernel_pca(d$numbers, 2),
    weft_quality = checked, weft_gene_network = quiet(d$genes$x, d$genes$class),
    weft_ranking = gene_ranking(checked), weft_clusters = gene_clusters(checked, seed = 1,
                                                                        run = weft_run(progress = FALSE)),
    weft_modules = gene_modules(d$modules, rep_len(c("a", "b"), 28), min_size = 3, seed = 1),
    weft_outliers = gene_outliers(components, data = checked), weft_example = d$genes,
    weft_gene_sets = gene_sets(letters[1:4], list(one = letters[1:6]), letters),
    weft_store = weft_import(abs(d$numbers), path("numbers.weft"), overwrite = TRUE),
    weft_cells = gene_cells(d$counts, k = 2, seed = 1, run = weft_run(progress = FALSE),
                            control = list(min_cells = 1, sweeps = 4))
  )
}

mi_arguments <- function(d, fits, path) {
  pair <- list(x = d$levels, class = d$class)
  permuted <- c(pair, permutations = 2)
  list(
    as_igraph = list(x = fits$weft_network),
       discretize = list(x = as.data.frame(d$numbers), method = "mdl", class = d$class),
    mi_matrix = list(x = d$levels), mi_network = list(x = fits$weft_mi_matrix), mi_pack = pair, mi_pairs = permuted,
       mi_rank = permuted,
    mi_select = c(pair, k = 2), mi_triples = pair, mi_tuples = c(pair, order = 3),
    mi_trait = list(pairs = mi_pairs(d$levels, d$class), x = d$levels, trait = d$numbers[, 1]),
    pair_scan = list(x = d$variants, outcome = d$numbers[, 1], covariates = d$numbers[, 2], permutations = 2),
    transfer_entropy = list(x = d$numbers, time = seq_len(nrow(d$numbers)), permutations = 2, seed = 1),
       network_convert = list(x = fits$weft_network),
    network_tables = list(x = fits$weft_network), write_network = list(x = fits$weft_network, file = path("net.csv")),
    read_plink = list(path = path("snps.bed")), plink_file = list(path = path("snps.bed")),
    weft_backend = list(backend = "cpu"), weft_devices = list(), weft_ranks = list(),
    weft_file = list(path = path("numbers"), ncol = 2), weft_free = list(handle = fits$weft_mi_pack),
       weft_sitrep = list(),
    weft_threads = list(threads = 1), weft_upload = list(x = d$numbers),
    weft_import = list(x = d$numbers, path = path("import.weft"), overwrite = TRUE),
    weft_store = list(path = path("numbers.weft")), store_data = list(x = fits$weft_store, side = "rows"),
    store_normalise = list(x = fits$weft_store),
    weft_example = list(name = "expression", n = 20, p = 12), pca = list(x = d$numbers, k = 2),
    pca_choose_k = list(x = d$numbers, permutations = 2), weft_run = list(threads = 1),
       regulation = list(x = d$numbers, control = list(steps = 2, resamples = 4, null_copies = 0))
  )
}

kernel_arguments <- function(d) {
  one <- d$numbers[, 2]
  list(
    gp_regression = list(x = one, y = d$y, bandwidth = 1, noise = .1), kde = list(x = d$numbers[, 1:2], bandwidth = .5),
    kernel_bandwidth = list(x = one, grid = c(.2, .5)), kernel_pca = list(x = d$numbers, k = 2),
    kernel_regression = list(x = one, y = d$y, bandwidth = .5), kernel_tree = list(x = d$numbers),
    kernel_gradient = list(x = d$numbers[1:3, ], reference = d$numbers),
    kernel_sum = list(x = d$numbers[1:3, ], reference = d$numbers), kernel_polynomial = list(degree = 2)
  )
}

bn_arguments <- function(d, fits) {
  data <- d$levels[1:3]
  file <- tempfile(fileext = ".bif")
  writeLines(c("variable a { type discrete [ 2 ] { yes, no }; }", "probability ( a ) { table 0.2, 0.8; }"), file)
  list(
    bn_features = list(fit = bn_exact(data, posterior = "dag"), draws = 10), bn_read = list(file = file),
    bn_compare = list(x = d$dag, truth = d$dag), bn_convert = list(x = d$dag, to = "igraph"),
       bn_cpdag = list(dag = d$dag),
    bn_exact = list(x = data), bn_fit = list(x = data, dag = d$dag),
       bn_learn = list(x = data, iterations = 20, chains = 1),
    bn_local_score = list(x = data, node = "a", parents = "b"),
       bn_log_lik = list(fit = fits$weft_bn_fit, x = data),
    bn_prior = list(nodes = c("a", "b", "c")), bn_sample = list(fit = fits$weft_bn_fit, n = 2),
       bn_score = list(x = data, dag = d$dag),
    bn_scores = list(x = data), bn_search = list(x = data, control = list(kicks = 5)),
       bn_conditions = list(x = data, condition = rep(1:2, length.out = nrow(data))),
       bn_time = list(x = data, time = seq_len(nrow(data)))
  )
}

irm_arguments <- function(d, fits, path) {
  list(
    irm = list(x = d$links, chains = 1, sweeps = 4), irm_prior = list(alpha = 1),
    irm_auc = list(score = c(.2, .7, .4), truth = c(0, 1, 0)),
    irm_log_posterior = list(x = as.matrix(d$links) * 1, row_cluster = rep(1, 12), col_cluster = rep(1, 12),
                             type = "bipartite"),
    irm_nmi = list(a = c(1, 1, 2), b = c(1, 2, 2)), irm_resume = list(file = path("checkpoint")),
    irm_sample = list(n_row = 5, n_col = 4, k = 2), irm_shards = list(read = function(i) d$links, shards = 2),
    irm_words = list(x = fits$weft_irm),
    read_bag_of_words = list(file = path("words"), vocab = path("words.vocab")),
    write_bag_of_words = list(x = d$words, file = path("out"), vocab = path("out.vocab"))
  )
}

gene_arguments <- function(d, fits, path) {
  q <- list(x = fits$weft_quality)
  parts <- c("findings", "data", "date", "samples", "genes", "pairs", "network", "groups", "bayes", "methods", "run")
  parts <- stats::setNames(rep(list(list(fit = fits$weft_gene_network)), length(parts)), paste0("report_", parts))
  sets <- list(fit = fits$weft_gene_network, sets = list(one = letters[1:6]))
  c(parts, list(report_sets = sets, report_enrichment = sets, report_style = list(), report_script = list(),
                markdown_text = list(x = "a"),
    gene_bayes = c(q, genes = 4, iterations = 20, chains = 1),
    gene_cells = list(x = d$counts, class = d$genes$class, k = 2, sweeps = 4),
    gene_clusters = c(q, genes = 5),
    gene_components = c(q, k = 2, leading = 1), gene_mi_network = q, gene_pairs = c(q, permutations = 2),
    gene_modules = list(x = d$modules, min_size = 3, seed = 1),
    module_preservation = list(x = fits$weft_modules, other = d$modules[13:28, ], permutations = 9, seed = 1),
    gene_ranking = q,
    gene_regulation = c(q, steps = 2, resamples = 4, null_copies = 0),
    gene_network = list(x = d$genes$x, class = d$genes$class,
                        steps = list(components = FALSE, ranking = FALSE, pairs = FALSE, network = FALSE,
                                     clusters = FALSE, bayes = FALSE, outliers = FALSE)),
    gene_outliers = list(x = fits$weft_gene_network$components, data = fits$weft_quality),
    gene_quality = list(x = d$genes$x, class = d$genes$class), read_gmt = list(file = path("sets.gmt")),
    gene_sets = list(x = letters[1:4], sets = list(one = letters[1:6]), universe = letters),
    gene_sets_ranked = list(x = stats::setNames(sin(1:26), letters), sets = list(one = letters[1:6])),
    weft_report = list(fit = fits$weft_gene_network, file = path("report.html"), open = FALSE)
  ))
}

# What takes or gives classes of other packages.
optional_arguments <- function(d) {
  out <- list()
  if (requireNamespace("SingleCellExperiment", quietly = TRUE)) {
    out$pca_reduced_dim <- list(x = SingleCellExperiment::SingleCellExperiment(list(logcounts = t(d$numbers))), k = 2)
  }
  if (requireNamespace("SummarizedExperiment", quietly = TRUE)) {
    se <- SummarizedExperiment::SummarizedExperiment(list(logcounts = t(d$genes$x)),
                                                     colData = data.frame(group = d$genes$class))
    fit <- gene_network(se, "group", seed = 1, run = weft_run(progress = FALSE),
                        steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE))
    out$add_results <- list(x = se, fit = fit)
  }
  if (requireNamespace("e1071", quietly = TRUE)) {
    out$svm_predict <- list(model = e1071::svm(d$numbers, factor(d$class)), new = d$numbers)
  }
  out
}

# The registered methods of the fits, for the arguments after the fit. residuals() asks for the data where the call
# stood.
errors_methods <- function(d, fits) {
  own <- list(
    predict.weft_bins = list(newdata = as.data.frame(d$numbers)), predict.weft_pca = list(newdata = d$numbers),
    predict.weft_bn_fit = list(newdata = d$levels["a"], node = "b"), predict.weft_irm = list(newdata = cbind(1:2, 1:2)),
    predict.weft_kde = list(newdata = d$numbers[1:2, 1:2]), predict.weft_kernel_regression = list(newdata = c(0, 1)),
    predict.weft_gp = list(newdata = c(0, 1)), predict.weft_kernel_pca = list(newdata = d$numbers[1:2, ]),
    update.weft_bn = list(iterations = 10), update.weft_irm = list(sweeps = 2)
  )
  table <- getNamespaceInfo("weft", "S3methods")
  calls <- list()
  for (row in seq_len(nrow(table))) {
    fit <- fits[[table[row, 2L]]]
    if (is.null(fit) || table[row, 1L] %in% c("[", "augment", "as_igraph", "residuals")) next
    of <- table[row, 4L] # the package that the generic is in: without it nobody reaches the method
    if (!is.na(of) && !requireNamespace(of, quietly = TRUE)) next
    name <- paste(table[row, 1L], table[row, 2L], sep = ".")
    f <- get(table[row, 3L], asNamespace("weft"))
    takes <- setdiff(names(formals(f)), "...")
    args <- c(stats::setNames(list(fit), takes[1L]), own[[name]])
    if (length(takes) > 1L) calls[[name]] <- list(f = f, args = c(args, quiet_arguments(f, names(args))),
                                                  sweep = takes[-1L])
  }
  calls
}

# What stands in for an argument; "missing" leaves it out.
wrong_values <- function() {
  list(missing = NULL, null = NULL, na = NA, text = "a", negative = -1, infinite = Inf, nothing = list(),
       none = numeric(),
       many = c(.5, 2), huge = 1e300, frame = data.frame(), empty = matrix(0, 0, 0), a_function = function(...) 1,
       formula = y ~ x,
       complex = 1i, words = c("a", "b"), flag = TRUE, date = as.Date("2020-01-01"), environment = globalenv(),
       version = numeric_version(c("1.2", "3.4")), time = as.POSIXlt("2020-01-01", tz = "UTC"),
       span = as.difftime(1:3, units = "mins"), malformed = said_to_be("factor", c(1L, 5L, -3L, NA)),
       uneven = said_to_be("data.frame", list(a = 1:3, b = 1), row.names = 1:3), flat = said_to_be("matrix", 1:4),
       mixed = matrix(list(1, "a", NULL, 2), 2), hexadecimal = as.hexmode(1:3), roman = utils::as.roman(1:3),
       counts = table(c(1, 1, 2)), cube = array(1:8, c(2, 2, 2)), long = said_to_be("integer64", c(1, 2)),
       pointer = methods::new("externalptr"), expression = quote(stop("evaluated")),
       bytes = in_encoding("bytes"), not_utf8 = in_encoding("UTF-8"))
}

# Values whose class or encoding is not true.
said_to_be <- function(class, value, ...) {
  attributes(value) <- c(attributes(value), list(...))
  attr(value, "class") <- class
  value
}
in_encoding <- function(name) {
  text <- "\xff\xfe"
  Encoding(text) <- name
  text
}

# Calls every function of `calls` with each argument replaced by each value in turn. A data frame of what came that is
# neither a result nor a classed condition: errors, and warnings of R's own about values that should have been looked at
# first.
wrong_calls <- function(calls, values = wrong_values(), first_only = FALSE, seconds = 20, note = function(label) NULL) {
  found <- list()
  made <- 0
  grDevices::pdf(NULL)
  before <- setwd(tempdir()) # files that are written by default, or named "a", do not stay
  on.exit({
    setwd(before)
    grDevices::dev.off()
  })
  for (name in names(calls)) {
    call <- calls[[name]]
    for (arg in if (first_only) utils::head(call$sweep, 1L) else call$sweep) {
      for (value in names(values)) {
        args <- call$args
        args[arg] <- if (value != "missing") values[value]
        label <- sprintf("%s(%s = %s)", name, arg, value)
        note(label)
        made <- made + 1
        for (condition in one_call(call$f, args, seconds)) {
          text <- substr(gsub("\\s+", " ", tryCatch(conditionMessage(condition), error = function(e) "?")), 1L, 160L)
          found[[length(found) + 1L]] <- data.frame(call = label, kind = class(condition)[1L], message = text)
        }
      }
    }
  }
  structure(do.call(rbind, found) %||% data.frame(), made = made)
}

# The conditions of a call, and of printing what it returns, that are not weft's.
one_call <- function(f, args, seconds = 20) {
  kept <- list()
  keep <- function(condition) kept[[length(kept) + 1L]] <<- condition
  setTimeLimit(cpu = seconds, transient = TRUE) # of the processor: the machine may be busy
  on.exit(setTimeLimit())
  utils::capture.output(suppressMessages(tryCatch(
    withCallingHandlers(print(do.call(f, args, quote = TRUE)), warning = function(w) {
      if (!inherits(w, "weft_warning")) keep(w)
      invokeRestart("muffleWarning")
    }),
    error = function(e) if (!inherits(e, "weft_error")) keep(e)
  )))
  kept
}
