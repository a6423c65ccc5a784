# Nested groups of graphs with hubs: irm(prior = irm_prior(degrees = TRUE)) beside planted truth and graph-tool.
# Rscript irm-nested.R planted             planted degree-corrected graphs of four difficulties, and noise with hubs
# Rscript irm-nested.R graphs FILE...      edge lists "from to [weight]", numbers from 1 (directed), and *.gml[.gz]:
#                                          description lengths beside graph-tool's best of ten (irm-nested.py, where
#                                          /usr/bin/python3 has it; --runs R: of R), both by its entropy(); X_truth.tsv:
#                                          NMI
# Rscript irm-nested.R real [NAME...] [--out irm-nested-real.csv]   ten real graphs that come with graph-tool: what a
#                                          default call finds, and what it says of its convergence
# Rscript irm-nested.R large NODES LINKS GROUPS [INSIDE]   one planted graph, one chain of one sweep
# Rscript irm-nested.R random [FILE or NAME...] [--runs 2]   a tenth of all pairs, at random, are missing: predicted
#                                          over true number of links, AUC and log loss, beside groups without degrees
#                                          and the product of degrees; means of as many draws as --runs
# Rscript irm-nested.R masked [FILE or NAME...]   a tenth of the links and as many other pairs are missing: AUC and log
#                                          loss of planted and these graphs, beside groups without degrees, the product
#                                          of degrees, and graph-tool's best of two (--runs R: of R; 0: none)
library(weft)
source("inst/bench/bench.R")
machine_line()
args <- commandArgs(TRUE)

# Links from propensities with a power law, cut off at 100 times the least; they may repeat, and link a node to itself.
# A link stays in its group with this share.
planted_hubs <- function(n, links, groups, inside, exponent = 2.5) {
  z <- sample.int(groups, n, TRUE)
  theta <- pmin((1 - runif(n))^(-1 / (exponent - 1)), 100)
  members <- split(seq_len(n), factor(z, seq_len(groups)))
  upto <- lapply(members, function(i) cumsum(theta[i]) / sum(theta[i]))
  from <- z[sample.int(n, links, TRUE, theta)]
  to <- ifelse(runif(links) < inside, from, sample.int(groups, links, TRUE))
  ends <- function(group) {
    out <- integer(links)
    for (at in split(seq_len(links), group)) {
      g <- group[at[1L]]
      out[at] <- members[[g]][findInterval(runif(length(at)), upto[[g]]) + 1L]
    }
    out
  }
  i <- ends(from)
  j <- ends(to)
  list(links = data.frame(pmin(i, j), pmax(i, j)), z = z)
}

fit_nested <- function(links, n, type = "undirected", family = "bernoulli", chains = 4, sweeps = 100, seed = 1) {
  started <- proc.time()
  fit <- irm(links, type, family, prior = irm_prior(degrees = TRUE), chains = chains, sweeps = sweeps, seed = seed,
             control = list(dim = n, self = family == "poisson"), run = weft_run("cpu", progress = FALSE))
  list(fit = fit, seconds = (proc.time() - started)[["elapsed"]], processor = sum((proc.time() - started)[1:2]))
}

if (args[1L] == "planted") {
  set.seed(1)
  cases <- list(easy = c(2000, 40000, 8, 0.8), many = c(3000, 60000, 30, 0.7), thin = c(3000, 18000, 8, 0.7),
                mixed = c(2000, 40000, 8, 0.4), noise = c(1000, 10000, 1, 1))
  for (name in names(cases)) {
    case <- cases[[name]]
    made <- planted_hubs(case[1L], case[2L], case[3L], case[4L])
    got <- fit_nested(made$links, case[1L], family = "poisson")
    cat(sprintf("%-6s %.0f nodes, %.0f links, %.0f groups, %.0f %% inside: ", name, case[1L], case[2L], case[3L],
                100 * case[4L]))
    cat(sprintf("%d groups, NMI %.3f, %.0f s (processors %.0f)\n", max(got$fit$row_cluster),
                irm_nmi(got$fit$row_cluster, made$z), got$seconds, got$processor))
  }
}

if (args[1L] == "large") {
  set.seed(1)
  size <- as.numeric(args[2:4])
  made <- planted_hubs(size[1L], size[2L], size[3L], if (length(args) > 4L) as.numeric(args[5L]) else 0.7)
  got <- fit_nested(made$links, size[1L], family = "poisson", chains = 1, sweeps = 1)
  cat(sprintf("%.0f nodes, %.0f links, %.0f groups: ", size[1L], size[2L], size[3L]))
  status <- "/proc/self/status"
  peak <- if (file.exists(status)) grep("VmHWM", readLines(status), value = TRUE) else "VmHWM 0"
  cat(sprintf("%d groups, NMI %.4f, %.0f s (processors %.0f), %.2f GB at most\n", max(got$fit$row_cluster),
              irm_nmi(got$fit$row_cluster, made$z), got$seconds, got$processor,
              as.numeric(gsub("[^0-9]", "", peak)) / 1e6))
}

read_links <- function(file) {
  if (!grepl("gml", file)) {
    links <- utils::read.table(file)[1:2]
    return(list(links = unique(links[links[[1L]] != links[[2L]], ]), n = max(links), type = "directed"))
  }
  lines <- readLines(file)
  numbers <- function(what) {
    as.numeric(sub(sprintf("^ *%s ", what), "", grep(sprintf("^ *%s [0-9]", what), lines, value = TRUE)))
  }
  ids <- numbers("id")
  at <- cbind(match(numbers("source"), ids), match(numbers("target"), ids))
  at <- unique(t(apply(at[at[, 1L] != at[, 2L], ], 1L, sort)))
  list(links = data.frame(at[, 1L], at[, 2L]), n = length(ids), type = "undirected")
}

# A graph of graph-tool's collection.
from_collection <- function(name) {
  folder <- tempfile("nested")
  dir.create(folder)
  about <- system2("/usr/bin/python3", c(bench_file("irm-nested.py"), "collection", name, folder), TRUE, FALSE)
  about <- strsplit(utils::tail(about, 1L), " ")[[1L]]
  at <- as.matrix(utils::read.csv(file.path(folder, "links.csv"), header = FALSE)) + 1
  if (about[2L] == "undirected") at <- cbind(pmin(at[, 1L], at[, 2L]), pmax(at[, 1L], at[, 2L]))
  at <- unique(at[at[, 1L] != at[, 2L], ])
  list(links = data.frame(at[, 1L], at[, 2L]), n = as.numeric(about[1L]), type = about[2L])
}

if (args[1L] == "real") {
  names <- c("karate", "dolphins", "lesmis", "polbooks", "adjnoun", "football", "serengeti-foodweb", "celegansneural",
             "netscience", "polblogs")
  asked <- setdiff(args[-1L], c("--out", option("out", "")))
  rows <- lapply(if (length(asked)) asked else names, function(name) {
    graph <- from_collection(name)
    started <- proc.time()
    fit <- irm(graph$links, graph$type, prior = irm_prior(degrees = "compare"), seed = 1, control = list(dim = graph$n),
               run = weft_run("cpu", progress = FALSE))
    row <- data.frame(graph = name, nodes = graph$n, links = nrow(graph$links), type = graph$type,
                      levels = paste(apply(fit$levels$row, 2L, max), collapse = " "),
                      with_degrees = round(fit$compared$description_length[1L], 1),
                      without = round(fit$compared$description_length[2L], 1), nmi = round(fit$nmi$nmi, 2),
                      processor_seconds = round(sum((proc.time() - started)[1:2]), 1), says = weft:::rhat_text(fit))
    cat(do.call(paste, c(row, sep = "; ")), "\n")
    row
  })
  if (nzchar(option("out", ""))) utils::write.csv(do.call(rbind, rows), option("out", ""), row.names = FALSE)
}

if (args[1L] == "graphs") for (file in setdiff(args[-1L], c("--runs", option("runs", "")))) {
  graph <- read_links(file)
  got <- fit_nested(graph$links, graph$n, graph$type)
  folder <- tempfile("nested")
  dir.create(folder)
  utils::write.table(graph$links - 1, file.path(folder, "links.csv"), sep = ",", row.names = FALSE, col.names = FALSE)
  utils::write.table(got$fit$levels$row - 1, file.path(folder, "levels.csv"), sep = ",", row.names = FALSE,
                     col.names = FALSE)
  cat(sprintf("%s: %d groups, description length %.2f, %.0f s (processors %.0f)\n", basename(file),
              max(got$fit$row_cluster), -max(got$fit$log_posterior), got$seconds, got$processor))
  truth <- sub("(\\.tsv)", "_truth\\1", file)
  if (truth != file && file.exists(truth)) {
    z <- utils::read.table(truth)[[2L]]
    cat(sprintf("  truth: %d groups, NMI %.3f\n", length(unique(z)), irm_nmi(got$fit$row_cluster, z)))
  }
  system2("/usr/bin/python3", c(bench_file("irm-nested.py"), folder, graph$n, graph$type, option("runs", 10)),
          stderr = FALSE)
}

# Products of the degrees at both ends.
by_degrees <- function(links, graph, pairs) {
  out <- tabulate(links$from, graph$n)
  into <- tabulate(links$to, graph$n)
  if (graph$type == "undirected") out <- into <- out + into
  as.double(out[pairs[[1L]]]) * into[pairs[[2L]]]
}

# Rows: a tenth of all pairs, at random, are missing. Links among them, and the sums of predictions over these links,
# AUC and log loss of nested groups, groups without degrees, and degrees alone (scaled to the number of links).
predict_random <- function(name, graph, seeds) {
  links <- matrix(0, graph$n, graph$n)
  links[as.matrix(graph$links)] <- 1
  pairs <- which(if (graph$type == "undirected") upper.tri(links) else row(links) != col(links), arr.ind = TRUE)
  rows <- lapply(seq_len(seeds), function(seed) {
    set.seed(seed)
    hidden <- pairs[sort(sample(nrow(pairs), nrow(pairs) / 10)), ]
    truth <- links[hidden]
    p <- lapply(c(TRUE, FALSE), function(degrees) {
      predict(irm(graph$links, graph$type, prior = irm_prior(degrees = degrees), chains = 2, sweeps = 60, seed = seed,
                  missing = hidden, control = list(dim = graph$n), run = weft_run("cpu", progress = FALSE)), hidden)
    })
    seen <- which(replace(links, hidden, 0) > 0, arr.ind = TRUE)
    alone <- by_degrees(list(from = seen[, 1L], to = seen[, 2L]), graph, as.data.frame(hidden))
    p[[3L]] <- -expm1(-alone / (0.9 * nrow(seen) * if (graph$type == "undirected") 2 else 1))
    unlist(lapply(p, function(p) {
      c(sum(p) / sum(truth), irm_auc(p, truth), -mean(log(pmax(1e-12, ifelse(truth > 0, p, 1 - p)))))
    }))
  })
  mean <- signif(Reduce(`+`, rows) / seeds, 4)
  cat(paste(c(name, mean[c(1, 4, 7, 2, 5, 8, 3, 6, 9)]), collapse = "; "), "\n")
}

# One row: the prediction of held-out pairs by nested groups, by groups without degrees and by degrees alone.
predict_masked <- function(name, graph, runs) {
  call <- function(prior) {
    irm(graph$links, graph$type, prior = prior, chains = 4, sweeps = 100, seed = 1, hold_out = 0.1,
        control = list(dim = graph$n), run = weft_run("cpu", progress = FALSE))
  }
  started <- proc.time()
  fit <- call(irm_prior(degrees = TRUE))
  seconds <- sum((proc.time() - started)[1:2])
  plain <- call(irm_prior())
  held <- fit$held_out
  links <- weft:::list_pairs(fit$run$graph$links)
  row <- data.frame(graph = name, nodes = graph$n, held_out = nrow(held), nested = fit$auc, plain = plain$auc,
                    degrees = irm_auc(by_degrees(links, graph, held), held$count),
                    log_loss = fit$log_loss, plain_log_loss = plain$log_loss, processor_seconds = seconds)
  row[-1L] <- signif(row[-1L], 4)
  cat(do.call(paste, c(row, sep = "; ")), "\n")
  if (runs == 0) return(invisible())
  folder <- tempfile("nested")
  dir.create(folder)
  write <- function(x, file) utils::write.table(x, file.path(folder, file), sep = ",", row.names = FALSE,
                                                col.names = FALSE)
  write(cbind(links$from, links$to) - 1, "links.csv")
  write(cbind(held$row - 1, held$col - 1, held$count), "held.csv")
  system2("/usr/bin/python3", c(bench_file("irm-nested.py"), "masked", folder, graph$n, graph$type, runs),
          stderr = FALSE)
}

planted_simple <- function(case) {
  made <- planted_hubs(case[1L], case[2L], case[3L], case[4L])
  list(links = unique(made$links[made$links[, 1L] != made$links[, 2L], ]), n = case[1L], type = "undirected")
}
any_graph <- function(name) if (file.exists(name)) read_links(name) else from_collection(name)

if (args[1L] %in% c("masked", "random")) {
  set.seed(1)
  runs <- as.numeric(option("runs", 2))
  cat(if (args[1L] == "masked") {
    "graph; nodes; held out; AUC of nested groups; without degrees; of degrees; log losses; processor seconds\n"
  } else "graph; said over true number of links: nested groups; without degrees; degrees; AUC, same; log loss, same\n")
  one <- if (args[1L] == "masked") predict_masked else predict_random
  for (case in list(c(300, 2000, 4, 0.8), c(1000, 8000, 8, 0.7))) {
    one(sprintf("planted %.0f", case[1L]), planted_simple(case), runs)
  }
  for (name in setdiff(args[-1L], c("--runs", option("runs", "")))) one(basename(name), any_graph(name), runs)
}
