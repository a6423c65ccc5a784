# The report: an R Markdown template in inst/rmarkdown, filled with the result of the workflow. What its sections write
# is in report-*.R.

#' Write a report on an analysis
#'
#' `weft_report()` writes a report on the result of [gene_network()]. The shortest call is `weft_report(fit,
#' "report.html")`, which returns the path of the file. The report is a single file, which opens in any browser without
#' an internet connection.
#'
#' The report begins with the findings in at most 150 words, and rates the evidence for each of them. Figures and tables
#' follow, with notes on how to read them. Tables can be sorted, searched and downloaded as CSV files, and the report
#' contains the table of all genes as a file. The report ends with a methods section for a manuscript, references,
#' settings, and information on the R session and the machine. Gene symbols and Ensembl identifiers are links to
#' GeneCards and Ensembl.
#'
#' If several columns of the data measure the same gene (see `symbols` of [gene_quality()]), the report calls the
#' columns probes. Otherwise, it calls them genes.
#'
#' The findings are ordered by the strength of their evidence. Only findings from tests of differences can be rated
#' strong. No finding is rated strong if class and batch are confounded, if sequencing depth differs between classes, or
#' if cells are treated as independent samples. A network is reported as pairs of genes, and as co-expression if there
#' are no candidate regulators. The proportion of correct directions is quoted from simulations with a similar number of
#' samples (`inst/bench/direction-models.R`). Groups of samples and Bayesian networks are not reported as findings if
#' their chains disagree (R-hat above 1.1).
#'
#' Names of genes, samples and classes, the title and all other text from the data are shown literally: nothing in them
#' is interpreted as markup, a link, a file to include, or code.
#'
#' The page is made from the R Markdown template `gene_network` of this package, which you can copy and change: in
#' RStudio, choose New file, R Markdown, From template; elsewhere, call `rmarkdown::draft("my-report.Rmd",
#' "gene_network", package = "weft")`. Then give that file as `template`. It gets those of the parameters `fit`,
#' `title`, `author`, `top` and `sets` that it declares; title and author are Markdown in which every character is
#' literal. For Quarto, `system.file("quarto", "gene-network.qmd", package = "weft")` makes the same report from a
#' result saved with [saveRDS()].
#'
#' A PDF is printed from the page by Chromium or Chrome (on the `PATH`, or named by the environment variable
#' `WEFT_CHROME`); without these, it is made with LaTeX.
#'
#' @param fit an object returned by [gene_network()].
#' @param file the path of the report, which ends in `.html` or `.pdf`. An existing file is replaced as in
#'   [write_network()].
#' @param title the title of the report.
#' @param author the names of its authors, if you want to show them.
#' @param template an R Markdown file with the parameter `fit`.
#' @param top the number of rows of a table that are initially shown.
#' @param open whether to open the report; by default only in interactive sessions.
#' @param quiet whether to print nothing while rendering.
#' @param format `"html"` or `"pdf"`; by default the extension of `file`.
#' @param sets gene sets in the form of [gene_sets()]. The report then lists sets that are over-represented among the
#'   top genes, the neighbours of hubs and the groups of genes, and sets that are shifted as a whole.
#' @return The path of the report, invisibly.
#' @seealso [gene_network()], [gene_sets()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 60, p = 30)
#' fit <- gene_network(e$x, e$class, seed = 1,
#'                     steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE))
#' if (requireNamespace("rmarkdown", quietly = TRUE) && rmarkdown::pandoc_available("1.12.3")) {
#'   weft_report(fit, tempfile(fileext = ".html"), open = FALSE)
#' }
weft_report <- function(fit, file = paste0("gene-network.", format), title = "Gene network report", author = NULL,
                        template = NULL, top = 20, open = interactive(), quiet = TRUE, format = c("html", "pdf"),
                        sets = NULL) {
  need_args("fit")
  fit <- checked_fit(fit, "fit")
  if (missing(format) && !missing(file) && is.character(file) && any(grepl("\\.pdf$", file))) format <- "pdf"
  format <- check_choice(format, c("html", "pdf"), "format")
  file <- check_output(file, "file")
  if (!grepl(if (format == "pdf") "\\.pdf$" else "\\.html?$", file)) {
    abort_input(sprintf("`file` must be one path that ends in .%s.", format), x = paste0("It is ", describe(file), "."))
  }
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
  if (!is.null(sets)) sets <- sets_of(sets)
  browser <- if (format == "pdf") pdf_maker()
  author <- paste(valid_utf8(author), collapse = ", ")
  params <- list(fit = fit, title = markdown_text(title), author = markdown_text(author), top = top, sets = sets)
  work <- tempfile("weft-report-")
  dir.create(work)
  on.exit(unlink(work, recursive = TRUE))
  old <- options(OutDec = ".") # the text is English, and numbers in its markup are read by programs
  on.exit(options(old), add = TRUE)
  render_report(report_template(template), params, work, quiet, if (identical(browser, "latex")) "latex" else "html",
                own = !is.null(template))
  if (format == "pdf" && browser != "latex") print_page(browser, work)
  file <- put_in_place(file.path(work, paste0("report.", format)), file)
  if (open) utils::browseURL(paste0("file://", gsub("%2F", "/", utils::URLencode(file, reserved = TRUE), fixed = TRUE)))
  invisible(file)
}

report_template <- function(template) {
  if (is.null(template)) {
    return(system.file("rmarkdown", "templates", "gene_network", "skeleton", "skeleton.Rmd", package = "weft",
                       mustWork = TRUE))
  }
  template <- readable_file(check_text(template, "template"), "template", "an R Markdown file")
  bytes <- whole_bytes(template, "template", "an R Markdown file", 2^26)
  if (any(bytes == 0) || !validUTF8(rawToChar(bytes))) {
    abort_input("`template` must be an R Markdown file.",
                x = sprintf("%s is not readable text in UTF-8.", describe(template)))
  }
  template
}

# Renders a copy of the template in the folder `work`, with the parameters that it declares.
render_report <- function(template, params, work, quiet, form = "html", own = FALSE) {
  copy <- file.path(work, "report.Rmd")
  file.copy(template, copy)
  latex <- form == "latex"
  tryCatch({
    declared <- names(rmarkdown::yaml_front_matter(copy)$params)
    if (!"fit" %in% declared) {
      abort_input("`template` must declare the parameter `fit`.",
                  i = "Its first lines need `params:` and below that `  fit: null`.")
    }
    format <- if (latex) rmarkdown::pdf_document(latex_engine = latex_engine(), toc = TRUE, toc_depth = 2)
    knit_and_convert(copy, format, if (latex) "report.pdf" else "report.html",
                     params[intersect(names(params), declared)], quiet)
  }, error = function(e) {
    if (inherits(e, "weft_error")) stop(e)
    if (latex) latex_lacks(file.path(work, "report.log"))
    render_failed(e, own, work)
  })
}

# First the template is run, which R can stop at any time; then pandoc, by a child of this process: R ignores Ctrl-C
# while it waits for another program by itself.
knit_and_convert <- function(copy, format, output, params, quiet) {
  knitted <- rmarkdown::render(copy, output_format = format, params = params, envir = new.env(parent = globalenv()),
                               quiet = quiet, clean = FALSE, run_pandoc = FALSE)
  apart(function() {
    rmarkdown::render(file.path(dirname(copy), basename(knitted)), output_format = format, output_file = output,
                      quiet = quiet, knit_meta = attr(knitted, "knit_meta"))
  }, function() stop("The process that ran pandoc was ended."), loud = TRUE)
}

# Says why no page was made: a full disk, pandoc, the user's own template, or a bug in weft.
render_failed <- function(error, own, work) {
  said <- plain_text(conditionMessage(error))
  if (!has_space(work)) {
    abort_input("The folder of temporary files must have space.", x = sprintf("%s has none left.", describe(work)),
                i = "To use another folder, set the environment variable TMPDIR before R starts.")
  }
  if (own) {
    abort_input("`template` must be an R Markdown file that can be rendered.", x = said,
                i = "Render it by itself, with `rmarkdown::render()` and its parameters, to see where it stops.")
  }
  if (grepl("pandoc", said, fixed = TRUE)) {
    if (grepl("error (2|130)$", said)) raise_interrupt() # what a program returns that Ctrl-C has ended
    weft_abort("internal", "pandoc did not make the page.", x = said,
               i = paste("It may lack memory.", "Otherwise this is a bug in weft.", how_to_report))
  }
  abort_bug(error)
}

# Whether a megabyte can still be written into a folder.
has_space <- function(folder) {
  file <- tempfile("space-", folder)
  on.exit(unlink(file))
  tryCatch(suppressWarnings(writeBin(raw(2^20), file)), error = function(e) NULL)
  isTRUE(file.size(file) == 2^20)
}

# ---- PDF ----

# The path of a browser that prints pages, or "latex".
pdf_maker <- function() {
  named <- Sys.getenv("WEFT_CHROME")
  if (nzchar(named) && named != "no") {
    if (!nzchar(Sys.which(named))) {
      abort_input("`WEFT_CHROME` must be the path of Chromium or Chrome.", x = sprintf("It is %s.", describe(named)))
    }
    return(unname(Sys.which(named)))
  }
  found <- Sys.which(c("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge"))
  found <- unname(found[nzchar(found)])
  if (length(found) && named != "no") return(found[1L])
  if (nzchar(Sys.which(latex_engine()))) return("latex")
  abort_input("`format = \"pdf\"` needs Chromium, Chrome or LaTeX.", x = "None was found.",
              i = "`WEFT_CHROME` can name the browser. You can also print the page that `format = \"html\"` writes.")
}

# An error where LaTeX stopped for a file that is not installed.
latex_lacks <- function(log) {
  lines <- if (file.exists(log)) readLines(log, warn = FALSE)
  missing <- grep("^! LaTeX Error: File `.*' not found", lines, value = TRUE, useBytes = TRUE)
  if (!length(missing)) return(invisible())
  abort_input("`format = \"pdf\"` needs Chromium, Chrome or a complete LaTeX.",
              x = sprintf("LaTeX is installed, but its file %s is missing.",
                          plain_text(sub(".*`(.*)' not found.*", "\\1", missing[1L]))),
              i = paste("Debian's texlive-latex-recommended, MiKTeX or the R package tinytex provide what is missing.",
                        "Or use `format = \"html\"`, open the file in a browser and print it to PDF."))
}

latex_engine <- function() if (nzchar(Sys.which("xelatex"))) "xelatex" else "pdflatex"

# Prints report.html of the folder `work` into report.pdf. A profile of its own, so that an open browser does not take
# over.
print_page <- function(browser, work) {
  pdf <- file.path(work, "report.pdf")
  told <- c("--headless", "--disable-gpu", if (identical(unname(Sys.info()["user"]), "root")) "--no-sandbox",
            "--no-pdf-header-footer",
            shQuote(paste0("--user-data-dir=", file.path(work, "profile"))), shQuote(paste0("--print-to-pdf=", pdf)),
            shQuote(paste0("file://", file.path(work, "report.html"))))
  said <- apart(function() suppressWarnings(system2(browser, told, stdout = TRUE, stderr = TRUE, timeout = 120)),
                function() abort_input("The HTML report could not be printed to PDF.", x = "The browser was ended."))
  if (!isTRUE(file.size(pdf) > 1000)) {
    abort_input("The HTML report could not be printed to PDF.",
                x = plain_text(paste(c(utils::tail(said, 2L), "The reason is unknown."), collapse = " ")),
                i = "Use `format = \"html\"`, open the file in a browser and print it to PDF.")
  }
}

# ---- what the template shows ----

# The call as it was; data that are written out in it are truncated.
call_lines <- function(fit, most = 20L) {
  lines <- deparse(fit$call, width.cutoff = 80L, nlines = most + 1L)
  if (length(lines) > most) c(lines[seq_len(most)], "...") else lines
}

sitrep_lines <- function(sitrep) utils::capture.output(if (!is.null(sitrep)) print(sitrep))

quality_text <- function(q) {
  whole <- thousands
  all_kept <- all(q$input[1:2] == dim(q$x))
  came <- sprintf("%s samples and %s", whole(q$input[1L]), columns_text(q, q$input[2L]))
  kept <- if (all_kept) sprintf("The data contain %s. All of them were kept.", came)
          else sprintf("The data contain %s. After filtering, %s samples and %s remain.", came, whole(nrow(q$x)),
                       columns_text(q, ncol(q$x)))
  if (column_word(q) == "probe") {
    kept <- sprintf("%s A probe is a column of the data. The %s measure %s.", kept, columns_text(q, ncol(q$x)),
                    several(length(representatives(q)), "gene"))
  }
  if (is.null(q$class)) return(kept)
  sprintf("%s The classes are %s.", kept, joined(class_sizes(q$class, "%s (%d samples)")))
}

# Probes that measure what was added to samples or how they were handled, by the names that makers gave them:
# Affymetrix's controls, and the spike-ins of the External RNA Controls Consortium.
is_control <- function(names) grepl("^AFFX[-_.]|^ERCC[-_.][0-9]{5}$", names)

controls_text <- function(q) {
  own <- colnames(q$x)[is_control(colnames(q$x))]
  if (!length(own)) return(NULL)
  one <- length(own) == 1L
  sprintf("The %s that %s (%s). %s how the samples were processed, not biology.",
          if (one) "name of 1 column shows" else paste("names of", thousands(length(own)), "columns show"),
          if (one) "it is a control probe" else "they are control probes", some_of(own, 3L),
          if (one) "A result for this probe reflects" else "Results for these probes reflect")
}

# What there is to say before the table of pairs.
pairs_text <- function(r) {
  if (!nrow(r)) return("There are no pairs.")
  if (is.null(r$p_fwer)) return("The pairs were not tested, because there are too many for a permutation test.")
  sure <- sum(r$p_fwer <= 0.05)
  if (sure) {
    return(paste(c(sprintf("%s significant (p %s, adjusted for all pairs).",
                           if (sure == 1L) sprintf("One pair, %s and %s, is", r$feature1[r$p_fwer <= 0.05],
                                                   r$feature2[r$p_fwer <= 0.05])
                           else sprintf("%d pairs are", sure), p_text(min(r$p_fwer))),
                   whole_search(r), "Confirm a pair in other samples before you rely on it."), collapse = " "))
  }
  paste(c(sprintf("No pair is significant. The smallest p-value, adjusted for all pairs, is %s.",
                  probability_text(min(r$p_fwer))), whole_search(r)), collapse = " ")
}

data_section <- function(fit) {
  report_paragraph(quality_text(fit$quality))
  report_paragraph(controls_text(fit$quality))
  rows <- confounding_of(fit)
  for (k in seq_len(NROW(rows))) report_paragraph("Caution:", rows$text[k])
  for (sentence in c(fit$left_out, steps_that_are_rough(fit))) report_paragraph(sentence)
  log <- as.data.frame(fit, what = "log")
  if (!nrow(log)) return(report_paragraph("No values were changed."))
  names(log)[names(log) == "genes"] <- paste0(column_word(fit$quality), "s")
  put_table(log, sprintf("Changes to the data, with the numbers of affected %ss and samples.",
                         column_word(fit$quality)), "changes", 100)
}

date_text <- function(fit) format(as.POSIXct(as.numeric(fit$date), origin = "1970-01-01"), "%e %B %Y, %H:%M")

# The methods of an analysis in sentences, for a manuscript.
methods_text <- function(fit) {
  q <- fit$quality
  steps <- workflow_steps[-1L][vapply(workflow_steps[-1L], function(step) !is.null(fit[[step]]), NA)]
  sentences <- c(vapply(steps, function(step) methods_sentence(step, fit[[step]]), ""),
                 sprintf("The step \"%s\" was done by a function of the user.", names(fit$foreign)))
  c(sprintf("Expression of %s in %d samples was analysed with weft %s (%s).", columns_text(q, q$input[2L]), q$input[1L],
            fit$version, R.version.string),
    q$log$what, sprintf("%s and %d samples were kept.", columns_text(q, ncol(q$x)), nrow(q$x)),
    sentences, sprintf("The random seed was %.0f.", fit$seed))
}

methods_sentence <- function(step, r) {
  whole <- thousands
  switch(step,
    components = sprintf("Principal components of the scaled values were computed with the method \"%s\".%s", r$method,
                         if (is.null(standing_out(r))) ""
                         else sprintf(paste(" %s significant in comparisons with permuted genes (Horn 1965) and with",
                                            "random signs (Hong, Sheng and Dobriban 2020)."),
                                      several_are(standing_out(r), "component"))),
    ranking = if (inherits(r, "weft_ranking")) ranking_methods(r) else {
      paste("Genes were ranked by their mutual information with the class. The p-values are exact or simulated for",
            "tables with the same margins, and were adjusted by the method of Benjamini and Hochberg.")
    },
    pairs = paste0(sprintf(paste("All %s pairs of genes were tested for interaction, which is the information that",
                                 "the two genes carry about the class together, minus the information that they carry",
                                 "separately."),
                           whole(attr(r, "searched"))),
                   if (!is.null(r$p_fwer)) paste(" Each pair was compared with the best pair in permutations of the",
                                                 "class labels, so the p-values are adjusted for all pairs.")),
    network = if (is_directed(r)) regulation_methods(r) else
              paste0(sprintf("The network was inferred from mutual information (%s) with %s",
                             attr(information_of(r), "estimator"), network_reference(attr(r, "method"))),
                     if (!is.na(attr(r, "cut") %||% NA)) {
                       sprintf(paste(". Edges were selected at a false discovery rate of %g. Among these, the edges",
                                     "with the largest weights were kept, up to the specified number or the number",
                                     "that ARACNE finds"), attr(r, "fdr"))
                     }, "."),
    clusters = if (is_consensus(r)) clusters_methods(r) else
              sprintf(paste("Samples and genes were clustered together with the infinite relational model (Kemp et",
                             "al. 2006) %s (%d chains of %d sweeps)."),
                       if (r$family == "gaussian") "for normal data, after scaling the genes to mean 0 and variance 1"
                       else "for binary data (above or below the median of the gene)", ncol(r$log_posterior),
                      nrow(r$log_posterior)),
    bayes = sprintf(paste("A Bayesian network of %d genes was learned by order MCMC (Friedman and Koller 2003) with",
                          "the %s score, at most %d parents, and %d chains of",
                          "%s steps.%s"), nrow(r$dag), score_cited(r$table$type),
                    max(r$table$max_parents), as.integer(r$run$ladders), whole(r$iterations),
                    if (!is.null(r$resample)) {
                      sprintf(paste(" The posterior probabilities are means over %d random subsamples of half of the",
                                    "samples."), as.integer(r$resample))
                    } else ""),
    outliers = sprintf(paste("Outliers were detected at a false discovery rate of %g. The test uses the kernel",
                             "density of the samples on %d components, and the distance of each sample from the",
                             "subspace that the components of the other samples span. The reference is a",
                             "multivariate t distribution with five degrees of freedom. Samples that are much",
                             "noisier than all others are also called outliers."),
                       attr(r, "fdr"), attr(r, "components"))
  )
}

ranking_methods <- function(r) {
  model <- attr(r, "model")
  paste0(sprintf("Each gene was tested in the linear model %s with moderated statistics (Smyth 2004).", model$formula),
         switch(model$weights, none = "",
                precision = paste(" Counts were scaled by trimmed means of M-values (Robinson and Oshlack 2010) and",
                                  "weighted by their precision (Law et al. 2014)."),
                group = " Samples were weighted by class."),
         " The q-values were computed with the method of Benjamini and Hochberg.")
}

score_cited <- function(type) {
  switch(type, bge = "BGe (Geiger and Heckerman 2002)", bdeu = "BDeu (Heckerman et al. 1995)", toupper(type))
}

network_reference <- function(method) {
  if (method %in% names(network_methods)) network_methods[[method]]$cite else method
}
