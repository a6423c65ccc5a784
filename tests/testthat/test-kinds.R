# R's lists of kinds have the names of the sheets in C (`kinds.h` in the rooms of src/), and functions offer just these.

offered <- function(f, arg = "score") eval(formals(f)[[arg]], asNamespace("weft"))

test_that("scores of networks are those of score_kinds.h", {
  kinds <- .Call(weft:::C_weft_bn_score_kinds)
  expect_identical(kinds$name, weft:::bn_score_types)
  for (f in list(bn_scores, bn_local_score, bn_score)) expect_identical(offered(f), kinds$name)
  for (f in list(bn_learn, bn_exact)) expect_identical(offered(f), kinds$name[1L])
  expect_setequal(setdiff(offered(weft:::gene_bayes_control), "auto"),
                  setdiff(kinds$name, weft:::mixed_scores)) # genes are of one kind
  expect_identical(kinds$name[kinds$gauss], "bge")
  expect_identical(kinds$name[!kinds$device], c("bds", "bge", weft:::mixed_scores))
  expect_identical(kinds$name[!kinds$joint], c("k2", "bds", weft:::mixed_scores))
})

test_that("a score that C does not know is an internal error", {
  d <- data.frame(a = rep(1:2, 5), b = rep(1:2, each = 5))
  problem <- weft:::bn_problem(weft:::bn_input(d, "bdeu"), "bdeu", 1, NULL, 1)
  control <- weft:::run_control("cpu", 1, FALSE)
  call <- function(problem) .Call(weft:::C_weft_bn_screen, weft:::bn_native_problem(problem), control)
  expect_identical(dim(call(problem)), c(2L, 2L))
  expect_error(call(replace(problem, "score", "other")), "no kind \"other\"", class = "weft_error_internal")
  expect_error(call(replace(problem, "score", 1L)), "`score`", class = "weft_error_internal")
  expect_error(call(problem[names(problem) != "ess"]), "has no element `ess`", class = "weft_error_internal")
  expect_error(call(replace(problem, "levels", list(2L))), "`levels`", class = "weft_error_internal")
})

test_that("kinds of mutual information are those of the sheets", {
  kinds <- .Call(weft:::C_weft_mi_kinds)
  expect_identical(kinds$network, names(weft:::network_methods))
  expect_identical(offered(mi_network, "method"), kinds$network)
  expect_setequal(setdiff(offered(gene_mi_network, "method"), "auto"), kinds$network)
  expect_identical(kinds$select, names(weft:::select_methods))
  expect_identical(offered(mi_select, "method"), kinds$select)
  expect_identical(kinds$entropy, weft:::count_estimators)
  expect_identical(kinds$numeric, weft:::numeric_estimators)
  expect_identical(offered(mi_matrix, "estimator"), c(kinds$entropy, kinds$numeric))
  expect_identical(kinds$bins, c("equalfreq", weft:::class_cuts))
  expect_setequal(offered(discretize, "method"), c(kinds$bins, "equalwidth", "sd"))
})

test_that("kinds of mutual information that C does not know are internal errors", {
  m <- diag(3)
  control <- weft:::run_control("cpu", 1, FALSE)
  network <- list(method = "aracne", eps = 0, keep = 1, least = 0)
  numeric <- list(estimator = "pearson", split = 0L, k = 3L)
  calls <- list(
    function(how) .Call(weft:::C_weft_mi_network, m, how, control), network,
    function(how) .Call(weft:::C_weft_mi_numeric, m, how, control), numeric,
    function(how) .Call(weft:::C_weft_mi_select, m, c(0L, 1L, 0L), 2L, FALSE, how, control),
    list(method = "jmi", k = 2),
    function(how) .Call(weft:::C_weft_mi_cuts, m, how, NULL, 0L, control), list(method = "equalfreq", bins = 2)
  )
  for (k in seq(1, length(calls), 2)) {
    call <- calls[[k]]
    how <- calls[[k + 1L]]
    expect_false(is.null(call(how)))
    expect_error(call(replace(how, 1L, "other")), "no kind \"other\"", class = "weft_error_internal")
    for (name in names(how)) {
      lacks <- sprintf("has no element `%s`", name)
      expect_error(call(how[names(how) != name]), lacks, class = "weft_error_internal")
    }
    expect_error(call(c(how, other = 1)), "`other`, which is unknown", class = "weft_error_internal")
  }
  counts <- function(estimator) .Call(weft:::C_weft_mi_matrix_counts, m, NULL, estimator, FALSE, control)
  expect_error(counts("other"), "no kind", class = "weft_error_internal")
  expect_error(counts(1L), "must be a word", class = "weft_error_internal")
})
