# False discoveries among the features that mi_rank() calls at q <= 0.05: 500 features of which 25 tell of the class,
# cut into bins of equal frequency; the mean share of false ones among those called over 200 sets, beside what
# chi-squared would have called. Usage: Rscript mi-pvalues.R [sets]
suppressMessages(library(weft))
sets <- as.integer(c(commandArgs(TRUE), 200)[1])
options(weft.progress = FALSE)

classes <- list("equal" = c(1, 1), "1 : 3" = c(1, 3), "three" = c(1, 1, 1), "1 : 2 : 5" = c(1, 2, 5))
called <- function(p, told) {
  found <- stats::p.adjust(p, "BH") <= 0.05
  c(false = if (any(found)) mean(!told[found]) else 0, found = sum(found & told))
}

one_set <- function(n, shares, bins) {
  class <- rep(seq_along(shares), round(n * shares / sum(shares)))[seq_len(n)]
  class[is.na(class)] <- length(shares)
  told <- rep(c(TRUE, FALSE), c(25, 475))
  x <- matrix(stats::rnorm(n * 500), n)
  x[, told] <- x[, told] + 12 / sqrt(n) * class
  r <- mi_rank(x, class, bins = bins)
  told <- told[as.integer(sub("V", "", r$feature))]
  c(called(r$p_value, told), called(stats::pchisq(r$statistic, pmax(r$df, 1), lower.tail = FALSE), told))
}

set.seed(1)
cases <- expand.grid(bins = 2:5, class = names(classes), n = c(8, 12, 20, 40, 200), stringsAsFactors = FALSE)
rows <- lapply(seq_len(nrow(cases)), function(i) {
  case <- cases[i, ]
  got <- replicate(sets, one_set(case$n, classes[[case$class]], case$bins))
  data.frame(n = case$n, class = case$class, bins = case$bins, false = mean(got[1, ]),
             se = stats::sd(got[1, ]) / sqrt(sets), found = mean(got[2, ]), false_chi2 = mean(got[3, ]),
             found_chi2 = mean(got[4, ]))
})
table <- do.call(rbind, rows)
print(format(table, digits = 2, nsmall = 3), row.names = FALSE)
cat(sprintf("Greatest share of false ones: %.3f (%.3f by chi-squared)\n", max(table$false), max(table$false_chi2)),
    sprintf("Cases above 0.05 by more than two standard errors: %d of %d\n", sum(table$false > 0.05 + 2 * table$se),
            nrow(table)),
    sep = "")
