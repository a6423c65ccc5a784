#' Use PLINK genotype files without loading them
#'
#' `plink_file()` makes genotypes in PLINK's binary format (a `.bed` file with its `.bim` and `.fam` files) available
#' without reading them into memory. The shortest call is `plink_file("study.bed")`; it returns an object that all `mi_`
#' functions, [pair_scan()], [pca()] and [irm()] accept in place of a matrix. Functions that count categories convert
#' the two bits per genotype in the file directly to bit planes, without expanding them to integers. [pca()] computes
#' with these two bits as well, and [irm()] reads the whole matrix.
#'
#' The filters are applied once, when `plink_file()` is called, from the genotypes of all samples. The test of
#' Hardy-Weinberg equilibrium is exact and ignores sex, so do not use it on sex chromosomes. Do not change the files
#' while functions read them: a truncated file gives an error, but other changes are not detected.
#'
#' @inheritParams read_plink
#' @param variants numbers or names of variants to select before any filter is applied; by default all.
#' @param min_maf exclude variants with a smaller minor allele frequency.
#' @param max_missing exclude variants with a larger proportion of missing genotypes.
#' @param min_hwe exclude variants with a smaller p-value in the test of Hardy-Weinberg equilibrium.
#' @param chromosome select variants on these chromosomes, named as in the `.bim` file.
#' @param from,to select variants at positions (in bases) from `from` to `to`.
#' @return An object of class `weft_plink` with `dim` and `dimnames` as [read_plink()] gives them, and elements
#'   `variants` and `samples`, the two tables as data frames. If variants are filtered by genotype, `variants` also
#'   contains `maf`, `missing` and `hwe`. `as.matrix()` reads all genotypes.
#' @seealso [read_plink()], [pair_scan()]
#' @export
#' @examples
#' stem <- tempfile()
#' writeBin(as.raw(c(0x6c, 0x1b, 0x01, 0xdc, 0x0f, 0xff)), paste0(stem, ".bed"))
#' writeLines(c("1 rs1 0 100 A G", "1 rs2 0 200 C T", "2 rs3 0 50 C T"), paste0(stem, ".bim"))
#' writeLines(sprintf("f%d i%d 0 0 0 -9", 1:4, 1:4), paste0(stem, ".fam"))
#' x <- plink_file(stem, min_maf = 0.05)
#' x
#' mi_pairs(x, c(0, 1, 1, 0), na = "drop")
plink_file <- function(path, variants = NULL, min_maf = 0, max_missing = 1, min_hwe = 0, chromosome = NULL,
                       from = NULL, to = NULL, threads = NULL) {
  need_args("path")
  min_maf <- check_number(min_maf, "min_maf", min = 0, max = 0.5)
  max_missing <- check_number(max_missing, "max_missing", min = 0, max = 1)
  min_hwe <- check_number(min_hwe, "min_hwe", min = 0, max = 1)
  from <- if (is.null(from)) -Inf else check_number(from, "from")
  to <- if (is.null(to)) Inf else check_number(to, "to")
  parts <- plink_parts(path)
  bim <- parts$variants
  wanted <- variant_index(variants, bim$variant)
  wanted <- wanted[in_region(bim[wanted, ], chromosome, from, to)]
  x <- new_plink(parts, wanted, nrow(bim))
  if (min_maf == 0 && max_missing == 1 && min_hwe == 0) return(x)
  about <- variant_summary(x, threads)
  keep <- about$maf >= min_maf & about$missing <= max_missing & about$hwe >= min_hwe
  x <- new_plink(parts, wanted[keep], nrow(bim))
  x$variants <- cbind(x$variants, about[keep, ])
  row.names(x$variants) <- NULL
  x
}

new_plink <- function(parts, wanted, total) {
  variants <- parts$variants[wanted, ]
  row.names(variants) <- NULL
  new_result(class = "weft_plink", list(path = normalizePath(parts$bed), wanted = as.double(wanted), total = total,
                                        variants = variants, samples = parts$samples))
}

in_region <- function(bim, chromosome, from, to) {
  inside <- rep(TRUE, nrow(bim))
  if (!is.null(chromosome)) {
    chromosome <- factor_text(bare_text(chromosome))
    unknown <- if (is.atomic(chromosome)) setdiff(as.character(chromosome), bim$chromosome)
    if (!is.atomic(chromosome) || length(unknown)) {
      abort_input("`chromosome` must contain chromosomes of the .bim file.",
                  x = if (is.atomic(chromosome)) sprintf("There is no %s.", label_some(unknown))
                      else paste0("It is ", describe(chromosome), "."),
                  i = sprintf("Available: %s.", label_some(unique(bim$chromosome))))
    }
    inside <- bim$chromosome %in% as.character(chromosome)
  }
  if (is.finite(from) ||
      is.finite(to)) inside <- inside & !is.na(bim$position) & bim$position >= from & bim$position <= to
  inside
}

# Share of the rarer allele, share of genotypes missing, and the exact p-value of Hardy-Weinberg proportions.
variant_summary <- function(x, threads) {
  found <- .Call(C_weft_mi_genotype_summary, genotype_columns(x),
                 run_control("cpu", threads, FALSE, x$variants$variant, "Counting genotypes"))
  known <- colSums(found$counts[1:3, , drop = FALSE])
  share <- ifelse(known > 0, (found$counts[2L, ] + 2 * found$counts[3L, ]) / (2 * known), 0)
  data.frame(maf = pmin(share, 1 - share), missing = found$counts[4L, ] / colSums(found$counts), hwe = found$hwe)
}

# As plink_file() made it: what other functions read goes where these say.
whole_plink <- function(x) {
  check_format(x, "x")
  parts <- if (is.list(x)) unclass(x)
  variants <- parts$variants
  samples <- parts$samples
  fine <- is_word(parts$path) && is.double(parts$wanted) && is_count(parts$total, 0, 2^31 - 1) &&
    is_numbers(parts$wanted, length(parts$wanted), min = 1, max = parts$total, whole = TRUE) &&
    is_frame(variants, c(variant = "character")) && identical(nrow(variants), length(parts$wanted)) &&
    is_frame(samples, c(individual = "character", family = "character"))
  if (!isTRUE(fine)) {
    abort_input("The genotypes must not have changed since `plink_file()` was called.",
                i = "Call `plink_file()` again.")
  }
  parts
}

# What native code reads: the mapped file and numbers of variants from 0.
genotype_columns <- function(x) {
  parts <- whole_plink(x)
  n <- nrow(parts$samples)
  pointer <- .Call(C_weft_map, parts$path, basename(parts$path), 3 + (n + 3) %/% 4 * parts$total, run_control())
  structure(class = "weft_genotypes", list(pointer = pointer, n = as.double(n), wanted = parts$wanted - 1))
}

#' @export
`[.weft_genotypes` <- function(x, i) {
  columns <- unclass(x)
  columns$wanted <- columns$wanted[i]
  structure(columns, class = "weft_genotypes")
}

# Counts of the first allele of consecutive variants, as integers.
read_variants <- function(x, range) {
  parts <- whole_plink(x)
  check_bed(parts$path, nrow(parts$samples), parts$total)
  .Call(C_weft_mi_genotypes, parts$path, as.double(nrow(parts$samples)), parts$wanted[range] - 1,
        run_control("cpu", NULL, FALSE))
}

#' @export
dim.weft_plink <- function(x) {
  parts <- whole_plink(x)
  c(nrow(parts$samples), length(parts$wanted))
}

#' @export
dimnames.weft_plink <- function(x) {
  parts <- whole_plink(x)
  list(sample_labels(parts$samples), parts$variants$variant)
}

#' @export
as.matrix.weft_plink <- function(x, ...) {
  out <- memory_errors(read_variants(x, seq_along(x$wanted)))
  dimnames(out) <- dimnames(x)
  out
}

#' @export
print.weft_plink <- function(x, ...) {
  d <- dim(x)
  cat(sprintf("<weft_plink> %d samples, %d of %.0f variants\n%s\n", d[1L], d[2L], x$total, x$path))
  invisible(x)
}
