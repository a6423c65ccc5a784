# Calls of principal components for helper-calls.R. Both back ends stop by one rule, with sums in another order: each
# result is held against R's own decomposition and what the page promises, and the two against each other in decisions.
calls_pca <- function() {
  list(pca = list(share = 10, make = function() if (chance(0.15)) draw_pca_gaps() else draw_pca()))
}

# Matrices of full or low rank, with equal, decaying and vanishing values, constant columns, offsets and scales.
some_matrix <- function(n, p) {
  least <- min(n, p)
  normal <- function(n, p) matrix(stats::rnorm(n * p), n, p)
  kind <- pick("normal", "decaying", "low rank", "columns", "equal", "whole", prob = c(3, 3, 2, 3, 1, 1))
  rank <- if (kind == "low rank") whole(1, max(1, least %/% 2)) else least
  x <- switch(kind, normal = normal(n, p), "low rank" = normal(n, rank) %*% normal(rank, p),
    decaying = normal(n, least) %*% (pick(0.9, 0.5, 0.1)^seq_len(least) * normal(least, p)),
    columns = matrix(vapply(seq_len(p), function(j) as.double(some_numbers(n, extreme = 0.1)), numeric(n)), n),
    equal = tcrossprod(qr.Q(qr(normal(n, least))), qr.Q(qr(normal(p, least)))),
    whole = matrix(as.double(sample(-2:2, n * p, TRUE)), n))
  if (p > 1L && chance(0.1)) x[, whole(1, p)] <- 7
  if (p > 1L && chance(0.1)) x[, p] <- x[, 1L]
  if (chance(0.2)) x <- x * log_uniform(-100, 100)
  if (chance(0.2)) x <- x + log_uniform(-2, 4) * max(abs(x))
  dimnames(x) <- list(NULL, sprintf("v%d", seq_len(p)))
  x
}

draw_pca <- function() {
  n <- max(1, some_size(pick(12, 60, 200, prob = c(3, 3, 1))))
  p <- max(1, some_size(pick(12, 60)))
  x <- some_matrix(n, p)
  method <- pick("auto", "krylov", "gram", "gs", "nipals", prob = c(2, 4, 4, 2, 2))
  by_vectors <- method %in% c("gs", "nipals")
  args <- c(if (method != "auto") list(method = method), list(seed = whole(0, 1e6)),
            maybe(if (by_vectors) 1 else 0.85, k = whole(1, min(n, p, if (by_vectors) 4 else 12))),
            maybe(0.4, scale = if (chance(0.7)) TRUE else stats::rexp(p) + 0.1),
            maybe(0.3, center = if (chance(0.7)) FALSE else stats::rnorm(p)),
            maybe(0.2, weights = stats::rexp(n) + 0.01), maybe(0.15, col_weights = stats::rexp(p) + 0.01),
            maybe(0.2, tolerance = if (by_vectors) pick(1e-10, 1e-6) else pick(1e-10, 1e-4)))
  if (by_vectors && chance(0.2)) args$stop <- "paper"
  else if (chance(0.1)) args$precision <- "single"
  forms <- c("plain", if (is.null(args$precision)) c("sparse", "blocks", "file", "frame"))
  form <- sample(forms, 1L, prob = c(6, rep(1, 4))[seq_along(forms)])
  if (form %in% c("sparse", "blocks")) x[stats::runif(length(x)) < 0.6] <- 0
  pca_call(x, form, args)
}

# `form`: what x is given as. A plain matrix is now and then uploaded first where the call runs on a device.
pca_call <- function(x, form, args) {
  text <- sprintf("%s as %s", call_text("pca", c(list(x = x), args)), form)
  if (form == "file") args$block_size <- 8 * ncol(x) * max(1, nrow(x) %/% 3)
  shared <- (args$method %||% "auto") %in% c("auto", "krylov", "gram") && form != "file" # by several devices
  upload <- form == "plain" && chance(0.1)
  run <- function(side) {
    resident <- upload && identical(side$backend, "cuda")
    if (resident || !shared) side["devices"] <- list(NULL)
    given <- if (resident) weft::weft_upload(x) else pca_input(x, form)
    on.exit(if (resident) weft::weft_free(given) else if (form == "file") unlink(given$path))
    take <- fields("sdev", "rotation", "x", "center", "scale", "d", "share", "total_variance", "rank", "converged",
                   "method")
    take(call_on(side, "pca", c(list(x = given), args)))
  }
  list(text = text, run = run, agree = function(a, b) pca_agree(a, b, x, args), exact = TRUE)
}

pca_input <- function(x, form) {
  if (form == "plain") return(x)
  if (form == "frame") return(as.data.frame(x))
  if (form == "file") {
    path <- tempfile()
    writeBin(as.vector(t(x)), path)
    return(weft::weft_file(path, ncol(x)))
  }
  s <- methods::as(Matrix::Matrix(x, sparse = TRUE, doDiag = FALSE), "generalMatrix")
  s <- methods::as(s, "CsparseMatrix")
  half <- nrow(x) %/% 2
  if (form == "sparse" || half < 1) return(s)
  list(s[seq_len(half), , drop = FALSE], s[(half + 1L):nrow(x), , drop = FALSE])
}

pca_agree <- function(a, b, x, args) {
  paper <- identical(args$stop, "paper")
  both <- all(a$converged, b$converged)
  first_of(
    pca_promise(a, x, args, "first"), pca_promise(b, x, args, "second"),
    # "auto" is a choice by what each back end is good at
    if (!is.null(args$method) && !identical(a$method, b$method) && !dealt_rows(b, x, args)) {
      sprintf("method: %s and %s", a$method, b$method)
    },
    if (both && !identical(a$rank, b$rank)) sprintf("rank: %g and %g", a$rank, b$rank),
    # a change of d by less than `tol`, in the units of the data, may be less than its rounding
    if (!paper && !identical(a$converged, b$converged)) "converged differs",
    if (paper && both) within(a$d, b$d, 1e-3 * max(a$d) + 2 * (args$tolerance %||% 1e-7), "d")
  )
}

# The Gram matrix of rows is not taken where devices share them.
dealt_rows <- function(fit, x, args) args$method == "gram" && fit$method == "krylov" && nrow(x) < ncol(x)

# X as the components see it, by R's own arithmetic; the weights of its rows; and how much rounding moves it.
pca_formed <- function(fit, x, args) {
  centre <- if (isFALSE(fit$center)) numeric(ncol(x)) else fit$center
  divide <- if (isFALSE(fit$scale)) rep(1, ncol(x)) else fit$scale
  formed <- (x - rep(centre, each = nrow(x))) / rep(divide, each = nrow(x))
  row <- sqrt(args$weights %||% rep(1, nrow(x)))
  largest <- apply(abs(x), 2L, max) + abs(centre)
  constant <- apply(x, 2L, function(v) min(v) == max(v)) & isTRUE(args$center %||% TRUE)
  formed[, constant] <- 0
  noise <- ifelse(constant, 0, largest / divide) * .Machine$double.eps
  list(x = formed, row = row, noise = sqrt(sum(noise^2)) * sqrt(sum(row^2)))
}

# Values within tol of the largest, X v = d u and orthonormal loadings to as much. stop = "paper" promises neither.
pca_promise <- function(fit, x, args, which) {
  if (identical(args$stop, "paper") || !all(fit$converged)) return(NULL)
  by_vectors <- fit$method %in% c("gs", "nipals")
  nipals <- fit$method == "nipals"
  tol <- args$tolerance %||% if (by_vectors) 1e-8 else 1e-12
  f <- pca_formed(fit, x, args)
  top <- max(abs(f$x), 1e-300)
  true <- svd(f$x / top * f$row, 0, 0)$d[seq_along(fit$d)]
  largest <- max(true[1L], 1e-300)
  # floats are iterated to 1e-6; a step in double, which vectors found one after another do not get, squares that
  single <- if (!identical(args$precision, "single")) 0 else if (by_vectors) 4e-6 else 1e-9
  rounding <- 1e-13 * sqrt(length(x)) + f$noise * 4 / top / largest
  if (rounding > 1e-3) return(NULL) # nothing but rounding
  # deflation carries the error of each component into those after it
  carried <- if (nipals) 10 * length(fit$d) else if (by_vectors) length(fit$d) else 1
  v <- fit$rotation
  off <- ((f$x / top) %*% v - fit$x / top) * f$row
  checked <- if (nipals) 1L else seq_len(ncol(v)) # later ones are of what is left of X
  vector_tol <- if (single > 0) 1e-2 else 4 * tol * (if (nipals) carried else 1) * length(fit$d) + rounding
  first_of(
    within(fit$d / top, true, (2 * tol + single * ifelse(true < 1e-6 * largest, 100, 1) + rounding) * carried *
           true[1L],
           paste("d of the", which)), # floats say little of values near their rounding
    if (!nipals) within(crossprod(v), diag(ncol(v)), 1e-9, paste("inner products of the", which)),
    within(off[, checked], 0 * off[, checked], vector_tol * largest, paste("X v - d u of the", which))
  )
}

# Missing values: the same course on both back ends; values agree, since loadings of near values may turn.
draw_pca_gaps <- function() {
  wide <- chance(0.1) # enough for a Gram matrix, which EM keeps where the spectrum is flat
  n <- if (wide) whole(80, 120) else whole(5, 40)
  p <- if (wide) whole(64, 75) else whole(3, 15)
  x <- matrix(stats::rnorm(n * p), n) %*% diag((if (wide) 0.99 else 0.7)^seq_len(p)) * log_uniform(-3, 3)
  x[sample(length(x), max(1, length(x) %/% whole(8, 40)))] <- NA
  if (chance(0.1)) x[, 1L] <- degenerate_column(sample(degenerate_kinds, 1L), x[, 1L]) # most of them are refused
  else x <- x[, colSums(!is.na(x)) > 1, drop = FALSE]
  x <- x[rowSums(!is.na(x)) > 1, , drop = FALSE]
  args <- c(list(x = x, k = whole(1, 2), tolerance = pick(1e-8, 1e-6), max_iterations = 3000, seed = whole(0, 1e6)),
            if (chance(0.5)) list(na = "em") else list(method = pick("nipals", "gs")), maybe(0.3, scale = TRUE))
  run <- function(side) {
    side["devices"] <- list(NULL)
    fields("d", "rotation", "rank", "converged")(call_on(side, "pca", args))
  }
  agree <- function(a, b) if (all(a$converged, b$converged)) within(a$d, b$d, 1e3 * args$tolerance * max(a$d), "d")
  list(text = call_text("pca", args), run = run, agree = agree, exact = TRUE)
}
