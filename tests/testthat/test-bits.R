# Every native operation on every CPU variant of this machine, against plain R. All results are exact.

lengths_to_try <- c(0L, 1L, 63L, 64L, 65L, 511L, 512L, 513L, 10007L)

# One expectation for all variants, since most of an expectation's time is its own: what each gives, by its name.
on_every_level <- function(code) {
  sapply(simd_levels(), function(level) with_simd_level(level, code()), simplify = FALSE)
}
expect_on_every_level <- function(code, want, ..., expect = expect_identical) {
  found <- on_every_level(code)
  expect(found, rep(list(want), length(found)) |> stats::setNames(names(found)), ...)
}

# Rows as 0/1 to the bytes of a plane, and back
plane_of <- function(rows) {
  padded <- c(as.integer(rows), integer(-length(rows) %% 64))
  packBits(padded, "raw")
}

random_plane <- function(words) as.raw(sample(0:255, 8 * words, replace = TRUE))
set_bits <- function(plane) sum(as.integer(rawToBits(plane)))

with_missing <- function(x, share) {
  x[runif(length(x)) < share] <- NA
  x
}

test_that("the level in use can be read, set and is put back", {
  before <- .Call(weft:::C_weft_simd, NULL)
  expect_true("portable" %in% simd_levels())
  with_simd_level("portable", expect_identical(.Call(weft:::C_weft_simd, NULL), "portable"))
  expect_identical(.Call(weft:::C_weft_simd, NULL), before)
  expect_error(with_simd_level("sse9", NULL), "cannot run sse9")
})

test_that("integer scans give range and missing", {
  set.seed(1)
  for (n in lengths_to_try) for (share in c(0, 0.2, 1)) {
    x <- with_missing(sample(c(-.Machine$integer.max, -5:5, .Machine$integer.max), n, replace = TRUE), share)
    seen <- x[!is.na(x)]
    want <- if (length(seen)) range(seen) else c(1, -1) * .Machine$integer.max
    expect_on_every_level(function() bits_call("scan", x), c(want, sum(is.na(x))), info = n, expect = expect_equal)
  }
})

test_that("raw scans give the range", {
  set.seed(2)
  for (n in lengths_to_try[-1]) {
    x <- as.raw(sample(3:250, n, replace = TRUE))
    expect_on_every_level(function() bits_call("scan", x), range(as.integer(x)), info = n, expect = expect_equal)
  }
})

test_that("double scans give range, missing and whether all are whole", {
  set.seed(3)
  odd <- list(whole = c(-3, 0, 7), minus_zero = -0, largest = c(-1, 1) * (2^31 - 1), fraction = 0.5, tiny = 5e-324,
              huge = c(1e300, -1e300), too_large = 2^31, too_small = -2^31, infinite = c(Inf, -Inf))
  is_whole <- c(TRUE, TRUE, TRUE, FALSE, FALSE, FALSE, FALSE, FALSE, FALSE)
  for (n in lengths_to_try) for (kind in seq_along(odd)) for (missing in list(NULL, NA_real_, c(NA_real_, NaN))) {
    x <- sample(c(-2, 0, 5), n, replace = TRUE)
    at <- sample(n, min(n, length(odd[[kind]])))
    x[at] <- odd[[kind]][seq_along(at)]
    gaps <- setdiff(sample(n, min(n, 3)), at)
    if (length(missing)) x[gaps] <- rep_len(missing, length(gaps))
    seen <- x[!is.na(x)]
    want <- c(if (length(seen)) range(seen) else c(Inf, -Inf), sum(is.na(x)), is_whole[kind] || !length(at))
    expect_on_every_level(function() bits_call("scan", x), want, info = paste(n, names(odd)[kind]),
                          expect = expect_equal)
  }
})

test_that("values become codes from the base, missing as the largest code", {
  set.seed(4)
  top <- .Machine$integer.max
  for (n in lengths_to_try) for (base in c(0L, 1L, -100L, -top, top - 254L)) for (share in c(0, 0.3)) {
    x <- with_missing(base + sample(0:254, n, replace = TRUE), share)
    want <- x - base
    for (bits in c(8, 16)) {
      codes <- replace(want, is.na(x), as.integer(2^bits - 1))
      expect_on_every_level(function() list(bits_call("narrow", x, base, bits),
                                            bits_call("narrow", as.double(x), base, bits)),
                            list(codes, codes), info = paste(n, base, bits))
    }
  }
  wide <- c(-5L, 65529L, NA)
  expect_on_every_level(function() bits_call("narrow", rep(wide, 40), -5L, 16), rep(c(0L, 65534L, 65535L), 40))
})

test_that("a plane has one bit per row and a zero tail", {
  set.seed(5)
  for (n in lengths_to_try) for (bits in c(8, 16)) {
    missing <- as.integer(2^bits - 1)
    codes <- sample(c(0:3, missing - 1L, missing), n, replace = TRUE)
    asked <- c(0L, 3L, missing - 1L, missing)
    expect_on_every_level(function() lapply(asked, function(code) bits_call("plane", codes, code, bits)),
                          lapply(asked, function(code) plane_of(codes == code)), info = paste(n, bits))
  }
})

test_that("two-valued integers are checked and packed in one pass", {
  set.seed(6)
  top <- .Machine$integer.max
  for (n in lengths_to_try) for (base in c(0L, 1L, -1L, -top, top - 1L)) for (share in c(0, 0.01, 0.5)) {
    x <- with_missing(base + sample(0:1, n, replace = TRUE), share)
    ones <- plane_of(!is.na(x) & x == base + 1)
    others <- if (n) Filter(function(other) abs(other) <= top, c(base + 2, base - 1))
    expect_on_every_level(function() {
      wrong <- lapply(others, function(other) replace(x, sample(n, 1), as.integer(other)))
      list(bits_call("binary", x, base, TRUE), bits_call("binary", x, base, FALSE),
           lapply(wrong, function(x) bits_call("binary", x, base, TRUE)))
    }, list(list(ones, plane_of(is.na(x)), as.double(sum(is.na(x)))), if (!anyNA(x)) list(ones, NULL, 0),
            rep(list(NULL), length(others))), info = paste(n, base, share))
  }
  expect_on_every_level(function() bits_call("binary", c(top, NA), top, TRUE), NULL)
})

test_that("population counts of one, two and three planes", {
  set.seed(7)
  for (words in c(0, 1, 2, 3, 4, 7, 8, 9, 16, 31, 157)) {
    a <- random_plane(words)
    b <- random_plane(words)
    c <- random_plane(words)
    full <- as.raw(rep(255, 8 * words))
    expect_on_every_level(
      function() c(bits_call("popcount", a), bits_call("popcount", full), bits_call("popcount", a, b),
                   bits_call("popcount", a, b, c)),
      c(set_bits(a), 64 * words, set_bits(a & b), set_bits(a & b & c)), info = words, expect = expect_equal
    )
  }
})

test_that("tiles count every pair of planes", {
  set.seed(8)
  shapes <- list(c(1, 1, 1), c(0, 3, 2), c(3, 0, 2), c(3, 5, 0), c(2, 7, 31), c(4, 8, 32), c(5, 9, 64), c(4, 17, 65),
                 c(7, 25, 16), c(8, 32, 16), c(9, 33, 3), c(13, 70, 130))
  for (shape in shapes) for (full in c(FALSE, TRUE)) {
    na <- shape[1]; nb <- shape[2]; words <- shape[3]
    a <- random_plane(na * words)
    b <- random_plane(nb * words)
    if (full) a[] <- b[] <- as.raw(255)
    rows <- matrix(as.integer(rawToBits(a)), 64 * words, na)
    columns <- matrix(as.integer(rawToBits(b)), 64 * words, nb)
    want <- as.integer(t(crossprod(rows, columns)))
    expect_on_every_level(
      function() list(bits_call("tile", a, na, b, nb, words),
                      if (na) bits_call("many", a[seq_len(8 * words)], 1, b, nb, words)),
      list(want, if (na) want[seq_len(nb)]), info = toString(shape)
    )
  }
})

test_that("histograms count code by class and skip the missing", {
  set.seed(9)
  for (n in lengths_to_try) for (shape in list(c(2, 2), c(5, 3), c(254, 2), c(255, 255),
                                               c(1, 1))) for (bits in c(8, 16)) {
    missing <- 2^bits - 1
    code <- sample(c(seq_len(shape[1]) - 1, missing), n, replace = TRUE)
    class <- sample(c(seq_len(shape[2]) - 1, missing), n, replace = TRUE)
    keep <- code < missing & class < missing
    want <- tabulate((code * shape[2] + class)[keep] + 1, prod(shape))
    expect_identical(bits_call("hist", as.integer(code), as.integer(class), shape[1], shape[2], bits), want,
                     info = paste(n, toString(shape), bits))
  }
  code <- sample(0:65534, 5000, replace = TRUE)
  expect_identical(bits_call("hist", code, rep(0:1, 2500), 65535, 2, 16),
                   tabulate(code * 2 + rep(0:1, 2500) + 1, 2 * 65535))
})

test_that("top-k keeps the best in a total order, whatever the order of the pushes", {
  set.seed(10)
  kinds <- list(random = function(n) runif(n), ties = function(n) sample(3, n, replace = TRUE),
                equal = function(n) rep(1, n), ascending = function(n) seq_len(n), descending = function(n) -seq_len(n),
                special = function(n) sample(c(NaN, NA, Inf, -Inf, 0, -0, 1), n, replace = TRUE))
  for (kind in names(kinds)) for (n in c(0, 1, 50, 5000)) for (k in c(0, 1, 2, 20, 300, 6000)) {
    score <- as.double(kinds[[kind]](n))
    index <- as.double(sample(1e9, n))
    kept <- which(!is.nan(score) & !is.na(score))
    best <- head(kept[order(-score[kept], index[kept])], k)
    shuffled <- sample(n)
    found <- lapply(c(1, 3), function(parts) list(
      bits_call("topk", score, index, k, parts), bits_call("topk", score[shuffled], index[shuffled], k, parts)))
    want <- list(score[best], index[best])
    expect_equal(found, rep(list(list(want, want)), 2), info = paste(kind, n, k))
  }
})
