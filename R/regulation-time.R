# Samples that are points of time series: what a gene does next is regressed on what its regulators are now.
#
# A gene follows its regulators with a delay. With the rate of decay log(2) / h, where h is the median step between two
# points, the value towards which it moves between times t and t + d is (x(t + d) - r x(t)) / (1 - r), r = 0.5^(d / h).
# This is the outcome of the sample at time t; of a sample at rest it is the sample's own value, so that samples without
# time go beside series.

# list(unit: codes from 1, time), one per sample, NA where a sample has no place in a series.
sample_times <- function(time, x, n) {
  time <- container_times(time, x)
  given <- if (is.list(time)) unclass(time) else list(time)
  if (is.list(time) && (!length(given) %in% 1:2 || !all(names(given) %in% c("time", "unit", "")))) {
    abort_input("`time` must contain the time of every sample, or be `list(time, unit)`.",
                x = paste0("It is ", describe(time), "."),
                i = "The unit is what was measured repeatedly, such as a culture, an animal or a patient.")
  }
  if (setequal(names(given), c("time", "unit"))) given <- given[c("time", "unit")]
  point <- given[[1L]]
  if (inherits(point, c("Date", "POSIXt", "difftime"))) point <- as.double(point)
  if (!is.numeric(point) || is.object(point) || any(is.infinite(point))) {
    abort_input("Times must be finite numbers, or NA for samples that belong to no series.",
                x = paste0("They are ", describe(given[[1L]]), "."))
  }
  if (length(point) != n) {
    abort_input(sprintf("`time` must have one value per row of `x` (%d).", n), x = sprintf("It has %d.", length(point)))
  }
  unit <- rep(1L, n)
  if (length(given) == 2L) {
    units <- class_input(given[[2L]], x, n, "time$unit")
    unit <- factor(units$levels[units$codes + 1L], sort(units$levels[!is.na(units$levels)]))
    unit <- as.integer(unit)
  }
  outside <- is.na(point) | is.na(unit)
  list(unit = replace(unit, outside, NA), time = replace(as.double(point), outside, NA))
}

container_times <- function(time, x) {
  if (is.list(time) && !is.object(time)) lapply(time, container_value, x, "time") else container_value(time, x, "time")
}

# list(data: what predicts; outcomes; sample: which sample each row is; order: rows of series in the order of time, one
# series after the other; about: numbers of series, transitions and samples at rest). perturbed: a gene is no outcome
# where it was perturbed, before a step or after it. Samples of one series at the same time are averaged as outcomes.
series_rows <- function(data, times, perturbed) {
  outcomes <- if (is.null(perturbed)) data else outcomes_of(data, perturbed)
  if (is.null(times)) return(list(data = data, outcomes = outcomes, sample = seq_len(nrow(data))))
  steps <- time_steps(times)
  if (!nrow(steps$each)) {
    abort_input("`time` must contain a series with at least two times.",
                x = "No sample has a later sample in its series.",
                i = "To give units, use `time = list(time, unit)`.")
  }
  left <- 0.5^(steps$each$length / stats::median(steps$each$length))
  after <- rowsum(outcomes[steps$next_sample, , drop = FALSE], steps$next_of, reorder = TRUE) /
    as.vector(table(steps$next_of))
  before <- steps$each$sample
  moved <- (after - left * outcomes[before, , drop = FALSE]) / (1 - left)
  rest <- which(!seq_len(nrow(data)) %in% c(before, steps$next_sample))
  rows <- c(before, rest)
  moved <- rbind(moved, outcomes[rest, , drop = FALSE])
  rownames(moved) <- NULL
  list(data = data[rows, , drop = FALSE], outcomes = moved, sample = rows, order = seq_along(before),
       about = list(series = length(unique(times$unit[before])), steps = length(before), rest = length(rest)))
}

# each: a data frame with a row per sample that has a later one in its series, by series and time: sample, length of the
# step; next_sample, next_of: the samples at the next time, and of which row of `each`.
time_steps <- function(times) {
  by_time <- order(times$unit, times$time, na.last = NA)
  point <- match(paste(times$unit, times$time), unique(paste(times$unit, times$time)[by_time]))
  sample <- by_time
  first <- by_time[match(unique(point[by_time]), point[by_time])] # one sample of each point
  following <- c(first[-1L], NA)
  has_next <- !is.na(following) & times$unit[first] == times$unit[following]
  of <- point[sample]
  sample <- sample[has_next[of]]
  of <- of[has_next[of]]
  nexts <- split(by_time, point[by_time])[of + 1L]
  list(each = data.frame(sample = sample, length = times$time[following[of]] - times$time[first[of]]),
       next_sample = unlist(nexts, use.names = FALSE), next_of = rep(seq_along(nexts), lengths(nexts)))
}

# Partners in null copies, from 0: rows of series meet the outcomes of rows that are some places further on, so that
# neighbours stay neighbours; the others are permuted among themselves.
series_partners <- function(partner, order, key) {
  n <- nrow(partner)
  rest <- setdiff(seq_len(n), order)
  m <- length(order)
  place <- draws("uniform", ncol(partner), key = key, stream = 73)
  for (copy in seq_len(ncol(partner))) {
    places <- 1 + floor(place[copy] * (m - 1))
    partner[rest, copy] <- rest[rank(partner[rest, copy])] - 1L
    partner[order, copy] <- order[(seq_len(m) - 1 + places) %% m + 1] - 1L
  }
  storage.mode(partner) <- "integer"
  partner
}

series_text <- function(x) {
  a <- attr(x, "series")
  if (is.null(a)) return(NULL)
  sprintf("Regulators explain the changes of their targets in %s of %s%s.", several(a$steps, "step"),
          if (a$series == 1) "one series" else paste(thousands(a$series), "series"),
          if (a$rest) sprintf(", and the levels of their targets in %s outside of series",
                              several(a$rest, "sample")) else "")
}

sound_series <- function(a) {
  is.null(a) || is.list(a) && is_number(a$series) && is_number(a$steps) && is_number(a$rest)
}
