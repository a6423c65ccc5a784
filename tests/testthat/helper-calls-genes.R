# Calls of the workflow's steps for helper-calls.R: each stands on a function of another room, and owes what that owes.
calls_genes <- function() {
  step <- function(make, share = 0.4) list(share = share, make = make)
  list(
    gene_components = step(function() {
      gene_call("gene_components", list(k = whole(1, 5)), fields("sdev", "leading"), near_values)
    }),
    gene_ranking = step(draw_gene_ranking, 3),
    gene_pairs = step(function() {
      gene_call("gene_pairs", c(maybe(0.5, top = whole(1, 20)), list(permutations = pick(0, 3))), class = TRUE)
    }),
    gene_mi_network = step(function() {
      method <- pick("auto", "mrnet", "aracne", "clr", "mrnetb", "relnet")
      settings <- c(list(method = method, fdr = pick(0.01, 0.5)), maybe(0.3, targets = c("g2", "g3")))
      gene_call("gene_mi_network", settings, function(net) plain(as.matrix(net)))
    }),
    gene_regulation = step(function() {
      settings <- c(list(resamples = 2 * whole(1, 4), null_copies = pick(0, 1), steps = whole(1, 4)),
                    maybe(0.3, targets = c("g2", "g3")), maybe(0.3, regulators = c("g1", "g2")))
      gene_call("gene_regulation", settings, function(net) plain(list(as.matrix(net), attr(net, "edges"))))
    }),
    gene_clusters = step(draw_gene_clusters, 2),
    gene_modules = step(draw_gene_modules), module_preservation = step(draw_module_preservation),
    gene_bayes = step(function() {
      settings <- list(genes = whole(2, 6), iterations = 60, chains = 2, target = pick("sum", "max"))
      gene_call("gene_bayes", settings, fields("dag", "score", "edges", "average", "trace"))
    }),
    gene_network = step(draw_gene_network, 0.2)
  )
}

# From 2 v 2 on: several levels, a number, batches, covariates, pairs, gaps, ties, counts, counts of subjects' cells,
# columns that say nothing, other units.
draw_gene_ranking <- function() {
  if (chance(0.1)) return(gene_call("gene_ranking", list(), class = TRUE))
  counts <- chance(0.35)
  n <- pick(4, whole(5, 12), whole(13, 60), prob = c(1, 2, 2))
  p <- whole(3, 200)
  data <- data.frame(class = factor(sample(rep_len(letters[seq_len(pick(2, 2, 3))], n))), age = stats::rnorm(n),
                     batch = factor(sample(rep_len(c("u", "v"), n))), pair = factor(rep_len(seq_len(n %/% 2), n)))
  x <- if (counts) matrix(stats::rnbinom(n * p, mu = rep(log_uniform(0, 4), n * p), size = pick(0.5, 10)), n)
       else matrix(stats::rnorm(n * p, 8), n) * rep(exp(stats::rnorm(p)), each = n)
  if (!counts && chance(0.3)) x <- round(x, pick(0, 1))
  if (!counts && chance(0.4)) x <- with_gaps(x, 0.05)
  for (j in if (chance(0.5)) sample(p, min(p, 2L))) {
    x[, j] <- degenerate_column(sample(if (counts) "constant" else degenerate_kinds, 1L), x[, j], data$class)
  }
  if (!counts && chance(0.2)) x <- x * 10^pick(-200, -20, 20, 200)
  dimnames(x) <- list(sprintf("s%d", seq_len(n)), sprintf("g%d", seq_len(p)))
  terms <- pick("class", c("batch", "class"), c("age", "class"), c("pair", "class"), c("class", "age"),
                c("batch", "age", "class"), "batch * class")
  control <- c(maybe(0.4, trend = pick(TRUE, FALSE)), maybe(0.3, robust = FALSE), maybe(0.4, weights = pick("none",
                                                                                                          "group")),
               maybe(0.2, shape = FALSE), if (counts) maybe(0.2, factors = stats::runif(n, 0.5, 2)))
  args <- list(x = x, class = stats::reformulate(terms), data = data, control = control)
  if (nlevels(data$class) == 3L && terms[length(terms)] == "class") args <- c(args, maybe(0.4, contrasts = "c - a"))
  if (counts && n > 12L && chance(0.3)) {
    args[c("class", "data")] <- list(~ class, data.frame(class = rep_len(letters[1:2], n)))
    args[c("contrasts", "control")] <- NULL
    args$subject <- rep_len(sprintf("p%d", seq_len(2L * (n %/% 6L))), n)
  }
  if (chance(0.2)) args <- list(x = x, class = data$age, control = control[setdiff(names(control), "weights")])
  drawn_call("gene_ranking", args, function(r) list(plain(r), attr(r, "model")[c("d0", "s02", "weights", "notes")]))
}

# One to several groups, ties, copies, few and many genes, components, the number given.
draw_gene_clusters <- function() {
  if (chance(0.1)) {
    return(gene_call("gene_clusters", list(method = "irm", chains = 2, sweeps = 5),
                     fields("row_cluster", "col_cluster", "log_posterior")))
  }
  n <- pick(whole(8, 15), whole(16, 80))
  p <- pick(whole(3, 10), whole(11, 40))
  group <- sample(whole(1, 4), n, TRUE)
  x <- matrix(stats::rnorm(n * p), n)
  x[, seq_len(p %/% 2)] <- x[, seq_len(p %/% 2)] + pick(0, 2, 6) * group
  if (chance(0.2)) x <- round(x)
  if (chance(0.2)) x <- x[sample(n, n, TRUE), ]
  if (chance(0.2)) x[, 1L] <- degenerate_column(sample(degenerate_kinds, 1L), x[, 1L])
  if (chance(0.1)) x <- x * 10^pick(-250, -30, 30, 200)
  dimnames(x) <- list(sprintf("s%d", seq_len(n)), sprintf("g%d", seq_len(p)))
  args <- c(list(x = if (chance(0.2)) stats::prcomp(replace(x, is.na(x), 0), rank. = 3) else x, seed = whole(0, 1e6)),
            maybe(0.3, k = whole(1, 5)), maybe(0.2, max_clusters = whole(1, 8)))
  if (!inherits(args$x, "prcomp")) args <- c(args, maybe(0.2, genes = whole(3, p)))
  drawn_call("gene_clusters", args, fields("cluster", "k", "probability", "stability", "gene_cluster", "gene_stability",
                                           "converged"))
}

# Planted and no modules, ties, copies, gaps, columns that say nothing, other units.
some_modules <- function(n = whole(12, 40), p = whole(6, 60)) {
  u <- matrix(stats::rnorm(2 * n), n)
  x <- u[, rep_len(1:2, p)] * rep(pick(0, 0.8) * sample(c(-1, 1), p, TRUE), each = n) + matrix(stats::rnorm(n * p), n)
  if (chance(0.2)) x <- round(x)
  if (chance(0.2)) x <- with_gaps(x, 0.05)
  if (chance(0.2)) x[, p] <- x[, 1L]
  if (chance(0.2)) x[, 1L] <- degenerate_column(sample(degenerate_kinds, 1L), x[, 1L])
  if (chance(0.2)) x <- x * 10^pick(-200, -20, 20, 200)
  dimnames(x) <- list(sprintf("s%d", seq_len(n)), sprintf("g%d", seq_len(p)))
  x
}

draw_gene_modules <- function() {
  x <- some_modules()
  args <- c(list(x = x, min_size = whole(3, 10), seed = whole(0, 1e6)), maybe(0.3, signed = TRUE),
            maybe(0.3, traits = data.frame(age = stats::rnorm(nrow(x)))),
            maybe(0.3, class = rep_len(c("a", "b"), nrow(x))))
  drawn_call("gene_modules", args, fields("module", "modules", "eigengenes", "membership", "relations", "left_out"))
}

draw_module_preservation <- function() {
  x <- matrix(stats::rnorm(400), 40) + stats::rnorm(40)
  x <- cbind(x, matrix(stats::rnorm(800), 40))
  dimnames(x) <- list(NULL, sprintf("g%d", 1:30))
  m <- suppressWarnings(gene_modules(x, min_size = 3, seed = 1, run = weft_run(threads = 1)))
  drawn_call("module_preservation", list(x = m, other = some_modules(p = 40), permutations = whole(9, 30),
                                         seed = whole(0, 1e6)), plain)
}

near_values <- function(a, b) within(a$sdev, b$sdev, 1e-10 * a$sdev[1L], "sdev")

some_genes <- function() {
  n <- whole(20, 40)
  p <- whole(8, 20)
  class <- rep(c("a", "b"), length.out = n)
  levels <- chance(0.2)
  x <- if (levels) matrix(sample(0:2, n * p, TRUE), n) else matrix(stats::rnorm(n * p), n)
  x[, 1L] <- if (levels) 2 * (class == "a") else x[, 1L] + 2 * (class == "a")
  x[, 2L] <- if (levels) x[, 1L] else x[, 1L] + 0.3 * stats::rnorm(n)
  if (chance(0.2)) {
    j <- whole(3, p)
    x[, j] <- degenerate_column(if (levels) "constant" else sample(degenerate_kinds, 1L), x[, j], class)
  }
  dimnames(x) <- list(sprintf("s%d", seq_len(n)), sprintf("g%d", seq_len(p)))
  list(x = x, class = class)
}

gene_call <- function(f, settings, take = plain, agree = same_bits, class = FALSE) {
  d <- some_genes()
  seed <- if (f != "gene_mi_network") list(seed = whole(0, 1e6))
  drawn_call(f, c(list(x = d$x), if (class) list(class = d$class), settings, seed), take, agree)
}

draw_gene_network <- function() {
  steps <- list(clusters = list(method = "irm", chains = 2, sweeps = 5), bayes = list(genes = 5, iterations = 50))
  args <- c(some_genes(), list(steps = steps, seed = whole(0, 1e6), progress = FALSE))
  take <- function(fit) {
    list(components = fields("sdev")(fit$components), ranking = plain(fit$ranking), pairs = plain(fit$pairs),
         network = plain(as.matrix(fit$network)), clusters = fields("row_cluster", "col_cluster")(fit$clusters),
         bayes = fields("dag", "edges")(fit$bayes))
  }
  agree <- function(a, b) first_of(near_values(a$components, b$components), same_bits(a[-1L], b[-1L]))
  drawn_call("gene_network", args, take, agree)
}
