# The parts of the report as functions, for a user's own document.

#' Parts of the report for your own document
#'
#' These functions write the parts of [weft_report()] into a document of your own. Call them in a chunk of R Markdown or
#' Quarto with `results = "asis"`, for example `report_findings(fit)`; each writes its text, tables and figures. A part
#' about a step that was left out writes nothing. To begin, copy the template of [weft_report()], which calls these
#' functions: `rmarkdown::draft("report.Rmd", "gene_network", "weft")`.
#'
#' Call `report_style()` before all other parts, and `report_script()` after them. In HTML, they make tables that can be
#' sorted and searched. In other formats they write nothing.
#'
#' @param fit an object returned by [gene_network()].
#' @param top the number of rows of a table that are shown at first.
#' @param sets gene sets in the form of [gene_sets()], or an object returned by `report_enrichment()`, which avoids
#'   testing the sets again for each part. `NULL` for none.
#' @param x text from data; `markdown_text()` escapes it, so that Markdown shows it literally.
#' @return `report_enrichment()` returns a list with the test results for the gene sets. `report_date()` and
#'   `markdown_text()` return text. The other functions write their part and return nothing.
#' @seealso [weft_report()]
#' @name report_parts
#' @examples
#' e <- weft_example("expression", n = 60, p = 30, seed = 1)
#' fit <- gene_network(e$x, e$class, seed = 1,
#'                     steps = list(bayes = FALSE, clusters = FALSE, pairs = FALSE),
#'                     run = weft_run(progress = FALSE))
#' report_findings(fit)
#' report_data(fit)
NULL

#' @rdname report_parts
#' @export
report_style <- function() style_section()

#' @rdname report_parts
#' @export
report_script <- function() script_section()

#' @rdname report_parts
#' @export
report_findings <- function(fit, sets = NULL) {
  cat(findings_page(checked_fit(fit, "fit"), report_enrichment(fit, sets)), sep = "\n")
}

#' @rdname report_parts
#' @export
report_data <- function(fit) data_section(labelled_fit(fit))

#' @rdname report_parts
#' @export
report_samples <- function(fit) samples_section(labelled_fit(fit))

#' @rdname report_parts
#' @export
report_genes <- function(fit, top = 20) part_about("ranking", genes_section, fit, top)

#' @rdname report_parts
#' @export
report_pairs <- function(fit, top = 20) part_about("pairs", pairs_section, fit, top)

#' @rdname report_parts
#' @export
report_network <- function(fit, top = 20) part_about("network", network_section, fit, top)

#' @rdname report_parts
#' @export
report_groups <- function(fit, top = 20) part_about("clusters", groups_section, fit, top)

#' @rdname report_parts
#' @export
report_bayes <- function(fit, top = 20) part_about("bayes", bayes_section, fit, top)

#' @rdname report_parts
#' @export
report_sets <- function(fit, sets, top = 20) {
  enriched <- report_enrichment(fit, sets)
  if (!is.null(enriched)) sets_section(enriched, check_top(top))
}

#' @rdname report_parts
#' @export
report_methods <- function(fit, sets = NULL) methods_section(labelled_fit(fit), report_enrichment(fit, sets))

#' @rdname report_parts
#' @export
report_run <- function(fit) run_section(labelled_fit(fit))

#' @rdname report_parts
#' @export
report_date <- function(fit) markdown_text(date_text(checked_fit(fit, "fit")))

#' @rdname report_parts
#' @export
report_enrichment <- function(fit, sets) {
  if (is.null(sets) || inherits(sets, "weft_enrichment")) return(sets)
  structure(enrichment_of(fit, sets), class = "weft_enrichment")
}

# With symbols in place of names, which the sections show.
labelled_fit <- function(fit) with_labels(checked_fit(fit, "fit"))

part_about <- function(step, section, fit, top) {
  fit <- labelled_fit(fit)
  if (!is.null(fit[[step]])) section(fit, check_top(top))
}
