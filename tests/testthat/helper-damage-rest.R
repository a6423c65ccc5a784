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
    weft_regulation = regulation(data$numbers, steps = 2, resamples = 4, copies = 1, seed = 1, progress = FALSE),
    weft_comparison = regulation(data$numbers, steps = 2, resamples = 4, copies = 0, compare = groups, permutations = 3,
                                 seed = 1, progress = FALSE),
    weft_irm_summary = summary(fits$weft_irm), weft_plink = plink_file(folder("snps.bed"))
  )
  here <- c("weft_bn_features", "weft_bn_search", "weft_irm", "weft_kde", "weft_kernel_regression", "weft_gp",
            "weft_kernel_pca", "weft_kernel_tree", "weft_quality", "weft_gene_network", "weft_outliers",
            "weft_gene_sets", "weft_store", "weft_cells")
  results <- c(fits[here], made)
  if (!is.null(only)) results <- results[only]
  lapply(results, function(result) list(result, own_uses(result)))
}
