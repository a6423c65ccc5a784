# Missing values of Bayesian networks: expected counts against tables of whole rows and R loops, EM against closed
# forms, data augmentation against sums over all completions.

completed_times <- function(data, times) {
  weft:::prepared_data(data[rep(seq_len(nrow(data)), times), , drop = FALSE], NULL, completions = times,
                       standard = TRUE)
}

lose <- function(data, share, seed = 1) {
  withr::local_seed(seed)
  for (j in seq_along(data)) data[[j]][stats::runif(nrow(data)) < share] <- NA
  data
}

chain_of_numbers <- function(n, p, seed = 1) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n * p), n, dimnames = list(NULL, paste0("v", seq_len(p))))
  for (j in seq_len(p)[-1L]) x[, j] <- x[, j] + x[, j - 1L]
  x
}

test_that("rows that stand for a third of one count as that", {
  d <- bn_test_data(60)
  x <- as.data.frame(scale(chain_of_numbers(60, 4)))
  mixed <- mixed_bn_data()
  for (score in c("bdeu", "k2", "bic", "aic", "bds", "bge", "bic-cg", "aic-cg")) {
    data <- if (score == "bge") x else if (endsWith(score, "-cg")) mixed else d
    plain <- as.data.frame(bn_scores(completed_times(data, 1), 3, score, keep = "all"))
    three <- as.data.frame(bn_scores(completed_times(data, 3), 3, score, keep = "all",
                                     run = weft_run("cpu", threads = 2)))
    key <- function(table) paste(table$node, table$parents)
    expect_equal(three$score[match(key(plain), key(three))], plain$score, tolerance = 1e-9)
    node <- names(data)[4L]
    parents <- names(data)[c(1L, 3L)]
    expect_equal(bn_local_score(completed_times(data, 3), node, parents, score),
                 bn_local_score(completed_times(data, 1), node, parents, score), tolerance = 1e-9)
  }
})

test_that("counts that are no whole numbers are scored by their formula", {
  d <- bn_test_data(61)
  x <- weft:::prepared_data(d, NULL, completions = 2.5)
  counts <- table(paste(d$a, d$c), d$b) / 2.5
  alpha <- 1 / (3 * 4 * 2)
  expected <- sum(lgamma(alpha + counts) - lgamma(alpha)) -
    sum(lgamma(3 * alpha + rowSums(counts)) - lgamma(3 * alpha))
  table <- as.data.frame(bn_scores(x, 2, keep = "all"))
  expect_equal(table$score[table$node == "b" & table$parents == "a;c"], expected, tolerance = 1e-9)
  logs <- ifelse(counts > 0, counts * log(counts / rowSums(counts)), 0)
  bic <- as.data.frame(bn_scores(x, 2, "bic", keep = "all"))
  expect_equal(bic$score[bic$node == "b" & bic$parents == "a;c"], sum(logs) - 8 * 2 * log(61 / 2.5) / 2,
               tolerance = 1e-9)
})

test_that("EM finds the maximum of a normal likelihood, which is known where columns lose values in turn", {
  withr::local_seed(2)
  a <- stats::rnorm(3000, 5, 2)
  b <- 1 - 0.7 * a + stats::rnorm(3000)
  lacking <- stats::runif(3000) < stats::plogis(a - 5) # at random given a
  d <- data.frame(a, b = replace(b, lacking, NA))
  fit <- bn_fit(d, matrix(c(0, 0, 1, 0), 2, dimnames = list(names(d), names(d))), na = "em", seed = 1)
  line <- stats::lm(b ~ a, d) # Anderson (1957)
  error <- summary(line)$coefficients[, 2L]
  expect_lt(abs(fit$nodes$b$slopes[["a"]] - stats::coef(line)[["a"]]), error[["a"]] / 2)
  expect_lt(abs(fit$nodes$b$intercept - stats::coef(line)[[1L]]), error[[1L]] / 2)
  expect_equal(fit$nodes$b$sd, summary(line)$sigma, tolerance = 0.03)
  expect_equal(fit$nodes$a$intercept, mean(a), tolerance = 1e-10)
  expect_identical(fit$n, 3000)
})

test_that("EM finds the parameters of categories that exact expected counts lead to", {
  d <- lose(linked_bn_data(3, 600, seed = 3), 0.3)
  d[] <- lapply(d, factor, levels = 0:1)
  chain <- matrix(0, 3, 3, dimnames = list(names(d), names(d)))
  chain[cbind(1:2, 2:3)] <- 1
  fit <- bn_fit(d, chain, na = "em", seed = 1)
  cells <- expand.grid(V1 = 0:1, V2 = 0:1, V3 = 0:1)
  weight <- rep(1 / 8, 8)
  for (round in 1:60) {
    counts <- double(8)
    for (i in seq_len(nrow(d))) {
      fits <- weight
      for (v in names(d)) if (!is.na(d[i, v])) fits <- fits * (cells[[v]] == as.integer(d[i, v]) - 1)
      counts <- counts + fits / sum(fits)
    }
    of <- function(by) stats::ave(counts, cells[by], FUN = sum)
    one <- (of("V1") + 1 / 2) / (600 + 1)
    two <- (of(c("V1", "V2")) + 1 / 4) / (of("V1") + 1 / 2)
    three <- (of(c("V2", "V3")) + 1 / 4) / (of("V2") + 1 / 2)
    weight <- one * two * three
  }
  expect_lt(abs(fit$nodes$V2$probability[2L, 1L] - two[cells$V1 == 0 & cells$V2 == 1][1L]), 0.01)
  expect_lt(abs(fit$nodes$V3$probability[1L, 2L] - three[cells$V2 == 1 & cells$V3 == 0][1L]), 0.01)
})

test_that("structural EM finds what complete data show, and says what it did", {
  d <- linked_bn_data(6, 800, 0.15, seed = 5)
  d[] <- lapply(d, factor)
  lost <- lose(d, 0.1)
  fit <- bn_search(lost, na = "em", seed = 1, control = list(rounds = 3, completions = 4))
  whole <- bn_search(d, seed = 1)
  expect_lte(bn_compare(fit, whole)$shd_cpdag, 1)
  expect_equal(bn_score(fit$completed, fit$dag, "bdeu", gamma = 1 / sqrt(6)), fit$score, tolerance = 1e-9)
  expect_identical(nrow(fit$completed), 3200L)
  there <- !is.na(lost$V3)
  expect_identical(fit$completed$V3[1:800][there], d$V3[there])
  again <- bn_search(lost, na = "em", seed = 1, control = list(rounds = 3, completions = 4),
                     run = weft_run(threads = 2))
  expect_identical(again$dag, fit$dag)
  expect_identical(again$completed, fit$completed)
  learned <- bn_learn(lost, na = "em", seed = 1, iterations = 200, control = list(rounds = 3, completions = 4))
  expect_s3_class(learned, "weft_bn")
  expect_gte(learned$score, bn_score(learned$completed, fit$dag, "bdeu") - 1e-6)
  expect_output(print(fit), "structural EM")
  expect_output(print(learned), "structural EM")
  x <- lose(as.data.frame(chain_of_numbers(400, 6)), 0.2)
  numbers <- bn_search(x, na = "em", seed = 1, control = list(rounds = 3))
  expect_identical(sum(numbers$dag | t(numbers$dag)) / 2, 5)
  mixed <- bn_search(lose(mixed_bn_data(), 0.05), na = "em", seed = 1, control = list(rounds = 2, kicks = 20))
  expect_identical(mixed$type, "bic-cg")
  expect_identical(bn_search(d, na = "em", seed = 1)$dag, whole$dag)
})

# Posterior of the edges given what was observed: the sum over all completions and all graphs.
enumerated_edges <- function(d, dags, log_joint) {
  at <- which(is.na(as.matrix(d)), arr.ind = TRUE)
  fills <- expand.grid(rep(list(0:1), nrow(at)))
  weight <- matrix(0, nrow(fills), length(dags))
  for (f in seq_len(nrow(fills))) {
    whole <- d
    for (k in seq_len(nrow(at))) whole[at[k, 1L], at[k, 2L]] <- fills[f, k]
    whole[] <- lapply(whole, factor, levels = 0:1)
    weight[f, ] <- vapply(dags, function(dag) log_joint(whole, dag), 0)
  }
  total <- colSums(exp(weight - max(weight)))
  Reduce(`+`, Map(`*`, dags, total / sum(total)))
}

test_that("augmented chains have the posterior given what was observed", {
  d <- linked_bn_data(3, 25, 0.25, seed = 7)
  d$V1[c(1, 5)] <- NA
  d$V2[c(2, 5, 9)] <- NA
  d$V3[c(5, 11)] <- NA
  masks <- expand.grid(rep(list(0:1), 6))
  dags <- Filter(function(dag) !length(weft:::find_cycle(dag != 0)), lapply(seq_len(nrow(masks)), function(k) {
    dag <- matrix(0, 3, 3, dimnames = list(names(d), names(d)))
    dag[row(dag) != col(dag)] <- unlist(masks[k, ])
    dag
  }))
  expect_length(dags, 25L)
  expected <- enumerated_edges(d, dags, function(whole, dag) {
    sum(vapply(names(whole), function(v) reference_score(whole, v, names(which(dag[, v] == 1)), "bdeu"), 0))
  })
  d[] <- lapply(d, factor, levels = 0:1)
  fit <- bn_learn(d, target = "uniform", na = "augment", iterations = 30000, chains = 2, seed = 1,
                  control = list(completions = 1500))
  expect_lt(max(abs(fit$edges - expected)), 0.03)
  expect_output(print(fit), "missing values")
  features <- bn_features(fit)
  expect_equal(features$edges, fit$edges, tolerance = 1e-12)
  expect_error(update(fit, 100), class = "weft_error_input")
  short <- function(threads) {
    bn_learn(d, target = "sum", na = "augment", iterations = 400, chains = 2, seed = 1,
             run = weft_run(threads = threads), control = list(completions = 20))$edges
  }
  expect_identical(short(1), short(2))
})

test_that("parameters of augmented Gaussian chains are draws from their posterior", {
  x <- as.data.frame(scale(chain_of_numbers(40, 3)))
  input <- weft:::bn_input(weft:::prepared_data(x, NULL, standard = TRUE), "bge")
  dag <- matrix(c(0, 0, 0, 1, 0, 0, 0, 1, 0), 3, dimnames = list(names(x), names(x)))
  drawn <- vapply(1:4000, function(k) {
    node <- weft:::draw_parameters(input, dag, "bge", 1, c(1, 2), k)$nodes$v2
    c(node$slopes, node$sd^2)
  }, double(2))
  # by hand: T = 1/2 I, n = 40, prior mean 0, standardised columns
  scatter <- diag(0.5, 2) + 39 * stats::cor(x[, 1:2])
  expect_equal(mean(drawn[1L, ]), scatter[1, 2] / scatter[1, 1], tolerance = 0.01)
  left <- scatter[2, 2] - scatter[1, 2]^2 / scatter[1, 1]
  expect_equal(mean(drawn[2L, ]), left / (40 + 1 + 3 - 2), tolerance = 0.02)
  expect_equal(stats::var(drawn[1L, ]), left / (40 + 1 + 3 - 2) / scatter[1, 1], tolerance = 0.08)
  lost <- lose(as.data.frame(chain_of_numbers(300, 4)), 0.1)
  fit <- bn_learn(lost, target = "uniform", score = "bge", na = "augment", iterations = 2000, chains = 2, seed = 1)
  expect_true(all((fit$edges + t(fit$edges))[cbind(1:3, 2:4)] > 0.95))
})

test_that("what cannot be completed is said", {
  d <- lose(bn_test_data(50), 0.1)
  expect_error(bn_search(d, na = "augment"), class = "weft_error_input")
  expect_error(bn_learn(d, na = "augment"), class = "weft_error_input")
  expect_error(bn_learn(d, target = "sum", na = "em"), class = "weft_error_input")
  expect_error(bn_scores(d, na = "em"), class = "weft_error_input")
  d$a <- factor(NA, "x")
  expect_error(bn_search(d, na = "em"), "observed value", class = "weft_error_input")
  x <- data.frame(a = c(1.5, NA, 2, 3), b = c(1, 2, 4, 3.5))
  expect_error(bn_search(x, na = "em", interventions = c(NA, "a", NA, NA)), "set by an intervention",
               class = "weft_error_input")
  expect_error(bn_learn(lose(mixed_bn_data(), 0.1), target = "sum", na = "augment"), "all numeric",
               class = "weft_error_input")
  two <- weft:::prepared_data(bn_test_data(50), NULL, completions = 2)
  expect_error(bn_search(two[1:10, ]), "prepared data", class = "weft_error_input")
})
