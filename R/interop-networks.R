# Networks for other programs: files of Cytoscape and others, and the objects of other packages.

#' Networks for other programs and packages
#'
#' `network_tables()` gives nodes and edges as two data frames, in the form that tidygraph's `tbl_graph()` takes;
#' `network_convert()` gives an object of another package; `write_network()` writes a file for Cytoscape, Gephi or a
#' text editor.
#'
#' GraphML has all columns of nodes and edges as attributes, and reads back unchanged. SIF has one line per edge,
#' `gene1 interaction gene2`, separated by tabs; the interaction is `mi` for networks of mutual information, `drives`
#' for directed ones, and the change of the edge for compared ones; genes without edges have lines of their own. Files
#' are UTF-8. Tabs, line ends and other control characters in names are written as in R (`\\t`, `\\n`) in SIF, and so
#' are those that XML cannot hold in GraphML. In CSV, text that a spreadsheet would take for a formula has an
#' apostrophe before it.
#'
#' @param x an object returned by [gene_network()], [mi_network()], [regulation()], [gene_mi_network()], [bn_learn()] or
#'   [bn_exact()].
#' @param which for a result of [gene_network()]: `"network"` (mutual information) or `"bayes"` (directed).
#' @param isolated whether to keep genes without edges.
#' @param to `"igraph"`, `"graphNEL"` (package graph), `"tidygraph"`, or for directed networks `"bnlearn"`.
#' @param file the path of the file. It is written under a temporary name and renamed when it is complete. Only a
#'   regular file is replaced; a symbolic link is replaced itself, and what it leads to stays as it is.
#' @param format `"graphml"`, `"sif"` or `"csv"` (the table of edges); by default, it is inferred from the extension of
#'   the file.
#' @return `network_tables()`: a list of `nodes` (with `name` first; from [gene_network()] with all that is known of the
#'   genes), `edges` (`from` and `to` by name, and their numbers), and `directed`; `network_convert()`: the object;
#'   `write_network()`: the path, invisibly.
#' @seealso [as_igraph()], [bn_convert()]
#' @export
#' @examples
#' net <- mi_network(mtcars, "aracne", estimator = "spearman")
#' network_tables(net)$edges[1:3, ]
#' file <- tempfile(fileext = ".graphml")
#' write_network(net, file)
#' readLines(file, 5)
network_tables <- function(x, which = c("network", "bayes"), isolated = TRUE) {
  need_args("x")
  isolated <- check_flag(isolated, "isolated")
  which <- check_choice(which, c("network", "bayes"), "which")
  known <- NULL
  if (inherits(x, "weft_gene_network")) {
    x <- checked_fit(x, "x")
    if (is.null(x[[which]])) abort_no_result("There is no such network in `x`.", x, which)
    known <- reading("x", gene_table(x))
    x <- x[[which]]
  }
  if (inherits(x, "weft_bn")) {
    x <- checked_step(x, "bayes", "x", "bn_learn()")
    edges <- reading("x", as.data.frame(x))
    names <- rownames(x$dag)
  } else if (inherits(x, "weft_comparison")) {
    edges <- checked_comparison(x)$edges
    names <- network_features(x$networks[[1L]])
  } else if (inherits(x, "weft_network")) {
    x <- checked_step(x, "network", "x", "mi_network()")
    edges <- reading("x", as.data.frame(x))
    names <- network_features(x)
  } else {
    abort_input("`x` must be a network made by weft.", x = paste0("It is ", describe(x), "."))
  }
  if (anyDuplicated(names)) abort_input("Features must have unique names.",
                                        x = sprintf("Duplicated: %s.", label_some(unique(names[duplicated(names)]))))
  nameless <- which(is.na(names) | !nzchar(names))
  if (length(nameless)) abort_input("Features must have names.", x = sprintf("Feature %d has none.", nameless[1L]))
  if (!isolated) names <- names[names %in% c(edges$from, edges$to)]
  nodes <- data.frame(name = names)
  if (!is.null(known)) nodes <- cbind(nodes, known[match(names, known$gene),
                                                   !names(known) %in% c("gene", "kept", "reason"), drop = FALSE])
  rownames(nodes) <- NULL
  list(nodes = nodes, edges = edges, directed = inherits(x, c("weft_bn", "weft_comparison")) || is_directed(x))
}

#' @rdname network_tables
#' @export
network_convert <- function(x, to = c("igraph", "graphNEL", "tidygraph", "bnlearn"), which = c("network", "bayes"),
                            isolated = TRUE) {
  to <- check_choice(to, c("igraph", "graphNEL", "tidygraph", "bnlearn"), "to")
  tables <- network_tables(x, which, isolated)
  if (to == "bnlearn") {
    if (!tables$directed) abort_input("`to = \"bnlearn\"` needs a Bayesian network.",
                                      i = "`which = \"bayes\"` selects the one in a result of `gene_network()`.")
    return(bn_convert(if (inherits(x, "weft_gene_network")) unclass(x)$bayes else x, "bnlearn"))
  }
  need_package(switch(to, igraph = "igraph", graphNEL = "graph", tidygraph = "tidygraph"), sprintf("`to = \"%s\"`", to))
  if (to == "graphNEL") return(to_graph_nel(tables))
  if (to == "tidygraph") { # not declared: it is not needed for more than this line
    edges <- tables$edges
    edges[c("from", "to")] <- lapply(edges[c("from", "to")], match, tables$nodes$name)
    return(tidygraph::tbl_graph(nodes = tables$nodes, edges = edges, directed = tables$directed))
  }
  igraph::graph_from_data_frame(tables$edges, directed = tables$directed, vertices = tables$nodes)
}

to_graph_nel <- function(tables) {
  out <- methods::new(methods::getClass("graphNEL", where = asNamespace("graph")), nodes = tables$nodes$name,
                      edgemode = if (tables$directed) "directed" else "undirected")
  if (!nrow(tables$edges)) return(out)
  weight <- tables$edges$weight %||% tables$edges$posterior %||% rep(1, nrow(tables$edges))
  graph::addEdge(tables$edges$from, tables$edges$to, out, weight)
}

#' @rdname as_igraph
#' @param which see [network_convert()].
#' @export
as_igraph.weft_gene_network <- function(x, which = c("network", "bayes"), isolated = TRUE, ...) {
  network_convert(x, "igraph", which, isolated)
}

#' @rdname as_igraph
#' @export
as_igraph.weft_bn <- function(x, isolated = TRUE, ...) network_convert(x, "igraph", isolated = isolated)

# ---- files ----

#' @rdname network_tables
#' @export
write_network <- function(x, file, format = NULL, which = c("network", "bayes"), isolated = TRUE) {
  need_args("x", "file")
  file <- check_output(file, "file")
  format <- check_choice(format %||% tolower(sub(".*\\.", "", basename(file))), c("graphml", "sif", "csv"), "format")
  tables <- network_tables(x, which, isolated)
  lines <- switch(format, graphml = graphml_lines(tables), sif = sif_lines(tables), csv = csv_lines(tables$edges))
  write_text(lines, file)
  invisible(file)
}

# A file without any tab is read as divided by spaces, so that the lines of a network without edges end in one.
sif_lines <- function(tables) {
  e <- tables$edges
  name <- plain_text(tables$nodes$name)
  if (anyDuplicated(name)) {
    abort_input("Names must differ when control characters in them are written as text.",
                x = sprintf("Duplicated: %s.", label_some(unique(name[duplicated(name)]))),
                i = "`format = \"graphml\"` keeps them distinct.")
  }
  from <- name[match(e$from, tables$nodes$name)]
  to <- name[match(e$to, tables$nodes$name)]
  alone <- name[!tables$nodes$name %in% c(e$from, e$to)]
  if (!nrow(e)) return(sprintf("%s\t", alone))
  c(paste(from, e$change %||% if (tables$directed) "drives" else "mi", to, sep = "\t"), alone)
}

csv_lines <- function(d) {
  cells <- function(v) if (is.double(v)) digits_of(v) else if (is.character(v)) csv_text(v) else as.character(v)
  columns <- lapply(d, function(v) ifelse(is.na(v), "NA", cells(if (is.factor(v)) as.character(v) else v)))
  c(paste(csv_text(names(d)), collapse = ","), if (nrow(d)) do.call(paste, c(unname(columns), sep = ",")))
}

graphml_lines <- function(tables) {
  keys <- function(d, domain) {
    if (!length(d)) return(character())
    sprintf("  <key id=\"%s_%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\"/>", domain, xml_text(names(d)), domain,
            xml_text(names(d)), vapply(d, function(v) switch(typeof(v), logical = "boolean",
                                         integer = if (is.factor(v)) "string" else "int", double = "double",
                                         "string"), ""))
  }
  cells_of <- function(d, domain) {
    cells <- lapply(names(d), function(column) {
      v <- d[[column]]
      text <- if (is.logical(v)) tolower(as.character(v)) else if (is.double(v)) digits_of(v, "INF") else xml_text(v)
      ifelse(is.na(v), "", sprintf("<data key=\"%s_%s\">%s</data>", domain, xml_text(column), text))
    })
    if (length(cells)) do.call(paste0, cells) else rep("", nrow(d))
  }
  nodes <- tables$nodes[setdiff(names(tables$nodes), "id")]
  values <- tables$edges[setdiff(names(tables$edges), c("from", "to"))]
  id <- function(name) sprintf("n%d", match(name, nodes$name))
  c("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">",
    keys(nodes, "node"), keys(values, "edge"),
    sprintf("  <graph id=\"weft\" edgedefault=\"%s\">", if (tables$directed) "directed" else "undirected"),
    sprintf("    <node id=\"%s\">%s</node>", id(nodes$name), cells_of(nodes, "node")),
    if (nrow(values) || nrow(tables$edges)) sprintf("    <edge source=\"%s\" target=\"%s\">%s</edge>",
                                                    id(tables$edges$from),
                                                    id(tables$edges$to), cells_of(values, "edge")),
    "  </graph>", "</graphml>")
}

# The shortest of 15 and 17 digits that is read back as the same number.
digits_of <- function(v, infinite = "Inf") {
  v <- as.double(v)
  text <- sprintf("%.15g", v)
  longer <- which(is.finite(v))
  longer <- longer[as.double(text[longer]) != v[longer]]
  text[longer] <- sprintf("%.17g", v[longer])
  text[is.infinite(v)] <- paste0(ifelse(v[is.infinite(v)] < 0, "-", ""), infinite)
  text
}
