# Random calls of mi_*(), mi_select() and discretize() against plain R code that shares nothing with weft, and against
# the same call on data that were permuted, doubled, split or brought to other units. A check draws its own call and
# returns NULL, or words for the difference. test-plain.R runs some, proofs/plain.R thousands; helper-plain-sums.R
# has those of other rooms.
plain_checks <- function() {
  others <- lapply(plain_sums(), function(draw) function() plain_difference(draw()))
  mine <- list(mi_rank = plain_rank, mi_pairs = plain_pairs, mi_triples = plain_triples, mi_tuples = plain_tuples,
       mi_matrix_counts = plain_counts, mi_matrix_numbers = plain_numbers, mi_select = plain_select,
       discretize = plain_discretize, permuted = same_permuted, doubled = same_doubled, split = same_split,
       units = same_units)
  c(mine, others)
}

# list(name, text): the check of a seed; text is NULL where all is well.
run_plain <- function(seed, only = NULL) {
  seed_numbers(seed)
  checks <- plain_checks()
  name <- sample(only %||% names(checks), 1L)
  seed_numbers(seed) # again, so that a check is the same however it was chosen
  list(name = name, text = tryCatch(checks[[name]](), error = function(e) paste("an error:", conditionMessage(e))))
}

# ---- categories in plain R ----

# Columns of any form of features as whole numbers, missing as NA or as a level.
plain_columns <- function(x, na) {
  if (!is.data.frame(x)) {
    values <- if (isS4(x)) as.matrix(x) * 1 else if (is.raw(x)) as.integer(x) else x
    x <- as.data.frame(matrix(values, nrow(x), ncol(x), dimnames = dimnames(x)))
  }
  lapply(x, function(z) {
    codes <- match(z, unique(z[!is.na(z)]))
    if (na == "level") codes[is.na(codes)] <- 0L
    codes
  })
}

# Entropy in bits of the combinations of some vectors of equal length.
plain_entropy <- function(...) {
  counts <- table(do.call(paste, list(...)))
  if (!length(counts)) return(0)
  p <- as.vector(counts) / sum(counts)
  -sum(p * log2(p))
}

# I(a; b | s) over rows, s a vector of strata.
plain_information <- function(a, b, s = rep(1L, length(a))) {
  n <- length(a)
  sum(vapply(split(seq_len(n), s), function(at) {
    length(at) / n * (plain_entropy(a[at]) + plain_entropy(b[at]) - plain_entropy(a[at], b[at]))
  }, 0))
}

combined <- function(columns, rows) do.call(paste, lapply(columns, `[`, rows))

# list(mi, each, less, n) of a tuple: its information, that of its members and of it without each, over the rows where
# all are known.
plain_tuple <- function(columns, class, strata = rep(1L, length(class))) {
  rows <- which(stats::complete.cases(as.data.frame(columns, col.names = seq_along(columns)), class, strata))
  of <- function(which) plain_information(combined(columns[which], rows), class[rows], strata[rows])
  all <- seq_along(columns)
  list(mi = of(all), each = vapply(all, of, 0), n = length(rows),
       less = vapply(all, function(k) if (length(all) > 2L) of(all[-k]) else 0, 0))
}

# Features of a random call with names, few enough for plain code, and rows enough for weft not to refuse them.
plain_features <- function(p, rows = 120) {
  repeat {
    d <- some_features(whole(2, rows), p, some_levels(p), pick(2, 3, 7, 70))
    if (d$na == "fail" && anyNA(plain_columns(d$x, "drop"), recursive = TRUE)) next
    if (any(!is.na(d$class))) break
  }
  if (is.null(colnames(d$x))) colnames(d$x) <- sprintf("f%d", seq_len(p))
  c(d, list(columns = plain_columns(d$x, d$na), classes = match(d$class, unique(d$class[!is.na(d$class)]))))
}

arguments <- function(d) d[c("x", "class", "na")]

# Sums of up to some thousand logarithms: absolute differences stay below this.
near_enough <- function(a, b, what) within(as.double(a), as.double(b), 1e-11, what)

plain_rank <- function() {
  d <- plain_features(whole(1, 8))
  unit <- pick("bits", "nats")
  scale <- if (unit == "bits") 1 else log(2)
  found <- call_with(weft::mi_rank, c(arguments(d), unit = unit))
  found <- found[match(names(d$columns), found$feature), ]
  expected <- vapply(d$columns, function(z) {
    rows <- !is.na(z) & !is.na(d$classes)
    c(plain_information(z[rows], d$classes[rows]), plain_entropy(z[rows]), length(unique(z[rows])), sum(rows))
  }, numeric(4))
  first_of(near_enough(found$mi, expected[1L, ] * scale, "mi"),
           near_enough(found$entropy, expected[2L, ] * scale, "entropy"),
           within(as.double(found$levels), expected[3L, ], 0, "levels"), within(found$n, expected[4L, ], 0, "n"),
           if (any(found$p_value[expected[3L, ] < 2] != 1)) "p of a constant")
}

# A search of all tuples of an order, with thresholds between scores, as plain code has it.
plain_search <- function(d, order, search, more = list(), strata = rep(1L, length(d$classes)), wanted = NULL) {
  sets <- utils::combn(length(d$columns), order)
  if (!is.null(wanted)) sets <- sets[, apply(sets, 2L, wanted), drop = FALSE]
  if (!ncol(sets)) return(NULL)
  tuples <- apply(sets, 2L, function(at) plain_tuple(d$columns[at], d$classes, strata))
  unit <- pick("bits", "nats")
  scale <- if (unit == "bits") 1 else log(2)
  mi <- scale * vapply(tuples, `[[`, 0, "mi")
  each <- scale * vapply(tuples, `[[`, numeric(order), "each")
  gain <- mi - if (order == 2L) colSums(each) else scale * vapply(tuples, function(t) max(t$less), 0)
  by <- pick("mi", "interaction")
  # half way between two scores, so that rounding decides nothing
  between <- function(scores) {
    scores <- sort(unique(round(scores, 9)))
    if (length(scores) < 2L) return(NULL)
    at <- sample(length(scores) - 1L, 1L)
    mean(scores[at + 0:1])
  }
  bars <- list(min_mi = if (chance(0.3)) between(mi), min_gain = if (chance(0.3)) between(gain))
  bars <- bars[lengths(bars) > 0L]
  found <- call_with(search, c(arguments(d), more, bars, list(top = Inf, by = by, unit = unit)))
  keep <- mi >= (bars$min_mi %||% -Inf) & gain >= (bars$min_gain %||% -Inf)
  key <- function(names) apply(matrix(names, order), 2L, paste, collapse = "\r")
  kept <- key(names(d$columns)[sets])[keep]
  own <- key(t(as.matrix(as.data.frame(found)[sprintf("feature%d", seq_len(order))])))
  if (!setequal(own, kept)) return(sprintf("%d tuples kept, %d expected", length(own), length(kept)))
  at <- match(own, key(names(d$columns)[sets]))
  score <- found[[if (by == "mi") "mi" else "interaction"]]
  first_of(near_enough(found$mi, mi[at], "mi"), near_enough(found$interaction, gain[at], "interaction"),
           near_enough(unlist(found[sprintf("mi%d", seq_len(order))]), t(each)[at, ], "members"),
           within(found$n, vapply(tuples, `[[`, 0L, "n")[at], 0, "n"), if (is.unsorted(-score)) "the order of scores")
}

plain_pairs <- function() {
  d <- plain_features(whole(2, 7))
  n <- length(d$classes)
  more <- list()
  strata <- rep(1L, n)
  if (chance(0.3)) {
    strata <- sample(whole(1, 4), n, TRUE)
    if (d$na != "fail" && chance(0.5)) strata[sample(n, 1L)] <- NA
    if (all(is.na(strata) | is.na(d$classes))) return(NULL)
    more$strata <- strata
  }
  p <- length(d$columns)
  wanted <- NULL
  if (chance(0.3)) {
    more$features <- some_columns(p, NULL)
    more$with <- some_columns(p, NULL)
    wanted <- function(at) any(at %in% more$features & rev(at) %in% more$with)
  }
  plain_search(d, 2L, weft::mi_pairs, more, strata, wanted)
}

plain_triples <- function() plain_search(plain_features(whole(3, 6), 80), 3L, weft::mi_triples, list(backend = "cpu"))

plain_tuples <- function() {
  order <- whole(3, 5)
  plain_search(plain_features(whole(order, 6), 80), order, weft::mi_tuples, list(order = order))
}

# ---- matrices ----

# Entropy in nats of counts that occur.
plain_estimate <- function(counts, estimator) {
  n <- sum(counts)
  if (!n) return(0)
  p <- counts / n
  cells <- length(counts)
  if (estimator == "shrink") {
    target <- 1 / cells
    lambda <- if (n > 1 && any(p != target)) (1 - sum(p^2)) / ((n - 1) * sum((target - p)^2)) else 1
    p <- pmin(1, pmax(0, lambda)) * target + (1 - pmin(1, pmax(0, lambda))) * p
  }
  if (estimator == "schurmann-grassberger") {
    n <- n + 1
    counts <- counts + 1 / cells
    return(sum(counts * (digamma(n + 1) - digamma(counts + 1))) / n)
  }
  -sum(p * log(p)) + if (estimator == "miller-madow") (cells - 1) / (2 * n) else 0
}

plain_counts <- function() {
  d <- plain_features(whole(2, 6))
  estimator <- pick("empirical", "miller-madow", "shrink", "schurmann-grassberger")
  found <- plain_matrix(weft::mi_matrix(d$x, na = d$na, estimator = estimator))
  p <- length(d$columns)
  of <- function(...) plain_estimate(as.vector(table(paste(...))), estimator)
  expected <- matrix(0, p, p)
  for (i in seq_len(p)) for (j in seq_len(p)) {
    rows <- !is.na(d$columns[[i]]) & !is.na(d$columns[[j]])
    a <- d$columns[[i]][rows]
    b <- d$columns[[j]][rows]
    if (i == j) expected[i, i] <- of(a)
    else if (min(length(unique(a)), length(unique(b))) > 1L) expected[i, j] <- of(a) + of(b) - of(a, b)
  }
  near_enough(found, expected / log(2), paste("information,", estimator))
}

# Decimals, so that ties are there and rounding would break them.
plain_table <- function(n, p, na) {
  x <- matrix(sample(whole(3, 60), n * p, TRUE), n, p)
  if (p > 1L) x[, 2L] <- x[, 1L] + sample(0:whole(1, 9), n, TRUE)
  if (chance(0.3)) x <- x + stats::rnorm(n * p)
  if (na == "drop") x <- with_gaps(x, pick(0, 0.1, 0.5))
  if (chance(0.2)) x[, p] <- degenerate_column(if (na == "drop") sample(degenerate_kinds, 1L) else "constant", x[, p])
  x
}

normal_scores <- function(z) stats::qnorm(rank(z) / (length(z) + 1))

plain_numbers <- function() {
  na <- pick("fail", "drop")
  estimator <- pick("pearson", "spearman", "kendall", "copula", "ksg")
  n <- whole(6, 60)
  k <- whole(1, 4)
  x <- plain_table(n, whole(2, 4), na)
  unit <- pick(1, 0.1, 1 / 3)
  args <- list(x = x * unit, estimator = estimator, na = na)
  if (estimator == "ksg") args$k <- k
  found <- plain_matrix(call_with(weft::mi_matrix, args))
  for (i in seq_len(ncol(x) - 1L)) for (j in (i + 1L):ncol(x)) {
    rows <- stats::complete.cases(x[, c(i, j)])
    a <- x[rows, i]
    b <- x[rows, j]
    expected <- 0
    if (length(unique(a)) > 1L && length(unique(b)) > 1L) {
      expected <- switch(estimator,
        ksg = if (length(a) > k) ref_ksg_ties(a, b, k) else 0,
        copula = ref_of_rho(stats::cor(normal_scores(a), normal_scores(b))),
        ref_of_rho(stats::cor(a, b, method = estimator)))
    }
    # -log2(1 - rho^2) / 2 carries the rounding of rho times this
    wide <- if (estimator == "ksg") 1e-11 else 1e-11 + 1e-14 * 4^expected
    wrong <- within(found[i, j], max(expected, if (estimator == "ksg") -Inf else 0), wide, estimator)
    if (!is.null(wrong)) return(wrong)
  }
  NULL
}

# As ref_ksg(), but points as far away as the k-th neighbour are neighbours too. The tolerance is for decimals.
ref_ksg_ties <- function(x, y, k) {
  n <- length(x)
  dx <- abs(outer(x, x, "-")) / stats::sd(x)
  dy <- abs(outer(y, y, "-")) / stats::sd(y)
  far <- 1e-10
  each <- vapply(seq_len(n), function(i) {
    d <- pmax(dx[i, ], dy[i, ])[-i]
    near <- d <= sort(d)[k] + far
    c(digamma(sum(near)) - 1 / sum(near), digamma(sum(dx[i, -i] <= max(dx[i, -i][near]) + far)) +
        digamma(sum(dy[i, -i] <= max(dy[i, -i][near]) + far)))
  }, numeric(2))
  (mean(each[1L, ]) + digamma(n) - mean(each[2L, ])) / log(2)
}

# ---- selection ----

# The score of feature j, those in `w` chosen, over the rows where all of its variables are known.
plain_score <- function(d, method, j, w) {
  # entropies of the columns in `sets` ("y": the class), over the rows where all `needed` are known
  entropies <- function(needed, sets) {
    all <- c(d$columns[as.integer(setdiff(needed, "y"))], list(d$classes))
    rows <- which(stats::complete.cases(as.data.frame(all, col.names = seq_along(all))))
    vapply(sets, function(s) {
      parts <- lapply(s, function(v) if (v == "y") d$classes[rows] else d$columns[[as.integer(v)]][rows])
      if (length(parts)) do.call(plain_entropy, parts) else 0
    }, 0)
  }
  gini <- function(at) {
    all <- c(d$columns[at], list(d$classes))
    rows <- which(stats::complete.cases(as.data.frame(all, col.names = seq_along(all))))
    if (!length(rows)) return(0)
    q <- table(combined(d$columns[at], rows), d$classes[rows]) / length(rows)
    sum(q^2 / rowSums(q)) - sum(colSums(q)^2)
  }
  j <- as.character(j)
  signed <- function(needed, plus, minus) sum(entropies(needed, plus)) - sum(entropies(needed, minus))
  alone <- function() if (method == "jim") gini(as.integer(j)) else signed(c(j, "y"), list(j, "y"), list(c(j, "y")))
  if (!length(w)) return(alone())
  w <- as.character(w)
  joint <- function(v) signed(c(j, v, "y"), list(c(j, v), "y"), list(c(j, v, "y")))
  ratio <- function(v) {
    whole <- entropies(c(j, v, "y"), list(c(j, v, "y")))
    if (whole > 0) joint(v) / whole else 0
  }
  given <- function(v) signed(c(j, v, "y"), list(c(j, v), c(v, "y")), list(v, c(j, v, "y")))
  of <- function(f) vapply(w, f, 0)
  switch(method, mim = alone(), mrmr = alone() - mean(of(function(v) signed(c(j, v), list(j, v), list(c(j, v))))),
         jmi = sum(of(joint)), jmim = min(of(joint)), disr = sum(of(ratio)), njmim = min(of(ratio)),
         cmim = min(alone(), of(given)), cmi = given(w), jim = sum(of(function(v) gini(as.integer(c(j, v))))))
}

# Every step of a selection is checked as it was taken: the score is right, and none is better.
plain_select <- function() {
  d <- plain_features(whole(2, 6), 80)
  method <- pick("mrmr", "mim", "jmi", "jmim", "njmim", "disr", "cmim", "cmi", "jim")
  k <- whole(1, length(d$columns))
  found <- call_with(weft::mi_select, c(arguments(d), list(k = k, method = method)))
  chosen <- match(found$feature, names(d$columns))
  for (step in seq_len(length(chosen) + (length(chosen) < k))) {
    before <- chosen[seq_len(step - 1L)]
    left <- setdiff(seq_along(d$columns), before)
    first <- step == 1L && !method %in% "jim"
    scores <- vapply(left, function(j) plain_score(d, if (first) "mim" else method, j, before), 0)
    if (step > length(chosen)) {
      return(if (!method %in% c("cmi", "cmim") || max(scores) > 1e-10) paste("stopped too early,", method))
    }
    wrong <- first_of(near_enough(found$score[step], scores[match(chosen[step], left)], paste("score,", method)),
                      if (max(scores) > found$score[step] + 1e-10) paste("not the best,", method))
    if (!is.null(wrong)) return(wrong)
  }
  NULL
}

# ---- bins ----

plain_discretize <- function() {
  n <- whole(2, 60)
  d <- some_cut_column(n)
  x <- with_gaps(d$x, pick(0, 0.2))
  class <- with_gaps(d$class, pick(0, 0.1))
  if (all(is.na(x)) || all(is.na(class))) return(NULL)
  method <- pick("equalfreq", "equalwidth", "sd", "mdl", "caim", "cacc", "ameva")
  bins <- whole(1, 6)
  found <- weft::discretize(data.frame(x), method, bins = bins, class = class)
  codes <- as.integer(found$x)
  known <- !is.na(x) & (!is.na(class) | method %in% c("equalfreq", "equalwidth", "sd"))
  sorted <- sort(x)
  expected <- switch(method,
    equalfreq = unique(sorted[ceiling(seq_len(bins - 1L) * length(sorted) / bins)]),
    mdl = if (length(unique(class[known])) > 1L) ref_mdl(x[known], class[known]),
    if (method %in% c("caim", "cacc", "ameva") && length(unique(class[known])) > 1L && length(unique(x[known])) > 1L) {
      ref_top_down(x[known], class[known], method)
    })
  if (method == "equalfreq") expected <- expected[expected < max(sorted)]
  if (method == "equalwidth") {
    width <- diff(range(sorted)) / bins
    own <- if (width > 0) pmin(1 + floor((x - sorted[1L]) / width), bins) else ifelse(is.na(x), NA, 1)
    edge <- width > 0 & abs((x - sorted[1L]) / width - round((x - sorted[1L]) / width)) < 1e-9 # rounding may decide
    return(if (any(codes[!edge %in% TRUE] != own[!edge %in% TRUE], na.rm = TRUE)) "bins of equal width")
  }
  if (method == "sd") {
    spread <- if (length(sorted) > 1L) stats::sd(sorted) else 0
    own <- 2L + (x > mean(sorted) + spread) - (x < mean(sorted) - spread)
    edge <- abs(abs(x - mean(sorted)) - spread) < 1e-9 # rounding may decide
    return(if (spread > 0 && any((codes != own)[!edge], na.rm = TRUE)) "bins by standard deviations")
  }
  cuts <- as.double(expected)
  first_of(near_enough(attr(found, "cuts")$x, cuts, paste("cuts,", method)),
           if (!identical(codes, as.integer(1 + rowSums(outer(x, cuts, ">")) + 0 * x))) paste("bins,", method))
}

# ---- the same call on other data ----

# Scores by feature, whatever their order.
by_tuple <- function(found) {
  of <- sort(grep("^feature", names(found), value = TRUE))
  names <- apply(as.matrix(as.data.frame(found)[of]), 1L, function(f) paste(sort(f), collapse = "\r"))
  found[order(names), intersect(c("mi", "interaction", "entropy", "n"), names(found))] |> as.list() |> unname()
}

some_scoring <- function(d) {
  pick(function(x, class) by_tuple(weft::mi_rank(x, class, na = d$na)),
       function(x, class) by_tuple(weft::mi_pairs(x, class, na = d$na, top = Inf)),
       function(x, class) by_tuple(weft::mi_tuples(x, class, order = 3, na = d$na, top = Inf)))
}

# Rows and columns in another order: the same bits, since counts are the same.
same_permuted <- function() {
  d <- plain_features(whole(3, 9))
  rows <- sample(length(d$classes))
  columns <- sample(length(d$columns))
  score <- some_scoring(d)
  same_bits(score(d$x, d$class)[-3L], score(d$x[rows, columns, drop = FALSE], d$class[rows])[-3L]) %||%
    same_bits(plain_matrix(weft::mi_matrix(d$x, na = d$na))[columns, columns],
              plain_matrix(weft::mi_matrix(d$x[rows, columns, drop = FALSE], na = d$na)))
}

# Every row twice: the same information from twice as many rows.
same_doubled <- function() {
  d <- plain_features(whole(3, 7))
  rows <- rep(seq_along(d$classes), 2L)
  score <- some_scoring(d)
  once <- score(d$x, d$class)
  twice <- score(d$x[rows, , drop = FALSE], d$class[rows])
  last <- length(once)
  first_of(near_enough(unlist(once[-last]), unlist(twice[-last]), "scores"), same_bits(2 * once[[last]], twice[[last]]))
}

# Features in one call or in two.
same_split <- function() {
  d <- plain_features(whole(3, 9))
  p <- length(d$columns)
  one <- sort(sample(p, whole(1, p - 1L)))
  two <- setdiff(seq_len(p), one)
  ranked <- function(at) as.data.frame(weft::mi_rank(d$x[, at, drop = FALSE], d$class, na = d$na))
  both <- rbind(ranked(one), ranked(two))
  whole_rank <- ranked(seq_len(p))
  m <- plain_matrix(weft::mi_matrix(d$x, na = d$na))
  cross <- plain_matrix(weft::mi_matrix(d$x[, one, drop = FALSE], d$x[, two, drop = FALSE], na = d$na))
  pairs <- function(...) as.data.frame(call_with(weft::mi_pairs, list(d$x, d$class, na = d$na, top = Inf, ...)))
  of_both <- rbind(if (length(one) > 1L) pairs(features = one), if (length(two) > 1L) pairs(features = two),
                   pairs(features = one, with = two))
  first_of(same_bits(both[match(whole_rank$feature, both$feature), "mi"], whole_rank$mi),
           same_bits(m[one, two, drop = FALSE], cross), same_bits(by_tuple(of_both), by_tuple(pairs())))
}

# Numbers multiplied and shifted column by column.
same_units <- function() {
  n <- whole(8, 60)
  p <- whole(2, 4)
  x <- plain_table(n, p, "fail")
  factors <- 10^stats::runif(p, -6, 6) * sample(c(1, 3, 1 / 7), p, TRUE)
  other <- t(t(x) * factors + factors * stats::runif(p, -50, 50))
  estimator <- pick("pearson", "spearman", "kendall", "copula", "ksg")
  matrix_of <- function(x) {
    out <- plain_matrix(weft::mi_matrix(x, estimator = estimator))
    `diag<-`(out, 0)
  }
  class <- sample(3L, n, TRUE)
  method <- pick("equalfreq", "equalwidth", "sd", "mdl", "caim", "cacc", "ameva")
  cut_codes <- function(x) lapply(plain(weft::discretize(as.data.frame(x), method, class = class)), as.integer)
  a <- matrix_of(x)
  first_of(if (estimator == "pearson") within(a, matrix_of(other), 1e-9 + 1e-12 * 4^a, "pearson")
           else same_bits(a, matrix_of(other)),
           same_bits(cut_codes(x), cut_codes(other)))
}
