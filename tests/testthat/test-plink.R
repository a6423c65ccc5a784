# 5 samples, 3 variants; two bits per genotype, the first sample lowest.
write_plink <- function(stem, bed = NULL, samples = 5, variants = 3) {
  codes <- c("2" = 0L, "NA" = 1L, "1" = 2L, "0" = 3L)
  block <- function(g) {
    bits <- c(codes[ifelse(is.na(g), "NA", as.character(g))], rep(0L, -length(g) %% 4))
    as.raw(colSums(matrix(bits, 4) * c(1L, 4L, 16L, 64L)))
  }
  g <- genotypes()[seq_len(samples), seq_len(variants), drop = FALSE]
  bed <- bed %||% c(as.raw(c(0x6c, 0x1b, 0x01)), unlist(lapply(seq_len(variants), function(j) block(g[, j]))))
  writeBin(bed, paste0(stem, ".bed"))
  writeLines(sprintf("1\trs%d\t0\t%d\tA\tG", seq_len(variants), 100 * seq_len(variants)), paste0(stem, ".bim"))
  writeLines(sprintf("fam%d ind%d 0 0 1 -9", seq_len(samples), seq_len(samples)), paste0(stem, ".fam"))
}
genotypes <- function() cbind(c(0L, 1L, 2L, NA, 1L), c(2L, 2L, 0L, 0L, 1L), c(1L, NA, 0L, 2L, 2L))
`%||%` <- function(a, b) if (is.null(a)) b else a

test_that("genotypes are read as written", {
  stem <- withr::local_tempfile()
  write_plink(stem)
  x <- read_plink(paste0(stem, ".bed"))
  expect_identical(dimnames(x), list(paste0("ind", 1:5), paste0("rs", 1:3)))
  expect_identical(unname(x[, ]), genotypes())
  expect_identical(attr(x, "variants")$allele1, rep("A", 3))
  expect_identical(attr(x, "variants")$position, c(100, 200, 300))
  expect_identical(attr(x, "samples")$family[2], "fam2")
  expect_identical(unname(read_plink(stem, variants = c("rs3", "rs1"))[, ]), genotypes()[, c(3, 1)])
  expect_identical(unname(read_plink(stem, variants = 2)[, ]), genotypes()[, 2])
  expect_identical(read_plink(stem, variants = 2, type = "raw")[, 1],
                   stats::setNames(as.raw(genotypes()[, 2]), paste0("ind", 1:5)))
  expect_error(read_plink(stem, type = "raw"), "missing", class = "weft_error_input")
  expect_error(read_plink(stem, variants = "rs9"), "rs9", class = "weft_error_input")
  expect_error(read_plink(stem, variants = 4), "from 1 to 3", class = "weft_error_input")
})

test_that("genotypes go into the mi functions", {
  stem <- withr::local_tempfile()
  write_plink(stem)
  x <- read_plink(stem)
  y <- c(1, 1, 0, 0, 1)
  r <- mi_rank(x, y, na = "drop")
  expect_identical(sort(r$n), c(4, 4, 5))
  expect_identical(mi_select(x, y, 1, na = "drop")$feature, r$feature[1])
  expect_identical(dim(mi_matrix(x, na = "drop")), c(3L, 3L))
})

test_that("other and broken files are errors", {
  stem <- withr::local_tempfile()
  good <- function() { write_plink(stem); readBin(paste0(stem, ".bed"), "raw", 100) }
  bytes <- good()
  write_plink(stem, bed = bytes[-length(bytes)])
  expect_error(read_plink(stem), "truncated", class = "weft_error_input")
  write_plink(stem, bed = c(bytes, as.raw(0)))
  expect_error(read_plink(stem), "must have 9 bytes", class = "weft_error_input")
  write_plink(stem, bed = c(as.raw(1:3), bytes[-(1:3)]))
  expect_error(read_plink(stem), "6c 1b", class = "weft_error_input")
  write_plink(stem, bed = c(bytes[1:2], as.raw(0), bytes[-(1:3)]))
  expect_error(read_plink(stem), "variant-major", class = "weft_error_input")
  write_plink(stem, bed = raw())
  expect_error(read_plink(stem), "begins with nothing", class = "weft_error_input")
  good()
  writeLines("1 rs1 0 100 A", paste0(stem, ".bim"))
  expect_error(read_plink(stem), "6 fields", class = "weft_error_input")
  unlink(paste0(stem, ".fam"))
  expect_error(read_plink(stem), "fam", class = "weft_error_input")
  expect_error(read_plink(1), class = "weft_error_input")
})
