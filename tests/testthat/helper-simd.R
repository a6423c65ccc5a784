# The CPU's variants of native code, and the entry point that runs bit planes, counts and top-k by themselves.

simd_names <- c("portable", "avx2", "avx512")

# Those that this machine can run.
simd_levels <- function() {
  before <- .Call(weft:::C_weft_simd, NULL)
  on.exit(use_simd_level(before))
  Filter(use_simd_level, simd_names)
}

use_simd_level <- function(level) {
  level %in% simd_names && !is.null(.Call(weft:::C_weft_simd, match(level, simd_names) - 1L))
}

# Evaluates `code` with one of them in use.
with_simd_level <- function(level, code) {
  before <- .Call(weft:::C_weft_simd, NULL)
  on.exit(use_simd_level(before))
  if (!use_simd_level(level)) stop("this machine cannot run ", level)
  force(code)
}

# What only tests use is in builds with WEFT_TESTS=yes, as those of `make install`.
has_test_entries <- function() exists("C_weft_bits_test", asNamespace("weft"))
skip_unless_test_build <- function() {
  testthat::skip_if_not(has_test_entries(), "weft was configured without WEFT_TESTS=yes")
}

# One native operation on the variant in use. Planes are raw vectors of eight bytes per word; codes are integers,
# missing as 255 or 65535.
bits_call <- function(op, ...) {
  skip_unless_test_build()
  .Call(get("C_weft_bits_test", asNamespace("weft")), op, list(...))
}
