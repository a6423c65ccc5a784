# Calls of principal components for helper-calls.R. Both back ends stop by one rule, with sums in another order: each result is held
# against R's own decomposition and against what the page promises, and the two against each other in what is decided.
calls_pca <- function() {
  list(pca = list(share = 10, make = draw_pca))
}

# Matrices of full or low rank, with equal, decaying and vanishing values, constant columns, offsets and scales.
some_matrix <- function(n, p) {
  least <- min(n, p)
  x <- switch(pick("normal", "decay", "low rank", "columns", "equal", "integers", prob = c(3, 3, 2, 3, 1, 1)),
    normal = matrix(stats::rnorm(n * p), n),
    decay = matrix(stats::rnorm(n * least), n) %*% (pick(0.9, 0.5, 0.1)^seq_len(least) * matrix(stats::rnorm(least * p), least)),
    "low rank" = { r <- whole(1, max(1, least %/% 2)); matrix(stats::rnorm(n * r), n) %*% matrix(stats::rnorm(r * p), r) },
    columns = matrix(vapply(seq_len(p), function(j) as.double(some_numbers(n, extreme = 0.1)), numeric(n)), n),
    equal = { q <- qr.Q(qr(matrix(stats::rnorm(n * least), n))); q %*% t(qr.Q(qr(matrix(stats::rnorm(p * least), p)))) },
    integers = matrix(sample(-2:2, n * p, TRUE), n) + 0)
  if (p > 1L && chance(0.1)) x[, whole(1, p)] <- 7
  if (p > 1L && chance(0.1)) x[, p] <- x[, 1L]
  if (chance(0.2)) x <- x * log_uniform(-100, 100)
  if (chance(0.2)) x <- x + log_uniform(-2, 4) * max(abs(x))
  dimnames(x) <- list(NULL, sprintf("v%d", seq_len(p)))
  x
}

draw_pca <- function() {
  if (chance(0.15)) return(draw_pca_gaps())
  n <- max(1, some_size(pick(12, 60, 200, prob = c(3, 3, 1))))
  p <- max(1, some_size(pick(12, 60)))
  x <- some_matrix(n, p)
  method <- pick(NULL, "krylov", "gram", "gs", "nipals", prob = c(2, 4, 4, 2, 2))
  by_vectors <- !is.null(method) && method %in% c("gs", "nipals")
  k <- if (chance(0.15) && !by_vectors) NULL else whole(1, min(n, p, if (by_vectors) 4 else 12))
  args <- c(list(x = x, k = k, method = method, seed = whole(0, 1e6))[c(TRUE, !is.null(k), !is.null(method), TRUE)],
            maybe(0.4, scale = if (chance(0.7)) TRUE else stats::rexp(p) + 0.1), maybe(0.3, center = if (chance(0.7)) FALSE else stats::rnorm(p)),
            maybe(0.2, weights = pmax(stats::rexp(n) + 0.01, 0)), maybe(0.15, col_weights = stats::rexp(p) + 0.01),
            maybe(0.2, tol = if (by_vectors) pick(1e-10, 1e-6) else pick(1e-10, 1e-4)))
  if (by_vectors && chance(0.2)) args$stop <- "paper"
  else if (chance(0.1)) args$precision <- "single"
  form <- pick("plain", "sparse", "blocks", "file", "frame", prob = c(6, 1, 1, 1, 1))
  give <- function() NULL
  if (is.null(args$precision)) {
    if (form %in% c("sparse", "blocks")) {
      x[stats::runif(length(x)) < 0.6] <- 0
      s <- Matrix::Matrix(x, sparse = TRUE, doDiag = FALSE)
      s <- methods::as(methods::as(s, "generalMatrix"), "CsparseMatrix")
      cut <- sample(n, 1L)
      args$x <- if (form == "blocks" && cut < n) list(s[seq_len(cut), , drop = FALSE], s[(cut + 1L):n, , drop = FALSE]) else s
    }
    if (form == "frame") args$x <- as.data.frame(x)
    if (form == "file") {
      args$block_size <- 8 * p * max(1, n %/% 3)
      give <- function() {
        path <- tempfile()
        writeBin(as.vector(t(x)), path)
        weft::weft_file(path, p)
      }
    }
  }
  args["dense"] <- list(x)
  pca_call(args, give, form)
}

# The call with a file made for each run; `dense`: the numbers, for the promise.
pca_call <- function(args, give, form) {
  dense <- args$dense
  args$dense <- NULL
  resident <- chance(0.1) && form == "plain"
  run <- function(side) {
    given <- args
    if (form == "file" && is.null(args$precision)) {
      given$x <- give()
      on.exit(unlink(given$x$path))
    }
    if (resident && identical(side$backend, "cuda")) {
      given$x <- weft::weft_upload(args$x)
      on.exit(weft::weft_free(given$x))
      side["devices"] <- list(NULL)
    }
    if (!pca_may_share(args)) side["devices"] <- list(NULL)
    fit <- call_on(side, "pca", given)
    plain(unclass(fit)[c("sdev", "rotation", "x", "center", "scale", "d", "share", "total_variance", "rank", "converged", "method")])
  }
  paper <- identical(args$stop, "paper")
  agree <- function(a, b) {
    first_of(pca_promise(a, dense, args, "first"), pca_promise(b, dense, args, "second"),
             if (!identical(a$method, b$method)) sprintf("method: %s and %s", a$method, b$method),
             if (!identical(a$rank, b$rank)) sprintf("rank: %g and %g", a$rank, b$rank),
             # a change of d by less than `tol`, in the units of the data, may be less than its rounding
             if (!paper && !identical(a$converged, b$converged)) "converged differs",
             if (paper && all(a$converged, b$converged)) within(a$d, b$d, 1e-3 * max(a$d) + 2 * (args$tol %||% 1e-7), "d"))
  }
  list(text = call_text("pca", args), run = run, agree = agree, exact = TRUE)
}

# Rows over devices: for these methods, and complete numbers in memory.
pca_may_share <- function(args) (args$method %||% "auto") %in% c("auto", "krylov", "gram") && is.null(args$block_size) && is.null(args$na)

# X as the components see it, by R's own arithmetic, less a power of two so that nothing overflows; and how much rounding moves it.
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
  tol <- args$tol %||% if (by_vectors) 1e-8 else 1e-12
  f <- pca_formed(fit, x, args)
  top <- max(abs(f$x), 1e-300)
  true <- svd(f$x / top * f$row, 0, 0)$d[seq_along(fit$d)]
  # floats are iterated to 1e-6; a step in double, which vectors found one after another do not get, squares that
  single <- if (!identical(args$precision, "single")) 0 else if (by_vectors) 4e-6 else 1e-9
  rounding <- 1e-13 * sqrt(length(x)) + f$noise * 4 / top / max(true[1L], 1e-300)
  if (rounding > 1e-3) return(NULL) # nothing but rounding
  value_tol <- 2 * tol + single + rounding
  # deflation carries the error of each component into those after it
  if (fit$method == "nipals") value_tol <- value_tol * 10 * length(fit$d)
  v <- fit$rotation
  checked <- if (fit$method == "nipals") 1L else seq_len(ncol(v)) # later ones are of what is left of X
  off <- (f$x / top) %*% v - fit$x / top
  vector_tol <- if (single > 0) 1e-2 else 4 * tol * 10^(fit$method == "nipals") * length(fit$d) + rounding
  first_of(within(fit$d / top, true, value_tol * true[1L], paste("d of the", which)),
           if (fit$method != "nipals") within(crossprod(v), diag(ncol(v)), 1e-9, paste("inner products of the", which)),
           within((off * f$row)[, checked], 0 * (off * f$row)[, checked], vector_tol * max(true[1L], 1e-300), paste("X v - d u of the", which)))
}

# Missing values: the same course on both back ends; values agree, since loadings of near values may turn.
draw_pca_gaps <- function() {
  n <- whole(5, 40)
  p <- whole(3, 15)
  x <- matrix(stats::rnorm(n * p), n) %*% diag(0.7^seq_len(p)) * log_uniform(-3, 3)
  x[sample(length(x), max(1, length(x) %/% whole(8, 40)))] <- NA
  x <- x[, colSums(!is.na(x)) > 1, drop = FALSE]
  x <- x[rowSums(!is.na(x)) > 1, , drop = FALSE]
  args <- c(list(x = x, k = whole(1, 2), tol = pick(1e-8, 1e-6), max_iter = 3000, seed = whole(0, 1e6)),
            if (chance(0.5)) list(na = "em") else list(method = pick("nipals", "gs")), maybe(0.3, scale = TRUE))
  side_free <- function(side) {
    side["devices"] <- list(NULL)
    plain(unclass(call_on(side, "pca", args))[c("d", "rotation", "rank", "converged")])
  }
  agree <- function(a, b) {
    if (!all(a$converged, b$converged)) return(NULL)
    within(a$d, b$d, 1e3 * args$tol * max(a$d), "d")
  }
  list(text = call_text("pca", args), run = side_free, agree = agree, exact = TRUE)
}
