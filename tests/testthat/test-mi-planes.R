# The arithmetic of the kernel for attributes of at most three levels, repeated on the host by the functions it calls.

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

test_that("few levels of a byte, sorted word by word, pack as columns sorted row by row do", {
  set.seed(31)
  for (n in c(1, 63, 64, 65, 200, 1000)) {
    class <- sample(c(0:2, NA), n, TRUE)
    if (!anyNA(class) || all(is.na(class))) class[1] <- 1L
    gaps <- function(levels) sample(levels, n, TRUE)
    columns <- list(gaps(0:2), gaps(c(3L, 5L, 9L)), gaps(0:7), gaps(c(-2L, 1L)), gaps(c(0:4, NA)), rep(4L, n),
                    gaps(c(1.0, 2.0, NA)), gaps(c(TRUE, FALSE, NA)), gaps(0:1), as.raw(gaps(0:2)), as.raw(gaps(c(1L, 7L))))
    x <- stats::setNames(structure(columns, class = "data.frame", row.names = seq_len(n)), letters[1:11])
    for (na in c("drop", "level")) {
      together <- mi_rank(x, class, na = na)
      packed <- mi_pack(x, class, na = na)
      alone <- do.call(rbind, lapply(names(x), function(name) {
        one <- mi_pack(x[name], class, na = na) # too few columns to sort word by word
        on.exit(weft_free(one))
        as.data.frame(mi_rank(one))
      }))
      at <- match(as.data.frame(together)$feature, alone$feature)
      of_pack <- as.data.frame(mi_rank(packed))
      expect_equal(of_pack$mi, alone$mi[match(of_pack$feature, alone$feature)])
      expect_equal(of_pack$n, alone$n[match(of_pack$feature, alone$feature)])
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
