# Saved objects with one part spoilt, and what comes of using them: a classed error or a result, nothing else.

# Values that a part may have in a damaged file; `v` is what it should be.
spoilt_values <- function(v) {
  n <- length(v)
  out <- list(null = NULL, na = NA, text = "spoilt", list = list(), empty = v[0L], minus = -1, huge = 1e9,
              beyond = 2^31, inf = Inf,
              nan = NaN, true = TRUE, closure = function(...) "spoilt", space = emptyenv(), symbol = as.name("spoilt"))
  if (n > 1L) out <- c(out, list(short = v[-n], one = v[1L]))
  if (n) out$long <- if (is.environment(v) || is.function(v)) v else c(v, v)
  if (is.numeric(v) && n) {
    for (bad in c(NA, NaN, Inf, -Inf, -1, 0.5, 1e9, -2^31, 1e300)) {
      value <- if (is.integer(v) && bad %in% c(NA, -1, 1e9)) as.integer(bad) else bad # of its type
      out[[paste("first", bad)]] <- replace(v, 1L, value)
      out[[paste("last", bad)]] <- replace(v, n, value)
    }
    out$whole <- replace(v, n, 1000000L)
    out$reversed <- replace(v, seq_len(n), rev(v))
    out$as_text <- replace(v, seq_len(n), as.character(v))
  }
  if (is.integer(v)) out$double <- v + 0
  if (is.character(v) && n) {
    out <- c(out, list(na_first = replace(v, 1L, NA), twice = rep(v[1L], n), blank = replace(v, 1L, "")))
  }
  if (is.atomic(v) && n > 1L) { # what is said to be a factor, and has codes without a level
    out$no_levels <- said_to_be("factor", rep_len(c(1L, 5L, -3L, NA), n))
    out$far_codes <- said_to_be("factor", rep_len(c(1L, 5L, -3L), n), levels = c("a", "b"))
  }
  if (is.data.frame(v) && n && nrow(v)) {
    out$far_column <- replace(v, 1L, list(said_to_be("factor", rep_len(c(2L, 1000000L), nrow(v)), levels = "a")))
  }
  if (is.logical(v) && n) out$na_first <- replace(v, 1L, NA)
  if (is.matrix(v)) {
    out <- c(out, list(turned = t(v), flat = c(v), fewer_rows = v[-1L, , drop = FALSE],
                       fewer_columns = v[, -1L, drop = FALSE],
                       nameless = unname(v)))
  }
  if (is.list(v) && !is.null(names(v)) && n) out$renamed <- stats::setNames(v, paste0(names(v), "x"))
  out
}

# list(what, object): `x` with each of its parts, and theirs, spoilt in each way. Lists without names: the first element
# alone.
damaged_copies <- function(x, depth = 3L, at = "") {
  out <- list()
  put <- function(part, value, what) {
    y <- unclass(x)
    if (is.null(value)) y[part] <- NULL else y[[part]] <- value
    attributes(y) <- c(list(names = names(y)),
                       attributes(x)[setdiff(names(attributes(x)), c("names", if (is.null(names(y))) "row.names"))])
    out[[length(out) + 1L]] <<- list(what = what, object = y)
  }
  parts <- if (is.null(names(x))) head(seq_along(x), 1L) else seq_along(x)
  for (part in parts) {
    label <- paste0(at, "$", if (is.null(names(x))) part else names(x)[part])
    v <- unclass(x)[[part]]
    values <- spoilt_values(v)
    for (k in seq_along(values)) put(part, values[[k]], paste(label, names(values)[k]))
    if (is.list(v) && depth > 1L && length(v)) {
      for (inner in damaged_copies(v, depth - 1L, label)) put(part, inner$object, inner$what)
    }
  }
  for (name in setdiff(names(attributes(x)), c("names", "class", "row.names", "call"))) {
    values <- spoilt_values(attr(x, name))
    for (k in seq_along(values)) {
      y <- x
      attr(y, name) <- values[[k]]
      out[[length(out) + 1L]] <- list(what = paste0(at, "@", name, " ", names(values)[k]), object = y)
    }
  }
  out
}

# Uses of damaged copies; what ended in anything but a classed error or a result. `share`: one of so many, each use
# others, and others in each run; those that `native` names, which lead to native code, one of four.
unclassed_uses <- function(x, uses, share = 1L, native = character(), seconds = 60) {
  found <- character()
  copies <- damaged_copies(x)
  first <- sample(share, 1L)
  grDevices::pdf(NULL)
  on.exit({ setTimeLimit(); grDevices::dev.off() })
  for (k in seq_along(copies)) for (u in seq_along(uses)) {
    if ((k + 7L * u + first) %% (if (names(uses)[u] %in% native) min(share, 4L) else share) != 0L) next
    setTimeLimit(cpu = seconds, transient = TRUE) # of the processor: the machine may be busy
    said <- tryCatch({
      utils::capture.output(suppressMessages(suppressWarnings(uses[[u]](copies[[k]]$object))))
      NULL
    }, weft_error = function(e) NULL, error = function(e) conditionMessage(e))
    setTimeLimit()
    if (!is.null(said)) found <- c(found, sprintf("%s of %s: %s", names(uses)[u], copies[[k]]$what, said))
  }
  found
}

# ---- what is saved, and everything that takes it: list(object, uses, native) ----

# One picture in `drawn` is drawn (0: none); the others are only built from their data, which takes a fifth of the time
# and is where wrong data fail.
damage_cases <- function(drawn = 0) {
  pictures <- 0
  picture <- function(x) {
    if (!requireNamespace("ggplot2", quietly = TRUE)) return()
    made <- ggplot2::autoplot(x)
    pictures <<- pictures + 1
    if (drawn && pictures %% drawn == 0) made else invisible(ggplot2::ggplot_build(made))
  }
  d <- bn_test_data(120)[1:4]
  numbers <- withr::with_seed(1, data.frame(a = stats::rnorm(50), b = stats::rnorm(50), c = stats::rnorm(50)))
  chain <- matrix(c(0, 0, 0, 1, 0, 0, 0, 1, 0), 3L, dimnames = list(names(numbers), names(numbers)))
  run <- function(...) call_with(bn_learn, list(d, iterations = 60, chains = 2, top = 3, seed = 1, ...,
                                                control = list(thin = 5)))
  exact <- bn_exact(d, posterior = "dag")
  shown <- list(print = print, summary = summary, frame = as.data.frame, tidy = tidy, glance = glance,
                picture = picture)
  network <- c(shown, list(
    plot = plot, trace = function(x) plot(x, "trace"), scores = function(x) plot(x, "score"),
    posterior = function(x) plot(x, "posterior"),
    convert = bn_convert, coda = function(x) bn_convert(x, "coda"), igraph = function(x) bn_convert(x, "igraph"),
    cpdag = bn_cpdag,
    compare = function(x) bn_compare(x, exact$dag), truth = function(x) bn_compare(exact, x),
    fit = function(x) bn_fit(d, x),
    score = function(x) bn_score(d, x), start = function(x) bn_learn(d, iterations = 5, start = x, seed = 1),
    update = function(x) stats::update(x, iterations = 10), tables = network_tables
  ))
  learn <- function(...) function(x) call_with(bn_learn, list(x, iterations = 20, chains = 2, seed = 1, ...,
                                                              control = list(thin = 2)))
  table <- c(shown, list(learn = learn(), sum = learn(target = "sum"),
                         uniform = learn(target = "uniform"), exact = bn_exact,
                         order = function(x) bn_exact(x, posterior = "order"),
                         dag = function(x) bn_exact(x, posterior = "dag")))
  fit <- function(data) list(
    print = print, tidy = tidy, glance = glance, picture = picture, sample = function(x) bn_sample(x, 5, seed = 1),
    do = function(x) bn_sample(x, 5, do = list(a = 1), seed = 1), lik = function(x) bn_log_lik(x, data),
    convert = bn_convert,
    predict = function(x) stats::predict(x, data[-1L], "a"),
    class = function(x) stats::predict(x, data[1:2], "c", "class")
  )
  prior <- bn_prior(d, required = cbind("a", "b"), known = data.frame("c", "d", 0.7))
  x <- as.matrix(datasets::USArrests)
  components <- c(shown[names(shown) != "frame"], list(
    predict = stats::predict, rows = function(m) stats::predict(m, x[1:3, ]), fitted = stats::fitted,
    residuals = function(m) stats::residuals(m, x),
    columns = function(m) stats::predict(m, cbind(z = seq_len(50) %% 7), type = "columns"),
    loadings = function(m) tidy(m, "v"),
    values = function(m) tidy(m, "d"), augment = augment, augment_data = function(m) augment(m, data = x),
    augment_new = function(m) augment(m, newdata = x), plot = plot
  ))
  gap <- replace(x, 3L, NA)
  list(
    "a search" = list(run(), network, "update"), "drawn networks" = list(run(target = "sum"), network, "update"),
    "an exact network" = list(exact, network, "convert"),
    "a table" = list(bn_scores(d, 2, keep = "all"), table, c("learn", "sum", "exact")),
    "a Gaussian table" = list(bn_scores(numbers, 2, "bge"), table, "learn"),
    "a fit" = list(bn_fit(d, exact), fit(d), c("sample", "predict")),
    "a Gaussian fit" = list(bn_fit(numbers, chain), fit(numbers), c("sample", "predict")),
    "a prior" = list(prior, list(print = print, scores = function(x) bn_scores(d, prior = x),
                                 score = function(x) bn_score(d, exact, prior = x)), "scores"),
    "a comparison" = list(bn_compare(run(target = "sum"), exact),
                          c(shown[names(shown) != "summary"], list(plot = plot)), "print"),
    "components" = list(pca(x, 2, scale = TRUE, weights = rep(1:2, 25), seed = 1), components, c("rows", "residuals")),
    "plain components" = list(pca(unname(x), center = FALSE, seed = 1), components, "rows"),
    "components of what is observed" = list(pca(gap, 2, na = "em", seed = 1), components, "fitted"),
    "a number of components" = list(pca_choose_k(x, "q2"),
                                    c(shown[c("print", "tidy", "glance", "picture")], list(plot = plot)), "print")
  )
}
