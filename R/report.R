# The report: an R Markdown template in inst/rmarkdown, filled with the result of the workflow.

#' Write the workflow's result up as a page
#'
#' A self-contained HTML page: what was done to the data, figures and tables of every step, a text of methods to be put into a
#' manuscript, and the session, machine and back ends. It opens without a network.
#'
#' The page is made from the R Markdown template `gene_network` of this package, which can be copied and changed: in RStudio under New
#' file, R Markdown, From template; else `rmarkdown::draft("my-report.Rmd", "gene_network", package = "weft")`, and give
#' that file as `template`.
#'
#' @param fit what [gene_network()] returned.
#' @param file where to write the page: a path that ends in `.html`.
#' @param title its title.
#' @param template an R Markdown file with the parameters `fit` and `title`.
#' @param top how many genes, pairs and edges the tables have.
#' @param open open the page in a browser; the default is in interactive sessions.
#' @param quiet say nothing while rendering.
#' @return The path of the page, invisibly.
#' @seealso [gene_network()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 60, p = 30)
#' fit <- gene_network(e$x, e$class, seed = 1, pairs = FALSE, clusters = FALSE, bayes = FALSE)
#' if (requireNamespace("rmarkdown", quietly = TRUE) && rmarkdown::pandoc_available("1.12.3")) {
#'   weft_report(fit, tempfile(fileext = ".html"), open = FALSE)
#' }
weft_report <- function(fit, file = "gene-network.html", title = "Gene network report", template = NULL, top = 20, open = interactive(),
                        quiet = TRUE) {
  if (!inherits(fit, "weft_gene_network")) {
    abort_input("`fit` must be what `gene_network()` returned.", x = paste0("It is ", describe(fit), "."))
  }
  if (!is.character(file) || length(file) != 1L || is.na(file) || !grepl("\\.html?$", file)) {
    abort_input("`file` must be one path that ends in .html.", x = paste0("It is ", describe(file), "."))
  }
  if (!dir.exists(dirname(file))) abort_input("The folder of `file` must exist.", x = sprintf("There is no \"%s\".", dirname(file)))
  top <- check_number(top, "top", min = 1, whole = TRUE)
  need_package("rmarkdown", "`weft_report()`")
  need_package("knitr", "`weft_report()`")
  if (!rmarkdown::pandoc_available("1.12.3")) {
    abort_input("`weft_report()` needs pandoc.", x = "It was not found.",
                i = "It comes with RStudio; on Debian and Ubuntu `apt-get install pandoc`; see https://pandoc.org.")
  }
  template <- template %||% system.file("rmarkdown", "templates", "gene_network", "skeleton", "skeleton.Rmd", package = "weft")
  if (!file.exists(template)) abort_input("`template` must be an R Markdown file.", x = sprintf("There is no \"%s\".", template))
  work <- tempfile("weft-report-")
  dir.create(work)
  on.exit(unlink(work, recursive = TRUE))
  copy <- file.path(work, "report.Rmd")
  file.copy(template, copy)
  rmarkdown::render(copy, output_file = "report.html", params = list(fit = fit, title = title, top = top),
                    envir = new.env(parent = globalenv()),
                    quiet = check_flag(quiet, "quiet"))
  if (!file.copy(file.path(work, "report.html"), file, overwrite = TRUE)) abort_input("`file` must be writable.",
                                                                                      x = sprintf("\"%s\" is not.", file))
  file <- normalizePath(file)
  if (check_flag(open, "open")) utils::browseURL(paste0("file://", file))
  invisible(file)
}

# The methods of an analysis in sentences, for a manuscript.
methods_text <- function(fit) {
  q <- fit$quality
  steps <- workflow_steps[-1L][vapply(workflow_steps[-1L], function(step) !is.null(fit[[step]]), NA)]
  sentences <- vapply(steps, function(step) {
    tryCatch(methods_sentence(step, fit[[step]]),
             error = function(e) sprintf("The step \"%s\" was done by a function of the user's.", step))
  }, "")
  c(sprintf("Expression of %s genes in %d samples was analysed with weft %s (%s).", format(q$input[2L], big.mark = ","), q$input[1L],
            fit$version, R.version.string),
    q$log$what, sprintf("%s genes and %d samples were kept.", format(ncol(q$x), big.mark = ","), nrow(q$x)),
    sentences, sprintf("The random seed was %.0f.", fit$seed))
}

methods_sentence <- function(step, r) {
  whole <- function(x) format(x, big.mark = ",", scientific = FALSE)
  switch(step,
    components = sprintf("Principal components of the scaled genes were found by the method \"%s\"; %d stand out by %s.",
                         r$method, r$leading,
                         switch(r$choice$method %||% "", parallel = "parallel analysis (Horn 1965)",
                                gavish_donoho = "the threshold of Gavish and Donoho (2014)", "choice")),
    ranking = paste("Genes were cut into bins of equal frequency and ranked by their mutual information with the class; p-values are of",
                    "the G test, adjusted by the method of Benjamini and Hochberg."),
    pairs = paste0(sprintf("All %s pairs of genes were searched for interaction, the information of a pair beyond that of its members",
                           whole(attr(r, "searched"))),
                   if (!is.null(r$p_fwer)) "; p-values are of label permutations with the best pair of each and hold for the whole search",
                   "."),
    network = paste0(sprintf("The network is of mutual information (%s) by %s", attr(attr(r, "mi"), "estimator"),
                             network_reference(attr(r, "method"))),
                     if (!is.na(attr(r, "cut") %||% NA)) {
                       sprintf(paste(", cut to edges that are significant at a false discovery rate of %g, and of these to as many of the",
                                     "heaviest as were asked for or as ARACNE finds"), attr(r, "fdr"))
                     }, "."),
    clusters = sprintf(paste("Samples and genes were grouped at once by the infinite relational model (Kemp and others 2006)",
                             "of which genes are above their median (%d chains of %d sweeps)."),
                       ncol(r$log_posterior), nrow(r$log_posterior)),
    bayes = sprintf(paste("A Bayesian network of %d genes was learned by order MCMC (Friedman and Koller 2003) with the %s score, at most",
                          "%d parents, %d chains of %s steps."), nrow(r$dag), toupper(r$table$type), max(r$table$max_parents),
                    as.integer(r$run$ladders), whole(r$iterations)),
    outliers = sprintf(paste("Samples that stand apart were found by their kernel density among %d components and their distance from",
                             "these, at a false discovery rate of %g."), attr(r, "components"), attr(r, "fdr"))
  )
}

network_reference <- function(method) {
  switch(method, aracne = "ARACNE (Margolin and others 2006)", clr = "CLR (Faith and others 2007)", mrnet = "MRNET (Meyer and others 2007)",
         mrnetb = "MRNETB (Meyer and others 2010)", relnet = "a threshold (relevance network)", method)
}

# The page's first lines: step and result, in words.
report_lines <- function(fit, top = 5L) {
  done <- workflow_steps[-1L][vapply(workflow_steps[-1L], function(step) !is.null(fit[[step]]), NA)]
  title <- c(components = "Components", ranking = "Genes that tell the classes apart", pairs = "Pairs of genes", network = "Network",
             clusters = "Groups", bayes = "Bayesian network", outliers = "Samples that stand apart")
  text <- vapply(done, step_text, "", x = fit, top = top)
  stats::setNames(gsub("->", "\u2192", text, fixed = TRUE), title[done])
}
