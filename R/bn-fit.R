#' Parameters of a network, simulation, and prediction
#'
#' `bn_fit()` estimates the conditional distribution of each node given its parents. The shortest call is
#' `bn_fit(x, dag)`; it returns a fitted network. For categories, the probabilities are posterior means,
#' \eqn{(N_{kj} + \mathrm{ess}/(q r)) / (N_k + \mathrm{ess}/q)}; For numbers, the parameters come from a least-squares
#' regression on the parents, with the residual standard deviation. With columns of both types, as for the score
#' `"bic-cg"`, a numeric node has an intercept, slopes and a standard deviation for each configuration of its
#' categorical parents; a configuration with too few rows uses the estimates from all rows. `bn_sample()` draws rows,
#' `bn_log_lik()` returns the log-likelihood of each row of new data, and `predict()` the distribution of one node given
#' all other columns of `newdata`; nodes that are not in `newdata` are summed out exactly.
#'
#' @inheritParams bn_scores
#' @param na `"fail"`, `"drop"` to remove rows with missing values, or `"em"` for the EM algorithm, with each row
#'   completed 20 times by samples from the network.
#' @param dag a network; see [bn_convert()].
#' @param x a data frame as for [bn_scores()].
#' @return `bn_fit()`: an object of class `weft_bn_fit` with the `dag` and `nodes`. This list contains for each node its
#'   `parents` and either `probability` (an array, whose first dimension are the levels of the node and the others the
#'   levels of its parents), or `intercept`, `slopes` and `sd`. For a numeric node with categorical parents, `intercept`
#'   and `sd` are arrays over their levels, and `slopes` is a matrix with one row for each numeric parent and one column
#'   for each configuration.
#' @export
#' @examples
#' set.seed(1)
#' a <- sample(c("no", "yes"), 200, replace = TRUE)
#' d <- data.frame(a = factor(a), b = factor(ifelse(runif(200) < 0.8, a, "no")))
#' fit <- bn_fit(d, bn_learn(d, iterations = 200))
#' bn_sample(fit, 3)
#' sum(bn_log_lik(fit, d))
#' predict(fit, d["a"], "b")[1:3, ]
bn_fit <- function(x, dag, ess = 1, interventions = NULL, na = c("fail", "drop", "em"), seed = NULL) {
  need_args("x", "dag")
  na <- asked_na(na = if (missing(na)) "fail" else na, able = "em", what = "parameters")
  ess <- check_ess(ess)
  numbers <- is.data.frame(x) && length(x) > 0L && all(vapply(x, is.double, NA)) ||
    (is.matrix(x) && is.double(x))
  kind <- if (numbers) "numbers" else if (is_mixed(x)) "mixed" else "bdeu"
  if (na == "em" && anyNA(nodes_frame(x))) return(fit_by_em(x, dag, ess, interventions, draw_key(seed), kind))
  if (na == "em") na <- "fail"
  input <- memory_errors(bn_input(x, kind, interventions, na))
  dag <- as_dag(dag, nodes = input$names)
  number <- if (kind == "mixed") input$number else rep(numbers, input$p)
  wrong <- which(dag != 0 & outer(number, !number), arr.ind = TRUE)
  if (nrow(wrong)) {
    abort_input("In `dag`, a numeric node must not be the parent of a categorical one.",
                x = sprintf("`%s` is a parent of `%s`.", input$names[wrong[1L, 1L]], input$names[wrong[1L, 2L]]),
                i = "Learn it with the score \"bic-cg\", or discretise the numeric columns with `discretize()`.")
  }
  nodes <- lapply(seq_len(input$p), function(i) {
    parents <- which(dag[, i] != 0)
    rows <- if (is.null(input$set)) seq_len(input$n) else which(input$set[, i] == 0L)
    if (!number[i]) fit_counts(input, i, parents, rows, ess)
    else if (all(number[parents])) fit_gauss(input, i, parents, rows)
    else fit_mixed(input, i, parents, rows)
  })
  new_result(list(dag = dag, nodes = stats::setNames(nodes, input$names), labels = input$labels, gaussian = numbers,
                 n = round(input$n / input$completions), ess = ess), class = "weft_bn_fit")
}

fit_counts <- function(input, node, parents, rows, ess) {
  dims <- input$levels[c(node, parents)]
  if (prod(dims) > 2^26) {
    abort_input("A node's conditional probability table must have at most 2^26 cells.",
                x = sprintf("Node `%s` with its %d parents would have %.3g.", input$names[node], length(parents),
                            prod(dims)))
  }
  counts <- count_family(input, node, parents, rows) / input$completions + ess / prod(dims)
  totals <- rep(colSums(matrix(counts, dims[1L])), each = dims[1L])
  list(parents = input$names[parents],
       probability = array(counts / totals, dims, dimnames = input$labels[c(node, parents)]))
}

count_family <- function(input, node, parents, rows) {
  dims <- input$levels[c(node, parents)]
  cell <- as.integer(input$codes[rows, c(node, parents), drop = FALSE] %*% cumprod(c(1, dims))[seq_along(dims)])
  array(tabulate(cell + 1L, prod(dims)), dims)
}

# Least squares in each configuration of the parents that are categories.
fit_mixed <- function(input, node, parents, rows) {
  numbers <- parents[input$number[parents]]
  categories <- parents[!input$number[parents]]
  dims <- input$levels[categories]
  if (prod(dims) * (length(numbers) + 2) > 2^26) {
    abort_input("A node must have at most 2^26 parameters.",
                x = sprintf("Node `%s` with its %d parents would have %.3g.", input$names[node], length(parents),
                            prod(dims) * (length(numbers) + 2)))
  }
  whole <- fit_gauss(input, node, numbers, rows)
  cell <- as.integer(input$codes[rows, categories, drop = FALSE] %*% cumprod(c(1, dims))[seq_along(dims)]) + 1L
  each <- rep(list(whole), prod(dims))
  for (part in split(seq_along(rows), cell)) {
    if (length(part) > input$completions * (length(numbers) + 1)) {
      each[[cell[part[1L]]]] <- fit_gauss(input, node, numbers, rows[part])
    }
  }
  by_cell <- function(what) array(vapply(each, `[[`, 0, what), dims, dimnames = input$labels[categories])
  slopes <- vapply(each, `[[`, double(length(numbers)), "slopes")
  list(parents = input$names[parents], intercept = by_cell("intercept"),
       slopes = matrix(slopes, length(numbers), prod(dims), dimnames = list(input$names[numbers], NULL)),
       sd = by_cell("sd"))
}

# Least squares on standardised columns, put back into their units: neither unit nor origin of a column then decides
# whether it counts as a combination of others.
fit_gauss <- function(input, node, parents, rows) {
  if (!length(rows)) {
    abort_input("Every node must have at least one row in which it was not intervened on.",
                x = sprintf("`%s` has none.", input$names[node]))
  }
  x <- input$x[rows, c(node, parents), drop = FALSE]
  unit <- apply(x, 2L, power_of_two)
  x <- x / rep(unit, each = nrow(x))
  origin <- colMeans(x)
  deviation <- apply(x, 2L, function(column) stats::sd(column - column[1L]))
  deviation[!(deviation > 0)] <- 1 # of a constant or a single row
  z <- standard_columns(x)
  model <- stats::lm.fit(cbind(1, z[, -1L, drop = FALSE]), z[, 1L])
  slopes <- replace(model$coefficients, is.na(model$coefficients), 0)[-1L] * deviation[1L] / deviation[-1L]
  out <- list(parents = input$names[parents], intercept = (origin[1L] - sum(slopes * origin[-1L])) * unit[1L],
              slopes = stats::setNames(slopes * (unit[1L] / unit[-1L]), input$names[parents]),
              sd = sqrt(sum(model$residuals^2) / input$completions /
                          max(length(rows) / input$completions - model$rank, 1)) * deviation[1L] * unit[1L])
  vanished <- slopes != 0 & abs(out$slopes) < .Machine$double.xmin
  if (all(is.finite(c(out$intercept, out$slopes, out$sd)), !vanished)) return(out)
  abort_input("The columns of `x` must be scaled so that regression slopes neither overflow nor underflow.",
              x = sprintf("The slopes of node `%s` overflow or underflow.", input$names[node]))
}

#' @rdname bn_fit
#' @param fit,object an object returned by `bn_fit()`, and `x` of its methods.
#' @param ... ignored.
#' @export
print.weft_bn_fit <- function(x, ...) {
  check_fit(x, "x")
  cat(sprintf("Fitted %s (%s), %s\n", network_size(x),
              if (x$gaussian) "Gaussian"
              else if (any(number_nodes(x))) "conditional Gaussian"
              else "categories",
              several(x$n, "row")))
  invisible(x)
}

# Which nodes are numbers, by name.
number_nodes <- function(fit) {
  names <- names(fit$nodes)
  stats::setNames(vapply(names, function(name) fit$gaussian || is.null(fit$labels[[name]]), NA), names)
}

#' @rdname bn_fit
#' @export
summary.weft_bn_fit <- function(object, ...) glance(object)

#' @rdname bn_fit
#' @param n the number of rows.
#' @param do a list or vector of values, named by nodes, that are set by an intervention.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @return `bn_sample()`: a data frame.
#' @export
bn_sample <- function(fit, n, do = NULL, seed = NULL) {
  need_args("fit", "n")
  fit <- check_fit(fit)
  n <- check_number(n, "n", min = 0, max = 2^31 - 1, whole = TRUE)
  do <- check_settings(do, names(fit$nodes))
  check_sample_memory(n, length(fit$nodes))
  memory_errors(sample_network(fit, n, do, draw_key(seed)))
}

sample_network <- function(fit, n, do, key) {
  names <- names(fit$nodes)
  number <- number_nodes(fit)
  codes <- matrix(0, n, length(names), dimnames = list(NULL, names))
  for (i in topological_order(fit$dag)) {
    node <- fit$nodes[[i]]
    codes[, i] <-
      if (names[i] %in% names(do)) rep(set_value(fit, names[i], do[[names[i]]]), n)
      else if (number[[i]])
        gauss_mean(node, codes) + gauss_sd(node, codes) * draws("normal", n, key = key, stream = i)
      else draw_levels(node, codes, draws("uniform", n, key = key, stream = i))
  }
  if (fit$gaussian) return(as.data.frame(codes))
  as_factor <- function(name) {
    labels <- fit$labels[[name]]
    if (number[[name]]) codes[, name] else factor(labels[codes[, name] + 1], labels)
  }
  as.data.frame(lapply(stats::setNames(nm = names), as_factor), optional = TRUE)
}

# `do` as a list by node, each node once.
check_settings <- function(do, nodes) {
  if (!is.null(do) && !is.list(do) && !is.atomic(do)) {
    abort_input("`do` must be a list or vector of values named by nodes.", x = paste0("It is ", describe(do), "."))
  }
  do <- as.list(do)
  given <- names(do)
  if (length(do) && is.null(given)) abort_input("`do` must be named by nodes.", x = "It has no names.")
  unknown <- setdiff(given, nodes)
  twice <- unique(given[duplicated(given)])
  if (length(unknown)) {
    abort_input("`do` must be named by nodes.", x = sprintf("There is no %s.", label_some(unknown)))
  }
  if (length(twice)) abort_input("`do` must set each node at most once.",
                                 x = sprintf("Duplicated: %s.", label_some(twice)))
  do
}

check_sample_memory <- function(n, p) {
  need <- 2 * 8 * n * (p + 2)
  free <- host_free()
  if (free < 0 || need <= free) return(invisible())
  weft_abort("memory",
             sprintf("The sample needs about %s of memory; %s is available.", bytes_text(need), bytes_text(free)),
             x = sprintf("%s rows of %d nodes.", number_text(n), p),
             i = "Draw fewer rows at a time, each time with another seed.")
}

set_value <- function(fit, name, value) {
  if (number_nodes(fit)[[name]]) return(check_number(value, sprintf("do$%s", name)))
  at <- if (is.atomic(value)) match(as.character(check_factor(value, sprintf("`do$%s`", name))), fit$labels[[name]])
  if (length(at) != 1L || is.na(at)) {
    abort_input(sprintf("`do$%s` must be one of the node's levels.", name), x = paste0("It is ", describe(value), "."),
                i = paste0("They are ", label_some(fit$labels[[name]]), "."))
  }
  at - 1
}

gauss_mean <- function(node, x) {
  if (is.null(dim(node$intercept))) return(node$intercept + drop(x[, node$parents, drop = FALSE] %*% node$slopes))
  at <- number_configuration(node, x)
  numbers <- x[, rownames(node$slopes), drop = FALSE]
  as.double(node$intercept)[at] + rowSums(numbers * t(node$slopes[, at, drop = FALSE]))
}

gauss_sd <- function(node, x) {
  if (is.null(dim(node$sd))) node$sd else as.double(node$sd)[number_configuration(node, x)]
}

# Configuration of the categories that are parents of a number, from 1, for each row.
number_configuration <- function(node, codes) {
  dims <- dim(node$intercept)
  1 + drop(codes[, names(dimnames(node$intercept)), drop = FALSE] %*% cumprod(c(1, dims))[seq_along(dims)])
}

# Column of a node's table, from 0, for each row of level codes.
configuration_of <- function(node, codes) {
  dims <- dim(node$probability)[-1L]
  drop(codes[, node$parents, drop = FALSE] %*% cumprod(c(1, dims))[seq_along(dims)])
}

draw_levels <- function(node, codes, u) {
  r <- dim(node$probability)[1L]
  reached <- apply(matrix(node$probability, r), 2L, cumsum)
  reached <- matrix(reached, r)
  at <- configuration_of(node, codes) + 1
  level <- numeric(length(u))
  for (j in seq_len(r - 1L)) level <- level + (u > reached[j, at])
  level
}

# Level codes (NA where a value is not a known level) or numbers of the columns of `x` that are nodes.
fit_columns <- function(fit, data, needed, arg) {
  if (is.matrix(data)) data <- as.data.frame(data, stringsAsFactors = FALSE)
  if (!is.data.frame(data)) abort_input(sprintf("`%s` must be a data frame.", arg),
                                        x = paste0("It is ", describe(data), "."))
  twice <- intersect(names(fit$nodes), names(data)[duplicated(names(data))])
  if (length(twice)) {
    abort_input(sprintf("`%s` must contain each node only once.", arg),
                x = sprintf("Duplicated: %s.", label_some(twice)))
  }
  lacking <- setdiff(needed, names(data))
  if (length(lacking)) {
    abort_input(sprintf("`%s` must have a column for every node.", arg),
                x = paste0("Missing: ", label_some(lacking), "."))
  }
  shared <- intersect(names(fit$nodes), names(data))
  number <- number_nodes(fit)
  columns <- lapply(shared, function(name) {
    column <- data[[name]]
    if (number[[name]] && !is.numeric(column) && !is.logical(column) || !is.null(dim(column))) {
      abort_input(sprintf("Column `%s` of `%s` must be a vector of %s.", name, arg,
                          if (number[[name]]) "numbers" else "levels"),
                  x = paste0("It is ", describe(column), "."))
    }
    check_factor(column, sprintf("Column `%s` of `%s`", name, arg))
    values <- if (number[[name]]) as.double(column) else match(as.character(column), fit$labels[[name]]) - 1
    if (anyNA(values)) {
      abort_input(sprintf("`%s` must not contain missing values or new levels.", arg),
                  x = sprintf("Column `%s` has %d.", name, sum(is.na(values))))
    }
    values
  })
  matrix(as.double(unlist(columns)), nrow(data), length(shared), dimnames = list(NULL, shared))
}

#' @rdname bn_fit
#' @return `bn_log_lik()`: one number per row.
#' @export
bn_log_lik <- function(fit, x) {
  need_args("fit", "x")
  fit <- check_fit(fit)
  x <- fit_columns(fit, x, names(fit$nodes), "x")
  total <- double(nrow(x))
  for (name in names(fit$nodes)) total <- total + node_density(fit, name, x)
  total
}

# ln p(node | its parents) of each row of level codes and numbers; `least`: a lower bound of standard deviations.
node_density <- function(fit, name, x, least = 0) {
  node <- fit$nodes[[name]]
  if (is.null(node$probability)) {
    return(stats::dnorm(x[, name], gauss_mean(node, x), pmax(gauss_sd(node, x), least), log = TRUE))
  }
  log(as.double(node$probability)[x[, name] + 1 + dim(node$probability)[1L] * configuration_of(node, x)])
}

#' @rdname bn_fit
#' @param newdata a data frame with some of the nodes.
#' @param node the node to predict; its own column in `newdata`, if any, is not used.
#' @param type `"probability"` (a matrix, one row per row of `newdata`) or `"class"`, the most probable level. For
#'   numbers, both give the conditional mean.
#' @return `predict()`: see `type`.
#' @export
predict.weft_bn_fit <- function(object, newdata, node, type = c("probability", "class"), ...) {
  need_args("newdata", "node")
  type <- check_choice(type, c("probability", "class"), "type")
  check_fit(object, "object")
  if (!is.data.frame(newdata) && !is.matrix(newdata)) {
    abort_input("`newdata` must be a data frame.", x = paste0("It is ", describe(newdata), "."))
  }
  if (is.matrix(newdata)) newdata <- as.data.frame(newdata, stringsAsFactors = FALSE)
  node <- names(object$nodes)[check_nodes(node, names(object$nodes), "node")]
  if (length(node) != 1L) abort_input("`node` must be the name of one node.", x = paste0("It is ", describe(node), "."))
  x <- fit_columns(object, newdata[!names(newdata) %in% node], character(), "newdata")
  if (object$gaussian) return(predict_gauss(object, x, node))
  if (any(number_nodes(object))) return(predict_mixed(object, x, node, type))
  known <- colnames(x)
  relevant <- relevant_nodes(object$dag, node, known)
  used <- intersect(known, relevant)
  pattern <- match_rows(x[, used, drop = FALSE])
  each <- t(vapply(which(!duplicated(pattern)), function(row) condition_on(object, relevant, node, x[row, used]),
                   double(length(object$labels[[node]]))))
  each <- matrix(each, ncol = length(object$labels[[node]]), dimnames = list(NULL, object$labels[[node]]))
  out <- each[pattern, , drop = FALSE]
  if (type == "probability") return(out)
  factor(object$labels[[node]][max.col(out, "first")], object$labels[[node]])
}

match_rows <- function(x) {
  if (!ncol(x)) return(rep(1L, nrow(x)))
  key <- do.call(paste, as.data.frame(x))
  match(key, unique(key))
}

# Nodes that matter: the target, the known, and their ancestors.
relevant_nodes <- function(dag, node, known) {
  wanted <- rownames(dag) %in% c(node, known)
  repeat {
    more <- wanted | rowSums(dag[, wanted, drop = FALSE]) > 0
    if (all(more == wanted)) return(rownames(dag)[wanted])
    wanted <- more
  }
}

# P(node | known) by variable elimination: tables are cut down to what is known, then each other variable is summed out,
# the one with the smallest table first.
condition_on <- function(fit, relevant, node, known) {
  tables <- lapply(relevant, function(name) cut_table(fit$nodes[[name]]$probability, known))
  repeat {
    hidden <- setdiff(unlist(lapply(tables, function(t) names(dimnames(t)))), node)
    if (!length(hidden)) break
    sizes <- vapply(hidden, function(h) {
      joint <- unique(unlist(lapply(tables, function(t) if (h %in% names(dimnames(t))) names(dimnames(t)))))
      prod(lengths(fit$labels[joint]))
    }, 0)
    out <- hidden[which.min(sizes)]
    if (min(sizes) > 2^24) {
      abort_input("`newdata` must contain more of the nodes: summing over the others needs tables that are too large.",
                  x = sprintf("The smallest such table has %.3g cells.", min(sizes)))
    }
    with <- vapply(tables, function(t) out %in% names(dimnames(t)), NA)
    tables <- c(tables[!with], list(sum_out(Reduce(multiply_tables, tables[with]), out)))
  }
  weight <- Reduce(`*`, lapply(tables, as.double))
  weight / sum(weight)
}

cut_table <- function(table, known) {
  names <- names(dimnames(table))
  index <- lapply(names, function(name) if (name %in% names(known)) known[[name]] + 1 else TRUE)
  kept <- !names %in% names(known)
  array(do.call(`[`, c(list(table), index, drop = FALSE)), dim(table)[kept] %or% 1L,
        dimnames = if (any(kept)) dimnames(table)[kept])
}

`%or%` <- function(a, b) if (length(a)) a else b

multiply_tables <- function(a, b) {
  names_a <- names(dimnames(a))
  names_b <- names(dimnames(b))
  if (!length(names_a)) return(b * as.double(a))
  if (!length(names_b)) return(a * as.double(b))
  both <- union(names_a, names_b)
  labels <- c(dimnames(a), dimnames(b))[both]
  spread <- function(table, names) {
    more <- setdiff(both, names)
    wide <- array(table, c(dim(table), lengths(labels[more])))
    aperm(wide, match(both, c(names, more)))
  }
  array(spread(a, names_a) * spread(b, names_b), lengths(labels), dimnames = labels)
}

sum_out <- function(table, name) {
  kept <- setdiff(names(dimnames(table)), name)
  if (!length(kept)) return(array(sum(table), 1L))
  sums <- apply(table, kept, sum)
  array(sums, dim(table)[match(kept, names(dimnames(table)))], dimnames = dimnames(table)[kept])
}

# Numbers and categories: given all categories, numbers are jointly normal. The categories that are hidden are gone
# through, all their combinations, for each pattern of known ones.
predict_mixed <- function(fit, x, node, type) {
  number <- number_nodes(fit)
  relevant <- relevant_nodes(fit$dag, node, colnames(x))
  known <- intersect(colnames(x), relevant)
  categories <- relevant[!number[relevant]]
  numbers <- relevant[number[relevant]]
  hidden <- setdiff(categories, known)
  sizes <- lengths(fit$labels[hidden])
  if (prod(sizes) > 2^16) {
    abort_input("`newdata` must contain more of the categorical nodes: at most 2^16 combinations can be summed.",
                x = sprintf("There are %.3g combinations.", prod(sizes)))
  }
  combinations <- if (length(hidden)) as.matrix(do.call(expand.grid, lapply(sizes, function(r) seq_len(r) - 1)))
                  else matrix(0, 1L, 0L)
  colnames(combinations) <- hidden
  labels <- fit$labels[[node]]
  out <- if (number[[node]]) double(nrow(x)) else matrix(0, nrow(x), length(labels), dimnames = list(NULL, labels))
  pattern <- match_rows(x[, intersect(known, categories), drop = FALSE])
  for (one in unique(pattern)) {
    rows <- which(pattern == one)
    weight <- matrix(0, length(rows), nrow(combinations))
    mean <- weight
    for (k in seq_len(nrow(combinations))) {
      codes <- matrix(c(x[rows[1L], intersect(known, categories)], combinations[k, ]), 1L,
                      dimnames = list(NULL, c(intersect(known, categories), hidden)))
      given <- at_configuration(fit, numbers, codes)
      y <- x[rows, intersect(known, numbers), drop = FALSE]
      weight[, k] <- log_categories(fit, categories, codes) + log_numbers(given, y)
      if (number[[node]]) mean[, k] <- predict_gauss(given, y, node)
    }
    weight <- exp(weight - do.call(pmax, as.data.frame(weight)))
    weight <- weight / rowSums(weight)
    if (number[[node]]) out[rows] <- rowSums(weight * mean)
    else out[rows, ] <- t(rowsum(t(weight), factor(combinations[, node], seq_along(labels) - 1)))
  }
  if (number[[node]] || type == "probability") return(out)
  factor(labels[max.col(out, "first")], labels)
}

# The network of numbers that is left when all categories are known.
at_configuration <- function(fit, numbers, codes) {
  nodes <- lapply(stats::setNames(nm = numbers), function(name) {
    node <- fit$nodes[[name]]
    if (is.null(dim(node$intercept))) return(node)
    at <- number_configuration(node, codes)
    list(parents = rownames(node$slopes) %||% character(), intercept = node$intercept[[at]],
         slopes = stats::setNames(node$slopes[, at], rownames(node$slopes)), sd = node$sd[[at]])
  })
  list(dag = fit$dag[numbers, numbers, drop = FALSE], nodes = nodes)
}

log_categories <- function(fit, categories, codes) {
  sum(vapply(categories, function(name) {
    table <- fit$nodes[[name]]$probability
    log(as.double(table)[codes[, name] + 1 + dim(table)[1L] * configuration_of(fit$nodes[[name]], codes)])
  }, 0))
}

# ln density of each row of known numbers, but for what is the same for all configurations.
log_numbers <- function(fit, y) {
  if (!ncol(y)) return(double(nrow(y)))
  joint <- gauss_joint(fit)
  known <- colnames(y)
  unit <- sqrt(diag(joint$covariance)[known])
  if (!all(unit > 0)) {
    abort_input("Numeric nodes in `newdata` must have a positive variance in every configuration.",
                x = sprintf("The variance of `%s` is 0 in some.", known[!(unit > 0)][1L]))
  }
  root <- tryCatch(chol(joint$covariance[known, known, drop = FALSE] / outer(unit, unit)), error = function(e) NULL)
  if (is.null(root)) {
    abort_input("Numeric nodes in `newdata` must not be linearly dependent.", x = "They are in some configuration.")
  }
  z <- sweep(y / rep(joint$scale[known], each = nrow(y)), 2L, joint$mean[known]) / rep(unit, each = nrow(y))
  -colSums(forwardsolve(t(root), t(z))^2) / 2 - sum(log(diag(root))) - sum(log(unit)) - sum(log(joint$scale[known]))
}

# The joint of all nodes is normal: x = intercept + B' x + noise. How the noise of each node reaches every other one,
# parents first, each node in a unit of its own, so that no product overflows or vanishes; known values are taken in
# units of their standard deviation, so that none vanishes beside another.
gauss_joint <- function(fit) {
  names <- rownames(fit$dag)
  scale <- node_units(fit)
  through <- diag(length(names))
  dimnames(through) <- list(names, names)
  for (i in topological_order(fit$dag)) {
    one <- fit$nodes[[i]]
    slopes <- one$slopes * (scale[one$parents] / scale[[i]])
    through[, i] <- through[, i] + through[, one$parents, drop = FALSE] %*% slopes
  }
  mean <- drop((vapply(fit$nodes, `[[`, 0, "intercept") / scale) %*% through)
  covariance <- crossprod(through, (vapply(fit$nodes, `[[`, 0, "sd") / scale)^2 * through)
  if (!all(is.finite(covariance), is.finite(mean))) {
    abort_input("The network's slopes and standard deviations must be smaller.",
                x = "Their products overflow. Rescale the data.")
  }
  list(mean = stats::setNames(mean, names), covariance = covariance, scale = scale)
}

# The mean of one node given known ones.
predict_gauss <- function(fit, x, node) {
  joint <- gauss_joint(fit)
  mean <- joint$mean
  covariance <- joint$covariance
  scale <- joint$scale
  known <- colnames(x)
  if (!length(known)) return(rep(mean[[node]] * scale[[node]], nrow(x)))
  unit <- sqrt(diag(covariance)[known])
  unit[unit == 0] <- 1
  parts <- eigen(covariance[known, known, drop = FALSE] / outer(unit, unit), symmetric = TRUE)
  keep <- parts$values > 1e-12 * max(parts$values, 1e-300)
  vectors <- parts$vectors[, keep, drop = FALSE]
  weight <- vectors %*% (crossprod(vectors, covariance[known, node] / unit) / parts$values[keep])
  gap <- sweep(x / rep(scale[known], each = nrow(x)), 2L, mean[known])
  drop(mean[[node]] + gap %*% (weight / unit)) * scale[[node]]
}

# For every node the greatest of what its noise and its parents contribute, parents first: about its standard deviation.
node_units <- function(fit) {
  unit <- stats::setNames(rep(1, length(fit$nodes)), rownames(fit$dag))
  for (i in topological_order(fit$dag)) {
    one <- fit$nodes[[i]]
    most <- max(one$sd, abs(one$slopes * unit[one$parents]))
    if (most > 0) unit[[i]] <- most
  }
  unit
}
