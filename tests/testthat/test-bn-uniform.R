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
expect_exact <- function(table, ..., iterations = 20000, chains = 16,
                         exact = bn_exact(table, posterior = "dag")$edges) {
  fit <- call_with(bn_learn, list(table, target = "uniform", iterations = iterations, seed = 5, chains = chains, ...,
                                  control = list(thin = max(1, iterations %/% 4000))))
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
