# Directed networks of public data held against what is known: average precision, its ratio to the share of true pairs,
# precision of the first hundred and seconds of regulation() and of peers in the same run.
# Usage: Rscript regulation-real.R FOLDER [file.csv] [name of a kind ...]
# FOLDER has, as they are published:
#   bsubtilis/expression.tsv.gz, gold_half.csv, gold_genes.txt   Arrieta-Ortiz and others 2015, from the Inferelator
#   beeline/SET/ExpressionData.csv.gz, refNetwork.csv            synthetic sets of BEELINE (Pratapa and others 2020)
#   mdc/expression.csv.gz, mdc_STRING.csv, mdc_TF_STRING.csv     dendritic cells, from BEELINE
#   dream4/NUMBER/multifactorial.RData, gold.RData               DREAM4, 100 genes, as KBoost has them
# Pairs count whose regulator and target the truth names; a gene with itself does not. Ties are in random order.
library(weft)

args <- commandArgs(TRUE)
folder <- args[1]
if (is.na(folder) || !dir.exists(folder)) stop("The first argument must be the folder with the data.")
file <- if (length(args) > 1 && grepl("[.]csv$", args[2])) args[2]
asked <- setdiff(args[-1], file)
at <- function(...) file.path(folder, ...)

# ---- data ----

# truth: regulators x targets, NA where a pair does not count.
truth_of <- function(from, to, regulators, targets) {
  truth <- matrix(FALSE, length(regulators), length(targets), dimnames = list(regulators, targets))
  known <- from %in% regulators & to %in% targets
  truth[cbind(match(from[known], regulators), match(to[known], targets))] <- TRUE
  own <- intersect(regulators, targets)
  truth[cbind(match(own, regulators), match(own, targets))] <- NA
  truth
}

genes_by_samples <- function(path, read) t(as.matrix(read(gzfile(path), row.names = 1, check.names = FALSE)))

subtilis <- function(all_genes) {
  x <- genes_by_samples(at("bsubtilis", "expression.tsv.gz"), utils::read.delim)
  gold <- utils::read.csv(at("bsubtilis", "gold_half.csv"), colClasses = "character")
  named <- if (all_genes) gsub("\"", "", readLines(at("bsubtilis", "gold_genes.txt"))) else unique(gold$target)
  regulators <- intersect(unique(gold$tf), colnames(x))
  targets <- intersect(named, colnames(x))
  list(list(x = x, regulators = regulators, targets = targets,
            truth = truth_of(gold$tf, gold$target, regulators, targets)))
}

beeline <- function(cells) {
  lapply(list.files(at("beeline"), sprintf("_%d_", cells)), function(set) {
    x <- genes_by_samples(at("beeline", set, "ExpressionData.csv.gz"), utils::read.csv)
    gold <- utils::read.csv(at("beeline", set, "refNetwork.csv"))
    list(x = x, truth = truth_of(gold$Gene1, gold$Gene2, colnames(x), colnames(x)))
  })
}

dendritic <- function(named) {
  x <- genes_by_samples(at("mdc", "expression.csv.gz"), utils::read.csv)
  colnames(x) <- toupper(colnames(x))
  gold <- lapply(utils::read.csv(at("mdc", "mdc_STRING.csv")), toupper)
  factors <- intersect(toupper(utils::read.csv(at("mdc", "mdc_TF_STRING.csv"))$TF), colnames(x))
  truth <- truth_of(gold$Gene1, gold$Gene2, if (named) factors else colnames(x), colnames(x))
  truth[!rownames(truth) %in% gold$Gene1, ] <- NA
  truth[, !colnames(truth) %in% unlist(gold)] <- NA
  list(list(x = x, regulators = if (named) factors, truth = truth))
}

dream4 <- function(named) {
  lapply(list.files(at("dream4")), function(network) {
    load_one <- function(what) {
      here <- new.env()
      as.matrix(get(load(at("dream4", network, paste0(what, ".RData")), here), here))
    }
    x <- load_one("multifactorial")
    colnames(x) <- sprintf("g%d", seq_len(ncol(x)))
    gold <- load_one("gold")
    from <- colnames(x)[gold[gold[, 3] == 1, 1]]
    to <- colnames(x)[gold[gold[, 3] == 1, 2]]
    regulators <- if (named) intersect(colnames(x), from)
    list(x = x, regulators = regulators, truth = truth_of(from, to, regulators %||% colnames(x), colnames(x)))
  })
}

`%||%` <- function(a, b) if (is.null(a)) b else a

kinds <- list(
  `B. subtilis, regulators given` = function() subtilis(FALSE),
  `B. subtilis, all genes` = function() subtilis(TRUE),
  `BEELINE synthetic, 500 cells` = function() beeline(500),
  `BEELINE synthetic, 2000 cells` = function() beeline(2000),
  `dendritic cells, regulators given` = function() dendritic(TRUE),
  `dendritic cells` = function() dendritic(FALSE),
  `DREAM4, regulators given` = function() dream4(TRUE),
  `DREAM4` = function() dream4(FALSE)
)

# ---- methods ----

own_network <- function(made) {
  regulation(made$x, made$regulators, made$targets, seed = 1, control = list(null_copies = 0, stability = FALSE))
}

areas_of <- function(made) {
  net <- own_network(made)
  edges <- attr(net, "edges")
  out <- 0 * as.matrix(net)
  out[cbind(edges$from, edges$to)] <- edges$area
  out
}

# Regulators x targets, NA of a gene with itself.
spearman <- function(made) {
  r <- suppressWarnings(stats::cor(apply(made$x[, rownames(made$truth)], 2, rank),
                                   apply(made$x[, colnames(made$truth)], 2, rank)))
  r[is.na(r)] <- 0
  own <- intersect(rownames(r), colnames(r))
  r[cbind(own, own)] <- NA
  r
}

clr <- function(made) {
  information <- -0.5 * log1p(-pmin(spearman(made)^2, 1 - 1e-12))
  above <- function(m) {
    deviation <- apply(m, 1, stats::sd, na.rm = TRUE)
    pmax((m - rowMeans(m, na.rm = TRUE)) / ifelse(deviation > 0, deviation, 1), 0)
  }
  sqrt(above(information)^2 + t(above(t(information)))^2)
}

# Of all genes that are judged, by the shrunken correlation matrix (a tenth of it the identity).
partial_correlation <- function(made) {
  genes <- union(rownames(made$truth), colnames(made$truth))
  z <- apply(made$x[, genes], 2, rank)
  r <- suppressWarnings(stats::cor(z))
  r[is.na(r)] <- 0
  precision <- solve(0.9 * r + diag(0.1 + 0.9 * (diag(r) == 0)))
  dimnames(precision) <- list(genes, genes)
  abs(stats::cov2cor(precision))
}

mrnet <- function(made) {
  genes <- union(rownames(made$truth), colnames(made$truth))
  as.matrix(mi_network(mi_matrix(made$x[, genes], estimator = "spearman"), "mrnet"))
}

methods <- list(`regulation` = function(made) as.matrix(own_network(made)), `its areas` = areas_of,
                `correlation` = function(made) abs(spearman(made)), `CLR` = clr,
                `partial correlation` = partial_correlation, `weft MRNET` = mrnet)

# ---- measures ----

measures <- function(w, truth) {
  counted <- !is.na(truth)
  truth <- truth[counted]
  w <- w[counted]
  hit <- truth[order(-w, stats::runif(length(w)))]
  precision <- mean((cumsum(hit) / seq_along(hit))[hit])
  c(precision = precision, ratio = precision / mean(truth), first_100 = mean(utils::head(hit, 100)))
}

cat(sprintf("%s, %s, %d threads\n", format(Sys.Date()), R.version.string, weft_threads()))
table <- NULL
for (kind in if (length(asked)) intersect(names(kinds), asked) else names(kinds)) {
  sets <- kinds[[kind]]()
  own <- NULL
  for (method in names(methods)) {
    set.seed(1)
    seconds <- system.time(found <- lapply(sets, methods[[method]]))[[1]]
    each <- vapply(seq_along(sets), function(k) {
      truth <- sets[[k]]$truth
      measures(found[[k]][rownames(truth), colnames(truth)], truth)
    }, numeric(3))
    own <- own %||% each
    behind <- own["precision", ] - each["precision", ]
    row <- data.frame(kind, method, sets = length(sets), t(rowMeans(each)), behind = mean(behind),
                      behind_error = stats::sd(behind) / sqrt(length(sets)), seconds = seconds)
    table <- rbind(table, row)
  }
  cat("\n", kind, "\n", sep = "")
  print(table[table$kind == kind, -1], row.names = FALSE, digits = 3)
}
if (!is.null(file)) {
  table[] <- lapply(table, function(v) if (is.double(v)) signif(v, 3) else v)
  utils::write.csv(table, file, row.names = FALSE)
}
