# The report: an R Markdown template in inst/rmarkdown, filled with the result of the workflow.

#' Write the workflow's result up as a page
#'
#' A self-contained HTML page: what was done to the data, figures and tables of every step, a text of methods to be put into a
#' manuscript, and the session, machine and back ends. It opens without a network.
#'
#' Names of genes, samples and classes, the title and all else that comes from data are shown as they are: nothing in
#' them is markup, a link, a file to be put in, or code.
#'
#' The page is made from the R Markdown template `gene_network` of this package, which can be copied and changed: in RStudio under New
#' file, R Markdown, From template; else `rmarkdown::draft("my-report.Rmd", "gene_network", package = "weft")`, and give
#' that file as `template`. Of the parameters `fit`, `title`, `author` and `top` it gets those that it declares; title
#' and author come as Markdown in which everything stands for itself.
#'
#' @param fit what [gene_network()] returned.
#' @param file where to write the page: a path that ends in `.html`.
#' @param title its title.
#' @param author names of its authors, if it is to have any.
#' @param template an R Markdown file with the parameter `fit`.
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
weft_report <- function(fit, file = "gene-network.html", title = "Gene network report", author = NULL, template = NULL,
                        top = 20, open = interactive(), quiet = TRUE) {
  need_args("fit")
  fit <- checked_fit(fit, "fit")
  check_output(file, "file")
  if (!grepl("\\.html?$", file)) abort_input("`file` must be one path that ends in .html.",
                                             x = paste0("It is ", describe(file), "."))
  title <- check_text(title, "title")
  if (!is.null(author) && (!is.character(author) || anyNA(author))) {
    abort_input("`author` must be names, as text.", x = paste0("It is ", describe(author), "."))
  }
  top <- check_top(top)
  quiet <- check_flag(quiet, "quiet")
  open <- check_flag(open, "open")
  need_package("rmarkdown", "`weft_report()`")
  need_package("knitr", "`weft_report()`")
  if (!rmarkdown::pandoc_available("1.12.3")) {
    abort_input("`weft_report()` needs pandoc.", x = "It was not found.",
                i = "It comes with RStudio; on Debian and Ubuntu `apt-get install pandoc`; see https://pandoc.org.")
  }
  author <- paste(valid_utf8(author), collapse = ", ")
  params <- list(fit = fit, title = markdown_text(title), author = markdown_text(author), top = top)
  work <- tempfile("weft-report-")
  dir.create(work)
  on.exit(unlink(work, recursive = TRUE))
  render_report(report_template(template), params, work, quiet)
  file <- put_in_place(file.path(work, "report.html"), file)
  if (open) utils::browseURL(paste0("file://", gsub("%2F", "/", utils::URLencode(file, reserved = TRUE), fixed = TRUE)))
  invisible(file)
}

report_template <- function(template) {
  if (is.null(template)) {
    return(system.file("rmarkdown", "templates", "gene_network", "skeleton", "skeleton.Rmd", package = "weft",
                       mustWork = TRUE))
  }
  template <- check_text(template, "template")
  if (!file.exists(template) || dir.exists(template)) {
    abort_input("`template` must be an R Markdown file.", x = sprintf("There is no file %s.", describe(template)))
  }
  template
}

# Renders a copy of the template in the folder `work`, with the parameters that it declares.
render_report <- function(template, params, work, quiet) {
  copy <- file.path(work, "report.Rmd")
  file.copy(template, copy)
  tryCatch({
    declared <- names(rmarkdown::yaml_front_matter(copy)$params)
    if (!"fit" %in% declared) {
      abort_input("`template` must declare the parameter `fit`.",
                  i = "Its first lines need `params:` and below that `  fit: null`.")
    }
    rmarkdown::render(copy, output_file = "report.html", params = params[intersect(names(params), declared)],
                      envir = new.env(parent = globalenv()), quiet = quiet)
  }, error = function(e) {
    if (inherits(e, "weft_error")) stop(e)
    abort_input("The report could not be made.", x = plain_text(conditionMessage(e)),
                i = paste("`fit` must be what `gene_network()` returned, unchanged;",
                          "a `template` of your own may have an error of its own."))
  })
}

# ---- what the template shows ----

# A data frame as a table in Markdown: its first rows, with names and values as they are.
report_table <- function(d, caption, rows = nrow(d), digits = 3) {
  d <- utils::head(as.data.frame(d), rows)
  number <- vapply(d, is.numeric, NA)
  probability <- intersect(c("p_value", "q_value", "p_fwer"), names(d)[number])
  d[probability] <- lapply(d[probability], probability_text)
  d[] <- lapply(d, function(v) if (is.double(v)) signif(v, digits) else if (is.numeric(v)) v else markdown_text(v))
  knitr::kable(d, format = "pipe", caption = markdown_text(caption), row.names = FALSE,
               align = ifelse(number, "r", "l"), col.names = markdown_text(names(d)))
}

probability_text <- function(v) {
  ifelse(is.na(v), "", ifelse(v < 0.001, "< 0.001", formatC(v, digits = 2, format = "fg", flag = "#")))
}

# Lines as a block of code, whose fence is longer than any in it.
verbatim <- function(lines) {
  lines <- plain_text(cli::ansi_strip(lines))
  runs <- unlist(regmatches(lines, gregexpr("`+", lines)))
  fence <- strrep("`", max(3L, nchar(runs) + 1L))
  cat("", fence, lines, fence, "", sep = "\n")
}

# The call as it was; data that stand in it themselves are cut short.
call_lines <- function(fit, most = 20L) {
  lines <- deparse(fit$call, width.cutoff = 80L, nlines = most + 1L)
  if (length(lines) > most) c(lines[seq_len(most)], "...") else lines
}

sitrep_lines <- function(sitrep) utils::capture.output(if (!is.null(sitrep)) print(sitrep))

quality_text <- function(q) {
  whole <- function(n) format(n, big.mark = ",")
  kept <- sprintf("%s samples and %s genes came in; %s and %s were kept.", whole(q$input[1L]), whole(q$input[2L]),
                  whole(nrow(q$x)), whole(ncol(q$x)))
  if (is.null(q$class)) return(kept)
  sprintf("%s Classes: %s.", kept, paste(class_sizes(q$class, "%s (%d)"), collapse = ", "))
}

# What there is to say before the table of pairs.
pairs_text <- function(r) {
  if (!nrow(r)) return("There were no pairs.")
  if (is.null(r$p_fwer)) return("There was no permutation test for so many pairs: these may be what chance gives.")
  if (any(r$p_fwer <= 0.05)) return("The p-values hold for the whole search: pairs above 0.05 are what chance gives.")
  paste("None is significant: over the whole search chance gives as much interaction as the best pair has with probability",
        sprintf("%s.", format(min(r$p_fwer), digits = 2)))
}

report_date <- function(fit) format(as.POSIXct(as.numeric(fit$date), origin = "1970-01-01"), "%e %B %Y, %H:%M")

# The methods of an analysis in sentences, for a manuscript.
methods_text <- function(fit) {
  q <- fit$quality
  steps <- workflow_steps[-1L][vapply(workflow_steps[-1L], function(step) !is.null(fit[[step]]), NA)]
  sentences <- c(vapply(steps, function(step) methods_sentence(step, fit[[step]]), ""),
                 sprintf("The step \"%s\" was done by a function of the user's.", names(fit$foreign)))
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
                                signs = paste("comparison with data of permuted genes (Horn 1965) and of random signs",
                                              "(Hong, Sheng and Dobriban 2020)"),
                                gavish_donoho = "the threshold of Gavish and Donoho (2014)", "choice")),
    ranking = paste("Genes were cut into bins of equal frequency and ranked by their mutual information with the class; p-values are exact",
                    "or simulated for tables with the same margins, adjusted by the method of Benjamini and Hochberg."),
    pairs = paste0(sprintf("All %s pairs of genes were searched for interaction, the information of a pair beyond that of its members",
                           whole(attr(r, "searched"))),
                   if (!is.null(r$p_fwer)) "; p-values are of label permutations with the best pair of each and hold for the whole search",
                   "."),
    network = if (is_directed(r)) regulation_methods(r) else
              paste0(sprintf("The network is of mutual information (%s) by %s", attr(attr(r, "mi"), "estimator"),
                             network_reference(attr(r, "method"))),
                     if (!is.na(attr(r, "cut") %||% NA)) {
                       sprintf(paste(", cut to edges that are significant at a false discovery rate of %g, and of these to as many of the",
                                     "heaviest as were asked for or as ARACNE finds"), attr(r, "fdr"))
                     }, "."),
    clusters = sprintf(paste("Samples and genes were grouped at once by the infinite relational model (Kemp and others 2006)",
                             "%s (%d chains of %d sweeps)."),
                       if (r$family == "gaussian") "with normal blocks, genes scaled to mean 0 and variance 1"
                       else "of which genes are above their median", ncol(r$log_posterior), nrow(r$log_posterior)),
    bayes = sprintf(paste("A Bayesian network of %d genes was learned by order MCMC (Friedman and Koller 2003) with the %s score, at most",
                          "%d parents, %d chains of %s steps."), nrow(r$dag), toupper(r$table$type), max(r$table$max_parents),
                    as.integer(r$run$ladders), whole(r$iterations)),
    outliers = sprintf(paste("Samples that stand apart were found by their kernel density among %d components and their distance from",
                             "these, at a false discovery rate of %g. Samples are taken to be about equally noisy: one that",
                             "is much noisier than all others stands apart too."), attr(r, "components"), attr(r, "fdr"))
  )
}

network_reference <- function(method) {
  if (method %in% names(network_methods)) network_methods[[method]]$cite else method
}

# The page's first lines: step and result, in words.
report_lines <- function(fit, top = 5L) {
  done <- workflow_steps[-1L][vapply(workflow_steps[-1L], function(step) !is.null(fit[[step]]), NA)]
  title <- c(components = "Components", ranking = "Genes that tell the classes apart", pairs = "Pairs of genes", network = "Network",
             clusters = "Groups", bayes = "Bayesian network", outliers = "Samples that stand apart")
  stats::setNames(vapply(done, step_text, "", x = fit, top = top), title[done])
}
