# Graphs whose links come in shards, blocks of consecutive rows: read one after another, and put together into the lists
# by row that every graph has (R/irm-input.R), which may be longer than 2^31 - 1.

#' Links in shards
#'
#' `irm_shards()` describes a matrix that is read in shards: blocks of consecutive rows, one after another. With it,
#' [irm()] groups the rows and columns of graphs that no single R object can contain: a sparse Matrix has at most
#' 2^31 - 1 values, a data frame as many rows.
#'
#' `irm()` calls `read(1)` to `read(shards)` once each, in this order. A shard may be a matrix or a sparse Matrix of 0
#' and 1, or of counts for `family = "poisson"`. All shards must have the same columns. A sparse Matrix by row, such as
#' an `ngRMatrix`, is read fastest.
#'
#' `irm()` also reads a list of sparse Matrices as shards, and a [weft_store()] with more than 2^31 - 1 values.
#'
#' @section Memory: The links take 8 bytes each, half of them in R's memory and half in native memory, and those of the
#'   shard that is being read come on top. A device holds 8 bytes for each link as well. If it has less memory, the rest
#'   is sent again in every sweep. 10^10 links need 80 GB; a run on several devices divides them.
#'
#' @param read a function of the number of a shard that returns this shard, for example from a file.
#' @param shards the number of shards.
#' @return An object of class `weft_irm_shards`, for the argument `x` of [irm()] and [irm_log_posterior()].
#' @seealso [irm()]
#' @export
#' @examples
#' planted <- irm_sample(60, 40, k = 3, density = 0.3, seed = 1)
#' thirds <- irm_shards(function(i) planted$A[20 * (i - 1) + 1:20, ], 3)
#' fit <- irm(thirds, chains = 1, sweeps = 40, seed = 1)
#' identical(fit$row_cluster, irm(planted$A, chains = 1, sweeps = 40, seed = 1)$row_cluster)
irm_shards <- function(read, shards) {
  need_args("read", "shards")
  if (!is.function(read)) {
    abort_input("`read` must be a function of the number of a shard.", x = paste0("It is ", describe(read), "."))
  }
  shards <- check_number(shards, "shards", min = 1, max = most_shards, whole = TRUE)
  new_result(class = "weft_irm_shards", list(read = read, shards = shards))
}

most_shards <- 1e6

#' @export
print.weft_irm_shards <- function(x, ...) {
  parts <- whole_shards(x)
  cat(sprintf("<weft_irm_shards> %.0f shard%s\n", parts$shards, if (parts$shards == 1) "" else "s"))
  invisible(x)
}

# As irm_shards() made it.
whole_shards <- function(x) {
  check_format(x, "x")
  parts <- if (is.list(x)) unclass(x)
  if (is.function(parts$read) && is_count(parts$shards, 1, most_shards)) return(parts)
  abort_input("The shards must not have changed since `irm_shards()` returned them.", i = "Call `irm_shards()` again.")
}

is_shard_list <- function(x) {
  is.list(x) && !is.object(x) && length(x) > 0L && all(vapply(x, inherits, NA, "sparseMatrix"))
}

in_shards <- function(x) {
  inherits(x, "weft_irm_shards") || is_shard_list(x) ||
    (inherits(x, "weft_store") && whole_store(x)$values > .Machine$integer.max)
}

# list(read, shards) of everything that comes in shards.
shards_of <- function(x) {
  if (inherits(x, "weft_irm_shards")) return(whole_shards(x))
  if (is_shard_list(x)) return(list(read = function(i) x[[i]], shards = length(x)))
  file <- open_store(x)
  runs <- store_runs(file, file$about$block_values, 2^27)
  list(read = function(i) store_sparse(x, rows = seq(runs$starts[i] + 1, runs$ends[i])), shards = length(runs$starts))
}

# The graph of all shards. Only one is kept beside their lists.
shard_graph <- function(x, type, family, missing, input) {
  refuse <- function(why) abort_input("Shards must contain the links or counts of a bipartite graph.", x = why)
  if (!is.null(type) && type != "bipartite") refuse(sprintf("`type` is \"%s\".", type))
  if (family == "gaussian") refuse("`family` is \"gaussian\".")
  if (!is.null(missing)) refuse("`missing` is given.")
  if (!is.null(input$dim)) refuse("`dim` is given.")
  shards <- shards_of(x)
  lists <- row_names <- vector("list", shards$shards)
  columns <- list(n = NULL, names = NULL)
  show <- progress_function(input$progress, "Reading shards")
  for (i in seq_len(shards$shards)) {
    shard <- read_shard(shards, i, family, input)
    columns <- same_columns(columns, shard, i)
    lists[[i]] <- shard$links
    row_names[i] <- list(shard$row_names)
    if (!is.null(show)) show(i, shards$shards)
  }
  rows <- sum(vapply(lists, function(part) as.double(part$n_row), 0))
  if (rows >= .Machine$integer.max) {
    abort_input("The shards of `x` must have at most 2147483646 rows in all.", x = sprintf("They have %.0f.", rows))
  }
  named <- !any(vapply(row_names, is.null, NA))
  shard$links <- .Call(C_weft_irm_joined, lists, run_control("cpu", input$threads, FALSE)) # empties `lists`
  shard$missing[c("n_row", "start")] <- list(rows, numeric(rows + 1))
  shard["row_names"] <- list(if (named) unlist(row_names))
  shard["col_names"] <- list(columns$names)
  shard
}

# Shard i as a graph; its errors say which it is.
read_shard <- function(shards, i, family, input) {
  x <- tryCatch(shards$read(i), error = function(e) {
    if (inherits(e, "weft_error_memory")) stop(e)
    abort_input(sprintf("Shard %.0f of `x` could not be read.", i), x = conditionMessage(e))
  })
  if (!is.matrix(x) && !inherits(x, "Matrix")) {
    abort_input(sprintf("Shard %.0f of `x` must be a matrix or a sparse Matrix.", i),
                x = paste0("It is ", describe(x), "."))
  }
  graph <- tryCatch(irm_graph(x, "bipartite", family, NULL, input), weft_error_input = function(e) {
    abort_input(sprintf("Shard %.0f of `x`: %s", i, conditionMessage(e)))
  })
  if (length(graph$missing$to)) {
    abort_input(sprintf("Shard %.0f of `x` must not contain missing values.", i),
                x = sprintf("It contains %.0f.", length(graph$missing$to)))
  }
  graph
}

# list(n, names): the columns of all shards so far.
same_columns <- function(columns, shard, i) {
  n <- shard$links$n_col
  if (!is.null(columns$n) && n != columns$n) {
    abort_input("All shards of `x` must have the same columns.",
                x = sprintf("Shard %.0f has %.0f columns, but those before it have %.0f.", i, n, columns$n))
  }
  names <- shard$col_names
  if (!is.null(columns$names) && !is.null(names) && !identical(names, columns$names)) {
    at <- which(names != columns$names)[1L]
    abort_input("All shards of `x` must have the same columns.",
                x = sprintf("Column %.0f of shard %.0f is %s, but in a shard before it, it is %s.", at, i,
                            describe(names[at]), describe(columns$names[at])))
  }
  list(n = n, names = columns$names %||% names)
}
