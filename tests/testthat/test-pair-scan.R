# Scans of pairs in models with covariates, against lm(), glm() and scores by their definition (helper-pair-scan.R).

# Genotypes, a third of them without missing ones; covariates; a trait, and two classes cut from it.
scan_data <- function(seed, n = 300, p = 40, missing = 0.03) {
  set.seed(seed)
  x <- matrix(stats::rbinom(n * p, 2, rep(stats::runif(p, 0.2, 0.5), each = n)), n)
  x[, -seq_len(p %/% 3)][stats::runif(n * (p - p %/% 3)) < missing] <- NA
  covariates <- data.frame(age = stats::rnorm(n, 50, 10), sex = factor(sample(c("f", "m"), n, TRUE)),
                           site = factor(sample(letters[1:3], n, TRUE)))
  trait <- 0.05 * covariates$age + 0.4 * (covariates$site == "b") + 0.3 * x[, 1] + stats::rnorm(n)
  list(x = x, covariates = covariates, trait = trait, class = trait > stats::median(trait))
}

columns_of <- function(found) {
  cbind(as.integer(sub("V", "", found$feature1)), as.integer(sub("V", "", found$feature2)))
}

expected_pairs <- function(found, data, y, covariates = data$covariates, ...) {
  at <- columns_of(found)
  t(mapply(function(i, j) model_of_pair(data$x[, i], data$x[, j], y, covariates, ...), at[, 1L], at[, 2L]))
}

numbers_of <- function(found, names) unname(as.matrix(as.data.frame(found)[names]))

test_that("fits are those of lm() and glm() on the rows where both genotypes are known", {
  data <- scan_data(1)
  one <- c("n", "estimate", "std_error", "statistic", "p_value")
  trait <- pair_scan(data$x, data$trait, data$covariates, top = 150)
  expect_equal(numbers_of(trait, one), unname(expected_pairs(trait, data, data$trait)), tolerance = 1e-10)
  class <- pair_scan(data$x, data$class, data$covariates, top = 150)
  expected <- unname(expected_pairs(class, data, data$class + 0, class = TRUE))
  expect_equal(numbers_of(class, one), expected, tolerance = 1e-9)
  expect_true(all(diff(class$p_value) >= 0) && all(is.na(class$reason)))
  without <- pair_scan(data$x, data$class, top = 20)
  expected <- unname(expected_pairs(without, data, data$class + 0, NULL, class = TRUE))
  expect_equal(numbers_of(without, one), expected, tolerance = 1e-9)
})

test_that("combinations of genotypes are tested as anova() does", {
  data <- scan_data(2, n = 600)
  four <- c("n", "statistic", "df", "p_value")
  trait <- pair_scan(data$x, data$trait, data$covariates, top = 60, df = 4)
  expect_equal(numbers_of(trait, four), unname(expected_pairs(trait, data, data$trait, df = 4)), tolerance = 1e-9)
  class <- pair_scan(data$x, data$class, data$covariates, top = 60, df = 4)
  expected <- unname(expected_pairs(class, data, data$class + 0, df = 4, class = TRUE))
  expect_equal(numbers_of(class, four), expected, tolerance = 1e-7)
  expect_false(any(c("estimate", "std_error") %in% names(class)))
})

test_that("with genotypes as categories and normal scores it is the interaction test of mi_trait()", {
  data <- scan_data(3)
  frame <- as.data.frame(data$x)
  found <- mi_pairs(frame, discretize(data.frame(t = data$trait), bins = 3)$t, top = 25, na = "drop")
  told <- mi_trait(found, frame, data$trait)
  scan <- pair_scan(frame, data$trait, pairs = found, df = 4, control = list(scores = "normal"))
  expect_equal(scan$statistic, told$f_interaction, tolerance = 1e-9)
  expect_equal(scan$p_bonferroni, told$p_bonferroni, tolerance = 1e-9)
  expect_identical(scan[c("feature1", "feature2")], told[c("feature1", "feature2")], ignore_attr = TRUE)
})

test_that("the screen is the score test of the interaction, for every pair", {
  data <- scan_data(4, p = 24, missing = 0.1)
  at <- NULL
  for (class in c(FALSE, TRUE)) for (covariates in list(NULL, data$covariates)) {
    y <- if (class) data$class else data$trait
    found <- pair_scan(data$x, y, covariates, top = Inf)
    at <- columns_of(found)
    score <- mapply(function(i, j) model_score(data$x[, i], data$x[, j], y + 0, covariates, class), at[, 1L], at[, 2L])
    expect_identical(nrow(found), as.integer(choose(24, 2)))
    expect_equal(found$score, score, tolerance = 1e-9)
    kept <- pair_scan(data$x, y, covariates, top = 10)
    expect_setequal(kept$score, sort(found$score, decreasing = TRUE)[1:10])
    expect_identical(kept$p_bonferroni, pmin(1, kept$p_value * choose(24, 2)))
  }
})

test_that("with four degrees of freedom, screen and test are those of all combinations of genotypes", {
  data <- scan_data(15, p = 12, missing = 0.05)
  data$x[, 12] <- (data$x[, 1] > 0) + 0L
  data$x[, 11] <- data$x[, 2]
  for (class in c(FALSE, TRUE)) {
    y <- if (class) data$class else data$trait
    found <- pair_scan(data$x, y, data$covariates, top = Inf, df = 4)
    at <- columns_of(found)
    score <- mapply(function(i, j) model_score(data$x[, i], data$x[, j], y + 0, data$covariates, class, 4),
                    at[, 1L], at[, 2L])
    expect_equal(found$score, score, tolerance = 1e-8)
    told <- t(mapply(function(i, j) model_of_pair(data$x[, i], data$x[, j], y + 0, data$covariates, 4, class),
                     at[, 1L], at[, 2L]))
    fine <- is.na(found$reason)
    expect_true(mean(fine) > 0.8)
    expect_equal(unname(as.matrix(as.data.frame(found)[fine, c("n", "statistic", "df", "p_value")])),
                 unname(told[fine, ]), tolerance = 1e-8)
    expect_identical(nrow(found), as.integer(attr(found, "tested")))
    kept <- pair_scan(data$x, y, data$covariates, top = 7, df = 4)
    expect_identical(sort(kept$score), sort(sort(found$score, decreasing = TRUE)[1:7]))
  }
})

test_that("more pairs of one score than are kept: the first ones, however many there are", {
  data <- scan_data(16, n = 60, p = 2)
  x <- data$x[, rep(1:2, each = 20)] # 400 pairs with one score
  found <- pair_scan(x, data$trait, top = 10, features = 1:20, control = list(with = 21:40))
  expect_identical(attr(found, "tested"), 400)
  at <- columns_of(found)
  expect_identical(at[order(at[, 1L], at[, 2L]), ], cbind(1L, 21:30), ignore_attr = TRUE)
  expect_equal(found$score, rep(model_score(x[, 1], x[, 21], data$trait), 10), tolerance = 1e-9)
})

test_that("tiles of more variants than one, and any number of threads, give the same", {
  data <- scan_data(5, n = 120, p = 280)
  found <- pair_scan(data$x, data$trait, data$covariates, top = Inf, run = weft_run(threads = 1))
  expect_identical(nrow(found), as.integer(choose(280, 2)))
  some <- found[sample(nrow(found), 100), ]
  at <- columns_of(some)
  score <- mapply(function(i, j) model_score(data$x[, i], data$x[, j], data$trait, data$covariates), at[, 1L], at[, 2L])
  expect_equal(some$score, score, tolerance = 1e-9)
  again <- pair_scan(data$x, data$trait, data$covariates, top = Inf, run = weft_run(threads = 2))
  expect_identical(as.data.frame(again), as.data.frame(found))
})

test_that("long columns are read in pieces", {
  data <- scan_data(6, n = 5000, p = 5)
  found <- pair_scan(data$x, data$class, data$covariates)
  at <- columns_of(found)
  score <- mapply(function(i, j) model_score(data$x[, i], data$x[, j], data$class + 0, data$covariates, TRUE), at[, 1L],
                  at[, 2L])
  expect_equal(found$score, score, tolerance = 1e-9)
  expect_equal(found$estimate, unname(expected_pairs(found, data, data$class + 0, class = TRUE)[, 2L]),
               tolerance = 1e-9)
})

test_that("a .bed file, numbers, bytes and data frames are read alike", {
  data <- scan_data(7, p = 12)
  stem <- write_genotypes(withr::local_tempfile(), data$x)
  take <- function(x) numbers_of(pair_scan(x, data$trait, data$covariates), c("n", "score", "estimate", "p_value"))
  expected <- take(data$x)
  expect_identical(take(plink_file(stem)), expected)
  expect_identical(take(data$x + 0), expected)
  expect_identical(take(as.data.frame(data$x)), expected)
  whole <- data$x[, 1:4]
  expect_identical(take(matrix(as.raw(whole), nrow(whole))), take(whole))
  expect_identical(take(Matrix::Matrix(whole, sparse = TRUE)), take(whole))
  file <- plink_file(stem)
  numbered <- data$covariates # names that are those of other people
  rownames(numbered) <- rev(rownames(as.matrix(file)))
  expect_identical(numbers_of(pair_scan(file, data$trait, numbered), "p_value"), expected[, 4L, drop = FALSE])
})

test_that("sets, distances, frequencies and calls say which pairs are searched", {
  data <- scan_data(8, p = 20)
  data$x[, 20] <- 0L
  data$x[1:3, 20] <- 1L
  data$x[1:200, 19] <- NA
  data$x[, 18] <- 1L
  whole <- pair_scan(data$x, data$trait, top = Inf)
  among <- function(keep) sort(whole$score[keep(columns_of(whole))])
  scan <- function(..., features = NULL) {
    found <- pair_scan(data$x, data$trait, top = Inf, features = features, control = list(...))
    expect_identical(attr(found, "tested"), as.double(nrow(found)))
    expect_identical(found$p_bonferroni, pmin(1, found$p_value * nrow(found)))
    sort(found$score)
  }
  expect_identical(scan(features = 1:7), among(function(at) at[, 1] <= 7 & at[, 2] <= 7))
  expect_equal(scan(features = 1:7, with = 5:9), among(function(at) {
    (at[, 1] <= 7 & at[, 2] %in% 5:9) | (at[, 1] %in% 5:9 & at[, 2] <= 7)
  }), tolerance = 1e-12)
  expect_equal(scan(with = c("V2", "V6")), among(function(at) at[, 1] %in% c(2, 6) | at[, 2] %in% c(2, 6)),
               tolerance = 1e-12)
  positions <- data.frame(chromosome = rep(1:2, each = 10), position = 100 * rep(1:10, 2))
  near <- function(at) (at[, 1] - 1) %/% 10 == (at[, 2] - 1) %/% 10 & abs(at[, 1] - at[, 2]) < 3
  expect_identical(scan(min_distance = 300, positions = positions), among(function(at) !near(at)))
  expect_equal(scan(min_maf = 0.1, max_missing = 0.2), among(function(at) !at[, 1] %in% 19:20 & !at[, 2] %in% 19:20),
               tolerance = 1e-12)
  found <- pair_scan(data$x, data$trait, control = list(min_maf = 0.1, max_missing = 0.2, max_p = 0.05))
  expect_identical(attr(found, "left_out"), c(missing = 1L, rare = 1L, constant = 1L))
  expect_identical(attr(found, "searched"), choose(17, 2))
  expect_true(all(stats::pchisq(found$score, 1, lower.tail = FALSE) <= 0.05))
})

test_that("permutations are scans of permuted residuals", {
  data <- scan_data(9, n = 100, p = 8)
  residual <- stats::resid(stats::lm(trait ~ ., cbind(data$covariates, trait = data$trait)))
  pairs <- utils::combn(8, 2)
  greatest <- vapply(1:9, function(stream) {
    moved <- residual[order(draws("uniform", 100, key = 5, stream = stream))]
    max(apply(pairs, 2L, function(at) model_score(data$x[, at[1L]], data$x[, at[2L]], moved, data$covariates)))
  }, 0)
  found <- pair_scan(data$x, data$trait, data$covariates, permutations = 9, seed = 5)
  expect_equal(found$p_fwer, vapply(found$score, function(score) (1 + sum(greatest >= score)) / 10, 0))
  many <- function(seed) pair_scan(data$x, data$class, permutations = 70, seed = seed)$p_fwer
  expect_identical(many(1), many(1))
  expect_false(identical(many(1), many(2)))
})

test_that("a planted pair is found where ancestry acts on variants and outcome", {
  set.seed(10)
  n <- 1000
  ancestry <- rep(0:1, each = n / 2)
  rate <- function() stats::runif(1, 0.3, 0.6) + c(-0.15, 0.15)[1 + ancestry]
  x <- vapply(1:40, function(j) stats::rbinom(n, 2, rate()), integer(n))
  trait <- 2 * ancestry + 0.5 * x[, 3] * x[, 31] + stats::rnorm(n)
  found <- pair_scan(x, trait, ancestry, top = 5, permutations = 19, seed = 1)
  expect_identical(unlist(found[1, c("feature1", "feature2")], use.names = FALSE), c("V3", "V31"))
  expect_true(found$p_bonferroni[1] < 1e-6 && found$p_fwer[1] == 0.05 && all(found$p_bonferroni[-1] > 0.05))
})

test_that("rows without an outcome or covariate do not count, and dependent covariates change nothing", {
  data <- scan_data(11, p = 10)
  data$trait[1:9] <- NA
  data$covariates$age[10:20] <- NA
  take <- function(...) numbers_of(pair_scan(...), c("n", "score", "estimate", "p_value"))
  expected <- take(data$x[-(1:20), ], data$trait[-(1:20)], data$covariates[-(1:20), ])
  expect_identical(take(data$x, data$trait, data$covariates), expected)
  double <- cbind(data$covariates, again = data$covariates$age * 1e9 - 3, one = 1)
  expect_equal(take(data$x, data$trait, double), expected, tolerance = 1e-8)
  expect_equal(attr(pair_scan(data$x, data$trait, double), "model")$covariates, 4)
  scaled <- pair_scan(data$x, data$trait * 1e200, data$covariates)
  expect_equal(scaled$statistic, pair_scan(data$x, data$trait, data$covariates)$statistic, tolerance = 1e-9)
  numbers <- pair_scan(data$x, data$class + 1, control = list(model = "linear"))
  expect_identical(attr(numbers, "model")$kind, "linear")
  expect_identical(attr(pair_scan(data$x, data$class + 1), "model")[1:2], list(kind = "logistic", levels = c("1", "2")))
})

test_that("pairs without a test say why", {
  x <- cbind(a = rep(0:1, 30), b = rep(0:1, each = 30), d = rep(0:2, 20), gap = c(0:2, 2L, rep(NA, 56)))
  x <- cbind(x, copy = x[, 1], same = 1L)
  set.seed(1)
  pairs <- data.frame(feature1 = "a", feature2 = c("b", "copy", "same", "gap"))
  number <- pair_scan(x, stats::rnorm(60), pairs = pairs)
  expect_identical(number$reason, c(NA, "collinear", "collinear", "few rows"))
  expect_identical(is.na(number$p_value), !is.na(number$reason))
  expect_identical(is.na(number$estimate), !is.na(number$reason))
  class <- x[, "a"] * x[, "b"] == 1
  expect_identical(pair_scan(x, class, pairs = pairs)$reason[1], "separated")
  class[1:4] <- FALSE
  expect_identical(pair_scan(x, class, pairs = pairs)$reason[4], "one class")
  exact <- x[, "a"] * x[, "b"] * 2.5 + x[, "d"]
  expect_identical(pair_scan(x, exact, x[, "d"], pairs = pairs)$reason[1], "no residuals")
  expect_output(print(number), "3 pairs have no test")
  expect_identical(nrow(pair_scan(x, exact, pairs = pairs[0, ])), 0L)
  expect_identical(nrow(pair_scan(x, exact, control = list(max_p = 0))), 0L)
})

test_that("data that cannot be scanned are refused", {
  refused <- function(code, text) expect_error(code, text, class = "weft_error_input")
  data <- scan_data(12, n = 60, p = 6)
  bed <- function(g) plink_file(write_genotypes(withr::local_tempfile(.local_envir = parent.frame(2)), g))
  refused(pair_scan(bed(data$x[0, ]), numeric()), "at least one row")
  refused(pair_scan(bed(data$x[, 1, drop = FALSE]), data$trait), "two variants.*1 variant is left")
  refused(pair_scan(bed(data$x[0, 1, drop = FALSE]), numeric(), df = 4), "at least one row")
  refused(pair_scan(bed(data$x * NA_integer_), data$trait), "two variants.*excluded: 6 missing")
  refused(pair_scan(data$x * 0L, data$trait), "excluded: 6 constant")
  refused(pair_scan(data$x, rep(1, 60)), "must vary")
  refused(pair_scan(data$x, rep("a", 60)), "one class")
  refused(pair_scan(data$x, rep(c("a", "b", "c"), 20)), "3 classes")
  refused(pair_scan(data$x, replace(data$trait, 1:57, NA)), "There are 3 rows")
  refused(pair_scan(data$x, data$trait * NA), "There are 0 rows")
  refused(pair_scan(data$x, replace(data$trait, 2, Inf)), "finite")
  refused(pair_scan(data$x, data$trait[-1]), "one value per row")
  refused(pair_scan(data$x, data$trait, data$trait), "must not be determined")
  refused(pair_scan(data$x, data$class, data$trait), "must not separate")
  refused(pair_scan(data$x, data$trait, replace(data$trait, 1, Inf)), "covariates")
  refused(pair_scan(data$x, data$trait, data$covariates[-1, ]), "covariates")
  refused(pair_scan(data$x + 1L, data$trait), "Other values occur in `V1`")
  refused(pair_scan(data$x + 0.5, data$trait), "Other values")
  refused(pair_scan(matrix("a", 60, 3), data$trait), "character matrix")
  refused(pair_scan(data.frame(a = factor(data$x[, 1]), b = 1), data$trait), "Column `a`")
  refused(pair_scan(data$x, data$trait, df = 2), "1 or 4")
  refused(pair_scan(data$x, data$trait, pairs = data.frame(feature1 = "V1", feature2 = "V9")), "There is no `V9`")
  refused(pair_scan(data$x, data$trait, pairs = data.frame(feature1 = "V1", feature2 = "V1")), "two different")
  refused(pair_scan(data$x, data$trait, pairs = 1:2), "data frame")
  refused(pair_scan(data$x, data$trait, pairs = data.frame(feature1 = "V1", feature2 = "V2"),
                    control = list(max_p = 1)), "Screening options")
  refused(pair_scan(data$x, data$trait, control = list(min_distance = 5)), "positions")
  refused(pair_scan(data$x, data$class, control = list(model = "linear")), "numeric")
  refused(pair_scan(data$x, data$trait, with = 2), "control = list\\(with = \\)")
  if (!is.null(weft:::cuda_missing())) {
    expect_error(pair_scan(data$x, data$trait, run = "cuda"), class = "weft_error_device")
  }
})

test_that("empty and constant variants of a file, dependent covariates and outcomes with NA give the right tables", {
  data <- scan_data(17, n = 80, p = 9)
  none <- cbind(data$x, NA, 0L, 2L, replace(rep(NA, 80), 1:2, 0:1), 1L)
  file <- plink_file(write_genotypes(withr::local_tempfile(), none))
  names <- colnames(as.matrix(file))
  whole <- names[1:9]
  covariates <- cbind(data$covariates, again = 2 - data$covariates$age, fixed = "x",
                      other = data$covariates$site == "b")
  data$trait[c(3, 70)] <- NA
  class <- replace(data$class, c(3, 70), NA)
  for (y in list(data$trait, class)) for (df in c(1, 4)) {
    found <- pair_scan(file, y, covariates, top = Inf, df = df)
    expect_identical(attr(found, "left_out"), c(missing = 1L, rare = 0L, constant = 3L))
    expect_equal(attr(found, "model")$covariates, 4)
    expect_false(anyNA(found$score))
    known <- found$feature1 %in% whole & found$feature2 %in% whole
    expect_false(any(found$p_value[!known] < 1, na.rm = TRUE)) # two people have both genotypes
    plain <- pair_scan(data$x[-c(3, 70), ], y[-c(3, 70)], data$covariates[-c(3, 70), ], top = Inf, df = df)
    at <- found[known, ]
    place <- match(paste0("V", match(at$feature1, whole), "-V", match(at$feature2, whole)),
                   paste(plain$feature1, plain$feature2, sep = "-"))
    expect_equal(at$score, plain$score[place], tolerance = 1e-8)
    expect_equal(at$p_value, plain$p_value[place], tolerance = 1e-7)
    expect_identical(nrow(plain), sum(known))
  }
  last <- names[c(1, 10, 11)]
  given <- pair_scan(file, data$trait, pairs = data.frame(feature1 = last[1], feature2 = last[2:3]))
  expect_identical(given$reason, c("few rows", "collinear"))
  expect_identical(given$n[1], 0)
})

test_that("it is printed, drawn and converted", {
  data <- scan_data(13, n = 100, p = 8)
  found <- pair_scan(data$x, data$trait, data$covariates, top = 12, permutations = 9, seed = 1)
  expect_output(print(found, 2),
                "linear model \\(100 rows, 4 terms for covariates\\): 12\\s+of\\s+28 pairs.*9 permutations")
  expect_identical(summary(found, alpha = 1)$found, 12L)
  expect_identical(tidy(found)$p.value, found$p_value)
  expect_identical(glance(found)$tested, 28)
  expect_identical(as.data.frame(found)$score, found$score)
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_identical(plot(found), found)
  expect_output(print(found[1:3, c("feature1", "score")]), "score")
})

test_that("a scan, its permutations and its fits stop when they are told to", {
  data <- scan_data(14, n = 2500, p = 150)
  withr::local_options(weft.poll = 0) # each poll goes into R
  for (place in c(3, 30, 200)) {
    polls <- 0
    stop_there <- function(done, total) {
      polls <<- polls + 1
      if (polls == place) stop(structure(class = c("told_to_stop", "error", "condition"), list(message = "stop")))
    }
    expect_error(pair_scan(data$x, data$class, data$covariates, top = Inf, permutations = 2, seed = 1,
                           run = weft_run(progress = stop_there)), class = "told_to_stop")
    expect_identical(polls, place)
  }
})
