# What the print methods share: one screen, no wider than the console.

# Columns that a narrow console can do without, least needed first, as patterns.
spare_columns <- c("^expected_false$", "^df$", "^statistic$", "^levels$", "^entropy$", "^n$", "^frequency$", "^area$",
                   "^log_density$", "^mi[12]$", "^size$", "^listed$", "^sign_", "^p_value$", "^area_")

# Rows of a result as wide as the console: long names are cut, then columns are left out, which is said.
print_rows <- function(d, row.names = FALSE, digits = 4L) { # nolint: object_name_linter.
  d <- as.data.frame(d)
  d[] <- lapply(d, function(column) {
    if (is.character(column)) valid_utf8(column)
    else if (is.double(column) && !is.object(column)) format(column, digits = digits) else column
  })
  room <- getOption("width")
  if (rows_width(d, row.names) >= room) {
    d[] <- lapply(d, function(column) if (is.character(column)) cut_name(column, 24L) else column)
    names(d) <- cut_name(names(d), 24L)
  }
  gone <- character()
  while (rows_width(d, row.names) >= room && ncol(d) > 3L) {
    spare <- c(unlist(lapply(spare_columns, grep, names(d), value = TRUE)), rev(names(d)[-(1:3)]))[1L]
    gone <- c(gone, spare)
    d <- d[names(d) != spare]
  }
  print.data.frame(d, row.names = row.names)
  if (length(gone)) cat_wrapped(sprintf("Not shown: %s; see as.data.frame().", toString(rev(gone))))
}

# The first n rows, and how many more there are.
print_first <- function(d, n, ...) {
  if (n > 0 && nrow(d)) print_rows(utils::head(d, n), ...)
  if (nrow(d) > n) cat(sprintf("... and %d more\n", nrow(d) - n))
}

# "3 of 3,051 genes" where a table is some rows of a result that had `all`, which is NULL in older ones.
counted_of <- function(shown, all, what = NULL) {
  counted <- function(n) if (is.null(what)) thousands(n) else several(n, what)
  if (!is_number(all) || !is.finite(all) || all <= shown) return(counted(shown))
  paste(thousands(shown), "of", counted(all))
}

# A table of weft's without the columns or attributes that its own print method needs: a subset of the columns, or one
# whose columns were renamed.
print_as_frame <- function(x, n) {
  check_frame(x, "x")
  print_first(list2DF(unclass(x)[names(x)], nrow(x)), check_shown(n), row.names = TRUE)
  invisible(x)
}

rows_width <- function(d, row.names) { # nolint: object_name_linter.
  wide <- vapply(seq_along(d), function(j) max(nchar(c(names(d)[j], format(d[[j]])), "width")), 0)
  sum(wide + 1) + if (isFALSE(row.names)) 0 else max(nchar(rownames(d)), 0)
}

# The middle is cut out: numbers stand at the ends.
cut_name <- function(x, most) {
  end <- nchar(x, "chars")
  first <- (most - 2L) %/% 2L + 2L
  long <- !is.na(x) & nchar(x, "width") > most
  ifelse(long, paste0(substr(x, 1L, first), "..", substr(x, end - (most - 3L - first), end)), x)
}

# A sentence on as many lines as it takes.
cat_wrapped <- function(...) {
  lines <- strwrap(plain_text(paste0(...)), getOption("width"), exdent = 2L)
  if (length(lines)) cat(lines, sep = "\n") # of nothing cat() writes an empty line
}
