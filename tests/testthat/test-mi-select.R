# Greedy selection by the definitions, in bits.
ref_select <- function(x, y, k, method) {
  h <- ref_entropy
  gini <- function(...) {
    g <- interaction(..., drop = TRUE)
    q <- table(g, y) / length(y)
    sum(q^2 / rowSums(q)) - sum(colSums(q)^2)
  }
  relevance <- vapply(x, function(a) if (method == "jim") gini(a) else ref_mi(a, y), 0)
  known <- new.env()
  once <- function(what, j, w, value) {
    key <- paste(what, j, w)
    if (is.null(known[[key]])) known[[key]] <- value
    known[[key]]
  }
  score_of <- function(j, chosen) {
    a <- x[[j]]
    if (!length(chosen)) return(relevance[[j]])
    # a pair's entropies are the same in every step
    joint <- function() vapply(chosen, function(w) once("joint", j, w, h(a, x[[w]]) + h(y) - h(a, x[[w]], y)), 0)
    ratio <- function() vapply(chosen, function(w) once("ratio", j, w, h(a, x[[w]], y)), 0)
    switch(method,
      mim = relevance[[j]], mrmr = relevance[[j]] -
        mean(vapply(chosen, function(w) once("mi", j, w, ref_mi(a, x[[w]])), 0)),
      jmi = sum(joint()), jmim = min(joint()), disr = sum(joint() / ratio()), njmim = min(joint() / ratio()),
      cmim = min(relevance[[j]], vapply(chosen, function(w) {
        once("cmi", j, w, h(a, x[[w]]) + h(x[[w]], y) - h(x[[w]]) - h(a, x[[w]], y))
      }, 0)),
      cmi = { s <- interaction(x[chosen], drop = TRUE); h(a, s) + h(s, y) - h(s) - h(a, s, y) },
      jim = sum(vapply(chosen, function(w) once("gini", j, w, gini(a, x[[w]])), 0)))
  }
  chosen <- integer()
  scores <- numeric()
  while (length(chosen) < k) {
    left <- setdiff(seq_along(x), chosen)
    s <- vapply(left, score_of, 0, chosen)
    if (method %in% c("cmi", "cmim") && max(s) <= 1e-12) break
    best <- left[which(s >= max(s) - 1e-12)[1]]
    scores <- c(scores, s[match(best, left)])
    chosen <- c(chosen, best)
  }
  list(feature = names(x)[chosen], score = scores)
}

methods <- c("mim", "mrmr", "jmi", "jmim", "njmim", "disr", "cmim", "cmi", "jim")

small_data <- function(n = 90, p = 9) {
  i <- seq_len(n)
  y <- (i * 7) %% 3
  x <- lapply(seq_len(p), function(j) (i * j + i^2 %/% (j + 1) + (j %% 4 == 0) * y) %% (2 + j %% 4))
  names(x) <- paste0("f", seq_len(p))
  x$copy <- x$f4
  x$constant <- rep(1L, n)
  list(x = as.data.frame(x), y = y)
}

test_that("all methods are the definitions", {
  d <- small_data()
  for (method in methods) {
    expected <- ref_select(d$x, d$y, 7, method)
    got <- mi_select(d$x, d$y, 7, method)
    expect_identical(got$feature, expected$feature, info = method)
    expect_equal(got$score, expected$score, tolerance = 1e-10, info = method)
  }
})

test_that("leaving candidates behind that cannot be the best changes nothing", {
  d <- small_data(60, 130) # more than are brought up to date at first
  for (method in c("cmim", "jmim", "njmim")) {
    expected <- ref_select(d$x, d$y, 4, method)
    for (threads in 1:2) {
      got <- mi_select(d$x, d$y, 4, method, run = weft_run(threads = threads))
      expect_identical(got$feature, expected$feature, info = method)
      expect_equal(got$score, expected$score, tolerance = 1e-10, info = method)
    }
  }
})

test_that("tables, planes and hashing count alike", {
  d <- small_data(500, 6)
  wide <- d$x
  wide[] <- lapply(wide, function(a) a * 5 + (seq_along(a) * 11) %% 5) # 10 to 25 levels, partly row by row
  many <- wide
  many[] <- lapply(wide, function(a) a * 40 + (seq_along(a) * 17) %% 40) # tables of 10^5 cells and more
  for (x in list(wide, many)) {
    for (method in methods) {
      expected <- ref_select(x, d$y, 4, method)
      got <- mi_select(x, d$y, 4, method)
      expect_equal(got$score, expected$score, tolerance = 1e-9, info = method)
      expect_identical(got$feature, expected$feature, info = method)
    }
  }
})

test_that("selections are praznik's on iris cut into five", {
  x <- as.data.frame(lapply(iris[1:4], function(v) 1L + findInterval(v, sort(v)[ceiling(1:4 * 30)], left.open = TRUE)))
  # praznik 13.0.0 on these factors; its scores are in nats
  praznik <- list(
    mim = c(Petal.Width = 0.832872420, Petal.Length = 0.827834369, Sepal.Length = 0.429214846,
            Sepal.Width = 0.249960764),
    mrmr = c(Petal.Width = 0.83287242, Petal.Length = -0.01775876, Sepal.Width = -0.03022695,
             Sepal.Length = -0.00965218352),
    jmi = c(Petal.Width = 0.832872420, Sepal.Width = 0.956663029, Petal.Length = 1.887613042,
            Sepal.Length = 2.483757322),
    jmim = c(Petal.Width = 0.832872420, Sepal.Width = 0.956663029, Petal.Length = 0.940355578,
             Sepal.Length = 0.746033069),
    njmim = c(Petal.Width = 0.832872420, Petal.Length = 0.375255167, Sepal.Width = 0.313835708,
              Sepal.Length = 0.227566565),
    disr = c(Petal.Width = 0.832872420, Petal.Length = 0.375255167, Sepal.Width = 0.639384916,
             Sepal.Length = 0.833133875),
    cmim = c(Petal.Width = 0.8328724199, Sepal.Width = 0.1237906094, Petal.Length = 0.1074831579,
             Sepal.Length = 0.0224220017),
    cmi = c(Petal.Width = 0.8328724199, Sepal.Width = 0.1237906094, Petal.Length = 0.0830091639,
            Sepal.Length = 0.0462098120),
    jim = c(Petal.Width = 0.495599366, Sepal.Width = 0.585958153, Petal.Length = 1.122069190,
            Sepal.Length = 1.450322233)
  )
  for (method in names(praznik)) {
    got <- mi_select(x, iris$Species, length(praznik[[method]]), method, unit = "nats")
    expect_equal(stats::setNames(got$score, got$feature), praznik[[method]], tolerance = 1e-6, info = method)
  }
})

test_that("a planted XOR pair is found by joint methods", {
  set.seed(1)
  x <- as.data.frame(matrix(sample(0:1, 400 * 20, TRUE), 400))
  x$strong <- sample(0:1, 400, TRUE)
  y <- xor(x$strong, x$V7) + 0L
  y[1:60] <- x$strong[1:60] # a hint, so that one of the pair is first
  expect_setequal(mi_select(x, y, 2, "jmi")$feature, c("strong", "V7"))
})

test_that("CMI and CMIM stop when nothing is left, the others go on", {
  x <- data.frame(a = c(0, 0, 1, 1), b = c(0, 0, 1, 1), c = 1)
  expect_identical(mi_select(x, c(0, 0, 1, 1), 3, "cmi")$feature, "a")
  expect_identical(mi_select(x, c(0, 0, 1, 1), 3, "cmim")$feature, "a")
  expect_identical(mi_select(x, c(0, 0, 1, 1), 3, "mim")$feature, c("a", "b", "c")) # ties to the first column
  expect_identical(nrow(mi_select(x["c"], c(0, 0, 1, 1), 1, "cmi")), 0L)
  expect_identical(mi_select(x["c"], c(0, 0, 1, 1), 1, "jmi")$score, 0)
})

test_that("missing values: each score over the rows where all is known", {
  d <- small_data(200, 5)
  x <- d$x[1:5]
  set.seed(2)
  for (j in 1:5) x[[j]][sample(200, 10)] <- NA
  y <- d$y
  y[3] <- NA
  s <- mi_select(x, y, 2, "jmi", na = "drop")
  one <- match(s$feature[1], names(x))
  known <- complete.cases(x[[one]], y)
  expect_equal(s$score[1], ref_mi(x[[one]][known], y[known]), tolerance = 1e-12)
  two <- match(s$feature[2], names(x))
  known <- complete.cases(x[[one]], x[[two]], y)
  expect_equal(s$score[2], ref_mi(interaction(x[[one]][known], x[[two]][known]), y[known]), tolerance = 1e-12)
  expect_error(mi_select(x, d$y, 2), "missing values", class = "weft_error_input")
  expect_error(mi_select(d$x, y, 2), "missing values", class = "weft_error_input")
  level <- mi_select(x, d$y, 5, "cmi", na = "level")
  filled <- as.data.frame(lapply(x, function(a) ifelse(is.na(a), 99, a)))
  expect_equal(level$score, mi_select(filled, d$y, 5, "cmi")$score, tolerance = 1e-12)
})

test_that("selection does not depend on threads; inputs of all kinds", {
  d <- small_data()
  for (method in methods) {
    expect_identical(mi_select(d$x, d$y, 6, method, run = weft_run(threads = 1))$score,
                     mi_select(d$x, d$y, 6, method, run = weft_run(threads = 3))$score)
  }
  m <- as.matrix(d$x)
  expect_identical(mi_select(m, d$y, 3)$score, mi_select(d$x, d$y, 3)$score)
  sparse <- Matrix::Matrix((m > 1) + 0, sparse = TRUE)
  expect_identical(mi_select(sparse, d$y, 3)$score, mi_select((m > 1) + 0L, d$y, 3)$score)
  expect_identical(nrow(mi_select(d$x[0], d$y)), 0L)
  expect_identical(nrow(mi_select(d$x, d$y, 0)), 0L)
  expect_error(mi_select(d$x, d$y, 50), "at most the number", class = "weft_error_input")
  expect_error(mi_select(iris[1:4], iris$Species, 2), "discretize", class = "weft_error_input")
  s <- mi_select(iris[1:4], iris$Species, bins = 4)
  expect_output(print(s), "4 of 4 features selected \\(mrmr\\)")
  withr::local_pdf(NULL)
  expect_identical(plot(s), s)
})
