# How much of a network stays when some samples are left out.

# How many further runs show it: none where that was not asked for and would take long. `seconds`: of one run.
stability_runs <- function(stability, n, copies, seconds) {
  if (n < 5L || isFALSE(stability)) return(0L)
  if (isTRUE(stability) || copies > 0 && seconds < 1.1) 3L else 0L
}

# list(overlap, top, left_out, samples, runs): the share of the heaviest edges that are among the heaviest again when
# one sample, or one of a hundred, is left out; the mean over runs that leave out others.
regulation_stability <- function(data, found, runs, how) {
  n <- nrow(data)
  left_out <- max(1L, as.integer(n %/% 100L))
  plan <- list(count = runs, purpose = 1, key = how$key)
  orders <- .Call(C_weft_regulation_orders, sample_names(data), plan, how$host)
  top <- min(1000L, ncol(found$weights), length(found$edges$area))
  whole <- heaviest(found, top)
  how$copies <- 0
  how$half <- if (is.null(how$blocks)) half_of(n - left_out)
              else how$blocks %/% 2L * ((n - left_out) %/% how$blocks)
  overlap <- vapply(seq_len(runs), function(k) {
    rows <- -(orders[seq_len(left_out), k] + 1L)
    rest <- data[rows, , drop = FALSE]
    how$size <- how$size[rows]
    how$outcomes <- if (!is.null(how$outcomes)) how$outcomes[rows, , drop = FALSE]
    how$shifts <- if (!is.null(how$shifts)) shifts_without(how$shifts, how$sample[-rows])
    how$order <- NULL # there are no null copies
    scores <- scores_of(rest, how$size, how$host)
    choices <- outcome_choices(scores, halves_of(rest, how), how, part_of_runs(1 + k, 1 + runs))
    mean(whole %in% heaviest(regulation_network(choices, 0, common_of(rest, scores, how), how), top))
  }, 0)
  list(overlap = if (top > 0) mean(overlap) else NA_real_, top = top, left_out = left_out, samples = n, runs = runs)
}

# Numbers of the pairs with the greatest weights; of equal ones the first.
heaviest <- function(found, top) {
  pair <- pair_number(found$edges, dim(found$weights))
  utils::head(pair[order(-found$weights[pair], pair)], top)
}

# A sentence for print and reports, or NULL where it was not computed.
stability_text <- function(x) {
  s <- attr(x, "stability")
  if (is.null(s) || is.na(s$overlap)) return(NULL)
  sprintf("Without %s of %s samples, %.0f %% of the %s strongest edges are recovered (mean of %d runs).",
          if (s$left_out == 1) "one" else thousands(s$left_out), thousands(s$samples),
          100 * s$overlap, thousands(s$top), s$runs)
}
