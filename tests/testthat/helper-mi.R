# Information by tables in R: the reference of the counting searches.
reference_entropy <- function(...) {
  counts <- table(...)
  p <- counts[counts > 0] / sum(counts)
  -sum(p * log2(p))
}

# I(class; the columns together) over the rows where all are known, and how many these are.
reference_information <- function(columns, class, rows = stats::complete.cases(columns, class)) {
  if (!any(rows)) return(c(0, 0))
  together <- do.call(paste, c(columns, sep = "\r"))[rows]
  class <- class[rows]
  c(reference_entropy(together) + reference_entropy(class) - reference_entropy(together, class), sum(rows))
}

# All tuples of an order, in column order, with the columns of the result of mi_pairs() and its kin.
reference_tuples <- function(x, class, order) {
  x <- as.data.frame(x)
  sets <- utils::combn(ncol(x), order)
  rows <- apply(sets, 2, function(at) {
    known <- stats::complete.cases(x[at], class)
    of <- function(which) reference_information(x[which], class, known)[1]
    each <- vapply(at, of, 0)
    joint <- of(at)
    less <- if (order == 2) sum(each) else max(vapply(seq_along(at), function(k) of(at[-k]), 0))
    c(joint, each, joint - less, sum(known))
  })
  out <- as.data.frame(cbind(t(sets), t(rows)))
  names(out) <- c(paste0("feature", 1:order), "mi", paste0("mi", 1:order), "interaction", "n")
  for (k in 1:order) out[[k]] <- names(x)[out[[k]]]
  out
}

# Columns of every kind: binary, few levels, missing, coded, constant, all different, wide, all missing.
mixed_columns <- function(n) {
  pick <- function(values) sample(values, n, TRUE)
  data.frame(
    a = pick(0:1), b = pick(1:3), c = pick(c(1:5, NA)), d = pick(1:40), e = rep(1L, n), f = pick(c(0, 100, 70000)),
    g = pick(c(0L, 1L, NA)), h = seq_len(n), i = rep(NA_integer_, n), j = pick(c(-9L, 5L)), k = pick(1:300)
  )
}

# Scores against a reference, whatever the order of the tuples; sums of up to 1e4 cells, each within 2^-52.
expect_tuples <- function(found, reference) {
  order <- sum(grepl("^feature", names(found)))
  key <- function(d) do.call(paste, d[paste0("feature", seq_len(order))])
  testthat::expect_setequal(key(found), key(reference))
  at <- match(key(found), key(reference))
  for (column in setdiff(names(reference), paste0("feature", seq_len(order)))) {
    testthat::expect_lte(max(abs(found[[column]] - reference[[column]][at]), 0), 1e-12, label = column)
  }
}

# The network methods that need no threshold.
whole_networks <- setdiff(names(weft:::network_methods), "relnet")

# Within a factor either way, or both below the smallest numbers that matter.
expect_within_factor <- function(got, want, factor, ...) {
  testthat::expect_lte(abs(log(pmax(got, 1e-12) / pmax(want, 1e-12))), log(factor), ...)
}

# All orders of 1 .. n, one a row.
all_orders <- function(n) {
  if (n == 1) return(matrix(1L))
  less <- all_orders(n - 1)
  do.call(rbind, lapply(seq_len(n), function(first) cbind(first, less + (less >= first), deparse.level = 0)))
}
