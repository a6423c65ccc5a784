# R's lists of kinds have the names of the sheets in C (src/*/*_kinds.h), and functions offer just these.

offered <- function(f, arg = "score") eval(formals(f)[[arg]], asNamespace("weft"))

test_that("scores of networks are those of bn_score_kinds.h", {
  kinds <- .Call(weft:::C_weft_bn_score_kinds)
  expect_identical(kinds$name, weft:::bn_score_types)
  for (f in list(bn_scores, bn_local_score, bn_score, bn_learn, bn_exact)) expect_identical(offered(f), kinds$name)
  expect_setequal(setdiff(offered(gene_bayes), "auto"), kinds$name)
  expect_identical(kinds$name[kinds$gauss], "bge")
  expect_identical(kinds$name[!kinds$device], c("bds", "bge"))
  expect_identical(kinds$name[!kinds$joint], c("k2", "bds"))
})

test_that("a score that C does not know is an internal error", {
  d <- data.frame(a = rep(1:2, 5), b = rep(1:2, each = 5))
  problem <- weft:::bn_problem(weft:::bn_input(d, "bdeu"), "bdeu", 1, NULL, 1)
  call <- function(problem) .Call(weft:::C_weft_bn_screen, weft:::bn_native_problem(problem), weft:::run_control("cpu", 1, FALSE))
  expect_identical(dim(call(problem)), c(2L, 2L))
  expect_error(call(replace(problem, "score", "other")), "no kind \"other\"", class = "weft_error_internal")
  expect_error(call(replace(problem, "score", 1L)), "`score`", class = "weft_error_internal")
  expect_error(call(problem[names(problem) != "ess"]), "lacks the element `ess`", class = "weft_error_internal")
  expect_error(call(replace(problem, "levels", list(2L))), "`levels`", class = "weft_error_internal")
})
