# The arithmetic of the kernels on Hopper's tensor cores, repeated on the host by the functions that they call:
# attributes of at most three levels first, those of any planes last.

planes_on_host <- function(x, class, packed, members = ncol(x)) {
  skip_unless_test_build()
  pack <- mi_pack(x, class)
  on.exit(weft_free(pack))
  list(host = .Call(get("C_weft_mi_planes_test", asNamespace("weft")), pack$pointer, members, packed),
       full = mi_pairs(pack, full = TRUE, backend = "cpu"))
}

expect_planes <- function(x, class, packed, rows = nrow(x)) {
  made <- planes_on_host(x, class, packed)
  p <- ncol(x)
  below <- lower.tri(diag(p))
  expect_identical(made$host$seen, below + 0)
  expect_identical(made$host$joint[below], unname(made$full$mi)[below])
  spare <- made$host$screen[below] - made$full$mi[below]
  expect_gte(min(spare), 0)
  invisible(spare)
}

levels_up_to <- function(most, n, p) matrix(replicate(p, sample(sample(most, 1), n, TRUE)), n)

test_that("every pair is counted once, scored exactly, and never screened below its score", {
  set.seed(1)
  for (n in c(1, 40, 300, 700)) {
    for (p in c(2, 65, 150)) {
      x <- levels_up_to(3, n, p)
      two <- if (n == 1) 1L else rep_len(1:2, n)[sample(n)]
      if (n > 1) expect_planes(x, two, TRUE)
      expect_planes(x, two, FALSE)
    }
  }
  x <- levels_up_to(3, 520, 70)
  for (classes in c(3, 8)) expect_planes(x, factor(sample(classes, 520, TRUE), seq_len(classes)), FALSE)
})

test_that("rare levels, unequal classes, empty classes and copies of the class are screened above their score", {
  set.seed(2)
  n <- 600
  class <- rep(1:2, c(570, 30))[sample(n)]
  frequency <- rep(c(0.001, 0.01, 0.1, 0.5), each = 10)
  x <- vapply(frequency, function(f) stats::rbinom(n, 2, f), integer(n))
  x <- cbind(x, class, 3L - class, 0L, ifelse(x[, 40] == 1, class, 0L))
  for (packed in c(TRUE, FALSE)) expect_planes(x, class, packed)
  expect_planes(x, factor(class, c(1, "none", 2)), FALSE)
  expect_planes(x, sample(class), TRUE)
})

test_that("counts beyond 16 bits keep their classes apart", {
  set.seed(3)
  n <- 70000
  x <- levels_up_to(3, n, 3)
  class <- sample(2, n, TRUE)
  x[, 2] <- x[, 1] + (class == 2 & x[, 1] < 3)
  spare <- expect_planes(x, class, FALSE)
  expect_lt(max(spare), 1e-4) # a screen by logarithms is close
})

some_gaps <- function(levels, n, missing) {
  list2DF(stats::setNames(lapply(levels, function(l) replace(sample(l, n, TRUE), stats::runif(n) < missing, NA)),
                          paste0("x", seq_along(levels))))
}

# Tables of two to five levels from products of planes and margins; the screen against exact scores.
expect_products <- function(x, class, strata = NULL) {
  skip_unless_test_build()
  pack <- weft:::make_pack(x, class, "drop", NULL, NULL, NULL, NULL, strata)
  on.exit(weft_free(pack))
  full <- mi_pairs(pack, full = TRUE, backend = "cpu")
  host <- .Call(get("C_weft_mi_products_test", asNamespace("weft")), pack$pointer, full$mi, full$interaction)
  at <- lower.tri(full$mi) & host$slack > 0 # pairs with rows
  expect_gt(sum(at), 0)
  expect_identical(sum(host$wrong), 0)
  expect_lt(max(abs(host$mi - full$mi)[at] / host$slack[at]), 0.2)
  expect_lt(max(abs(host$gain - full$interaction)[at] / host$slack[at]), 0.5)
  expect_identical(range(host$kept[at]), c(1, 1))
  expect_identical(range(host$spared[at]), c(1, 1))
  max(host$slack[at])
}

test_that("tables of two to five levels, complete or not, follow from products; no pair is screened below its score", {
  set.seed(4)
  for (n in c(40, 700)) {
    for (missing in c(0, 0.1, 0.7)) {
      x <- some_gaps(rep(2:5, 5), n, missing)
      x[1:4] <- some_gaps(2:5, n, 0)
      for (classes in c(1, 2, 3, 8)) expect_products(x, sample(classes, n, TRUE))
      expect_products(x, sample(3, n, TRUE), sample(4, n, TRUE, c(20, 5, 2, 0.2)))
    }
  }
  n <- 100000
  x <- some_gaps(c(3, 3, 4), n, c(0, 0.01, 0.01))
  x[[3]] <- pmin(4L, x[[2]] + stats::rbinom(n, 1, 0.01))
  expect_lt(expect_products(x, pmin(2L, x[[1]])), 2e-5)
})

# What bounds the information of a triple whichever of its attributes is held fixed, against exact scores.
expect_triples <- function(x, class, many = FALSE) {
  skip_unless_test_build()
  pack <- mi_pack(x, class)
  on.exit(weft_free(pack))
  host <- .Call(get("C_weft_mi_triples_test", asNamespace("weft")), pack$pointer, many)
  exact <- as.data.frame(mi_triples(pack, top = Inf, backend = "cpu"))
  key <- function(three) apply(apply(three, 1, sort), 2, paste, collapse = " ")
  at <- match(key(t(host$columns)), key(matrix(match(as.matrix(exact[1:3]), colnames(x)), ncol = 3)))
  expect_false(anyNA(at))
  expect_identical(host$lost, 0L)
  spare <- host$screen - rep(exact$mi[at], each = 3)
  expect_gte(min(spare), 0)
  spare / rep(exact$mi[at], each = 3)
}

test_that("no triple is screened below its score, whichever attribute is held fixed", {
  set.seed(6)
  named <- function(x) `colnames<-`(x, paste0("x", seq_len(ncol(x))))
  for (n in c(2, 40, 300, 1500)) {
    class <- rep_len(1:2, n)[sample(n)]
    for (many in c(FALSE, TRUE)) expect_triples(named(levels_up_to(3, n, 7)), class, many)
    rare <- named(cbind(matrix(stats::rbinom(n * 5, 2, rep(c(0.003, 0.03, 0.2, 0.5, 0.98), each = n)), n), class))
    expect_triples(rare, class)
    expect_triples(rare, rep(1:2, c(1, n - 1))[sample(n)])
  }
  n <- 32767
  x <- named(cbind(matrix(sample(3, 3 * n, TRUE), n), rep(1:2, c(n - 1, 1))))
  loose <- expect_triples(x, sample(2, n, TRUE)) # two bits of 2.9 where classes are equal, and what the error takes
  expect_lt(stats::median(loose), 0.6)
  loose <- expect_triples(named(levels_up_to(3, 65000, 4)), sample(2, 65000, TRUE), TRUE)
  expect_gt(min(loose), 0)
})

test_that("few levels of a byte, sorted word by word, pack as columns sorted row by row do", {
  set.seed(31)
  for (n in c(1, 63, 64, 65, 200, 1000)) {
    class <- sample(c(0:2, NA), n, TRUE)
    if (!anyNA(class) || all(is.na(class))) class[1] <- 1L
    gaps <- function(levels) sample(levels, n, TRUE)
    columns <- list(gaps(0:2), gaps(c(3L, 5L, 9L)), gaps(0:7), gaps(c(-2L, 1L)), gaps(c(0:4, NA)), rep(4L, n),
                    gaps(c(1.0, 2.0, NA)), gaps(c(TRUE, FALSE, NA)), gaps(0:1), as.raw(gaps(0:2)),
                    as.raw(gaps(c(1L, 7L))))
    x <- stats::setNames(structure(columns, class = "data.frame", row.names = seq_len(n)), letters[1:11])
    for (na in c("drop", "level")) {
      packed <- mi_pack(x, class, na = na)
      alone <- do.call(rbind, lapply(names(x), function(name) {
        one <- mi_pack(x[name], class, na = na) # too few columns to sort word by word
        on.exit(weft_free(one))
        as.data.frame(mi_rank(one))
      }))
      of_pack <- as.data.frame(mi_rank(packed))
      at <- match(of_pack$feature, alone$feature)
      expect_equal(of_pack[c("mi", "n", "levels")], alone[at, c("mi", "n", "levels")], ignore_attr = TRUE)
      pairs <- as.data.frame(mi_pairs(packed, top = Inf))
      few <- mi_pack(x[1:5], class, na = na)
      other <- as.data.frame(mi_pairs(few, top = Inf))
      key <- function(d) paste(d$feature1, d$feature2)
      expect_equal(pairs$mi[match(key(other), key(pairs))], other$mi)
      weft_free(packed)
      weft_free(few)
    }
  }
})

test_that("in blocks every pair is searched once, from the planes of the pack", {
  skip_unless_test_build()
  set.seed(9)
  n <- 90
  some <- function(levels, missing) replace(sample(levels, n, TRUE), stats::runif(n) < missing, NA)
  x <- list2DF(lapply(c(rep(2:4, 7), 1, 40, 9), some, 0))
  x[5:12] <- lapply(c(2:6, 2:4), some, 0.1)
  names(x) <- seq_along(x)
  pack <- mi_pack(x, sample(3, n, TRUE), na = "drop")
  on.exit(weft_free(pack))
  p <- ncol(x)
  look <- function(side, most)
    .Call(get("C_weft_mi_blocks_test", asNamespace("weft")), pack$pointer, side, most, weft:::run_control("cpu"))
  sets <- list(NULL, weft:::sides(pack$names, 1:14, 9:24), weft:::sides(pack$names, NULL, 3:5),
               weft:::sides(pack$names, c(1, 24), NULL))
  parts <- c()
  for (side in sets) for (most in c(1, 4, 13, 1e6)) {
    seen <- look(side, most)
    of <- if (is.null(side)) rep(3L, p) else as.integer(side)
    first <- bitwAnd(of, 1L) > 0
    second <- bitwAnd(of, 2L) > 0
    wanted <- (outer(first, second, "&") | outer(second, first, "&")) & !diag(p)
    expect_identical(seen$seen, wanted + 0)
    expect_identical(seen$wrong, 0)
    expect_equal(seen$share, 1)
    parts <- c(parts, seen$parts)
  }
  expect_identical(parts[4], 1)
  expect_gt(parts[2], 50)
})
