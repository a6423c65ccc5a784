# Internal doors to the native bit planes, counts and top-k, for the tests. Planes are raw vectors of eight bytes a
# word; codes are integers, missing as 255 or 65535.

#' Runs one native operation on the CPU variant in use.
#' @noRd
bits_call <- function(op, ...) .Call(C_weft_bits_test, op, list(...))

#' The CPU variants that this machine can run.
#' @noRd
simd_levels <- function() {
  before <- bits_call("level")
  on.exit(bits_call("level", before))
  Filter(function(level) bits_call("level", level), c("portable", "avx2", "avx512"))
}

#' Evaluates `code` with one CPU variant in use.
#' @noRd
with_simd_level <- function(level, code) {
  before <- bits_call("level")
  on.exit(bits_call("level", before))
  if (!bits_call("level", level)) stop("this machine cannot run ", level)
  force(code)
}
