# Data prepared for learning: rows of time series with those before them, and samples of several conditions with a node
# for each. What an edge must not do goes with them (prepared_data() in R/bn-data.R), so that every function that learns
# takes them.

#' Time series for Bayesian networks
#'
#' Makes data from which [bn_learn()], [bn_search()], [bn_exact()] and [bn_scores()] learn dynamic networks: each row
#' has the values of one point in time and, as nodes of their own, those of the `lags` points before it. Edges lead from
#' the past to the present, and with `within` also among nodes of the present; none leads into the past or into what is
#' `static`.
#'
#' Without edges within a point in time, every choice of parents is a network. [bn_exact()] then has no limit to the
#' number of nodes: the best network and the posterior `"dag"` come from each node's own sets, and `max_parents` and
#' memory alone are the limit.
#'
#' Points in time are the rows of a unit in the order of `time`; a lag of one is the row before, however long ago that
#' was. Missing values: a value that appears as one of the present and as one of the past is drawn for each of them.
#' An edge is dependence given the other nodes that were measured: with points that lie far apart, unmeasured causes, or
#' effects that are not linear it need not be an effect. On DREAM4's first network of 100 genes (10 series of 21
#' points), half of the edges stated with .98 are right (`inst/bench/bn-time.R`).
#'
#' @param x a data frame or matrix with one column per node, as for [bn_scores()].
#' @param time points in time: the name of a column of `x`, or one number or date per row.
#' @param unit which series a row belongs to: the name of a column, or one value per row; NULL: all are one series.
#' @param lags how many points back edges may reach.
#' @param within whether there may be edges within a point in time.
#' @param static names of columns that do not change within a unit, which may be parents of all others.
#' @param interventions which nodes were set from outside, one entry per row of `x`, as for [bn_scores()].
#' @return A data frame of class `weft_bn_time` with the nodes of the past (`gene[t-1]`), those that are static, and the
#'   nodes of the present, a row for each point in time that has `lags` points before it. Choose rows and columns
#'   before.
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
    abort_input("`time` must be different in all rows of a unit.", x = sprintf("Row %d has one again.", again),
                i = if (is.null(unit)) "Say with `unit` which rows are of one series.")
  }
  set <- bn_interventions(interventions, names(data), nrow(data))
  for (name in static) {
    if (any(tapply(as.character(data[[name]]), group, function(v) length(unique(v))) > 1L)) {
      abort_input("A `static` column must have one value in each unit.", x = sprintf("`%s` changes.", name))
    }
  }
  order <- order(group, as.double(of$values))
  place <- stats::ave(seq_along(order), group[order], FUN = seq_along)
  now <- which(place > lags)
  if (!length(now)) {
    abort_input("`x` must have a unit with more points in time than `lags`.",
                x = sprintf("The longest has %d, and `lags` is %d.", max(place, 0L), as.integer(lags)))
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
  abort_input(sprintf("`%s` must not have missing values.", arg), x = sprintf("%d are.", sum(is.na(of$values))))
}

#' Samples of several conditions, whose targets are not known
#'
#' Makes data from which [bn_learn()], [bn_search()], [bn_exact()] and [bn_scores()] learn what each condition acts on:
#' each condition but the reference is a node without parents, 0 or 1, and an edge from it says that a node's own
#' distribution differs under that condition, given the node's parents (Eaton and Murphy 2007). Its posterior is how
#' probable it is that the condition acts on the node directly. Where targets are known, use `interventions` of
#' [bn_scores()].
#'
#' For numbers, `change = "shift"` makes the nodes numbers: a condition moves a node's mean, and slopes and variance
#' stay (score `"bge"`). `change = "free"` makes them categories: intercept, slopes and variance are the condition's own
#' (score `"bic-cg"`, which needs more rows in each condition than there are parents). Categories have their own
#' probabilities under each condition in any case.
#'
#' That a condition acts directly is said given these variables: what acts on an unmeasured cause of a node appears as
#' acting on the node. In simulations without hidden nodes, targets stated with more than .8 were right in 96 to 100 %
#' of cases (`inst/bench/bn-time.R`).
#'
#' @param x a data frame or matrix with one column per node, as for [bn_scores()].
#' @param condition a factor, or values that become one, one per row; or the name of a column of `x`.
#' @param reference the condition without intervention; NULL: the first level.
#' @param change what conditions may do to numbers: `"shift"` or `"free"`.
#' @return A data frame of class `weft_bn_conditions`: the nodes of `x` and one named `in CONDITION` for each condition
#'   but the reference. Choose rows and columns before.
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
    abort_input("`condition` must have at least two different values.", x = sprintf("All are `%s`.", reference))
  }
  numbers <- change == "shift" && all(vapply(data, is.double, NA))
  in_it <- lapply(others, function(level) {
    if (numbers) (value == level) + 0 else factor(value == level, c(FALSE, TRUE), c("no", "yes"))
  })
  names(in_it) <- paste("in", others)
  twice <- intersect(names(in_it), names(data))
  if (length(twice)) abort_input("Columns of `x` must not be named as conditions.",
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
