# What the steps of the workflow need: a step that has too few samples is left out, and one sentence says so.

least_samples <- 4L # two against two

# least: with fewer samples the step's statements would be noise, or it could make none; better: with fewer it is rough.
# `what` and `verb` begin the sentence.
step_needs <- list(
  components = list(least = 4L, what = "Components", verb = "need"),
  ranking = list(least = 4L, what = "A test for differential expression", verb = "needs"),
  pairs = list(least = 20L, what = "Pairs of genes", verb = "need"),
  network = list(least = 20L, better = 50L, what = "A network", verb = "needs"),
  clusters = list(least = 8L, what = "Groups of samples", verb = "need"),
  bayes = list(least = 50L, what = "A Bayesian network", verb = "needs"),
  outliers = list(least = 10L, what = "A search for outliers", verb = "needs")
)

# Sentences, named by step, for the steps that these data are too few for.
steps_short_of_samples <- function(q) {
  n <- nrow(q$x)
  text <- lapply(step_needs, function(need) {
    if (n < need$least) sprintf("%s %s at least %d samples; there are %d.", need$what, need$verb, need$least, n)
  })
  if (is.null(text$ranking)) text$ranking <- ranking_refused(q)
  unlist(text)
}

# Of the steps that would run, those that are left out for that, with their sentences. A function in place of a step
# runs all the same.
left_out_steps <- function(q, settings) {
  short <- steps_short_of_samples(q)
  runs <- !vapply(settings[names(short)], function(setting) isFALSE(setting) || is.function(setting), NA)
  short <- short[runs]
  if (length(short)) short
}

# Sentences, named by step, for those that `fit` has, of fewer samples than they should be made of.
steps_that_are_rough <- function(fit) {
  n <- nrow(fit$quality$x)
  unlist(lapply(step_needs[intersect(names(step_needs), fit$steps$step)], function(need) {
    if (!is.null(need$better) && n < need$better) {
      sprintf("%s from %d samples is imprecise; at least %d samples are recommended.", need$what, n, need$better)
    }
  }))
}

# Classes, batches and covariates must leave something by which a gene's variance can be estimated.
ranking_refused <- function(q) {
  if (is.null(q$class) || q$kind == "levels") return(NULL)
  design <- cbind(1, contrast_columns(q$class), nuisance_design(q))
  if (nrow(design) > qr(design)$rank) return(NULL)
  sprintf(paste("A test for differential expression needs more samples than classes, batches and covariates have",
                "levels; there are %d."), nrow(design))
}
