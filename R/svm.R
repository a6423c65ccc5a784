#' Batch prediction of support vector machines
#'
#' Predictions of models of `kernlab::ksvm()` and `e1071::svm()` by kernel sums over their support vectors: every pair
#' of classes is one column of signed weights, and all are summed in one pass where the model shares its support
#' vectors.
#'
#' Supported are classification (C, nu; one against one) and regression (epsilon, nu) with radial, Laplacian (kernlab),
#' polynomial or linear kernels. The input is scaled as the model scaled its own.
#'
#' @param model an object returned by `kernlab::ksvm()` or `e1071::svm()`.
#' @param new the points: a numeric matrix or data frame with the columns of the training data.
#' @param decision whether to give the decision values, one column per pair of classes, instead of the classes.
#' @param rel_error the permitted error, relative to the sum of absolute terms.
#' @param run see [weft_run()].
#' @param ... not used; unknown arguments cause an error.
#' @return A factor of classes, numbers for regression, or a matrix of decision values.
#' @export
#' @examples
#' if (requireNamespace("e1071", quietly = TRUE)) {
#'   m <- e1071::svm(Species ~ ., iris)
#'   table(svm_predict(m, iris[1:4]), iris$Species)
#' }
svm_predict <- function(model, new, decision = FALSE, rel_error = 0, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  need_args("model", "new")
  run <- use_backend(run)
  decision <- check_flag(decision, "decision")
  if (!inherits(model, "ksvm") && !(inherits(model, "svm") && is.list(model))) {
    abort_input("`model` must be an object returned by `kernlab::ksvm()` or `e1071::svm()`.",
                x = paste0("It is ", describe(model), "."))
  }
  parts <- svm_parts(model)
  if (is.data.frame(new) && !is.null(parts$names) && all(parts$names %in% names(new))) new <- new[parts$names]
  new <- kernel_points(new, "new")
  if (ncol(new) != parts$d) abort_input(sprintf("`new` must have %d columns, like the data of the model.", parts$d),
                                        x = sprintf("It has %d.", ncol(new)))
  values <- svm_values(parts, new, rel_error, run)
  if (parts$regression) return(name_rows(values[, 1L] * parts$y_scale[2L] + parts$y_scale[1L], rownames(new)))
  if (decision) return(name_rows(values, rownames(new)))
  name_rows(vote(values, parts), rownames(new))
}

# What predictions are made of. Models come from other packages, or from a file: what does not fit together is an error.
svm_parts <- function(model) {
  damaged <- function() refuse_svm("It is damaged, or from a version with another structure.")
  parts <- tryCatch(if (inherits(model, "ksvm")) ksvm_parts(model) else e1071_parts(model),
                    error = function(e) if (inherits(e, "weft_error")) stop(e) else damaged(),
                    warning = function(w) damaged())
  if (!holds(svm_fits(parts))) damaged()
  parts
}

svm_fits <- function(parts) {
  numbers <- function(v, length) is.numeric(v) && length(v) == length && all(is.finite(v))
  table <- function(v, rows = nrow(v), columns = ncol(v)) {
    is.matrix(v) && nrow(v) == rows && ncol(v) == columns && numbers(v, length(v))
  }
  if (!is_flag(parts$regression) || !is_count(parts$d, 1)) return(FALSE)
  k <- parts$kernel
  kernel <- all(vapply(k[-1L], numbers, NA, 1L)) && k$bandwidth > 0 && is_count(k$degree)
  problems <- vapply(parts$problems, function(p) {
    table(p$vectors, columns = parts$d) && table(p$coefficients, rows = nrow(p$vectors)) &&
      numbers(p$intercepts, ncol(p$coefficients))
  }, NA)
  scaling <- parts$x_scale
  size <- length(scaling$columns)
  scaled <- is.null(scaling) || (all(scaling$columns %in% seq_len(parts$d)) && numbers(scaling$centre, size) &&
                                   numbers(scaling$scale, size) && all(scaling$scale != 0))
  if (!all(kernel, problems, scaled)) return(FALSE)
  pairs <- sum(vapply(parts$problems, function(p) ncol(p$coefficients), 0L))
  if (parts$regression) return(pairs == 1L && numbers(parts$y_scale, 2L))
  classes <- length(parts$levels)
  is_labels(parts$levels) && classes > 1L && pairs == choose(classes, 2L) &&
    (is.null(parts$sorted) || setequal(parts$sorted, parts$levels))
}

# Decision values, one column per problem. Each problem: support vectors, coefficients (columns), intercepts.
svm_values <- function(parts, new, rel_error, run) {
  if (!is.null(parts$x_scale)) {
    columns <- parts$x_scale$columns
    centred <- new[, columns, drop = FALSE] - rep(parts$x_scale$centre, each = nrow(new))
    new[, columns] <- centred / rep(parts$x_scale$scale, each = nrow(new))
  }
  k <- parts$kernel
  kernel <- if (k$kernel == "polynomial") kernel_polynomial(k$degree, k$offset, k$scale) else k$kernel
  values <- lapply(parts$problems, function(p) {
    sums <- kernel_sum(new, p$vectors, weights = p$coefficients, kernel = kernel, bandwidth = k$bandwidth,
                       rel_error = if (k$kernel == "polynomial") 0 else rel_error, run = run)
    matrix(sums, nrow(new)) - rep(p$intercepts, each = nrow(new))
  })
  out <- do.call(cbind, values)
  colnames(out) <- parts$pairs
  out
}

# One against one: a positive value is a vote for the first class of the pair (e1071) or the second (kernlab, which
# swaps `first` and `second`); the first of the classes with the most votes wins.
vote <- function(values, parts) {
  count <- matrix(0, nrow(values), length(parts$levels))
  for (j in seq_len(ncol(values))) {
    first <- values[, j] > 0
    count[, parts$first[j]] <- count[, parts$first[j]] + first
    count[, parts$second[j]] <- count[, parts$second[j]] + !first
  }
  factor(parts$levels[max.col(count, ties.method = "first")], levels = parts$sorted %||% parts$levels)
}

svm_kernel <- function(kernel, bandwidth = 1, scale = 1, offset = 0, degree = 1) {
  list(kernel = kernel, bandwidth = bandwidth, scale = scale, offset = offset, degree = degree)
}

refuse_svm <- function(what) abort_input("`model` must be of a type that `svm_predict()` supports.", x = what,
                                         i = "Use `predict()` from the package that fitted it.")

class_pairs <- function(k) {
  pairs <- utils::combn(k, 2L)
  list(first = pairs[1L, ], second = pairs[2L, ])
}

e1071_parts <- function(model) {
  if (model$sparse) refuse_svm("It was fitted to a sparse matrix.")
  regression <- model$type %in% c(3, 4)
  if (model$type == 2) refuse_svm("One-class models are not supported.")
  if (!model$type %in% c(0, 1) && !regression) refuse_svm("Its type is unknown.")
  kernel <- switch(model$kernel + 1,
    svm_kernel("polynomial", degree = 1),
    svm_kernel("polynomial", scale = model$gamma, offset = model$coef0, degree = model$degree),
    svm_kernel("gaussian", bandwidth = 1 / sqrt(2 * model$gamma)),
    refuse_svm("It has a sigmoid kernel.")
  )
  if (!is.logical(model$scaled) || anyNA(model$scaled) || length(model$scaled) != ncol(model$SV)) stop("columns differ")
  scaled <- which(model$scaled)
  x_scale <- if (length(scaled)) {
    list(columns = scaled, centre = model$x.scale[["scaled:center"]], scale = model$x.scale[["scaled:scale"]])
  }
  base <- list(kernel = kernel, x_scale = x_scale, names = colnames(model$SV), d = ncol(model$SV),
               regression = regression)
  y_scale <- if (!length(scaled) || !regression) c(0, 1)
             else c(model$y.scale[["scaled:center"]], model$y.scale[["scaled:scale"]])
  if (regression) {
    return(c(base, list(y_scale = y_scale,
                        problems = list(list(vectors = model$SV, coefficients = model$coefs[, 1L, drop = FALSE],
                                                                intercepts = model$rho)))))
  }
  k <- model$nclasses
  pairs <- class_pairs(k)
  if (!is.numeric(model$labels) || any(lengths(model[c("nSV", "levels")]) != k) ||
      length(model$rho) != length(pairs$first)) {
    stop("counts differ")
  }
  owner <- rep(seq_len(k), model$nSV)
  # libsvm keeps, for a vector of class i, its coefficients against the k - 1 other classes in their order
  coefficients <- vapply(seq_along(pairs$first), function(p) {
    i <- pairs$first[p]
    j <- pairs$second[p]
    ifelse(owner == i, model$coefs[, max(1, j - 1)], ifelse(owner == j, model$coefs[, i], 0))
  }, numeric(nrow(model$SV)))
  levels <- model$levels[model$labels]
  c(base, list(problems = list(list(vectors = model$SV, coefficients = matrix(coefficients, nrow(model$SV)),
                                    intercepts = model$rho)),
               levels = levels, sorted = model$levels, first = pairs$first, second = pairs$second,
               pairs = paste0(levels[pairs$first], "/", levels[pairs$second])))
}

ksvm_parts <- function(model) {
  slot <- function(name) methods::slot(model, name)
  type <- slot("type")
  regression <- type %in% c("eps-svr", "nu-svr", "eps-bsvr")
  if (!regression && !type %in% c("C-svc", "nu-svc", "C-bsvc")) refuse_svm(sprintf("Its type is \"%s\".", type))
  f <- slot("kernelf")
  kpar <- methods::slot(f, "kpar")
  kernel <- switch(class(f)[1L],
    rbfkernel = svm_kernel("gaussian", bandwidth = 1 / sqrt(2 * kpar$sigma)),
    laplacekernel = svm_kernel("laplacian", bandwidth = 1 / kpar$sigma),
    polykernel = svm_kernel("polynomial", scale = kpar$scale, offset = kpar$offset, degree = kpar$degree),
    vanillakernel = svm_kernel("polynomial", degree = 1),
    refuse_svm(sprintf("Its kernel is of class \"%s\".", class(f)[1L]))
  )
  scaling <- slot("scaling")
  known <- is.null(scaling) || (is.logical(scaling$scaled) && !anyNA(scaling$scaled) && length(scaling$scaled))
  if (!known) stop("no scaling")
  x_scale <- if (any(scaling$scaled)) {
    list(columns = which(scaling$scaled), centre = scaling$x.scale[["scaled:center"]],
         scale = scaling$x.scale[["scaled:scale"]])
  }
  vectors <- slot("xmatrix")
  coefficients <- slot("coef")
  b <- slot("b")
  many <- is.list(vectors)
  problem <- function(p) {
    list(vectors = if (many) vectors[[p]] else vectors,
         coefficients = matrix(if (is.list(coefficients)) coefficients[[p]] else coefficients), intercepts = b[p])
  }
  first <- if (many) vectors[[1L]] else vectors
  y_scale <- if (is.null(scaling$y.scale)) c(0, 1) else c(scaling$y.scale[["scaled:center"]],
                                                          scaling$y.scale[["scaled:scale"]])
  base <- list(kernel = kernel, x_scale = x_scale, names = colnames(first), d = ncol(first), regression = regression,
               y_scale = y_scale)
  if (regression) {
    if (length(b) != 1L) stop("counts differ")
    return(c(base, list(problems = list(problem(1L)))))
  }
  levels <- slot("lev")
  pairs <- class_pairs(length(levels))
  if (length(b) != length(pairs$first)) stop("counts differ")
  c(base, list(problems = lapply(seq_along(pairs$first), problem), levels = levels, first = pairs$second,
               second = pairs$first, pairs = paste0(levels[pairs$first], "/", levels[pairs$second])))
}
