# Which side of a matrix has the samples? A class whose length is not the number of rows settles it (an error that says
# so). Without one, names and values tell: genes are called by identifiers and symbols, and have levels that differ far
# more than samples do. What they tell is never more than a warning.

# `data` is the matrix that was made of `x`, `class` what the user gave.
check_orientation <- function(data, class, x) {
  given <- value_count(class)
  experiment <- is_experiment(x)
  in_coldata <- experiment && is.character(class) && given == 1L
  if (!is.null(class) && !in_coldata && given != nrow(data)) {
    abort_input(
      sprintf("`class` must have one value per sample, which is a row of `x`: %d.",
              nrow(data)), x = sprintf("It has %d.", given),
      i = if (given == ncol(data))
            "`x` has as many columns: samples are in its columns. `gene_network(t(x), class)` transposes it."
          else if (given == 1L && is.character(class))
            "A column's name is for a SummarizedExperiment; otherwise give the column: `pheno$group`."
    )
  }
  if (experiment || (!is.null(class) && nrow(data) != ncol(data))) return(invisible())
  rows <- if (!is.data.frame(x)) rownames(x) else if (.row_names_info(x) > 0L) row.names(x)
  rows <- if (!is.null(rows)) valid_utf8(rows)
  columns <- if (!is.null(colnames(x))) valid_utf8(colnames(x))
  by_name <- named_turned(rows, columns)
  levels <- if (abs(by_name) < 2) level_shares(data) else c(0, 0)
  turned <- function(why) {
    weft_warn("orientation", paste("Rows of `x` are treated as samples, but look like genes:", why),
              i = "If the genes are in the rows, use `t(x)`. If the samples are, ignore this warning.")
  }
  if (by_name >= 2) {
    called <- function(names, what) if (length(names)) sprintf("%s are called %s", what, label_some(names, 3L))
    turned(paste0(paste(c(called(rows, "rows"), called(columns, "columns")), collapse = ", "), "."))
  } else if (levels_turned(levels)) {
    turned(sprintf("levels differ between rows (%.0f %% of the variance of ranks), less between columns (%.0f %%).",
                   100 * levels[1L], 100 * levels[2L]))
  } else if (by_name > -2 && levels[2L] <= 0.2 && nrow(data) > 500 && nrow(data) > 4 * ncol(data)) {
    weft_warn("orientation", sprintf("`x` has %s rows, treated as samples, and %d columns, treated as genes.",
                                     thousands(nrow(data)), ncol(data)),
              i = "If the genes are in the rows, as in most expression tables, use `t(x)`.")
  }
}

# From 2 on names say that genes are in the rows, down from -2 that they are in the columns.
named_turned <- function(rows, columns) {
  names_of_genes(rows) - names_of_samples(rows) + names_of_samples(columns) - names_of_genes(columns)
}

levels_turned <- function(levels) levels[1L] > 0.4 && levels[1L] > 3 * levels[2L]

# Are genes in the rows of a table whose column `text` has names and whose columns `number` have numbers?
table_turned <- function(x, text, number) {
  by_name <- named_turned(as.character(x[[text]]), names(x)[number])
  by_name >= 2 || (by_name > -2 && levels_turned(level_shares(as.matrix(as.data.frame(x)[number]) + 0)))
}

# 2: identifiers of databases, or some of the genes that are in nearly every set; 1: a letter and a number; 0: nothing
# is known.
names_of_genes <- function(names) {
  identifiers <- paste0(
    "^(ENS[A-Z]*[GTP][0-9]{6}|[NX][MR]_[0-9]{4}|LOC[0-9]{4}|ILMN_[0-9]|A_[0-9]+_P[0-9]|FBgn[0-9]{4}|",
    "WBGene[0-9]{4}|AT[1-5CM]G[0-9]{5}$|Y[A-P][LR][0-9]{3}[CW]|(hsa|mmu|rno)-(mir|let)-|",
    "rs[0-9]{4})|_(a|s|x|g|f|i|r)?_?at$|",
    "^(gene|probe|probeset|transcript|feature|snp)[ ._-]?[0-9]+$"
  )
  common <- c("ACTB", "GAPDH", "B2M", "TP53", "TRP53", "MYC", "EGFR", "KRAS", "BRCA1", "BRCA2", "PTEN", "RB1", "AKT1",
              "MAPK1", "JUN", "FOS", "STAT1", "STAT3", "VEGFA", "TNF", "IL6", "PTPRC", "ESR1", "ERBB2", "MKI67",
              "CDKN1A", "CDKN2A", "CCND1", "BCL2", "BAX", "CASP3", "HIF1A", "NFKB1", "SOX2", "POU5F1", "GATA3",
              "RPL13A", "RPLP0", "HPRT1", "TBP", "A1BG", "A2M")
  likeness(names, identifiers, "^(G|TF)[0-9]+$", sum(toupper(unique(names)) %in% common) >= 2L)
}

names_of_samples <- function(names) {
  words <- paste0(
    "^(GSM[0-9]{3}|[SED]RR[0-9]{4}|TCGA-|[ACGT]{12,}(-[0-9]+)?$|",
    "(sample|patient|subject|individual|donor|person|array|chip|control|ctrl|case|tumou?r|normal|healthy|treated|",
    "untreated|mouse|animal)[ ._-]?[a-z]{0,2}[0-9]+)"
  )
  likeness(names, words, "^(S|P)[0-9]+$", FALSE)
}

likeness <- function(names, certain, hint, known) {
  if (!length(names)) return(0)
  if (known || mean(grepl(certain, names, ignore.case = TRUE, perl = TRUE)) > 0.5) return(2)
  if (mean(grepl(hint, names, perl = TRUE)) > 0.5) 1 else 0
}

# Shares of the variance of ranks that are between the means of rows, and of columns, beyond what chance gives. Sides
# whose means are equal were centred, and tell nothing.
level_shares <- function(data) {
  some <- function(count) unique(round(seq(1, count, length.out = min(count, 400L))))
  part <- data[some(nrow(data)), some(ncol(data)), drop = FALSE]
  ranks <- array(rank(part, na.last = "keep"), dim(part))
  all <- stats::var(c(ranks), na.rm = TRUE)
  share <- function(means, count) (stats::var(means, na.rm = TRUE) / all - 1 / count)
  shares <- c(share(rowMeans(ranks, na.rm = TRUE), ncol(part)), share(colMeans(ranks, na.rm = TRUE), nrow(part)))
  centred <- function(means) stats::sd(means, na.rm = TRUE) < 1e-6 * stats::sd(part, na.rm = TRUE)
  if (anyNA(shares) || centred(rowMeans(part, na.rm = TRUE)) || centred(colMeans(part, na.rm = TRUE))) return(c(0, 0))
  pmin(pmax(shares, 0), 1)
}
