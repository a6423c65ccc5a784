# Networks of two or more conditions, edge by edge: what appeared, what disappeared, and how sure that is; on equal
# noise as well (regulation-noise.R).

# A factor without missing values: at least two conditions of at least eight samples.
compared_groups <- function(compare, x, n) {
  given <- class_input(compare, x, n, "compare")
  condition <- given$levels[given$codes + 1L] # a level may be NA
  if (anyNA(condition)) {
    abort_input("`compare` must not have missing values.",
                x = sprintf("%d of %d are missing.", sum(is.na(condition)), n),
                i = "Remove these samples.")
  }
  groups <- factor(condition, given$levels)
  count <- table(groups)
  if (length(count) < 2L) {
    abort_input("`compare` must contain at least two conditions.", x = sprintf("It has %d.", length(count)))
  }
  if (any(count < 8L)) {
    abort_input("Every condition of `compare` must have at least 8 samples.",
                x = sprintf("\"%s\" has %d.", names(count)[which.min(count)], min(count)))
  }
  groups
}

# Every value's place among those of its gene and condition, in normal units: conditions differ in how genes depend on
# each other, and in nothing else.
places_in_groups <- function(data, groups, control) {
  for (rows in split(seq_along(groups), groups)) {
    n <- length(rows)
    data[rows, ] <- .Call(C_weft_regulation_places, data[rows, , drop = FALSE],
                          list(quantile = rank_quantiles(n), by_rank = share_by_rank(n), most = 0), control)
  }
  data
}

# Areas below this share of the greatest are not compared.
least_compared_area <- 0.05
least_turned_area <- 0.25 # in both of two conditions that it raises and lowers its target in

# The networks of all groups, and edges with p- and q-values by permuting which sample belongs to which. data: what
# says which samples the halves hold; placed: see places_in_groups(). Groups have halves of one size, so that areas
# can be compared.
compare_regulation <- function(data, placed, groups, permutations, how) {
  names <- levels(groups)
  plan <- list(count = permutations, purpose = 0, key = how$key)
  orders <- .Call(C_weft_regulation_orders, sample_names(data), plan, how$host)
  in_order <- sort(as.integer(groups))
  equal <- equal_noise(data, placed, groups, how)
  worlds <- (1 + permutations) * if (is.null(equal$about)) 1 else 2
  areas_of <- function(placed, codes, world, copies = 0) {
    how$copies <- copies
    lapply(seq_along(names), function(g) {
      rows <- which(codes == g)
      own <- data[rows, , drop = FALSE]
      scores <- regulation_scores(placed[rows, , drop = FALSE], how$host, placed = TRUE)
      choices <- regulation_choices(scores, regulation_halves(own, how), how,
                                    part_of_runs((world - 1) * length(names) + g, worlds * length(names)))
      if (world == 1) regulation_network(choices, copies, common_of(own, scores, how), how)
      else list(edges = regulation_edges(choices, length(how$genes$regulators), 0L, how$host))
    })
  }
  shape <- c(length(how$genes$regulators), length(how$genes$targets))
  full <- how$steps * how$resamples
  test_of <- function(placed, found, first) {
    test_changes(c(list(changes_of(found, shape, full)), lapply(seq_len(permutations), function(k) {
      codes <- integer(length(groups))
      codes[orders[, k] + 1L] <- in_order
      changes_of(areas_of(placed, codes, first + k), shape, full)
    })))
  }
  found <- areas_of(placed, as.integer(groups), 1, how$copies)
  tested <- test_of(placed, found, 1)
  if (!is.null(equal$about)) {
    first <- 2 + permutations
    on_equal <- test_of(equal$placed, areas_of(equal$placed, as.integer(groups), first), first)
    tested <- changed_in_both(tested, on_equal)
  }
  networks <- lapply(found, function(one) {
    new_result(one$weights, class = c("weft_regulation", "weft_network", "matrix", "array"), edges = one$edges)
  })
  names(networks) <- names
  new_result(list(edges = change_table(found, tested, shape, full, how, names), p_value = tested$overall,
                  networks = networks, groups = table(groups, dnn = NULL), permutations = permutations,
                  noise = equal$about),
             class = "weft_comparison")
}

pair_number <- function(edges, shape) (edges$to - 1) * shape[1L] + edges$from

# A column for each group: what its edges have for these pairs, 0 where there is no edge.
of_pairs <- function(pairs, what, found, shape) {
  out <- matrix(0, length(pairs), length(found))
  for (g in seq_along(found)) {
    edges <- found[[g]]$edges
    at <- match(pair_number(edges, shape), pairs)
    out[at[!is.na(at)], g] <- edges[[what]][!is.na(at)]
  }
  out
}

greatest_difference <- function(v) {
  columns <- lapply(seq_len(ncol(v)), function(g) v[, g])
  do.call(pmax, columns) - do.call(pmin, columns)
}

# list(pair, change) of pairs with some area in one group or another. The change is the greatest difference between two
# groups, of areas or of areas with the sign of the effect: an edge that turned from raising to lowering changed too.
changes_of <- function(found, shape, full) {
  pairs <- sort(unique(unlist(lapply(found, function(one) {
    pair_number(one$edges, shape)[one$edges$area >= least_compared_area * full]
  }))))
  change <- function(what) greatest_difference(of_pairs(pairs, what, found, shape))
  list(pair = pairs, change = pmax(change("area"), change("signed_area")) / full)
}

# p- and q-values of the first world's changes; the other worlds have permuted labels, and where labels mean nothing,
# each world is as good as another. A pair's p-value is the share of worlds in which it changes at least as much. Its
# q-value compares how many pairs change as much in the data and in all worlds, and is not below the p-value of the
# whole: in how many worlds the best of these rates is as small as in the data.
test_changes <- function(worlds) {
  pair <- sort(unique(unlist(lapply(worlds, `[[`, "pair"))))
  change <- matrix(0, length(pair), length(worlds))
  for (k in seq_along(worlds)) change[match(worlds[[k]]$pair, pair), k] <- worlds[[k]]$change
  change <- round(change, 12)
  pooled <- rank(-change, ties.method = "max") / length(change)
  dim(pooled) <- dim(change)
  best <- apply(pooled, 2L, function(p) if (length(p)) min(stats::p.adjust(p, "BH")) else 1)
  overall <- mean(best <= best[1L] * (1 + 1e-9))
  list(pair = pair, p_value = rowMeans(change >= change[, 1L]),
       q_value = pmax(stats::p.adjust(pooled[, 1L], "BH"), overall), overall = overall)
}

change_table <- function(found, tested, shape, full, how, names) {
  area <- of_pairs(tested$pair, "area", found, shape) / full
  signed <- of_pairs(tested$pair, "signed_area", found, shape) / full
  sign <- signed / area
  sign[area == 0] <- NA
  colnames(area) <- sprintf("area_%s", names)
  colnames(sign) <- sprintf("sign_%s", names)
  spread <- greatest_difference(area)
  turned <- rowSums(signed >= least_turned_area) > 0 & rowSums(signed <= -least_turned_area) > 0
  two <- length(names) == 2L
  effect <- if (two) area[, 2L] - area[, 1L] else spread
  change <- if (two) ifelse(effect >= 0, "appeared", "went") else rep("changed", length(effect))
  change[turned] <- "turned"
  from <- (tested$pair - 1) %% shape[1L] + 1
  to <- (tested$pair - 1) %/% shape[1L] + 1
  out <- data.frame(from = how$names[how$genes$regulators[from] + 1L],
                    to = how$names[how$genes$targets[to] + 1L], change = change, effect = effect, area, sign,
                    p_value = tested$p_value, q_value = tested$q_value, check.names = FALSE)
  kept <- which(spread > 0 | turned)
  kept <- kept[order(tested$q_value[kept], tested$p_value[kept], -abs(effect[kept]), tested$pair[kept])]
  out <- out[kept, , drop = FALSE]
  rownames(out) <- NULL
  out
}

# ---- what it is asked for ----

#' Print, summarise, draw and convert compared networks
#'
#' Methods for objects that [regulation()] returns with `compare =`. They show how each edge differs between conditions.
#'
#' `plot()` draws the edges with a q-value up to `fdr`, or the `edges` that changed most. Green edges appeared from the
#' first condition to the second, orange ones disappeared, and violet ones turned from raising to lowering their target
#' or the other way round or, with more than two conditions, changed. Thin grey lines are the heaviest edges that all
#' conditions share. An arrow raises its target, a line with a flat end lowers it.
#'
#' @param x,object an object returned by [regulation()] with `compare =`.
#' @param fdr keep edges with at most this q-value; `NULL` for all edges that were compared.
#' @param n the number of edges to show.
#' @param edges the number of edges to draw, most changed first; by default those with a q-value up to `fdr`.
#' @param shared the number of unchanged edges to draw behind them.
#' @param labels,main see [plot.weft_network()].
#' @param ... ignored.
#' @return `as.data.frame()` and `tidy()`: one row per edge, smallest q-value first, with `from`, `to`,
#'   `change` (`"appeared"`, `"went"`, `"turned"` if its areas in the two conditions are at least a quarter and of
#'   opposite sign, or `"changed"` with more than two conditions), `effect` (the area in the second condition less that
#'   in the first, or the greatest less the smallest area), the areas and signs in each condition, `p_value` and
#'   `q_value`, as described at [regulation_details]. `summary()`: a list with the numbers of edges of each change up to
#'   `fdr`, the regulators of most of them, and the p-value of the whole comparison. `plot()` and `print()`: `x`,
#'   invisibly.
#' @seealso [regulation()]; [network_tables()], [write_network()] and [as_igraph()] take its result.
#' @export
#' @examples
#' set.seed(1)
#' treated <- rep(c("no", "yes"), each = 40)
#' x <- matrix(rnorm(80 * 8), 80, dimnames = list(NULL, LETTERS[1:8]))
#' x[, "B"] <- x[, "B"] + 2 * x[, "A"] * (treated == "yes")
#' x[, "D"] <- x[, "D"] + 2 * x[, "C"] * (treated == "no")
#' both <- regulation(x, compare = treated, permutations = 20, seed = 1,
#'                    control = list(resamples = 50))
#' both
#' plot(both)
as.data.frame.weft_comparison <- function(x, ..., fdr = NULL) {
  edges <- checked_comparison(x)$edges
  if (is.null(fdr)) return(edges)
  fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  edges[edges$q_value <= fdr, , drop = FALSE]
}

#' @rdname as.data.frame.weft_comparison
#' @export
tidy.weft_comparison <- function(x, ...) broom_names(as.data.frame(x, ...), "effect")

#' @rdname as.data.frame.weft_comparison
#' @export
glance.weft_comparison <- function(x, ...) {
  s <- summary(x)
  data.frame(regulators = s$regulators, targets = s$targets, conditions = length(s$groups), compared = s$compared,
             changed = s$changed, p.value = s$p_value, permutations = s$permutations, seconds = attr(x, "seconds"))
}

#' @rdname as.data.frame.weft_comparison
#' @export
print.weft_comparison <- function(x, n = 6L, ...) {
  s <- summary(x)
  cat_wrapped(sprintf("Directed networks for %s: %d regulator%s, %d target%s",
              paste(sprintf("%s (%d samples)", names(s$groups), as.integer(s$groups)), collapse = " and "),
              s$regulators, if (s$regulators == 1) "" else "s", s$targets, if (s$targets == 1) "" else "s"))
  kinds <- s$changes[s$changes > 0]
  cat_wrapped(sprintf(paste("The networks %s (p = %.3g, %d permutations); of %d compared edges, %d changed at a false",
                            "discovery rate of %g%s"),
                      if (s$p_value <= 0.05) "differ" else "do not differ significantly", s$p_value,
                      as.integer(s$permutations), s$compared, s$changed, s$fdr,
                      if (length(kinds)) sprintf(": %s", paste(kinds, names(kinds), collapse = ", ")) else ""))
  if (!is.null(x$noise)) cat_wrapped(noise_text(x$noise))
  print_first(as.data.frame(x), n, digits = 3L)
  invisible(x)
}

#' @rdname as.data.frame.weft_comparison
#' @export
summary.weft_comparison <- function(object, ..., fdr = 0.05) {
  edges <- as.data.frame(object, fdr = fdr)
  of <- sort(table(edges$from), decreasing = TRUE)
  network <- object$networks[[1L]]
  as_summary(list(groups = object$groups, regulators = nrow(network), targets = ncol(network),
                  compared = nrow(object$edges), changed = nrow(edges), fdr = fdr,
                  changes = table(factor(edges$change, c("appeared", "went", "turned", "changed")), dnn = NULL),
                  most = utils::head(stats::setNames(as.double(of), names(of)), 10L), p_value = object$p_value,
                  permutations = object$permutations, run = run_line(object)), "Comparison of directed networks")
}

change_colours <- c(appeared = "#1b8a5a", went = "#d5662b", turned = "#7a4fa3", changed = "#7a4fa3")

#' @rdname as.data.frame.weft_comparison
#' @export
plot.weft_comparison <- function(x, edges = NULL, fdr = 0.05, shared = NULL, labels = TRUE, main = NULL, ...) {
  checked_comparison(x)
  labels <- check_network_labels(labels)
  if (!is.null(edges)) edges <- check_number(edges, "edges", min = 0, whole = TRUE)
  picture <- changes_picture(x, edges, fdr)
  table <- picture$data
  shared <- if (is.null(shared)) 2 * nrow(table) else check_number(shared, "shared", min = 0, whole = TRUE)
  names <- names(x$groups)
  old <- graphics::par(mar = c(0.5, 0.5, 2.5, 0.5))
  on.exit(graphics::par(old))
  graphics::plot.new()
  graphics::title(main %||% picture$title, cex.main = 1)
  if (!nrow(table)) return(invisible(x))
  behind <- shared_edges(x, table, shared)
  features <- unique(c(table$from, table$to, behind$from, behind$to))
  place <- place_edges(rbind(table[c("from", "to")], behind[c("from", "to")]), features)
  graphics::segments(place[behind$from, 1L], place[behind$from, 2L], place[behind$to, 1L],
                     place[behind$to, 2L], col = "grey85")
  areas <- sprintf("area_%s", names)
  greatest <- max.col(as.matrix(table[areas]), "first")
  sign <- as.matrix(table[sprintf("sign_%s", names)])[cbind(seq_len(nrow(table)), greatest)]
  weight <- do.call(pmax, table[areas])
  at <- cbind(match(table$from, features), match(table$to, features))
  for (change in unique(table$change)) {
    these <- table$change == change
    draw_arrows(place, at[these, , drop = FALSE], weight[these], sign[these], change_colours[[change]], max(weight))
  }
  degree <- tabulate(c(at), length(features))
  draw_features(place, features, degree + 1, labels, rep("#2c5f8a", length(features)))
  shown <- names(change_colours)[names(change_colours) %in% table$change]
  graphics::legend("bottomleft", shown, col = change_colours[shown], lwd = 2, bty = "n", cex = 0.8)
  invisible(x)
}

# The edges to draw: as many as asked for, or those that changed at the false discovery rate.
changes_picture <- function(x, edges, fdr) {
  table <- as.data.frame(x, fdr = if (is.null(edges)) fdr)
  if (!is.null(edges)) table <- utils::head(table, edges)
  text <- if (is.null(edges)) sprintf("%d edges changed at a false discovery rate of %g", nrow(table), fdr)
          else sprintf("the %d edges that changed most", nrow(table))
  list(data = table, title = sprintf("%s: %s", paste(names(x$groups), collapse = " to "), text))
}

# The heaviest edges in all conditions between features that the changed ones have, without these.
shared_edges <- function(x, table, most) {
  edges <- x$edges
  area <- do.call(pmin, edges[sprintf("area_%s", names(x$groups))])
  features <- unique(c(table$from, table$to))
  pair <- paste(edges$from, edges$to, sep = "\r")
  kept <- which(!pair %in% paste(table$from, table$to, sep = "\r") & area > 0.25 &
                  (edges$from %in% features | edges$to %in% features))
  edges[utils::head(kept[order(-area[kept])], most), , drop = FALSE]
}

place_edges <- function(edges, features) {
  w <- matrix(0, length(features), length(features), dimnames = list(features, features))
  w[cbind(edges$from, edges$to)] <- 1
  place <- network_layout(pmax(w, t(w)))
  rownames(place) <- features
  wide <- function(v) range(v) + c(-1, 1) * max(0.06 * diff(range(v)), 0.5)
  graphics::plot.window(wide(place[, 1L]), wide(place[, 2L]), asp = 1)
  place
}

#' @rdname as_igraph
#' @export
as_igraph.weft_comparison <- function(x, isolated = TRUE, ...) network_convert(x, "igraph", isolated = isolated)

sound_noise <- function(noise, conditions) {
  is.null(noise) || is.list(noise) && is_word(noise$weakest) && is_numbers(noise$factor, conditions, 0, 1) &&
    is_labels(names(noise$factor), conditions) && is_number(noise$p_value)
}

# It may have been saved and changed.
checked_comparison <- function(x, arg = "x") {
  check_result(x, arg, run_attributes)
  sound <- is.list(x) && is.data.frame(x$edges) && is.table(x$groups) && length(x$groups) > 1L &&
    is_number(x$p_value) && is_number(x$permutations) && is.list(x$networks) &&
    identical(names(x$networks), names(x$groups)) && sound_noise(x$noise, length(x$groups)) &&
    all(vapply(x$networks, inherits, NA, "weft_regulation"))
  columns <- if (sound) c("effect", sprintf("area_%s", names(x$groups)), sprintf("sign_%s", names(x$groups)),
                          "p_value", "q_value")
  edges <- if (sound) unclass(x$edges)
  sound <- sound && all(vapply(edges[columns], is.double, NA)) &&
    all(vapply(edges[c("from", "to", "change")], is.character, NA)) &&
    all(edges$change %in% names(change_colours)) && !anyNA(edges$q_value)
  if (sound) return(x)
  abort_input(sprintf("`%s` must be an unmodified object returned by `regulation(compare = )`.", arg),
              x = "It is damaged.")
}
