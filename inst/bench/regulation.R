# Directed networks held against the truth: average precision, early precision, direction, false discovery rates and
# seconds of regulation() and of peers in the same run, on simulated networks, and on the networks of DREAM4 where
# KBoost brings them.
# Usage: Rscript regulation.R [sets] [file.csv] [seconds] [name of a kind or a method ...]
# By default 20 sets of every kind, by every method.
# Public data of bacteria and cells: regulation-real.R.
# Peers where they are installed: minet, parmigene, GENIE3, ennet, KBoost, tigress. A peer that has taken so many
# seconds on a kind is left out of its further sets. Tables are written after each kind: file.csv, file-calls.csv (false
# discovery rates; rate 0: how many sets of permuted data have an edge at .05) and file-direction.csv. What was measured
# is kept after each set, one file per kind in the folder file-parts, and is not measured again: runs that were stopped
# go on, several may work on different kinds, and the tables hold all that the folder does.
library(weft)

has <- function(package) requireNamespace(package, quietly = TRUE)

# ---- the simulator ----

# Who regulates whom: a p x p matrix of signs, regulators in rows. Genes from `regulators` on only follow.
#   scale-free   a regulator is taken in proportion to how many it has already; one to three per gene
#   random       any regulator; Poisson numbers
#   modules      groups of some 25 genes with a few regulators of their own, and one of seven edges from another group
#   layers       regulators regulate only regulators behind them: long cascades
topology <- function(kind, p, regulators) {
  sign <- matrix(0, p, p)
  out <- rep(1, regulators)
  group <- sample(rep_len(seq_len(max(1, p %/% 25)), p))
  group[seq_len(regulators)] <- rep_len(seq_len(max(group)), regulators)
  for (j in sample(p)) {
    allowed <- setdiff(seq_len(regulators), j)
    if (kind == "layers" && j <= regulators) allowed <- allowed[allowed < j]
    if (!length(allowed)) next
    count <- if (kind == "random") min(4, stats::rpois(1, 1.8)) else sample(0:3, 1, prob = c(0.1, 0.35, 0.35, 0.2))
    count <- min(count, length(allowed))
    if (!count) next
    weight <- switch(kind, `scale-free` = out[allowed]^1.3,
                     modules = ifelse(group[allowed] == group[j], 6, 1 / max(group)),
                     rep(1, length(allowed)))
    parents <- allowed[sample.int(length(allowed), count, prob = weight)]
    out[parents] <- out[parents] + 1
    sign[parents, j] <- sample(c(1, -1), count, TRUE, c(0.7, 0.3))
  }
  sign
}

# Steady states of dx/dt = rate * (what the regulators allow) - x. Each regulator acts by a Hill function of its own;
# those of a gene act together as AND (products), OR, or by turns. In each sample all rates vary, and in a share of them
# a gene is knocked out or down. Measured with noise in the logarithm.
simulate <- function(kind, n, p, regulators = max(5, p %/% 4), knocked = 0.2, noise = 0.15, varied = 0.5) {
  sign <- topology(kind, p, regulators)
  parents <- lapply(seq_len(p), function(j) which(sign[, j] != 0))
  half <- matrix(stats::runif(p * p, 0.3, 0.9), p)
  steep <- matrix(sample(c(1, 2, 4), p * p, TRUE), p)
  together <- sample(c("and", "or", "mean"), p, TRUE)
  rate <- exp(matrix(stats::rnorm(n * p, 0, varied), n))
  hit <- which(stats::runif(n) < knocked)
  rate[cbind(hit, sample.int(p, length(hit), TRUE))] <- sample(c(0, 0.1), length(hit), TRUE)
  x <- 0.5 * rate
  for (round in seq_len(60)) {
    allowed <- vapply(seq_len(p), function(j) {
      if (!length(parents[[j]])) return(rep(0.6, n))
      acts <- vapply(parents[[j]], function(i) {
        f <- x[, i]^steep[i, j] / (x[, i]^steep[i, j] + half[i, j]^steep[i, j])
        if (sign[i, j] > 0) f else 1 - f
      }, numeric(n))
      switch(together[j], and = apply(acts, 1, prod), or = 1 - apply(1 - acts, 1, prod), mean = rowMeans(acts))
    }, numeric(n))
    x <- 0.5 * x + 0.5 * rate * (0.05 + 0.95 * allowed)
  }
  x <- log2(x + 0.02) + stats::rnorm(n * p, 0, noise)
  colnames(x) <- sprintf("g%d", seq_len(p))
  list(x = x, truth = sign != 0, sign = sign, regulators = seq_len(regulators))
}

# Pairs that depend at all: both have a common ancestor, or one is the other's.
dependent <- function(truth) {
  reach <- truth | diag(nrow(truth)) > 0
  for (k in seq_len(ceiling(log2(nrow(truth))) + 1)) reach <- (reach %*% reach) > 0
  crossprod(reach) > 0
}

# ---- measures ----

# The area under precision and recall, edges in the order of their weight; within ties, on average over their order.
average_precision <- function(w, truth) {
  if (!any(truth)) return(NA)
  by_weight <- order(-w, stats::runif(length(w)))
  hit <- truth[by_weight]
  mean((cumsum(hit) / seq_along(hit))[hit])
}

measures <- function(w, truth) {
  off <- diag(nrow(w)) == 0
  upper <- upper.tri(w)
  k <- sum(truth)
  one_way <- which(truth & !t(truth), arr.ind = TRUE)
  forth <- w[one_way]
  back <- w[one_way[, 2:1, drop = FALSE]]
  known <- forth != back
  c(directed = average_precision(w[off], truth[off]),
    undirected = average_precision(pmax(w, t(w))[upper], (truth | t(truth))[upper]),
    early = mean(truth[off][order(-w[off], stats::runif(sum(off)))[seq_len(k)]]),
    direction = if (any(known)) mean((forth > back)[known]) else NA)
}

# ---- methods ----

square <- function(w, names) {
  out <- matrix(0, length(names), length(names), dimnames = list(names, names))
  out[rownames(w), colnames(w)] <- w
  out
}

threads <- weft_threads()
methods <- list(
  `regulation` = function(x, tf) regulation(x, seed = 1, control = list(null_copies = 0)),
  `regulation, regulators given` = function(x, tf) {
    if (length(tf) < ncol(x)) square(as.matrix(regulation(x, tf, seed = 1, control = list(null_copies = 0))),
                                     colnames(x))
  },
  `weft MRNET` = function(x, tf) as.matrix(mi_network(mi_matrix(x, estimator = "spearman"), "mrnet")),
  `weft CLR` = function(x, tf) as.matrix(mi_network(mi_matrix(x, estimator = "spearman"), "clr")),
  `minet MRNET` = function(x, tf) if (has("minet")) minet::mrnet(minet::build.mim(as.data.frame(x), "spearman")),
  `parmigene CLR (KSG)` = function(x, tf) {
    if (has("parmigene") && ncol(x) <= 200) parmigene::clr(parmigene::knnmi.all(t(x)))
  },
  `GENIE3` = function(x, tf) if (has("GENIE3") && length(x) <= 1e4) square(GENIE3::GENIE3(t(x)), colnames(x)),
  `GENIE3, 300 trees` = function(x, tf) {
    if (has("GENIE3") && length(x) <= 1e4) square(GENIE3::GENIE3(t(x), nTrees = 300), colnames(x))
  },
  `ennet` = function(x, tf) {
    if (has("ennet") && length(x) <= 1e4) square(ennet::ennet(x, Tf = seq_len(ncol(x))), colnames(x))
  },
  `TIGRESS` = function(x, tf) if (has("tigress") && length(x) <= 1e4) tigress::tigress(x, allsteps = FALSE),
  `KBoost` = function(x, tf) if (has("KBoost") && ncol(x) <= 200) {
    w <- KBoost::kboost(x)$GRN # a row a target
    dimnames(w) <- list(colnames(x), colnames(x))
    t(w)
  }
)

# ---- kinds of data ----

kinds <- list()
for (topology_kind in c("scale-free", "random", "modules", "layers")) {
  for (shape in list(c(100, 100), c(25, 50), c(300, 100))) {
    local({
      kind <- topology_kind
      n <- shape[1]
      p <- shape[2]
      kinds[[sprintf("%s, %d x %d", kind, n, p)]] <<- function(set) simulate(kind, n, p)
    })
  }
}
kinds[["scale-free, 1000 x 200"]] <- function(set) simulate("scale-free", 1000, 200)
kinds[["modules, 200 x 1000"]] <- function(set) simulate("modules", 200, 1000)
kinds[["no knock-outs, 100 x 100"]] <- function(set) simulate("scale-free", 100, 100, knocked = 0)
kinds[["half knocked out, 100 x 100"]] <- function(set) simulate("scale-free", 100, 100, knocked = 0.5, varied = 0.25)
kinds[["weft_example, 100 x 100"]] <- function(set) {
  e <- weft_example("expression", n = 100, p = 100, seed = set, spoilt = FALSE, missing = 0)
  truth <- unclass(e$truth) != 0
  list(x = e$x[, colnames(truth)], truth = truth, regulators = which(rowSums(truth) > 0))
}
if (has("KBoost")) {
  kinds[["DREAM4, 100 x 100"]] <- function(set) {
    if (set > 5) return(NULL)
    load_one <- function(name) {
      here <- new.env()
      utils::data(list = name, package = "KBoost", envir = here)
      as.matrix(get(name, here))
    }
    x <- load_one(sprintf("D4_multi_%d", set))
    colnames(x) <- sprintf("g%d", seq_len(ncol(x)))
    gold <- load_one(sprintf("G_D4_multi_%d", set))
    truth <- matrix(FALSE, ncol(x), ncol(x))
    truth[gold[gold[, 3] == 1, 1:2]] <- TRUE
    list(x = x, truth = truth, regulators = which(rowSums(truth) > 0))
  }
}

# ---- run ----

args <- commandArgs(TRUE)
given <- function(k, usual) if (length(args) >= k) args[k] else usual
sets <- as.integer(given(1, 20))
file <- given(2, NA)
patience <- as.numeric(given(3, Inf))
chosen <- function(all) if (any(args[-(1:3)] %in% all)) intersect(args[-(1:3)], all) else all
asked <- chosen(names(kinds))
methods_asked <- chosen(names(methods))
cat(sprintf("%s, %s, %d threads\n", format(Sys.Date()), R.version.string, threads))

# Edges called at a false discovery rate: how many, the share of pairs that do not depend on each other, and of those
# that do the share that are indirect or reversed.
calls_at <- function(net, truth, rate) {
  edges <- as.data.frame(net, fdr = rate)
  at <- cbind(match(edges$from, colnames(net)), match(edges$to, colnames(net)))
  apart <- !dependent(truth)[at]
  c(called = nrow(edges), independent = if (nrow(edges)) mean(apart) else NA,
    direct = if (nrow(edges)) mean(truth[at]) else NA,
    reversed = if (nrow(edges)) mean(t(truth)[at] & !truth[at]) else NA)
}

# Of edges called at .2 whose pair is linked one way: what is said of the direction, and whether that is right.
directions_of <- function(net, truth) {
  edges <- as.data.frame(net, fdr = 0.2)
  at <- cbind(match(edges$from, colnames(net)), match(edges$to, colnames(net)))
  linked <- xor(truth[at], truth[at[, 2:1, drop = FALSE]]) & edges$direction >= 0.5
  data.frame(said = edges$direction[linked], right = truth[at][linked])
}

permuted <- function(x) {
  x[] <- apply(x, 2, sample)
  x
}

mean_or_na <- function(v) if (all(is.na(v))) NA else mean(v, na.rm = TRUE)
error_of <- function(v) stats::sd(v, na.rm = TRUE) / sqrt(sum(!is.na(v)))

# One row a kind and method. behind: by how much regulation() is ahead in directed average precision on the same sets.
table_of <- function(table) {
  own <- table[table$method == "regulation", ]
  do.call(rbind, lapply(split(table, list(table$kind, table$method), drop = TRUE), function(d) {
    behind <- own$directed[match(paste(d$kind, d$set), paste(own$kind, own$set))] - d$directed
    data.frame(kind = d$kind[1], method = d$method[1], sets = nrow(d), directed = mean_or_na(d$directed),
               directed_error = error_of(d$directed), undirected = mean_or_na(d$undirected),
               early = mean_or_na(d$early), direction = mean_or_na(d$direction), behind = mean_or_na(behind),
               behind_error = error_of(behind), seconds = stats::median(d$seconds))
  }))
}

calls_table <- function(calls) {
  do.call(rbind, lapply(split(calls, list(calls$kind, calls$rate), drop = TRUE), function(d) {
    data.frame(kind = d$kind[1], rate = d$rate[1], sets = nrow(d), called = mean(d$called),
               any = mean(d$called > 0), independent = mean_or_na(d$independent),
               independent_error = error_of(d$independent), direct = mean_or_na(d$direct),
               reversed = mean_or_na(d$reversed))
  }))
}

direction_table <- function(directions) {
  directions$bin <- cut(directions$said, c(0.5, 0.6, 0.7, 0.8, 0.9, 1), include.lowest = TRUE)
  do.call(rbind, lapply(split(directions, list(directions$kind, directions$bin), drop = TRUE), function(d) {
    data.frame(kind = d$kind[1], bin = d$bin[1], edges = nrow(d), said = mean(d$said), right = mean(d$right))
  }))
}

# ---- what is kept ----

parts <- if (!is.na(file)) sub("[.]csv$", "-parts", file)
part_file <- function(kind) file.path(parts, paste0(gsub("[^A-Za-z0-9]+", "-", kind), ".rds"))
nothing <- list(table = NULL, calls = NULL, directions = NULL)
kept_of <- function(kind) if (!is.null(parts) && file.exists(part_file(kind))) readRDS(part_file(kind)) else nothing
keep <- function(kept, kind) {
  if (is.null(parts)) return(invisible())
  dir.create(parts, showWarnings = FALSE)
  half_written <- paste0(part_file(kind), ".new")
  saveRDS(kept, half_written)
  file.rename(half_written, part_file(kind))
}

write_tables <- function() {
  all <- lapply(intersect(names(kinds), names(kinds)[file.exists(part_file(names(kinds)))]), kept_of)
  together <- function(what) do.call(rbind, lapply(all, `[[`, what))
  rounded <- function(d) {
    d[] <- lapply(d, function(v) if (is.double(v)) signif(v, 3) else v)
    d
  }
  write <- function(d, end) utils::write.csv(rounded(d), sub("[.]csv$", end, file), row.names = FALSE)
  write(table_of(together("table")), ".csv")
  write(calls_table(together("calls")), "-calls.csv")
  if (NROW(together("directions"))) write(direction_table(together("directions")), "-direction.csv")
}

# ---- measuring ----

own <- grepl("^(regulation|weft)", names(methods))

# Methods that this set lacks, but for peers that have had their time.
still_to_run <- function(table, set) {
  taken <- vapply(names(methods), function(name) sum(table$seconds[table$method == name]), 0)
  setdiff(intersect(methods_asked, names(methods)[own | taken <= patience]), table$method[table$set == set])
}

ranked_by <- function(method, made, kind, set) {
  processor <- function() sum(proc.time()[-3L])
  started <- processor()
  w <- methods[[method]](made$x, made$regulators)
  if (is.null(w)) return(NULL)
  seconds <- processor() - started
  data.frame(kind = kind, set = set, method = method, t(measures(unclass(as.matrix(w)), made$truth)), seconds = seconds)
}

# Edges called and what is said of their directions, of one set.
called_in <- function(made, kind, set) {
  copies <- max(1, min(20, 1000 %/% ncol(made$x))) # as gene_network()
  net <- regulation(made$x, seed = set, control = list(null_copies = copies, stability = FALSE))
  none <- regulation(permuted(made$x), seed = set, control = list(null_copies = copies, stability = FALSE))
  measured <- rbind(calls_at(net, made$truth, 0.05), calls_at(net, made$truth, 0.2), calls_at(none, made$truth, 0.05))
  said <- directions_of(net, made$truth)
  list(calls = data.frame(kind = kind, set = set, rate = c(0.05, 0.2, 0), measured),
       directions = if (nrow(said)) data.frame(kind = kind, set = set, said))
}

for (kind in asked) {
  kept <- kept_of(kind)
  for (set in seq_len(sets)) {
    left <- still_to_run(kept$table, set)
    counted <- set %in% kept$calls$set
    if (!length(left) && counted) next
    set.seed(set)
    made <- kinds[[kind]](set)
    if (is.null(made)) next
    for (method in left) kept$table <- rbind(kept$table, ranked_by(method, made, kind, set))
    if (!counted) kept <- Map(rbind, kept, c(list(table = NULL), called_in(made, kind, set)))
    keep(kept, kind)
  }
  if (is.null(kept$table)) next
  cat("\n", kind, "\n", sep = "")
  means <- table_of(kept$table)[-1]
  print(means[match(intersect(names(methods), means$method), means$method), ], row.names = FALSE, digits = 3)
  print(calls_table(kept$calls)[-1], row.names = FALSE, digits = 3)
  if (!is.null(parts)) write_tables()
}
