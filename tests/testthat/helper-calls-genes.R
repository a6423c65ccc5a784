# Calls of the workflow's steps for helper-calls.R: each stands on a function of another room, and owes what that owes.
calls_genes <- function() {
  step <- function(make, share = 0.4) list(share = share, make = make)
  list(
    gene_components = step(function() {
      gene_call("gene_components", list(k = whole(1, 5)), fields("sdev", "leading"), near_values)
    }),
    gene_ranking = step(function() gene_call("gene_ranking", list(), class = TRUE)),
    gene_pairs = step(function() {
      gene_call("gene_pairs", c(maybe(0.5, top = whole(1, 20)), list(permutations = pick(0, 3))), class = TRUE)
    }),
    gene_mi_network = step(function() {
      method <- pick("auto", "mrnet", "aracne", "clr", "mrnetb", "relnet")
      gene_call("gene_mi_network", list(method = method, fdr = pick(0.01, 0.5)), function(net) plain(as.matrix(net)))
    }),
    gene_regulation = step(function() {
      settings <- list(resamples = 2 * whole(1, 4), copies = pick(0, 1), steps = whole(1, 4))
      gene_call("gene_regulation", settings, function(net) plain(list(as.matrix(net), attr(net, "edges"))))
    }),
    gene_clusters = step(function() {
      gene_call("gene_clusters", list(method = "irm", chains = 2, sweeps = 5), fields("row_cluster", "col_cluster",
                                                                                      "log_posterior"))
    }),
    gene_bayes = step(function() {
      settings <- list(genes = whole(2, 6), iterations = 60, chains = 2, target = pick("sum", "max"))
      gene_call("gene_bayes", settings, fields("dag", "score", "edges", "average", "trace"))
    }),
    gene_network = step(draw_gene_network, 0.2)
  )
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
  args <- c(some_genes(), list(clusters = list(method = "irm", chains = 2, sweeps = 5), bayes = list(genes = 5,
                                                                                                     iterations = 50),
                               seed = whole(0, 1e6), progress = FALSE))
  take <- function(fit) {
    list(components = fields("sdev")(fit$components), ranking = plain(fit$ranking), pairs = plain(fit$pairs),
         network = plain(as.matrix(fit$network)), clusters = fields("row_cluster", "col_cluster")(fit$clusters),
         bayes = fields("dag", "edges")(fit$bayes))
  }
  agree <- function(a, b) first_of(near_values(a$components, b$components), same_bits(a[-1L], b[-1L]))
  drawn_call("gene_network", args, take, agree)
}
