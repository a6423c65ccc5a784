# Graphs that come in shards against the same graph in memory, and against the plain matrix.

planted <- function(...) irm_sample(90, 70, k = 3, density = 0.3, seed = 5, ...)$A
by_row <- function(x) methods::as(methods::as(x, "generalMatrix"), "RsparseMatrix")
rows_of <- function(x, ends) {
  begins <- c(0, ends[-length(ends)])
  function(i) x[seq(begins[i] + 1, ends[i]), , drop = FALSE]
}
outcome <- function(...) {
  fit <- irm(..., chains = 2, sweeps = 12, seed = 7)
  fit[c("row_cluster", "col_cluster", "log_posterior", "n_clusters", "consensus", "certainty", "coassignment", "eta",
        "links", "pairs", "nmi", "alpha", "beta")]
}

test_that("shards of every form and size give the labels of the matrix", {
  skip_if_not_installed("Matrix")
  A <- planted()
  whole <- outcome(as.matrix(A) * 1)
  for (form in list(identity, by_row, function(x) methods::as(x, "TsparseMatrix"), as.matrix,
                    function(x) as.matrix(x) * 1)) {
    for (ends in list(90, c(1, 2, 90), seq(9, 90, 9))) {
      expect_identical(outcome(irm_shards(rows_of(form(A), ends), length(ends))), whole)
    }
  }
  expect_identical(outcome(by_row(A)), whole)
  expect_identical(outcome(list(A[1:40, ], by_row(A[41:90, ]))), whole)
  twice <- weft_run(threads = 2)
  expect_identical(outcome(irm_shards(rows_of(A, c(30, 90)), 2), run = twice), whole)
})

test_that("counts, rows without links, and names come in shards", {
  skip_if_not_installed("Matrix")
  set.seed(2)
  counts <- matrix(stats::rpois(40 * 30, 0.4), 40, dimnames = list(paste0("r", 1:40), paste0("c", 1:30)))
  counts[11:20, ] <- 0 # a shard without links
  fit <- outcome(irm_shards(rows_of(counts, c(10, 20, 40)), 3), family = "poisson")
  expect_identical(fit, outcome(counts, family = "poisson"))
  expect_named(fit$row_cluster, rownames(counts))
  sparse <- by_row(Matrix::Matrix(counts, sparse = TRUE))
  expect_identical(outcome(irm_shards(rows_of(sparse, c(10, 20, 40)), 3), family = "poisson"), fit)
  above <- outcome(irm_shards(rows_of(counts, c(10, 40)), 2), control = list(threshold = 1))
  expect_identical(above, outcome((counts > 1) * 1))
  for (form in c("CsparseMatrix", "RsparseMatrix", "TsparseMatrix")) {
    for (threshold in c(0, 1, 1e6)) {
      stored <- methods::as(methods::as(sparse, "generalMatrix"), form)
      expect_identical(outcome(stored, control = list(threshold = threshold)), outcome((counts > threshold) * 1))
      expect_identical(outcome(stored, family = "poisson", control = list(threshold = threshold)),
                       outcome((counts > threshold) * 1, family = "poisson"))
    }
  }
  part <- rows_of(counts, c(10, 40))
  unnamed <- irm_shards(function(i) if (i == 1) unname(part(i)) else part(i), 2)
  expect_null(names(outcome(unnamed, family = "poisson")$row_cluster))
})

test_that("what follows a fit is the same as for the matrix", {
  skip_if_not_installed("Matrix")
  A <- planted()
  shards <- irm_shards(rows_of(A, c(50, 90)), 2)
  one <- function(x, ...) irm(x, chains = 1, sweeps = 8, seed = 3, ...)
  pairs <- cbind(1:5, 5:1)
  expect_identical(predict(one(shards), pairs), predict(one(A), pairs))
  expect_identical(update(one(shards), sweeps = 4)$log_posterior, update(one(A), sweeps = 4)$log_posterior)
  expect_identical(one(shards, hold_out = 0.1)$auc, one(A, hold_out = 0.1)$auc)
  file <- tempfile()
  again <- one(shards, control = list(checkpoint = file, checkpoint_sweeps = 3))
  expect_identical(irm_resume(file)$row_cluster, again$row_cluster)
  expect_false("prepared" %in% names(again$run$graph))
  z <- rep(1:2, length.out = 90)
  w <- rep(1:2, length.out = 70)
  expect_identical(irm_log_posterior(shards, z, w), irm_log_posterior(A, z, w))
  saved <- tempfile()
  saveRDS(one(shards), saved)
  expect_identical(update(readRDS(saved), sweeps = 2)$row_cluster, update(one(A), sweeps = 2)$row_cluster)
})

test_that("a sparse Matrix by row with missing or other values becomes pairs as others do", {
  skip_if_not_installed("Matrix")
  A <- as.matrix(planted()) * 1
  A[3, 4] <- A[80, 7] <- NA
  expect_identical(outcome(by_row(Matrix::Matrix(A, sparse = TRUE))), outcome(A))
  hidden <- cbind(c(2, 5), c(9, 1))
  B <- as.matrix(planted()) * 1
  expect_identical(outcome(by_row(planted()), missing = hidden), outcome(B, missing = hidden))
  square <- B[1:70, ]
  square <- pmax(square, t(square))
  one_mode <- function(x, type) irm(x, type = type, chains = 1, sweeps = 6, seed = 1)$row_cluster
  for (type in c("undirected", "directed")) {
    sparse <- Matrix::Matrix(square, sparse = TRUE, doDiag = FALSE)
    expect_identical(one_mode(by_row(sparse), type), one_mode(square, type))
  }
})

test_that("a store of links is read in shards when one Matrix cannot contain it", {
  skip_if_not_installed("Matrix")
  A <- planted() * 1
  store <- weft_import(A, tempfile(fileext = ".weft"))
  expect_false(weft:::in_shards(store))
  graph <- weft:::shard_graph(store, NULL, "bernoulli", NULL, list(self = FALSE))
  expect_identical(graph$links, weft:::irm_graph(A)$links)
})

test_that("shards that cannot be used are errors that name them", {
  skip_if_not_installed("Matrix")
  A <- planted()
  refused <- function(second, message, ...) {
    shards <- irm_shards(function(i) if (i == 2) second() else A, 3)
    expect_error(irm(shards, sweeps = 2, ...), message, class = "weft_error_input")
  }
  refused(function() stop("no such file"), "Shard 2 of `x` could not be read.*no such file")
  refused(function() A[, -1], "Shard 2 has 69 columns, but those before it have 70")
  refused(function() A[0, ], "Shard 2 of `x`.*at least one row")
  refused(function() NULL, "Shard 2 of `x` must be a matrix.*NULL")
  refused(function() data.frame(1, 2), "Shard 2 of `x` must be a matrix")
  refused(function() A * 2, "Shard 2 of `x`.*only 0 and 1")
  refused(function() -A, "Shard 2 of `x`.*whole numbers", family = "poisson")
  refused(function() matrix(NA, 2, 70), "Shard 2 of `x` must not contain missing values.*140")
  twice <- Matrix::sparseMatrix(i = c(1, 1), j = c(2, 2), x = 1, dims = c(2, 70), repr = "T")
  refused(function() twice, "Shard 2 of `x`.*only 0 and 1")
  for (wrong in c(70L, -1L, NA)) {
    refused(function() {
      bad <- by_row(A)
      bad@j[5] <- wrong
      bad
    }, "Shard 2 of `x`.*valid Matrix")
  }
  refused(function() {
    bad <- by_row(A)
    bad@j[1:2] <- bad@j[1]
    bad
  }, "Shard 2 of `x`.*does not increase")
  names <- irm_shards(function(i) {
    colnames(A) <- paste0(c("a", "b")[i], 1:70)
    A
  }, 2)
  expect_error(irm(names, sweeps = 2), "Column 1 of shard 2 is \"b1\"", class = "weft_error_input")
  fine <- irm_shards(function(i) A, 2)
  expect_error(irm(fine, type = "directed", sweeps = 2), "bipartite", class = "weft_error_input")
  expect_error(irm(fine, family = "gaussian", sweeps = 2), "gaussian", class = "weft_error_input")
  expect_error(irm(fine, missing = cbind(1, 1), sweeps = 2), "missing", class = "weft_error_input")
  expect_error(irm(fine, sweeps = 2, control = list(dim = 3)), "dim", class = "weft_error_input")
  expect_error(irm_shards(3, 2), "function", class = "weft_error_input")
  expect_error(irm_shards(identity, 0), "shards", class = "weft_error_input")
  expect_error(irm_shards(identity, 1.5), "shards", class = "weft_error_input")
  fine$shards <- "2"
  expect_error(irm(fine), "irm_shards", class = "weft_error_input")
})

test_that("an interrupt between shards ends the call, and the next one works", {
  skip_if_not_installed("Matrix")
  A <- planted()
  reached <- 0
  shards <- irm_shards(function(i) {
    reached <<- i
    if (i == 2) signalCondition(structure(class = c("interrupt", "condition"), list()))
    A
  }, 3)
  caught <- tryCatch(irm(shards, sweeps = 2), interrupt = function(e) "interrupted")
  expect_identical(caught, "interrupted")
  expect_identical(reached, 2L)
  expect_identical(outcome(irm_shards(rows_of(A, c(45, 90)), 2)), outcome(A))
})

test_that("a prepared graph is given back at the end of a call, and when it cannot be made", {
  A <- matrix(stats::rbinom(3000 * 50, 1, 0.5), 3000)
  live <- function() .Call(weft:::C_weft_memory, NULL)[["host"]]
  invisible(gc())
  before <- live()
  fit <- irm(A, chains = 1, sweeps = 2, seed = 1)
  expect_identical(live(), before)
  predict(fit, cbind(1, 1))
  expect_identical(live(), before)
  graph <- weft:::irm_graph(A)
  held <- weft:::prepare_graph(graph)
  expect_gt(live(), before + 4 * sum(A))
  expect_identical(weft:::irm_blocks(held, rep(0:1, 1500), rep(0L, 50)),
                   weft:::irm_blocks(graph, rep(0:1, 1500), rep(0L, 50)))
  weft:::end_prepared(held)
  expect_identical(live(), before)
  weft:::end_prepared(held)
  expect_error(weft:::irm_blocks(held, rep(0:1, 1500), rep(0L, 50)), "freed", class = "weft_error_input")
  graph$links$to[7] <- 50L
  expect_error(weft:::prepare_graph(graph), "damaged", class = "weft_error_input")
  expect_identical(live(), before)
  other <- weft:::prepare_graph(weft:::irm_graph(A[-1, ]))
  graph <- weft:::irm_graph(A)
  graph$prepared <- other$prepared
  expect_error(weft:::irm_blocks(graph, rep(0:1, 1500), rep(0L, 50)), "another graph", class = "weft_error_internal")
  weft:::end_prepared(other)
})

test_that("shards print their number", {
  expect_output(print(irm_shards(identity, 2)), "2 shards")
  expect_output(print(irm_shards(identity, 1)), "1 shard$")
})
