# What the models of this room share: densities and regressions keep their points in a tree, Gaussian processes and
# components as they are. A model may come from a file, so each of its parts is checked before native code or a result
# relies on it.

# ---- saved models ----

# `parts`: functions of a part's value that are TRUE where it can be what `made_by` makes, in the order in which they
# need each other.
check_parts <- function(object, made_by, parts) {
  check_format(object, "object")
  if (!is.list(object) || is.null(attr(object, "format"))) damaged_model(made_by, "format")
  for (name in names(parts)) if (!isTRUE(parts[[name]](object[[name]]))) damaged_model(made_by, name)
  invisible(object)
}

damaged_model <- function(made_by, part) {
  abort_input(sprintf("The model must not have changed since `%s` returned it.", made_by),
              x = sprintf("Its part `%s` is damaged.", part),
              i = sprintf("Fit it again with `%s`.", made_by))
}

# The parts that hold the points: d columns of `data`, n rows but over ranks. `kernels`: those that the model may have.
# seen: an environment, which gets the points_facts() of the points as `facts`, so that there is one pass over them.
point_parts <- function(object, kernels, seen) {
  list(
    kernel = function(v) is_word(v, kernels),
    d = function(v) is_count(v, 1),
    n = function(v) is_count(v, 1),
    distributed = function(v) is.null(v) || is_flag(v),
    data = function(v) {
      rows <- if (isTRUE(object$distributed)) nrow(v) else object$n
      if (!is.double(v) || !is.matrix(v) || !is_bare(v, "double") || !has_shape(v, c(rows, object$d))) return(FALSE)
      seen$facts <- if (is.null(object$digest)) list(range = points_range(v)) else points_facts(v)
      !any(seen$facts$range[3L, ] > 0) && rows <= object$n
    },
    names = function(v) is_names(v, object$d),
    rows = function(v) is_names(v, nrow(object$data)),
    backend = function(v) is_word(v, backends),
    seconds = function(v) is_number(v, 0)
  )
}

# The form in which check_bandwidth() has the model's bandwidth, or NULL where it cannot be one. range: of its points.
model_bandwidth <- function(object, range) {
  if (is.object(object$bandwidth)) return(NULL)
  tryCatch(check_bandwidth(object$bandwidth, object$d, range_reach(range)), weft_error_input = function(e) NULL)
}

# A bandwidth that is right for the points, as a model keeps it: numbers, or a covariance.
plain_bandwidth <- function(bandwidth, x, reach = points_reach(x)) {
  if (is.data.frame(bandwidth)) bandwidth <- plain_matrix(bandwidth)
  check_bandwidth(bandwidth, ncol(x), reach)
  unname(if (is.matrix(bandwidth)) bandwidth + 0 else as.double(bandwidth))
}

# `parts` as made from the model's bandwidth, which is `known` here; the root of a covariance may have been rounded
# otherwise where it was made.
is_form_of <- function(parts, object, known) {
  root <- if (is.list(parts)) parts$scale
  if (!isTRUE(known$full) || !is.double(root) || !is_table(root, object$d, object$d)) return(identical(parts, known))
  size <- sqrt(diag(object$bandwidth))
  close <- abs(tcrossprod(root) - object$bandwidth) <= 1e-10 * outer(size, size)
  all(close, root[upper.tri(root)] == 0, diag(root) > 0) && identical(names(parts), names(known)) &&
    identical(parts[-2L], known[-2L])
}

# ---- points in a tree ----

# What a density and a regression keep alike: the points, in a tree unless they are spread over ranks or lie on a line,
# and how to sum over them. `sums`: list(kernel, tree, rel_error, seed).
points_model <- function(x, n, bandwidth, sums, run, facts = points_facts(x)) {
  reach <- range_reach(facts$range)
  bandwidth <- plain_bandwidth(bandwidth, x, reach)
  parts <- check_bandwidth(bandwidth, ncol(x), reach)
  control <- run_control("cpu", run$threads, run$progress, task = "Building a tree")
  problem <- list(reference = x, query = x, bandwidth = parts, tree = list(type = sums$tree, leaf_size = 32),
                  self = TRUE, seed = sums$seed, control = control)
  # built again where sums need one: to look for damage in a kept tree takes as long, and most sums need none
  rebuilt <- sums$tree == "kd"
  list(
    kernel = sums$kernel, bandwidth = bandwidth, n = n, d = ncol(x), names = colnames(x), rows = rownames(x),
    rel_error = sums$rel_error, tree_type = sums$tree, distributed = run$ranks,
    native = if (!run$ranks && !rebuilt) native_trees(problem)$reference,
    digest = if (!run$ranks && rebuilt) facts$digest, parts = parts, data = unname(x)
  )
}

tree_parts <- function(object, seen = new.env()) {
  form <- NULL # for which all points are looked at
  c(point_parts(object, kernel_names, seen), list(
    rel_error = function(v) is_number(v, 0, 1),
    tree_type = function(v) is_word(v, tree_types),
    bandwidth = function(v) !is.null(form <<- model_bandwidth(object, seen$facts$range)),
    parts = function(v) is_form_of(v, object, form),
    native = function(v) {
      if (isTRUE(object$distributed)) return(is.null(v))
      if (is.null(v)) return(object$tree_type == "kd" && !is.null(object$digest))
      is.null(wrong_in_tree(v, object$n, object$d, object$tree_type, object$data, object$parts))
    },
    digest = function(v) is.null(v) || identical(v, seen$facts$digest)
  ))
}

# Sums of a model that keeps its points in a tree: kde and regression. The result's rows are those of `newdata`, or of
# the points. object$facts: NULL, or the points_facts() of its points.
model_sums <- function(object, newdata, weights, log = FALSE, leave_one_out = FALSE, rel_error = NULL,
                       run = as_run()) {
  query <- if (is.null(newdata)) NULL else match_columns(newdata, object)
  facts <- object$facts %||% list(range = points_range(object$data))
  problem <- kernel_problem(query, points_with(object$data, facts), weights, object$kernel, object$bandwidth,
                            rel_error = rel_error %||% object$rel_error, log = log, leave_one_out = leave_one_out,
                            run = run_but(run, backend = run$backend %||% object$backend))
  problem$bandwidth <- object$parts
  problem$tree <- list(type = object$tree_type, leaf_size = 32)
  problem$grown <- object$native
  problem$self <- is.null(newdata)
  result <- if (isTRUE(object$distributed)) kernel_over_ranks(problem) else kernel_run(problem)
  result$rows <- if (is.null(newdata)) object$rows else rownames(query$points)
  result
}

# By name; in their order where none has a name of the data, as expand.grid() makes them. As checked_points() gives
# them.
match_columns <- function(newdata, object) {
  named <- (is.data.frame(newdata) || is.matrix(newdata)) && any(colnames(newdata) %in% object$names)
  columns <- if (named) columns_of_fit(object$names, newdata)
  if (!is.null(columns)) newdata <- newdata[, columns, drop = FALSE]
  if (is.numeric(newdata) && is.null(dim(newdata)) && object$d > 1L) newdata <- matrix(newdata, 1L)
  newdata <- checked_points(newdata, "newdata")
  if (ncol(newdata$points) != object$d) {
    abort_input(sprintf("`newdata` must have %d columns, like the points of the model.", object$d),
                x = sprintf("It has %d.", ncol(newdata$points)))
  }
  newdata
}

# Numbers, one for each row, with the rows' names where they have some.
name_rows <- function(values, rows) {
  if (is.null(rows)) return(values)
  if (is.matrix(values)) rownames(values) <- rows else names(values) <- rows
  values
}
