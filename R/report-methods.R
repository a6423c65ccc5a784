# The end of the report: a methods section as for a paper, with references; the settings; and the run.

methods_section <- function(fit, enriched = NULL) {
  text <- methods_text(fit)
  if (!is.null(enriched)) {
    text <- c(text,
              paste("Gene sets were tested for over-representation with hypergeometric tests. The tested genes were",
                    "the universe, and the p-values were adjusted by the method of Benjamini and Hochberg."),
              if (!is.null(enriched$ranks)) paste("Shifts of gene sets as a whole were tested with the moderated",
                                                  "statistics of their genes, accounting for the correlation between",
                                                  "genes (Wu and Smyth 2012)."))
  }
  report_paragraph(text)
  cat("\n\n### References\n\n")
  if (on_page()) raw_html("<div class=\"references\">")
  for (reference in report_references(fit, text)) report_paragraph(reference)
  if (on_page()) raw_html("</div>")
}

# Those that the text of methods names: each by a pattern of how it is cited there.
report_references <- function(fit, text = methods_text(fit)) {
  known <- c(
    "Benjamini and Hochberg" = paste("Benjamini Y, Hochberg Y (1995). Controlling the false discovery rate: a",
                                     "practical and powerful approach to multiple testing. Journal of the Royal",
                                     "Statistical Society B 57, 289-300."),
    "Friedman and Koller" = paste("Friedman N, Koller D (2003). Being Bayesian about network structure. Machine",
                                  "Learning 50, 95-125."),
    "Gavish and Donoho" = paste("Gavish M, Donoho DL (2014). The optimal hard threshold for singular values is",
                                "4/sqrt(3). IEEE Transactions on Information Theory 60, 5040-5053."),
    "Geiger and Heckerman" = paste("Geiger D, Heckerman D (2002). Parameter priors for directed acyclic graphical",
                                   "models and the characterization of several probability distributions. Annals of",
                                   "Statistics 30, 1412-1440."),
    "Haury et al." = paste("Haury A-C, Mordelet F, Vera-Licona P, Vert J-P (2012). TIGRESS: trustful inference of",
                               "gene regulation using stability selection. BMC Systems Biology 6, 145."),
    "Heckerman et al." = paste("Heckerman D, Geiger D, Chickering DM (1995). Learning Bayesian networks: the",
                                   "combination of knowledge and statistical data. Machine Learning 20, 197-243."),
    "Hong, Sheng and Dobriban" = paste("Hong D, Sheng Y, Dobriban E (2020). Selecting the number of components in PCA",
                                       "via random signflips. arXiv:2012.02985."),
    "Horn 1965" = paste("Horn JL (1965). A rationale and test for the number of factors in factor analysis.",
                        "Psychometrika 30, 179-185."),
    "Kemp et al." = paste("Kemp C, Tenenbaum JB, Griffiths TL, Yamada T, Ueda N (2006). Learning systems of",
                              "concepts with an infinite relational model. Proceedings of AAAI-06, 381-388."),
    "Smyth 2004" = paste("Smyth GK (2004). Linear models and empirical Bayes methods for assessing differential",
                         "expression in microarray experiments. Statistical Applications in Genetics and Molecular",
                         "Biology 3, 3."),
    "Law et al. 2014" = paste("Law CW, Chen Y, Shi W, Smyth GK (2014). voom: precision weights unlock linear model",
                                  "analysis tools for RNA-seq read counts. Genome Biology 15, R29."),
    "Robinson and Oshlack 2010" = paste("Robinson MD, Oshlack A (2010). A scaling normalization method for",
                                        "differential expression analysis of RNA-seq data. Genome Biology 11, R25."),
    "Wu and Smyth 2012" = paste("Wu D, Smyth GK (2012). Camera: a competitive gene set test accounting for inter-gene",
                                "correlation. Nucleic Acids Research 40, e133."),
    "Slawek and Arodz" = paste("Slawek J, Arodz T (2013). ENNET: inferring large gene regulatory networks from",
                               "expression data using gradient boosting. BMC Systems Biology 7, 106.")
  )
  cited <- vapply(names(known), function(key) any(grepl(key, text, fixed = TRUE)), NA)
  c(unname(known[cited]), sprintf("weft, version %s; %s.", fit$version, R.version.string))
}

# What every step was told, else the default.
settings_table <- function(fit) {
  functions <- step_functions()
  functions$network <- if (is_directed(fit$network)) gene_regulation else gene_mi_network
  steps <- intersect(names(functions), c("quality", names(fit)[!vapply(unclass(fit), is.null, NA)]))
  hidden <- c("x", "class", "batch", "assay", "backend", "threads", "progress", "seed", "memory", "network", "ranking",
              "data", "...", "covariates", "symbols", "descriptions", "components", "subject", "interventions", "time")
  rows <- lapply(steps, function(step) {
    usual <- formals(functions[[step]])
    usual <- usual[setdiff(names(usual), hidden)]
    first <- function(v) if (is.call(v) && identical(v[[1L]], quote(c))) v[[2L]] else v # of choices
    value <- vapply(usual, function(v) deparse_short(first(v)), "")
    given <- step_settings(fit, step)
    given <- given[setdiff(names(given), hidden)] # those that go through `...`, too
    value[names(given)] <- vapply(given, deparse_short, "")
    data.frame(step = step, setting = names(value), value = unname(value),
               `set by` = ifelse(names(value) %in% names(given), "the call", "default"), check.names = FALSE)
  })
  do.call(rbind, rows)
}

# The arguments of a step that the call of gene_network() gave; none where a function was in its place.
step_settings <- function(fit, step) {
  given <- fit$settings[[step]]
  if (is.list(given)) given
}

deparse_short <- function(v, most = 60L) {
  text <- paste(deparse(v, width.cutoff = 60L, nlines = 2L), collapse = " ")
  if (nchar(text) > most) paste0(substr(text, 1L, most - 3L), "...") else text
}

run_section <- function(fit) {
  steps <- fit$steps
  estimate <- fit$estimate$seconds[match(steps$step, fit$estimate$step)]
  put_table(data.frame(step = steps$step, seconds = steps$seconds,
                       estimated = if (length(estimate)) estimate else NA_real_,
                       `back end` = steps$backend, check.names = FALSE),
            "Run time in seconds and back end of each step.", "steps", 20)
  put_table(settings_table(fit), "Settings of each step.", "settings", 100)
  verbatim(call_lines(fit), "Call")
  verbatim(sitrep_lines(fit$sitrep), "Machine and back ends")
  verbatim(utils::capture.output(print(utils::sessionInfo())), "R session")
}
