# gene_modules(): groups of co-expressed genes, their eigengenes, and tests of these against classes and traits. The
# search for modules is in modules-find.R, their preservation in other data in modules-preservation.R.

#' Modules: groups of co-expressed genes
#'
#' `gene_modules()` finds modules, which are groups of genes that rise and fall together across samples. The shortest
#' call is `gene_modules(x)`, with samples in the rows of `x`; `gene_modules(x, class)` also tests whether modules
#' differ between classes. The result gives the module of each gene, and one variable per module, the eigengene.
#'
#' The genes that correlate most with the eigengene are the hubs of the module. Genes that do not follow the eigengene
#' of a module belong to no module. [module_preservation()] tests whether modules are also present in other data.
#'
#' @section Method: Values are replaced by the normal scores of their ranks within each gene, so neither units nor
#'   single outliers matter. The neighbours of a gene are the 30 genes with the largest correlations, if these exceed
#'   the correlation that 3 genes are expected to exceed by chance. Pairs of neighbours that share at least two
#'   neighbours are weighted by their topological overlap (Zhang and Horvath 2005), which is computed from squared
#'   correlations, and their graph is partitioned by maximising modularity (Blondel et al. 2008). The threshold follows
#'   from the numbers of genes and samples, so there is no power or height to choose.
#'
#'   The search begins with these groups and then updates eigengenes and members in turn. Each gene belongs to the
#'   module whose eigengene it correlates with most, if the correlation is significant (false discovery rate 0.05;
#'   excluding the contribution of the gene to the eigengene). Modules are joined if the correlation matrix of all their
#'   genes has no second eigenvalue above the noise level, or if their eigengenes have a correlation of at least 0.9. A
#'   single factor that affects all genes therefore gives one module.
#'
#'   The whole search is repeated ten times, each time without a fifth of the samples. A module is kept if it meets two
#'   conditions. First, it must be recovered with a mean Jaccard index of at least 0.5 (below this value, a group is
#'   considered dissolved, Hennig 2008). Second, its genes must also correlate among the excluded samples: p is at most
#'   0.05 divided by the number of modules, where p is twice the median over the ten repetitions (Meinshausen et al.
#'   2009). Independent genes form no module.
#'
#' @section Class and traits: Each variable is tested in a linear model of every eigengene, together with the batch and
#'   the covariates that were given to [gene_quality()]. Variances are moderated across modules as in [gene_ranking()].
#'   For these tests, eigengenes are computed from values from which no batch or covariate was removed. The modules were
#'   found without the class, so the search does not bias the tests.
#'
#' @param x an object returned by [gene_quality()], or data for it. Give batches and covariates to [gene_quality()]:
#'   their effects are removed before genes are compared.
#' @param class one category per sample, if `x` contains data; see [gene_quality()].
#' @param traits other variables to test the modules against: a vector, or a matrix or data frame with one row per
#'   sample, or names of columns in `colData(x)`. Samples with a missing value are excluded from the test of that trait.
#' @param network an object returned by [regulation()], [gene_regulation()], [mi_network()] or [gene_mi_network()] for
#'   these genes. The search then begins with the communities of this network instead of the graph of correlations.
#' @param sets sets of genes to test for overlap with the modules; see [gene_sets()].
#' @param signed whether genes that fall when others rise form a module of their own. By default, they share a module.
#' @param min_size the smallest number of genes in a module.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()].
#' @param ... not used; unknown arguments cause an error.
#' @return An object of class `weft_modules`, a list:
#'   \item{module}{the module of each gene, by name; 0 for genes in none; module 1 is the largest}
#'   \item{modules}{a data frame with one row per module: `module`, `size`, `hub` (the gene with the largest
#'     membership), `explained` (the proportion of the variance of its genes that the eigengene explains), `stability`
#'     (the mean Jaccard index) and `p_value`}
#'   \item{eigengenes}{a matrix, samples by modules `M1`, `M2`, ...: the first principal component of the genes' normal
#'     scores ([pca()]), with mean 0, standard deviation 1 and its sign chosen so that it correlates positively
#'     with their mean}
#'   \item{membership}{a matrix, genes by modules: correlations of normal scores with eigengenes (kME)}
#'   \item{relations}{`NULL` without class and traits; otherwise a data frame with one row per module and variable:
#'     `module`, `variable`, `correlation` (adjusted for batch and covariates; for more than two categories, the
#'     multiple correlation, which has no sign), `t` or `f`, `p_value`, `q_value`}
#'   \item{enrichment}{an object returned by [gene_sets()], or `NULL`}
#'   \item{left_out}{the discarded groups, like `modules` but without hubs}
#'   \item{symbols, signed, samples, backend, seconds}{gene symbols, settings, back end and run time}
#'   `as.data.frame()` and `tidy()` list the genes (or `what = "modules"`, `"relations"`), `glance()` gives a summary in
#'   one row, and `plot()` draws the correlations of eigengenes with class and traits.
#' @references Zhang, B. and Horvath, S. (2005). A general framework for weighted gene co-expression network analysis.
#'   Statistical Applications in Genetics and Molecular Biology 4, 17.
#'
#'   Blondel, V. D., Guillaume, J.-L., Lambiotte, R. and Lefebvre, E. (2008). Fast unfolding of communities in large
#'   networks. Journal of Statistical Mechanics P10008.
#'
#'   Hennig, C. (2008). Dissolution point and isolation robustness. Journal of Multivariate Analysis 99, 1154-1176.
#'
#'   Meinshausen, N., Meier, L. and Buehlmann, P. (2009). p-values for high-dimensional regression. Journal of the
#'   American Statistical Association 104, 1671-1681.
#' @seealso [module_preservation()], [gene_clusters()] for groups of samples, [regulation()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 120, p = 100)
#' m <- gene_modules(gene_quality(e$x, e$class, e$batch), seed = 1)
#' m
#' head(as.data.frame(m))
#' m$relations
gene_modules <- function(x, class = NULL, traits = NULL, network = NULL, sets = NULL, signed = FALSE, min_size = 10,
                         seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  need_args("x")
  started <- proc.time()[[3L]]
  signed <- check_flag(signed, "signed")
  min_size <- check_number(min_size, "min_size", min = 3, max = 1e6, whole = TRUE)
  if (!is.null(sets)) sets <- sets_of(sets)
  chosen <- cpu_only(run$backend, "Modules are found")
  q <- checked_data(x, class)
  check_for_modules(q)
  traits <- module_traits(traits, x, q)
  how <- list(key = random_key(seed), signed = signed, smallest = as.integer(min_size), threads = run$threads,
              control = run_control("cpu", run$threads, FALSE))
  z <- module_scores(q$x)
  found <- stable_modules(z, how, if (!is.null(network)) network_pairs_of(network, colnames(q$x)))
  values <- module_values(z, found$label, how)
  result <- list(module = stats::setNames(found$label, colnames(z)), modules = module_table(found, values, z),
                 eigengenes = values$eigengenes, membership = values$membership,
                 relations = module_relations(q, values, found$label, traits, how), enrichment = NULL,
                 left_out = found$left_out, symbols = module_symbols(q), signed = signed, samples = nrow(z),
                 backend = chosen$name, seconds = 0)
  result <- new_result(result, class = "weft_modules")
  if (!is.null(sets)) result["enrichment"] <- list(gene_sets(result, sets))
  result$seconds <- proc.time()[[3L]] - started
  result
}

fewest_for_modules <- 12L # samples

check_for_modules <- function(q) {
  if (q$kind == "levels") {
    abort_input("`x` must contain expression data.", x = "It contains genotypes or other categories.",
                i = "Use `irm()` to group categories, or `mi_network()` for a network.")
  }
  if (nrow(q$x) < fewest_for_modules) {
    abort_input(sprintf("`x` must have at least %d samples to find modules.", fewest_for_modules),
                x = sprintf("It has %s.", several(nrow(q$x), "sample")))
  }
}

# Variables to relate modules to, one row per sample of `q`: the class first.
module_traits <- function(traits, x, q) {
  entered <- matrix(0, nrow(q$samples), 0L, dimnames = list(q$samples$sample, NULL))
  kept <- q$samples$kept
  rows <- if (is.null(dim(traits))) length(traits) else nrow(traits)
  if (!all(kept) && identical(rows, nrow(q$x))) {
    entered <- entered[kept, , drop = FALSE]
    kept <- rep(TRUE, nrow(q$x))
  }
  class <- if (!is.null(q$class)) list(class = unname(q$class))
  frame <- covariate_frame(traits, x, entered, "traits")
  if (is.null(frame)) return(class)
  frame <- as.list(frame[kept, , drop = FALSE])
  if (identical(names(frame), "covariate")) names(frame) <- "trait"
  names(frame) <- utils::tail(make.unique(c("class", "batch", names(q$covariates), names(frame))), length(frame))
  c(class, frame)
}

# Edges of a network as pairs of columns of the data, each once: list(from, to, weight).
network_pairs_of <- function(network, genes) {
  network <- checked_step(network, "network", "network", "regulation()` or `mi_network()")
  edges <- report_edges(network)
  ends <- cbind(match(edges$from, genes), match(edges$to, genes))
  lost <- setdiff(c(edges$from, edges$to), genes)
  if (length(lost)) {
    abort_input("`network` must be computed from the genes in `x`.", x = sprintf("Not in `x`: %s.", label_some(lost)))
  }
  weight <- abs(edges$weight)
  use <- which(is.finite(weight) & weight > 0 & ends[, 1L] != ends[, 2L])
  if (!length(use)) abort_input("`network` must have edges.", x = "It has none.")
  from <- pmin(ends[use, 1L], ends[use, 2L])
  to <- pmax(ends[use, 1L], ends[use, 2L])
  key <- to * as.double(length(genes)) + from
  sums <- rowsum(weight[use] / max(weight[use]), key, reorder = TRUE)
  first <- match(as.double(rownames(sums)), key)
  list(from = from[first], to = to[first], weight = as.vector(sums))
}

# ---- what modules are summed up in ----

# list(eigengenes, membership, explained, loadings: weights of each module's genes in its eigengene).
module_values <- function(z, label, how) {
  count <- max(label)
  names <- sprintf("M%d", seq_len(count))
  parts <- lapply(seq_len(count), function(m) eigengene(z[, label == m, drop = FALSE], how))
  eigen <- matrix(as.double(unlist(lapply(parts, `[[`, "score"))), nrow(z), count, dimnames = list(rownames(z), names))
  membership <- if (count) matrix_product(z, unit_columns(eigen), how$control, transposed = TRUE)
  list(eigengenes = eigen, explained = vapply(parts, `[[`, 0, "explained"),
       membership = matrix(pmax(pmin(as.double(membership), 1), -1), ncol(z), count,
                           dimnames = list(colnames(z), names)),
       loadings = lapply(parts, `[[`, "loading"))
}

# The first principal component of a module's genes, turned to correlate with their mean; where the mean is the same for
# either sign, to the gene of the largest weight.
eigengene <- function(own, how) {
  fit <- pca(own, 1, center = TRUE, scale = FALSE, seed = 1,
             run = weft_run("cpu", threads = how$threads, progress = FALSE))
  score <- fit$x[, 1L]
  loading <- fit$rotation[, 1L]
  size <- stats::sd(score)
  along <- sum(score * rowMeans(own)) / sqrt(sum(score^2) * sum(rowMeans(own)^2))
  turn <- if (isTRUE(abs(along) > 1e-8)) sign(along) else sign(loading[which.max(abs(loading))])
  list(score = turn * (score - mean(score)) / size, loading = turn * loading / size,
       explained = sum(score^2) / sum(own^2))
}

module_table <- function(found, values, z) {
  count <- ncol(values$eigengenes)
  hub <- vapply(seq_len(count), function(m) {
    own <- which(found$label == m)
    colnames(z)[own[which.max(abs(values$membership[own, m]))]]
  }, "")
  data.frame(module = seq_len(count), size = tabulate(found$label, count), hub = hub, explained = values$explained,
             stability = found$stability, p_value = found$p_value)
}

module_symbols <- function(q) {
  symbol <- q$genes$symbol
  if (is.null(symbol)) return(NULL)
  at <- match(colnames(q$x), q$genes$gene)
  ifelse(is.na(symbol[at]), colnames(q$x), symbol[at])
}

# ---- class and traits ----

# A row per module and variable. Eigengenes are of the values before batches and covariates were taken out, which stand
# in the model.
module_relations <- function(q, values, label, traits, how) {
  count <- ncol(values$eigengenes)
  if (!length(traits) || !count) return(NULL)
  beside <- if (is.null(q$batch) && is.null(q$covariates)) as_frame(list(), nrow(q$x)) else quality_variables(q)
  beside <- beside[setdiff(names(beside), "class")]
  eigen <- if (is.null(q$measured)) values$eigengenes else measured_eigengenes(q$measured, label, values)
  rows <- lapply(names(traits), function(name) one_relation(eigen, traits[[name]], name, beside, how))
  table <- do.call(rbind, rows)
  table$q_value <- stats::p.adjust(table$p_value, "BH")
  rownames(table) <- NULL
  table
}

# The same weights on values as they were measured; missing ones are at their gene's mean.
measured_eigengenes <- function(measured, label, values) {
  own <- which(label > 0L)
  z <- measured[, own, drop = FALSE]
  n <- nrow(z)
  for (j in seq_along(own)) {
    known <- !is.na(z[, j])
    z[known, j] <- stats::qnorm((rank(z[known, j]) - 0.5) / sum(known))
    z[!known, j] <- 0
  }
  z <- unit_columns(z)
  out <- values$eigengenes
  for (m in seq_len(ncol(out))) out[, m] <- z[, label[own] == m, drop = FALSE] %*% values$loadings[[m]]
  out
}

one_relation <- function(eigen, variable, name, beside, how) {
  known <- !is.na(variable)
  variable <- variable[known]
  if (is.factor(variable)) variable <- droplevels(variable)
  if (length(unique(variable)) < 2L) {
    abort_input("Every trait must have at least two values.", x = sprintf("`%s` has one.", plain_text(name)))
  }
  frame <- as_frame(c(as.list(beside[known, , drop = FALSE]), list(trait = variable)), sum(known))
  names(frame) <- make.unique(names(frame))
  term <- names(frame)[ncol(frame)]
  formula <- Reduce(function(left, right) call("+", left, right), lapply(names(frame), as.name))
  model <- ranking_model(stats::as.formula(call("~", formula), baseenv()), frame, term)
  y <- eigen[known, , drop = FALSE]
  control <- ranking_control(list(trend = FALSE, weights = "none", shape = FALSE))
  ranked <- ranking_table(list(y = y, unit = 1, plenty = TRUE), model,
                          weighted_fit(list(y = y, unit = 1, plenty = TRUE), model, control, how$control), control,
                          how$control)
  at <- match(colnames(eigen), ranked$gene)
  of <- function(column) if (is.null(ranked[[column]])) rep(NA_real_, length(at)) else ranked[[column]][at]
  data.frame(module = seq_along(at), variable = name, correlation = partial_correlations(y, model), t = of("t"),
             f = of("f"), p_value = of("p_value"))
}

# Correlations of eigengenes with what is tested, both less what the rest of the model explains; of several tested
# columns the multiple correlation.
partial_correlations <- function(y, model) {
  tested <- ncol(model$design) - model$tested + seq_len(model$tested)
  rest <- qr(model$design[, -tested, drop = FALSE])
  left <- qr.resid(rest, y)
  basis <- qr.Q(qr(qr.resid(rest, model$design[, tested, drop = FALSE])))
  part <- crossprod(basis, left) / rep(sqrt(colSums(left^2)), each = ncol(basis))
  if (ncol(basis) > 1L) return(pmin(1, sqrt(colSums(part^2))))
  up <- sign(sum(basis * model$design[, tested]))
  pmax(-1, pmin(1, up * as.vector(part)))
}
