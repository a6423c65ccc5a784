# Data prepared for learning: rows of time series with those before them, and samples of several conditions with a node
# for each. What an edge must not do goes with them (prepared_data() in R/bn-data.R), so that every function that learns
# takes them.

#' Time series for Bayesian networks
#'
#' `bn_time()` prepares time series for dynamic networks. The shortest call is `bn_time(x, time)`; it returns a data
#' frame for [bn_learn()], [bn_search()], [bn_exact()] and [bn_scores()]. Each row contains the values at one time point
#' and, as separate nodes, the values at the `lags` previous points. Edges lead from the past to the present and, with
#' `within`, also between nodes of the present; no edge leads into the past or into a `static` node.
#'
#' Without edges within a time point, every choice of parents is a network. [bn_exact()] then computes the best network
#' and the posterior `"dag"` for each node separately, limited only by `max_parents` and memory.
#'
#' Time points are the rows of a unit in the order of `time`; a lag of one is the previous row, regardless of the time
#' between them. A missing value that appears both as present and as past is sampled separately for each. An edge is a
#' dependence given the other measured nodes. It need not be an effect if time points are far apart, causes are
#' unmeasured, or effects are nonlinear. On the first DREAM4 network of 100 genes (10 series of 21 points), half of the
#' edges with a posterior of 0.98 are correct (`inst/bench/bn-time.R`).
#'
#' @param x a data frame or matrix with one column per node, as for [bn_scores()].
#' @param time the time points: the name of a column of `x`, or one number or date per row.
#' @param unit the series of each row: the name of a column, or one value per row; by default, all rows are one series.
#' @param lags the number of previous time points from which edges can lead.
#' @param within whether edges within a time point are allowed.
#' @param static names of columns that are constant within a unit, which can be parents of all others.
#' @param interventions the nodes that were set by an intervention, one entry per row of `x`, as for [bn_scores()].
#' @return A data frame of class `weft_bn_time` with the nodes of the past (`gene[t-1]`), the static nodes, and the
#'   nodes of the present, and one row for each time point with `lags` previous points. Select rows and columns before
#'   the call.
#' @seealso [bn_conditions()]
#' @export
#' @examples
#' set.seed(1)
#' a <- as.double(stats::arima.sim(list(ar = 0.5), 101))
#' b <- c(0, 0.8 * a[-101]) + rnorm(101)
#' d <- bn_time(data.frame(a, b, day = 1:101), "day", within = FALSE)
#' bn_exact(d, score = "bge", posterior = "dag")$edges[c("a[t-1]", "b[t-1]"), c("a", "b")]
bn_time <- function(x, time, unit = NULL, lags = 1, within = TRUE, static = NULL, interventions = NULL) {
  need_args("x", "time")
  lags <- check_number(lags, "lags", min = 1, max = 100, whole = TRUE)
  within <- check_flag(within, "within")
  data <- nodes_frame(x)
  of <- row_values(data, time, "time")
  series <- if (is.null(unit)) list(values = rep(1L, nrow(data))) else row_values(data, unit, "unit")
  data <- data[setdiff(names(data), c(of$column, series$column))]
  if (!is.null(static)) check_nodes(static, names(data), "static")
  if (!is.numeric(of$values) && !inherits(of$values, c("Date", "POSIXct"))) {
    abort_input("`time` must be numbers or dates.", x = paste0("It is ", describe(of$values), "."))
  }
  group <- match(series$values, unique(series$values))
  if (anyDuplicated(data.frame(group, as.double(of$values)))) {
    again <- which(duplicated(data.frame(group, as.double(of$values))))[1L]
    abort_input("`time` must not repeat within a unit.", x = sprintf("Row %d repeats a time.", again),
                i = if (is.null(unit)) "Give `unit` to tell which rows belong to one series.")
  }
  set <- bn_interventions(interventions, names(data), nrow(data))
  for (name in static) {
    if (any(tapply(as.character(data[[name]]), group, function(v) length(unique(v))) > 1L)) {
      abort_input("A `static` column must have one value in each unit.",
                  x = sprintf("`%s` varies within a unit.", name))
    }
  }
  order <- order(group, as.double(of$values))
  place <- stats::ave(seq_along(order), group[order], FUN = seq_along)
  now <- which(place > lags)
  if (!length(now)) {
    abort_input("`x` must have a unit with more time points than `lags`.",
                x = sprintf("The longest unit has %d, and `lags` is %d.", max(place, 0L), as.integer(lags)))
  }
  moving <- setdiff(names(data), static)
  at <- function(lag, columns) data[order[now - lag], columns, drop = FALSE]
  past <- lapply(rev(seq_len(lags)), function(lag) {
    stats::setNames(at(lag, moving), sprintf("%s[t-%d]", moving, lag))
  })
  frame <- do.call(cbind, c(past, list(at(0, static), at(0, moving))))
  names(frame) <- c(unlist(lapply(past, names)), static, moving)
  rownames(frame) <- NULL
  forbidden <- matrix(FALSE, length(frame), length(frame))
  present <- names(frame) %in% moving
  forbidden[, !present] <- TRUE
  if (!within) forbidden[present, present] <- TRUE
  set <- if (!is.null(set)) lapply(order[now], function(i) setdiff(colnames_set(set, names(data), i), static))
  prepared_data(frame, "weft_bn_time", forbidden = forbidden, interventions = set)
}

colnames_set <- function(set, names, row) names[set[row, ] != 0L]

# One value per row: a column by its name, or the values.
row_values <- function(data, what, arg) {
  if (is.character(what) && length(what) == 1L && what %in% names(data)) {
    return(complete_values(list(column = what, values = data[[what]]), arg))
  }
  if (is.atomic(what) && !is.null(what) && length(what) == nrow(data)) {
    return(complete_values(list(column = NULL, values = what), arg))
  }
  abort_input(sprintf("`%s` must be the name of a column of `x`, or one value per row.", arg),
              x = paste0("It is ", describe(what), "."))
}

complete_values <- function(of, arg) {
  check_factor(of$values, sprintf("`%s`", arg))
  if (!anyNA(of$values)) return(of)
  abort_input(sprintf("`%s` must not contain missing values.", arg), x = sprintf("%d are.", sum(is.na(of$values))))
}

#' Samples of several conditions, whose targets are not known
#'
#' `bn_conditions()` prepares samples of several conditions to learn the targets of each condition. The shortest call is
#' `bn_conditions(x, condition)`; it returns a data frame for [bn_learn()], [bn_search()], [bn_exact()] and
#' [bn_scores()]. Each condition except the reference becomes a node without parents, 0 or 1. An edge from it means that
#' the distribution of a node given its parents differs under this condition (Eaton and Murphy 2007); its posterior is
#' the probability that the condition acts directly on the node. If the targets are known, use `interventions` of
#' [bn_scores()].
#'
#' For numeric `x`, `change = "shift"` makes the condition nodes numeric: a condition shifts the mean of a node, but not
#' its slopes and variance (score `"bge"`). `change = "free"` makes them categorical: intercept, slopes and variance
#' differ between conditions (score `"bic-cg"`, which needs more rows in each condition than there are parents).
#' Categorical nodes always have separate probabilities in each condition.
#'
#' Direct means direct given these variables: a condition that acts on an unmeasured cause of a node appears to act on
#' the node. In simulations without hidden nodes, 96 to 100 % of targets with a posterior above 0.8 were correct
#' (`inst/bench/bn-time.R`).
#'
#' @param x a data frame or matrix with one column per node, as for [bn_scores()].
#' @param condition a factor, or values to convert into one, with one value per row; or the name of a column of `x`.
#' @param reference the condition without intervention; by default the first level.
#' @param change the effect of conditions on numeric nodes: `"shift"` or `"free"`.
#' @return A data frame of class `weft_bn_conditions`: the nodes of `x` and one node `in CONDITION` for each condition
#'   except the reference. Select rows and columns before the call.
#' @seealso [bn_time()]
#' @export
#' @examples
#' set.seed(1)
#' condition <- rep(c("none", "drug"), each = 60)
#' a <- rnorm(120) + 2 * (condition == "drug")
#' d <- bn_conditions(data.frame(a, b = a + rnorm(120)), condition, reference = "none")
#' bn_exact(d, score = "bge", posterior = "dag")$edges["in drug", c("a", "b")]
bn_conditions <- function(x, condition, reference = NULL, change = c("shift", "free")) {
  need_args("x", "condition")
  change <- check_choice(change, c("shift", "free"), "change")
  data <- nodes_frame(x)
  of <- row_values(data, condition, "condition")
  data <- data[setdiff(names(data), of$column)]
  value <- droplevels(as.factor(of$values))
  reference <- check_choice(reference %||% levels(value)[1L], levels(value), "reference")
  others <- setdiff(levels(value), reference)
  if (!length(others)) {
    abort_input("`condition` must have at least two different values.", x = sprintf("All values are `%s`.", reference))
  }
  numbers <- change == "shift" && all(vapply(data, is.double, NA))
  in_it <- lapply(others, function(level) {
    if (numbers) (value == level) + 0 else factor(value == level, c(FALSE, TRUE), c("no", "yes"))
  })
  names(in_it) <- paste("in", others)
  twice <- intersect(names(in_it), names(data))
  if (length(twice)) abort_input("Columns of `x` must not have the names of conditions.",
                                 x = sprintf("There is a column %s.", label_some(twice)))
  frame <- cbind(data, as.data.frame(in_it, optional = TRUE))
  forbidden <- matrix(FALSE, length(frame), length(frame))
  forbidden[, names(frame) %in% names(in_it)] <- TRUE
  about <- prepared_parts(x)
  if (!is.null(about$forbidden)) {
    own <- seq_along(data)
    forbidden[own, own] <- about$forbidden
  }
  prepared_data(frame, "weft_bn_conditions", forbidden = forbidden, interventions = about$interventions)
}
