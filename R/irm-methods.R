#' Predict links, and inspect a co-clustering
#'
#' `predict()` averages the posterior mean of the link probability (counts: rate; real values: mean) over the sampled
#' partitions of all chains. With nested groups, a link is a count of 1 or more, and the rates of these counts are
#' fitted so that probabilities add up to about the number of links. `as.data.frame()` and `tidy()` list the nodes
#' with their clusters, or, with `what = "blocks"`, the blocks.
#'
#' @param object,x an object returned by [irm()].
#' @param pairs two columns, rows and columns of `x` by index or name; NULL for all pairs.
#' @param uncertainty whether to also return the standard deviation over partitions and within blocks.
#' @param samples the largest number of partitions to average over.
#' @param what `"nodes"` or `"blocks"`.
#' @param ... not used; `predict()` rejects unknown arguments.
#' @return `predict()`: a numeric vector; without `pairs` a matrix; with `uncertainty` a data frame of `estimate` and
#'   `sd`. `fitted()`: the probability at the best partition, a matrix. `coef()`: `eta`. `glance()`: one row.
#' @export
#' @examples
#' planted <- irm_sample(40, 30, k = 2, density = 0.3, seed = 1)
#' fit <- irm(planted$A, chains = 2, sweeps = 40, seed = 1)
#' predict(fit, cbind(1:3, 4:6), uncertainty = TRUE)
#' head(as.data.frame(fit))
predict.weft_irm <- function(object, pairs = NULL, uncertainty = FALSE, samples = 100L, ...) {
  check_irm_fit(object, job = TRUE)
  check_dots(..., .known = c(newdata = "pairs", se.fit = "uncertainty"))
  uncertainty <- check_flag(uncertainty, "uncertainty")
  samples <- check_number(samples, "samples", min = 1, whole = TRUE)
  graph <- object$run$graph
  shape <- c(graph$links$n_row, graph$links$n_col)
  all <- is.null(pairs)
  if (all && prod(shape) > 1e7) {
    abort_input("`pairs` must be given for a graph of more than 1e7 pairs.", x = sprintf("It has %.3g.", prod(shape)))
  }
  col_names <- if (object$type == "bipartite") graph$col_names else graph$row_names
  at <- if (all) list(from = rep(seq_len(shape[1L]), shape[2L]), to = rep(seq_len(shape[2L]), each = shape[1L]))
        else named_pairs(pairs, shape, graph$row_names, col_names, "pairs")
  poisson <- object$family == "poisson"
  moments <- each_sample(object, at$from, at$to, function(links, pairs, beta, squares, rates) {
    if (!is.null(rates)) return(rate_moments(rates, poisson))
    if (!is.null(squares)) return(real_moments(links, pairs, squares, beta, graph$values))
    mean <- if (poisson) (links + beta[1L]) / (pairs + beta[2L]) else (links + beta[1L]) / (pairs + sum(beta))
    within <- if (poisson) mean / (pairs + beta[2L]) else mean * (1 - mean) / (pairs + sum(beta) + 1)
    cbind(mean, within + mean^2)
  }, samples)
  moments <- Reduce(`+`, moments) / length(moments)
  estimate <- unname(moments[, 1L])
  if (uncertainty) return(data.frame(estimate = estimate, sd = sqrt(pmax(0, unname(moments[, 2L]) - estimate^2))))
  if (all) matrix(estimate, shape[1L], dimnames = list(graph$row_names, col_names)) else estimate
}

#' @rdname predict.weft_irm
#' @export
fitted.weft_irm <- function(object, ...) {
  check_irm_fit(object)
  if (as.double(length(object$row_cluster)) * length(object$col_cluster) > 1e8) {
    abort_input("`fitted()` needs a graph with at most 1e8 pairs.",
                i = "`predict(fit, pairs)` returns fitted values for selected pairs.")
  }
  out <- object$eta[object$row_cluster, object$col_cluster, drop = FALSE]
  dimnames(out) <- list(names(object$row_cluster), names(object$col_cluster))
  out
}

#' @rdname predict.weft_irm
#' @export
coef.weft_irm <- function(object, ...) {
  check_irm_fit(object)
  object$eta
}

#' @rdname predict.weft_irm
#' @export
as.data.frame.weft_irm <- function(x, ..., what = c("nodes", "blocks")) {
  check_irm_fit(x)
  what <- check_choice(what, c("nodes", "blocks"), "what")
  if (what == "blocks") {
    blocks <- data.frame(row_cluster = c(row(x$eta)), col_cluster = c(col(x$eta)), eta = c(x$eta), links = c(x$links),
                         pairs = c(x$pairs))
    if (x$family == "gaussian") blocks$sd <- c(x$sd)
    return(blocks)
  }
  side <- function(mode, z, consensus) {
    data.frame(mode = mode, node = names(z) %||% as.character(seq_along(z)), cluster = unname(z),
               consensus = unname(consensus))
  }
  if (x$type != "bipartite") return(side("node", x$row_cluster, x$consensus$row))
  rbind(side("row", x$row_cluster, x$consensus$row), side("col", x$col_cluster, x$consensus$col))
}

#' @rdname predict.weft_irm
#' @export
tidy.weft_irm <- function(x, ...) as.data.frame(x, ...)

#' @rdname predict.weft_irm
#' @export
glance.weft_irm <- function(x, ...) {
  check_irm_fit(x)
  data.frame(type = x$type, family = x$family, rows = length(x$row_cluster), cols = length(x$col_cluster),
             links = link_total(x),
             row_clusters = max(x$row_cluster), col_clusters = max(x$col_cluster), log_posterior = max(x$log_posterior),
             rhat = x$rhat[["log_posterior"]], auc = x$auc, chains = ncol(x$log_posterior),
             sweeps = nrow(x$log_posterior),
             sampler = x$sampler, backend = x$backend, seconds = x$run$seconds)
}

# Links, events or observed values.
link_total <- function(x) {
  if (x$family == "gaussian") return(sum(x$pairs))
  weight <- x$run$graph$links$weight
  if (is.null(weight)) length(x$run$graph$links$to) else sum(as.double(weight))
}

#' @rdname predict.weft_irm
#' @export
print.weft_irm <- function(x, ...) {
  check_irm_fit(x)
  count <- function(n, what) sprintf("%s %s%s", thousands(n), what, if (n == 1) "" else "s")
  links <- count(link_total(x), switch(x$family, poisson = "event", gaussian = "value", "link"))
  if (x$type == "bipartite") {
    cat(sprintf("Co-clustering of %s and %s, %s\n", count(length(x$row_cluster), "row"),
                count(length(x$col_cluster), "column"), links))
    cat(sprintf("Best partition: %s, %s; log posterior %.1f\n", count(max(x$row_cluster), "row cluster"),
                count(max(x$col_cluster), "column cluster"), max(x$log_posterior)))
  } else {
    cat(sprintf("Clustering of %s, %s, %s\n", count(length(x$row_cluster), "node"), x$type, links))
    cat(sprintf("Best partition: %s; log posterior %.1f\n", count(max(x$row_cluster), "cluster"), max(x$log_posterior)))
  }
  consensus <- vapply(x$consensus, max, 0)
  cat(sprintf("Consensus: %s%s\n",
              if (x$type == "bipartite") sprintf("%d and %d clusters", consensus[1L], consensus[2L])
              else count(consensus[[1L]], "cluster"), certainty_text(x)))
  if (!is.null(x$levels)) cat(levels_text(x), sep = "\n")
  counts <- vapply(x$limits$mode, function(mode) counts_text(x$n_clusters[[mode]], 3L), "")
  of <- if (x$type == "bipartite") c("rows ", "columns ")
  cat(sprintf("Number of clusters: %s\n", paste0(of, counts, collapse = "; ")))
  writeLines(limit_notes(x$limits, x$type))
  cat_wrapped(sprintf("%s of %s, %s sampler, %s", count(ncol(x$log_posterior), "chain"),
                      count(nrow(x$log_posterior), "sweep"), x$sampler, rhat_text(x)))
  if (ncol(x$log_posterior) > 1L) {
    cat("NMI between chains:", paste(sprintf("%s %.2f (expected by chance %.2f)", x$nmi$mode, x$nmi$nmi, x$nmi$chance),
                                     collapse = ", "), "\n")
  }
  if (!is.null(x$held_out)) cat(sprintf("Held-out pairs: AUC %.4f, log loss %.4f\n", x$auc, x$log_loss))
  cat_wrapped(sprintf("%s back end (%s), %s", x$backend, x$reason, seconds_text(x$run$seconds)))
  invisible(x)
}

# The greatest, and what it is of; or why there is none.
rhat_text <- function(x) {
  rhat <- x$rhat
  few <- (nrow(x$log_posterior) - x$burn_in) %/% 2L < 2L
  if (few) return("R-hat not defined: at least four sweeps after the burn-in are needed")
  label <- function(at) sub("_", " ", names(rhat)[at])
  apart <- which(is.na(rhat))
  worst <- which.max(rhat)
  text <- c(if (length(worst)) sprintf("R-hat up to %.3f (%s)", rhat[[worst]], label(worst)),
            if (length(apart)) sprintf("R-hat not defined for the %s: constant within chains, different between them",
                                       toString(label(apart))))
  stuck <- length(apart) || rhat[[worst]] > greatest_rhat
  paste0(paste(text, collapse = "; "), if (stuck) paste0("; did not converge: ", stuck_text(x$log_posterior)))
}

# Why chains have not converged.
stuck_text <- function(trace) {
  best <- apply(trace, 2L, max)
  apart <- max(best) - min(best)
  if (ncol(trace) == 1L) return("run more sweeps")
  if (apart < 0.5) return("all chains found the same best partition, but their samples differ; run more sweeps")
  sprintf("the best partitions of the chains differ by %.1f nats; the best of all is reported", apart)
}

certainty_text <- function(x) {
  each <- x$certainty[seq_len(if (x$type == "bipartite") 2L else 1L)]
  if (anyNA(unlist(each))) return("")
  sprintf("; mean agreement of samples %s, above 90 %% for %s of the nodes",
          paste(vapply(each, function(p) share_text(mean(p)), ""), collapse = " and "),
          share_text(mean(unlist(each) > 0.9)))
}

levels_text <- function(x) {
  of <- if (x$type == "bipartite") c(row = " of rows", col = " of columns") else c(row = "")
  vapply(names(x$levels), function(mode) {
    sprintf("Levels%s: %s groups", of[[mode]], paste(apply(x$levels[[mode]], 2L, max), collapse = ", "))
  }, "")
}

#' @rdname predict.weft_irm
#' @export
summary.weft_irm <- function(object, ...) {
  check_irm_fit(object)
  side <- function(z) tabulate(z, max(z))
  new_result(class = "weft_irm_summary", list(
    sizes = list(row = side(object$row_cluster), col = side(object$col_cluster)), type = object$type,
    n_clusters = object$n_clusters, explained = if (object$family == "gaussian") real_explained(object),
    density = if (object$family == "gaussian") NA_real_ else sum(object$links) / max(1, sum(object$pairs)),
    nmi = object$nmi,
    rhat = object$rhat, convergence = rhat_text(object),
    certainty = vapply(object$certainty[c("row", "col")], mean, 0),
    consensus = vapply(object$consensus[c("row", "col")], max, 0L),
    auc = object$auc, log_loss = object$log_loss, limits = object$limits, glance = glance(object)
  ))
}

# "4 (0.81), 5 (0.17)": the likeliest first.
counts_text <- function(counts, most) {
  best <- utils::head(sort(counts, decreasing = TRUE), most)
  paste(sprintf("%s (%.2f)", names(best), best), collapse = ", ")
}

#' @export
print.weft_irm_summary <- function(x, ...) {
  check_irm_summary(x)
  cat(sprintf("Log posterior of the best partition: %.2f; %s\n", x$glance$log_posterior,
              if (is.na(x$density)) sprintf("blocks explain %s of the variance", share_text(x$explained))
              else sprintf("density %.4g", x$density)))
  modes <- if (x$type == "bipartite") c("row", "col") else "row"
  for (mode in modes) {
    cat(sprintf("%s clusters, sizes: %s\n", c(row = if (length(modes) == 2L) "Row" else "Node", col = "Column")[[mode]],
                toString(utils::head(x$sizes[[mode]], 20))))
    cat(sprintf("  posterior of their number: %s\n", counts_text(x$n_clusters[[mode]], 5L)))
    sure <- x$certainty[[mode]]
    cat(sprintf("  consensus: %d%s\n", x$consensus[[mode]],
                if (is.na(sure)) "" else sprintf("; mean agreement of samples %s", share_text(sure))))
  }
  writeLines(limit_notes(x$limits, x$type))
  each <- ifelse(is.na(x$rhat), "not defined", sprintf("%.3f", x$rhat))
  cat("R-hat:", paste(names(x$rhat), each, collapse = ", "), "\n")
  cat_wrapped(x$convergence)
  invisible(x)
}
