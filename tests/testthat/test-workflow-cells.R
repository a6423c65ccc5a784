# Single cells: groups, metacells and markers are those that were planted, whatever holds the counts; and the workflow
# goes on with metacells.

planted_cells <- function(n = 600, p = 120, types = 3) {
  withr::local_seed(7)
  type <- rep(seq_len(types), length.out = n)
  rate <- matrix(stats::rlnorm(p, -1.5, 0.7), n, p, byrow = TRUE)
  for (t in seq_len(types)) rate[type == t, 10 * t + 1:10] <- 2.5
  depth <- exp(stats::rnorm(n, 0, 0.3))
  counts <- matrix(stats::rpois(n * p, rate * depth), n,
                   dimnames = list(sprintf("cell%d", seq_len(n)), sprintf("g%d", seq_len(p))))
  list(counts = Matrix::Matrix(counts, sparse = TRUE), type = type)
}

planted <- planted_cells()
quick <- function(x, ..., seed = 1) call_with(gene_cells, list(x, ..., k = 8, seed = seed, run = "cpu",
                                                               control = list(sweeps = 30)))
found <- quick(planted$counts)

test_that("planted types, their markers and their numbers are found", {
  table <- table(found$group, planted$type)
  expect_identical(dim(table), c(3L, 3L))
  expect_gt(sum(apply(table, 1, max)), 0.98 * 600)
  expect_true(all(utils::head(found$markers$gene, 28) %in% sprintf("g%d", 11:40)))
  own <- found$markers[match(sprintf("g%d", 11:20), found$markers$gene), ]
  expect_identical(unique(own$group), unname(found$group[planted$type == 1][1]))
  expect_identical(weft:::standing_out(found$components), 2L) # three types; depth is none of them
  expect_identical(sort(tabulate(found$group), decreasing = TRUE), tabulate(found$group)) # numbered by size
})

test_that("cells of one type have no components and one group, however many counts they have", {
  withr::local_seed(3)
  depth <- exp(stats::rnorm(500, 0, 0.2))
  counts <- matrix(stats::rpois(500 * 150, outer(depth, stats::rlnorm(150, -0.5, 1))), 500,
                   dimnames = list(NULL, sprintf("g%d", 1:150)))
  alike <- quick(Matrix::Matrix(counts, sparse = TRUE))
  expect_identical(weft:::standing_out(alike$components), 0L)
  expect_true(all(alike$group == 1L))
  expect_output(print(alike), "8 components, of which none is significant")
})

test_that("markers' information is that of the table of groups and seen genes", {
  gene <- found$markers$gene[5]
  seen <- planted$counts[, gene] > 0
  expect_equal(found$markers$information[5], mi_matrix(cbind(a = found$group, b = seen * 1))[1, 2],
               tolerance = 1e-10)
  expect_equal(found$markers$share[5], mean(seen[found$group == found$markers$group[5]]))
  expect_equal(found$markers$elsewhere[5], mean(seen[found$group != found$markers$group[5]]))
})

test_that("metacells are sums of their cells' counts, within groups, classes and batches", {
  class <- rep(c("a", "b"), each = 300)
  batch <- rep(c("x", "y", "z"), 200)
  cells <- quick(planted$counts, class, batch, min_cells = 5)
  expect_identical(as.matrix(cells), cells$counts)
  for (m in c(1, nrow(cells$counts))) {
    own <- which(cells$metacell == m)
    expect_gte(length(own), 5)
    expect_identical(cells$metacells$cells[m], length(own))
    expect_equal(cells$counts[m, ], Matrix::colSums(planted$counts[own, ]))
    expect_identical(unique(class[own]), as.character(cells$metacells$class[m]))
    expect_identical(unique(batch[own]), as.character(cells$metacells$batch[m]))
    expect_identical(unique(cells$group[own]), cells$metacells$group[m])
  }
  expect_identical(sort(unique(cells$metacell[!is.na(cells$metacell)])), seq_len(nrow(cells$counts)))
  expect_identical(cells$group, found$group) # which class and batch do not change
})

test_that("a store, a list of blocks, a matrix and a SummarizedExperiment give the same", {
  same <- c("group", "metacell", "counts", "markers", "metacells", "size")
  x <- as_store(planted$counts, memory = 2^20)
  about <- function(cells) unclass(cells)[same]
  expect_equal(about(quick(x)), about(found))
  expect_equal(about(quick(x, block_size = 2^14)), about(found)) # several reads per pass
  expect_equal(about(quick(list(planted$counts[1:7, ], planted$counts[8:600, ]))), about(found))
  expect_equal(about(quick(as.matrix(planted$counts))), about(found))
  one <- quick(planted$counts, threads = 1)
  expect_identical(about(quick(planted$counts, threads = 2)), about(one))
  expect_false(identical(quick(planted$counts, seed = 2)$metacell, found$metacell))
  skip_if_not_installed("SummarizedExperiment")
  experiment <- SummarizedExperiment::SummarizedExperiment(
    list(counts = Matrix::t(planted$counts)), colData = data.frame(kind = planted$type),
    rowData = data.frame(symbol = sprintf("S%d", 1:120)))
  cells <- quick(experiment, class = "kind")
  expect_identical(cells$group, found$group)
  expect_identical(cells$genes$symbol, sprintf("S%d", 1:120))
  expect_identical(levels(cells$metacells$class), c("1", "2", "3"))
})

test_that("classes may be columns of a store's table, and symbols come along", {
  skip_if_not_installed("SummarizedExperiment")
  experiment <- SummarizedExperiment::SummarizedExperiment(
    list(counts = Matrix::t(planted$counts)), colData = data.frame(kind = planted$type),
    rowData = data.frame(symbol = sprintf("S%d", 1:120)))
  x <- as_store(experiment)
  cells <- quick(x, class = "kind")
  expect_identical(levels(cells$metacells$class), c("1", "2", "3"))
  expect_identical(suppressWarnings(gene_quality(cells))$genes$symbol, sprintf("S%d", 1:120))
  expect_error(quick(x, class = "none"), "There is no \"none\"", class = "weft_error_input")
})

test_that("empty cells belong nowhere, and genes may be chosen by name", {
  counts <- planted$counts
  counts[c(5, 100), ] <- 0
  cells <- quick(Matrix::drop0(counts), genes = sprintf("g%d", 11:40))
  expect_identical(which(is.na(cells$group)), c(5L, 100L))
  expect_identical(which(is.na(cells$metacell)), c(5L, 100L))
  expect_identical(cells$genes$gene[cells$genes$chosen], sprintf("g%d", 11:40))
  expect_identical(sum(quick(planted$counts, genes = 50)$genes$chosen), 50L)
})

test_that("cells without counts change nothing about the others", {
  empty <- c(5L, 100L, 599L)
  counts <- as.matrix(planted$counts)
  counts[empty, ] <- 0
  counts <- Matrix::Matrix(counts, sparse = TRUE)
  few <- quick(counts[-empty, ], genes = 60)
  for (x in list(counts, list(counts[1:99, ], counts[100:600, ]), as_store(counts))) {
    for (block_size in c(2^28, 2^14)) { # a store is read at once, or in several reads per pass
      all <- quick(x, genes = 60, block_size = block_size)
      expect_equal(all$genes, few$genes)
      expect_equal(all$components$sdev, few$components$sdev)
      expect_equal(abs(all$components$x[-empty, ]), abs(few$components$x), ignore_attr = TRUE)
      expect_equal(all$components$leading, few$components$leading)
      expect_identical(all$group[-empty], few$group)
      expect_equal(all$metacells, few$metacells)
      expect_equal(all$counts, few$counts)
      expect_true(all(is.na(all$group[empty])))
      weft:::check_pca(all$components, "components")
    }
  }
  zeros <- stats::predict(all$components, matrix(0, 1, sum(all$genes$chosen)))
  expect_equal(all$components$x[5, ], zeros[1, ], ignore_attr = TRUE)
})

test_that("fewer genes than components leave as many components as genes", {
  expect_identical(quick(planted$counts, genes = 5, leading = 7)$components$leading, 5L)
})

test_that("one type is one group, and identical cells are no error", {
  withr::local_seed(8)
  noise <- Matrix::Matrix(matrix(stats::rpois(300 * 60, 0.5), 300), sparse = TRUE)
  expect_identical(max(quick(noise)$group), 1L)
  twice <- suppressWarnings(quick(noise[rep(1:2, 100), ])) # two values allow two groups, and that is said
  expect_lte(max(twice$group), 2L)
})

test_that("the workflow goes on with metacells", {
  steps <- list(pairs = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE, network = list(resamples = 20))
  run <- function(x, ..., cells = list()) {
    suppressWarnings(call_with(gene_network, list(x, ..., seed = 1, run = weft_run("cpu", progress = FALSE),
                                                  steps = c(steps, list(cells = cells)))))
  }
  x <- as_store(planted$counts)
  fit <- run(x, class = planted$type, cells = list(k = 8, metacells = 30, control = list(min_cells = 5)))
  expect_identical(fit$steps$step[1:2], c("cells", "quality"))
  expect_s3_class(fit$cells, "weft_cells")
  expect_identical(nrow(fit$quality$x), nrow(fit$cells$counts))
  expect_identical(levels(fit$quality$class), c("1", "2", "3"))
  expect_true(all(utils::head(fit$ranking$gene, 20) %in% sprintf("g%d", 11:40)))
  expect_output(print(fit), "counts of 600 cells were summed")
  given <- run(fit$cells)
  expect_null(given$cells)
  expect_identical(given$quality$x, fit$quality$x)
  expect_identical(given$quality$class, fit$quality$class)
  alone <- weft:::is_many_cells
  expect_false(alone(planted$counts, NULL, list())) # 600 are samples
  many <- planted$counts[rep(1:600, 4), ]
  expect_true(alone(many, NULL, list()))
  expect_false(alone(many, NULL, FALSE))
  expect_false(alone(many / 3, NULL, list()))
  expect_true(alone(list(many), NULL, list()))
  expect_false(alone(store_normalise(as_store(many)), NULL, list()))
  expect_true(alone(as_store(many), NULL, list()))
  expect_error(gene_network(planted$counts, steps = list(cells = TRUE)), "`steps$cells` must be a list", fixed = TRUE,
               class = "weft_error_input")
  expect_error(gene_network(planted$counts, max_groups = 3), "cells = list\\(max_groups", class = "weft_error_input")
})

# Counts of cells whose genes follow a few regulators, and an empty cell.
driven_cells <- function(n = 2100, p = 24, depth = 1) {
  withr::local_seed(11)
  z <- matrix(stats::rnorm(n * p), n)
  parent <- rep(1:4, length.out = p - 4)
  z[, 5:p] <- 0.8 * z[, parent] + 0.6 * z[, 5:p]
  counts <- matrix(stats::rpois(n * p, depth * exp(z)), n,
                   dimnames = list(sprintf("c%d", seq_len(n)), sprintf("g%d", seq_len(p))))
  counts[7, ] <- 0
  list(counts = Matrix::Matrix(counts, sparse = TRUE), parent = parent)
}

test_that("the network is of cells where these predict held-out cells better, and says so", {
  driven <- driven_cells()
  rest <- list(components = FALSE, pairs = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE)
  run <- function(x, network = list(), ...) {
    suppressWarnings(gene_network(x, ..., seed = 1, run = weft_run("cpu", progress = FALSE),
                                  steps = c(rest, list(cells = list(k = 8, metacells = 40),
                                                       network = c(list(resamples = 40), network)))))
  }
  factors <- sprintf("g%d", 1:4)
  fit <- run(driven$counts, regulators = factors)
  about <- attr(fit$network, "made_of")
  expect_identical(about[c("unit", "cells", "empty")], list(unit = "cells", cells = 2099L, empty = 1L))
  expect_gt(about$explained[["cells"]], 0.05)
  expect_lt(about$explained[["lost"]], 2 * about$explained[["error"]])
  size <- fit$cells$size[-7]
  cells <- driven$counts[-7, ]
  cells@x <- log2(1 + cells@x / size[cells@i + 1L]) # the network of these is what it must be
  expect_equal(as.matrix(fit$network),
               as.matrix(regulation(cells, factors, transform = "none", seed = 1 + 5, control = list(resamples = 40))))
  right <- fit$network[cbind(driven$parent, 5:24)]
  expect_gt(mean(right > apply(unclass(fit$network)[, 5:24], 2, function(w) sort(w, decreasing = TRUE)[2])), 0.9)
  expect_output(print(fit), "2,099\\s+single\\s+cells.*1 cell\\s+without\\s+counts\\s+was\\s+removed")
  expect_match(fit$quality$log$what[1], "1 cell without counts was removed.", fixed = TRUE)
  expect_equal(as.matrix(run(as_store(driven$counts), regulators = factors)$network), as.matrix(fit$network))
  expect_identical(weft:::network_samples(fit), 2099L)

  meta <- run(driven$counts, list(cells = FALSE), regulators = factors)
  expect_null(attr(meta$network, "made_of"))
  expect_identical(attr(run(driven$counts, list(cells = TRUE))$network, "made_of")$unit, "cells")
  dear <- with_internal("cells_seconds", 0, run(driven$counts, regulators = factors))
  expect_equal(as.matrix(dear$network), as.matrix(meta$network))
  expect_match(weft:::unit_text(dear$network), "from metacells, because cells would take about")
  worse <- function(...) c(cells = 0.01, metacells = 0.02, lost = 0.01, error = 0.002)
  better <- with_internal("held_out_prediction", worse, run(driven$counts, regulators = factors))
  expect_equal(as.matrix(better$network), as.matrix(meta$network))
  expect_match(weft:::unit_text(better$network), "from metacells. Its regulators explain 2 % .* from cells explain 1 %")
  batched <- run(driven$counts, batch = rep(1:2, 1050), regulators = factors)
  expect_match(attr(batched$network, "made_of")$why, "batches")
  by_information <- suppressWarnings(gene_network(driven$counts, seed = 1, run = weft_run("cpu", progress = FALSE),
                                                  steps = c(rest, list(network = list(method = "clr")))))
  expect_null(attr(by_information$network, "made_of"))

  bad <- function(regexp, ...) expect_error(gene_regulation(fit$quality, ...), regexp, class = "weft_error_input")
  bad("must be a list of counts", cells = TRUE)
  bad("must be counts, and the object", cells = list(driven$counts[, -1], fit$cells))
  few <- c(rest, list(network = list(cells = TRUE)))
  expect_error(suppressWarnings(gene_network(driven$counts[1:100, ], steps = few)),
               "must not be given if there are no metacells", class = "weft_error_input")
  damaged <- fit
  attr(damaged$network, "made_of")$cells <- "many"
  expect_error(print(damaged), class = "weft_error_input")
})

test_that("shares of held-out cells are those of least squares", {
  driven <- driven_cells(n = 400, p = 24, depth = 1)
  counts <- driven$counts[-7, ]
  size <- Matrix::rowSums(counts) / mean(Matrix::rowSums(counts))
  aims <- list(regulators = sprintf("g%d", 1:4), targets = NULL)
  share <- function(metacell) weft:::held_out_prediction(counts, size, metacell, aims, 1, weft_run("cpu"))
  alone <- share(seq_len(nrow(counts))) # each cell is its own metacell
  expect_equal(alone[["cells"]], alone[["metacells"]], tolerance = 0.2)
  expect_identical(share(rep(NA_integer_, nrow(counts)))[["metacells"]], 0)
  weight <- c(g1 = 0.5, g2 = 0, g3 = 0.9)
  x <- as.matrix(counts[1:200, ])
  y <- as.matrix(counts[201:399, ])
  fit <- stats::lm(g9 ~ g1 + g3, as.data.frame(x))
  rest <- y[, "g9"] - stats::predict(fit, as.data.frame(y))
  expect_equal(weft:::explained_by(weight, x, y, "g9"), 1 - sum(rest^2) / sum((y[, "g9"] - mean(x[, "g9"]))^2))
})

test_that("genes that few of the cells see stay, and those that were left out may be named", {
  driven <- driven_cells(n = 900, depth = 0.5)
  counts <- as.matrix(driven$counts)
  counts[, 2] <- 0
  counts[1:12, 2] <- 1:12 # seen in 12 of 900 cells
  counts[, 3] <- 0
  counts[1:3, 3] <- 9
  q <- suppressWarnings(gene_quality(counts))
  expect_identical(q$scale, "cells")
  expect_identical(q$genes$gene[!q$genes$kept], "g3")
  net <- gene_regulation(q, regulators = c("g1", "g2", "g3"), targets = c("g5", "g6"), resamples = 4, seed = 1)
  expect_identical(dimnames(net), list(c("g1", "g2"), c("g5", "g6")))
  expect_match(attr(net, "lost"), "removed 1 of the 3 specified regulators from the network: g3", fixed = TRUE)
  expect_error(gene_regulation(q, regulators = "g3"), "All of them were filtered out", class = "weft_error_input")
  expect_error(gene_regulation(q, targets = c("g1", "nothing")), "no feature `nothing`", class = "weft_error_input")
})

test_that("what is no counts is said so", {
  bad <- function(x, regexp, ...) expect_error(quick(x, ...), regexp, class = "weft_error_input")
  bad(planted$counts[1:5, ], "at least 20 cells")
  bad(planted$counts - 1, "least value is -1")
  bad(planted$counts * 0, "All are 0")
  bad(letters, "must be counts")
  bad(store_normalise(as_store(planted$counts)), "normalised")
  bad(planted$counts, "`leading`", leading = 9)
  bad(planted$counts, "`genes`", genes = "none")
  bad(planted$counts, "value per row", class = 1:3)
  bad(list(planted$counts[1:7, ], planted$counts[8:600, ]), "value per row", class = 1:3)
  missing <- planted$counts
  missing@x[3] <- NA
  bad(missing, "missing or infinite")
  damaged <- found
  damaged$counts <- found$counts[-1, ]
  expect_error(gene_quality(damaged), "gene_cells", class = "weft_error_input")
  expect_error(as.matrix(damaged), "damaged", class = "weft_error_input")
})

test_that("print says what was found", {
  expect_output(print(found), "600 cells, 120 genes")
  expect_output(print(found), "8 components, of which 2 are significant")
  expect_output(print(found), "3 groups of ")
  expect_identical(dim(found), dim(found$counts))
})

test_that("an interrupt ends the search for groups", {
  skip_on_os("windows")
  x <- matrix(as.double(seq_len(4e5) %% 977), 2e4)
  expect_stops(function(progress) {
    .Call(weft:::C_weft_irm_nearest, x, x[1:15000, ], weft:::run_control("cpu", 1, progress))
  }, "nearest centres")
})

test_that("nearest centres are those of all distances, the first of equal ones", {
  withr::local_seed(9)
  x <- matrix(stats::rnorm(300 * 3), 300)
  centres <- rbind(x[c(7, 70), ], x[7, ], matrix(stats::rnorm(60), 20))
  away <- as.matrix(stats::dist(rbind(x, centres)))[1:300, 301:323]
  near <- weft:::nearest_centre(x, centres, weft:::run_control("cpu"))
  expect_identical(near, max.col(-away, "first"))
  expect_identical(near[c(7, 70)], 1:2)
})
