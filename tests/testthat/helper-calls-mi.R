# Calls of the mutual-information room, of directed networks and of the draws, for helper-calls.R. All of them give the
# same bits on both back ends, but for the estimators that take logarithms of sums of a pair's cells in another order.
calls_mi <- function() {
  list(
    draws = list(share = 2, make = draw_draws), discretize = list(share = 3, make = draw_discretize),
    mi_rank = list(share = 8, make = draw_mi_rank),
    mi_pairs = list(share = 10, make = draw_mi_pairs), mi_triples = list(share = 6, make = draw_mi_triples),
    mi_matrix = list(share = 12, make = draw_mi_matrix), mi_network = list(share = 8, make = draw_mi_network),
    mi_select = list(share = 3, make = draw_mi_select), mi_tuples = list(share = 4, make = draw_mi_tuples),
    transfer_entropy = list(share = 4, make = draw_transfer),
    pair_scan = list(share = 4, make = draw_pair_scan), regulation = list(share = 4, make = draw_regulation)
  )
}

# ---- categories ----

some_rows <- function(most) if (chance(0.05)) pick(whole(1000, 6000), 1024, 2048, 4096) else some_size(most)

# Codes from 1, one column per feature; some hang on each other, on `class` or are copies.
some_codes <- function(n, p, levels, class = NULL) {
  codes <- matrix(0L, n, p)
  for (j in seq_len(p)) {
    l <- levels[j]
    free <- sample(l, n, TRUE)
    codes[, j] <- switch(
      pick("free", "skewed", "copy", "class", "sorted", "constant", prob = c(5, 2, 1.5, 2, 0.5, 0.5)),
      free = free, skewed = pmin(l, 1L + stats::rgeom(n, 0.6)), sorted = sort(free), constant = rep(l, n),
      copy = if (j > 1L) (codes[, sample(j - 1L, 1L)] - 1L) %% l + 1L else free,
      class = if (is.null(class)) free
              else ifelse(stats::runif(n) < 0.8, (as.integer(factor(class)) - 1L) %% l + 1L, free)
    )
  }
  codes[is.na(codes)] <- 1L # of rows without a class
  codes
}

# The same codes in one of the forms that features may have.
some_form <- function(codes, levels, gaps = 0) {
  storage.mode(codes) <- "integer"
  p <- ncol(codes)
  colnames(codes) <- if (chance(0.7)) sprintf("f%d", seq_len(p))
  known <- gaps == 0 && !anyNA(codes)
  forms <- c("integer", "double", "frame", "mixed", "text", if (known) "sparse",
             if (known && all(levels < 256)) "raw", if (all(levels <= 2)) "logical",
             if (known && all(levels <= 2)) "pattern")
  form <- sample(forms, 1L)
  shaped <- function(values) matrix(values, nrow(codes), p, dimnames = dimnames(codes))
  if (form == "raw") return(shaped(as.raw(codes)))
  if (form == "sparse") return(Matrix::Matrix(codes - 1, sparse = TRUE, doDiag = FALSE))
  if (form == "pattern") return(methods::as(Matrix::Matrix(codes > 1, sparse = TRUE, doDiag = FALSE), "nMatrix"))
  codes <- with_gaps(codes, gaps)
  if (form == "integer") return(codes)
  if (form == "double") return(codes * pick(1, -3, 1e6))
  if (form == "logical") return(codes > 1L)
  if (form == "text") return(shaped(ifelse(is.na(codes), NA_character_, paste0("l", codes))))
  columns <- lapply(seq_len(p), function(j) {
    z <- codes[, j]
    if (form == "frame") return(factor(z, seq_len(levels[j])))
    pick(factor(z), z, as.double(z), as.character(z), z > 1L)
  })
  list2DF(stats::setNames(columns, colnames(codes) %||% sprintf("V%d", seq_len(p))), nrow(codes))
}

some_class <- function(n, levels, gaps = 0) {
  z <- with_gaps(if (chance(0.1)) rep(1L, n) else sample(levels, n, TRUE), gaps)
  pick(z, factor(z), factor(z, seq_len(levels + 1L)), as.character(z), as.double(z))
}

# list(x, class, na): features with a class, and what to do with what is missing.
some_features <- function(n, p, levels, class_levels) {
  na <- pick("fail", "drop", "level")
  gaps <- if (na == "fail" && chance(0.95)) 0 else pick(0, 0.05, 0.5, 0.99, prob = c(3, 3, 1, 0.3))
  class <- some_class(n, class_levels, if (na == "fail") 0 else pick(0, 0.1))
  d <- spoil_codes(some_codes(n, p, levels, class), levels, class, na)
  list(x = some_form(d$codes, d$levels, gaps), class = class, na = na)
}

# Now and then makes some columns degenerate: list(codes, levels).
spoil_codes <- function(codes, levels, groups, na) {
  p <- ncol(codes)
  for (j in if (p && chance(0.3)) sample(p, whole(1, min(p, 3L)))) {
    kind <- sample(if (na == "fail") c("constant", "all distinct") else degenerate_kinds, 1L)
    codes[, j] <- degenerate_column(kind, codes[, j], groups)
    if (kind == "all distinct") levels[j] <- max(1L, nrow(codes))
  }
  list(codes = codes, levels = levels)
}

some_levels <- function(p) {
  switch(pick("binary", "small", "mixed", "wide", prob = c(4, 3, 2, 1)),
    binary = rep(2L, p), small = sample(1:4, p, TRUE), mixed = sample(c(2L, 3L, 5L, 24L, 25L, 26L, 60L), p, TRUE),
    wide = sample(c(2L, 100L, 254L, 255L, 256L, 257L, 700L), p, TRUE))
}

draw_mi_rank <- function() {
  p <- whole(0, 40)
  d <- some_features(some_rows(400), p, some_levels(p), pick(2, 3, 7, 90, 300))
  args <- c(d, maybe(0.3, unit = "nats"), maybe(0.4, permutations = whole(0, 20), seed = whole(0, 1e6)))
  if (is.data.frame(d$x) && chance(0.1)) args$bins <- whole(2, 5)
  drawn_call("mi_rank", args)
}

# What a search keeps. Thresholds are often a score that occurs: what is equal to a threshold is kept.
some_search <- function(d, order) {
  score <- function() {
    found <- tryCatch(if (order == 2L) weft::mi_pairs(d$x, d$class, na = d$na, top = 5, run = "cpu")
                      else weft::mi_rank(d$x, d$class, na = d$na, run = "cpu"), error = function(e) NULL)
    if (is.null(found) || !nrow(found)) 0.01 else found$mi[sample(nrow(found), 1L)]
  }
  c(d, list(top = pick(1, 2, 10, 100, 1000, Inf)), maybe(0.4, by = "interaction"),
    maybe(0.2, min_mi = if (chance(0.5)) score() else stats::runif(1, 0, 0.2)),
    maybe(0.2, min_gain = pick(-0.01, 0, 1e-3, 0.05)), maybe(0.2, unit = "nats"))
}

some_columns <- function(p, names) {
  which <- sample(p, whole(1, p))
  if (!is.null(names) && chance(0.3)) names[which] else which
}

draw_mi_pairs <- function() {
  p <- whole(1, pick(8, 40, 150, prob = c(3, 3, 1)))
  d <- some_features(some_rows(300), p, some_levels(p), pick(2, 2, 3, 7, 70))
  more <- if (chance(0.15)) list(full = TRUE)
  else c(some_search(d, 2L)[-seq_along(d)], maybe(0.3, permutations = whole(1, 6), seed = whole(0, 1e6)),
         maybe(0.2, features = some_columns(p, colnames(d$x))), maybe(0.2, with = some_columns(p, colnames(d$x))))
  if (chance(0.85)) {
    strata <- some_class(NROW(d$x), whole(1, 5), if (d$na == "fail") 0 else pick(0, 0.1))
    return(drawn_call("mi_pairs", c(d, more, maybe(0.2, strata = strata))))
  }
  call <- drawn_call("mi_pairs", c(d, more))
  # the same from a pack, twice: what is on a device stays there
  call$text <- paste("twice from a pack,", call$text)
  call$run <- function(side) {
    pack <- weft::mi_pack(d$x, d$class, d$na)
    on.exit(weft::weft_free(pack))
    lapply(1:2, function(turn) plain(call_on(side, "mi_pairs", c(list(pack), more))))
  }
  call
}

# All pairs, so that equal scores need no order; vectors of other lengths round their sums otherwise.
draw_pair_scan <- function() {
  n <- whole(8, 250)
  p <- whole(2, pick(8, 40, 150, prob = c(3, 3, 1)))
  x <- matrix(stats::rbinom(n * p, 2, rep(stats::runif(p), each = n)), n)
  x[stats::runif(n * p) < pick(0, 0.02, 0.4)] <- NA
  trait <- stats::rnorm(n)
  trait[sample(n, pick(0, 1))] <- NA
  args <- list(x = pick(x, x + 0, as.data.frame(x)), outcome = pick(trait, trait > 0), top = Inf)
  args <- c(args, maybe(0.5, covariates = pick(stats::rnorm(n), cbind(1, trait^2), sample(letters[1:3], n, TRUE))),
            maybe(0.3, df = 4), maybe(0.3, permutations = whole(1, 6), seed = whole(0, 1e6)),
            maybe(0.3, features = some_columns(p, NULL)))
  take <- function(x) plain(x[order(x$feature1, x$feature2), setdiff(names(x), c("p_fwer", "reason"))])
  agree <- function(a, b) {
    if (!identical(a[1:3], b[1:3])) return(first_difference(a[1:3], b[1:3]))
    for (name in setdiff(names(a), names(a)[1:3])) {
      difference <- within(a[[name]], b[[name]], 1e-6 * (1 + abs(a[[name]])), name)
      if (!is.null(difference)) return(difference)
    }
  }
  drawn_call("pair_scan", args, take, agree)
}

draw_mi_triples <- function() {
  p <- whole(3, pick(8, 30))
  if (chance(0.9)) { # what a device searches
    n <- max(2, some_rows(400))
    class <- c(1:2, sample(pick(2, 2, 3, 8), n - 2, TRUE))[sample(n)]
    levels <- if (chance(0.5)) rep(2L, p) else sample(2:5, p, TRUE)
    codes <- some_codes(n, p, levels, class)
    codes[1:2, ] <- rep(1:2, p) # two levels occur
    d <- list(x = some_form(codes, levels), class = pick(class, factor(class), class == 1),
              na = pick("fail", "drop", "level"))
  } else {
    d <- some_features(some_size(300), p, some_levels(p), pick(2, 3))
  }
  drawn_call("mi_triples", c(some_search(d, 3L), maybe(0.2, features = some_columns(p, colnames(d$x)))))
}

# ---- bins ----

draw_discretize <- function() {
  n <- some_size(200)
  p <- whole(1, 6)
  gaps <- pick(0, 0, 0.1, 0.6)
  x <- as.data.frame(some_table(n, p, gaps, extreme = 0.3))
  class <- some_class(n, pick(2, 3, 7, 30), pick(0, 0.1))
  if (n && chance(0.5)) x[[1L]] <- degenerate_column(sample(degenerate_kinds, 1L), x[[1L]], class)
  method <- pick("equalfreq", "equalwidth", "mdl", "caim", "cacc", "ameva", "sd")
  drawn_call("discretize", c(list(x = x, method = method, class = class), maybe(0.5, bins = whole(1, 9))),
             function(d) list(plain(d), attr(d, "cuts")))
}

# ---- matrices of information ----

draw_mi_select <- function() {
  p <- whole(2, 20)
  d <- some_features(some_rows(300), p, some_levels(p), pick(2, 3, 7))
  method <- pick("mrmr", "mim", "jmi", "jmim", "njmim", "disr", "cmim", "cmi", "jim")
  drawn_call("mi_select", c(d, list(k = whole(1, p), method = method)))
}

draw_mi_tuples <- function() {
  p <- whole(3, 7)
  d <- some_features(some_size(200), p, some_levels(p), pick(2, 3))
  if (chance(0.4)) return(drawn_call("mi_tuples", c(d, list(order = whole(3, min(p, 5))))))
  p <- whole(4, pick(6, 14, 30)) # what a device searches
  d <- some_features(whole(2, 600), p, sample(pick(1:3, 2), p, TRUE), 2)
  d$na <- "level"
  drawn_call("mi_tuples", c(d, list(top = pick(1, 10, 1000)), maybe(0.3, min_mi = stats::runif(1, 0, 0.2)),
                            maybe(0.3, features = sample(p, whole(4, p)))))
}

draw_mi_matrix <- function() if (chance(0.5)) draw_matrix_of_counts() else draw_matrix_of_numbers()

draw_matrix_of_counts <- function() {
  n <- some_size(300)
  p <- whole(1, 25)
  d <- some_features(n, p, some_levels(p), 2)
  estimator <- pick("empirical", "miller-madow", "shrink", "schurmann-grassberger", prob = c(4, 1, 1, 1))
  args <- c(d[c("x", "na")], list(estimator = estimator), maybe(0.3, unit = "nats"))
  if (chance(0.3)) {
    q <- whole(1, 12)
    other <- some_levels(q)
    more <- spoil_codes(some_codes(n, q, other), other, NULL, d$na)
    args$y <- some_form(more$codes, more$levels, if (d$na == "fail") 0 else pick(0, 0.1))
  }
  near <- function(a, b) within(a, b, 1e-12 * (1 + abs(a)), "information")
  drawn_call("mi_matrix", args, agree = if (estimator == "empirical") same_bits else near)
}

# Numbers of which some columns hang on each other, or are the same.
some_table <- function(n, p, gaps = 0, extreme = 0.3) {
  x <- vapply(seq_len(p), function(j) as.double(some_numbers(n, extreme)), numeric(n))
  x <- matrix(x, n, p, dimnames = list(NULL, sprintf("g%d", seq_len(p))))
  if (p > 1L && chance(0.5)) {
    to <- sample(p, 2L)
    other <- x[, to[2L]]
    x[, to[1L]] <- if (chance(0.3)) other * pick(1, -1, 2) else other + stats::rnorm(n) * stats::sd(c(other, 0, 1))
  }
  x <- with_gaps(x, gaps)
  if (chance(0.2)) {
    j <- sample(p, 1L)
    x[, j] <- degenerate_column(sample(if (gaps > 0) degenerate_kinds else c("constant", "all distinct"), 1L), x[, j])
  }
  x
}

draw_matrix_of_numbers <- function() {
  estimator <- pick("copula", "pearson", "spearman", "kendall", "ksg")
  n <- max(some_size(150), if (chance(0.9)) 2)
  na <- pick("fail", "drop")
  gaps <- if (na == "drop") pick(0, 0.05, 0.6) else 0
  x <- some_table(n, whole(1, 20), gaps)
  if (chance(0.3)) x <- as.data.frame(x)
  args <- c(list(x = x, estimator = estimator, na = na), maybe(0.3, unit = "nats"))
  if (estimator == "ksg") args$k <- whole(1, max(1, min(n - 1, 8)))
  if (estimator %in% c("spearman", "kendall", "copula") && n && chance(0.1)) args$x[1, 1] <- pick(Inf, -Inf)
  if (chance(0.3)) args$y <- some_table(n, whole(1, 6), gaps)
  drawn_call("mi_matrix", args)
}

# Of matrices of information, with ties, zeros, negative values and outliers; or of data.
draw_mi_network <- function() {
  methods <- names(weft:::network_methods)
  method <- do.call(pick, c(as.list(methods), list(prob = ifelse(methods == "relnet", 1, 4))))
  p <- if (chance(0.1)) whole(1, 3) else whole(2, pick(10, 60, 130, prob = c(3, 3, 1)))
  args <- list(method = method)
  if (method == "aracne") {
    args <- c(args, if (chance(0.4)) list(eps = pick(0.01, 0.2, 1e3)) else maybe(0.4, tau = pick(0, 0.15, 1)))
  }
  if (chance(0.2)) {
    args$x <- some_table(whole(4, 60), min(p, 20), extreme = 0.2)
    args$estimator <- pick("pearson", "spearman", "kendall", "copula")
  } else {
    values <- pick(function(n) stats::rexp(n), function(n) sample(0:3, n, TRUE) / 4, function(n) stats::rnorm(n) * 0.1,
                   function(n) rep(0.5, n), function(n) stats::runif(n) * log_uniform(-12, 6),
                   function(n) ifelse(stats::runif(n) < 0.9, 0, stats::rexp(n)))
    m <- matrix(0, p, p, dimnames = rep(list(sprintf("g%d", seq_len(p))), 2))
    m[upper.tri(m)] <- values(sum(upper.tri(m)))
    m <- m + t(m)
    diag(m) <- pick(0, 1, stats::runif(p), prob = c(3, 1, 1))
    args$x <- m
    if (method == "relnet") args$threshold <- pick(0, 0.25, -1)
  }
  args <- c(args, maybe(0.2, targets = sample(ncol(args$x), whole(1, ncol(args$x)))))
  drawn_call("mi_network", args, function(net) plain(as.matrix(net)))
}

# ---- directed networks ----

# Numbers that are cut, or levels; several series, some samples without a time.
draw_transfer <- function() {
  n <- whole(30, pick(60, 300))
  p <- whole(1, pick(4, 20, 70))
  x <- some_table(n, p, extreme = 0.3)
  bins <- pick(2, 3, 4, 7, 16)
  args <- list(time = sample(c(seq_len(n - 2), 1, NA)))
  if (chance(0.3)) args$time <- list(args$time, rep_len(1:2, n))
  args$x <- if (chance(0.2)) as.data.frame(weft::discretize(as.data.frame(x), bins = bins)) else x
  args["bins"] <- list(if (is.matrix(args$x)) bins)
  if (p > 2 && chance(0.3)) args$regulators <- unique(c(1, sample(p, 2)))
  args <- c(args, list(permutations = pick(0, 2, 4), fdr = pick(0.05, 0.5, 1), seed = whole(0, 1e6)),
            maybe(0.3, control = list(lag = whole(1, 3), top = pick(1, 20, 1e6))))
  drawn_call("transfer_entropy", args, function(e) list(plain(e), attr(e, "tested"), attr(e, "significant")))
}

draw_regulation <- function() {
  p <- whole(2, pick(6, 20, 45))
  x <- some_table(if (chance(0.1)) whole(100, 400) else whole(4, 60), p)
  args <- c(list(x = x, resamples = 2 * whole(1, 6), seed = whole(0, 1e6)), maybe(0.4, nonlinear = FALSE),
            maybe(0.7, steps = whole(1, pick(4, 12, 32))), maybe(0.5, null_copies = whole(0, 3)),
            maybe(0.4, regulators = some_columns(p, colnames(x))), maybe(0.3, targets = some_columns(p, colnames(x))))
  drawn_call("regulation", args, function(net) plain(list(as.matrix(net), attr(net, "edges"))))
}

# ---- draws ----

draw_draws <- function() {
  kind <- pick("words", "uniform", "normal", "exponential", "gumbel", "gamma", "log_gamma", "beta", "log_beta",
               "log1m_beta", "below", "categorical", "categorical_log")
  shape <- function() log_uniform(-4, 4)
  a <- switch(kind, gamma = , log_gamma = , beta = , log_beta = , log1m_beta = shape(), below = whole(1, 1e6),
              categorical = , categorical_log = whole(1, 64), words = whole(0, 3), 0)
  b <- switch(kind, beta = , log_beta = , log1m_beta = shape(), categorical = , categorical_log = stats::runif(1), 0)
  drawn_call("draws", list(kind = kind, n = some_size(3000), a = a, b = b, key = floor(stats::runif(2) * 2^32),
                           stream = whole(0, 1e6), first = pick(0, whole(0, 1e9), 2^53 - 1e4)))
}
