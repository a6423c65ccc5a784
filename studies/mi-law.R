# How far mi_rank()'s p-values are from the exact ones: against all tables with the same margins (two classes), and
# against random tables; the level under independence; and operations. Usage: Rscript mi-law.R [tables] [null tables]
# [cores]
suppressMessages(library(weft))
options(weft.progress = FALSE, weft.threads = 1L)
given <- as.double(commandArgs(TRUE))
tables <- c(given, 1e6)[1]
nulls <- c(given[-1], 1e5)[1]
cores <- c(given[-(1:2)], 1)[1]
f <- function(x) ifelse(x > 0, x * log(x), 0)

# p-values of tables (vectors of cells, level by level within a class) with these margins.
p_of <- function(cells, rows, columns) {
  class <- rep(seq_along(columns), columns)
  x <- vapply(cells, function(t) rep(rep(seq_along(rows), length(columns)), t), integer(sum(rows)))
  colnames(x) <- seq_along(cells)
  r <- mi_rank(x, class)
  r$p_value[match(seq_along(cells), r$feature)]
}

# All tables of two classes: their scores, the greatest first, and P(score or more).
all_tables <- function(rows, columns) {
  first <- as.matrix(expand.grid(lapply(rows[-1], function(m) 0:m)))
  rest <- columns[1] - rowSums(first)
  first <- cbind(rest, first)[rest >= 0 & rest <= rows[1], , drop = FALSE]
  margin <- matrix(rows, nrow(first), length(rows), byrow = TRUE)
  score <- round(rowSums(f(first) + f(margin - first)), 8)
  p <- exp(rowSums(lchoose(margin, first)) - lchoose(sum(rows), columns[1]))
  best <- order(-score)
  last <- !duplicated(score[best], fromLast = TRUE)
  list(p = cumsum(p[best])[last], cells = cbind(first, margin - first)[best[last], , drop = FALSE])
}

# Random tables: the same, with the share of tables that score as much.
random_tables <- function(rows, columns) {
  seen <- list()
  score <- numeric()
  kept <- list()
  at_once <- 5e4
  for (block in seq_len(ceiling(tables / at_once))) {
    drawn <- stats::r2dtable(at_once, rows, columns)
    s <- round(vapply(drawn, function(t) sum(f(t)), 0), 8)
    score <- c(score, s)
    best <- c(order(-s)[unique(round(exp(seq(0, log(at_once / 2), length.out = 40))))])
    kept <- c(kept, drawn[best])
    seen <- c(seen, s[best])
  }
  seen <- unlist(seen)
  once <- !duplicated(seen)
  high <- sort(score, decreasing = TRUE)
  p <- vapply(seen[once], function(s) findInterval(-s, -high), 0) / length(score)
  list(p = p, cells = lapply(kept[once], as.vector))
}

nearest <- function(p, wanted) unique(vapply(wanted, function(w) which.min(abs(log(p / w))), 0L))

compare <- function(rows, columns, exact) {
  found <- if (exact) all_tables(rows, columns) else random_tables(rows, columns)
  if (exact) found$cells <- lapply(seq_len(nrow(found$cells)), function(i) found$cells[i, ])
  wanted <- c(0.3, 0.1, 0.05, 0.01, 1e-3, 1e-4, if (!exact) 30 / tables,
              if (exact) 10^-c(6, 8, 10, 12, 15, 20, 30, 40, 60, 80, 100, 130))
  at <- nearest(found$p, wanted)
  if (exact) at <- unique(c(at, 1L))
  data.frame(rows = paste(rows, collapse = " "), classes = paste(columns, collapse = " "),
             by = if (exact) "all" else "random", p = found$p[at],
             ratio = p_of(found$cells[at], rows, columns) / found$p[at])
}

two <- list(list(c(14, 11, 9, 8, 6), c(26, 22)), list(c(60, 50, 40), c(80, 70)), list(c(100, 60, 40), c(150, 50)),
            list(c(10, 9, 9, 8, 7, 6), c(30, 19)), list(c(45, 35, 25, 15), c(70, 50)), list(c(90, 60, 40), c(180, 10)),
            list(c(300, 150, 50), c(260, 240)), list(c(40, 30, 20, 10), c(90, 10)), list(c(12, 12, 12, 12), c(24, 24)),
            list(c(20, 15, 10, 6, 4, 3), c(45, 13)), list(c(3, 3), c(4, 2)), list(c(800, 150, 50), c(700, 300)),
            list(c(900, 60, 30, 10), c(950, 50)))
more <- list(list(rep(5, 8), rep(8, 5)), list(c(10, 8, 6, 5, 4, 3, 2, 2), c(16, 12, 6, 4, 2)),
             list(rep(20, 5), rep(25, 4)), list(c(60, 20, 10, 5, 3, 2), c(70, 20, 10)),
             list(c(180, 10, 6, 4), c(150, 40, 10)), list(c(400, 50, 30, 20), c(450, 40, 10)),
             list(rep(67, 3), rep(67, 3)), list(c(20, 15, 5), c(25, 10, 5)), list(rep(4, 8), c(16, 16)),
             list(c(57, 48, 40, 33, 22), c(120, 80)), list(rep(125, 8), rep(200, 5)),
             list(c(990, 4, 3, 3), c(600, 400)), list(c(600, 300, 90, 10), c(700, 200, 90, 10)),
             list(c(7, 6, 5, 4, 3), c(9, 8, 8)),
             list(c(100, rep(3, 8)), c(62, 62)), list(rep(30, 4), c(110, 10)), list(rep(25, 8), c(190, 10)),
             list(c(4, 3, 3), c(4, 3, 3)), list(c(30, 12, 5, 2, 1), c(35, 8, 4, 2, 1)),
             list(rep(3, 19), rep(3, 19)), list(rep(3, 8), c(6, 5, 5, 4, 4)),
             list(c(12, 9, 7, 5, 3, 2, 1, 1), c(14, 11, 8, 5, 2)),
             list(c(300, 80, 15, 5), c(340, 45, 15)), list(c(9, 8, 7, 6, 5, 5), c(11, 10, 10, 9)))

# Each margin has random numbers of its own, whatever the cores.
over <- function(margins, f) {
  parallel::mclapply(margins, function(m) {
    set.seed(1)
    f(m[[1]], m[[2]])
  }, mc.cores = cores, mc.preschedule = FALSE)
}

out <- do.call(rbind, c(over(two, function(rows, columns) compare(rows, columns, TRUE)),
                        over(more, function(rows, columns) compare(rows, columns, FALSE))))
out$error <- 100 * (out$ratio - 1)
for (key in unique(paste(out$rows, out$classes, sep = " | "))) {
  one <- out[paste(out$rows, out$classes, sep = " | ") == key, ]
  cat(sprintf("%s (%s)\n  p:     %s\n  ratio: %s\n", key, one$by[1],
              paste(formatC(one$p, digits = 2, width = 8), collapse = " "),
              paste(formatC(one$ratio, digits = 2, format = "f", width = 8), collapse = " ")))
}
near <- out$p >= 1e-6
cat(sprintf("p >= 1e-6: worst ratios %.2f and %.2f; within 20 %%: %d of %d\n", min(out$ratio[near]),
            max(out$ratio[near]),
            sum(abs(log(out$ratio[near])) <= log(1.2)), sum(near)))
cat(sprintf("p < 1e-6: worst ratios %.2f and %.2f; within a factor of 2: %d of %d\n", min(out$ratio[!near]),
            max(out$ratio[!near]), sum(abs(log(out$ratio[!near])) <= log(2)), sum(!near)))

# The share of null tables with p <= .05, .01 and .001, as multiples of these, and that of mid-p at .05.
cat("\nLevel: P(p <= x) / x at x = 0.05, 0.01, 0.001; P(mid-p <= 0.05)\n")
level <- function(rows, columns) {
  drawn <- stats::r2dtable(nulls, rows, columns)
  score <- round(vapply(drawn, function(t) sum(f(t)), 0), 8)
  first <- which(!duplicated(score))
  p <- p_of(lapply(drawn[first], as.vector), rows, columns)
  at <- match(score, score[first])
  mass <- tabulate(at) / nulls
  share <- vapply(c(0.05, 0.01, 0.001), function(x) sum(mass[p <= x]) / x, 0)
  sprintf("%s | %s: %s; %.4f\n", paste(rows, collapse = " "), paste(columns, collapse = " "),
          paste(sprintf("%.2f", share), collapse = " "), sum(mass[p - mass / 2 <= 0.05]))
}
kinds <- c(two[c(4, 5, 10, 12)], more[c(1:7, 10, 13, 14, 19)], utils::tail(more, 5))
cat(unlist(over(kinds, level)), sep = "")
