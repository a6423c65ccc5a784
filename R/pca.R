#' Principal components
#'
#' `pca()` finds the first principal components of a matrix. The matrix may be wide or tall, dense or sparse, complete
#' or with missing values, in memory, on disk or on a device. The shortest call is `pca(x, k)`. It returns an extended
#' [stats::prcomp()] object for functions such as [stats::biplot()], [stats::screeplot()] and those of factoextra and
#' broom.
#'
#' With X the centred, scaled and weighted data and X = U diag(d) V', `rotation` (the loadings) is V, `x` (the scores)
#' is U diag(d), and `sdev` is d / sqrt(max(1, n - 1)), each for k components. Each component's loading with the largest
#' absolute value is positive.
#'
#' With `na = "em"`, the fit ends when fitted values of missing cells move by at most `tolerance` standard deviations of
#' their column, and are within about 100 times as much of where they end. A least-squares fit need not exist: if `k` is
#' large for data with much noise, a value fitted to a missing cell can grow without end, while the fit to the known
#' values improves by less and less. It has then grown to 50 standard deviations, in a row of ordinary known values: EM
#' stops, with `converged` `FALSE` and `residual` `Inf`, and there is a warning of class `weft_warning_undetermined`.
#' There also is one if a row, a column or all of `x` has fewer known values than the components have free numbers. In
#' both cases, and after a warning of class `weft_warning_convergence`, fitted values depend on where EM started and
#' stopped, and may differ between machines: use a smaller `k`, or remove the rows or columns that are named.
#'
#' `vignette("components-of-wide-data")` describes methods, accuracy, missing values, devices and ranks.
#'
#' @param x numeric data with samples in rows: a matrix, a data frame, a sparse Matrix (never made dense), or a list of
#'   them (blocks of rows); a DelayedMatrix, [weft_store()] or [weft_file()] (read in blocks); a SummarizedExperiment
#'   (samples in its columns); a [plink_file()], whose genotypes stay packed at two bits each; or a [weft_upload()]
#'   handle.
#' @param k the number of components; by default, all min(n, p).
#' @param method `"auto"` chooses the cheaper of `"krylov"` and `"gram"`. `"gs"` and `"nipals"` are slower.
#' @param center,scale `TRUE`, `FALSE`, or one number per column. `scale = TRUE` divides by the standard deviation, and
#'   constant columns by 1, with a warning. For allele counts, `scale = "allele"` divides by sqrt(2 q (1 - q)), with the
#'   allele frequency q.
#' @param weights weights of rows, as if each row were repeated that many times. Rows of weight 0 are projected onto the
#'   components of the others, such as relatives onto those of unrelated people.
#' @param na `"fail"` stops with an error if there are missing values (`"gs"` and `"nipals"` accept them); `"mean"`
#'   replaces each missing value by the mean of its column; `"em"` finds the least-squares fit to the observed values.
#' @param assay for a SummarizedExperiment: the name or number of the assay.
#' @param control a list of settings that are rarely needed:
#'   * `col_weights`: column weights, included in `scale`.
#'   * `tolerance`: the accuracy, by default 1e-12; 1e-8 for `"gs"`, `"nipals"` and `na = "em"`; 1e-7 for
#'     `stop = "paper"`. From 1e-7 on, a device that reads a store computes its Gram matrix in less time.
#'   * `stop`: `"residual"`, or `"paper"` for the rule of the GS-PCA paper (for `"gs"` and `"nipals"`).
#'   * `max_iterations`: the largest number of iterations, for each component or for the block.
#'   * `precision`: `"double"`, or `"single"` to iterate over a dense matrix in 32-bit floats.
#'   * `block_size`: the bytes of a DelayedMatrix, store or file to hold in memory; data that fit are read only once.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()]. Rows are distributed over devices. Each rank gives its own rows and gets the whole
#'   result.
#' @param ... not used; for arguments of [stats::prcomp()], the error gives the name used here.
#' @return An object of class `c("weft_pca", "prcomp")`: `sdev`, `rotation`, `x`, `center`, `scale` as in
#'   [stats::prcomp()], and `d`, `share` (the proportion of the total variance), `total_variance`, `rank`, `residual`,
#'   `iterations`, `converged`, `orthogonality` (the largest inner product between different loadings, and the largest
#'   cosine between scores), `passes` over the data, `method`, `call`, `backend`, `reason`, `seconds`.
#' @seealso [predict.weft_pca()], [plot.weft_pca()], [pca_choose_k()], [pca_reduced_dim()]
#' @export
#' @examples
#' fit <- pca(USArrests, k = 2, scale = TRUE)
#' fit
#' head(predict(fit, USArrests))
#' seen <- as.matrix(iris[1:4])
#' seen[cbind(1:20, rep(1:4, 5))] <- NA
#' pca(seen, k = 2, na = "em")
pca <- function(x, k = NULL, method = c("auto", "gs", "nipals", "krylov", "gram"), center = TRUE, scale = FALSE,
                weights = NULL, na = c("fail", "mean", "em"), assay = NULL, control = list(), seed = NULL, run = NULL,
                ...) {
  run <- as_run(run, ranks = TRUE, dry_run = TRUE)
  ranks <- join_ranks(run$ranks, "pca", c(each_rank, "x", "weights", "block_size"))
  control <- check_control(control, pca_control)
  started <- proc.time()[[3L]]
  check_dots(..., .control = pca_control, .known = pca_names_elsewhere)
  need_args("x")
  method <- check_choice(method, c("auto", "gs", "nipals", "krylov", "gram"), "method")
  na <- check_choice(na, c("fail", "mean", "em"), "na")
  stop <- check_choice(control$stop, c("residual", "paper"), "stop")
  precision <- check_choice(control$precision, c("double", "single"), "precision")
  by_vectors <- method %in% c("gs", "nipals")
  if (stop == "paper" && !by_vectors) abort_input("`stop = \"paper\"` needs method \"gs\" or \"nipals\".")
  tolerance <- check_number(control$tolerance %||% default_tolerance(by_vectors, stop, na), "tolerance", min = 0,
                            max = 1e300)
  max_iterations <- check_number(control$max_iterations %||% if (by_vectors || na == "em") 10000 else 1000,
                                 "max_iterations", min = 1, max = 1e9, whole = TRUE)
  block_size <- check_number(control$block_size, "block_size", min = 8)
  source <- memory_errors(pca_source(x, assay, block_size, threads = run$threads))
  if (!is.null(ranks)) source <- shared_source(source, method, na)
  n <- sum(source$ranks %||% source$n)
  least <- min(n, source$p)
  k <- check_number(k %||% least, "k", min = 1, max = least, whole = TRUE)
  weights <- check_weights(weights, source$n, "weights")
  if (!is.null(ranks)) check_shared_weights(weights)
  col_weights <- check_weights(control$col_weights, source$p, "col_weights")
  center <- check_center(center, source$p, "center")
  scale <- check_scale(scale, source$p)
  if (precision == "single" && !source$kind %in% c("dense", "resident")) {
    abort_input("`precision = \"single\"` needs a matrix in memory or on a device.",
                x = paste0("`x` is ", describe(x), "."))
  }
  plan <- pca_plan(source, k, method, run$threads, alone = is.null(ranks), em = na == "em")
  if (!is.null(ranks)) plan$methods[] <- ranks_gather(plan$methods[["cpu"]])[[1L]] # whatever the back end
  expect_libraries(run, plan$libraries)
  kept <- !is.null(source$devices)
  chosen <- if (kept || source$kind == "resident") choose_resident(run$backend, kept)
            else choose_backend(run$backend, plan$cost)
  report_backend(chosen, run)
  if (run$dry_run) {
    chosen$plan <- plan$cost
    return(dry_plan("pca", chosen))
  }
  on <- if (kept) devices_of_kept(run, source, method, na)
        else devices_of_rows(run_but(run, backend = chosen$name), source, method, na, chosen$divided)
  source <- cut_blocks(source, length(on))
  if (chosen$name == "cuda" && !is.null(source$for_device)) source <- source$for_device()
  control <- run_control(chosen$name, run$threads, run$progress, source$names %||% NULL, "Principal components", on)
  moments <- column_moments(source, weights, control)
  if (!is.null(ranks)) moments <- joint_moments(ranks_gather(moments, control))
  check_moments(moments, source)
  constant <- identical(scale, "allele") & moments$norm == 0
  if (identical(scale, "allele")) scale <- allele_scale(moments, source$names)
  rows <- if (is.null(weights)) n else sum(unlist(if (is.null(ranks)) weights else ranks_gather(sum(weights))))
  if (na == "mean" && sum(moments$missing) > 0) {
    filled <- filled_by_mean(source, moments, rows)
    source <- filled$source
    moments <- filled$moments
  }
  job <- pca_job(plan, chosen$name, choose = method == "auto", k = as.integer(k), tol = tolerance,
                 paper = stop == "paper", max_iter = max_iterations, block = pca_block(source, chosen$name, ranks),
                 key = random_key(seed), start = NULL)
  if (!is.null(ranks)) job$key <- ranks_gather(job$key)[[1L]]
  settings <- list(center = center, scale = scale, weights = weights, col_weights = col_weights,
                   single = precision == "single")
  if (sum(moments$missing) > 0) {
    if (!is.null(ranks)) abort_input("`x` must be complete for `weft_run(ranks = TRUE)`.", x = "It has missing values.")
    if (!is.null(run$devices) && length(on) > 1L) {
      abort_input("`x` must be complete for several `devices`.", x = "It has missing values.")
    }
    source$seen <- check_rows_seen(source, control)
    solved <- memory_errors(pca_missing(source, moments, method, na, job, settings, control))
  } else {
    form <- pca_form(moments, center, scale, weights, col_weights, rows)
    solved <- memory_errors(pca_native(source, form, job, settings$single, control))
  }
  if (!is.null(ranks)) {
    solved <- joint_scores(solved, source, control)
    weights <- if (!is.null(weights)) unlist(ranks_gather(weights, control))
    source <- whole_source(source)
  }
  result <- memory_errors(pca_result(solved, source, k, weights, run_control("cpu", run$threads, FALSE)))
  result$call <- match.call()
  result$backend <- chosen$name
  result$reason <- chosen$reason
  result$seconds <- proc.time()[[3L]] - started
  warn_about(result, k, if (isTRUE(scale)) solved$form$constant else constant, source)
  result
}

pca_control <- function(col_weights = NULL, tolerance = NULL, stop = c("residual", "paper"), max_iterations = NULL,
                        precision = c("double", "single"), block_size = 2^28) as.list(environment())

# What prcomp() and others call arguments that have another name here.
pca_names_elsewhere <- c(scale. = "scale", scale.unit = "scale", cor = "scale", rank. = "k", ncp = "k",
                         n_components = "k")

default_tolerance <- function(by_vectors, stop, na) {
  if (stop == "paper") 1e-7 else if (na == "em" || by_vectors) 1e-8 else 1e-12
}

choose_resident <- function(backend, store = FALSE) {
  if (identical(backend %||% weft_backend(), "cpu")) {
    abort_input("A handle from `weft_upload()` needs `run = \"cuda\"`.",
                i = if (store) "`weft_store()` opens the file." else "`as.matrix()` copies it into memory.")
  }
  list(name = "cuda", reason = if (store) "the store is on the device" else "the matrix is on the device")
}

# list(methods = c(cpu, cuda), cost = what either back end takes (R/plan.R), gives_way, libraries): src/pca/plan.c
# chooses. A resident matrix is on the device whatever that says.
pca_plan <- function(source, k, method, threads, alone = TRUE, em = FALSE) {
  cells <- switch(source$kind, sparse = sum(vapply(source$data, function(b) length(b@x), 0)), stored = source$values,
                  source$n * source$p)
  plan <- ask_pca_plan(source$kind, method, list(n = source$n, p = source$p, cells = cells, k = k, threads = threads,
                                                 shared = !alone, again = em))
  if (is.null(source$devices) && !fits_device(plan$cost$device_bytes)) plan$cost$cuda <- Inf
  plan
}

# sizes: by the names of WEFT_PCA_SIZES (src/pca/plan.h); those that are not given are 0.
ask_pca_plan <- function(kind, method, sizes) .Call(C_weft_pca_plan, kind, method, sizes, slownesses())

never_gives_way <- list(gram_blocks = 0, gram_steps = 0)

# The job of native code for a plan.
pca_job <- function(plan, backend, ...) {
  c(list(method = plan$methods[[backend]], ...), if (backend == "cpu") plan$gives_way else never_gives_way)
}

# Whether half of a device's memory holds so many bytes; TRUE where that is not known. Little fits everywhere.
fits_device <- function(bytes) {
  bytes < 1e9 && !getOption("weft.device_memory", 0) || bytes <= device_free() / 2
}

# Bytes that are free on the device, at most what the user allows; Inf where neither is known.
device_free <- function() {
  limit <- getOption("weft.device_memory", 0)
  min(weft_devices()$available[getOption("weft.device", 0) + 1], if (limit) limit, Inf, na.rm = TRUE)
}

# Vectors in a block; 0 leaves it to native code, whose wide blocks suit dense products. A sparse product takes as long
# for each vector of a block of 4 as of a wider one, and a narrower block finds as much with fewer vectors.
# From a store, whose blocks are read for each product, wider ones pay.
pca_block <- function(source, backend, ranks) {
  if (!source$kind %in% c("sparse", "stored") || backend != "cpu" || !is.null(ranks)) return(0L)
  if (source$kind == "sparse") 4L else 8L
}

check_moments <- function(moments, source) {
  bad <- which(moments$infinite > 0)
  if (length(bad)) {
    abort_input("`x` must not have infinite values.", x = sprintf(
      "They occur in %d of %.0f columns: %s.", length(bad), source$p,
      label_some((source$names %||% seq_len(source$p))[bad])))
  }
  empty <- which(moments$weight == 0 & moments$missing > 0)
  if (length(empty)) {
    abort_input("Every column of `x` must have an observed value.", x = sprintf(
      "All values of %s are missing.", label_some((source$names %||% seq_len(source$p))[empty])), i = "Remove it.")
  }
}

# How many values of each row are known. A row without any would count for the standard deviations, and stand in the
# middle of the scores.
check_rows_seen <- function(source, control) {
  if (!source$kind %in% c("dense", "resident")) {
    abort_input("Missing values need an ordinary matrix or data frame.",
                x = sprintf("`x` is %s.", kind_in_words(source$kind)),
                i = if (source$kind == "genotypes") "`na = \"mean\"` replaces them by the mean of their variant.")
  }
  seen <- .Call(C_weft_pca_seen, native_source(source), control)
  empty <- which(seen == 0)
  if (!length(empty)) return(seen)
  abort_input("Every row of `x` must have an observed value.", x = sprintf(
    "All values of %s are missing.", label_some((source$row_names %||% seq_len(source$n))[empty])),
    i = "Remove it.")
}

# The decomposition of a complete source, in the units of the data; `d` is d * 2^-exponent until pca_result().
pca_native <- function(source, form, job, single, control) {
  native <- form$native
  native$single <- single
  native["missing"] <- list(source$missing)
  if (job$paper) job$tol <- job$tol * 2^-form$exponent
  solved <- .Call(C_weft_pca, native_source(source), native, job, control)
  none <- which(native$row == 0)
  if (length(none) && source$kind == "genotypes") {
    native["row"] <- list(NULL)
    all <- .Call(C_weft_pca_times, native_source(source), native, solved$v, FALSE, control)
    solved$outside <- all[none, , drop = FALSE]
  }
  c(solved, list(form = form))
}

pca_result <- function(solved, source, k, weights, control) {
  form <- solved$form
  if (!all(is.finite(solved$d * 2^form$exponent))) {
    abort_input("`x` must contain smaller values: its singular values overflow.",
                i = "Rescale it, or use `scale = TRUE`.")
  }
  labels <- paste0("PC", seq_len(k))
  orthogonality <- orthogonality(solved, control)
  scores <- .Call(C_weft_pca_scores, solved$u, solved$d, if (is.null(weights)) 2^form$exponent else 1,
                  list(source$row_names, labels), control) # run$u itself
  if (!is.null(weights)) scores <- unweighted_scores(scores, solved, source, weights) * 2^form$exponent
  dimnames(solved$v) <- list(source$names, labels)
  named <- function(x) if (is.logical(x)) x else stats::setNames(x, source$names)
  new_result(class = c("weft_pca", "prcomp"), list(
    sdev = solved$d / sqrt(form$df) * 2^form$exponent, rotation = solved$v, center = named(form$center),
    scale = named(form$scale), x = scores,
    d = solved$d * 2^form$exponent, share = if (form$total > 0) solved$d^2 / form$total else numeric(k),
    total_variance = form$total / form$df * 2^form$exponent * 2^form$exponent, rank = solved$rank,
    residual = solved$residual,
    iterations = solved$iterations, converged = solved$converged, orthogonality = orthogonality,
    passes = solved$passes, method = solved$method, n = source$n, weights = weights
  ))
}

# Scores of rows as they are, not times the square root of their weight; rows of weight 0 by projection.
unweighted_scores <- function(scores, solved, source, weights) {
  scores <- scores / sqrt(weights)
  none <- which(weights == 0)
  if (!length(none)) return(scores)
  if (!is.null(solved$outside)) {
    scores[none, ] <- solved$outside
    return(scores)
  }
  if (!source$kind %in% c("dense", "sparse")) {
    abort_input("`weights` of 0 need a matrix in memory.", i = "Remove these rows and use `predict()` on them.")
  }
  if (!is.null(solved$cells)) source$data[is.na(source$data)] <- solved$cells
  x <- if (source$kind == "dense") source$data[none, , drop = FALSE]
    else as.matrix(do.call(rbind, source$data)[none, , drop = FALSE])
  native <- solved$form$native
  scores[none, ] <- (sweep(x, 2L, native$center) * rep(native$factor, each = length(none))) %*% solved$v
  scores
}

orthogonality <- function(solved, control) {
  off <- function(x, some, known = NULL) {
    if (sum(some) < 2L) return(0)
    g <- (if (is.null(known) || is.nan(known[1L])) .Call(C_weft_pca_cross, x, control) else known)[some, some]
    max(abs(g[lower.tri(g)]))
  }
  c(loadings = off(solved$v, rep(TRUE, ncol(solved$v))), scores = off(solved$u, solved$d > 0, solved$cross))
}

warn_constant <- function(names) {
  weft_warn("constant", sprintf("Constant columns cannot be scaled to variance 1 and get loadings of 0: %s.",
                                label_some(names)),
            i = "Remove them.")
}

warn_about <- function(fit, k, constant, source) {
  if (any(constant)) warn_constant((source$names %||% seq_along(constant))[constant])
  late <- which(!fit$converged)
  if (length(late) && !any(is.infinite(fit$residual))) {
    weft_warn("convergence", sprintf("%s did not converge to `tolerance` in %d iterations.",
                                     label_some(paste0("PC", late)), max(fit$iterations[late])),
              i = if (fit$method == "em") {
                paste("Fitted values may be far from where they end. Use a smaller `k`, which is determined better, or",
                      "raise `max_iterations` in `control`.")
              } else {
                "See `converged` and `residual` in the result; raise `max_iterations` or `tolerance` in `control`."
              })
  }
  if (fit$rank < k) {
    weft_warn("rank",
              sprintf("The numerical rank is %.0f, less than `k` = %.0f: the last %.0f standard deviations are 0.",
                              fit$rank, k, k - fit$rank),
              i = "Their vectors are orthonormal but otherwise arbitrary.")
  }
}
