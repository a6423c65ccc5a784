# The mutual-information room's rows of the table in test-twins.R. Shapes are drawn, so that they are multiples of
# nothing.
twins_mi <- function() {
  some <- function(levels, n, missing = 0) {
    columns <- lapply(levels, function(l) replace(sample(l, n, TRUE), stats::runif(n) < missing, NA))
    list2DF(stats::setNames(columns, paste0("x", seq_along(levels))))
  }
  pick_one <- function(values) values[sample(length(values), 1)]
  # numbers of classes have kernels of their own, and are operations of their own: each is long under sanitizers
  with_classes <- function(name, work) {
    numbers <- c(1, 2, 3, 8, 64)
    operations <- lapply(numbers, function(classes) list(tolerance = 0, work = function(on) work(classes, on)))
    stats::setNames(operations, sprintf("mi_pairs, %s, classes: %d", name, numbers))
  }
  every_level <- function(levels) {
    work <- function(missing) function(classes, backend) {
      n <- sample(c(64, 257, sample(600, 1)), 1)
      x <- some(sample(levels, 24, TRUE), n, missing)
      tidy(mi_pairs(x, sample(classes, n, TRUE), na = if (missing) sample(c("drop", "level"), 1) else "fail",
                    by = sample(c("mi", "interaction"), 1), top = 40, run = backend))
    }
    name <- sprintf("%d to %d levels", min(levels), max(levels))
    c(with_classes(name, work(0)), with_classes(paste0(name, ", missing values"), work(0.05)))
  }
  many_rows <- function(classes, backend) {
    n <- sample(c(65535:65537, 131071, 200000), 1)
    x <- some(c(2, 3, 4, 6, 12, 24, 25), n)
    x[c(2, 4)] <- some(c(3, 7), n, 0.01)
    tidy(mi_pairs(x, sample(classes, n, TRUE), na = "drop", top = Inf, run = backend))
  }
  permuted <- function(rows, name) {
    work <- function(classes, backend) lapply(c(3, 5), function(most) {
      n <- rows()
      x <- some(sample(2:most, 12, TRUE), n, if (most > 3) 0.02 else 0)
      tidy(mi_pairs(x, sample(classes, n, TRUE), na = "drop", by = sample(c("mi", "interaction"), 1), top = 15,
                    permutations = 3, seed = 1, run = backend))
    })
    with_classes(paste("permutations,", name), work)
  }
  c(every_level(2:3), every_level(4:6), every_level(7:12), every_level(13:24), every_level(2:25),
    with_classes("more rows than 16 bits count", many_rows), permuted(function() 50, "50 rows"),
    permuted(function() sample(400, 1), "up to 400 rows"),
    permuted(function() sample(c(65535:65537, 140000), 1), "more rows than 16 bits count"), list(
    "mi_rank, binary" = list(tolerance = 0, work = function(backend) {
      n <- sample(2000, 1)
      tidy(mi_rank(some(rep(2, sample(300, 1)), n), sample(2, n, TRUE), run = backend))
    }),
    "mi_rank, mixed levels" = list(tolerance = 0, work = function(backend) {
      n <- sample(5000, 1)
      tidy(mi_rank(some(c(1, 2, 3, 100, 255, 256, 3000), n), sample(sample(300, 1), n, TRUE), run = backend))
    }),
    "mi_rank, missing left out" = list(tolerance = 0, work = function(backend) {
      n <- sample(3000, 1)
      tidy(mi_rank(some(c(2, 2, 3, 300), n, 0.1), sample(c(1:7, NA), n, TRUE), na = "drop", run = backend))
    }),
    "mi_rank, missing as a level" = list(tolerance = 0, work = function(backend) {
      n <- sample(3000, 1)
      tidy(mi_rank(some(c(2, 2, 3, 254, 255), n, 0.1), sample(c(1:3, NA), n, TRUE), na = "level", run = backend))
    }),
    "mi_pairs, binary" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(as.matrix(some(rep(2, sample(20:200, 1)), n)), sample(2, n, TRUE), top = sample(300, 1),
                    run = backend))
    }),
    "mi_pairs, binary, by interaction between two sets" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(some(rep(2, 90), n), sample(2, n, TRUE), by = "interaction", features = 1:50, top = Inf,
                    run = backend, control = list(with = 30:90, min_gain = 1e-3)))
    }),
    "mi_pairs, three levels" = list(tolerance = 0, work = function(backend) {
      n <- sample(3000, 1)
      tidy(mi_pairs(some(rep(3, sample(20:300, 1)), n), sample(2, n, TRUE), top = sample(300, 1), run = backend))
    }),
    "mi_pairs, three levels, by interaction between two sets" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(some(rep(3, 170), n), sample(2, n, TRUE, c(9, 1)), by = "interaction", features = 1:90, top = Inf,
                    run = backend, control = list(with = 60:170, min_gain = 1e-3)))
    }),
    "mi_pairs, three levels, several tiles for each block" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(sample(200, 2), 1200), 1)
      tidy(mi_pairs(some(sample(2:3, 2700, TRUE), n), sample(2, n, TRUE), by = sample(c("mi", "interaction"), 1),
                    top = sample(3000, 1), run = backend))
    }),
    "mi_pairs, up to three levels, two to eight classes" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(1:3, sample(2000, 3)), 1)
      x <- some(sample(3, 150, TRUE), n)
      lapply(c(2, 3, 8), function(classes) {
        class <- factor(sample(classes, n, TRUE), 1:9)
        lapply(list(class, droplevels(class)), function(class)
          tidy(mi_pairs(x, class, top = 90, by = sample(c("mi", "interaction"), 1), run = backend)))
      })
    }),
    "mi_pairs, up to three levels: rare levels, unequal classes, copies of the class" = list(tolerance = 0,
      work = function(backend) {
      n <- sample(c(40, 255:257, 600), 1)
      class <- sample(rep(1:2, ceiling(n * c(0.95, 0.05)))[seq_len(n)])
      x <- vapply(rep(c(0.001, 0.01, 0.1, 0.5), each = 20), function(f) stats::rbinom(n, 2, f), integer(n))
      x <- cbind(x, class, 3L - class, 0L, ifelse(x[, 80] == 1, class, 0L))
      colnames(x) <- seq_len(ncol(x))
      lapply(list(class, factor(class, c(1, 9, 2))), function(class) lapply(c("mi", "interaction"), function(by)
        tidy(mi_pairs(x, class, by = by, top = sample(c(9, 500), 1), run = backend))))
    }),
    "mi_pairs, a PLINK file" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(1:5, sample(3000, 2)), 1)
      file <- plink_file(write_genotypes(withr::local_tempfile(), some_genotypes(n, sample(5:150, 1))))
      class <- sample(c(seq_len(sample(9, 1)), NA), n, TRUE)
      if (all(is.na(class))) class[1] <- 1
      tidy(mi_pairs(file, class, top = sample(300, 1), na = sample(c("drop", "level"), 1), run = backend))
    }),
    "mi_pairs, more rows than 16 bits count" = list(tolerance = 0, work = function(backend) {
      n <- sample(65530:70000, 1)
      tidy(mi_pairs(some(sample(2:3, 20, TRUE), n), sample(2, n, TRUE), top = 40, run = backend,
                    control = list(min_mi = 1e-5)))
    }),
    "mi_pairs, two to five levels, thresholds" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(some(sample(2:5, 120, TRUE), n), sample(4, n, TRUE), top = Inf, run = backend,
                    control = list(min_mi = 0.01, min_gain = 0)))
    }),
    "mi_pairs, genotypes with missing calls" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(3, sample(3000, 3)), 1)
      x <- cbind(some(rep(3, sample(20:280, 1)), n, 0.03), some(sample(2:3, 20, TRUE), n))
      class <- sample(sample(c(1, 2, 2, 3), 1), n, TRUE)
      lapply(c("drop", "level"), function(na) lapply(c("mi", "interaction"), function(by)
        tidy(mi_pairs(stats::setNames(x, seq_along(x)), class, na = na, top = sample(300, 1), by = by, run = backend))))
    }),
    "mi_pairs, any planes, several tiles" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(1:3, sample(4000, 5)), 1)
      levels <- sample(list(2, 3, 4, 5, 2:5), 1)[[1]]
      x <- some(rep_len(levels, sample(300, 1) + 250), n, sample(c(0, 0, 0.03), 1))
      class <- sample(sample(c(2, 3, 4, 8, 64), 1), n, TRUE)
      with <- sample(c(TRUE, FALSE), 1)
      lapply(c("mi", "interaction"), function(by)
        tidy(mi_pairs(x, class, na = "drop", by = by, top = sample(300, 1), features = if (with) 1:150, run = backend,
                      control = list(with = if (with) 100:ncol(x),
                                     min_gain = if (by == "mi" && n > 100) -0.01 else NULL))))
    }),
    "mi_pairs, missing calls, more rows than 16 bits count" = list(tolerance = 0, work = function(backend) {
      n <- sample(132000:140000, 1)
      tidy(mi_pairs(some(c(sample(2:4, 12, TRUE), 3), n, 0.01), sample(2, n, TRUE), na = "drop", top = 30,
                    run = backend))
    }),
    "mi_pairs, two to nine levels, missing or not, two sets" = list(tolerance = 0, work = function(backend) {
      n <- sample(2000, 1)
      x <- stats::setNames(cbind(some(sample(2:9, 70, TRUE), n), some(sample(2:9, 70, TRUE), n, 0.2)), 1:140)
      for (j in c(1, 80)) x[[j]] <- 1L # constants have no planes
      tidy(mi_pairs(x, sample(sample(20, 1), n, TRUE), na = "drop", features = 1:100, top = Inf, run = backend,
                    control = list(with = 60:140, min_mi = 0.01, min_gain = -0.02)))
    }),
    "mi_pairs, four and five levels, all pairs kept" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(some(sample(4:5, 300, TRUE), n), sample(4, n, TRUE), top = Inf, run = backend))
    }),
    "mi_pairs, strata" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(2, sample(2000, 3)), 1)
      x <- stats::setNames(cbind(some(sample(2:5, 90, TRUE), n), some(c(sample(2:5, 60, TRUE), 40, 7), n, 0.05)), 1:152)
      class <- sample(sample(c(2, 3), 1), n, TRUE)
      strata <- sample(c(1:3, NA), n, TRUE, c(4, 4, 1, 0.1))
      strata[1] <- 1
      lapply(c("mi", "interaction"), function(by)
        tidy(mi_pairs(x, class, strata = strata, na = "drop", by = by, top = 200, run = backend)))
    }),
    "mi_pairs, strata, full, many combinations" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      mi_pairs(some(c(2, 3, 2, 30, 5), n, 0.1), sample(9, n, TRUE), strata = sample(sample(c(2, 11), 1), n, TRUE),
               na = "drop", run = backend, control = list(full = TRUE))[c("mi", "interaction")]
    }),
    "mi_pairs, strata, permutations" = list(tolerance = 0, work = function(backend) {
      tidy(mi_pairs(some(rep(2:3, 20), 150), sample(2, 150, TRUE), strata = sample(3, 150, TRUE), top = 20,
                    permutations = 9, seed = 1, run = backend))
    }),
    "mi_pairs, two to twenty-five levels, one to sixty-four classes" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(1:3, sample(1500, 3)), 1)
      x <- some(sample(2:25, 30, TRUE), n, sample(c(0, 0.05), 1))
      class <- sample(sample(c(1, 2, 3, 8, 64), 1), n, TRUE)
      lapply(c("drop", "level"), function(na)
        tidy(mi_pairs(x, class, na = na, by = sample(c("mi", "interaction"), 1), top = 60, run = backend)))
    }),
    "mi_pairs, up to 200,000 rows" = list(tolerance = 0, work = function(backend) {
      n <- sample(150000:200000, 1)
      tidy(mi_pairs(some(c(2:6, 3, 3, 3), n, sample(c(0, 0.01), 1)), sample(sample(c(2, 3, 8), 1), n, TRUE),
                    na = "drop", top = 20, run = backend))
    }),
    "mi_pairs, three levels, more planes than a device takes at once" = list(tolerance = 0, work = function(backend) {
      old <- options(weft.device_memory = 17.75e6)
      on.exit(options(old))
      n <- sample(700:900, 1)
      x <- some(rep(3, 600), n)
      class <- sample(2, n, TRUE)
      c(lapply(c("mi", "interaction"), function(by)
        tidy(mi_pairs(x, class, top = 300, by = by, run = backend))),
        list(tidy(mi_pairs(x, class, features = 1:400, top = 300, run = backend, control = list(with = 300:600)))))
    }),
    "mi_pairs, missing calls, more planes than a device takes at once" = list(tolerance = 0, work = function(backend) {
      old <- options(weft.device_memory = 18.53e6)
      on.exit(options(old))
      n <- sample(700:900, 1)
      x <- cbind(some(sample(2:3, 500, TRUE), n), some(sample(2:3, 300, TRUE), n, 0.05))
      tidy(mi_pairs(stats::setNames(x, seq_along(x)), sample(2, n, TRUE), na = "drop", top = 300, run = backend))
    }),
    "mi_pairs, permutations, two to five levels, missing or not" = list(tolerance = 0, work = function(backend) {
      n <- sample(1500, 1)
      x <- cbind(some(sample(2:5, 60, TRUE), n), some(sample(2:5, 20, TRUE), n, 0.05))
      lapply(c("mi", "interaction"), function(by)
        tidy(mi_pairs(stats::setNames(x, seq_along(x)), sample(sample(c(2, 3, 8), 1), n, TRUE), na = "drop", top = 20,
                      features = 1:70, by = by, permutations = 5, seed = 1, run = backend)))
    }),
    "mi_pairs, permutations, up to three levels, two classes" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(2:3, 255:257, sample(3000, 4)), 1)
      x <- some(sample(3, sample(3:200, 1), TRUE), n)
      class <- rep_len(1:2, n)[sample(n)]
      where <- data.frame(chromosome = sample(3, ncol(x), TRUE), position = sample(1000, ncol(x)))
      lapply(c("mi", "interaction"), function(by) list(
        tidy(mi_pairs(x, class, by = by, top = 30, permutations = 40, seed = 3, run = backend)),
        tidy(mi_pairs(x, class, by = by, top = 9, features = 1:3, permutations = 5, seed = 4, run = backend,
                      control = list(with = 2:ncol(x), min_distance = 50, positions = where)))))
    }),
    "mi_pairs, permutations, two classes, more than 15 bits count" = list(tolerance = 0, work = function(backend) {
      n <- sample(32768:65535, 1)
      tidy(mi_pairs(some(sample(3, 12, TRUE), n), sample(2, n, TRUE), top = 30, permutations = 4, seed = 5,
                    run = backend))
    }),
    "mi_pairs, permutations with codes" = list(tolerance = 0, work = function(backend) {
      tidy(mi_pairs(some(c(rep(2, 10), 40, 5), 300), sample(3, 300, TRUE), top = 20, permutations = 4, seed = 2,
                    run = backend))
    }),
    "mi_pairs, neighbours left out" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      where <- data.frame(chromosome = sample(3, 120, TRUE), position = sample(1000, 120))
      lapply(list(2, 2:5), function(levels)
        tidy(mi_pairs(some(sample(levels, 120, TRUE), n), sample(2, n, TRUE), top = 80, run = backend,
                      control = list(min_distance = 200, positions = where))))
    }),
    "mi_pairs, mixed levels, missing left out" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(some(c(rep(2, 30), rep(3, 30), 5, 40, 300), n, 0.05), sample(3, n, TRUE), na = "drop", top = 100,
                    run = backend))
    }),
    "mi_pairs, full" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      mi_pairs(some(rep(2:3, 20), n), sample(2, n, TRUE), run = backend, control = list(full = TRUE))$mi
    }),
    "mi_pairs, full, many levels, missing left out" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      mi_pairs(some(c(2, 3, 2, 30, 300, 700, 25), n, 0.1), sample(c(1:3, NA), n, TRUE), na = "drop", run = backend,
               control = list(full = TRUE))[c("mi", "interaction")]
    }),
    "mi_pairs, many classes" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(some(c(rep(2, 20), 5, 40), n), sample(90, n, TRUE), by = "interaction", top = 60, run = backend))
    }),
    "mi_matrix of categories" = list(tolerance = 0, work = function(backend) {
      n <- sample(1500, 1)
      x <- some(sample(c(1:6, 20, 30), sample(70, 1), TRUE), n)
      as.matrix(mi_matrix(x, run = backend))
    }),
    "mi_matrix of categories, missing left out, two sets" = list(tolerance = 0, work = function(backend) {
      n <- sample(1500, 1)
      as.matrix(mi_matrix(some(c(2, 2, 3, 5, 24, 25, 300), n, 0.1), some(c(2, 7, 1, 900), n, 0.1), na = "drop",
                          run = backend))
    }),
    "mi_matrix of categories, other estimators" = list(tolerance = 1e-12, work = function(backend) {
      x <- some(sample(c(1:6, 30), sample(40, 1), TRUE), sample(500, 1), 0.05)
      lapply(c("miller-madow", "shrink", "schurmann-grassberger"), function(estimator)
        as.matrix(mi_matrix(x, estimator = estimator, na = "level", run = backend)))
    }),
    "mi_rank, permutations" = list(tolerance = 0, work = function(backend) {
      tidy(mi_rank(some(c(rep(2, 40), 5, 30), 150), sample(3, 150, TRUE), permutations = 30, seed = 1, run = backend))
    }),
    "mi_pairs, permutations" = list(tolerance = 0, work = function(backend) {
      tidy(mi_pairs(some(rep(2, 40), 150), sample(2, 150, TRUE), top = 20, permutations = 9, seed = 1, run = backend))
    }),
    "mi_triples, binary" = list(tolerance = 0, work = function(backend) {
      n <- sample(500, 1)
      x <- some(rep(2, sample(c(151:190, 257:270), 1)), n) # from 151 features on, tests take the kernel for many
      class <- sample(2, n, TRUE)
      few <- x[, seq_len(sample(10:80, 1))]
      list(tidy(mi_triples(few, class, top = 50, run = backend)),
           tidy(mi_triples(x, class, top = 50, run = backend)),
           tidy(mi_triples(x, class, top = 50, by = "interaction", run = backend)))
    }),
    "mi_triples, two to five levels, one to eight classes" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(2, sample(700, 3)), 1)
      x <- some(sample(sample(2:5, 1), sample(5:60, 1), TRUE), n)
      x[[3]] <- 1L
      class <- factor(sample(sample(c(1:3, 8), 1), n, TRUE), 1:8)
      if (stats::runif(1) < 0.7) class <- droplevels(class)
      lapply(c("mi", "interaction"), function(by) tidy(mi_triples(x, class, top = 50, by = by, run = backend)))
    }),
    "mi_triples, three levels, more than a tile" = list(tolerance = 0, work = function(backend) {
      n <- sample(300, 1)
      x <- as.matrix(some(rep(3, sample(140:290, 1)), n))
      tidy(mi_triples(x, sample(2, n, TRUE), top = 40, features = sort(sample(ncol(x), 135)), run = backend,
                      control = list(min_gain = 0.001)))
    }),
    "mi_triples, up to three levels, two classes" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(2:3, 255:257, 511:513, sample(4000, 5)), 1)
      x <- some(sample(3, sample(3:140, 1), TRUE), n)
      class <- sample(2, n, TRUE, c(sample(c(1, 1, 9, 99), 1), 1))
      lapply(c("mi", "interaction"), function(by)
        tidy(mi_triples(x, class, top = sample(300, 1), by = by, run = backend)))
    }),
    "mi_triples, three levels, rows sorted: rare levels, copies, strong attributes" = list(tolerance = 0,
      work = function(backend) {
      n <- sample(c(90, 255:257, 1000, 3000), 1)
      p <- sample(c(40, 64:66, 127:130, 150), 1)
      x <- matrix(stats::rbinom(n * p, 2, rep(stats::runif(p), each = n)), n)
      class <- (x[, 1] * x[, 2] + x[, 3] + stats::rbinom(n, 1, 0.3)) %% 2
      x[, 5:9] <- class + (stats::runif(n * 5) < 0.2)
      x[, p - 0:9] <- x[, sample(p, 10)] # ties across tiles
      lapply(c("mi", "interaction"), function(by)
        tidy(mi_triples(x, class, top = sample(c(1, 30, 700), 1), by = by, run = backend,
                        control = list(min_gain = if (p > 64) -Inf else 0.01))))
    }),
    "mi_triples, three levels, one to 200,000 rows" = list(tolerance = 0, work = function(backend) {
      lapply(c(1, 3, 32767:32768, 66000, 200000), function(n)
        tidy(mi_triples(some(c(3, 3, 2, 1, 3, 3), n), sample(2, n, TRUE), top = 20, by = "interaction", run = backend)))
    }),
    "mi_triples, three levels, as many rows as 16 bits count" = list(tolerance = 0, work = function(backend) {
      n <- sample(65500:65535, 1)
      tidy(mi_triples(some(c(3, 3, 2, 1, 3, 3, 2, 3), n), sample(2, n, TRUE), top = 20, run = backend,
                      control = list(min_gain = 1e-5)))
    }),
    "mi_triples, three levels, more than a buffer holds" = list(tolerance = 0, work = function(backend) {
      x <- some(sample(2:3, 195, TRUE), sample(40:60, 1)) # 1.2 million triples
      tidy(mi_triples(x, sample(2, nrow(x), TRUE), top = 2^19, run = backend))
    }),
    "mi_triples, missing as a level, many rows" = list(tolerance = 0, work = function(backend) {
      n <- sample(132000:140000, 1)
      tidy(mi_triples(some(rep(3, 6), n, 0.01), sample(2, n, TRUE), na = "level", top = 20, run = backend))
    }),
    "mi_tuples of four, binary and up to three levels" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(2, 255:257, sample(3000, 2)), 1)
      class <- sample(2, n, TRUE, c(sample(c(1, 9), 1), 1))
      class[1:2] <- 1:2
      lapply(list(2L, 1:3, 2:3), function(levels) {
        x <- as.matrix(some(sample(rep(levels, 2), sample(c(4:12, 24), 1), TRUE), n))
        x[, 3] <- x[, 1]
        tidy(mi_tuples(x, class, top = sample(c(1, 30, 2000), 1), run = backend))
      })
    }),
    "mi_tuples of four, more pairs than a panel" = list(tolerance = 0, work = function(backend) {
      n <- sample(150:300, 1)
      x <- some(rep(3, 66), n)
      tidy(mi_tuples(x, sample(2, n, TRUE), top = 300, run = backend))
    }),
    "pair_scan, whole genotypes, dependent and rare ones" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(60, 300, 2000), 1)
      p <- sample(c(12, 130, 260), 1)
      x <- matrix(stats::rbinom(n * p, 2, rep(stats::runif(p, 0.01, 0.6), each = n)), n)
      x[, 2:4] <- cbind(2L - x[, 1], (x[, 1] > 0) + 0L, x[, 1])
      y <- stats::rnorm(n) + 0.4 * x[, 1] * x[, p]
      covariates <- cbind(stats::rnorm(n), x[, 5] + (stats::runif(n) < 0.1), exp(2 * stats::rnorm(n)))
      top <- sample(c(1, 40, 2000), 1)
      lapply(c(1, 4), function(df) list(
        tidy(pair_scan(x, y, covariates, top = top, df = df, run = backend)),
        tidy(pair_scan(x, y > 1, covariates[, 1], top = top, df = df, run = backend)),
        tidy(pair_scan(x, y, top = 9, df = df, features = 1:5, permutations = 5, seed = 1, run = backend))))
    }),
    "pair_scan, missing genotypes of few or all variants" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(60, 300, 2000), 1)
      p <- sample(c(12, 140, 260), 1)
      x <- matrix(stats::rbinom(n * p, 2, rep(stats::runif(p, 0.02, 0.6), each = n)), n)
      x[, 2:4] <- cbind(2L - x[, 1], (x[, 1] > 0) + 0L, x[, 1])
      some <- sample(p, sample(c(3, p), 1))
      x[, some][stats::runif(n * length(some)) < sample(c(0.005, 0.03, 0.12), 1)] <- NA
      y <- stats::rnorm(n) + 0.4 * ifelse(is.na(x[, 5] * x[, p]), 1, x[, 5] * x[, p])
      covariates <- cbind(stats::rnorm(n), exp(2 * stats::rnorm(n)), x[, 1] + stats::rnorm(n) / 9)
      covariates[is.na(covariates)] <- 0
      top <- sample(c(1, 40, 2000), 1)
      lapply(c(1, 4), function(df) list(
        tidy(pair_scan(x, y, covariates, top = top, df = df, run = backend)),
        tidy(pair_scan(x, y > 1, covariates[, 1], top = top, df = df, run = backend)),
        tidy(pair_scan(x, y, matrix(stats::rnorm(n * 26), n), top = 9, df = df, run = backend)),
        tidy(pair_scan(x, y, top = 9, df = df, permutations = 5, seed = 1, run = backend))))
    }),
    "pair_scan, missing genotypes, neighbours left out" = list(tolerance = 0, work = function(backend) {
      n <- sample(c(60, 800), 1)
      x <- matrix(stats::rbinom(n * 90, 2, 0.3), n)
      x[, 1:30][sample(n * 30, 40)] <- NA
      where <- data.frame(chromosome = sample(2, 90, TRUE), position = sample(1000, 90))
      lapply(c(1, 4), function(df)
        tidy(pair_scan(x, stats::rnorm(n), stats::rnorm(n), top = 60, df = df, run = backend,
                       control = list(min_distance = 100, positions = where, max_p = 0.5))))
    }),
    "mi_matrix of numbers" = list(tolerance = 0, work = function(backend) {
      x <- matrix(stats::rnorm(100 * sample(3:60, 1)), 100)
      x[, 2] <- round(x[, 2])
      lapply(c("pearson", "spearman", "copula", "kendall", "ksg"),
             function(estimator) as.matrix(mi_matrix(x, estimator = estimator, run = backend)))
    }),
    "transfer_entropy, products" = list(tolerance = 0, work = function(backend) {
      lapply(c(2, 3, 4), function(bins) { # more genes than a tile has, steps that fill no word, several series
        x <- matrix(stats::rnorm(300 * sample(c(5, 40, 300), 1)), 300)
        x[-1, 2] <- x[-1, 2] + x[-300, 1]
        x[, 3] <- round(x[, 3])
        time <- list(c(1:170, 1:130), rep(1:2, c(170, 130)))
        as.data.frame(transfer_entropy(x, time, bins = bins, permutations = 4, fdr = pick_one(c(0.2, 1)), seed = 1,
                                       control = list(lag = pick_one(1:3)), run = backend))
      })
    }),
    "transfer_entropy, counts" = list(tolerance = 0, work = function(backend) {
      lapply(c(5, 9, 16), function(bins) {
        x <- matrix(stats::rnorm(sample(100:400, 1) * 70), ncol = 70)
        as.data.frame(transfer_entropy(x, seq_len(nrow(x)), regulators = 1:33, targets = 20:70, bins = bins,
                                       permutations = 2, fdr = 1, seed = 1, run = backend))
      })
    }),
    "transfer_entropy, without a test" = list(tolerance = 0, work = function(backend) {
      as.data.frame(transfer_entropy(some(sample(2:7, 30, TRUE), 100), 1:100, bins = NULL, permutations = 0,
                                     control = list(top = 50), run = backend))
    }),
    "mi_network, aracne" = list(tolerance = 0, work = function(backend) {
      m <- as.matrix(mi_matrix(matrix(stats::rnorm(40 * sample(3:150, 1)), 40), estimator = "pearson", run = "cpu"))
      as.matrix(mi_network(m, "aracne", eps = 0.01, run = backend))
    }),
    "mi_network, mrnet, mrnetb" = list(tolerance = 0, work = function(backend) {
      p <- sample(3:150, 1)
      m <- as.matrix(mi_matrix(cbind(matrix(stats::rnorm(40 * p), 40), 1), estimator = "pearson", run = "cpu"))
      lapply(c("mrnet", "mrnetb"), function(method) as.matrix(mi_network(m, method, run = backend)))
    }),
    "mi_network, ties, zeros and rounding" = list(tolerance = 0, work = function(backend) {
      p <- sample(3:90, 1)
      m <- matrix(0, p, p)
      m[upper.tri(m)] <- sample(0:sample(2:9, 1), p * (p - 1) / 2, TRUE) * 0.1 +
        sample(c(0, 1e-17), p * (p - 1) / 2, TRUE)
      m <- m + t(m)
      lapply(whole_networks, function(method) as.matrix(mi_network(m, method, run = backend)))
    }),
    "mi_network, a method of the CPU's" = list(tolerance = 0, work = function(backend) {
      m <- as.matrix(mi_matrix(matrix(stats::rnorm(40 * sample(3:90, 1)), 40), estimator = "pearson", run = "cpu"))
      how <- list(method = "relnet", eps = 0.02, keep = 1, least = 0)
      .Call(weft:::C_weft_mi_network, m, how, weft:::run_control(backend))
    }),
    "mi_network, significant edges" = list(tolerance = 0, work = function(backend) {
      m <- mi_matrix(some(sample(2:9, 20, TRUE), 150), run = "cpu")
      lapply(whole_networks, function(method) as.matrix(mi_network(m, method, fdr = 0.9, run = backend)))
    })
  ))
}
