# The network of single cells: of the cells themselves, unless they cost too much, or metacells predict held-out cells
# better.

cells_seconds <- 300 # the longest that a network of cells may take, as predicted
held_out_most <- 5000L # cells to predict, and as many to learn the sizes of effects from
tried_regulators <- 300L
tried_targets <- 100L

# What regulation() takes in place of metacells: list(data: NULL for metacells, about: list(unit, cells, empty,
# explained, why)). cells: list(counts, what gene_cells() returned, assay, always); chosen: columns of q$x.
cells_of_network <- function(q, cells, chosen, aims, control, seed, run) {
  made <- sound_cells(cells[[2L]], "cells")
  input <- cells_input(cells[[1L]], cells$assay, gene_cells_control()$block_size)
  if (input$n != length(made$size) || input$p != ncol(made$counts)) {
    abort_input("`cells` must be counts, and the object that `gene_cells()` returned for them.",
                x = sprintf("Counts are of %.0f cells and %.0f genes, the metacells of %d and %d.", input$n, input$p,
                            length(made$size), ncol(made$counts)))
  }
  about <- list(unit = "metacells", cells = sum(made$size > 0), empty = sum(made$size == 0), explained = NULL)
  metacells <- function(why) list(data = NULL, about = c(about, list(why = why)))
  if (!is.null(nuisance_design(q))) return(metacells("batches and covariates are adjusted for only in metacells"))
  genes <- match(colnames(q$x)[chosen], q$genes$gene)
  stored <- if (is.null(input$store)) sum(as.double(lengths(lapply(input$blocks, methods::slot, "x"))))
            else unclass(input$store)$values
  plan <- plan_of_cells(about$cells, length(genes), stored * length(genes) / input$p, aims, control, run)
  if (!isTRUE(cells$always)) {
    if (plan$seconds > cells_seconds) {
      return(metacells(sprintf("cells would take about %s", seconds_text(plan$seconds))))
    }
    if (40 * stored > memory_limit(run$memory)) {
      return(metacells(sprintf("cells would take about %s of memory", bytes_text(40 * stored))))
    }
  }
  there <- which(made$size > 0)
  counts <- counts_of_cells(input, there, genes, colnames(q$x)[chosen])
  size <- made$size[there]
  if (!isTRUE(cells$always)) {
    about$explained <- held_out_prediction(counts, size, made$metacell[there], aims, seed, run)
    if (about$explained[["lost"]] > 2 * about$explained[["error"]]) return(list(data = NULL, about = about))
  }
  about$unit <- "cells"
  list(data = log_counts(counts, size), about = about)
}

plan_of_cells <- function(n, genes, stored, aims, control, run) {
  count <- function(named, all) if (is.null(named)) all else if (identical(named, "all")) genes else length(named)
  regulators <- count(aims$regulators, min(genes, most_regulators))
  targets <- count(aims$targets, genes)
  plan <- regulation_plan("cells", n = n, p = genes, stored = stored, regulators = regulators, targets = targets,
                          steps = control$steps %||% 5, resamples = control$resamples, hinges = TRUE,
                          copies = control$null_copies %||% usual_copies(regulators, targets), calls = 1,
                          threads = run$threads)
  plan$seconds <- plan[[weigh_backends(run$backend, plan)$name]]
  plan
}

# A dgCMatrix of some cells and genes.
counts_of_cells <- function(input, rows, genes, names) {
  out <- if (!is.null(input$store)) memory_errors(store_sparse(input$store, as.double(rows), as.double(sort(genes))))
         else do.call(rbind, lapply(input$blocks, function(b) b[, sort(genes), drop = FALSE]))[rows, , drop = FALSE]
  out <- out[, match(genes, sort(genes)), drop = FALSE]
  dimnames(out) <- list(if (!is.null(input$row_names)) input$row_names[rows], names)
  out
}

# log2(1 + count / size factor), which leaves zeros as they are.
log_counts <- function(counts, size) {
  counts@x <- log2(1 + counts@x / size[counts@i + 1L])
  counts
}

# The share of the variance of held-out cells that is explained, on average over targets, by the five heaviest
# regulators in a network of the other cells (`cells`), and in one of the metacells of these others (`metacells`). The
# sizes of effects are learned from the other cells in either case, so that only the choice of regulators differs.
# `lost`: what cells explain less, and its standard error over targets, `error`.
held_out_prediction <- function(counts, size, metacell, aims, seed, run) {
  n <- nrow(counts)
  place <- order(draws("uniform", n, key = seed, stream = 21))
  held <- seq_len(n) %in% place[seq_len(min(n %/% 4L, held_out_most))]
  seen <- diff(counts@p) >= max(20, 0.01 * n)
  some <- function(named, most, stream) {
    candidates <- if (is.null(named) || identical(named, "all")) which(seen)
                  else intersect(match(named, colnames(counts)), which(seen))
    sort(candidates[order(draws("uniform", length(candidates), key = seed, stream = stream))][seq_len(min(
      most, length(candidates)))])
  }
  regulators <- colnames(counts)[some(aims$regulators, tried_regulators, 22)]
  targets <- colnames(counts)[some(aims$targets, tried_targets, 23)]
  if (length(regulators) < 2L || !length(targets)) return(c(cells = 0, metacells = 0, lost = 0, error = 0))
  counts <- counts[, union(regulators, targets), drop = FALSE]
  member <- function(rows) {
    shape <- c(max(metacell, 1L, na.rm = TRUE), length(rows))
    Matrix::sparseMatrix(metacell[rows], seq_along(rows), x = 1, dims = shape)
  }
  in_metacell <- which(!held & !is.na(metacell))
  sums <- as.matrix(member(in_metacell) %*% counts[in_metacell, , drop = FALSE])
  total <- as.vector(member(in_metacell) %*% size[in_metacell])
  full <- total > 0
  if (sum(full) < 4L) return(c(cells = 0, metacells = 0, lost = 0, error = 0))
  values <- list(cells = log_counts(counts[!held, , drop = FALSE], size[!held]),
                 metacells = log2(1 + sums[full, , drop = FALSE] / (total[full] / mean(total[full]))))
  learned <- which(!held)[seq(1, sum(!held), length.out = min(sum(!held), held_out_most))]
  x <- as.matrix(log_counts(counts[learned, , drop = FALSE], size[learned]))
  y <- as.matrix(log_counts(counts[held, , drop = FALSE], size[held]))
  each <- vapply(values, function(v) {
    net <- as.matrix(suppressMessages(regulation(
      v, regulators, targets, transform = "none", seed = seed, run = run,
      control = list(resamples = 40, null_copies = 0, stability = FALSE))))
    vapply(targets, function(target) explained_by(net[, target], x, y, target), 0)
  }, numeric(length(targets)))
  each <- matrix(each, ncol = 2L, dimnames = list(NULL, names(values)))
  less <- each[, "metacells"] - each[, "cells"]
  c(colMeans(each), lost = mean(less), error = if (length(less) > 1L) stats::sd(less) / sqrt(length(less)) else 0)
}

# The share of the variance of a target in y that its five heaviest regulators in x explain, by least squares.
explained_by <- function(weight, x, y, target) {
  best <- names(utils::head(sort(weight[weight > 0], decreasing = TRUE), 5L))
  fit <- stats::.lm.fit(cbind(1, x[, best, drop = FALSE]), x[, target])
  beta <- ifelse(seq_along(fit$coefficients) <= fit$rank, fit$coefficients, 0)[order(fit$pivot)]
  total <- sum((y[, target] - mean(x[, target]))^2)
  if (total > 0) 1 - sum((y[, target] - drop(cbind(1, y[, best, drop = FALSE]) %*% beta))^2) / total else 0
}

# A sentence for print, reports and the log; NULL where the network is of samples.
unit_text <- function(net) {
  a <- attr(net, "made_of")
  if (is.null(a)) return(NULL)
  paste0(sprintf("The network was inferred from %s", if (a$unit == "cells") several(a$cells, "single cell")
                                                     else "metacells"),
         if (!is.null(a$why)) sprintf(", because %s", a$why), ".",
         if (!is.null(a$explained)) {
           other <- setdiff(c("cells", "metacells"), a$unit)
           sprintf(" Its regulators explain %s of the variance of held-out cells; regulators from %s explain %s.",
                   share_text(max(0, a$explained[[a$unit]])), other, share_text(max(0, a$explained[[other]])))
         }, if (a$empty) sprintf(" %s without counts %s removed.", several(a$empty, "cell"),
                                 if (a$empty == 1) "was" else "were"))
}

sound_unit <- function(a) {
  is.null(a) || is.list(a) && is_word(a$unit, c("cells", "metacells")) && is_count(a$cells) && is_count(a$empty) &&
    (is.null(a$why) || is_word(a$why)) &&
    (is.null(a$explained) || is_numbers(unname(a$explained), 4L) &&
       identical(names(a$explained), c("cells", "metacells", "lost", "error")))
}

# The number of samples that the network of a result is of.
network_samples <- function(fit) {
  a <- attr(fit$network, "made_of")
  if (identical(a$unit, "cells")) a$cells else nrow(fit$quality$x)
}
