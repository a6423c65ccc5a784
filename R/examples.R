# Small data sets with known truth, and loaders of real ones. Every draw is a function of the seed (draws.R), so that an
# example is the same on every machine, and R's generator is left alone.

#' Example data: simulated sets with known truth, and real ones
#'
#' Without a name, lists the sets that there are. The simulated sets are made on the spot, and are the same for the same
#' arguments on every machine; the real ones are loaded from data packages of Bioconductor that must be installed.
#'
#' @section Simulated sets:
#' * `"expression"`: log expression of `p` genes in `n` samples. A tenth of the genes or so are regulators; every other
#'   gene depends on one to three earlier genes, mostly regulators, through a saturating function (`tanh`), and has
#'   noise of its own; signal and noise have equal variance. Three regulators, the `drivers`, are shifted in the cases.
#'   On top of that come what real data have: a shift of every gene in the second `batch`, missing cells, `outliers`
#'   (samples with a quarter of their genes moved far away), two constant genes and two that are mostly missing. `truth`
#'   is the network \[from, to\].
#' * `"snps"`: `p` genotypes (0, 1, 2 copies) of `n` people. Two of them, the `epistatic` pair, raise the risk of
#'   disease when exactly one of them is carried, and so say nothing alone; two others, `marginal`, act by themselves.
#' * `"words"`: `n` documents and `p` words, a sparse 0/1 matrix with four themes; most words occur in documents of
#'   their theme.
#' * `"points"`: `n` points in the plane: four clusters of different shape and a twentieth of the points anywhere.
#'
#' @section Real sets:
#' * `"golub"` (package multtest): 3,051 genes of 38 patients with leukaemia, 27 ALL and 11 AML (Golub and others 1999).
#' * `"all"` (package ALL): 12,625 probe sets of 128 patients with acute lymphoblastic leukaemia, B or T cells
#'   (Chiaretti and others 2004).
#'
#' @param name one of the names below; `NULL` for a table of them.
#' @param n,p samples and features of a simulated set.
#' @param seed a whole number.
#' @param batch,missing,outliers for `"expression"`: standard deviation of the batch's shift (0 for one batch), share of
#'   missing cells, number of outlying samples.
#' @param spoilt for `"expression"`: whether to add the constant and the mostly missing genes.
#' @return A list of class `weft_example`: `x` (samples in rows) and, where there are any, `class`, `batch`, `truth`,
#'   `drivers`, `outliers`, `epistatic`, `marginal`, `row_cluster`, `col_cluster`, `gene_names` (descriptions),
#'   `symbols` (of genes, NA where none is known; for [gene_quality()], as are the descriptions); and `source`, a
#'   sentence.
#' @seealso [gene_network()]
#' @export
#' @examples
#' weft_example()
#' e <- weft_example("expression", n = 60, p = 40)
#' e
#' e$x[1:3, 1:5]
#' sum(e$truth)
weft_example <- function(name = NULL, n = NULL, p = NULL, seed = 1, batch = 0.5, missing = 0.01, outliers = 3,
                         spoilt = TRUE) {
  if (is.null(name)) return(example_table())
  name <- check_choice(name, example_names, "name")
  seed <- check_number(seed, "seed", min = 0, max = 2^53, whole = TRUE)
  usual <- switch(name, expression = c(200, 100), snps = c(1000, 200), words = c(150, 120), points = c(500, 2),
                  c(NA, NA))
  real <- anyNA(usual)
  if (real && !(is.null(n) && is.null(p))) abort_input("`n` and `p` are for simulated sets.",
                                                       x = sprintf("\"%s\" is a real one.", name))
  if (!real) {
    n <- check_number(n %||% usual[1L], "n", min = 10, max = 1e6, whole = TRUE)
    p <- check_number(p %||% usual[2L], "p", min = switch(name, points = 2, 12), max = if (name == "points") 2 else 1e5,
                      whole = TRUE)
  }
  made <- switch(name,
    expression = example_expression(n, p, seed, check_number(batch, "batch", min = 0, max = 100),
                                    check_number(missing, "missing", min = 0, max = 0.5),
                                    check_number(outliers, "outliers", min = 0, max = n / 4, whole = TRUE),
                                    check_flag(spoilt, "spoilt")),
    snps = example_snps(n, p, seed), words = example_words(n, p, seed), points = example_points(n, seed),
    golub = example_golub(), all = example_all()
  )
  structure(c(list(name = name), made), class = "weft_example")
}

example_names <- c("expression", "snps", "words", "points", "golub", "all")

example_table <- function() {
  have <- function(package) nzchar(system.file(package = package)) # loading multtest takes a second
  as_frame(list(
    name = example_names,
    what = c("gene expression from a known network, with batches, gaps and outliers",
             "genotypes with an epistatic pair",
             "documents and words with themes", "clustered points", "leukaemia, 38 patients, 3,051 genes",
             "leukaemia, 128 patients, 12,625 probe sets"),
    package = c(rep("(simulated)", 4L), "multtest", "ALL"), available = c(rep(TRUE, 4L), have("multtest"), have("ALL"))
  ))
}

#' @export
print.weft_example <- function(x, ...) {
  cat(sprintf("Example \"%s\": %d rows, %d columns\n", x$name, nrow(x$x), ncol(x$x)))
  cat_wrapped(x$source)
  parts <- setdiff(names(x), c("name", "x", "source"))
  if (length(parts)) cat("With", paste(parts, collapse = ", "), "\n")
  invisible(x)
}

# ---- expression ----

example_expression <- function(n, p, seed, batch, missing, outliers, spoilt) {
  regulators <- max(3, round(p / 10))
  width <- max(2L, nchar(as.character(p)))
  names <- c(sprintf("TF%0*d", width, seq_len(regulators)), sprintf("G%0*d", width, seq_len(p - regulators)))
  truth <- example_dag(p, regulators, seed, names)
  class <- factor(rep(c("control", "case"), length.out = n), c("control", "case"))
  drivers <- seq_len(3L)
  z <- matrix(draws("normal", n * p, key = seed, stream = 10), n)
  strength <- matrix(0.7 + 0.6 * draws("uniform", p * p, key = seed, stream = 11), p)
  strength <- strength * ifelse(draws("uniform", p * p, key = seed, stream = 12) < 0.3, -1, 1)
  x <- matrix(0, n, p, dimnames = list(sprintf("S%0*d", max(2L, nchar(as.character(n))), seq_len(n)), names))
  for (j in seq_len(p)) { # columns are in an order in which parents come first
    parents <- which(truth[, j] == 1)
    own <- z[, j]
    if (length(parents)) {
      signal <- tanh(1.3 * x[, parents, drop = FALSE]) %*% strength[parents, j]
      own <- (signal - mean(signal)) / stats::sd(signal) + z[, j]
    }
    if (j %in% drivers) own <- own + 1.5 * (class == "case")
    x[, j] <- (own - mean(own)) / stats::sd(own)
  }
  made <- list(class = class)
  if (batch > 0) {
    second <- rep_len(c(FALSE, FALSE, TRUE, TRUE), n)
    x <- x + outer(as.numeric(second), batch * draws("normal", p, key = seed, stream = 13))
    made$batch <- factor(ifelse(second, "second", "first"))
  }
  odd <- integer()
  if (outliers > 0) {
    odd <- sort(order(draws("uniform", n, key = seed, stream = 14))[seq_len(outliers)])
    moved <- matrix(draws("uniform", outliers * p, key = seed, stream = 15) < 0.25, outliers)
    far <- matrix(draws("normal", outliers * p, key = seed, stream = 16), outliers)
    x[odd, ] <- x[odd, ] + moved * (4 * sign(far) + far)
  }
  x <- 8 + 1.2 * x
  if (missing > 0) x[draws("uniform", n * p, key = seed, stream = 17) < missing] <- NA
  if (spoilt) {
    gaps <- matrix(8 + draws("normal", 2 * n, key = seed, stream = 18), n)
    gaps[draws("uniform", 2 * n, key = seed, stream = 19) < 0.7] <- NA
    x <- cbind(x, CONSTANT1 = 8, CONSTANT2 = 0, GAPS1 = gaps[, 1L], GAPS2 = gaps[, 2L])
  }
  c(list(x = x), made, list(
    truth = truth, drivers = names[drivers], outliers = rownames(x)[odd],
    source = sprintf("Simulated: %d regulators, %d edges, drivers of the class %s, seed %.0f.", as.integer(regulators),
                     as.integer(sum(truth)), paste(names[drivers], collapse = ", "), seed)
  ))
}

# Every gene after the third depends on one to three earlier ones: four times in five on a regulator, and on those the
# more often the more they regulate already.
example_dag <- function(p, regulators, seed, names) {
  dag <- matrix(0L, p, p, dimnames = list(from = names, to = names))
  count <- 1 + draws("below", p, a = 3, key = seed, stream = 1)
  u <- matrix(draws("uniform", p * 6, key = seed, stream = 2), p)
  for (j in seq_len(p)[-(1:3)]) {
    for (k in seq_len(min(count[j], j - 1))) {
      pool <- if (u[j, 2 * k - 1] < 0.8) seq_len(min(regulators, j - 1)) else seq_len(j - 1)
      pool <- pool[dag[pool, j] == 0L]
      if (!length(pool)) next
      weight <- cumsum(1 + rowSums(dag[pool, , drop = FALSE]))
      dag[pool[which(u[j, 2 * k] * weight[length(weight)] < weight)[1L]], j] <- 1L
    }
  }
  dag
}

# ---- genotypes ----

example_snps <- function(n, p, seed) {
  names <- sprintf("rs%04d", seq_len(p))
  special <- order(draws("uniform", p, key = seed, stream = 21))[1:4]
  frequency <- 0.1 + 0.4 * draws("uniform", p, key = seed, stream = 22)
  frequency[special[1:2]] <- 1 - sqrt(0.5) # half of the people carry it: the exclusive or then says nothing alone
  allele <- function(stream) matrix(draws("uniform", n * p, key = seed, stream = stream), n) < rep(frequency, each = n)
  x <- allele(23) + allele(24)
  storage.mode(x) <- "integer"
  dimnames(x) <- list(sprintf("P%0*d", nchar(as.character(n)), seq_len(n)), names)
  one <- xor(x[, special[1L]] > 0, x[, special[2L]] > 0)
  risk <- stats::plogis(-1.1 + 1.6 * one + 0.5 * x[, special[3L]] + 0.5 * x[, special[4L]] - 1)
  class <- factor(ifelse(draws("uniform", n, key = seed, stream = 25) < risk, "case", "control"), c("control", "case"))
  list(x = x, class = class, epistatic = sort(names[special[1:2]]), marginal = sort(names[special[3:4]]),
       source = sprintf("Simulated: %d cases, epistatic pair %s, seed %.0f.", sum(class == "case"),
                        paste(sort(names[special[1:2]]), collapse = " and "), seed))
}

# ---- documents ----

example_words <- function(n, p, seed) {
  themes <- c("music", "garden", "kitchen", "harbour")
  row <- 1 + draws("below", n, a = 4, key = seed, stream = 31)
  col <- sort(1 + draws("below", p, a = 5, key = seed, stream = 32)) # the fifth kind occurs everywhere
  rate <- ifelse(outer(row, col, `==`), 0.35, ifelse(rep(col, each = n) == 5, 0.2, 0.02))
  links <- matrix(draws("uniform", n * p, key = seed, stream = 33), n) < rate
  words <- sprintf("%s%02d", c(themes, "common")[col], stats::ave(col, col, FUN = seq_along))
  x <- methods::as(methods::as(Matrix::Matrix(links, sparse = TRUE,
                                              dimnames = list(sprintf("doc%03d", seq_len(n)), words)),
                               "generalMatrix"), "dMatrix")
  list(x = x, row_cluster = factor(themes[row], themes),
       col_cluster = factor(c(themes, "common")[col], c(themes, "common")),
       source = sprintf("Simulated: %d links, seed %.0f.", sum(links), seed))
}

# ---- points ----

example_points <- function(n, seed) {
  centre <- rbind(c(0, 0), c(5, 1), c(1, 6), c(6, 6))
  spread <- list(diag(2), matrix(c(1.2, 0, 0, 0.3), 2), matrix(c(0.6, 0.5, 0, 0.4), 2), diag(0.4, 2))
  cluster <- 1 + draws("below", n, a = 4, key = seed, stream = 41)
  z <- matrix(draws("normal", 2 * n, key = seed, stream = 42), n)
  x <- matrix(0, n, 2L, dimnames = list(NULL, c("x", "y")))
  for (k in 1:4) x[cluster == k, ] <- z[cluster == k, , drop = FALSE] %*% spread[[k]] +
    rep(centre[k, ], each = sum(cluster == k))
  stray <- draws("uniform", n, key = seed, stream = 43) < 0.05
  x[stray, ] <- matrix(-4 + 14 * draws("uniform", 2 * sum(stray), key = seed, stream = 44), ncol = 2L)
  list(x = x, row_cluster = factor(ifelse(stray, "stray", LETTERS[cluster])),
       source = sprintf("Simulated: four clusters, %d stray points, seed %.0f.", sum(stray), seed))
}

# ---- real sets ----

example_golub <- function() {
  need_package("multtest", "The example \"golub\"")
  loaded <- new.env()
  utils::data("golub", package = "multtest", envir = loaded)
  x <- t(loaded$golub)
  dimnames(x) <- list(sprintf("patient%02d", seq_len(nrow(x))), make.unique(loaded$golub.gnames[, 3L]))
  list(x = x, class = factor(loaded$golub.cl, 0:1, c("ALL", "AML")),
       symbols = stats::setNames(golub_symbols(loaded$golub.gnames[, 3L]), colnames(x)),
       gene_names = stats::setNames(loaded$golub.gnames[, 2L], colnames(x)),
       source =
         "Golub and others (1999), Science 286, 531-537; the training set as in the Bioconductor package multtest.")
}

# The array's descriptions have old symbols, or none.
golub_symbols <- function(probes) {
  known <- utils::read.csv(system.file("extdata", "golub-symbols.csv.gz", package = "weft", mustWork = TRUE),
                           comment.char = "#")
  known$symbol[match(probes, known$probe)]
}

example_all <- function() {
  need_package("ALL", "The example \"all\"")
  need_package("Biobase", "The example \"all\"")
  loaded <- new.env()
  utils::data("ALL", package = "ALL", envir = loaded)
  phenotype <- Biobase::pData(loaded$ALL)
  list(x = t(Biobase::exprs(loaded$ALL)), class = factor(substr(phenotype$BT, 1L, 1L)),
       source = "Chiaretti and others (2004), Blood 103, 2771-2778; the Bioconductor package ALL.")
}
