# Principal components over ranks, or over devices: each has rows of one matrix. What is exchanged here is the same on
# every rank.

# This rank's source, with `ranks`: the rows of each.
shared_source <- function(source, method, na) {
  if (!method %in% c("auto", "krylov", "gram")) {
    abort_input("`weft_run(ranks = TRUE)` needs method \"krylov\" or \"gram\".", x = sprintf("It is \"%s\".", method))
  }
  if (na != "fail") abort_input("`weft_run(ranks = TRUE)` needs `na = \"fail\"`.", x = sprintf("It is \"%s\".", na))
  all <- ranks_gather(list(n = source$n, columns = source$p, names = source$names))
  compare_columns(all)
  source$ranks <- vapply(all, `[[`, 0, "n")
  source
}

check_shared_weights <- function(weights) {
  compare_said(ranks_gather(list(`whether there are weights` = !is.null(weights))))
  if (!is.null(weights) && any(weights == 0)) {
    abort_input("`weights` must be above 0 for `weft_run(ranks = TRUE)`.",
                i = "Remove these rows and use `predict()` on them.")
  }
}

# Moments of the ranks' rows together, in the order of the ranks. Means that are all equal stay as they are.
joint_moments <- function(parts) {
  Reduce(function(a, b) {
    weight <- a$weight + b$weight
    share <- ifelse(weight > 0, b$weight / weight, 0)
    mean <- ifelse(b$weight == 0 | a$mean == b$mean, a$mean, a$mean * (1 - share) + b$mean * share)
    mean <- ifelse(a$weight == 0, b$mean, mean)
    between <- sqrt(a$weight * share) * abs(b$mean - a$mean)
    between <- ifelse(a$weight > 0 & b$weight > 0, between, 0)
    list(mean = mean, norm = hypotenuse(hypotenuse(a$norm, b$norm), between), weight = weight,
         missing = a$missing + b$missing, infinite = a$infinite + b$infinite)
  }, parts)
}

# The left vectors of all rows: with at least as many rows as columns each rank has its own.
joint_scores <- function(solved, source, control) {
  if (sum(source$ranks) >= source$p) solved$u <- do.call(rbind, ranks_gather(solved$u, control))
  solved
}

whole_source <- function(source) {
  names <- ranks_gather(source$row_names)
  source$row_names <- if (!any(vapply(names, is.null, NA))) unlist(names)
  source$n <- sum(source$ranks)
  source
}

# The devices that rows are shared among. Where they cannot be: an error when it was asked for here, else one device.
devices_of_rows <- function(run, source, method, na, divided) {
  on <- devices_for(run$devices, run$backend)
  if (length(on) == 1L) return(on)
  why <- if (!method %in% c("auto", "krylov", "gram")) sprintf("`method` is \"%s\".", method)
  else if (source$kind == "genotypes") "`x` is genotypes in a file."
  else if (na != "fail") sprintf("`na` is \"%s\".", na)
  else if (source$kind == "resident") "`x` is already on one device."
  else if (source$kind %in% c("blocks", "stored")) "`x` is read in blocks."
  else if (!is.null(source$ranks)) "`weft_run(ranks = TRUE)` uses one device per rank."
  if (is.null(why)) return(devices_for(run$devices, run$backend, divided))
  if (is.null(run$devices)) return(first_device())
  abort_input("Several `devices` need a matrix in memory and method \"krylov\" or \"gram\".", x = why)
}

# A sparse source with at least as many blocks as parts, when it has the rows.
cut_blocks <- function(source, parts) {
  if (source$kind != "sparse" || parts == 1L || length(source$data) >= parts) return(source)
  pieces <- lapply(source$data, function(block) {
    n <- nrow(block)
    share <- ceiling(seq_len(n) * parts / max(n, 1))
    lapply(unname(split(seq_len(n), share)), function(rows) block[rows, , drop = FALSE])
  })
  source$data <- unlist(pieces, recursive = FALSE)
  source$starts <- cumsum(c(0, vapply(source$data, nrow, 0L)))[seq_along(source$data)]
  source
}
