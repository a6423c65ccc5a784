# Edge posteriors as means over random halves of the rows: what holds for one half and not for another is less certain
# than a posterior says that takes its model to be true.

check_resample <- function(resample, data, target) {
  resample <- check_number(resample, "resample", min = 0, max = 1e5, whole = TRUE)
  if (!resample) return(0)
  if (target == "max") {
    abort_input("`resample` needs a target with edge posteriors.", x = "The target is \"max\".",
                i = "Write `target = \"sum\"` or \"uniform\".")
  }
  if (inherits(data, "weft_bn_scores")) {
    abort_input("`resample` needs the data, because it draws rows.",
                x = "`x` is a table returned by `bn_scores()`.")
  }
  resample
}

# `again`: learns from a part of the rows, and returns the edge posteriors.
resample_edges <- function(fit, data, times, again, ..., interventions = NULL, na = "fail") {
  input <- memory_errors(bn_input(data, fit$table$type, interventions, na))
  whole <- rows_of_input(input)
  key <- fit$run$key
  total <- 0
  for (k in seq_len(times)) {
    rows <- sort(order(draws("uniform", input$n, key = key, stream = k))[seq_len(ceiling(input$n / 2))])
    set <- if (!is.null(input$set)) lapply(rows, function(i) input$names[input$set[i, ] != 0])
    part <- whole[rows, , drop = FALSE]
    if (!is.null(input$forbidden)) part <- prepared_data(part, NULL, forbidden = input$forbidden)
    total <- total + again(part, interventions = set, ...,
                           seed = (key[1L] * 2^20 + key[2L] + k) %% 2^53)
  }
  fit$edges_all_rows <- fit$edges
  fit$edges <- total / times
  fit$resample <- times
  fit
}

# Data in which every half has the levels of all rows.
rows_of_input <- function(input) {
  if (is.null(input$codes)) return(stats::setNames(as.data.frame(input$x), input$names))
  columns <- lapply(seq_len(input$p), function(j) {
    if (isTRUE(input$number[j])) return(input$x[, j] * exp(input$log_unit[j]))
    factor(input$labels[[j]][input$codes[, j] + 1L], input$labels[[j]])
  })
  as.data.frame(stats::setNames(columns, input$names), optional = TRUE)
}
