# The report on the network: its heaviest edges as an SVG, the hubs and their neighbours, and the edges with their false
# discovery rates. A script (inst/report/report.js) zooms, searches and drags the SVG, which is complete without it.

network_section <- function(fit, top) {
  net <- fit$network
  edges <- report_edges(net, fit)
  report_paragraph(network_words(fit, edges))
  if (nrow(edges)) {
    drawn <- drawn_edges(edges)
    caption <- network_caption(edges, drawn)
    if (on_page()) raw_html(network_figures(drawn, caption, network_how(net)))
    else put_figure(function() plot_fit(fit, "network"), "The network.", caption, size = c(7, 6.5),
                    more = network_how(net))
    put_table(hub_table(edges), "Genes with the most edges, and their neighbours ordered by weight.", "hubs",
              min(top, 10), minor = "predicted by",
              more = "The signs (+) and (-) mark positive and negative associations with the gene.")
    put_table(report_edge_table(edges), edges_caption(net), "edges", top, minor = "weight", more = edges_how(net))
    if (is_directed(net)) {
      folded("Accuracy in simulations", put_table(direction_columns(), paste(
        "Accuracy of directed networks in simulated data. The column not direct is the proportion of pairs that have",
        "no edge in the true network. The column outside is the proportion of pairs that have no edge in its moral",
        "graph, which also joins genes with a common target. The column correct is the proportion of clear directions",
        "that are correct, and the column expected is the proportion that the weights predict."), "directions", 50))
    }
  }
  if (is_directed(net) && !is.null(stability_text(net))) report_paragraph(stability_text(net))
}

direction_columns <- function() {
  table <- direction_table()
  table <- table[order(table$samples, table$right), ]
  data.frame(samples = table$samples, model = table$model, `genes measured` = whole_percent(table$seen),
             pairs = table$pairs, `not direct` = whole_percent(table$not_direct),
             `outside` = whole_percent(table$outside), `with direction` = table$directed,
             correct = ifelse(table$directed > 0, whole_percent(table$right), ""),
             expected = ifelse(table$directed > 0, whole_percent(table$said), ""), check.names = FALSE)
}

# from, to, weight, sign (-1, 0 or 1), q and pair_q (NA without a test), direction (NA where there is none), directed;
# heaviest first.
report_edges <- function(net, fit = NULL) {
  if (is_directed(net)) {
    e <- as.data.frame(net)
    return(data.frame(from = e$from, to = e$to, weight = e$weight, sign = sign(e$sign) * (abs(e$sign) > 0.2),
                      q = e$q_value %||% rep(NA_real_, nrow(e)), pair_q = e$pair_q %||% rep(NA_real_, nrow(e)),
                      direction = e$direction, directed = rep(TRUE, nrow(e))))
  }
  ends <- network_ends(net)
  names <- colnames(net)
  data.frame(from = names[ends[, 1L]], to = names[ends[, 2L]], weight = unclass(net)[ends],
             sign = if (is.null(fit)) rep(0, nrow(ends)) else rank_signs(fit, names, ends),
             q = rep(NA_real_, nrow(ends)), pair_q = rep(NA_real_, nrow(ends)),
             direction = rep(NA_real_, nrow(ends)), directed = rep(FALSE, nrow(ends)))
}

# Information has no sign: the sign is taken from the genes' rank correlation; 0 if it is below 0.2 or edges are many.
rank_signs <- function(fit, names, ends) {
  columns <- shown_columns(fit, names)
  if (!nrow(ends) || nrow(ends) > 1e5 || anyNA(columns)) return(rep(0, nrow(ends)))
  used <- sort(unique(c(ends)))
  ranks <- scaled_columns(apply(fit$quality$x[, columns[used], drop = FALSE], 2L, rank))
  rho <- colSums(ranks[, match(ends[, 1L], used), drop = FALSE] * ranks[, match(ends[, 2L], used), drop = FALSE]) /
    (nrow(ranks) - 1)
  sign(rho) * (abs(rho) >= 0.2)
}

# Pairs first, directions second, and what may join genes besides regulation.
network_words <- function(fit, edges) {
  net <- fit$network
  tested <- !is.null(attr(net, "fdr")) && !is.na(attr(net, "cut") %||% 0)
  genes <- several(length(network_features(net)), "gene")
  chosen <- network_chosen(fit)
  if (!nrow(edges)) return(paste(c(sprintf("No pair among %s is significantly co-expressed.", genes), chosen),
                                 collapse = " "))
  text <- if (tested) paste0(pairs_of_network(edges, fit), ".")
          else sprintf("The network has %s among %s. The pairs were not tested.",
                       several(nrow(network_pairs(edges)), "pair"), genes)
  hubs <- hubs_on_components(fit, edges)
  paste(c(text, if (tested) pair_fdr_text(net, edges), chosen,
          candidates_text(net),
          series_text(net), interventions_text(net),
          unit_text(net),
          if (is_directed(net)) c(outside_text(network_samples(fit)),
                                  network_directions(edges, network_samples(fit), attr(net, "picked"))),
          controls_joined(edges), groups_joined(fit), factors_text(fit, edges),
          if (nrow(hubs)) sprintf(paste("%s (correlation %s). The cause of this component may explain the edges of",
                                        "such genes."), sub("^t", "T", hubs_text(hubs)),
                                  paste(vapply(hubs$correlation, two_digits, ""), collapse = ", ")),
          weight_text(net)), collapse = " ")
}

# Which genes could be regulators, unless the user said it.
candidates_text <- function(net) {
  if (!is.null(network_regulators(net))) return(NULL)
  picked <- attr(net, "picked")
  if (is.null(picked)) return("No candidate regulators were given, so a pair shows co-expression, not regulation.")
  sprintf(paste("No candidate regulators were given, so weft tested %s of the %s genes as regulators (those with the",
                "largest variance of correlations). A pair therefore shows co-expression, not regulation."),
          thousands(picked), thousands(length(network_features(net))))
}

# Why the false discovery rate of the pairs may be above the limit for edges.
pair_fdr_text <- function(net, edges) {
  pair_fdr <- network_pair_fdr(edges)
  if (is.na(pair_fdr) || signif(pair_fdr, 2) == attr(net, "fdr")) return(NULL)
  sprintf(paste("The threshold for an edge was a false discovery rate (FDR) of %s. The FDR of %s is an estimate for",
                "the same edges if each pair counts once, whatever its direction. It may therefore be %s the",
                "threshold."),
          format(attr(net, "fdr")), format(signif(pair_fdr, 2)), if (pair_fdr > attr(net, "fdr")) "above" else "below")
}

# Explains edges of control probes; nothing if there are none.
controls_joined <- function(edges) {
  own <- is_control(edges$from) | is_control(edges$to)
  if (any(own)) sprintf("%s control probes. %s how the samples were processed, not how genes are regulated.",
                        paste(several(sum(own), "edge"), if (sum(own) == 1L) "involves" else "involve"),
                        if (sum(own) == 1L) "It shows" else "They show")
}

# Genes that differ between groups of samples vary together over all samples, whether or not they do within a group.
groups_joined <- function(fit) {
  groups <- if (!is.null(fit$clusters) && groups_hold(fit$clusters)) max(sample_groups(fit$clusters)) else 1L
  if (groups > 1L) sprintf(paste("The samples form %d groups (see below). Genes that differ between groups are",
                                 "correlated over all samples, even if they are not correlated within any group."),
                           groups)
}

network_chosen <- function(fit) {
  named <- is.character(step_settings(fit, "network")$genes)
  if (ncol(fit$network) >= length(representatives(fit$quality))) return(NULL)
  if (named) "The genes of the network were specified in the call."
  else if (is.null(fit$quality$class)) "The network contains the genes that vary most."
  else paste("The network contains the genes that are most strongly associated with the class. The class may therefore",
             "explain some of the edges.")
}

# What an edge's weight is, where it is first met.
weight_text <- function(net) {
  if (is_directed(net)) {
    return(paste("The weight of an edge, from 0 to 1, measures how early and how often the first gene was selected to",
                 "predict the second gene in random subsamples. The weight is higher if the first gene also predicts",
                 if (is.null(attr(net, "interventions"))) "other genes well."
                 else "other genes well, and if the second gene changes when the first gene is perturbed."))
  }
  method <- attr(net, "method")
  if (method %in% names(network_methods)) sprintf("The weight of an edge %s.", network_methods[[method]]$weight)
}

# Networks of more than 150 edges, or with a gene of more than 30, show the heaviest 100, of each gene at most 12: more
# are a thicket in which nothing can be followed, and one hub would leave no room for any other gene.
drawn_edges <- function(edges, most = 150L, few = 100L, crowd = 30L, each = 12L) {
  degree <- max(table(c(edges$from, edges$to)), 0L)
  kept <- edges
  if (nrow(edges) > most || degree > crowd) {
    kept <- utils::head(edges[within_degree(edges, each), ], few)
  }
  names <- unique(c(kept$from, kept$to))
  at <- cbind(match(kept$from, names), match(kept$to, names))
  part <- graph_components(drawn_adjacency(at, kept$weight, length(names)) > 0)
  structure(kept, parts = max(part))
}

# Which edges stay where, from the first on, an edge is left out if one of its ends has `each` already.
within_degree <- function(edges, each) {
  names <- unique(c(edges$from, edges$to))
  ends <- cbind(match(edges$from, names), match(edges$to, names))
  count <- integer(length(names))
  kept <- logical(nrow(edges))
  for (k in seq_len(nrow(edges))) {
    if (any(count[ends[k, ]] >= each)) next
    kept[k] <- TRUE
    count[ends[k, ]] <- count[ends[k, ]] + 1L
  }
  kept
}

drawn_adjacency <- function(at, weight, count) {
  w <- matrix(0, count, count)
  weight[!is.finite(weight)] <- max(weight[is.finite(weight)], 1)
  w[at] <- weight
  pmax(w, t(w))
}

network_caption <- function(edges, drawn) {
  genes <- several(length(unique(c(drawn$from, drawn$to))), "gene")
  parts <- attr(drawn, "parts")
  if (nrow(drawn) < nrow(edges)) {
    degree <- sort(table(c(edges$from, edges$to)), decreasing = TRUE)
    shown <- max(table(c(drawn$from, drawn$to)))
    capped <- !identical(drawn$weight, utils::head(edges$weight, nrow(drawn)))
    return(sprintf("The network with the %d largest weights among %s edges, and their %s.%s", nrow(drawn),
                   thousands(nrow(edges)), genes,
                   if (capped) sprintf(" At most %d edges of each gene are shown (%s has %s).", shown,
                                       names(degree)[1L], thousands(degree[[1L]])) else ""))
  }
  sprintf("The network with all %s and their %s%s.", several(nrow(edges), "edge"), genes,
          if (parts > 1L) sprintf(" in %d connected parts", parts) else "")
}

network_how <- function(net) {
  paste("Genes with more edges are larger, and edges with larger weights are wider. Edge lengths have no meaning.",
        if (is_directed(net)) paste("Arrows point from the predicting gene to the predicted gene. Solid purple edges",
                                    "are positive associations, and dashed green edges are negative associations. The",
                                    "sign of grey edges is unclear. A filled arrowhead means that the direction is",
                                    "clear (at least 0.9 of the weight of both directions). A hollow arrowhead means",
                                    "that the direction is unclear or was not tested. Edges with two arrowheads were",
                                    "selected in both directions.")
        else "Edges have no direction. Dashed green edges are negative associations.")
}

edges_caption <- function(net) {
  sprintf("Edges, ordered by weight%s.", if (is_directed(net)) ""
          else sprintf(" (method %s%s)", attr(net, "method"),
                       if (is.null(attr(net, "fdr")) || is.na(attr(net, "cut") %||% NA)) ", not tested" else ""))
}

edges_how <- function(net) {
  if (!is_directed(net)) {
    if (is.null(attr(net, "fdr")) || is.na(attr(net, "cut") %||% NA)) return(NULL)
    return(sprintf("All edges have a false discovery rate of at most %g.", attr(net, "fdr")))
  }
  paste("The weight, from 0 to 1, measures how early and how often the first gene (from) was selected to predict the",
        "second gene (to). The sign shows whether the association is positive or negative. The direction is the",
        "proportion of the weight of both directions that belongs to this direction; near 0.5, the direction is",
        "unclear. The column q is the smallest false discovery rate at which the edge is selected. An edge counts as",
        "false if its genes are independent. The rate is estimated from permuted data, so many edges have the same",
        "q-value.")
}

report_edge_table <- function(edges) {
  out <- data.frame(from = edges$from, to = edges$to, weight = edges$weight)
  if (any(edges$sign != 0)) out$sign <- c("-", "", "+")[edges$sign + 2L]
  if (!all(is.na(edges$direction))) out$direction <- edges$direction
  if (!all(is.na(edges$q))) out$q <- edges$q
  out
}

hub_table <- function(edges, most = 100L) {
  degree <- sort(table(c(edges$from, edges$to)), decreasing = TRUE)
  hubs <- utils::head(names(degree), most)
  mark <- function(e, other) paste0(other, c(" (-)", "", " (+)")[e$sign + 2L])
  directed <- any(edges$directed)
  rows <- lapply(hubs, function(g) {
    out <- edges[edges$from == g, ]
    into <- edges[edges$to == g, ]
    if (!directed) {
      neighbours <- some_of(c(mark(out, out$to), mark(into, into$from)), 10L)
      return(data.frame(gene = g, edges = nrow(out) + nrow(into), neighbours = neighbours))
    }
    data.frame(gene = g, edges = nrow(out) + nrow(into), targets = some_of(mark(out, out$to), 10L),
               `predicted by` = some_of(mark(into, into$from), 10L), check.names = FALSE)
  })
  do.call(rbind, rows)
}

# ---- the drawing ----

# The drawing; where it has small parts alone, once more in a shape that fits a phone.
network_figures <- function(drawn, caption, more = NULL) {
  names <- unique(c(drawn$from, drawn$to))
  at <- cbind(match(drawn$from, names), match(drawn$to, names))
  part <- tabulate(graph_components(drawn_adjacency(at, drawn$weight, length(names)) > 0))
  if (max(part) > 8L || length(names) > 60L) return(network_svg(drawn, caption, more = more))
  c(network_svg(drawn, caption, kind = "broad", more = more), network_svg(drawn, caption, 400, "slim", 0.5, more))
}

# kind: "" for every screen, "broad" or "slim"; shape: width to height of what the parts are packed into.
network_svg <- function(drawn, caption, width = 1000, kind = "", shape = 1.7, more = NULL) {
  names <- unique(c(drawn$from, drawn$to))
  at <- cbind(match(drawn$from, names), match(drawn$to, names))
  degree <- tabulate(at, length(names))
  place <- svg_places(drawn_adjacency(at, drawn$weight, length(names)), width, shape)
  height <- attr(place, "height")
  radius <- round(3.5 + 6 * sqrt(degree / max(degree)), 1)
  label <- shown_names(names, if (kind == "slim") 24L else 40L)
  shown <- svg_labels(place, at, label, degree, radius, c(width, height))
  directed <- any(drawn$directed)
  c(sprintf("<figure class=\"%s\"><div class=\"pan\">", trimws(paste("network", kind))),
    sprintf("<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", as.integer(width), as.integer(height),
            html_text(sprintf("Network of %d genes and %d edges. The table below lists the edges.", length(names),
                              nrow(drawn)))),
    "<defs>", svg_marker(c(up = "#762a83", down = "#1b7837", plain = "#77828d"), kind), "</defs>",
    svg_edges(drawn, at, place, radius, directed, kind),
    svg_nodes(names, label, degree, place, radius, shown),
    "</svg></div>", sprintf("<figcaption>%s</figcaption>", html_text(caption)), how_to_read(more), "</figure>")
}

svg_nodes <- function(names, label, degree, place, radius, shown) {
  hub <- degree >= max(4, stats::quantile(degree, 0.9))
  paste0(sprintf(paste("<g class=\"node%s%s\" data-x=\"%.1f\" data-y=\"%.1f\" data-r=\"%.1f\"",
                       "transform=\"translate(%.1f,%.1f)\">"),
                 ifelse(hub, " hub", ""), ifelse(shown$free, "", " hidden"), place[, 1L], place[, 2L], radius,
                 place[, 1L], place[, 2L]),
         sprintf("<title>%s: %d edge%s</title>", html_text(names), degree, ifelse(degree == 1L, "", "s")),
         sprintf("<circle r=\"%.1f\"/>", radius),
         sprintf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text></g>", shown$x, shown$y, shown$anchor,
                 html_text(label)))
}

# For each kind of edge a filled arrowhead and a hollow one, for directions that are open. A drawing that is not shown
# lends none, so that each has its own (`owner`).
svg_marker <- function(colours, owner) {
  head <- paste0("<marker id=\"%s%s-%s\" viewBox=\"0 0 12 12\" refX=\"9\" refY=\"6\" markerWidth=\"%d\" ",
                 "markerHeight=\"%d\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M1 2 L11 6 L1 10 z\" ",
                 "fill=\"%s\" stroke=\"%s\" stroke-width=\"1.3\" stroke-linejoin=\"round\"/></marker>")
  c(sprintf(head, "arrow", owner, names(colours), 10L, 10L, colours, colours),
    sprintf(head, "open", owner, names(colours), 12L, 12L, "white", colours))
}

svg_edges <- function(drawn, at, place, radius, directed, owner) {
  kind <- c("down", "plain", "up")[drawn$sign + 2L]
  weight <- drawn$weight
  weight[!is.finite(weight)] <- max(weight[is.finite(weight)], 1)
  wide <- 0.8 + 2.6 * sqrt(weight / max(weight))
  from <- place[at[, 1L], , drop = FALSE]
  to <- place[at[, 2L], , drop = FALSE]
  away <- to - from
  long <- pmax(sqrt(rowSums(away^2)), 1e-9)
  start <- from + away / long * radius[at[, 1L]]
  end <- to - away / long * (radius[at[, 2L]] + if (directed) 3 else 0)
  clear <- !is.na(drawn$direction) & drawn$direction >= clear_direction
  told <- sprintf("%s %s %s%s, weight %.3g%s%s", drawn$from, if (directed) "predicts" else "and", drawn$to,
                  c(" (negative)", "", " (positive)")[drawn$sign + 2L], drawn$weight,
                  ifelse(is.na(drawn$q), "", sprintf(", q %.2g", drawn$q)),
                  ifelse(is.na(drawn$direction), "", ifelse(clear, ", direction clear", ", direction unclear")))
  sprintf(paste0("<line class=\"edge %s\" data-a=\"%d\" data-b=\"%d\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" ",
                 "y2=\"%.1f\" stroke-width=\"%.1f\"%s>",
                 "<title>%s</title></line>"), kind, at[, 1L] - 1L, at[, 2L] - 1L, start[, 1L], start[, 2L], end[, 1L],
                 end[, 2L], wide,
          if (directed) sprintf(" marker-end=\"url(#%s%s-%s)\"", ifelse(clear, "arrow", "open"), owner, kind)
          else rep("", length(kind)), html_text(told))
}

# Places in a picture of this width, as high as it needs, the largest part on top.
svg_places <- function(w, width, shape = 1.7, margin = 70) {
  xy <- network_layout(w, shape)
  xy[, 2L] <- -xy[, 2L] # SVG counts downwards
  span <- apply(xy, 2L, function(v) max(diff(range(v)), 1e-9))
  scale <- (width - 2 * margin) / if (shape > 1) max(span[1L], 0.8 * span[2L], 4) else max(span[1L], 3)
  place <- sweep(xy, 2L, apply(xy, 2L, min)) * scale
  place[, 1L] <- place[, 1L] + (width - span[1L] * scale) / 2
  place[, 2L] <- place[, 2L] + margin / 2
  structure(round(place, 1), height = round(span[2L] * scale + margin))
}

# Where names stand: right, left, above or below their point, where they cover no other name or point and, if it can be,
# no edge; names of the genes with the most edges first. Those without room are hidden until the gene is pointed at.
svg_labels <- function(place, at, label, degree, radius, space, size = 11) {
  wide <- 0.6 * size * nchar(label, "width") + 2
  boxes <- cbind(place - radius, place + radius)
  along <- do.call(rbind, lapply(seq(0.06, 0.94, length.out = 23L), function(t) {
    (1 - t) * place[at[, 1L], , drop = FALSE] + t * place[at[, 2L], , drop = FALSE]
  }))
  count <- length(label)
  out <- data.frame(x = radius + 3, y = rep(size * 0.35, count), anchor = "start", free = FALSE)
  covers <- function(box, low, high) { # names on one line keep a space between them
    box[c(1L, 3L)] <- box[c(1L, 3L)] + c(-6, 6)
    any(box[1L] < high[, 1L] & box[3L] > low[, 1L] & box[2L] < high[, 2L] & box[4L] > low[, 2L])
  }
  for (i in order(-degree, seq_len(count))) {
    r <- radius[i] + 3
    dx <- c(r, -r - wide[i], -wide[i] / 2, -wide[i] / 2)
    dy <- c(-size / 2, -size / 2, -r - size, r)
    tries <- lapply(1:4, function(t) c(place[i, ] + c(dx[t], dy[t]), place[i, ] + c(dx[t] + wide[i], dy[t] + size)))
    free <- vapply(tries, function(box) {
      all(box[1:2] >= 0, box[3:4] <= space) &&
        !covers(box, boxes[-i, 1:2, drop = FALSE], boxes[-i, 3:4, drop = FALSE])
    }, NA)
    if (!any(free)) next
    clear <- free & !vapply(tries, covers, NA, low = along, high = along)
    t <- which(if (any(clear)) clear else free)[1L]
    out$x[i] <- c(r, -r, 0, 0)[t]
    out$y[i] <- dy[t] + 0.85 * size
    out$anchor[i] <- c("start", "end", "middle", "middle")[t]
    out$free[i] <- TRUE
    boxes <- rbind(boxes, tries[[t]])
  }
  out
}
