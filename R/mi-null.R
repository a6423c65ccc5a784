# p-values of single features against a class. Chi-squared is wrong for few rows, so that a feature's table is compared
# with all tables with the same margins: what assigning the classes at random would give, exactly or by an approximation
# (src/mi/null/exact_test.c). Bins of equal frequency have equal margins, and their distribution is found once.

# `scores` of C_weft_mi_rank; `laws(which)` gives what C_weft_mi_null says of these features. A list: `p`, and `tests`,
# how many of them are exact, from random tables, approximate or from chi-squared, with the greatest relative standard
# error of random tables as attribute "error".
feature_tests <- function(scores, laws) {
  l <- pmax(scores$levels, 1)
  k <- pmax(scores$class_levels, 1)
  df <- (l - 1) * (k - 1)
  # Williams' correction for margins that are all equal: no margins have a smaller one
  statistic <- feature_statistic(scores) / (1 + (l + 1) * (k + 1) / (6 * pmax(scores$n, 1)))
  p <- stats::pchisq(statistic, pmax(df, 1), lower.tail = FALSE)
  p[df == 0] <- 1
  # what chi-squared calls chance where cells expect some rows, no law would call significant
  chance <- which(df > 0 & p > 0.1)
  chance <- chance[enough_expected(lapply(scores, `[`, chance), 5)]
  open <- setdiff(which(df > 0), chance)
  open <- open[p[open] < 1e-18 | !enough_expected(lapply(scores, `[`, open), 100, 1000)]
  if (!length(open)) return(list(p = p, tests = tests_of(length(p))))
  law <- laws(open)
  corrected <- feature_statistic(lapply(scores, `[`, open)) / (1 + law$correction / df[open])
  smooth <- ifelse(is.nan(law$statistic), corrected, law$statistic)
  log_p <- pmax(stats::pchisq(smooth, df[open], lower.tail = FALSE, log.p = TRUE), law$log_table, na.rm = TRUE)
  p[open] <- ifelse(is.nan(law$p), exp(log_p), law$p)
  list(p = p, tests = tests_of(length(p), sum(!is.nan(law$p)), sum(!is.nan(law$statistic)),
                               law$error[!is.nan(law$error)]))
}

tests_of <- function(features, exact = 0L, approximate = 0L, errors = numeric()) {
  structure(c(exact = as.integer(exact), sampled = length(errors),
              approximate = as.integer(approximate - length(errors)),
              chi_squared = as.integer(features - exact - approximate)),
            error = if (length(errors)) max(errors))
}

# What print() says of the tests: which law, and what permutations can show at all.
tests_text <- function(tests, permutations = 0, features = sum(tests)) {
  kinds <- c(exact = "exact",
             sampled = sprintf("from random tables with the same margins (relative standard error up to %s %%)",
                               format(100 * (attr(tests, "error") %||% 0), digits = 1)),
             approximate = "an approximation to the exact law",
             chi_squared = "chi-squared, for large expected counts or clearly insignificant scores")
  tests <- tests[tests > 0]
  text <- if (length(tests) == 1L) sprintf("p_value: %s.", kinds[[names(tests)]])
          else sprintf("p_value: %s.", paste(sprintf("%d %s", tests, kinds[names(tests)]), collapse = "; "))
  if (permutations < 1) return(text)
  least <- 1 / (permutations + 1)
  paste0(text, sprintf(" p_permutation: %d permutations, so no p-value is below %s", as.integer(permutations),
                       format(least, digits = 2)),
         if (least * features > 0.05) sprintf(
           "; one feature among %d needs at least %d permutations for a false discovery rate of 0.05", features,
           as.integer(ceiling(features / 0.05) - 1)),
         ". q_value is computed from p_value.")
}

feature_statistic <- function(scores) 2 * scores$n * log(2) * scores$mi

# Whether every cell surely expects `enough` rows (tables of two levels and classes: `of_two`), as far as the entropies
# tell.
enough_expected <- function(scores, enough, of_two = enough) {
  enough <- ifelse(scores$levels == 2 & scores$class_levels == 2, of_two, enough)
  sure <- scores$n / (scores$levels * scores$class_levels) >= enough
  if (!any(sure)) return(sure)
  some <- lapply(scores, `[`, sure)
  least <- least_share(some$entropy, some$levels) * least_share(some$class_entropy, some$class_levels)
  sure[sure] <- some$n * least >= enough[sure]
  sure
}

# The least that the rarest of so many levels can have of the rows, given the entropy in bits: the others are equal
# then.
least_share <- function(entropy, levels) {
  low <- numeric(length(entropy))
  high <- 1 / levels
  for (step in 1:40) {
    share <- (low + high) / 2
    rest <- 1 - share
    reached <- -share * log2(share) - rest * log2(rest) + rest * log2(pmax(levels - 1, 1)) >= entropy
    high[reached] <- share[reached]
    low[!reached] <- share[!reached]
  }
  low
}

# The laws of features of an input that is not packed: those asked for are.
input_laws <- function(input, target, na, run) {
  function(which) {
    control <- run_control("cpu", run$threads, run$progress, input$names[which], "Testing features")
    data <- some_features(input, which)
    classes <- list(codes = target$codes, levels = length(target$levels), strata = 1)
    pack <- .Call(C_weft_mi_pack, data, classes, na == "level", control)
    on.exit(.Call(C_weft_mi_pack_free, pack))
    .Call(C_weft_mi_null, pack, seq_along(which), control)
  }
}

some_features <- function(input, which) {
  data <- input$data
  if (is_delayed(input)) return(categorical_input(as.matrix(data[, which, drop = FALSE]))$data)
  if (length(which) == input$p) return(data)
  if (is.list(data)) data[which] else data[, which, drop = FALSE]
}
