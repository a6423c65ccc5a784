# The results that helper-damage.R and helper-damage-mi.R do not have: those of the workflow, of directed networks, of
# kernels and of co-clustering, and descriptions of files.

# Weft's methods for a result that need nothing else.
own_uses <- function(result) {
  generics <- list(print = print, summary = summary, as.data.frame = as.data.frame, as.matrix = as.matrix, tidy = tidy,
                   glance = glance, plot = plot, dim = dim, dimnames = dimnames)
  table <- getNamespaceInfo("weft", "S3methods")
  generics[names(generics) %in% table[table[, 2L] %in% class(result), 1L]]
}

rest_damage_cases <- function(only = NULL) {
  folder <- errors_folder()
  data <- errors_data(folder)
  fits <- errors_fits(data, folder)
  groups <- rep(c("a", "b"), 15)
  made <- list(
    weft_regulation = regulation(data$numbers, seed = 1, run = weft_run(progress = FALSE),
                                 control = list(steps = 2, resamples = 4, null_copies = 1)),
    perturbed = regulation(data$numbers, interventions = rep(c("", colnames(data$numbers)[1:2]), each = 10),
                           time = c(rep(NA, 25), 1:5), seed = 1, run = weft_run(progress = FALSE),
                           control = list(steps = 2, resamples = 4, null_copies = 1)),
    weft_comparison = regulation(data$numbers, compare = groups, permutations = 3, seed = 1,
                                 run = weft_run(progress = FALSE),
                                 control = list(steps = 2, resamples = 4, null_copies = 0)),
    weft_irm_summary = summary(fits$weft_irm), weft_plink = plink_file(folder("snps.bed"))
  )
  measured <- with_gaps(data$genes$x, 0.02)
  day <- rep(c("u", "v"), each = 20)
  made <- c(made, list(
    counted = gene_quality(10 * data$counts, data$genes$class, day, transform = "counts"),
    measured = gene_quality(measured, data$genes$class, day, covariates = data.frame(age = seq_len(40))),
    levels = gene_ranking(data$genes$x, factor(rep_len(c("a", "b", "c"), 40))), # several contrasts
    given = gene_clusters(data$genes$x, k = 3, seed = 1),
    left_out = gene_network(data$genes$x[1:6, ], data$genes$class[1:6], seed = 1, run = weft_run(progress = FALSE)),
    line = kde(data$numbers[, 1L], 0.5)
  ))
  here <- c("weft_bn_features", "weft_bn_search", "weft_irm", "weft_irm_shards", "weft_kde", "weft_kernel_regression",
            "weft_gp", "weft_kernel_pca", "weft_kernel_tree", "weft_quality", "weft_gene_network", "weft_outliers",
            "weft_gene_sets", "weft_store", "weft_cells", "weft_ranking", "weft_clusters", "weft_modules")
  results <- c(fits[here], made)
  if (!is.null(only)) results <- results[only]
  lapply(results, function(result) {
    at <- if (inherits(result, "weft_kde")) data$numbers[1:3, seq_len(result$d)]
    more <- switch(class(result)[1L], weft_quality = quality_uses, weft_gene_network = network_uses,
                   weft_kde = list(predict = function(f) stats::predict(f, at)))
    list(result, c(own_uses(result), more))
  })
}

# What else takes results of the workflow.
quality_uses <- list(
  ranking = function(q) gene_ranking(q), components = function(q) gene_components(q, k = 2, leading = 1),
  clusters = function(q) gene_clusters(q, seed = 1), pairs = function(q) gene_pairs(q),
  network = function(q) gene_mi_network(q, method = "clr")
)

network_uses <- list(
  genes = function(f) as.data.frame(f, what = "genes"), samples = function(f) as.data.frame(f, what = "samples"),
  pairs = function(f) as.data.frame(f, what = "pairs"), edges = function(f) as.data.frame(f, what = "edges"),
  add = function(f) {
    if (!requireNamespace("SummarizedExperiment", quietly = TRUE)) return()
    values <- matrix(0, 6, 6, dimnames = list(letters[1:6], letters[1:6]))
    add_results(SummarizedExperiment::SummarizedExperiment(list(logcounts = values)), f)
  }
)
