# Results of the workflow that were saved and changed: printing, summing up, tables and figures work, or say what is
# wrong.

e <- weft_example("expression", n = 54, p = 20, seed = 4)
fit <- gene_network(e$x, e$class, batch = e$batch, seed = 2, run = weft_run(progress = FALSE),
                    steps = list(clusters = list(method = "irm", chains = 1, sweeps = 10),
                                 bayes = list(genes = 5, iterations = 300), pairs = list(permutations = 5)))

# Every place down to `depth`, with the changes in turn, from another one in each run; the calls that end in an error
# without a class.
first_change <- sample(length(changes), 1)
unclassed_after <- function(object, depth, uses) {
  found <- character()
  # without its class no method is found, and that is R's error
  places <- Filter(function(path) !identical(path, list(list("attribute", "class"))), paths(object, depth))
  for (k in seq_along(places)) {
    for (change in names(changes)[1 + (5 * k + first_change) %% length(changes)]) {
      bad <- tryCatch(suppressWarnings(damaged(object, places[[k]], changes[[change]])),
                      error = function(e) NULL) # R itself refuses some
      if (is.null(bad)) next
      for (use in names(uses)) {
        said <- unclassed(function() uses[[use]](bad))
        if (!is.null(said)) found <- c(found, paste(path_text(places[[k]]), change, use, said))
      }
    }
  }
  found
}

of_class <- function(object, uses) lapply(uses, function(f) function(x) f(structure(x, class = class(object))))

test_that("the whole result, changed in one place", {
  table <- function(what) function(x) as.data.frame(x, what = what)
  uses <- list(print = print, summary = summary, glance = glance, genes = table("genes"), samples = table("samples"),
               edges = table("edges"), directed = table("directed"), words = function(x) {
                 x <- weft:::checked_fit(x, "x")
                 weft:::reading("x", list(weft:::methods_text(x), weft:::findings_page(x), weft:::call_lines(x),
                                          weft:::date_text(x)))
               })
  expect_identical(unclassed_after(unclass(fit), 2L, of_class(fit, uses)), character())
})

test_that("figures of a changed result", {
  withr::local_pdf(NULL)
  parts <- c(samples = "components", ranking = "ranking", network = "network", bayes = "bayes", clusters = "clusters",
             outliers = "outliers")
  for (which in names(parts)) {
    step <- parts[[which]]
    drawn <- function(part) {
      other <- fit
      other[step] <- list(part)
      plot(other, which)
    }
    expect_identical(unclassed_after(fit[[step]], 1L, list(plot = drawn)), character(), info = which)
  }
})

test_that("what gene_quality() returned, changed in one place", {
  uses <- list(print = print, tidy = tidy, glance = glance, matrix = as.matrix, ranking = gene_ranking,
               components = function(x) gene_components(x, leading = 1))
  expect_identical(unclassed_after(unclass(fit$quality), 2L, of_class(fit$quality, uses)), character())
  for (value in c(NaN, 0)) {
    bad <- fit$quality
    bad$measured[] <- value
    ranked <- gene_ranking(bad)
    expect_equal(sum(ranked$q_value < 1, na.rm = TRUE), 0)
  }
  bad <- fit$quality
  bad$x[3, 4] <- NA
  expect_error(gene_mi_network(bad), "unmodified", class = "weft_error_input")
})

test_that("outliers and networks, changed in one place", {
  expect_identical(unclassed_after(fit$outliers, 1L, list(print = print, glance = glance)), character())
  file <- withr::local_tempfile(fileext = ".sif")
  uses <- list(tables = network_tables, file = function(x) write_network(x, file))
  expect_identical(unclassed_after(fit$network, 1L, uses), character())
  expect_identical(unclassed_after(fit$bayes, 1L, list(tables = network_tables)), character())
  wide <- structure(fit$network, dim = c(10L, 40L))
  expect_error(gene_bayes(fit$quality, genes = 4, network = wide), "unmodified", class = "weft_error_input")
  expect_error(gene_outliers(fit$components, data = fit$quality$x[, -1]), "complete matrix", class = "weft_error_input")
})

test_that("a damaged part is named", {
  bad <- fit
  bad$clusters$row_cluster[1] <- -1L
  expect_error(print(bad), "part `clusters` is damaged", class = "weft_error_input")
  bad <- fit
  bad$quality$class <- bad$quality$class[-1]
  expect_error(summary(bad), "part `quality` is damaged", class = "weft_error_input")
  bad <- fit
  bad$bayes$dag[1, 2] <- bad$bayes$dag[2, 1] <- 1L
  expect_error(plot(bad), "part `bayes` is damaged", class = "weft_error_input")
})
