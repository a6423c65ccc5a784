# How columns become planes, and how planes that exceed a device are cut into blocks.

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
