# What a directed network is asked for: tables of edges, print, summary, pictures.

#' Print, summarise and convert directed networks
#'
#' @param x,object what [regulation()] returned.
#' @param fdr keep edges with at most this q-value; `NULL`: the whole ranking.
#' @param n how many edges to show.
#' @param ... ignored.
#' @return `as.data.frame()` and `tidy()`: one row an edge, heaviest first; its columns are described at [regulation()]. `summary()`: a list
#'   with the numbers of features, regulators, targets and edges with a q-value up to `fdr`, the regulators of most such
#'   edges, and how many features have none. `as.matrix()`: a plain matrix of weights.
#' @export
#' @examples
#' net <- regulation(mtcars, resamples = 20, seed = 1)
#' head(as.data.frame(net))
#' summary(net)$edges
as.data.frame.weft_regulation <- function(x, ..., fdr = NULL) {
  edges <- attr(x, "edges")
  if (is.null(edges)) return(NextMethod())
  kept <- seq_along(edges$area)
  if (!is.null(fdr)) {
    fdr <- check_number(fdr, "fdr", min = 0, max = 1)
    need_q_values(x)
    kept <- which(edges$q_value <= fdr)
  }
  weight <- unclass(x)[cbind(edges$regulator[kept], edges$target[kept])]
  by_weight <- order(-weight, edges$regulator[kept], edges$target[kept])
  kept <- kept[by_weight]
  from <- edges$regulator[kept]
  to <- edges$target[kept]
  halves <- attr(x, "resamples")
  frequency <- edges$times[kept] / halves
  out <- list(regulator = rownames(x)[from], target = colnames(x)[to], weight = weight[by_weight],
              sign = edges$signed_area[kept] / edges$area[kept], direction = direction_share(x, from, to, weight[by_weight]),
              frequency = frequency, area = edges$area[kept] / (attr(x, "steps") * halves))
  if (!is.null(edges$q_value)) out$q_value <- edges$q_value[kept]
  out$expected_false <- expected_false(frequency, attr(x, "steps"), halves / 2, nrow(x), ncol(x))
  list2DF(out, length(kept))
}

need_q_values <- function(x) {
  if (is.null(attr(x, "edges")$q_value)) {
    abort_input("`fdr` needs q-values.", x = "`regulation()` made no null copies.", i = "Call it with `copies = 1` or more.")
  }
}

# w_ij / (w_ij + w_ji), where j is a regulator and i a target too.
direction_share <- function(x, from, to, weight) {
  back_row <- match(colnames(x), rownames(x))[to]
  back_column <- match(rownames(x), colnames(x))[from]
  known <- !is.na(back_row) & !is.na(back_column)
  out <- rep(NA_real_, length(from))
  other <- unclass(x)[cbind(back_row[known], back_column[known])]
  out[known] <- ifelse(weight[known] + other > 0, weight[known] / (weight[known] + other), 0.5)
  out
}

# Shah and Samworth (2013), theorem 2: of features that a half chooses with a probability of at most theta, at most
# C(tau, pairs) theta^2 times their number are chosen in a share tau of the halves. theta is that of a choice by chance,
# the steps by the regulators.
expected_false <- function(frequency, steps, pairs, regulators, targets) {
  theta <- min(1, steps / regulators)
  least <- min(0.5 + theta^2, 0.5 + 1 / (2 * pairs) + 0.75 * theta^2)
  low <- 1 / (2 * (2 * frequency - 1 - 1 / (2 * pairs)))
  high <- 4 * (1 - frequency + 1 / (2 * pairs)) / (1 + 1 / pairs)
  out <- ifelse(frequency > 0.75, high, low) * theta^2 * regulators * targets
  out[frequency <= least | low <= 0] <- NA
  out
}

#' @rdname as.data.frame.weft_regulation
#' @export
tidy.weft_regulation <- function(x, ...) as.data.frame(x, ...)

#' @rdname as.data.frame.weft_regulation
#' @export
print.weft_regulation <- function(x, n = 6L, ...) {
  if (is.null(attr(x, "edges"))) return(invisible(print(as.matrix(x))))
  q <- attr(x, "edges")$q_value
  cat(sprintf("Directed network: %d regulator%s of %d target%s, %d edges ranked\n", nrow(x), if (nrow(x) == 1) "" else "s", ncol(x),
              if (ncol(x) == 1) "" else "s", length(attr(x, "edges")$area)))
  if (!is.null(attr(x, "picked"))) cat("The regulators were picked by their correlations; `regulators =` takes a list.\n")
  if (!is.null(q)) cat(sprintf("False discovery rate: %d edges at .05, %d at .2\n", sum(q <= 0.05), sum(q <= 0.2)))
  edges <- as.data.frame(x)
  if (nrow(edges)) {
    shown <- utils::head(edges, n)
    shown[] <- lapply(shown, function(column) if (is.double(column)) signif(column, 3) else column)
    print.data.frame(shown, row.names = FALSE)
  }
  if (nrow(edges) > n) cat(sprintf("... and %d more\n", nrow(edges) - n))
  cat(run_line(x), "\n", sep = "")
  invisible(x)
}

#' @rdname as.data.frame.weft_regulation
#' @export
summary.weft_regulation <- function(object, fdr = if (is.null(attr(object, "edges")$q_value)) NULL else 0.05, ...) {
  edges <- as.data.frame(object, fdr = fdr)
  features <- union(rownames(object), colnames(object))
  pairs <- as.double(nrow(object)) * ncol(object) - length(intersect(rownames(object), colnames(object)))
  out <- table(factor(edges$regulator, rownames(object)))
  list(features = length(features), regulators = nrow(object), targets = ncol(object), edges = nrow(edges), fdr = fdr,
       density = if (pairs > 0) nrow(edges) / pairs else 0,
       most = utils::head(sort(stats::setNames(as.double(out), names(out))[out > 0], decreasing = TRUE), 10L),
       isolated = sum(!features %in% c(edges$regulator, edges$target)), method = attr(object, "method"))
}
