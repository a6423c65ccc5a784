# What users ask of a directed network: tables of edges, print, summary, pictures.

#' Print, summarise and convert directed networks
#'
#' @section Columns: `from` and `to` are the regulator and its target.
#'   * `weight`: from 0 to 1; the edges are ranked by it.
#'   * `sign`: from -1 to 1: the sign of the regulator's effect, averaged over the times it was chosen. Where there is
#'     evidence of interventions, it is the sign of the shift, or the opposite sign if the regulator was lowered: -1
#'     where the regulator was lowered and the target rose.
#'   * `direction`: the proportion of this edge in the sum of the weights of both directions; `NA` where the target is
#'     not a regulator.
#'   * `frequency`: the proportion of the half-samples in which the regulator was chosen.
#'   * `area`: 1 if the regulator was always chosen first; see [regulation_details].
#'   * `q_value`: the smallest false discovery rate at which the edge is kept.
#'   * `pair_q`: the same for the pair, whichever way the edge points, by the greater of both areas; not with
#'     `interventions`.
#'   * `evidence`, with `interventions`: `"intervention"` where the shift has a q-value up to `r evidence_level`,
#'     `"observed"` where the area has one (or neither has), and `"both"`. Edges that no regression chose are of
#'     interventions.
#'   * `shift`, with `interventions`: how much the gene is shifted in samples in which the regulator was perturbed, in
#'     units of the data; `NA` where it was not perturbed.
#'   * `shift_q`, with `interventions`: the q-value of the shift, among all shifts.
#'   * `expected_false`: an upper bound on the expected number of false edges of at least this frequency, by Shah and
#'     Samworth (2013) for unimodal frequencies; `NA` for frequencies up to one half, and where pairs of halves share
#'     samples.
#'
#' @param x,object an object returned by [regulation()].
#' @param fdr keep edges with at most this q-value; `NULL` for the whole ranking. An object returned by
#'   [gene_regulation()] has a threshold of its own.
#' @param n the number of edges to show.
#' @param ... ignored.
#' @return `as.data.frame()` and `tidy()`: one row per edge, heaviest first; see Columns. `summary()`: a list with the
#'   numbers of features, regulators, targets and edges with a q-value up to `fdr`, the pairs that these are and the
#'   false discovery rate of pairs, the pairs with a clear direction and the share of these that the weights expect to
#'   point the wrong way, the regulators with the most of these edges, and the number of features without any.
#'   `as.matrix()`: a plain matrix of weights.
#' @export
#' @examples
#' net <- regulation(mtcars, seed = 1, control = list(resamples = 20))
#' head(as.data.frame(net))
#' summary(net)$edges
as.data.frame.weft_regulation <- function(x, ..., fdr = attr(x, "fdr")) {
  edges <- attr(x, "edges")
  if (is.null(edges)) return(NextMethod())
  check_regulation(x)
  kept <- shown_edges(x, fdr)
  weight <- unclass(x)[cbind(edges$from[kept], edges$to[kept])]
  by_weight <- order(-weight, edges$from[kept], edges$to[kept])
  kept <- kept[by_weight]
  from <- edges$from[kept]
  to <- edges$to[kept]
  halves <- attr(x, "resamples")
  frequency <- edges$times[kept] / halves
  out <- list(from = rownames(x)[from], to = colnames(x)[to], weight = weight[by_weight],
              sign = edges$signed_area[kept] / edges$area[kept],
              direction = direction_share(x, from, to, weight[by_weight]),
              frequency = frequency, area = edges$area[kept] / (attr(x, "steps") * halves))
  if (!is.null(edges$evidence)) {
    own <- as.double(edges$effect[kept])
    out$sign <- ifelse(is.na(own), out$sign, own)
    out$evidence <- evidence_words[edges$evidence[kept]]
    out[c("shift", "shift_q")] <- list(edges$shift[kept], edges$shift_q[kept])
  }
  if (!is.null(edges$q_value)) out$q_value <- edges$q_value[kept]
  if (!is.null(edges$pair_q)) out$pair_q <- edges$pair_q[kept]
  out$expected_false <- if (isFALSE(attr(x, "complementary"))) rep(NA_real_, length(kept))
                        else expected_false(frequency, attr(x, "steps"), halves / 2, nrow(x), ncol(x))
  list2DF(out, length(kept))
}

# Which edges have a q-value up to `fdr`; all of them without one.
shown_edges <- function(x, fdr = attr(x, "fdr")) {
  edges <- attr(x, "edges")
  if (is.null(fdr)) return(seq_along(edges$area))
  fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  need_q_values(x)
  which(edges$q_value <= fdr)
}

# How many of the shown edges each feature has, as regulator or target.
directed_degree <- function(x) {
  features <- network_features(x)
  edges <- attr(x, "edges")
  kept <- shown_edges(x)
  at <- c(match(rownames(x), features)[edges$from[kept]], match(colnames(x), features)[edges$to[kept]])
  stats::setNames(as.double(tabulate(at, length(features))), features)
}

need_q_values <- function(x) {
  if (is.null(attr(x, "edges")$q_value)) {
    abort_input("`fdr` needs q-values.", x = "The network was computed without null data sets.",
                i = "Call `regulation()` with `control = list(null_copies = 1)` or more.")
  }
}

# What edges are as pairs and as directions: list(pairs, pair_fdr: the false discovery rate of these pairs, NA where it
# is not known, tested: pairs that could point either way, directed: pairs with a clear direction, wrong: the share of
# these that the weights expect to point the other way).
pair_statement <- function(edges) {
  pairs <- network_pairs(edges)
  clear <- pairs$direction[!is.na(pairs$direction) & pairs$direction >= clear_direction]
  list(pairs = nrow(pairs), pair_fdr = if (nrow(edges) && !is.null(edges$pair_q)) max(edges$pair_q) else NA_real_,
       tested = sum(!is.na(pairs$direction)), directed = length(clear),
       wrong = if (length(clear)) mean(1 - clear) else NA_real_)
}

# "As pairs those at 0.05 are 41, at a rate of 0.04; 16 point clearly one way, of which the weights expect 5 % to be
# wrong."
stated_text <- function(x, fdr) {
  s <- pair_statement(as.data.frame(x, fdr = fdr))
  rate <- if (is.na(s$pair_fdr)) "" else sprintf(" (false discovery rate %s)", format(signif(s$pair_fdr, 2)))
  way <- if (!s$tested) "directions were given"
         else if (!s$directed) "none has a clear direction"
         else sprintf("%s a clear direction, of which %s are expected to be wrong",
                      if (s$directed == 1L) "1 has" else paste(thousands(s$directed), "have"), share_text(s$wrong))
  sprintf("At %g, the edges form %s%s; %s.", fdr, several(s$pairs, "pair"), rate, way)
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
tidy.weft_regulation <- function(x, ...) broom_names(as.data.frame(x, ...))

#' @rdname as.data.frame.weft_regulation
#' @export
print.weft_regulation <- function(x, n = 6L, ...) {
  if (is.null(attr(x, "edges"))) return(invisible(print(as.matrix(x))))
  check_regulation(x)
  check_result(x, record = run_attributes)
  q <- attr(x, "edges")$q_value
  cat(sprintf("Directed network: %s of %s, %s ranked\n", several(nrow(x), "regulator"), several(ncol(x), "target"),
              several(length(attr(x, "edges")$area), "edge")))
  if (!is.null(attr(x, "picked"))) {
    cat("The regulators were selected by their correlations; `regulators =` accepts a list.\n")
  }
  if (!is.null(attr(x, "normalised"))) cat_wrapped(attr(x, "normalised"))
  if (!is.null(q)) {
    cat(sprintf("Edges at a false discovery rate of 0.05: %d, of 0.2: %d\n", sum(q <= 0.05), sum(q <= 0.2)))
    if (any(q <= 0.05)) cat_wrapped(stated_text(x, 0.05))
  }
  if (!is.null(series_text(x))) cat_wrapped(series_text(x))
  if (!is.null(interventions_text(x))) cat_wrapped(interventions_text(x))
  if (!is.null(stability_text(x))) cat_wrapped(stability_text(x))
  print_first(as.data.frame(x, fdr = NULL), n, digits = 3L)
  invisible(x)
}

#' @rdname as.data.frame.weft_regulation
#' @export
summary.weft_regulation <- function(object, ...,
                                    fdr = if (!is.null(attr(object, "edges")$q_value)) attr(object, "fdr") %||% 0.05) {
  edges <- as.data.frame(object, fdr = fdr)
  features <- union(rownames(object), colnames(object))
  pairs <- as.double(nrow(object)) * ncol(object) - length(intersect(rownames(object), colnames(object)))
  out <- table(factor(edges$from, unique(rownames(object))))
  stated <- if (!is.null(fdr)) pair_statement(edges)
  as_summary(list(
    features = length(features), regulators = nrow(object), targets = ncol(object), edges = nrow(edges), fdr = fdr,
    pairs = stated$pairs, pair_fdr = stated$pair_fdr, directed = stated$directed, wrong = stated$wrong,
    density = if (pairs > 0) nrow(edges) / pairs else 0,
    most = utils::head(sort(stats::setNames(as.double(out), names(out))[out > 0], decreasing = TRUE), 10L),
    isolated = sum(!features %in% c(edges$from, edges$to)), method = attr(object, "method"), run = run_line(object)
  ), "Directed network")
}

is_directed <- function(x) inherits(x, "weft_regulation")

# Everything that a network is about; a directed one may have regulators that are not targets.
network_features <- function(x) if (is_directed(x)) union(colnames(x), rownames(x)) else colnames(x)

# ---- pictures ----

#' Draw a directed network
#'
#' An arrow goes from a regulator to a target that it raises, a line with a flat end to one that it lowers; wider lines
#' have more weight. Everything else is as in [plot.weft_network()].
#'
#' @inheritParams plot.weft_network
#' @param x an object returned by [regulation()].
#' @param edges the number of edges to draw, heaviest first; by default those with a q-value up to `fdr`, of more than
#'   150 the heaviest 100, or, without q-values, as many as there are features.
#' @param fdr see `edges`.
#' @param groups a factor or vector, one value per feature: the targets, then the regulators that are not targets.
#' @return `x`, invisibly.
#' @export
#' @examples
#' plot(regulation(mtcars, seed = 1, control = list(resamples = 20)), edges = 12)
plot.weft_regulation <- function(x, edges = NULL, fdr = attr(x, "fdr") %||% 0.05, labels = TRUE, groups = NULL,
                                 main = NULL, ...) {
  features <- network_features(x)
  groups <- check_groups(groups, length(features))
  labels <- check_network_labels(labels)
  if (!is.null(edges)) edges <- check_number(edges, "edges", min = 0, whole = TRUE)
  picture <- directed_picture(x, edges, fdr)
  table <- picture$data
  old <- graphics::par(mar = c(0.5, 0.5, 2.5, 0.5))
  on.exit(graphics::par(old))
  graphics::plot.new()
  graphics::title(main %||% picture$title, cex.main = 1)
  if (!nrow(table)) return(invisible(x))
  keep <- features[features %in% c(table$from, table$to)]
  at <- cbind(match(table$from, keep), match(table$to, keep))
  w <- matrix(0, length(keep), length(keep))
  w[at] <- table$weight
  w <- pmax(w, t(w))
  place <- network_layout(w)
  wide <- function(v) range(v) + c(-1, 1) * max(0.06 * diff(range(v)), 0.5)
  graphics::plot.window(wide(place[, 1L]), wide(place[, 2L]), asp = 1)
  draw_arrows(place, at, table$weight, table$sign)
  colour <- if (is.null(groups)) rep("#2c5f8a", length(keep)) else group_colours(groups)[match(keep, features)]
  draw_features(place, keep, rowSums(w > 0), labels, colour)
  if (!is.null(groups)) draw_groups(groups)
  invisible(x)
}

# colour: by default one for edges that raise and one for those that lower their target.
draw_arrows <- function(place, at, weight, sign, colour = NULL, heaviest = max(weight)) {
  share <- weight / heaviest
  along <- place[at[, 2L], , drop = FALSE] - place[at[, 1L], , drop = FALSE]
  length <- sqrt(rowSums(along^2))
  short <- along * pmax(0, 1 - 0.12 / length) # ends before the target's point
  for (raises in c(TRUE, FALSE)) {
    these <- which((sign >= 0) == raises)
    if (!length(these)) next
    from <- place[at[these, 1L], , drop = FALSE]
    graphics::arrows(from[, 1L], from[, 2L], from[, 1L] + short[these, 1L], from[, 2L] + short[these, 2L],
                     length = 0.06, angle = if (raises) 25 else 90, lwd = 0.6 + 2 * share[these],
                     col = colour %||% if (raises) "#762a83" else "#1b7837")
  }
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_regulation <- function(object, top = NULL, ...) {
  picture <- directed_picture(object, if (!is.null(top)) check_top(top), attr(object, "fdr") %||% 0.05)
  edges <- picture$data
  if (!nrow(edges)) { # as plot(): the title says so
    return(ggplot2::ggplot() + ggplot2::theme_void() + ggplot2::labs(title = picture$title))
  }
  picture_of_network(edges$from, edges$to, edges$weight, picture$title, arrows = TRUE)
}
