#' Read genotypes in PLINK's binary format
#'
#' Reads a `.bed` file with the `.bim` and `.fam` files beside it. Every `mi_` function takes the result; missing
#' genotypes need `na = "drop"` or `"level"` there.
#'
#' @param path the `.bed` file, with or without its extension.
#' @param variants numbers or names of variants; by default all.
#' @param type `"integer"`, or `"raw"` for a quarter of the memory, which cannot hold missing genotypes.
#' @param threads the number of threads; see [weft_threads()].
#' @return A matrix with samples in rows and variants in columns, counts 0, 1, 2 of the first allele of the `.bim` file,
#'   `NA` where missing. Row names are the individual ids, prefixed by the family's where they are not unique. The
#'   attributes `"variants"` and `"samples"` hold the two tables as data frames.
#' @seealso [plink_file()], which leaves genotypes in the file.
#' @export
#' @examples
#' stem <- tempfile()
#' writeBin(as.raw(c(0x6c, 0x1b, 0x01, 0xdc, 0x0f)), paste0(stem, ".bed"))
#' writeLines(c("1 rs1 0 100 A G", "1 rs2 0 200 C T"), paste0(stem, ".bim"))
#' writeLines(sprintf("f%d i%d 0 0 0 -9", 1:4, 1:4), paste0(stem, ".fam"))
#' read_plink(stem)[, ]
read_plink <- function(path, variants = NULL, type = c("integer", "raw"), threads = NULL) {
  need_args("path")
  type <- check_choice(type, c("integer", "raw"), "type")
  parts <- plink_parts(path)
  bim <- parts$variants
  fam <- parts$samples
  wanted <- variant_index(variants, bim$variant)
  x <- .Call(C_weft_mi_genotypes, parts$bed, as.double(nrow(fam)), wanted - 1, run_control("cpu", threads, FALSE))
  if (type == "raw") {
    if (anyNA(x)) {
      abort_input("`type` must be \"integer\" if genotypes are missing.",
                  x = sprintf("%d are missing.", sum(is.na(x))))
    }
    x <- memory_errors(matrix(as.raw(x), nrow(x), ncol(x)))
  }
  dimnames(x) <- list(sample_labels(fam), bim$variant[wanted])
  bim <- bim[wanted, ]
  row.names(bim) <- NULL
  structure(x, variants = bim, samples = fam)
}

# The three files of a data set, checked: list(bed, variants, samples).
plink_parts <- function(path) {
  path <- bare_text(path)
  if (!is_word(path)) {
    abort_input("`path` must be the name of a .bed file.", x = paste0("It is ", describe(path), "."))
  }
  stem <- sub("\\.bed$", "", path)
  files <- paste0(stem, c(".bed", ".bim", ".fam"))
  problems <- lapply(files, file_problem)
  wrong <- lengths(problems) > 0L
  if (any(wrong)) {
    abort_input("`path` must be the name of a .bed file with its .bim and .fam files in the same folder.",
                x = paste0(sprintf("%s %s", basename(files[wrong]), unlist(problems)), collapse = "; "))
  }
  bim <- plink_table(files[2L], c("chromosome", "variant", "morgans", "position", "allele1", "allele2"))
  fam <- plink_table(files[3L], c("family", "individual", "father", "mother", "sex", "phenotype"))
  check_bed(files[1L], nrow(fam), nrow(bim))
  list(bed = files[1L], variants = bim, samples = fam)
}

sample_labels <- function(fam) {
  if (anyDuplicated(fam$individual)) paste(fam$family, fam$individual, sep = ":") else fam$individual
}

plink_table <- function(file, columns) {
  lines <- text_lines(file, "path")
  bad <- which(!validUTF8(lines))
  if (length(bad)) abort_input(sprintf("%s must be text in UTF-8.", basename(file)),
                               x = sprintf("Line %d is not valid.", bad[1L]))
  out <- .Call(C_weft_mi_fields, lines, length(columns))
  if (is.double(out)) {
    abort_input(sprintf("Every line of %s must have %d fields.", basename(file), length(columns)),
                x = sprintf("Line %.0f has %.0f.", out[1L], out[2L]))
  }
  out <- list2DF(out)
  names(out) <- columns
  for (column in intersect(columns, c("morgans", "position", "sex"))) {
    out[[column]] <- suppressWarnings(as.numeric(out[[column]]))
  }
  out
}

variant_index <- function(variants, names) {
  if (is.null(variants)) return(seq_along(names))
  variants <- bare_text(variants)
  index <- if (is.character(variants)) match(variants, names)
           else if (is.numeric(variants) && all(variants %in% seq_along(names))) as.integer(variants)
           else NA_integer_
  if (anyNA(index)) {
    abort_input(sprintf("`variants` must contain names of variants or numbers from 1 to %d.", length(names)),
                x = if (is.character(variants)) sprintf("There is no %s.", label_some(variants[is.na(index)]))
                    else paste0("It is ", describe(variants), "."))
  }
  index
}

# The head of a .bed file, and its size.
check_bed <- function(file, n, p) {
  bytes <- 3 + (n + 3) %/% 4 * p
  con <- open_to_read(file, "path", "a .bed file that can be read")
  on.exit(close(con))
  size <- file.size(file)
  magic <- next_bytes(con, 3L, file)
  if (length(magic) < 3L || any(magic[1:2] != as.raw(c(0x6c, 0x1b)))) {
    abort_input("The .bed file must begin with the bytes 6c 1b.",
                x = sprintf("It begins with %s.", if (length(magic)) paste(magic, collapse = " ") else "nothing"))
  }
  if (magic[3L] != as.raw(1)) {
    abort_input("The .bed file must be in variant-major order (third byte 01).",
                x = sprintf("The third byte is %s.", magic[3L]),
                i = "`plink --make-bed` converts it.")
  }
  if (size != bytes) {
    abort_input(sprintf("The .bed file must have %.0f bytes for %d samples and %d variants.", bytes, n, p),
                x = sprintf("It has %.0f.", size),
                i = if (size < bytes) "It is truncated, or the .bim and .fam files belong to another file.")
  }
}
