# Partition MCMC, whose prior is uniform over graphs, against exact posteriors.

# Edge means of each chain, a column per chain.
chain_edges <- function(fit) {
  native <- weft:::bn_native_table(fit$table)
  vapply(seq_len(ncol(fit$sample_score)), function(chain) {
    as.vector(.Call(weft:::C_weft_bn_edge_means, native, fit$sampled[, , chain, drop = FALSE],
                    weft:::run_control("cpu", 1, FALSE))$edges)
  }, double(nrow(fit$dag)^2))
}

# Chains are independent, so their spread gives the error of their mean; the ratio of difference and error follows
# Student's t. The limits are passed by chance once in 1e4 for an edge.
expect_exact <- function(table, ..., iterations = 20000, chains = 16, space = NULL,
                         exact = bn_exact(table, posterior = "dag")$edges) {
  fit <- call_with(bn_learn, list(table, target = "uniform", iterations = iterations, seed = 5, chains = chains, ...,
                                  control = list(thin = max(1, iterations %/% 4000), space = space)))
  edges <- chain_edges(fit)
  error <- apply(edges, 1L, stats::sd) / sqrt(chains)
  open <- exact > 0.01 & exact < 0.99
  ratio <- ((rowMeans(edges) - exact) / error)[open]
  expect_lt(max(abs(ratio)), stats::qt(1 - 5e-5, chains - 1))
  expect_lt(max(error), 0.03)
  expect_lt(max(abs(rowMeans(edges) - exact)[!open]), 0.02)
  invisible(fit)
}

test_that("edges are those of all graphs, from four to twelve nodes", {
  few <- linked_bn_data(4, 15) # nearly flat: every move is often accepted, so that a wrong one shows
  flat <- bn_scores(few, 3, keep = "all")
  fit <- expect_exact(flat, iterations = 50000, temperatures = 1,
                      exact = enumerated_edges(flat, all_dags(4L), "dag")$edges)
  expect_true(all(fit$diagnostics$acceptance > 0.1))
  expect_exact(flat)
  expect_exact(bn_scores(bn_test_data(40), 4, keep = "all"))
  expect_exact(bn_scores(linked_bn_data(6, 60), 5, keep = "all"))
  expect_exact(bn_scores(linked_bn_data(8, 80), 3, keep = "sum", control = list(slack = 30)),
               exact = bn_exact(linked_bn_data(8, 80), 3, posterior = "dag")$edges)
  expect_exact(bn_scores(linked_bn_data(12, 100), 2, keep = "all"))
})

test_that("each kind of move is tried at its stated rate", {
  fit <- bn_learn(linked_bn_data(7, 100), 3, target = "uniform", iterations = 3000, seed = 1,
                  control = list(temperatures = c(1, 3)))
  expect_identical(rownames(fit$diagnostics$acceptance), c("swap", "adjacent", "shift", "split", "reverse", "renew"))
  expect_true(all(fit$counts$accepted[7L, ] == 3000))
  # without heat new parents, drawn by their weights, are always taken: some 3,000 of 12,000 steps
  expect_lt(abs(sum(fit$counts$accepted[6L, c(1L, 3L, 5L, 7L)]) - 3000), 5 * sqrt(12000 * 3 / 16))
})

test_that("required and forbidden edges, soft priors, interventions and every score are the table's", {
  d <- bn_test_data(60)
  prior <- bn_prior(d, required = cbind(c("e", "d"), c("a", "b")), forbidden = cbind("a", "c"), known = cbind("c", "d"))
  # where a new layer just before a node's own was never taken, one edge was .005 off: six standard errors
  fit <- expect_exact(bn_scores(bn_test_data(15), 3, keep = "all", prior = prior), iterations = 1e5, chains = 64,
                      temperatures = 1)
  expect_equal(unname(fit$edges["e", "a"] + fit$edges["d", "b"]), 2)
  expect_equal(unname(fit$edges["a", "c"]), 0)
  set <- rep(list(NULL, "a", c("b", "c"), "d"), 15)
  expect_exact(bn_scores(d[1:4], 3, "k2", keep = "all", interventions = set))
  numbers <- as.data.frame(withr::with_seed(1, matrix(stats::rnorm(60), 15) %*% matrix(stats::rnorm(16), 4)))
  expect_exact(bn_scores(numbers, 3, "bge", keep = "all"))
})

test_that("a partition is worth the sum over its graphs, also where scores are thousands of nats apart", {
  copies <- withr::with_seed(3, {
    x <- sample(4, 4000, TRUE)
    lapply(1:6, function(k) factor(ifelse(stats::runif(4000) < 0.02 * k, sample(4, 4000, TRUE), x), 1:4))
  })
  names(copies) <- letters[1:6]
  for (table in list(bn_scores(list2DF(copies), 3, keep = "all"), bn_scores(twin_bn_data(), 4, keep = "all"))) {
    p <- length(table$nodes)
    local <- mask_scores(table)
    fit <- bn_learn(table, iterations = 300, target = "uniform", chains = 8, seed = 1,
                    control = list(temperatures = 1, thin = 300, burn_in = 0))
    worth <- apply(fit$layer, 2L, function(layer) sum(vapply(seq_len(p), function(z) {
      masks <- 0:(2^p - 1)
      at <- function(layers) sum(2^(which(layer %in% layers) - 1))
      fits <- bitwAnd(masks, at(seq_len(layer[z]) - 1L)) == masks
      if (layer[z] > 0) fits <- fits & bitwAnd(masks, at(layer[z] - 1L)) > 0
      max(local[z, fits]) + log(sum(exp(local[z, fits] - max(local[z, fits]))))
    }, 0)))
    expect_equal(unname(fit$trace[1L, ]), worth, tolerance = 1e-11)
  }
})

test_that("a drawn graph has its partition's layers, and the graphs that were drawn are scored rightly", {
  fit <- bn_learn(linked_bn_data(9, 200), 3, target = "uniform", iterations = 200, chains = 6, seed = 2,
                  control = list(thin = 200, burn_in = 0, temperatures = 1))
  for (chain in seq_len(6L)) {
    dag <- weft:::sets_to_dag(fit$table, fit$sampled[, 1L, chain])
    depth <- integer(9L)
    for (k in fit$order[, chain] + 1L) depth[k] <- max(-1L, depth[dag[, k] > 0]) + 1L
    expect_identical(depth, fit$layer[, chain])
    expect_equal(fit$sample_score[1L, chain], bn_score(linked_bn_data(9, 200), dag), tolerance = 1e-10)
  }
})

test_that("one node, two nodes, no possible edge, and a start work; damaged layers are refused", {
  d <- bn_test_data(50)
  expect_equal(unname(bn_learn(d["a"], target = "uniform", iterations = 10, seed = 1)$edges[1L]), 0)
  expect_exact(bn_scores(d[1:2], 1, keep = "all"), iterations = 4000)
  expect_equal(sum(bn_learn(d, 0, target = "uniform", iterations = 50, seed = 1)$edges), 0)
  start <- bn_learn(d, target = "uniform", iterations = 10, start = rev(names(d)), seed = 1)
  expect_identical(dim(start$layer), dim(start$order))
  start$layer[1L, 1L] <- 77L
  expect_error(update(start, iterations = 10), class = "weft_error_input", regexp = "layer")
  start$layer[, 1L] <- c(0L, 0L, 3L, 3L, 0L)
  expect_error(update(start, iterations = 10), class = "weft_error_input", regexp = "saved layers leave")
  expect_error(bn_learn(bn_scores(d), target = "uniform"), class = "weft_error_input", regexp = "keep")
  expect_output(print(bn_learn(d, target = "uniform", iterations = 100, seed = 1)), "Partition MCMC.*over graphs")
})

test_that("long runs over partitions can be interrupted", {
  table <- bn_scores(bn_test_data(300), keep = "sum")
  expect_stops(function(progress) {
    bn_learn(table, target = "uniform", iterations = 1e9, run = weft_run(progress = progress),
             control = list(thin = 1e6))
  }, "partition MCMC")
})

# ---- chains over graphs ----

test_that("chains over graphs have the edges of all graphs, heated or not", {
  few <- linked_bn_data(4, 15)
  flat <- bn_scores(few, 3, keep = "all")
  all <- enumerated_edges(flat, all_dags(4L), "dag")$edges
  fit <- expect_exact(flat, exact = all, space = "graphs")
  expect_identical(fit$run$beta, 1)
  expect_identical(rownames(fit$diagnostics$acceptance), c("renew", "turn", "reverse"))
  expect_true(all(fit$diagnostics$acceptance > 0.1 & fit$diagnostics$acceptance < 1))
  expect_exact(flat, exact = all, space = "graphs", temperatures = c(1, 2, 4))
  expect_exact(bn_scores(linked_bn_data(6, 60), 5, keep = "all"), space = "graphs", iterations = 8000)
  expect_exact(bn_scores(linked_bn_data(12, 100), 2, keep = "all"), space = "graphs", iterations = 4000)
  node <- names(few)
  prior <- bn_prior(few, required = cbind(node[1L], node[2L]), forbidden = cbind(node[1L], node[3L]))
  fit <- expect_exact(bn_scores(few, 3, keep = "all", prior = prior), space = "graphs", iterations = 4000)
  expect_equal(unname(fit$edges[1L, 2L]), 1)
  expect_equal(unname(fit$edges[1L, 3L]), 0)
})

test_that("many nodes are sampled over graphs, with the same result on two threads and when continued", {
  columns <- stats::setNames(1:70, sprintf("n%02d", 1:70))
  d <- list2DF(withr::with_seed(2, lapply(columns, function(k) sample(3, 90, TRUE))))
  d$n02 <- d$n01
  d$n02[1:20] <- 1L
  d[] <- lapply(d, factor)
  table <- bn_scores(d, 1, keep = "sum")
  learn <- function(iterations, threads = 1, space = "graphs", ...) {
    bn_learn(table, iterations = iterations, target = "uniform", chains = 3, seed = 4,
             run = weft_run("cpu", threads = threads), control = list(thin = 5, burn_in = 0, space = space, ...))
  }
  fit <- learn(60)
  expect_output(print(fit), "Graph MCMC.*over graphs")
  expect_identical(dim(fit$layer), c(70L, 3L))
  expect_identical(learn(60, 2)[c("edges", "trace", "layer", "order")], fit[c("edges", "trace", "layer", "order")])
  more <- update(learn(35), iterations = 25)
  expect_identical(more[c("edges", "trace", "layer", "order")], fit[c("edges", "trace", "layer", "order")])
  expect_equal(fit$trace[12L, ], vapply(1:3, function(chain) {
    bn_score(d, weft:::sets_to_dag(table, fit$layer[, chain]))
  }, 0), tolerance = 1e-9, ignore_attr = TRUE)
  expect_gt(fit$edges["n01", "n02"] + fit$edges["n02", "n01"], 0.99)
  # pairs of independent nodes, each with one parent at most: as over partitions
  other <- learn(3000, space = "partitions", temperatures = 1)
  expect_lt(mean(abs(learn(500)$edges - other$edges)), 0.005)
  expect_false(other$run$graphs)
})

test_that("damaged graphs are refused, and what chains cannot walk over", {
  d <- bn_test_data(50)
  fit <- bn_learn(d, target = "uniform", iterations = 10, seed = 1, chains = 1, control = list(space = "graphs"))
  damaged <- fit
  damaged$layer[1L, 1L] <- -1L
  expect_error(update(damaged, iterations = 10), class = "weft_error_input", regexp = "layer")
  sets <- function(node) fit$table$parents[, fit$table$start[node] + seq_len(diff(fit$table$start)[node]), drop = FALSE]
  only <- function(node, parent) which(colSums(sets(node)) == parent & colSums(sets(node) > 0) == 1)[1L] - 1L
  damaged$layer[1:2, 1L] <- c(only(1L, 2L), only(2L, 1L))
  expect_error(update(damaged, iterations = 10), class = "weft_error_input", regexp = "cycle")
  damaged <- fit
  damaged$run$layers <- FALSE
  expect_error(update(damaged, iterations = 10), class = "weft_error_input", regexp = "run")
  expect_error(bn_learn(d, control = list(space = "graphs")), class = "weft_error_input", regexp = "space.*uniform")
  expect_error(bn_learn(d, target = "uniform", control = list(space = "orders")), class = "weft_error_input",
               regexp = "space")
  for (x in list(d["a"], d[1:2])) {
    expect_equal(sum(diag(bn_learn(x, target = "uniform", iterations = 10, seed = 1,
                                   control = list(space = "graphs"))$edges)), 0)
  }
})

test_that("long runs over graphs can be interrupted", {
  table <- bn_scores(bn_test_data(300), keep = "sum")
  expect_stops(function(progress) {
    bn_learn(table, target = "uniform", iterations = 1e9, run = weft_run(progress = progress),
             control = list(thin = 1e6, space = "graphs"))
  }, "graph MCMC")
})
