#' Pack categorical data once for several searches
#'
#' `mi_pack()` saves time if several searches use the same data. The shortest call is `mi_pack(x, class)`; the result
#' takes the place of `x` in [mi_pairs()], [mi_triples()], [mi_tuples()] and [mi_rank()]. These functions otherwise pack
#' their data in every call, and send them to the device each time. A pack contains features as bit planes, sorted by
#' class.
#'
#' A binary feature takes one bit per row and a feature of L levels takes L - 1 bits (L with missing values); features
#' of more than 24 levels, and all features when there are more than 64 classes, are kept as 16-bit codes. A pack lives
#' until [weft_free()] or R's garbage collector frees it, and cannot be used in another R session.
#'
#' @inheritParams mi_rank
#' @param run see [weft_run()].
#' @param class a factor or vector of categories, one value per row; `NULL` for a pack whose features are only compared
#'   with each other.
#' @return An object of class `weft_mi_pack` with `dim` and `dimnames`.
#' @seealso [weft_free()]
#' @export
#' @examples
#' x <- as.data.frame(lapply(mtcars[c("cyl", "gear", "carb", "vs")], factor))
#' pack <- mi_pack(x, mtcars$am)
#' pack
#' mi_pairs(pack)
#' mi_triples(pack)
#' weft_free(pack)
mi_pack <- function(x, class = NULL, na = c("fail", "drop", "level"), assay = NULL, bins = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(..., .known = mi_names_elsewhere)
  need_args("x")
  make_pack(x, class, na, assay, bins, run)
}

# `strata`: as mi_pairs() has it; the classes of one stratum come after those of another. `backend`: where planes of
# genotypes are made. Those of a device stay there if it is a single one that has room: for searches alone.
make_pack <- function(x, class, na, assay, bins, run, strata = NULL, backend = "cpu", devices = first_device()) {
  na <- check_choice(na, c("fail", "drop", "level"), "na")
  given <- x
  cut <- memory_errors(with_bins(x, class, bins, assay, run$threads))
  x <- cut$x
  class <- cut$class
  input <- memory_errors(categorical_input(x, cut$assay))
  target <- if (is.null(class)) list(codes = NULL, levels = "") else class_input(class, x, input$n)
  strata <- strata_input(strata, length(target$levels), na, given, input$n)
  codes <- if (is.null(strata)) target$codes else strata$codes * length(target$levels) + target$codes
  check_some_rows(codes, na, input$n)
  control <- run_control(backend, run$threads, run$progress, input$names, "Packing", devices)
  classes <- list(codes = codes, levels = length(target$levels), strata = max(1L, length(strata$levels)))
  pointer <- .Call(C_weft_mi_pack, whole_data(input), classes, na == "level", control)
  pack <- structure(class = "weft_mi_pack", list(
    pointer = pointer, dim = c(input$n, input$p), names = input$names,
    class_levels = if (!is.null(class)) target$levels, na = na, positions = positions_of(given),
    strata_levels = strata$levels
  ))
  missing <- .Call(C_weft_mi_pack_info, pointer)$missing
  if (na == "fail" && any(missing > 0)) {
    weft_free(pack)
    abort_missing_features(input, missing)
  }
  pack
}

# class_input() of strata, NULL where there are none.
strata_input <- function(strata, classes, na, x, n) {
  if (is.null(strata)) return(NULL)
  strata <- class_input(strata, x, n, "strata")
  if (na == "fail" && anyNA(strata$codes)) {
    abort_input("`strata` must not have missing values.",
                x = sprintf("%d of %d are missing.", sum(is.na(strata$codes)), n),
                i = "`na = \"drop\"` removes these rows.")
  }
  if (classes * as.double(length(strata$levels)) > 65535) {
    abort_input("`class` and `strata` must have at most 65535 combinations of levels.",
                x = sprintf("They have %d and %d levels.", classes, length(strata$levels)))
  }
  strata
}

abort_missing_class <- function(codes) {
  abort_input("`class` must not have missing values.",
              x = sprintf("%d of %d are missing.", sum(is.na(codes)), length(codes)),
              i = "`na = \"drop\"` removes these rows.")
}

abort_missing_features <- function(input, missing) {
  bad <- input$names[missing > 0]
  abort_input("`x` must not have missing values.",
              x = sprintf("Missing in %d of %d columns: %s.", length(bad), input$p, label_some(bad)),
              i = "`na = \"drop\"` removes these rows for each score; `na = \"level\"` makes missing values a level.")
}

pack_pointer <- function(pack) {
  pointer <- handle_pointer(pack)
  if (!is.null(pointer) && .Call(C_weft_mi_pack_alive, pointer)) return(pointer)
  abort_input("`x` must be a pack that has not been freed.", x = "It was freed or belongs to another R session.",
              i = "Create it again with `mi_pack()`.")
}

# What is in a pack, for a comparison of packs.
what_is_packed <- function(pack) c(unclass(pack)[c("dim", "names", "class_levels", "strata_levels", "na")],
                                   .Call(C_weft_mi_pack_digest, pack_pointer(pack)))

# A live pack whose list says what is packed: sizes from it go into native code.
check_pack <- function(pack) {
  info <- .Call(C_weft_mi_pack_info, pack_pointer(pack))
  classes <- pack$class_levels
  fine <- is.numeric(pack$dim) && length(pack$dim) == 2L && isTRUE(pack$dim[1L] >= info$n) &&
    isTRUE(pack$dim[2L] == info$p) &&
    is.character(pack$names) && length(pack$names) == info$p && is.character(pack$na) && length(pack$na) == 1L &&
    (is.null(classes) || is.character(classes) && length(classes) * max(1L, length(pack$strata_levels)) == info$classes)
  if (!fine) abort_changed("x", "the list around the pack is damaged")
  pack
}

# A pack with a class, for functions that take one in place of data: x itself, or a new one for this call.
pack_for <- function(x, class, na, assay, bins, run, strata = NULL, ...) {
  if (!inherits(x, "weft_mi_pack")) {
    if (missing(class) || is.null(class)) {
      abort_input("`class` must be a factor or a vector of categories, one value per row of `x`.", x = "It is missing.")
    }
    return(make_pack(x, class, na, assay, bins, run, strata, ...))
  }
  if (!missing(class)) {
    abort_input("`class` must not be given if `x` is a pack.", x = paste0("It is ", describe(class), "."),
                i = "A pack already contains its class; create another pack with `mi_pack()`.")
  }
  if (!is.null(strata)) {
    abort_input("`strata` must not be given if `x` is a pack.", x = paste0("It is ", describe(strata), "."),
                i = "A pack has its rows sorted by class. Use the data from which it was created.")
  }
  if (!is.null(bins)) abort_input("`bins` must not be given if `x` is a pack.",
                                  i = "Give `bins` to `mi_pack()`, or use `discretize()`.")
  check_pack(x)
  if (is.null(x$class_levels)) {
    abort_input("`x` must be a pack with a class.", x = "It was created without a class.",
                i = "Give `class` to `mi_pack()`.")
  }
  x
}

#' @export
dim.weft_mi_pack <- function(x) {
  if (!is.list(x) || !is.numeric(x$dim) || length(x$dim) != 2L) abort_changed("x",
                                                                              "the list around the pack is damaged")
  as.integer(x$dim)
}
#' @export
dimnames.weft_mi_pack <- function(x) list(NULL, handle_part(x, "names"))

#' @export
print.weft_mi_pack <- function(x, ...) {
  state <- "freed"
  pointer <- handle_pointer(x)
  if (!is.null(pointer) && .Call(C_weft_mi_pack_alive, pointer)) {
    info <- .Call(C_weft_mi_pack_info, check_pack(x)$pointer)
    state <- sprintf("%.1f MB%s", info$bytes / 1e6, if (info$on_device) ", also on the device" else "")
  }
  d <- dim(x)
  levels <- length(x$class_levels)
  cat(sprintf("<weft_mi_pack> %s, %s, %s, %s\n", several(d[1L], "row"), several(d[2L], "feature"),
              if (levels) sprintf("class of %d level%s", levels, if (levels == 1L) "" else "s") else "no class", state))
  invisible(x)
}
