#' Normalise the counts of a store as they are read
#'
#' `store_normalise()` scales each row (cell) to the same total, takes logarithms, and can select columns (genes). The
#' shortest call is `store_normalise(x)`. Nothing is written: the returned store remembers what to do, and does it
#' whenever values are read.
#'
#' A value v of a row with total s becomes \eqn{\log(1 + v \cdot total / s)}{log(1 + v total / s)}. Zeros stay zeros, so
#' the matrix stays sparse. Rows without counts do not change. The total of a row is its sum over all columns of the
#' store, including those that `genes` excludes.
#'
#' @param x a store without negative values; see [weft_store()].
#' @param total the sum of every row before the logarithm; `NULL` for the mean of all totals.
#' @param log whether to take natural logarithms, after adding one.
#' @param genes the columns to keep: numbers, names or logical values; by default all. They stay in the order of the
#'   store.
#' @return The store; `[`, [colSums()], [pca()] and all other functions see the normalised values.
#' @export
#' @examples
#' counts <- Matrix::rsparsematrix(100, 20, 0.2, rand.x = function(n) rpois(n, 2) + 1)
#' x <- store_normalise(weft_import(counts, tempfile(fileext = ".weft")))
#' x
#' range(rowSums(expm1(as.matrix(x))))
#' pca(x, k = 2)
#'
#' few <- store_normalise(weft_store(unclass(x)$path), genes = c(2, 5, 7))
#' dim(few)
store_normalise <- function(x, total = 1e4, log = TRUE, genes = NULL) {
  need_args("x")
  if (!inherits(x, "weft_store")) abort_input("`x` must be a store.", x = paste0("It is ", describe(x), "."))
  if (!is.null(total)) total <- check_number(total, "total", min = 1e-300, max = 1e300)
  log <- check_flag(log, "log")
  parts <- whole_store(x)
  if (!is.null(parts$recipe$what)) {
    abort_input("`x` must contain counts.", x = "It is already normalised, or has been restricted to some columns.",
                i = "Open the file again with `weft_store()`.")
  }
  found <- store_sums(x)
  if (!is.null(genes)) {
    genes <- sort(unique(store_places(genes, as.integer(parts$p), dimnames(x)[[2L]], "genes")))
    if (!length(genes)) abort_input("`genes` must keep at least one column.")
  }
  low <- min(found$range[1L], 0)
  if (low < 0 || !all(is.finite(found$rows))) {
    abort_input("`x` must contain counts.",
                x = if (low < 0) sprintf("The smallest value is %g.", low) else "Some values are missing or infinite.")
  }
  some <- found$rows > 0
  goal <- total %||% if (any(some)) mean(found$rows) else 1
  with_recipe(x, found, goal, log, genes)
}

# `found`: the sums of the whole; `goal`: what each row adds up to.
with_recipe <- function(x, found, goal, log, genes) {
  parts <- whole_store(x)
  kept <- if (is.null(genes)) 1 else sum(found$column_counts[genes]) / max(1, sum(found$column_counts))
  what <- sprintf("Normalised: rows have a total of %.6g%s%s", goal, if (log) ", then log(1 + value)" else "",
                  if (is.null(genes)) "" else sprintf("; %d of %.0f columns", length(genes), parts$p))
  size <- as.double(ifelse(found$rows > 0, found$rows / goal, 1))
  parts$recipe <- list(size = size, log1p = log, columns = genes, share = kept, what = what)
  structure(parts, class = class(x))
}
