# Printing, listing and drawing the result of gene_modules(), and the check of a result that was read from a file.

check_modules <- function(x, arg) {
  check_format(x, arg)
  if (identical(class(x), "weft_modules") && holds(sound_modules(unclass(x)))) return(unclass(x))
  abort_input(sprintf("`%s` must be an unmodified object returned by `gene_modules()`.", arg),
              x = if (inherits(x, "weft_modules")) "It is damaged." else paste0("It is ", describe(x), "."))
}

sound_modules <- function(r) {
  p <- length(r$module)
  k <- nrow(r$modules)
  numbers <- c(size = "numeric", stability = "numeric", p_value = "numeric")
  is.list(r) && p > 0L && is_integers(r$module, p, 0, k) && is_labels(names(r$module), p) &&
    is_frame(r$modules, c(module = "numeric", numbers, hub = "character", explained = "numeric")) &&
    is_numbers(r$modules$size, k, 1, p, whole = TRUE) && identical(r$modules$size, tabulate(r$module, k)) &&
    is_text(r$modules$hub, k) && is_numbers(r$modules$explained, k, 0, 1 + 1e-9) &&
    is_numbers(r$modules$stability, k, 0, 1) && is_numbers(r$modules$p_value, k, 0, 1) &&
    is_table(r$eigengenes, r$samples, k) && is_table(r$membership, p, k, min = -1, max = 1) &&
    identical(rownames(r$membership), names(r$module)) && sound_relations(r$relations, k) &&
    (is.null(r$enrichment) || inherits(r$enrichment, "weft_gene_sets") && is_frame(r$enrichment)) &&
    is_frame(r$left_out, numbers) && (is.null(r$symbols) || is_text(r$symbols, p)) && is_flag(r$signed) &&
    is_count(r$samples, 1) && is_word(r$backend) && is_number(r$seconds, 0)
}

sound_relations <- function(d, k) {
  is.null(d) || is_frame(d, c(module = "numeric", variable = "character", correlation = "numeric", t = "numeric",
                              f = "numeric", p_value = "numeric", q_value = "numeric")) &&
    is_numbers(d$module, nrow(d), 1, k, whole = TRUE) && is_text(d$variable, nrow(d)) &&
    nrow(d) == k * length(unique(d$variable)) && all(is.na(d$correlation) | abs(d$correlation) <= 1)
}

# Symbols where they are known, else the data's own names.
module_names <- function(r) r$symbols %||% names(r$module)

#' Methods for modules of genes
#'
#' @param x an object returned by [gene_modules()].
#' @param object an object returned by [gene_modules()].
#' @param n the number of modules to show.
#' @param what `"genes"`, `"modules"` or `"relations"`.
#' @param ... for `plot()`: passed on to [graphics::image()], or to [graphics::barplot()] if there is neither a class
#'   nor a trait; not used by the other methods.
#' @return `as.data.frame()` and `tidy()`: for `"genes"`, a data frame with `gene`, `symbol` if known, `module`,
#'   `membership` (the correlation with the eigengene of the gene's module; NA outside all modules) and `rank` within
#'   the module according to the absolute membership, so that hubs come first; for `"modules"` and `"relations"`, the
#'   part of `x` with this name. `glance()`: one row. `print()` and `plot()`: `x`, invisibly.
#' @export
#' @examples
#' e <- weft_example("expression", n = 120, p = 100)
#' m <- gene_modules(e$x, e$class, seed = 1)
#' head(as.data.frame(m))
#' glance(m)
#' plot(m)
print.weft_modules <- function(x, n = 10L, ...) {
  r <- check_modules(x, "x")
  n <- check_shown(n)
  writeLines(strwrap(paste0(modules_text(r), "."), 100, exdent = 2))
  if (nrow(r$modules) && n) {
    shown <- utils::head(r$modules, n)
    shown$hub <- cut_name(valid_utf8(module_names(r)[match(shown$hub, names(r$module))]), 24L)
    shown$p_value <- format.pval(shown$p_value, 2, 1e-10)
    print_rows(shown, digits = 3L)
    if (nrow(r$modules) > n) cat(sprintf("... and %s more\n", thousands(nrow(r$modules) - n)))
  }
  found <- which(r$relations$q_value <= 0.05)
  if (!is.null(r$relations)) {
    cat(sprintf("%d of %s between modules and class or traits %s significant at a false discovery rate of 0.05\n",
                length(found), several(nrow(r$relations), "relation"), if (length(found) == 1L) "is" else "are"))
  }
  invisible(x)
}

# "2,000 genes of 80 samples: 5 modules of 20 to 150 genes, ...", without a full stop.
modules_text <- function(r) {
  k <- nrow(r$modules)
  p <- length(r$module)
  grey <- sum(r$module == 0L)
  lost <- nrow(r$left_out)
  size <- r$modules$size
  paste0(sprintf("%s of %s: ", several(p, "gene"), several(r$samples, "sample")),
         if (!k) "no module" else sprintf("%s of %s", several(k, "module"),
           if (min(size) == max(size)) several(size[1L], "gene") else sprintf("%s to %s genes", thousands(min(size)),
                                                                                     thousands(max(size)))),
         if (k) sprintf("; %s in no module", if (grey) several(grey, "gene") else "no gene"),
         if (lost) sprintf("; %s %s discarded, because subsamples did not confirm %s",
                           if (k) several(lost, "more group")
                           else several(lost, "group"), if (lost == 1L) "was" else "were",
                           if (lost == 1L) "it" else "them"))
}

#' @rdname print.weft_modules
#' @export
as.data.frame.weft_modules <- function(x, ..., what = c("genes", "modules", "relations")) {
  r <- check_modules(x, "x")
  what <- check_choice(what, c("genes", "modules", "relations"), "what")
  if (what == "modules") return(r$modules)
  if (what == "relations") {
    if (is.null(r$relations)) abort_input("`x` must contain relations.",
                                          x = "It was computed without a class or traits.",
                                          i = "`gene_modules(x, class, traits = )` tests them.")
    return(r$relations)
  }
  at <- cbind(seq_along(r$module), pmax(r$module, 1L))
  membership <- rep(NA_real_, length(r$module))
  if (nrow(r$modules)) membership[r$module > 0L] <- r$membership[at[r$module > 0L, , drop = FALSE]]
  rank <- rep(NA_integer_, length(r$module))
  for (m in seq_len(nrow(r$modules))) {
    own <- which(r$module == m)
    rank[own] <- rank(-abs(membership[own]), ties.method = "first")
  }
  d <- as_frame(c(list(gene = names(r$module)), if (!is.null(r$symbols)) list(symbol = r$symbols),
                  list(module = unname(r$module), membership = membership, rank = rank)))
  d <- d[order(ifelse(d$module > 0L, d$module, Inf), d$rank), ]
  rownames(d) <- NULL
  d
}

#' @rdname print.weft_modules
#' @export
tidy.weft_modules <- function(x, ...) broom_names(as.data.frame(x, ...), "correlation")

#' @rdname print.weft_modules
#' @export
glance.weft_modules <- function(x, ...) {
  r <- check_modules(x, "x")
  least <- function(v) if (length(v) && !all(is.na(v))) min(v, na.rm = TRUE) else NA_real_
  data.frame(genes = length(r$module), samples = r$samples, modules = nrow(r$modules),
             in_modules = sum(r$module > 0L), left_out = nrow(r$left_out), stability = least(r$modules$stability),
             related = sum(r$relations$q_value <= 0.05, na.rm = TRUE), signed = r$signed, backend = r$backend,
             seconds = r$seconds)
}

#' @rdname print.weft_modules
#' @export
summary.weft_modules <- function(object, ...) {
  print(object, n = 1e6)
}

# ---- pictures ----

#' @rdname print.weft_modules
#' @export
plot.weft_modules <- function(x, ...) {
  r <- check_modules(x, "x")
  if (!nrow(r$modules)) abort_input("`x` must have modules to draw.", x = "It has none.")
  drawing("x", if (is.null(r$relations)) draw_module_sizes(r, ...) else draw_relations(r, ...))
  invisible(x)
}

module_labels <- function(r) sprintf("M%d (%s)", r$modules$module, thousands(r$modules$size))

draw_module_sizes <- function(r, ...) {
  settings <- list(height = rev(r$modules$size), names.arg = rev(sprintf("M%d", r$modules$module)), horiz = TRUE,
                   las = 1, col = weft_colours[["blue"]], border = NA, xlab = "genes",
                   main = several(nrow(r$modules), "module"))
  do.call(graphics::barplot, utils::modifyList(settings, list(...)))
}

# The correlations as a matrix with a row per module, beside which of them are found: list(r, found).
relation_table <- function(r) {
  d <- r$relations
  variables <- unique(d$variable)
  shape <- function(v) matrix(v, nrow(r$modules), length(variables), dimnames = list(module_labels(r), variables))
  list(r = shape(d$correlation), found = shape(!is.na(d$q_value) & d$q_value <= 0.05))
}

relation_colours <- function(count) {
  grDevices::colorRampPalette(c("#1b7837", "#a6dba0", "#f7f7f7", "#c2a5cf", "#762a83"))(count)
}

# Modules from top to bottom; purple where the eigengene rises with the variable, green where it falls.
draw_relations <- function(r, ...) {
  table <- relation_table(r)
  k <- nrow(table$r)
  count <- ncol(table$r)
  names <- cut_name(plain_text(colnames(table$r)), 24L)
  old <- graphics::par(mar = c(1 + 0.6 * min(12, max(nchar(names))), 6.5, 3, 1))
  on.exit(graphics::par(old))
  settings <- list(x = seq_len(count), y = seq_len(k), z = t(table$r[k:1, , drop = FALSE]), zlim = c(-1, 1),
                   col = relation_colours(101L), axes = FALSE, xlab = "", ylab = "",
                   main = "Correlations (bold: q <= 0.05)", cex.main = 1)
  do.call(graphics::image, utils::modifyList(settings, list(...)))
  graphics::axis(1, seq_len(count), names, las = 2, tick = FALSE)
  graphics::axis(2, seq_len(k), rev(rownames(table$r)), las = 1, tick = FALSE)
  known <- which(!is.na(table$r), arr.ind = TRUE)
  value <- table$r[known]
  graphics::text(known[, 2L], k + 1L - known[, 1L], sprintf("%.2f", value), font = 1L + table$found[known],
                 col = ifelse(abs(value) > 0.75, "white", "black"), cex = min(1, 20 / k))
  graphics::box(col = "grey60")
}
