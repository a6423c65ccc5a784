# Symbols of genes: columns keep their names, what is shown has the symbols, and of several columns of one gene one
# stands for it.

symbol_columns <- c("symbol", "gene_symbol", "genesymbol", "hgnc_symbol", "gene_name", "external_gene_name")

description_columns <- c("description", "gene_title", "gene.title", "genetitle", "gene_description", "genename",
                         "fullname", "full_name")

# One per column of the data, NA where unknown; NULL when there are none. `data` has the names as they came, which are
# symbols when some occur more than once.
gene_symbols <- function(symbols, x, data) {
  if (is.null(symbols) && is.null(known_column(x, symbol_columns)) && anyDuplicated(colnames(data))) {
    symbols <- colnames(data)
  }
  if (inherits(symbols, "OrgDb")) return(annotated_symbols(symbols, colnames(data)))
  gene_words(symbols, x, ncol(data), symbol_columns, "symbols")
}

# The symbols that a database of an organism has for identifiers, whose kind is the one that knows most of them. Where
# an Ensembl identifier has a version, it is looked up without.
annotated_symbols <- function(db, identifiers) {
  need_package("AnnotationDbi", "An OrgDb")
  bare <- sub("^(ENS[A-Z]*[0-9]+)[.][0-9]+$", "\\1", identifiers)
  kinds <- tryCatch(AnnotationDbi::keytypes(db), error = function(e) character())
  kinds <- intersect(c("ENSEMBL", "ENTREZID", "SYMBOL", "REFSEQ", "UNIPROT", "ALIAS"), kinds)
  if (!"SYMBOL" %in% kinds) {
    abort_input("`symbols` as an OrgDb must have a column SYMBOL.", i = "It was modified, or its file is missing.")
  }
  known <- lapply(stats::setNames(nm = kinds), function(kind) bare %in% AnnotationDbi::keys(db, kind))
  kind <- kinds[which.max(vapply(known, sum, 0L))]
  found <- rep(NA_character_, length(bare))
  at <- which(known[[kind]])
  if (!length(at)) {
    abort_input("`symbols` as an OrgDb must contain the names of the genes.",
                x = sprintf("It contains none of %s.", label_some(identifiers)))
  }
  if (kind == "SYMBOL") found[at] <- bare[at]
  else found[at] <- suppressMessages(AnnotationDbi::mapIds(db, bare[at], "SYMBOL", kind, multiVals = "first"))
  found
}

# What the caller gave for every gene, or named as a column of rowData(x), or what is found there; NULL without any.
gene_words <- function(given, x, p, usual, arg) {
  if (is.character(given) && length(given) == 1L && p != 1L) {
    known <- row_data(x)
    if (!given %in% names(known)) {
      abort_input(sprintf("`%s` must have one value per gene, or name a column of `rowData(x)`.", arg),
                  x = sprintf("There is no %s.", describe(given)))
    }
    given <- known[[given]]
  } else if (is.null(given)) {
    given <- known_column(x, usual)
    if (is.null(given)) return(NULL)
  }
  given <- factor_text(given)
  if (!is.character(given) || length(given) != p) {
    abort_input(sprintf("`%s` must have one value per gene, as text.", arg),
                x = sprintf("It is %s, for %d genes.", describe(given), p))
  }
  given <- trimws(valid_utf8(given))
  given[!is.na(given) & !grepl("[[:alnum:]]", given)] <- NA # "", "---"
  if (all(is.na(given))) NULL else given
}

row_data <- function(x) {
  if (is_experiment(x)) as.list(container_genes(x))
  else if (inherits(x, "weft_store")) as.list(store_data(x, "columns"))
}

# The first column of rowData(x) that has one of these names, and one text per gene.
known_column <- function(x, usual) {
  known <- row_data(x)
  at <- match(usual, tolower(names(known)))
  found <- if (any(!is.na(at))) known[[at[!is.na(at)][1L]]]
  if (is.character(found) || is.factor(found)) found
}

# Puts symbols beside the genes, and says which columns stand for a gene that several columns measure.
group_symbols <- function(q, symbols) {
  if (is.null(symbols)) return(q)
  genes <- q$genes
  genes$symbol <- symbols
  kept <- which(genes$kept)
  by_spread <- kept[order(-genes$mad[kept])]
  several <- !is.na(symbols[by_spread]) & duplicated(symbols[by_spread])
  genes$representative <- genes$kept
  genes$representative[by_spread[several]] <- FALSE
  q$genes <- genes
  if (!any(several)) return(q)
  twice <- sort(table(symbols[kept]), decreasing = TRUE)
  twice <- twice[twice > 1L]
  note(q, "symbols", sprintf(
    paste("%d genes are measured by several probes (columns): %s. The most variable probe of each gene was used for",
          "networks and pairs."),
    length(twice), some_named(sprintf("%s (%d)", names(twice), as.integer(twice)))), sum(twice))
}

# Numbers of the columns that stand for a gene each.
representatives <- function(q) {
  genes <- q$genes
  if (is.null(genes$representative)) return(seq_len(ncol(q$x)))
  which(genes$representative[genes$kept])
}

# What is shown for each kept gene, by its name; NULL where names are all that is known.
gene_labels <- function(q) {
  if (is.null(q$genes$symbol)) return(NULL)
  kept <- q$genes[q$genes$kept, ]
  several <- kept$symbol %in% kept$symbol[duplicated(kept$symbol)]
  label <- ifelse(is.na(kept$symbol), kept$gene,
                  ifelse(several & kept$symbol != kept$gene, sprintf("%s (%s)", kept$symbol, kept$gene), kept$symbol))
  stats::setNames(make.unique(label), kept$gene)
}

# The result with symbols in place of names, for showing it.
with_labels <- function(fit) {
  label <- gene_labels(fit$quality)
  if (is.null(label)) return(fit)
  shown <- function(names) unname(ifelse(is.na(label[names]), names, label[names]))
  fit <- unclass(fit)
  column <- if (is.null(fit$ranking$gene)) "feature" else "gene"
  if (!is.null(fit$ranking)) fit$ranking[[column]] <- shown(fit$ranking[[column]])
  for (column in c("feature1", "feature2")) if (!is.null(fit$pairs)) fit$pairs[[column]] <- shown(fit$pairs[[column]])
  if (!is.null(fit$components)) rownames(fit$components$rotation) <- shown(rownames(fit$components$rotation))
  of_genes <- if (inherits(fit$clusters, "weft_irm")) "col_cluster" else "gene_cluster"
  if (!is.null(fit$clusters[[of_genes]])) names(fit$clusters[[of_genes]]) <- shown(names(fit$clusters[[of_genes]]))
  if (!is.null(fit$network) && ncol(fit$network) <= many_features) fit$network <- relabelled_network(fit$network, shown)
  if (!is.null(fit$bayes)) fit$bayes <- relabelled_bayes(fit$bayes, shown)
  structure(fit, class = "weft_gene_network")
}

# Matrices of all pairs are copied for this, so that large ones keep their names.
relabelled_network <- function(net, shown) {
  named <- function(m) {
    attr(m, "dimnames") <- lapply(dimnames(m), shown)
    m
  }
  if (!is.null(attr(net, "mi"))) attr(net, "mi") <- named(attr(net, "mi"))
  named(net)
}

relabelled_bayes <- function(fit, shown) {
  for (part in c("dag", "edges", "average")) {
    if (!is.null(fit[[part]])) dimnames(fit[[part]]) <- lapply(dimnames(fit[[part]]), shown)
  }
  fit$table$nodes <- shown(fit$table$nodes)
  fit
}
