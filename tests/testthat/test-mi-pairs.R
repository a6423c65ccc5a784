test_that("every pair of every kind of column has the score that tables in R give", {
  set.seed(1)
  for (n in c(1, 2, 37, 150, 700)) {
    x <- mixed_columns(n)
    for (classes in c(1, 2, 5)) {
      class <- sample(letters[seq_len(classes)], n, TRUE)
      class[sample(n, n %/% 9)] <- NA
      found <- mi_pairs(x, class, top = Inf, na = "drop", run = "cpu")
      expect_tuples(found, reference_tuples(x, class, 2))
      expect_false(is.unsorted(-found$mi))
      if (classes == 1) expect_identical(c(found$mi, found$interaction), numeric(2 * nrow(found)))
    }
  }
})

test_that("every number of classes beside two to twenty-five levels, known or not, has the score of tables in R", {
  set.seed(11)
  for (n in c(1, 65, 300)) {
    for (classes in c(1, 2, 3, 8, 64)) {
      class <- sample(classes, n, TRUE)
      x <- as.data.frame(lapply(c(2, 3, 4, 6, 12, 24, 25), function(levels) sample(levels, n, TRUE)))
      names(x) <- letters[seq_along(x)]
      gaps <- replace(x, matrix(stats::runif(n * 7) < rep(c(0, 0, 0, 0.1, 0.1, 0.1, 0.5), each = n), n), NA)
      complete <- reference_tuples(x, class, 2)
      known <- reference_tuples(gaps, class, 2)
      for (level in simd_levels()) with_simd_level(level, {
        expect_tuples(mi_pairs(x, class, top = Inf, run = "cpu"), complete)
        expect_tuples(mi_pairs(gaps, class, top = Inf, na = "drop", run = "cpu"), known)
      })
    }
  }
})

test_that("missing values can be a level, and are an error by default", {
  set.seed(2)
  x <- mixed_columns(120)
  class <- sample(1:3, 120, TRUE)
  as_level <- as.data.frame(lapply(x, function(v) ifelse(is.na(v), 99999L, v)))
  expect_tuples(mi_pairs(x, class, top = Inf, na = "level"), reference_tuples(as_level, class, 2))
  expect_error(mi_pairs(x, class), "Missing in 3 of 11 columns: `c`, `g`, `i`", class = "weft_error_input")
  expect_error(mi_pairs(x["a"], replace(class, 3, NA)), "must not have missing", class = "weft_error_input")
})

test_that("the best are the first of all, by information or interaction, whatever the threads and vector code", {
  set.seed(3)
  x <- matrix(sample(0:1, 90 * 150, TRUE), 90)
  x[, 80] <- x[, 3] # ties
  class <- xor(x[, 5], x[, 130])
  for (by in c("mi", "interaction")) {
    all <- as.data.frame(mi_pairs(x, class, top = Inf, by = by))
    expect_identical(all$feature1[1], "V5")
    expect_identical(all$feature2[1], "V130")
    at <- match(all$feature1, paste0("V", 1:150)) * 1000 + match(all$feature2, paste0("V", 1:150))
    expect_identical(order(-all[[by]], at), seq_len(nrow(all)))
    for (level in simd_levels()) {
      for (threads in 1:2) {
        best <- with_simd_level(level, as.data.frame(mi_pairs(x, class, top = 40, by = by,
                                                              run = weft_run(threads = threads))))
        expect_identical(best, all[1:40, ], ignore_attr = "row.names")
      }
    }
  }
})

test_that("thresholds and top intersect, in the unit asked for", {
  set.seed(4)
  x <- matrix(sample(0:2, 60 * 30, TRUE), 60)
  class <- sample(0:1, 60, TRUE)
  all <- as.data.frame(mi_pairs(x, class, top = Inf))
  cut <- all$mi[50]
  expect_identical(as.data.frame(mi_pairs(x, class, top = Inf, control = list(min_mi = cut))), all[all$mi >= cut, ])
  expect_identical(nrow(mi_pairs(x, class, top = 7, control = list(min_mi = cut))), 7L)
  gain <- stats::median(all$interaction)
  some <- as.data.frame(mi_pairs(x, class, top = Inf, control = list(min_gain = gain)))
  expect_identical(some, all[all$interaction >= gain, ], ignore_attr = "row.names")
  nats <- mi_pairs(x, class, top = Inf, control = list(unit = "nats"))
  expect_equal(nats$mi, all$mi * log(2), tolerance = 1e-15)
  expect_identical(nrow(mi_pairs(x, class, top = Inf,
                                 control = list(min_mi = nats$mi[50] * (1 - 1e-12), unit = "nats"))), 50L)
  expect_identical(nrow(mi_pairs(x, class, control = list(min_mi = 5))), 0L)
})

test_that("a threshold keeps the scores that are reported as its value, in either unit", {
  x <- matrix(sample(0:2, 200 * 40, TRUE), 200)
  class <- rep(1:2, 100)
  for (unit in c("bits", "nats")) {
    all <- mi_pairs(x, class, top = Inf, control = list(unit = unit))
    for (at in sample(nrow(all), 60)) {
      expect_identical(nrow(mi_pairs(x, class, top = Inf, control = list(unit = unit, min_mi = all$mi[at]))),
                       sum(all$mi >= all$mi[at]))
      expect_identical(nrow(mi_pairs(x, class, top = Inf, control = list(unit = unit, min_gain = all$interaction[at]))),
                       sum(all$interaction >= all$interaction[at]))
    }
    triples <- mi_triples(x[, 1:7], class, top = Inf, run = "cpu", control = list(unit = unit))
    tuples <- mi_tuples(x[, 1:7], class, order = 4, top = Inf, control = list(unit = unit))
    for (at in 1:35) {
      expect_identical(nrow(mi_triples(x[, 1:7], class, top = Inf, run = "cpu",
                                       control = list(unit = unit, min_mi = triples$mi[at]))),
                       sum(triples$mi >= triples$mi[at]))
      expect_identical(nrow(mi_tuples(x[, 1:7], class, order = 4, top = Inf,
                                      control = list(unit = unit, min_mi = tuples$mi[at]))),
                       sum(tuples$mi >= tuples$mi[at]))
    }
  }
  expect_identical(weft:::minimum_in_bits(0, log(2)), 0)
  expect_identical(weft:::minimum_in_bits(Inf, log(2)), Inf)
})

test_that("searches can be restricted to features and to pairs of two sets", {
  set.seed(5)
  x <- as.data.frame(matrix(sample(c(0:2, NA), 50 * 20, TRUE), 50))
  class <- sample(0:1, 50, TRUE)
  all <- as.data.frame(mi_pairs(x, class, top = Inf, na = "drop"))
  among <- function(a, b) (all$feature1 %in% a & all$feature2 %in% b) | (all$feature2 %in% a & all$feature1 %in% b)
  v <- names(x)
  expect_identical(as.data.frame(mi_pairs(x, class, features = 3:9, na = "drop")), all[among(v[3:9], v[3:9]), ],
                   ignore_attr = "row.names")
  found <- mi_pairs(x, class, features = v[1:5], na = "drop", control = list(with = v[4:12]))
  expect_identical(as.data.frame(found), all[among(v[1:5], v[4:12]), ], ignore_attr = "row.names")
  expect_identical(attr(found, "searched"), as.double(nrow(found)))
  expect_identical(as.data.frame(mi_pairs(x, class, na = "drop", control = list(with = 7))), all[among(v, v[7]), ],
                   ignore_attr = "row.names")
  expect_error(mi_pairs(x, class, features = c("V1", "nobody"), na = "drop"), "There is no feature `nobody`",
               class = "weft_error_input")
  expect_error(mi_pairs(x, class, features = list(), na = "drop"), class = "weft_error_input")
})

test_that("full matrices hold the same scores", {
  set.seed(6)
  x <- mixed_columns(80)
  class <- sample(0:2, 80, TRUE)
  m <- mi_pairs(x, class, na = "drop", control = list(full = TRUE))
  found <- mi_pairs(x, class, top = Inf, na = "drop")
  at <- as.matrix(found[c("feature1", "feature2")])
  expect_identical(m$mi[at], found$mi)
  expect_identical(m$interaction[at], found$interaction)
  expect_identical(m$mi, t(m$mi))
  alone <- mi_rank(x, class, na = "drop")
  expect_equal(diag(m$mi)[alone$feature], stats::setNames(alone$mi, alone$feature), tolerance = 1e-12)
  expect_error(mi_pairs(x, class, permutations = 3, na = "drop", control = list(full = TRUE)),
               class = "weft_error_input")
})

test_that("a matrix of all pairs that cannot fit is an error with its size", {
  skip_if(.Call(weft:::C_weft_host_available) < 0)
  x <- matrix(0:1, 2, 4e5)
  expect_error(mi_pairs(x, 0:1, control = list(full = TRUE)), "2560.0 GB", class = "weft_error_memory")
})

test_that("hard inputs give answers", {
  class <- rep(0:1, 20)
  none <- mi_pairs(matrix(0L, 40, 0), class)
  expect_identical(dim(none), c(0L, 7L))
  expect_output(print(none), "0 kept of 0")
  expect_identical(nrow(mi_pairs(matrix(1:40, 40, 1), class)), 0L)
  twice <- matrix(c(class, class, 1:40), 40, dimnames = list(NULL, c("x", "x", "\u00e9t\u00e9")))
  found <- mi_pairs(twice, class)
  expect_identical(found$feature2[1:3], c("x", "\u00e9t\u00e9", "\u00e9t\u00e9"))
  expect_equal(found$mi, c(1, 1, 1), tolerance = 1e-15)
  expect_equal(found$interaction, c(-1, -1, -1), tolerance = 1e-15)
  many <- data.frame(a = 1:70000 %% 65535L, b = rep(1:300, length.out = 70000), c = 1:70000 %% 7L)
  class <- 1:70000 %% 3L
  expect_tuples(mi_pairs(many, class), reference_tuples(many, class, 2))
  expect_error(mi_pairs(data.frame(a = 1:70000, b = 1L), class), "at most 65535", class = "weft_error_input")
  expect_error(mi_pairs(matrix(0.5, 3, 2), 1:3), "fraction", class = "weft_error_input")
  expect_error(mi_pairs(matrix(0L, 3, 2)), "`class` must", class = "weft_error_input")
  expect_error(mi_pairs(matrix(0L, 3, 2), 1:3, top = 0), "`top` must be", class = "weft_error_input")
  wide <- matrix(sample(0:1, 30 * 300, TRUE), 30)
  labels <- 1:30 # as many classes as rows
  expect_tuples(mi_pairs(wide[, 1:6], labels, top = Inf), reference_tuples(wide[, 1:6], labels, 2))
  labels <- sample(100, 500, TRUE) # coded
  x <- matrix(sample(0:1, 500 * 5, TRUE), 500)
  expect_tuples(mi_pairs(x, labels, top = Inf), reference_tuples(x, labels, 2))
})

test_that("a pack gives what the data give", {
  set.seed(8)
  x <- mixed_columns(90)
  class <- sample(c("u", "v", NA), 90, TRUE)
  pack <- mi_pack(x, class, na = "drop")
  expect_identical(dim(pack), c(90L, 11L))
  expect_output(print(pack), "90 rows, 11 features, class of 2 levels, 0.0 MB")
  expect_identical(as.data.frame(mi_pairs(pack)), as.data.frame(mi_pairs(x, class, na = "drop")))
  expect_identical(as.data.frame(mi_triples(pack, top = 9)), as.data.frame(mi_triples(x, class, na = "drop", top = 9)))
  from_pack <- mi_rank(pack)
  direct <- mi_rank(x, class, na = "drop")
  at <- match(direct$feature, from_pack$feature)
  for (column in setdiff(names(direct), c("feature", "q_value")))
    expect_equal(from_pack[[column]][at], direct[[column]], tolerance = 1e-10, info = column)
  expect_error(mi_pairs(pack, class), "must not be given", class = "weft_error_input")
  weft_free(pack)
  expect_output(print(pack), "freed")
  expect_error(mi_pairs(pack), "not been freed", class = "weft_error_input")
  expect_error(mi_pairs(mi_pack(x["a"])), "without", class = "weft_error_input")
  expect_identical(weft:::mi_counts_matrix(mi_pack(x["a"])), weft:::mi_counts_matrix(weft:::categorical_input(x["a"])))
})

test_that("permutation tests: exact p-values, seeds, and nothing found in noise", {
  set.seed(9)
  x <- matrix(sample(0:1, 80 * 12, TRUE), 80)
  class <- as.integer(xor(x[, 2], x[, 11]))
  a <- mi_pairs(x, class, top = 5, permutations = 49, seed = 7)
  expect_equal(a$p_value[1], 1 / 50)
  expect_equal(a$p_fwer[1], 1 / 50)
  expect_true(all(a$p_value <= a$p_fwer))
  expect_output(print(a), "[1-5] significant at a family-wise error rate of 0.05")
  shown <- gsub("\\s+", " ", paste(utils::capture.output(print(a)), collapse = " "))
  expect_match(shown, "49 random permutations of the class and cannot be below 0.02.", fixed = TRUE)
  expect_match(shown, "After Bonferroni correction for 66 pairs, p_value could only be significant with at least 1,319",
               fixed = TRUE)
  noise <- mi_pairs(x[, -c(2, 11)], class, top = 5, permutations = 19, seed = 1)
  noise$p_fwer[] <- 0.4
  expect_output(print(noise), "None is significant: the smallest family-wise p-value is 0.4")
  state <- .Random.seed
  expect_identical(as.data.frame(mi_pairs(x, class, top = 5, permutations = 49, seed = 7, run = weft_run(threads = 1))),
                   as.data.frame(a))
  expect_identical(.Random.seed, state)
  mi_pairs(x, class, top = 5, permutations = 2)
  expect_false(identical(.Random.seed, state))
  b <- mi_pairs(x, class, top = 3, by = "interaction", permutations = 19, seed = 1)
  expect_equal(b$p_fwer[1], 1 / 20)
  # the permuted scores have their law: two features, two classes of one row in four ones: the table has few shapes
  y <- matrix(c(1, 0, 0, 0, 1, 0, 0, 0), 4)
  p <- mi_rank(y[, 1, drop = FALSE], c(1, 0, 0, 0), permutations = 4000, seed = 3)
  expect_equal(p$p_permutation, 0.25, tolerance = 0.1)
  expect_identical(p$p_permutation, p$p_fwer)
  r <- mi_rank(x, x[, 4], permutations = 99, seed = 1)
  expect_identical(r$feature[1], "V4")
  expect_equal(r$p_fwer[1], 0.01)
  expect_gt(min(r$p_fwer[-1]), 0.01)
  withna <- mixed_columns(60)
  r <- mi_rank(withna, sample(0:2, 60, TRUE), permutations = 20, seed = 2, na = "drop")
  expect_true(all(r$p_permutation > 0 & r$p_permutation <= r$p_fwer))
  expect_identical(r$p_permutation[r$feature %in% c("e", "h", "i")], c(1, 1, 1))
})

test_that("matrices of information between columns, by four estimators", {
  set.seed(10)
  x <- mixed_columns(70)
  entropy <- list(
    empirical = function(k) -sum(k / sum(k) * log(k / sum(k))),
    "miller-madow" = function(k) -sum(k / sum(k) * log(k / sum(k))) + (length(k) - 1) / (2 * sum(k)),
    shrink = function(k) {
      p <- k / sum(k)
      t <- 1 / length(k)
      away <- sum((t - p)^2)
      lambda <- if (away > 0 && sum(k) > 1) min(1, (1 - sum(p^2)) / ((sum(k) - 1) * away)) else 1
      p <- lambda * t + (1 - lambda) * p
      -sum(p[p > 0] * log(p[p > 0]))
    },
    "schurmann-grassberger" = function(k) {
      k <- k + 1 / length(k)
      sum(k / sum(k) * (digamma(sum(k) + 1) - digamma(k + 1)))
    }
  )
  for (name in names(entropy)) {
    h <- function(...) {
      k <- as.vector(table(...))
      k <- k[k > 0]
      if (length(k) < 2) 0 else entropy[[name]](k) / log(2)
    }
    expected <- outer(seq_along(x), seq_along(x), Vectorize(function(i, j) {
      ok <- !is.na(x[[i]]) & !is.na(x[[j]])
      a <- x[[i]][ok]
      b <- x[[j]][ok]
      if (i == j) return(h(a))
      if (length(unique(a)) < 2 || length(unique(b)) < 2) 0 else h(a) + h(b) - h(a, b)
    }))
    found <- weft:::mi_counts_matrix(weft:::categorical_input(x), NULL, name)
    expect_equal(unname(found), expected, tolerance = 1e-10, info = name)
    expect_identical(found, t(found))
    part <- weft:::mi_counts_matrix(weft:::categorical_input(x[2:4]), weft:::categorical_input(x[c(1, 7, 11)]), name)
    expect_equal(part, found[2:4, c(1, 7, 11)], tolerance = 1e-12, info = name)
  }
})

test_that("results print, summarise and plot", {
  x <- as.data.frame(lapply(mtcars[c("cyl", "gear", "carb", "vs")], factor))
  r <- mi_pairs(x, mtcars$am, run = "cpu")
  expect_output(print(r), "pairs with a class of 2 levels \\(bits\\): 6 kept of 6")
  expect_identical(summary(r)$kept, 6L)
  expect_identical(class(tidy(r)), "data.frame")
  expect_identical(glance(r)$searched, 6)
  withr::with_pdf(withr::local_tempfile(fileext = ".pdf"), expect_silent(plot(r)))
})

test_that("a failed allocation is an error and leaks nothing", {
  set.seed(11)
  x <- mixed_columns(40)
  class <- sample(0:1, 40, TRUE)
  expect_survives_failures(list(pairs = function() mi_pairs(x, class, na = "drop", permutations = 1, seed = 1,
                                                            run = weft_run(threads = 2))))
})

test_that("CUDA finds the same pairs, in the same order, with the same scores", {
  skip_if_no_cuda()
  set.seed(12)
  for (shape in list(c(1, 3, 2), c(2, 70, 2), c(63, 130, 2), c(500, 333, 2), c(1000, 517, 2), c(777, 150, 3),
                     c(2000, 129, 5))) {
    x <- matrix(sample(0:1, shape[1] * shape[2], TRUE), shape[1])
    class <- sample(seq_len(shape[3]), shape[1], TRUE)
    for (by in c("mi", "interaction")) {
      for (top in c(1, 50, 1e5)) {
        cpu <- as.data.frame(mi_pairs(x, class, top = top, by = by, run = "cpu"))
        cuda <- as.data.frame(mi_pairs(x, class, top = top, by = by, run = "cuda"))
        expect_identical(cuda, cpu, label = paste(c(shape, by), collapse = " "))
      }
    }
    expect_identical(mi_pairs(x, class, run = "cuda", control = list(full = TRUE))$mi,
                     mi_pairs(x, class, run = "cpu", control = list(full = TRUE))$mi)
  }
  x <- cbind(mixed_columns(300), mixed_columns(300), matrix(sample(0:2, 300 * 90, TRUE), 300))
  names(x) <- paste0("c", seq_along(x))
  class <- sample(c(0:3, NA), 300, TRUE)
  for (by in c("mi", "interaction")) for (na in c("drop", "level")) {
    cpu <- as.data.frame(mi_pairs(x, class, top = 500, by = by, na = na, run = "cpu"))
    expect_identical(as.data.frame(mi_pairs(x, class, top = 500, by = by, na = na, run = "cuda")), cpu)
  }
  expect_identical(as.data.frame(mi_pairs(x, class, top = Inf, na = "drop", run = "cuda",
                                          control = list(min_mi = 0.2))),
                   as.data.frame(mi_pairs(x, class, top = Inf, na = "drop", run = "cpu", control = list(min_mi = 0.2))))
  expect_identical(as.data.frame(mi_pairs(x, class, features = 1:40, na = "drop", run = "cuda",
                                          control = list(with = 30:80))),
                   as.data.frame(mi_pairs(x, class, features = 1:40, na = "drop", run = "cpu",
                                          control = list(with = 30:80))))
  x <- matrix(sample(0:1, 200 * 150, TRUE), 200)
  class <- sample(0:1, 200, TRUE)
  expect_identical(as.data.frame(mi_pairs(x, class, top = 20, permutations = 5, seed = 1, run = "cuda")),
                   as.data.frame(mi_pairs(x, class, top = 20, permutations = 5, seed = 1, run = "cpu")))
  pack <- mi_pack(x, class)
  one <- mi_pairs(pack, run = "cuda")
  expect_output(print(pack), "also on the device")
  expect_identical(as.data.frame(mi_pairs(pack, run = "cuda")), as.data.frame(one))
  before <- .Call(weft:::C_weft_memory, NULL)[["device"]]
  weft_free(pack)
  expect_lt(.Call(weft:::C_weft_memory, NULL)[["device"]], before)
})
