# The Bayesian-network room's rows of the table in test-twins.R: tables, chains and optima are the same bits.
twins_bn <- function() {
  some <- function(levels, n) {
    hidden <- stats::rnorm(n)
    list2DF(stats::setNames(lapply(levels, function(l) {
      factor(pmin(l, 1 + floor(l * stats::pnorm(hidden * sample(c(-1, 0, 1), 1) + stats::rnorm(n)))), seq_len(l))
    }), sprintf("x%02d", seq_along(levels))))
  }
  fields <- function(table) unclass(table)[c("start", "score", "parents", "bits")]
  scores <- function(levels, n, ...) {
    list(tolerance = 0, work = function(backend) fields(call_with(bn_scores, list(some(levels(), sample(n, 1)), ...,
                                                                                  run = backend))))
  }
  learned <- function(fit) {
    fit[c("score", "dags", "best_sets", "edges", "trace", "order", "layer", "counts", "sampled", "sample_score",
          "diagnostics")]
  }
  chains <- function(target, p, ..., max_parents = 3) {
    list(tolerance = 0, work = function(backend) {
      table <- bn_scores(some(sample(2:3, p, TRUE), 200), max_parents, keep = if (target == "max") "max" else "sum",
                         run = "cpu", control = list(slack = 8))
      learned(call_with(bn_learn, list(table, iterations = 150, target = target, top = sample(1:40, 1), ...,
                                       seed = sample(99, 1), run = backend,
                                       control = list(swap_every = sample(2:9, 1), thin = sample(1:20, 1),
                                                      burn_in = 30))))
    })
  }
  list(
    "bn_scores, mixed levels" = scores(function() sample(2:5, sample(5:14, 1), TRUE), 900),
    "bn_scores, all sets kept" = scores(function() sample(1:3, 7, TRUE), 300, max_parents = 5, keep = "all"),
    "bn_scores, 100 levels" = scores(function() c(100, 2, 3, 40, 2, 2), 500, max_parents = 2, score = "bic"),
    "bn_scores, K2, limits of each node" = scores(function() rep(3, 8), 400, max_parents = c(x01 = 0, x02 = 2),
                                                  score = "k2"),
    "bn_scores, sums, prior and gamma" = list(tolerance = 0, work = function(backend) {
      d <- some(sample(2:4, 9, TRUE), 500)
      prior <- bn_prior(names(d), required = cbind("x02", "x01"), forbidden = cbind("x03", "x04"),
                        known = cbind("x05", "x06"))
      fields(bn_scores(d, 3, "aic", prior = prior, gamma = 0.5, keep = "sum", run = backend, control = list(slack = 5)))
    }),
    "bn_scores, interventions" = list(tolerance = 0, work = function(backend) {
      d <- some(sample(2:4, 7, TRUE), 400)
      fields(bn_scores(d, 3, interventions = sample(c(NA, "x01", "x05"), 400, TRUE), run = backend))
    }),
    "bn_scores, candidates and one outsider" = list(tolerance = 0, work = function(backend) {
      fields(bn_scores(some(rep(2:3, 20), 300), 3, candidates = 5, run = backend))
    }),
    "bn_scores, little device memory: nodes in batches, sets child by child" = list(tolerance = 0,
                                                                                    work = function(backend) {
      d <- some(rep(2:3, 10), 100)
      lapply(c(4e5, 2e5), function(bytes) {
        withr::local_options(weft.device_memory = bytes)
        fields(bn_scores(d, 4, run = backend))
      })
    }),
    "bn_scores, candidates, five parents" = scores(function() rep(2:3, 10), 300, max_parents = 5, candidates = 6,
                                                   plus_one = FALSE),
    "bn_scores, six parents" = scores(function() rep(2, 8), 300, max_parents = 6),
    "bn_learn, best graphs" = chains("max", 12), "bn_learn, sums" = chains("sum", 8),
    "bn_learn, best graphs of 64 nodes" = chains("max", 64, max_parents = 2),
    "bn_learn, best graphs among all sets, some hundred a node" = list(tolerance = 0, work = function(backend) {
      table <- bn_scores(some(sample(2:3, 10, TRUE), 300), 4, keep = "all", run = "cpu")
      learned(bn_learn(table, iterations = 500, target = "max", seed = sample(99, 1), run = backend,
                       control = list(thin = 50, temperatures = c(1, 3, 9))))
    }),
    "bn_learn, masks of two words" = chains("max", 70, max_parents = 1),
    "bn_learn, 128 nodes" = chains("max", 128, max_parents = 1),
    "bn_learn, masks of three words" = chains("max", 140, max_parents = 1),
    "bn_learn, sums with masks of two words" = chains("sum", 70, max_parents = 1),
    "bn_learn, sums with masks of three words" = chains("sum", 140, max_parents = 1),
    "bn_learn, sums, a ladder too wide for shared memory" = chains("sum", 200, max_parents = 1,
                                                                   temperatures = 1.2^(0:15)),
    "bn_learn, sums, many chains per block" = chains("sum", 7, chains = 500, temperatures = 1),
    "bn_learn, sums, many ladders a block" = chains("sum", 6, chains = 150, temperatures = c(1, 2, 4)),
    "bn_learn, sums of scores thousands of nats apart" = list(tolerance = 0, work = function(backend) {
      x <- sample(4, 4000, TRUE)
      copy <- function(k) factor(ifelse(stats::runif(4000) < 0.02 * k, sample(4, 4000, TRUE), x), 1:4)
      d <- list2DF(lapply(stats::setNames(1:6, letters[1:6]), copy))
      learned(bn_learn(d, 3, iterations = 300, target = "sum", chains = 5, seed = sample(99, 1),
                       run = backend, control = list(slack = 8, thin = 10)))
    }),
    "bn_learn, layers" = chains("uniform", 8),
    "bn_learn, layers of two nodes" = chains("uniform", 2, max_parents = 1, temperatures = c(1, 3)),
    "bn_learn, layers, a thousand chains" = chains("uniform", 7, chains = 1000, temperatures = 1),
    "bn_learn, layers of 64 nodes" = chains("uniform", 64, max_parents = 1, chains = 1),
    "bn_learn, layers, masks of two words" = chains("uniform", 70, max_parents = 1, chains = 3),
    "bn_learn, layers, masks of three words" = chains("uniform", 140, max_parents = 1, chains = 2),
    "bn_learn, layers, a ladder too wide for shared memory" = chains("uniform", 90, max_parents = 1, chains = 2,
                                                                     temperatures = 1.1^(0:15)),
    "bn_learn, layers, required and forbidden edges, resumed" = list(tolerance = 0, work = function(backend) {
      d <- some(sample(2:3, 9, TRUE), 100)
      prior <- bn_prior(names(d), required = cbind("x02", "x01"), forbidden = cbind("x03", "x04"))
      fit <- bn_learn(d, 3, prior = prior, target = "uniform", iterations = 120, chains = 2, seed = 2, run = backend,
                      control = list(thin = 7, swap_every = 3))
      learned(update(fit, iterations = 77))
    }),
    "bn_learn, layers, every score, interventions" = list(tolerance = 0, work = function(backend) {
      d <- some(sample(2:3, 7, TRUE), 90)
      each <- function(score, data = d, ...) {
        learned(call_with(bn_learn, list(data, 2, score = score, ..., target = "uniform", iterations = 100, seed = 4,
                                         run = backend, control = list(thin = 9))))
      }
      numbers <- as.data.frame(matrix(stats::rnorm(60 * 6), 60))
      c(lapply(setdiff(weft:::bn_score_types, c("bge", weft:::mixed_scores)), each), list(each("bge", numbers)),
        lapply(weft:::mixed_scores, each, data = cbind(d[1:60, 1:3], numbers[1:3])),
        lapply(c("bdeu", "k2"), each, interventions = rep(c(NA, "x01", "x05"), 30)))
    }),
    "bn_learn, layers of scores thousands of nats apart" = list(tolerance = 0, work = function(backend) {
      learned(bn_learn(far_apart(), 3, iterations = 200, target = "uniform", chains = 5,
                       seed = sample(99, 1), run = backend, control = list(slack = 8, thin = 10)))
    }),
    "bn_learn, layers, little device memory" = list(tolerance = 0, work = function(backend) {
      withr::local_options(weft.device_memory = 3e5)
      chains("uniform", 8, chains = 20)$work(backend)
    }),
    "bn_learn, one temperature, many chains" = chains("max", 10, chains = 100, temperatures = 1),
    "bn_learn, little device memory" = list(tolerance = 0, work = function(backend) {
      withr::local_options(weft.device_memory = 3e5)
      chains("sum", 8, chains = 20)$work(backend)
    }),
    "bn_learn, required and forbidden edges, resumed" = list(tolerance = 0, work = function(backend) {
      d <- some(sample(2:3, 9, TRUE), 300)
      prior <- bn_prior(names(d), required = cbind("x02", "x01"), forbidden = cbind("x03", "x04"))
      fit <- bn_learn(d, 3, prior = prior, iterations = 60, chains = 2, seed = 2, run = backend,
                      control = list(thin = 7, swap_every = 3))
      learned(update(fit, iterations = 77))
    }),
    "bn_exact" = list(tolerance = 0, work = function(backend) {
      exact <- bn_exact(some(sample(2:3, sample(3:16, 1), TRUE), 300), 3, run = backend)
      list(exact$dag, exact$score)
    }),
    "bn_exact, every node with many possible parents" = list(tolerance = 0, work = function(backend) {
      exact <- bn_exact(bn_scores(some(rep(2, 14), 60), 2, keep = "all", run = "cpu"), run = backend)
      list(exact$dag, exact$score)
    }),
    # each back end adds in the order that its own cut of the subsets gives: at most p^2 roundings of 2^-50
    "bn_exact, posterior over orders" = list(tolerance = 1e-10, work = function(backend) {
      lapply(c(sample(2:9, 1), 10:13, sample(14:16, 1)), function(p) {
        exact <- bn_exact(some(sample(2:3, p, TRUE), 300), 2, posterior = "order", run = backend)
        list(exact$edges, exact$log_total)
      })
    }),
    "bn_exact, posterior over graphs" = list(tolerance = 0, work = function(backend) {
      p <- sample(12, 1)
      exact <- bn_exact(some(sample(2:3, p, TRUE), sample(c(15, 300), 1)), sample(0:3, 1), posterior = "dag",
                        score = sample(c("bdeu", "bic", "k2", "aic", "bds"), 1), run = backend)
      list(exact$edges, exact$log_total, exact$error)
    }),
    "bn_exact, posterior over graphs, all sets" = graph_sums(9, some, max_parents = 8),
    "bn_exact, posterior over graphs, required and forbidden edges" = list(tolerance = 0, work = function(backend) {
      d <- some(rep(2, 8), 40)
      graph_sums(8, function(...) d, prior = bn_prior(d, required = cbind("x02", "x01"),
                                                      forbidden = cbind(c("x03", "x04"), c("x04", "x05")),
                                                      known = cbind("x05", "x06")))$work(backend)
    }),
    "bn_exact, posterior over graphs, BGe, candidates" = graph_sums(10, function(levels, n) {
      as.data.frame(matrix(stats::rnorm(n * length(levels)), n))
    }, score = "bge", candidates = 4),
    "bn_exact, posterior over graphs, interventions" = graph_sums(7, some,
                                                                  interventions = rep(c(NA, "x01", "x05"), 50)),
    "bn_exact, posterior over graphs, top parts" = graph_sums(17, some, max_parents = 1),
    "bn_exact, posterior over graphs, scores thousands of nats apart" = graph_sums(6, far_apart),
    "sums over orders, little device memory" = list(tolerance = 1e-10, work = function(backend) {
      withr::local_options(weft.device_memory = 1e6)
      order_sums(14, some, c(0L, 0L))$work(backend)
    }),
    # 48 and 57 of 64 parts of the subsets are on the device, the others in the host's memory
    "bn_exact, some subsets on the host" = list(tolerance = 0, work = function(backend) {
      # with a parent from outside, the nodes that a node may have had tables of any size
      table <- bn_scores(some(rep(2, 18), 300), 2, candidates = 3, control = list(plus_one = FALSE), run = "cpu")
      withr::local_options(weft.device_memory = 2.1e6)
      exact <- bn_exact(table, run = backend)
      list(exact$dag, exact$score)
    }),
    "sums over orders, some subsets on the host" = list(tolerance = 1e-10, work = function(backend) {
      withr::local_options(weft.device_memory = 2.5e6)
      order_sums(18, some, c(0L, 0L))$work(backend)
    }),
    "sums over orders, subsets cut alike" = order_sums(13, some, c(8L, 3L)),
    "sums over orders, no tops" = order_sums(15, some, c(8L, 7L)),
    "sums over orders, no mids" = order_sums(4, some, c(3L, 0L)),
    "sums over orders of scores thousands of nats apart" = list(tolerance = 0, work = function(backend) {
      order_sums(6, far_apart, c(3L, 2L))$work(backend)
    })
  )
}

# Scores whose weights underflow in doubles: copies of one column.
far_apart <- function(levels, n) {
  x <- sample(4, 4000, TRUE)
  copy <- function(k) factor(ifelse(stats::runif(4000) < 0.02 * k, sample(4, 4000, TRUE), x), 1:4)
  list2DF(lapply(stats::setNames(1:6, letters[1:6]), copy))
}

# Sums over orders with the same cut of subsets on both back ends: the same bits.
order_sums <- function(p, data, shape) {
  list(tolerance = 0, work = function(backend) {
    table <- bn_scores(data(rep(2, p), 300), 3, keep = "all", run = "cpu")
    weft:::order_edges(table, bn_exact(table, run = "cpu")$score, weft:::run_control(backend),
                       list(low = shape[1L], middle = shape[2L]))
  })
}

# Posteriors over graphs, which are the same bits.
graph_sums <- function(p, data, max_parents = 3, ...) {
  list(tolerance = 0, work = function(backend) {
    table <- call_with(bn_scores, list(data(rep(2, p), 150), max_parents, keep = "all", ..., run = "cpu"))
    exact <- bn_exact(table, posterior = "dag", run = backend)
    list(exact$edges, exact$log_total, exact$error)
  })
}
