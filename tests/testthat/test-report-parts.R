# The parts of the report: what they say against the data, and that every kind of result has a report.

skip_if_not_installed("rmarkdown")
skip_if_not(rmarkdown::pandoc_available("1.12.3"), "no pandoc")
skip_on_cran()

e <- weft_example("expression", n = 60, p = 40, seed = 4, missing = 0, spoilt = FALSE)
fit <- gene_network(e$x, e$class, batch = e$batch, seed = 2, run = weft_run(progress = FALSE),
                    steps = list(clusters = list(method = "irm", chains = 1, sweeps = 20),
                                 pairs = list(permutations = 9), bayes = list(genes = 6, iterations = 500)))

page_of <- function(fit, ...) {
  file <- withr::local_tempfile(fileext = ".html")
  suppressWarnings(weft_report(fit, file, ..., open = FALSE))
  lines <- readLines(file, warn = FALSE)
  structure(paste(lines, collapse = "\n"), size = file.size(file))
}

# The same before pandoc, where nothing is asked of the page as a whole.
knitted <- function(fit) {
  folder <- withr::local_tempdir()
  copy <- file.path(folder, "report.Rmd")
  file.copy(weft:::report_template(NULL), copy)
  written <- rmarkdown::render(copy, params = list(fit = fit, title = "t", author = "a", top = 5), run_pandoc = FALSE,
                               clean = FALSE, quiet = TRUE, envir = new.env(parent = globalenv()))
  paste(readLines(file.path(folder, basename(written)), warn = FALSE), collapse = "\n")
}

# What a part of the report writes onto a page.
on_a_page <- function(write) {
  withr::local_dir(withr::local_tempdir())
  old <- knitr::opts_knit$get("rmarkdown.pandoc.to")
  withr::defer(knitr::opts_knit$set(rmarkdown.pandoc.to = old))
  knitr::opts_knit$set(rmarkdown.pandoc.to = "html")
  paste(utils::capture.output(write), collapse = "\n")
}

# A failure names what is missing, not the whole page.
says <- function(page, words) expect_true(grepl(words, page, perl = TRUE), info = words)

test_that("a page is small, asks for nothing from outside, and is the same in the C locale", {
  page <- page_of(fit)
  expect_lt(attr(page, "size"), 3 * 2^20)
  expect_false(grepl("(src|href)=\"(https?:)?//", page, perl = TRUE))
  says(page, "aria-label=\"Network of [0-9]+ genes")
  images <- regmatches(page, gregexpr("<img [^>]*>", page, perl = TRUE))[[1L]]
  expect_true(all(grepl("alt=\"[^\"]{15,}\"", images)))
  named <- fit
  levels(named$quality$class) <- c("\u00fcber", "\u4e2d")
  text <- function(page) sub("(?s)id=\"run-information\".*", "",
                             gsub("data:image/png;base64,[^\"]*", "", page, perl = TRUE),
                              perl = TRUE) # but for the session
  there <- text(page_of(named))
  elsewhere <- withr::with_locale(c(LC_CTYPE = "C"), text(page_of(named)))
  expect_true(identical(there, elsewhere))
  written <- vapply(c("&#252;ber", "\u00fcber"), grepl, NA, there, fixed = TRUE, useBytes = TRUE)
  expect_true(any(written)) # by bytes, as this session may be in the C locale itself
})

test_that("the table of genes has the whole ranking, whose fold changes are those of a linear model", {
  shown <- weft:::gene_results(fit)
  r <- fit$ranking
  expect_identical(shown$gene, r$gene)
  for (column in list(c("log2 fold change", "log2_fold_change"), c("CI lower", "lower"), c("CI upper", "upper"),
                      c("t", "t"), c("p", "p_value"), c("q", "q_value"), c("AUC", "auc"), c("bits", "bits"))) {
    expect_identical(shown[[column[1L]]], r[[column[2L]]], info = column[1L])
  }
  expect_identical(shown$`higher in`, ifelse(r$log2_fold_change > 0, "case", "control"))
  x <- (fit$quality$measured %||% fit$quality$x)[, r$gene[1L]]
  by_r <- stats::coef(stats::lm(x ~ fit$quality$batch + fit$quality$class))[["fit$quality$classcase"]]
  expect_equal(shown$`log2 fold change`[1L], by_r, tolerance = 0.02) # robust to odd genes, not to odd values
  all <- as.data.frame(fit, "genes")
  expect_true(all(setdiff(names(r), "gene") %in% names(all)))
  expect_identical(all$log2_fold_change[match(r$gene, all$gene)], r$log2_fold_change)
  means <- rowsum(fit$quality$x, as.character(fit$quality$class)) / as.vector(table(as.character(fit$quality$class)))
  expect_equal(all$mean_case[match(colnames(means), all$gene)], unname(means["case", ]))
})

test_that("a page holds the whole table of genes, and links of symbols alone", {
  withr::local_dir(withr::local_tempdir())
  all <- as.data.frame(fit, "genes")
  written <- on_a_page(weft:::put_download(all, "All", "all-genes"))
  expect_match(written, "<a download=\"all-genes.csv\" href=\"data:text/csv;charset=utf-8;base64,", fixed = TRUE)
  back <- utils::read.csv(text = weft:::whole_csv(all), check.names = FALSE)
  expect_identical(dim(back), dim(all))
  expect_identical(names(back), names(all))
  expect_equal(back$p_value, all$p_value, tolerance = 1e-6)
  expect_identical(weft:::whole_csv(data.frame(a = "=1+1", b = NA_real_)), c("\"a\",\"b\"", "\"'=1+1\","))
  linked <- weft:::linked_genes(c("TP53", "&lt;b&gt;", "x"), c("TP53", "<b>", NA))
  expect_match(linked[1L], "href=\"https://www.genecards.org/cgi-bin/carddisp.pl\\?gene=TP53\"[^>]*>TP53</a>")
  expect_match(linked[1L], "https://www.ensembl.org/Multi/Search/Results\\?q=TP53")
  expect_identical(linked[2:3], c("&lt;b&gt;", "x"))
  expect_null(weft:::gene_links(fit)) # TF01 is no symbol
})

test_that("a sample's reason is where it lies farthest out", {
  o <- as.data.frame(fit$outliers)
  k <- attr(fit$outliers, "components")
  reasons <- weft:::outlier_reasons(fit, o)
  scores <- fit$components$x[o$sample, seq_len(k), drop = FALSE]
  z <- apply(scores, 2, function(v) (v - median(v)) / mad(v))
  off <- (o$distance - median(o$distance)) / mad(o$distance)
  best <- max.col(abs(z), "first")
  times <- sprintf("residual distance %.1f times the median, %.1f SD above it",
                   o$distance / median(o$distance), off)
  expected <- ifelse(off > apply(abs(z), 1, max), times,
                     sprintf("%.1f SD %s the median on PC%d", abs(z[cbind(seq_along(best), best)]),
                             ifelse(z[cbind(seq_along(best), best)] > 0, "above", "below"), best))
  expect_identical(reasons, unname(expected))
})

test_that("shares of components that variables explain are those of an analysis of variance", {
  scores <- fit$components$x[, 1:3]
  found <- weft:::variable_shares(scores, list(class = fit$quality$class), 10)
  by_r <- summary(lm(scores[, 2] ~ fit$quality$class))
  expect_identical(sub(" \\(.*", "", found$PC2),
                   if (by_r$r.squared < 0.001) "< 0.1 %" else weft:::share_text(by_r$r.squared))
  expect_equal(weft:::share_explained(scores[, 2], fit$quality$class)[["share"]], by_r$r.squared)
  of_batch <- function(scores) apply(scores, 2L, weft:::share_explained, fit$quality$batch)["share", ]
  before <- fit$quality$before
  expect_identical(dim(before), c(60L, 5L))
  expect_gt(max(of_batch(before)), 0.1)
  expect_lt(max(of_batch(scores)), 0.01)
})

test_that("a class is tested on components with batches in the model", {
  n <- 40
  batch <- factor(rep(1:2, each = 20))
  class <- factor(rep(c("a", "b", "a", "b"), c(16, 4, 4, 16))) # four in five agree
  p_of <- function(key, ...) {
    score <- weft:::draws("normal", n, key = key) + 3 * (batch == 2)
    weft:::share_explained(score, class, ...)[["p"]]
  }
  p <- vapply(1:400, p_of, 0, list(batch))
  expect_gt(stats::ks.test(p, "punif")$p.value, 0.001)
  expect_gt(mean(vapply(1:20, p_of, 0) < 0.05), 0.9) # the batch passes for the class
  score <- weft:::draws("normal", n, key = 5) + 3 * (batch == 2)
  by_r <- stats::anova(stats::lm(score ~ batch), stats::lm(score ~ batch + class))
  found <- weft:::share_explained(score, class, list(batch))
  expect_equal(found[["p"]], by_r[["Pr(>F)"]][2L])
  expect_equal(found[["share"]], by_r[["Sum of Sq"]][2L] / sum((score - mean(score))^2))
  expect_identical(weft:::share_explained(score, batch, list(batch)), c(share = 0, p = 1)) # it follows from the others
  table <- weft:::variable_shares(cbind(score), list(class = class, batch = batch), 1)
  expect_identical(table$variable, c("class", "batch"))
  expect_match(table$PC1[1L], weft:::probability_text(found[["p"]]), fixed = TRUE)
})

test_that("of many edges those with the 100 largest weights are drawn, and the caption gives both numbers", {
  chain <- data.frame(from = sprintf("g%03d", 1:300), to = sprintf("g%03d", 2:301), weight = 300:1, sign = 1, q = 0.01,
                      direction = 0.9)
  chain <- chain[-50, ]
  drawn <- weft:::drawn_edges(chain)
  expect_identical(drawn$from, chain$from[1:100])
  expect_identical(weft:::network_caption(chain, drawn),
                   "The network with the 100 largest weights among 299 edges, and their 102 genes.")
  few <- weft:::drawn_edges(chain[1:150, ])
  expect_identical(weft:::network_caption(chain[1:150, ], few),
                   "The network with all 150 edges and their 152 genes in 2 connected parts.")
})

test_that("one hub leaves room for other genes", {
  star <- data.frame(from = "hub", to = sprintf("t%03d", 1:120), weight = 300:181, sign = 1, q = 0.01, direction = 0.9)
  other <- data.frame(from = sprintf("a%02d", 1:60), to = sprintf("b%02d", 1:60), weight = 60:1, sign = 1, q = 0.01,
                      direction = 0.9)
  edges <- rbind(star, other)
  drawn <- weft:::drawn_edges(edges)
  expect_identical(drawn$to, c(star$to[1:12], other$to)) # 12 of the hub, all others
  expect_identical(weft:::network_caption(edges, drawn),
                   paste("The network with the 72 largest weights among 180 edges, and their 133 genes. At most 12",
                         "edges of each gene are shown (hub has 120)."))
  expect_identical(nrow(weft:::drawn_edges(star[1:30, ])), 30L) # few enough to be followed
  expect_identical(nrow(weft:::drawn_edges(star[1:31, ])), 12L)
})

test_that("control probes are named, in the data and in the network", {
  own <- c("AFFX-BioB-5_at", "AFFX_HUMGAPDH", "ERCC-00002", "ERCC1", "1007_s_at", "AFFXA")
  expect_identical(weft:::is_control(own), c(TRUE, TRUE, TRUE, FALSE, FALSE, FALSE))
  q <- list(x = matrix(0, 2, 6, dimnames = list(NULL, own)))
  expect_match(weft:::controls_text(q), "^The names of 3 columns show that they are control probes \\(AFFX-BioB")
  q$x <- q$x[, c(1, 5)]
  expect_match(weft:::controls_text(q), "^The name of 1 column shows that it is a control probe")
  expect_null(weft:::controls_text(list(x = q$x[, 2, drop = FALSE])))
  edges <- data.frame(from = own[1:3], to = own[4:6])
  expect_match(weft:::controls_joined(edges), "^3 edges involve control probes")
  expect_match(weft:::controls_joined(edges[1L, ]), "^1 edge involves control probes. It shows")
  expect_null(weft:::controls_joined(edges[0L, ]))
})

test_that("of genes that differ between groups of samples the network's text warns", {
  set.seed(1)
  z <- rep(1:2, each = 30)
  x <- matrix(rnorm(60 * 30), 60) + outer(z == 2, c(rep(4, 10), rep(-4, 10), rep(0, 10)))
  grouped <- suppressWarnings(gene_network(x, seed = 1, run = weft_run(progress = FALSE),
                                           steps = list(bayes = FALSE, outliers = FALSE)))
  expect_identical(max(grouped$clusters$cluster), 2L)
  expect_match(weft:::groups_joined(grouped), "^The samples form 2 groups \\(see below\\)")
  expect_match(weft:::network_words(grouped, weft:::report_edges(grouped$network)), "Genes that differ between groups")
  expect_match(weft:::finding_groups(grouped)$text, "^The samples form 2 groups of 30 and 30 samples")
  grouped$clusters$cluster[] <- 1L
  expect_null(weft:::groups_joined(grouped))
  # what is highest and lowest in a group, by the means
  grouped$clusters$cluster[] <- z
  table <- weft:::group_table(grouped)
  scaled <- scale(grouped$quality$x)
  apart <- colMeans(scaled[z == 1, ]) - colMeans(scaled[z == 2, ])
  named <- function(i) paste(sprintf("%s (%+.1f)", names(apart)[i], apart[i]), collapse = ", ")
  expect_identical(table$high[1L], named(order(-apart)[1:5]))
  expect_identical(table$low[1L], named(order(apart)[1:5]))
})

test_that("a p-value at the limit, or the least that there can be, is said to be so", {
  expect_identical(weft:::judged_text(0.05), "0.050, just at the threshold")
  expect_identical(weft:::judged_text(0.03), "0.030")
  expect_identical(weft:::judged_text(0.0504), "0.050") # beyond it
  expect_identical(weft:::judged_text(0.05, 19), "0.050, the smallest possible value with 19 permutations")
  expect_identical(weft:::judged_text(0.05, 99), "0.050, just at the threshold")
  expect_identical(weft:::judged_text(0.01, 99), "0.010, the smallest possible value with 99 permutations")
})

test_that("edges of information have the sign of the rank correlation, and no arrows", {
  net <- gene_mi_network(fit$quality, method = "clr", estimator = "spearman")
  edges <- weft:::report_edges(net, list(quality = fit$quality))
  rho <- stats::cor(fit$quality$x, method = "spearman")[cbind(edges$from, edges$to)]
  expect_identical(edges$sign, sign(rho) * (abs(rho) >= 0.2))
  svg <- weft:::network_svg(weft:::drawn_edges(edges, 200), "caption")
  expect_false(any(grepl("marker-end", svg)))
  expect_true(any(grepl("class=\"edge down\"", svg)))
})

test_that("names in the drawing cover neither each other nor points", {
  drawn <- weft:::drawn_edges(weft:::report_edges(fit$network), 200)
  names <- unique(c(drawn$from, drawn$to))
  at <- cbind(match(drawn$from, names), match(drawn$to, names))
  place <- weft:::svg_places(weft:::drawn_adjacency(at, drawn$weight, length(names)), 1000)
  radius <- rep(5, length(names))
  put <- weft:::svg_labels(place, at, names, tabulate(at), radius, c(1000, attr(place, "height")))
  wide <- 0.6 * 11 * nchar(names)
  left <- place[, 1] + put$x - ifelse(put$anchor == "start", 0, ifelse(put$anchor == "end", wide, wide / 2))
  low <- place[, 2] + put$y - 9
  free <- which(put$free)
  expect_gt(length(free), length(names) / 2)
  for (i in free) {
    others <- setdiff(free, i)
    meets <- left[i] < left[others] + wide[others] & left[i] + wide[i] > left[others] &
      low[i] < low[others] + 10 & low[i] + 10 > low[others]
    expect_false(any(meets))
    points <- left[i] < place[-i, 1] + 4 & left[i] + wide[i] > place[-i, 1] - 4 &
      low[i] < place[-i, 2] + 4 & low[i] + 10 > place[-i, 2] - 4
    expect_false(any(points))
  }
})

test_that("edges of the Bayesian network have both directions' posterior together", {
  edges <- weft:::bayes_edges(fit$bayes)
  p <- fit$bayes$edges
  forth <- p[cbind(edges$from, edges$to)]
  back <- p[cbind(edges$to, edges$from)]
  expect_equal(edges$edge, forth + back)
  expect_equal(edges$direction, forth / (forth + back))
  expect_true(all(forth >= back) && all(edges$edge >= 0.1))
})

test_that("settings are the call's, else the defaults, and nothing of the call is run", {
  set <- weft:::settings_table(fit)
  of <- function(step, setting) set[set$step == step & set$setting == setting, ]
  expect_identical(of("clusters", "sweeps")$value, "20")
  expect_identical(of("clusters", "sweeps")$`set by`, "the call")
  expect_identical(of("clusters", "genes")$`set by`, "default")
  evil <- fit
  evil$settings$bayes$genes <- quote(stop("run"))
  expect_identical(weft:::settings_table(evil)$value[weft:::settings_table(evil)$setting == "genes" &
                                                       weft:::settings_table(evil)$step == "bayes"], "stop(\"run\")")
})

test_that("results without class, with three classes, of levels, and with steps left out have a report", {
  quick <- function(x, ..., network = list()) {
    suppressWarnings(call_with(gene_network, list(x, ..., seed = 1, run = weft_run(progress = FALSE), steps = list(
      pairs = FALSE, network = network, bayes = list(genes = 5, iterations = 300),
      clusters = list(method = "irm", chains = 1, sweeps = 10)))))
  }
  says(knitted(quick(e$x)), "Groups of samples and genes")
  three <- quick(e$x, rep(c("a", "b", "c"), 20))
  says(knitted(three), "differs most")
  snps <- weft_example("snps", n = 80, p = 30)
  levels <- quick(snps$x, snps$class)
  says(knitted(levels), "Bayesian network")
  says(knitted(quick(e$x, network = list(method = "clr"))), "Edges have no direction")
  says(knitted(gene_network(e$x, seed = 1, run = weft_run(progress = FALSE),
                            steps = list(network = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE,
                                         components = FALSE))), "Samples")
  nothing <- matrix(weft:::draws("normal", 30 * 12, key = 9), 30, dimnames = list(NULL, letters[1:12]))
  found_nothing <- quick(nothing, rep(1:2, 15))
  page <- knitted(found_nothing)
  says(page, "No pair among 12 genes is significantly co")
  says(page, "No component is significant")
  says(page, "on the first 2 components, of which none is significant")
  expect_false(grepl("Most edges", page, fixed = TRUE))
  text <- gsub(" +", " ", paste(utils::capture.output(print(found_nothing)), collapse = " "))
  says(text, "of the variance; no component is significant; the classes do not differ significantly")
  says(text, "0 co-expressed pairs among 12 genes at a false discovery rate of 0.05, none with a clear direction")
})

test_that("sets of genes get a section of their own", {
  genes <- colnames(fit$quality$x)
  page <- page_of(fit, sets = list("first <b>" = head(fit$ranking$gene, 8), second = tail(genes, 8)))
  says(page, "Gene sets")
  says(page, "first &#60;b&#62;|first &lt;b&gt;")
})

test_that("a PDF is written where a browser or LaTeX is", {
  skip_if(inherits(try(weft:::pdf_maker(), silent = TRUE), "try-error"), "neither Chromium nor LaTeX")
  skip_if(nzchar(Sys.getenv("LD_PRELOAD")), "a sanitizer that is loaded first stops the browser")
  file <- withr::local_tempfile(fileext = ".pdf")
  made <- tryCatch(suppressWarnings(weft_report(fit, file, open = FALSE)), weft_error_input = conditionMessage)
  if (grepl("a complete LaTeX", made, fixed = TRUE)) skip("LaTeX lacks a file")
  expect_identical(made, normalizePath(file))
  expect_identical(readChar(file, 4L), "%PDF")
  withr::local_envvar(WEFT_CHROME = "/no/such/browser")
  expect_error(weft_report(fit, file, open = FALSE), "`WEFT_CHROME` must be", class = "weft_error_input")
  withr::local_envvar(WEFT_CHROME = "no", PATH = dirname(rmarkdown::pandoc_exec()))
  skip_if(nzchar(Sys.which("xelatex")) || nzchar(Sys.which("pdflatex")), "LaTeX is where pandoc is")
  expect_error(weft_report(fit, file, open = FALSE), "needs Chromium, Chrome or LaTeX", class = "weft_error_input")
})

test_that("what LaTeX lacks is named", {
  log <- withr::local_tempfile(lines = c("(report.tex", "! LaTeX Error: File `xcolor.sty' not found.", "", "l.9 ^^M"))
  expect_error(weft:::latex_lacks(log), "xcolor.sty.*texlive-latex-recommended", class = "weft_error_input")
  writeLines("! Undefined control sequence.", log)
  expect_silent(weft:::latex_lacks(log))
  expect_silent(weft:::latex_lacks(paste0(log, "-not-there")))
})

test_that("the Quarto template has the sections of the other one", {
  read <- function(...) readLines(system.file(..., package = "weft", mustWork = TRUE))
  sections <- function(lines) grep("^## |section\\(", lines, value = TRUE)
  expect_identical(sections(read("quarto", "gene-network.qmd")),
                   sections(read("rmarkdown", "templates", "gene_network", "skeleton", "skeleton.Rmd")))
})

test_that("groups and networks on which chains disagree are no findings, and say so first", {
  withr::local_dir(withr::local_tempdir()) # where figures are written
  groups <- fit
  for (rhat in c(4.1, 1)) {
    groups$clusters$rhat[] <- rhat
    found <- weft:::findings_of(groups, most = 9L)
    text <- paste(c(utils::capture.output(weft:::groups_section(groups, 5)), weft:::clusters_text(groups$clusters)),
                  collapse = " ")
    expect_identical("clusters" %in% found$section, rhat < 2)
    expect_identical(names(attr(found, "open")), if (rhat > 2) "clusters" else character())
    expect_identical(grepl("has not converged", text, fixed = TRUE), rhat > 2)
    expect_identical(grepl("Do not interpret the number of groups", text, fixed = TRUE), rhat > 2)
    expect_identical(grepl("mutual information", text, fixed = TRUE), rhat < 2) # no p-value of what is not there
    printed <- gsub(" +", " ", paste(utils::capture.output(print(groups)), collapse = " "))
    expect_identical(grepl("of groups and classes", printed, fixed = TRUE), rhat < 2)
    page <- on_a_page(weft:::groups_section(groups, 5))
    expect_identical(grepl("<details>\n<summary>Tables of the groups that have not", page, fixed = TRUE), rhat > 2)
  }
  bayes <- fit
  bayes$bayes$edges[2L, 1L] <- 0.95
  bayes$bayes$dag[] <- 0L
  bayes$bayes$dag[2L, 1L] <- 1L
  for (rhat in c(1.3, 1)) {
    bayes$bayes$diagnostics$r_hat <- rhat
    found <- weft:::findings_of(bayes, most = 9L)
    expect_identical("bayes" %in% found$section, rhat == 1)
    expect_identical("bayes" %in% names(attr(found, "open")), rhat != 1)
    text <- paste(utils::capture.output(weft:::bayes_section(bayes, 5)), collapse = " ")
    expect_identical(grepl("chains of the Bayesian network disagree", text, fixed = TRUE), rhat != 1)
    expect_identical(grepl("The most probable edge", text, fixed = TRUE), rhat == 1)
  }
})

test_that("the surest edges come first, whichever way they point", {
  bayes <- fit
  bayes$bayes$diagnostics$r_hat <- 1
  bayes$bayes$edges[] <- 0
  bayes$bayes$edges[2L, 1L] <- 0.95
  bayes$bayes$edges[3L, 4L] <- 0.6
  bayes$bayes$edges[4L, 3L] <- 0.399
  names <- rownames(bayes$bayes$dag)
  told <- sprintf("%s with %s (0.999, direction unclear) and %s -> %s (0.95)", names[3L], names[4L], names[2L],
                  names[1L])
  found <- weft:::findings_of(bayes, most = 9L)
  expect_match(found$text[found$section == "bayes"], told, fixed = TRUE)
  expect_match(found$text[found$section == "bayes"], "2 edges have a posterior probability of at least 0.9: ")
  printed <- gsub("\\s+", " ", paste(utils::capture.output(print(bayes)), collapse = " "))
  expect_match(printed, paste("Most probable:", told), fixed = TRUE)
  expect_identical(weft:::surety_number(c(0.9999, 0.999, 0.98)), c("over 0.999", "0.999", "0.98"))
})

test_that("a sample that catches the eye is said to be chance, and by how much", {
  chance <- weft:::strangest_chance(c(0.0089, 1, 0), 38)
  expect_equal(chance, c(1 - (1 - 0.0089)^38, 1, 0))
  odd <- fit
  o <- odd$outliers
  for (apart in c(FALSE, TRUE)) {
    o$outlier[] <- FALSE
    o$outlier[1L] <- apart
    odd$outliers <- o
    mark <- weft:::strangest_mark(odd)
    expect_identical(mark$sample, o$sample[1L])
    expect_match(mark$caption, if (apart) "which is an outlier" else "which is not an outlier", fixed = TRUE)
    text <- weft:::strangest_text(odd, as.data.frame(o))
    expect_identical(grepl("By chance, .* of data sets of 60 samples contain a sample that", text), !apart)
  }
})

test_that("columns are genes, or probes where several measure one", {
  expect_identical(weft:::columns_text(fit$quality, 1234), "1,234 genes")
  probes <- fit
  symbols <- probes$quality$genes$gene
  best <- match(fit$ranking$gene[1:2], symbols)
  symbols[best[2L]] <- symbols[best[1L]] # the two best measure one gene
  probes$quality <- weft:::group_symbols(probes$quality, symbols)
  expect_identical(weft:::columns_text(probes$quality, 1), "1 probe")
  found <- weft:::findings_of(probes, most = 9L)
  sure <- sum(fit$ranking$q_value <= 0.05)
  expect_match(found$text[found$section == "ranking"],
               sprintf("^%d of 40 probes \\(%d genes\\) are", sure, sure - 1L))
  shown <- weft:::with_labels(probes)
  expect_match(weft:::genes_caption(shown), "^Probes, ordered by p-value.* Several probes may measure the same gene")
  expect_true("probe" %in% names(weft:::gene_results(shown)))
  expect_match(weft:::quality_text(probes$quality), "The 40 probes measure 39 genes", fixed = TRUE)
  expect_match(utils::capture.output(print(probes)), "Gene network of 40 probes", all = FALSE, fixed = TRUE)
})

test_that("phones get a drawing of their own where the wide one could not be read", {
  withr::local_dir(withr::local_tempdir())
  asked <- NULL
  draw <- function() {
    asked <<- c(asked, weft:::on_phone())
    graphics::plot(1)
  }
  page <- on_a_page(weft:::put_figure(draw, "what it shows", narrow = c(weft:::phone_width, 3)))
  expect_identical(asked, c(FALSE, TRUE))
  expect_match(page, "<picture><source media=\"(max-width: 640px)\" srcset=\"data:image/png;base64,", fixed = TRUE)
  expect_match(page, "\"><img alt=\"what it shows\"", fixed = TRUE)
  expect_false(grepl("<source", on_a_page(weft:::put_figure(draw, "what it shows"))))
  expect_match(weft:::html_table(data.frame(probe = "HG3597-HT3800_at"), "c", "n", 5), "HT3800_<wbr>at",
               fixed = TRUE, all = FALSE)
  expect_match(weft:::html_table(data.frame(probe = "M5_at"), "c", "n", 5), ">M5_at<", fixed = TRUE, all = FALSE)
  # one number of decimals for a column
  shown <- weft:::table_text(data.frame(a = c(1.1, 0.00301, NA), b = c(1, 0.897, 0.5), c = c(1e9, 1, 0.5)))
  expect_identical(shown, data.frame(a = c("1.10", "0.00", ""), b = c("1.000", "0.897", "0.500"),
                                     c = c("1e+09", "1", "0.5")))
  # an arrow stays with what it points to
  expect_match(weft:::running_text("A -> B"), "A &#8594;&#160;B", fixed = TRUE)
})

test_that("small parts of a network are drawn once more for phones, each drawing with its own arrowheads", {
  few <- data.frame(from = letters[1:4], to = letters[5:8], weight = 4:1, sign = 1, q = 0.01, direction = 0.95,
                    directed = TRUE)
  both <- weft:::network_figures(weft:::drawn_edges(few, 200), "caption")
  expect_identical(sum(grepl("<svg", both)), 2L)
  expect_match(both, "id=\"arrowslim-up\"", all = FALSE)
  expect_identical(sum(grepl("#arrowslim-up", both)), 4L)
  chain <- data.frame(from = letters[1:20], to = letters[2:21], weight = 20:1, sign = 1, q = 0.01, direction = 0.95,
                      directed = TRUE)
  expect_identical(sum(grepl("<svg", weft:::network_figures(weft:::drawn_edges(chain, 200), "caption"))), 1L)
})

test_that("what an edge's weight is stands where edges are first met", {
  expect_match(weft:::network_words(fit, weft:::report_edges(fit$network)), "The weight of an edge, from 0 to 1")
  expect_match(weft:::edges_how(fit$network), "The weight, from 0 to 1, measures how early and how often")
  other <- fit
  for (method in names(weft:::network_methods)) {
    other$network <- gene_mi_network(fit$quality, method = method, estimator = "spearman", fdr = 1)
    expect_match(weft:::network_words(other, weft:::report_edges(other$network)), "The weight of an edge (is|says)")
  }
})

test_that("arrowheads are filled where the direction is clear, as the text counts them", {
  edges <- data.frame(from = c("a", "b", "c", "d"), to = c("b", "a", "d", "e"), weight = 4:1, sign = c(1, 1, -1, 0),
                      q = 0.01, direction = c(0.6, 0.4, 0.95, 0.85), directed = TRUE)
  svg <- weft:::network_svg(weft:::drawn_edges(edges, 200), "caption")
  heads <- regmatches(svg, regexpr("url\\(#(arrow|open)-[a-z]+", svg))
  expect_identical(heads, sprintf("url(#%s", c("open-up", "open-up", "arrow-down", "open-plain")))
  for (head in c("arrow-up", "open-up", "open-plain")) expect_match(svg, sprintf("id=\"%s\"", head), all = FALSE)
})

test_that("samples of the distance map have names that stand apart", {
  at <- weft:::apart_by(c(1, 2, 3, 40, 99, 100), 5, 100)
  expect_true(all(diff(at) >= 5) && max(at) <= 100 && min(at) >= 0)
  expect_identical(weft:::apart_by(c(10, 30), 5, 100), c(10, 30))
})

test_that("pairs are counted with the genes that they are of", {
  expect_identical(weft:::pairs_searched(list(pairs = structure(1, searched = 4186171))),
                   "4,186,171 pairs of 2,894 genes")
  expect_identical(weft:::pairs_searched(list(pairs = structure(1, searched = 1000))), "1,000 pairs of genes")
})

test_that("components are called significant only if they are", {
  said <- function(leading, ...) {
    pc <- list(leading = leading, x = matrix(0, 3, 10), ...)
    c(weft:::standing_out(pc) %||% -1, weft:::loadings_of(pc))
  }
  expect_identical(said(8L, choice = list(k = 8L)),
                   c("8", "the first 5 of 8 significant components (all loadings are in fit$components$rotation)"))
  expect_identical(said(3L, choice = list(k = 3L)), c("3", "the significant components"))
  expect_identical(said(2L, choice = list(k = 1L)), c("1", "the first 2 components, of which one is significant"))
  expect_identical(said(2L, choice = list(k = 0L)), c("0", "the first 2 components, of which none is significant"))
  expect_identical(said(1L), c("-1", "the first component"))
  expect_identical(said(NULL), c("-1", "the first 2 components"))
  named <- gene_components(fit$quality, k = 4, leading = 3, seed = 1)
  other <- fit
  other$components <- named
  expect_identical(named$leading, 3L)
  expect_null(weft:::standing_out(named))
  text <- paste(c(utils::capture.output(print(other)), weft:::components_text(other)), collapse = " ")
  expect_false(grepl("stands? out", text))
  other$components <- pca(as.matrix(fit$quality), 3, scale = TRUE, seed = 1) # a step that another function made
  expect_output(print(other), "PC1 to PC3 explain")
  expect_match(weft:::components_text(other), "^The classes differ most on PC")
})

test_that("what classes explain of components is what an analysis of variance says", {
  class <- factor(rep(c("a", "b", "c"), c(9, 6, 5)))
  scores <- withr::with_seed(1, cbind(rnorm(20), rnorm(20) + 2 * (class == "b"), 1, rnorm(20)))
  expected <- vapply(c(1, 2, 4), function(k) stats::anova(stats::lm(scores[, k] ~ class))[["Pr(>F)"]][1L], 0)
  expect_equal(apply(scores, 2L, weft:::share_explained, class)["p", c(1, 2, 4)], expected)
  found <- weft:::classes_on_components(scores, list(class = class, kind = "expression"))
  expect_identical(found$best, 2L)
  expect_equal(found$share, summary(stats::lm(scores[, 2] ~ class))$r.squared)
  expect_equal(found$p, 4 * expected[2L])
  expect_identical(weft:::share_explained(rep(1, 20), class), c(share = 0, p = 1))
  expect_lt(weft:::share_explained(as.numeric(class), class)[["p"]], 1e-100)
})

test_that("edges that are only possible, or on which chains disagree, are said to be so", {
  unsure <- fit$bayes
  unsure$edges[] <- 0
  unsure$edges[1L, 2L] <- unsure$edges[2L, 1L] <- 0.3
  unsure$dag[] <- 0L
  unsure$dag[1L, 2L] <- 1L
  expect_match(weft:::bayes_text(unsure, 3), "^1 edge among 6 genes, none with a probability of 0.9 or more. Most prob")
  unsure$edges[1L, 2L] <- 0.7
  expect_match(weft:::bayes_text(unsure, 3), "^1 edge among 6 genes. Most prob.* \\(over 0.999, direction unclear\\)$")
  unsure$diagnostics$r_hat <- 1.5
  expect_match(weft:::bayes_text(unsure, 3), "^The chains disagree \\(R-hat 1.50, .*iterations = 5000\\)\\)\\. So far")
})

test_that("directions are counted by pairs, and held against the simulations at the data's size, worst first", {
  edges <- data.frame(from = c("a", "b", "c", "d"), to = c("b", "a", "d", "e"), direction = c(0.6, 0.4, 0.95, 0.85))
  expect_identical(weft:::network_pairs(edges)$direction, c(0.6, 0.95, 0.85))
  said <- weft:::network_directions(edges, 60)
  expect_match(said, "^Both directions were tested for 3 pairs. One pair has a clear direction")
  table <- utils::read.csv(system.file("bench", "direction-models.csv", package = "weft"))
  at <- table[table$samples == 50 & table$directed >= 20, ]
  expect_match(said, sprintf("with 50 samples, %.0f %% of clear directions were correct in the worst",
                             100 * min(at$right)), fixed = TRUE)
  expect_match(said, sprintf("and %.0f %% in the best setting (kinetic rates, all genes measured)",
                             100 * max(at$right)), fixed = TRUE)
  expect_match(weft:::network_directions(edges[1:2, ]), "^Both directions were tested for 1 pair. None has a clear")
  given <- transform(edges, direction = c(NA, NA, 0.95, NA))
  expect_match(weft:::network_directions(given), "For 2 pairs, only one direction was tested")
  few <- weft:::network_directions(edges, 200) # with 200 samples the simulations have fewer than 100 directions
  expect_match(few, "with 100 samples, 85 % of clear directions were correct", fixed = TRUE)
  calm <- table[table$samples == 50 & table$seen == 1 & table$model != "threshold", ]
  expect_match(weft:::outside_text(60), sprintf("up to %.1f %% of such pairs had no direct edge, and up to %.1f %% had",
                                                100 * max(calm$not_direct), 100 * max(calm$outside)), fixed = TRUE)
  expect_lte(max(table$outside[table$seen == 1 & table$model != "threshold"]), 0.055)
  expect_identical(weft:::table_size(table, 5), 30L)
  expect_identical(weft:::table_size(table, 1e6), max(table$samples))
})

test_that("hubs that follow a component are named", {
  pc <- fit$components$x[, 1L]
  other <- fit
  other$quality$x[, 1L] <- pc / stats::sd(pc)
  names <- colnames(other$quality$x)
  edges <- data.frame(from = names[1L], to = names[2:8])
  found <- weft:::hubs_on_components(other, edges)
  expect_identical(found$gene, names[1L])
  expect_identical(found$component, 1L)
  expect_equal(found$correlation, 1)
  expect_identical(weft:::hubs_text(found), sprintf("the hub %s is correlated with PC1", names[1L]))
  expect_identical(nrow(weft:::hubs_on_components(other, edges[1:3, ])), 0L) # not a hub
})

test_that("the p-values of pairs say what they rest on", {
  pairs <- structure(data.frame(p_fwer = c(0.05, 1)), permutations = 19)
  said <- "The best pair had at least as much interaction in %s of 19 permutations of the classes."
  expect_identical(weft:::whole_search(pairs),
                   paste("The best pair had less interaction in each of 19 permutations of the classes, so this is the",
                         "smallest possible p-value."))
  pairs$p_fwer <- c(0.25, 1)
  expect_identical(weft:::whole_search(pairs), sprintf(said, "4"))
})

test_that("nothing is strong but tests of differences, and not these where something confounds them", {
  expect_identical(weft:::allowed_strength(rep("strong", 4), c("ranking", "network", "clusters", "components"), FALSE),
                   c("strong", "suggestive", "suggestive", "strong"))
  expect_identical(weft:::allowed_strength(c("strong", "could be chance"), c("ranking", "pairs"), TRUE),
                   c("suggestive", "could be chance"))
  confounded <- fit
  confounded$quality$confounding <- data.frame(kind = "batch", text = "Class and batch agree (p 0.01): 9 of 10.",
                                               p = 0.01)
  found <- weft:::findings_of(confounded, most = 9L)
  expect_false("strong" %in% found$strength)
  expect_match(attr(found, "caution"), "^Class and batch agree \\(p 0.01\\). Differences between the classes may be")
  expect_match(weft:::findings_page(confounded), "Caution", all = FALSE)
})

test_that("the first screen has at most 150 words, however much was found", {
  lines <- c("- [strong]{.strength .strong} 3&#44;051 genes [Evidence](#ranking)", "", "**A** b.")
  expect_identical(weft:::count_words(lines), 6L)
  expect_lte(weft:::count_words(weft:::findings_page(fit)), 150)
  few <- weft:::findings_page(fit, most_words = 60L)
  expect_lte(weft:::count_words(few), 60)
  expect_gte(length(few), 1L)
})

test_that("probabilities are written down to 1e-300", {
  expect_identical(weft:::probability_text(c(0.5, 0.012, 4.21e-16, 0, NA)),
                   c("0.50", "0.012", "4.2e-16", "< 1e-300", ""))
  expect_identical(weft:::probability_text(0, -450), "< 1e-300")
})

test_that("sets that shift as a whole are found, and correlated genes do not make a set shift", {
  withr::local_seed(4)
  z <- stats::rnorm(400)
  units <- matrix(stats::rnorm(30 * 400), 30)
  unit <- function(m) m / rep(sqrt(colSums(m^2)), each = nrow(m))
  members <- list(shifted = 1:20, none = 21:40, correlated = 41:60)
  z[1:20] <- z[1:20] + 2
  units[, 41:60] <- units[, 41] + 0.3 * units[, 41:60]
  found <- weft:::set_shifts(z, unit(units), 28, members, c(5, 100), c("higher in b", "higher in a"))
  expect_identical(found$set[1L], "shifted")
  expect_identical(found$direction[1L], "higher in b")
  expect_lt(found$p_value[1L], 1e-6)
  expect_gt(found$correlation[found$set == "correlated"], 0.7)
  # independent genes: Student's t test with a common variance, but for its degrees of freedom
  alone <- weft:::set_shifts(z, unit(diag(400)), 398, members, c(5, 100), c("higher in b", "higher in a"))
  by_r <- stats::t.test(z[21:40], z[-(21:40)], var.equal = TRUE)
  expect_equal(alone$p_value[alone$set == "none"], by_r$p.value)
  # under the null, sets of correlated genes are called as often as they may be
  p <- replicate(300, {
    factor <- stats::rnorm(30)
    x <- 0.7 * outer(factor, rep(c(1, 0), c(20, 180))) + matrix(stats::rnorm(30 * 200), 30)
    class <- rep(0:1, 15)
    fits <- stats::lm.fit(cbind(1, class), x)
    t <- fits$coefficients[2L, ] / sqrt(colSums(fits$residuals^2) / 28 / (30 / 4))
    weft:::set_shifts(stats::qnorm(stats::pt(t, 28)), unit(fits$residuals), 28, list(s = 1:20), c(5, 100),
                     c("up", "down"))$p_value
  })
  expect_lt(mean(p <= 0.05), 0.09)
  expect_gt(mean(p <= 0.05), 0.015)
})

test_that("the best threshold for a gene misclassifies the fewest samples", {
  q <- fit$quality
  for (gene in c(1, 5, 9)) {
    value <- q$x[, gene]
    second <- as.integer(q$class) == 2L
    wrong <- vapply(c(-Inf, value), function(cut) {
      below <- value <= cut
      min(sum(second[below]) + sum(!second[!below]), sum(!second[below]) + sum(second[!below]))
    }, 0)
    told <- sprintf("threshold for g misclassifies %s", weft:::several(min(wrong), "sample"))
    expect_match(weft:::strips_text(q, gene, "g"), if (min(wrong)) told else "misclassifies no sample")
  }
})

test_that("the references are those of the methods, each once", {
  text <- weft:::methods_text(fit)
  expect_match(text, "BGe (Geiger and Heckerman 2002)", fixed = TRUE, all = FALSE)
  references <- weft:::report_references(fit)
  expect_length(grep("^Geiger D, Heckerman D \\(2002\\)", references), 1)
  expect_length(grep("^Heckerman D, Geiger D", references), 0)
  fit$bayes$table$type <- "bdeu"
  expect_length(grep("^Heckerman D, Geiger D, Chickering DM \\(1995\\)", weft:::report_references(fit)), 1)
})
