# How the result of the workflow prints, and what it becomes.

#' Print, summarise and convert the result of gene_network()
#'
#' `print()` summarises each step in a few lines. `summary()` returns the top results of each step as a list.
#' `as.data.frame()` and `tidy()` return a table, `augment()` returns the table of samples, and `glance()` returns one
#' row that describes the analysis.
#'
#' @param x,object an object returned by [gene_network()].
#' @param what the table to return:
#'   * `"genes"`: one row per gene of the input, with filtering, test results, rank, number of edges, cluster, and
#'     whether the gene is in the Bayesian network.
#'   * `"samples"`: one row per sample, with filtering, class, scores, cluster and outlier score.
#'   * `"edges"`: the edges of the network. If most genes are correlated with some components, `p_given_components` is
#'     the p-value of the correlation after adjustment for these components. If it is large, a hidden factor may explain
#'     the edge; a small value does not exclude this.
#'   * `"directed"`: the edges of the Bayesian network.
#'   * `"pairs"`: the pairs of genes.
#'   * `"log"`: the changes to the data.
#' @param top the number of genes, edges and other results to show.
#' @param data not used; required by the generic.
#' @param ... ignored.
#' @return `print()` returns `x` invisibly. The other functions return a list (`summary()`) or a data frame.
#' @export
#' @examples
#' e <- weft_example("expression", n = 60, p = 30)
#' fit <- gene_network(e$x, e$class, seed = 1,
#'                     steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE))
#' summary(fit)$genes
#' head(as.data.frame(fit, what = "genes"), 3)
#' glance(fit)
print.weft_gene_network <- function(x, top = 5L, ...) {
  fit <- checked_fit(x, "x")
  top <- check_top(top)
  reading("x", print_fit(fit, top))
  invisible(x)
}

print_fit <- function(x, top) {
  x <- with_labels(x)
  q <- x$quality
  class <- if (is.null(q$class)) "no class" else paste(class_sizes(q$class, "%s %d"), collapse = ", ")
  cat_wrapped(sprintf("Gene network of %s in %d samples (%s)", columns_text(q, ncol(q$x)), nrow(q$x), class))
  cat("\n")
  line <- function(name, ...) {
    text <- strwrap(plain_text(paste0(...)), width = max(40, min(getOption("width"), 112) - 12))
    cat(sprintf("%-11s %s\n", c(name, rep("", length(text) - 1L)), text), sep = "")
  }
  done <- q$log$what %||% "No values were changed."
  for (i in seq_along(done)) line(if (i == 1L) "quality" else "", done[i])
  for (step in workflow_steps[-1L]) if (!is.null(x[[step]])) line(step, step_text(step, x, top))
  for (step in names(x$foreign)) line(step, "a result of class ", x$foreign[[step]])
  left_out <- setdiff(workflow_steps, c(x$steps$step, names(x$left_out)))
  if (length(left_out)) line("not run", paste(left_out, collapse = ", "))
  for (step in names(x$left_out)) line(step, "skipped: ", sub("^A ", "a ", x$left_out[[step]]))
  device <- x$steps$step[x$steps$backend == "cuda"]
  cat(sprintf("\n%s in total%s; seed %.0f; weft %s\n", seconds_text(sum(x$steps$seconds)),
              if (length(device)) plain_text(paste(", on the device:", paste(device, collapse = ", ")))
              else ", on the CPU", x$seed, plain_text(x$version)))
  cat("See also plot(fit), weft_report(fit), as.data.frame(fit, \"genes\")\n")
}

class_sizes <- function(class, format) sprintf(format, levels(class), tabulate(class, nlevels(class)))

# A step's result in a sentence.
step_text <- function(step, x, top) {
  r <- x[[step]]
  switch(step,
    components = sprintf("PC1 to PC%d explain %s of the variance%s%s%s", length(r$sdev), share_text(sum(r$share)),
                         if (is.null(standing_out(r))) "" else {
                           sub("^No component", "; no component", sub("^([0-9])", "; \\1", paste(
                             several_are(standing_out(r), "component"), "significant")))
                         },
                         class_on_components(x),
                         if (is.null(r$hidden)) ""
                         else paste(". There may be a hidden batch:",
                                    sub("\\.$", "", hidden_text(x$quality, r$hidden)))),
    ranking = sprintf("%s with q <= 0.05. Top: %s", columns_text(x$quality, length(found_genes(r))),
                      ranked_text(r, top)),
    pairs = pair_text(r, min(top, 3L)),
    network = if (is_directed(r)) paste(c(regulation_text(r, top), factors_text(x, report_edges(r))), collapse = ". ")
              else
              sprintf("%s among %s (%s, %s%s)%s", several(count_edges(r), "edge"), several(ncol(r), "gene"),
                      attr(r, "method"), attr(information_of(r), "estimator"),
                      if (is.null(attr(r, "fdr")) || is.na(attr(r, "cut"))) ""
                      else sprintf(", false discovery rate %g", attr(r, "fdr")), hub_text(r, top)),
    clusters = paste0(clusters_text(r, column_word(x$quality)), class_in_clusters(x)),
    bayes = bayes_text(r, top),
    outliers = if (any(r$outlier)) sprintf("%s: %s", several(sum(r$outlier), "outlier"),
                                           some_named(r$sample[r$outlier], 2L * top)) else "none found"
  )
}

pair_text <- function(r, top) {
  if (!nrow(r)) return("no pairs")
  searched <- thousands(attr(r, "searched"))
  if (is.null(r$p_fwer)) return(sprintf("%s pairs, not tested", searched))
  sure <- r$p_fwer <= 0.05
  if (!any(sure)) {
    return(sprintf("none of %s pairs is significant (smallest p, adjusted for all pairs: %s)", searched,
                   format(min(r$p_fwer), digits = 2)))
  }
  shown <- utils::head(as.data.frame(r)[sure, ], top)
  sprintf("%s%d of %s pairs %s significant. Top: %s", if (all(sure)) "at least " else "", sum(sure), searched,
          if (sum(sure) == 1L) "is" else "are",
          paste0(shown$feature1, " x ", shown$feature2,
                 sprintf(" (interaction %.2f %s, adjusted p = %s)", shown$interaction,
                                                                attr(r, "unit"), format(shown$p_fwer, digits = 2)),
                 collapse = ", "))
}

# How many groups there are, each number with its share of the sampled partitions. One at a limit is not a finding, nor
# is one on which the chains disagree.
clusters_text <- function(r, word = "gene") {
  if (is_consensus(r)) return(consensus_text(r, word))
  if (groups_hold(r)) return(partition_text(r, word))
  sprintf("Clustering did not converge (R-hat %s, target %.1f): do not interpret the groups. So far %s",
          rhat_number(groups_rhat(r)), greatest_rhat, partition_text(r, word))
}

partition_text <- function(r, word = "gene") {
  number <- function(mode) {
    found <- max(r[[paste0(mode, "_cluster")]])
    limit <- r$limits[match(mode, r$limits$mode), ]
    sprintf("%s%s", if (is_reached(limit)) "at least " else "", several(found, "group"))
  }
  share <- function(mode) counts_text(r$n_clusters[[mode]], 3L)
  sprintf("%s of samples (probabilities: %s) and %s of %s (%s)", number("row"), share("row"),
          number("col"), several(length(r$col_cluster), word), share("col"))
}

hub_text <- function(net, top) {
  degree <- network_degree(net)
  best <- utils::head(order(-degree), top)
  best <- best[degree[best] > 0]
  if (!length(best)) return("")
  paste0(". Most edges: ", paste(sprintf("%s (%d)", names(degree)[best], as.integer(degree[best])), collapse = ", "))
}

# An edge below 0.9 is a possibility, and one on which the chains disagree is none yet.
bayes_text <- function(r, top) {
  edges <- sum(r$dag != 0)
  unsure <- edges && !is.null(r$edges) && !nrow(bayes_edges(r, 0.9))
  text <- sprintf("%s among %s%s. Most probable: %s", several(edges, "edge"), several(nrow(r$dag), "gene"),
                  if (unsure) ", none with a probability of 0.9 or more" else "", arrow_text(r, top))
  if (!bayes_disagrees(r)) return(text)
  sprintf(paste("The chains disagree (R-hat %s, target %.1f): do not interpret the edges. Increase the iterations with",
                "steps = list(bayes = list(iterations = %s)). So far %s"),
          rhat_number(r$diagnostics$r_hat), greatest_rhat, format(10 * r$iterations, scientific = FALSE), text)
}

arrow_text <- function(r, top) {
  if (!is.null(r$edges)) {
    found <- utils::head(bayes_edges(r), top)
    return(if (nrow(found)) surest_pairs(found, top) else "none")
  }
  edges <- utils::head(as.data.frame(r), top)
  if (nrow(edges)) paste0(edges$from, " -> ", edges$to, collapse = ", ") else "none"
}

class_on_components <- function(x) {
  if (is.null(x$quality$class)) return("")
  apart <- apart_on_components(x$components, x$quality)
  if (apart$p > 0.05) return("; the classes do not differ significantly")
  sprintf("; the class explains %s of the variance of PC%d (p %s)", share_text(apart$share), apart$best,
          p_text(apart$p))
}

class_in_clusters <- function(x) {
  class <- x$quality$class
  if (is.null(class) || !groups_hold(x$clusters) || max(sample_groups(x$clusters)) < 2L) return("")
  sprintf("; normalised mutual information of groups and classes %.2f",
          irm_nmi(sample_groups(x$clusters), as.integer(class)))
}

#' @rdname print.weft_gene_network
#' @export
summary.weft_gene_network <- function(object, top = 10L, ...) {
  object <- checked_fit(object, "object")
  top <- check_top(top)
  reading("object", summary_of_fit(object, top))
}

summary_of_fit <- function(object, top) {
  shown <- function(r, f) if (!is.null(r)) f(r)
  list(
    samples = nrow(object$quality$x), genes_used = ncol(object$quality$x), log = object$quality$log,
    variance = shown(object$components, function(r) stats::setNames(r$share, colnames(r$rotation))),
    genes = shown(object$ranking, function(r) utils::head(as.data.frame(r), top)),
    pairs = shown(object$pairs, function(r) utils::head(as.data.frame(r), top)),
    hubs = shown(object$network, function(r) utils::head(sort(network_degree(r), decreasing = TRUE), top)),
    clusters = shown(object$clusters, function(r) {
      list(samples = table(sample_groups(r)), genes = if (!is.null(gene_groups(r))) table(gene_groups(r)))
    }),
    directed = shown(object$bayes, function(r) utils::head(as.data.frame(object, what = "directed"), top)),
    outliers = shown(object$outliers, function(r) r$sample[r$outlier]), steps = object$steps
  )
}

#' @rdname print.weft_gene_network
#' @param row.names,optional ignored. The name of a table may also be the second argument, as in
#'   `as.data.frame(fit, "edges")`.
#' @export
as.data.frame.weft_gene_network <- function(x, row.names = NULL, optional = FALSE, ..., # nolint: object_length_linter.
                                            what = c("genes", "samples", "edges", "directed", "pairs", "log")) {
  if (missing(what) && is.character(row.names) && length(row.names) == 1L) what <- row.names
  what <- check_choice(what, c("genes", "samples", "edges", "directed", "pairs", "log"), "what")
  x <- checked_fit(x, "x")
  step <- switch(what, edges = "network", directed = "bayes", pairs = "pairs", "quality")
  if (is.null(x[[step]])) abort_no_result(sprintf("There are no %s.", what), x, step)
  reading("x", table_of_fit(x, what))
}

# `what` is missing because its step was left out, or done by a function of the user's.
abort_no_result <- function(message, x, step) {
  foreign <- x$foreign[step]
  why <- sprintf("The step `%s` was not run.", step)
  if (!is.na(foreign)) {
    why <- sprintf("The step `%s` was done by another function, which returned something of class %s.", step,
                   describe(unname(foreign)))
  }
  abort_input(message, x = why)
}

table_of_fit <- function(x, what) {
  switch(what,
    genes = gene_table(x), samples = sample_table(x), edges = network_table(x), pairs = as.data.frame(x$pairs),
    directed = {
      edges <- as.data.frame(x$bayes)
      if (is.null(edges$posterior)) edges else edges[order(-edges$posterior), ]
    },
    log = tidy(x$quality)
  )
}

# The network's table; with components that move most genes, `p_given_components`.
network_table <- function(x) {
  edges <- as.data.frame(x$network)
  edges$p_given_components <- edges_given_factors(x, edges)$p
  edges
}

# Everything that is known of each gene that came in: filtering, the whole ranking with the classes' means, network,
# groups.
gene_table <- function(x) {
  out <- x$quality$genes
  at <- function(names, values) values[match(out$gene, names)]
  if (!is.null(x$ranking)) {
    ranked <- ranked_genes(x$ranking)
    out$rank <- at(ranked, seq_along(ranked))
    columns <- setdiff(names(x$ranking), c("gene", "feature"))
    for (column in columns) out[[column]] <- at(ranked, x$ranking[[column]])
  }
  class <- x$quality$class
  for (level in if (!is.null(class) && nlevels(class) <= 20L) levels(class)) {
    out[[paste0("mean_", level)]] <- at(colnames(x$quality$x), colMeans(x$quality$x[class == level, , drop = FALSE]))
  }
  if (!is.null(x$network)) out$edges <- at(colnames(x$network), as.integer(network_degree(x$network)))
  if (!is.null(x$components)) out$PC1 <- at(rownames(x$components$rotation), x$components$rotation[, 1L])
  group <- if (!is.null(x$clusters)) gene_groups(x$clusters)
  if (!is.null(group)) out$cluster <- at(names(group), unname(group))
  if (!is.null(x$bayes)) out$in_bayes <- out$gene %in% rownames(x$bayes$dag)
  out
}

sample_table <- function(x) {
  out <- x$quality$samples
  at <- function(names, values) unname(values[match(out$sample, names)])
  if (!is.null(x$quality$class)) out$class <- at(names(x$quality$class), x$quality$class)
  if (!is.null(x$quality$batch)) out$batch <- at(names(x$quality$batch), x$quality$batch)
  if (!is.null(x$components)) {
    scores <- x$components$x
    for (k in seq_len(min(x$components$leading %||% 2L,
                          ncol(scores)))) out[[colnames(scores)[k]]] <- at(rownames(scores), scores[, k])
  }
  if (!is.null(x$clusters)) {
    group <- sample_groups(x$clusters)
    out$cluster <- at(names(group), group)
    if (is_consensus(x$clusters)) out$cluster_probability <- at(names(group), x$clusters$probability)
  }
  if (!is.null(x$outliers)) {
    for (column in c("log_density", "distance", "score", "q_value",
                     "outlier")) out[[column]] <- at(x$outliers$sample, x$outliers[[column]])
  }
  out
}

#' @rdname print.weft_gene_network
#' @export
tidy.weft_gene_network <- function(x, what = "genes", ...) as.data.frame(x, what = what)

#' @rdname print.weft_gene_network
#' @export
augment.weft_gene_network <- function(x, data = NULL, ...) as.data.frame(x, what = "samples")

#' @rdname print.weft_gene_network
#' @export
glance.weft_gene_network <- function(x, ...) {
  x <- checked_fit(x, "x")
  reading("x", glance_at_fit(x))
}

glance_at_fit <- function(x) {
  value <- function(r, f, none) if (is.null(r)) none else f(r)
  data.frame(
    samples = nrow(x$quality$x), genes = ncol(x$quality$x), classes = value(x$quality$class, nlevels, 0L),
    imputed = x$quality$imputed, leading = value(x$components, function(r) r$leading %||% NA_integer_, NA_integer_),
    significant = value(x$ranking, function(r) length(found_genes(r)), NA_integer_),
    edges = value(x$network, count_edges, NA_real_),
    gene_clusters = value(x$clusters, function(r) max(gene_groups(r) %||% NA_integer_), NA_integer_),
    sample_clusters = value(x$clusters, function(r) max(sample_groups(r)), NA_integer_),
    directed = value(x$bayes, function(r) sum(r$dag),
                     NA_real_), outliers = value(x$outliers, function(r) sum(r$outlier), NA_integer_),
    seed = x$seed, seconds = sum(x$steps$seconds)
  )
}
