# Sets of genes from the user: they are read from a file, whose contents are not trusted, and tested against lists of
# genes that the workflow found. The universe is the genes that could have been found.

most_set_bytes <- 256 * 2^20
most_sets <- 200000L

#' Read sets of genes from a GMT file
#'
#' `read_gmt()` reads sets of genes for [gene_sets()]. GMT is the format in which MSigDB and others publish such sets:
#' each line has the name of a set, a description and the genes, separated by tabs. An error names the first line that
#' does not have this form.
#'
#' @param file the path of a GMT file, which may be compressed with gzip: at most 256 MiB of text and 200,000 sets.
#' @return A list with one character vector per set: its genes without repetitions. The names of the list are the names
#'   of the sets, and the attribute `"description"` holds the second column.
#' @seealso [gene_sets()]
#' @export
#' @examples
#' file <- tempfile(fileext = ".gmt")
#' writeLines(c("cell cycle\tan example\tCDK1\tCCNB1\tPLK1", "globins\tanother\tHBA1\tHBB"), file)
#' read_gmt(file)
read_gmt <- function(file) {
  need_args("file")
  path <- readable_file(file, "file", "a GMT file")
  lines <- gmt_lines(path)
  filled <- which(nzchar(trimws(lines)))
  if (!length(filled)) abort_input("`file` must contain gene sets.", x = sprintf("%s is empty.", describe(path)))
  if (length(filled) > most_sets) {
    abort_input(sprintf("`file` must have at most %s sets.", thousands(most_sets)),
                x = sprintf("It has %s.", thousands(length(filled))))
  }
  fields <- strsplit(lines[filled], "\t", fixed = TRUE)
  name <- trimws(vapply(fields, `[`, "", 1L))
  genes <- lapply(fields, function(f) {
    f <- trimws(f[-(1:2)])
    unique(f[nzchar(f)])
  })
  damaged <- function(at, what) {
    abort_input("Every line of `file` must contain a set name, a description and genes, separated by tabs.",
                x = sprintf("Line %d %s.", filled[at], what))
  }
  short <- which(lengths(fields) < 3L | !lengths(genes))
  if (length(short)) damaged(short[1L], "has no genes")
  nameless <- which(!nzchar(name))
  if (length(nameless)) damaged(nameless[1L], "has no name")
  twice <- which(duplicated(name))
  if (length(twice)) damaged(twice[1L], sprintf("repeats the name of line %d, %s", filled[match(name[twice[1L]], name)],
                                                describe(plain_text(name[twice[1L]]))))
  structure(stats::setNames(genes, name), description = vapply(fields, `[`, "", 2L))
}

# The lines of a file.
gmt_lines <- function(path) {
  bytes <- whole_bytes(path, "file", "a GMT file", most_set_bytes)
  if (any(bytes == 0)) abort_input("`file` must be text.", x = "It contains NUL bytes.",
                                   i = "Is it a GMT file?")
  text <- rawToChar(bytes)
  if (!validUTF8(text)) {
    text <- iconv(text, "latin1", "UTF-8")
    if (is.na(text)) abort_input("`file` must be text in UTF-8 or Latin-1.")
  }
  Encoding(text) <- "UTF-8"
  text <- sub("^\ufeff", "", text)
  strsplit(text, "\r\n|\n|\r")[[1L]]
}

#' Are sets of genes over-represented in lists of genes?
#'
#' `gene_sets()` tests whether lists of genes contain more genes of a known set, such as a pathway, than expected by
#' chance. The shortest call is `gene_sets(fit, "sets.gmt")`, where `fit` is a result of [gene_network()]; it returns a
#' table with one row per list and set, smallest p-value first.
#'
#' A result of [gene_network()] gives three kinds of lists: the best genes (by the class in which they are highest), the
#' neighbourhoods of the network's hubs, and the groups of genes. A result of [gene_modules()] gives its modules. The
#' universe consists of the genes that could have been on the list, not of all known genes: the genes that were ranked,
#' from which the network was made, or that were grouped.
#'
#' The p-value comes from the hypergeometric distribution: it is the probability that a list of the same length, drawn
#' from the universe, contains at least as many genes of the set. A gene that several columns measure counts once.
#' q-values are computed over all lists and sets (Benjamini and Hochberg). The test assumes that genes are independent,
#' but the genes on one list rarely are, and sets overlap. A small q-value therefore says only that the list is not a
#' random draw of genes.
#'
#' @param x an object returned by [gene_network()] or [gene_modules()]; or lists of genes to test in `universe`: a
#'   character vector, or a named list of character vectors.
#' @param sets a named list of character vectors; the path of a GMT file, see [read_gmt()]; a GeneSetCollection of
#'   GSEABase; or a data frame with the names of sets in the first column and their genes in the second, like the
#'   `TERM2GENE` of clusterProfiler. Genes are matched with the symbols of the data, or with the names of its columns if
#'   no symbols are known.
#' @param universe for lists of genes: all genes that could have been on them.
#' @param from which lists to take from `x`: `"ranking"`, `"network"`, `"clusters"`; by default all that `x` contains.
#' @param fdr the best genes are the genes with at most this q-value in the ranking.
#' @param min_size,max_size sets with fewer or more genes in the universe are excluded.
#' @param hubs the number of hubs (the genes with the most edges) whose neighbourhoods are tested.
#' @return A data frame of class `weft_gene_sets`, smallest p-value first: `query` (the list), `set`, `size` (genes of
#'   the set in the universe), `listed` (genes on the list), `overlap`, `expected` (by chance), `fold` (overlap divided
#'   by expected), `p_value`, `q_value`, `genes` (in both). The attribute `"universe"` has the sizes of the universes.
#' @section Sets from other packages: If these packages are installed, they provide sets as a data frame or a list:
#' ```r
#' hallmarks <- msigdbr::msigdbr(species = "Homo sapiens", category = "H")
#' gene_sets(fit, hallmarks[c("gs_name", "gene_symbol")])              # MSigDB
#' library(org.Hs.eg.db)                                               # the Gene Ontology
#' go <- AnnotationDbi::select(org.Hs.eg.db, keys(org.Hs.eg.db, "SYMBOL"), "GOALL", "SYMBOL")
#' gene_sets(fit, go[c("GOALL", "SYMBOL")])
#' ```
#' @seealso [gene_sets_ranked()], which needs no lists; [read_gmt()]; [weft_report()], whose argument `sets` adds the
#'   result to the report.
#' @export
#' @examples
#' universe <- sprintf("gene%d", 1:200)
#' sets <- list(first = universe[1:20], second = universe[101:120])
#' gene_sets(universe[c(1:8, 150:154)], sets, universe)
gene_sets <- function(x, sets, universe = NULL, from = c("ranking", "network", "clusters"), fdr = 0.05, min_size = 5,
                      max_size = 500, hubs = 10) {
  need_args("x", "sets")
  fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  min_size <- check_number(min_size, "min_size", min = 1, whole = TRUE)
  max_size <- check_number(max_size, "max_size", min = min_size, whole = TRUE)
  hubs <- check_number(hubs, "hubs", min = 0, max = 1e4, whole = TRUE)
  sets <- sets_of(sets)
  if (inherits(x, "weft_gene_network")) {
    if (!is.null(universe)) abort_input("`universe` must not be given for this `x`.",
                                        x = "A result of `gene_network()` contains the tested genes.")
    unknown <- setdiff(from, c("ranking", "network", "clusters"))
    if (!is.character(from) || length(unknown)) {
      abort_input("`from` must be one or more of \"ranking\", \"network\" and \"clusters\".",
                  x = paste0("It is ", describe(from), "."))
    }
    queries <- fit_lists(checked_fit(x, "x"), from, fdr, hubs)
  } else if (inherits(x, "weft_modules")) {
    if (!is.null(universe)) abort_input("`universe` must not be given for this `x`.",
                                        x = "A result of `gene_modules()` contains the grouped genes.")
    queries <- module_lists(check_modules(x, "x"))
  } else {
    queries <- user_lists(x, universe)
  }
  found <- do.call(rbind, c(list(empty_overlaps()), lapply(queries, test_lists, sets = sets,
                                                           sizes = c(min_size, max_size))))
  found$q_value <- stats::p.adjust(found$p_value, "BH")
  found <- found[order(found$p_value, -found$overlap, found$query, found$set),
                 c("query", "set", "size", "listed", "overlap", "expected", "fold", "p_value", "q_value", "genes")]
  rownames(found) <- NULL
  new_result(found, class = c("weft_gene_sets", "data.frame"),
             universe = vapply(queries, function(q) length(q$universe), 0L))
}

# Sets in whatever form they came.
sets_of <- function(sets) {
  if (is.character(sets) && length(sets) == 1L) return(read_gmt(sets))
  if (inherits(sets, "GeneSetCollection")) sets <- collected_sets(sets)
  if (!is.data.frame(sets)) return(check_sets(sets, "sets"))
  word <- function(v) is.character(v) || is.factor(v)
  if (ncol(sets) != 2L || !nrow(sets) || !word(sets[[1L]]) || !word(sets[[2L]])) {
    abort_input(paste("If `sets` is a data frame, it must have two text columns, with the name of a set and one of its",
                      "genes in each row."),
                x = paste0("It is ", describe(sets), "."), i = "For example `sets[c(\"gs_name\", \"gene_symbol\")]`.")
  }
  for (j in 1:2) check_factor(sets[[j]], sprintf("Column %d of `sets`", j))
  named <- !is.na(sets[[1L]]) & nzchar(as.character(sets[[1L]]))
  check_sets(split(as.character(sets[[2L]])[named], as.character(sets[[1L]])[named]), "sets")
}

# The sets of a GeneSetCollection, by their slots; GSEABase need not be there.
collected_sets <- function(sets) {
  invalid <- function() {
    abort_input("`sets` must be a valid GeneSetCollection.", i = "It was modified, or its file is damaged.")
  }
  if (typeof(sets) != "list") invalid()
  sets <- unclass(sets)
  attributes(sets) <- NULL
  name <- lapply(sets, function(set) slot_of(set, "setName"))
  genes <- lapply(sets, function(set) slot_of(set, "geneIds"))
  if (!all(vapply(name, function(n) is.character(n) && length(n) == 1L, NA)) || !all(vapply(genes, is.character, NA))) {
    invalid()
  }
  stats::setNames(lapply(genes, as.vector), vapply(name, as.vector, ""))
}

check_sets <- function(sets, arg) {
  named <- is.list(sets) && !is.data.frame(sets) && length(sets) && !is.null(names(sets)) &&
    all(nzchar(names(sets))) && !anyNA(names(sets))
  if (!named || !all(vapply(sets, is.character, NA))) {
    abort_input(sprintf("`%s` must be a named list of character vectors%s.", arg,
                        if (arg == "sets") ", a data frame of sets and genes, or the path of a GMT file" else ""),
                x = paste0("It is ", describe(sets), "."))
  }
  if (anyDuplicated(names(sets))) {
    abort_input(sprintf("The names of `%s` must be unique.", arg),
                x = sprintf("%s occurs twice.", label_some(names(sets)[anyDuplicated(names(sets))])))
  }
  lapply(sets, function(genes) unique(genes[!is.na(genes) & nzchar(genes)]))
}

# Lists with the universe that they are from: each a list of `lists` and `universe`.
user_lists <- function(x, universe) {
  if (is.character(x)) x <- list(genes = x)
  lists <- check_sets(x, "x")
  if (!is.character(universe) || !length(universe)) {
    abort_input("`universe` must contain all genes that could have been on the lists.",
                x = paste0("It is ", describe(universe), "."),
                i = "Give the genes that were measured and tested, not all known genes.")
  }
  universe <- unique(universe[!is.na(universe) & nzchar(universe)])
  outside <- lapply(lists, setdiff, universe)
  if (any(lengths(outside) > 0L)) {
    abort_input("All genes of `x` must be in `universe`.",
                x = sprintf("Not in `universe`: %s.", label_some(unlist(outside))))
  }
  list(list(lists = lists, universe = universe))
}

fit_lists <- function(fit, from, fdr, hubs) {
  q <- fit$quality
  identifier <- if (is.null(q$genes$symbol)) stats::setNames(q$genes$gene, q$genes$gene)
                else stats::setNames(ifelse(is.na(q$genes$symbol), q$genes$gene, q$genes$symbol), q$genes$gene)
  called <- function(columns) unique(unname(identifier[columns]))
  there <- intersect(from, names(Filter(Negate(is.null), unclass(fit)[c("ranking", "network", "clusters")])))
  if (!length(there)) abort_input("`x` must contain a ranking, a network or groups.", x = "These steps were not run.")
  lapply(stats::setNames(nm = there), function(step) switch(step,
    ranking = list(lists = best_lists(fit, called, fdr), universe = called(ranked_genes(fit$ranking))),
    network = list(lists = hub_lists(fit$network, called, hubs), universe = called(network_features_of(fit$network))),
    clusters = {
      z <- gene_groups(fit$clusters)
      groups <- split(names(z), z)
      list(lists = stats::setNames(lapply(groups, called), paste("group", names(groups))), universe = called(names(z)))
    }))
}

# The modules of gene_modules(), and all genes that could be in one.
module_lists <- function(r) {
  names <- module_names(r)
  groups <- split(names, factor(r$module, seq_len(nrow(r$modules))))
  list(modules = list(lists = stats::setNames(lapply(groups, unique), sprintf("M%s", names(groups))),
                      universe = unique(names)))
}

best_lists <- function(fit, called, fdr) {
  q <- fit$quality
  best <- found_genes(fit$ranking, fdr)
  if (!length(best)) return(list())
  means <- vapply(levels(q$class), function(level) colMeans(q$x[q$class == level, best, drop = FALSE]),
                  numeric(length(best)))
  highest <- factor(max.col(matrix(means, length(best)), "first"), seq_len(nlevels(q$class)))
  by_class <- split(best, highest)
  names(by_class) <- paste("higher in", levels(q$class))
  lapply(Filter(length, by_class), called)
}

hub_lists <- function(net, called, hubs) {
  edges <- report_edges(net)
  degree <- sort(table(c(edges$from, edges$to)), decreasing = TRUE)
  chosen <- utils::head(names(degree)[degree >= 2L], hubs)
  near <- lapply(chosen, function(g) unique(c(g, edges$to[edges$from == g], edges$from[edges$to == g])))
  stats::setNames(lapply(near, called), paste("around", vapply(chosen, called, "")))
}

network_features_of <- function(net) if (is_directed(net)) network_features(net) else colnames(net)

empty_overlaps <- function() {
  as_frame(list(query = character(), set = character(), size = integer(), listed = integer(), overlap = integer(),
                expected = numeric(), fold = numeric(), p_value = numeric(), genes = character()))
}

test_lists <- function(query, sets, sizes) {
  universe <- query$universe
  inside <- lapply(sets, intersect, universe)
  inside <- inside[lengths(inside) >= sizes[1L] & lengths(inside) <= sizes[2L]]
  if (!length(inside) || !length(query$lists)) return(empty_overlaps())
  size <- lengths(inside)
  do.call(rbind, lapply(names(query$lists), function(name) {
    listed <- query$lists[[name]]
    common <- lapply(inside, intersect, listed)
    overlap <- lengths(common)
    expected <- size * length(listed) / length(universe)
    data.frame(query = name, set = names(inside), size = unname(size), listed = length(listed),
               overlap = unname(overlap), expected = unname(expected), fold = unname(overlap / expected),
               p_value = stats::phyper(overlap - 1, size, length(universe) - size, length(listed), lower.tail = FALSE),
               genes = vapply(common, toString, ""), row.names = NULL)
  }))
}

#' @rdname gene_sets
#' @param n the number of rows to show.
#' @param ... ignored.
#' @export
print.weft_gene_sets <- function(x, n = 10L, ...) {
  whole <- c("query", "set", "size", "listed", "overlap", "q_value")
  if (!all(c(whole, "p_value") %in% names(x)) || is.null(attr(x, "universe"))) return(print_as_frame(x, n))
  check_result(x, text = c("query", "set"), numbers = c("size", "listed", "overlap", "q_value", "p_value"))
  n <- check_number(n, "n", min = 0, whole = TRUE)
  cat(sprintf("%s tested against %s: %d significant at a false discovery rate of 0.05\n",
              several(length(unique(x$query)), "list"), several(length(unique(x$set)), "set"), sum(x$q_value <= 0.05)))
  shown <- utils::head(as.data.frame(x)[c(whole, "p_value")], n)
  short <- function(v) if (is.double(v)) signif(v, 3) else if (is.character(v)) cut_name(valid_utf8(v), 32L) else v
  shown[] <- lapply(shown, short)
  if (nrow(shown)) print_rows(shown)
  if (nrow(x) > n) cat(sprintf("... and %s more\n", thousands(nrow(x) - n)))
  invisible(x)
}

#' @rdname gene_sets
#' @export
as.data.frame.weft_gene_sets <- function(x, ...) {
  check_frame(x, "x")
  list2DF(unclass(x)[names(x)], length(x[[1L]]))
}
