# p-values of single features against a class. Chi-squared is wrong for few rows, so that a feature's table is compared
# with all tables with the same margins: what assigning the classes at random would give (src/mi/mi_null.c). Bins of
# equal frequency have equal margins, and their distribution is found once.

# `scores` of C_weft_mi_rank; `laws(which)` gives p (NaN: by chi-squared) and the correction of these features.
feature_p_values <- function(scores, laws) {
  df <- (pmax(scores$levels, 1) - 1) * (pmax(scores$class_levels, 1) - 1)
  statistic <- feature_statistic(scores)
  p <- stats::pchisq(statistic, pmax(df, 1), lower.tail = FALSE)
  p[df == 0] <- 1
  # what chi-squared calls chance, among 100 rows or more, no law would call significant
  open <- which(df > 0 & (p <= 0.1 | scores$n < 100))
  open <- open[!enough_expected(lapply(scores, `[`, open))]
  if (!length(open)) return(p)
  law <- laws(open)
  corrected <- stats::pchisq(statistic[open] / (1 + law$correction / df[open]), df[open], lower.tail = FALSE)
  p[open] <- ifelse(is.nan(law$p), corrected, law$p)
  p
}

feature_statistic <- function(scores) 2 * scores$n * log(2) * scores$mi

# Whether every cell surely expects so many rows that chi-squared holds, as far as the entropies tell.
enough_expected <- function(scores) {
  enough <- ifelse(scores$levels == 2 & scores$class_levels == 2, 1000, 100)
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
input_laws <- function(input, target, na, threads, progress) {
  function(which) {
    control <- run_control("cpu", threads, progress, input$names[which], "Testing features")
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
