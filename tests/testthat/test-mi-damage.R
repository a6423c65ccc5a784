# What comes back from users with a part changed: a result or a classed error, never a crash. Under the sanitizers this
# is where native code would be seen to trust it.

test_that("results, bins, packs and files with one part changed are used or refused", {
  skip_if_not_installed("igraph")
  made <- 0
  cases <- mi_damage_cases()
  for (name in names(cases)) { # of each copy a third of the uses; all: proofs/damaged.R
    objects <- mi_damaged(cases[[name]][[1L]])
    made <- made + length(objects)
    expect_identical(mi_unclassed_uses(objects, cases[[name]][[2L]], share = 3L), character(), info = name)
  }
  expect_gt(made, 1000)
})

test_that("networks of another shape are refused by every native pass", {
  net <- mi_network(errors_data(errors_folder())$numbers, "mrnet", estimator = "pearson")
  narrow <- structure(unclass(net)[, 1:3], class = class(net))
  one_bar <- list(kind = integer(nrow(net)), bar = matrix(0))
  native <- list(
    function(w) .Call(weft:::C_weft_mi_reaching, w, 0, TRUE, weft:::pass_control()),
    function(w) .Call(weft:::C_weft_mi_greatest, w, w, 0, 1, weft:::pass_control()),
    function(w) .Call(weft:::C_weft_mi_cut_edges, w, w, 0, 1, weft:::pass_control()),
    function(w) .Call(weft:::C_weft_mi_reaching_thresholds, w, one_bar, weft:::pass_control()),
    function(w) .Call(weft:::C_weft_mi_cut_thresholds, w, w, one_bar, weft:::pass_control()),
    function(w) .Call(weft:::C_weft_mi_edge_list, w, numeric(5), weft:::pass_control()),
    function(w) {
      .Call(weft:::C_weft_mi_network, w, list(method = "aracne", eps = 0, keep = 1, least = 0), weft:::pass_control())
    }
  )
  for (pass in native) {
    for (w in list(narrow, c(unclass(net)), matrix(1L, 2, 2), NULL,
                   list())) expect_error(pass(w), class = "weft_error_input")
  }
  for (bars in list(list(kind = integer(2), bar = matrix(0)), replace(one_bar, "kind", list(c(0L, 1L, 0L, 0L, 0L))),
                    replace(one_bar, "kind", list(c(0L, -1L, 0L, 0L, 0L))), one_bar["bar"], NULL)) {
    expect_error(.Call(weft:::C_weft_mi_reaching_thresholds, unclass(net), bars, weft:::pass_control()),
                 class = "weft_error_internal")
  }
  small <- matrix(0, 2, 2)
  expect_error(.Call(weft:::C_weft_mi_cut_thresholds, unclass(net), small, one_bar, weft:::pass_control()),
               class = "weft_error_input")
  expect_error(.Call(weft:::C_weft_mi_cut_edges, unclass(net), small, 0, 1, weft:::pass_control()),
               class = "weft_error_input")
  expect_error(.Call(weft:::C_weft_mi_edge_list, net, c(0, 5, 1, 2, 3), weft:::pass_control()),
               class = "weft_error_internal")
})

test_that("sparse matrices with wrong slots are refused by every function that takes them", {
  set.seed(1)
  good <- Matrix::rsparsematrix(40, 12, 0.3, rand.x = function(n) rep(1, n))
  class <- rep(0:1, 20)
  slot <- function(x, name, value) `attr<-`(x, name, value)
  at <- function(x, name, k, value) { v <- attr(x, name); v[k] <- value; slot(x, name, v) }
  bad <- list(
    `i large` = at(good, "i", 3, 5000000L), `i negative` = at(good, "i", 3, -1L), `i missing` = at(good, "i", 3, NA),
    `i twice` = at(good, "i", 2, good@i[1]), `i short` = slot(good, "i", good@i[-1]), `i text` = slot(good, "i", "a"),
    `i numbers` = slot(good, "i", as.double(good@i)), `p falls` = at(good, "p", 4, 0L),
    `p large` = at(good, "p", 4, 10000L),
    `p beyond` = at(good, "p", 13, 10000L), `p begins late` = at(good, "p", 1, 1L), `p missing` = at(good, "p", 4, NA),
    `p short` = slot(good, "p", good@p[-1]), `p none` = slot(good, "p", NULL), `x short` = slot(good, "x", good@x[-1]),
    `x text` = slot(good, "x", rep("a", length(good@x))), `x none` = slot(good, "x", NULL),
    `Dim` = slot(good, "Dim", c(40L, 13L)),
    `Dim small` = slot(good, "Dim", c(3L, 12L)), `Dim one` = slot(good, "Dim", 40L),
    `Dim missing` = slot(good, "Dim", c(NA, 12L)),
    `Dimnames` = slot(good, "Dimnames", list(NULL, "a")), `Dimnames none` = slot(good, "Dimnames", NULL)
  )
  rows <- methods::as(good, "RsparseMatrix")
  triplets <- methods::as(good, "TsparseMatrix")
  symmetric <- Matrix::crossprod(good)
  bad <- c(bad, `row j` = at(rows, "j", 1, 99L), `row p` = at(rows, "p", 3, 999L),
           `triplet i` = at(triplets, "i", 1, -1L),
           `triplet j` = at(triplets, "j", 1, 99L), `triplet length` = slot(triplets, "j", 0L),
           uplo = slot(symmetric, "uplo", "Q"),
           pattern = at(methods::as(good, "nMatrix"), "i", 1, 99L),
           logical = at(methods::as(good, "lMatrix"), "p", 2, -5L))
  takes <- list(
    mi_rank = function(m) mi_rank(m, class), mi_pack = mi_pack, mi_matrix = mi_matrix,
    mi_select = function(m) mi_select(m, class, 2),
    numbers = function(m) mi_matrix(m, estimator = "pearson"),
    y = function(m) mi_matrix(matrix(1:40), m, estimator = "pearson"),
    bins = function(m) mi_rank(m, class, bins = 2), discretize = discretize, bn_scores = bn_scores,
    pca = function(m) pca(m, 2),
    blocks = function(m) pca(list(good, m), 2), predict = function(m) predict(pca(as.matrix(good), 2), m),
    irm = function(m) irm(m, chains = 1, sweeps = 2, run = weft_run(progress = FALSE)),
    kernel_sum = function(m) kernel_sum(m, bandwidth = 1),
    missing = function(m) irm(as.matrix(good), missing = m, chains = 1, sweeps = 2, run = weft_run(progress = FALSE)),
    gene_quality = function(m) gene_quality(m)
  )
  for (take in names(takes)) {
    for (label in names(bad)) expect_error(takes[[take]](bad[[label]]), class = "weft_error_input",
                                           info = paste(take, label))
  }
  same <- mi_rank(good, class)$mi
  for (m in list(rows, triplets)) expect_identical(mi_rank(m, class)$mi, same)
  expect_identical(mi_rank(methods::as(good, "nMatrix"), class)$mi, same)
  expect_null(weft:::matrix_problem(symmetric))
  expect_null(weft:::matrix_problem(Matrix::Diagonal(3)))
  expect_null(weft:::matrix_problem(Matrix::Matrix(1:4 + 0, 2)))
  expect_null(weft:::matrix_problem(good[0, ]))
  expect_null(weft:::matrix_problem(good[, 0]))
})

test_that("data frames whose columns do not fit are refused", {
  frame <- function(...) structure(list(...), class = "data.frame", row.names = 1:4)
  for (x in list(frame(a = 1:4, b = 1:3), frame(a = 1:4, b = NULL), frame(a = 1:5, b = 1:5),
                 structure(1:4, class = "data.frame"))) {
    expect_error(mi_rank(x, rep(0:1, 2)), class = "weft_error_input")
    expect_error(mi_matrix(x, estimator = "pearson"), class = "weft_error_input")
    expect_error(discretize(x), class = "weft_error_input")
  }
})
