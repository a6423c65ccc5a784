# Valid calls that take other ways than those of helper-errors.R: other methods, kinds of data and files, so that every
# native entry point is entered. By "<function>/<what is other>": list(f, args, sweep), as valid_calls() has them.
# `sparse`: whether packages Matrix and rhdf5 may be loaded.
variant_calls <- function(d, fits, path, sparse = TRUE) {
  arguments <- c(bn_variants(d), kernel_variants(d), mi_variants(d, fits, path), irm_variants(d, path),
                 component_variants(d, fits), gene_variants(d, fits), if (sparse) store_variants(d, path))
  functions <- sub("/.*", "", names(arguments))
  Map(function(args, name) exported_calls(stats::setNames(list(args), name))[[1L]], arguments, functions)
}

bn_variants <- function(d) {
  data <- d$levels[1:3]
  numbers <- as.data.frame(d$numbers)
  list(
    "bn_exact/graphs" = list(x = data, posterior = "dag"),
    "bn_exact/orders" = list(x = data, posterior = "order"),
    "bn_learn/uniform" = list(x = data, target = "uniform", iterations = 40, chains = 1),
    "bn_learn/graphs" = list(x = data, target = "uniform", iterations = 40, chains = 1, space = "graphs"),
    "bn_learn/sum" = list(x = data, target = "sum", iterations = 40, chains = 1, temperatures = c(1, 2)),
    "bn_learn/halves" = list(x = data, target = "sum", iterations = 20, chains = 1, resample = 2),
    "bn_scores/numbers" = list(x = numbers, score = "bge"),
    "bn_scores/candidates" = list(x = d$levels, candidates = 2, interventions = rep(c(NA, "a"), 15)),
    "bn_scores/prior" = list(x = data, keep = "sum", prior = bn_prior(data, known = data.frame("a", "b", 0.7))),
    "bn_search/numbers" = list(x = numbers, kicks = 5),
    "bn_features/chains" = list(fit = bn_learn(data, target = "sum", iterations = 40, chains = 1, seed = 1,
                                               run = weft_run(progress = FALSE))),
    "gene_bayes/numbers" = list(x = d$genes$x, genes = 4, iterations = 20, chains = 1)
  )
}

kernel_variants <- function(d) {
  one <- d$numbers[, 2]
  plane <- d$numbers[, 1:2]
  many <- matrix(stats::rnorm(3000), ncol = 2)
  sums <- function(...) list(x = d$numbers[1:3, 1:2], reference = plane, bandwidth = 0.7, ...)
  list(
    "kernel_sum/line" = list(x = one, bandwidth = 0.2, method = "line", rel_error = 1e-3),
    "kernel_sum/mesh" = list(x = plane, bandwidth = 0.5, method = "mesh", rel_error = 1e-3),
    "kernel_sum/space" = list(x = d$numbers[, 1:3], bandwidth = 0.7, method = "mesh", rel_error = 1e-3),
    "kernel_sum/tree" = sums(method = "tree", rel_error = 0.01, weights = seq(-1, 1, length.out = 30)),
    "kernel_sum/drawn" = sums(method = "montecarlo", rel_error = 0.3, confidence = 0.9),
    "kernel_sum/features" = sums(method = "features", abs_error = 1, confidence = 0.9),
    "kernel_sum/nystrom" = sums(method = "nystrom", abs_error = 1), "kernel_sum/single" = sums(precision = "single"),
    "kernel_sum/polynomial" = sums(kernel = "polynomial")[c("query", "reference", "kernel")],
    "kernel_sum/own" = list(x = plane, leave_one_out = TRUE, log = TRUE, weights = cbind(1, 1:30)),
    "kde/plugin" = list(x = one, bandwidth = "plugin"), "kde/lscv" = list(x = plane, bandwidth = "lscv"),
    "kde/lscv-compact" = list(x = plane, bandwidth = "lscv", kernel = "epanechnikov"),
    "kernel_sum/many" = list(x = many[1:50, ], reference = many, bandwidth = 0.1, rel_error = 0.01),
    "kde/lscv-many" = list(x = many, bandwidth = "lscv"),
    "kernel_bandwidth/likelihood" = list(x = plane, grid = c(0.5, 1), criterion = "lcv"),
    "kernel_tree/ball" = list(x = plane, type = "ball", leaf_size = 4),
    "kernel_tree/rp" = list(x = plane, type = "rp", leaf_size = 4)
  )
}

mi_variants <- function(d, fits, path) {
  pair <- list(x = d$levels, class = d$class)
  integer64 <- d$levels
  integer64$a <- said_to_be("integer64", rep(1:2, 15) * 2^-1074) # 1 and 2, as package bit64 keeps them
  variants <- plink_file(path("snps.bed"))
  cases <- rep(c("case", "control"), 2)
  list(
    "mi_rank/integer64" = list(x = integer64, class = d$class, permutations = 2),
    "mi_rank/pack" = list(x = mi_pack(d$levels, d$class)),
    "mi_rank/gaps" = list(x = d$levels, class = replace(d$class, 1, NA), na = "drop"),
    "mi_rank/genotypes" = list(x = variants, class = cases, na = "level"),
    "mi_pairs/genotypes" = list(x = variants, class = cases, na = "level"),
    "mi_pairs/all" = c(pair, full = TRUE), "mi_pairs/strata" = c(pair, list(strata = rep(1:2, each = 15))),
    "transfer_entropy/levels" = list(x = d$levels, time = seq_len(nrow(d$levels)), bins = NULL, permutations = 0),
    "transfer_entropy/series" = list(x = d$numbers, time = list(seq_len(nrow(d$numbers)),
                                                                rep_len(1:2, nrow(d$numbers))), bins = 5, fdr = 1),
    "pair_scan/class" = list(x = d$variants, outcome = d$class, df = 4),
    "pair_scan/pairs" = list(x = d$variants, outcome = d$y, pairs = data.frame(feature1 = "a", feature2 = c("b", "c"))),
    "mi_select/cmim" = c(pair, k = 2, method = "cmim"),
    "mi_matrix/ksg" = list(x = d$numbers, estimator = "ksg"),
    "mi_matrix/kendall" = list(x = d$numbers, estimator = "kendall"),
    "mi_network/aracne" = list(x = d$numbers, method = "aracne", estimator = "spearman"),
    "mi_network/fdr" = list(x = d$numbers, method = "relnet", estimator = "pearson", fdr = 0.5),
    "mi_network/mrnetb" = list(x = d$levels, method = "mrnetb"),
    "discretize/widths" = list(x = as.data.frame(d$numbers), method = "equalwidth"),
    "read_plink/raw" = list(path = path("snps.bed"), type = "raw", variants = 2),
    "pca/genotypes" = list(x = variants, k = 1, na = "mean", control = list(block_size = 8)),
    "plink_file/filters" = list(path = path("snps.bed"), min_maf = 0.01, max_missing = 0.9, min_hwe = 1e-9)
  )
}

irm_variants <- function(d, path) {
  counts <- d$counts[, 1:8]
  list(
    "irm/counts" = list(x = counts, family = "poisson", chains = 1, sweeps = 4, split_merge = 1),
    "irm/shards" = list(x = irm_shards(function(i) d$links[6 * i - 5:0, ], 2), chains = 1, sweeps = 4),
    "irm/numbers" = list(x = d$numbers, family = "gaussian", chains = 1, sweeps = 4),
    "irm/collapsed" = list(x = d$links, sampler = "collapsed", chains = 1, sweeps = 4, alpha = "sample",
                           hold_out = 0.1),
    "irm/undirected" = list(x = (as.matrix(d$links) + t(as.matrix(d$links)) > 0) * 1, type = "undirected", chains = 1,
                            sweeps = 4),
    "irm/nested" = list(x = counts, family = "poisson", degrees = TRUE, chains = 1, sweeps = 4, hold_out = 0.1),
    "irm/checkpoint" = list(x = d$links, chains = 1, sweeps = 4, checkpoint = path("other-checkpoint"))
  )
}

component_variants <- function(d, fits) {
  gaps <- replace(d$numbers, 3L, NA)
  groups <- rep(c("a", "b"), 15)
  list(
    "pca/nipals" = list(x = d$numbers, k = 2, method = "nipals"),
    "pca/krylov" = list(x = d$numbers, k = 1, method = "krylov"),
    "pca/gaps" = list(x = gaps, k = 2, na = "em"), "pca/file" = list(x = fits$weft_file, k = 1),
    "pca/store" = list(x = fits$weft_store, k = 2),
    "pca/normalised" = list(x = store_normalise(fits$weft_store), k = 2),
    "pca_choose_k/q2" = list(x = d$numbers, method = "q2", max_k = 2, folds = 2), # allocates in each of its steps
    "regulation/regulators" = list(x = d$numbers, regulators = c("a", "b"), steps = 2, resamples = 4, null_copies = 1),
    "regulation/nonlinear" = list(x = d$numbers, steps = 2, resamples = 4, null_copies = 0, nonlinear = TRUE),
    "regulation/compare" = list(x = d$numbers, steps = 2, resamples = 4, null_copies = 0, compare = groups,
                                permutations = 2),
    "regulation/counts" = list(x = d$counts, steps = 2, resamples = 4, null_copies = 0, transform = "counts")
  )
}

gene_variants <- function(d, fits) {
  x <- d$genes$x
  two <- d$genes$class
  three <- factor(rep_len(c("a", "b", "c"), nrow(x)))
  samples <- data.frame(two, three, age = seq(20, 60, length.out = nrow(x)), day = rep(c("u", "v"), each = nrow(x) / 2))
  x[3:5, 2L] <- NA
  list(
    "gene_quality/counts" = list(x = 10 * d$counts, class = two, transform = "counts"),
    "gene_quality/covariates" = list(x = x, class = two, batch = samples$day, covariates = samples["age"]),
    "gene_ranking/formula" = list(x = x, class = ~ day + three, data = samples, term = "three",
                                  contrasts = c("b - a", "c - a"), control = list(weights = "group", trend = TRUE)),
    "gene_ranking/number" = list(x = x, class = samples$age, control = list(robust = FALSE)),
    "gene_ranking/counts" = list(x = 10 * d$counts, class = two),
    "gene_ranking/subjects" = list(x = 10 * d$counts, class = ~ two, data = samples,
                                   subject = rep(sprintf("p%d", 1:10), 4)),
    "gene_ranking/few" = list(x = x[1:4, ], class = rep(c("a", "b"), 2)),
    "gene_clusters/k" = list(x = x, k = 3, genes = 6, max_clusters = 4),
    "gene_clusters/components" = list(x = fits$weft_quality, components = fits$weft_gene_network$components),
    "gene_clusters/prcomp" = list(x = stats::prcomp(d$numbers)),
    "gene_clusters/irm" = list(x = x, method = "irm", chains = 1, sweeps = 4),
    "gene_components/counts" = list(x = gene_quality(10 * d$counts, two, transform = "counts"), k = 3, leading = 2)
  )
}

store_variants <- function(d, path) {
  set.seed(1)
  folder <- path("cells")
  dir.create(folder)
  cells <- cell_files(folder)
  counts <- as(d$counts, "CsparseMatrix")
  import <- function(x, ...) list(x = x, path = path("variant.weft"), overwrite = TRUE, ...)
  files <- list("weft_import/market" = import(cells[1L]), "weft_import/tenx" = import(dirname(cells[2L])))
  hdf5 <- cells[grepl("[.](h5|h5ad|loom)$", cells)]
  folders <- unique(import_from(cells[grepl("[.]zarr/|/bpcells_", cells)]))
  files <- c(files, stats::setNames(lapply(folders, import), sprintf("weft_import/%s", basename(folders))))
  c(files, stats::setNames(lapply(hdf5, import), sprintf("weft_import/%s", basename(hdf5))),
    list("weft_import/sparse" = import(list(counts, counts)),
         "weft_import/columns" = import(counts, samples = "columns"),
         "regulation/guides" = list(x = weft_import(counts, path("guides.weft"), overwrite = TRUE),
                                    interventions = rep_len(c("", "a"), nrow(counts)), regulators = 1:2,
                                    control = list(resamples = 4, null_copies = 0, stability = FALSE)),
         "transfer_entropy/sparse" = list(x = counts, time = seq_len(nrow(counts)), permutations = 0),
         "pca/sparse" = list(x = counts, k = 2), "mi_rank/sparse" = list(x = counts, class = d$genes$class),
         "regulation/cells" = list(x = counts[rep(1:40, 25), ], steps = 2, resamples = 4, null_copies = 0),
         "bn_search/sparse" = list(x = counts[, 1:4], kicks = 5),
         "gene_cells/store" = list(x = weft_import(counts, path("counts.weft"), overwrite = TRUE), k = 2, sweeps = 4)))
}
