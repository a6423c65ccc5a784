# Noise and prior experiments in the manner of figures 9 to 11 of Wang, Zhang, Qian and Yuan: 20-node networks, 1,000
# rows.
#
# Their priors were set from the truth at the edges that the learner had got wrong. Here a prior is drawn before any
# learning and without looking at it: a source names a random half of all ordered pairs, and is right about each of them
# with probability `reliability`; what it says becomes 0.5 + strength or 0.5 - strength. So a wrong entry hurts as a
# right one helps.
#
#   WEFT_BENCH_OUT   a folder for the figures; the default is the working directory's demo-output.
library(weft)

out <- Sys.getenv("WEFT_BENCH_OUT", "demo-output")
dir.create(out, showWarnings = FALSE, recursive = TRUE)
nodes <- paste0("v", 1:20)

random_network <- function() {
  dag <- matrix(0, 20, 20, dimnames = list(nodes, nodes))
  order <- sample(20)
  for (k in 2:20) {
    parents <- order[sample.int(k - 1, min(k - 1, sample(0:3, 1)))]
    dag[parents, order[k]] <- 1
  }
  dag
}

# Two states; each configuration of the parents has its own probability, drawn from beta(1/2, 1/2).
simulate <- function(dag, n) {
  x <- matrix(0L, n, 20, dimnames = list(NULL, nodes))
  left <- nodes
  while (length(left)) {
    ready <- left[colSums(dag[left, left, drop = FALSE]) == 0][1]
    parents <- nodes[dag[, ready] == 1]
    configuration <- if (length(parents)) x[, parents, drop = FALSE] %*% 2^(seq_along(parents) - 1) else rep(0, n)
    x[, ready] <- as.integer(stats::runif(n) < stats::rbeta(2^length(parents), 0.5, 0.5)[configuration + 1])
    left <- setdiff(left, ready)
  }
  x
}

as_states <- function(x) as.data.frame(lapply(as.data.frame(x), factor, levels = 0:1))

# What the source says: 1 "edge", -1 "no edge", 0 nothing; [from, to].
draw_source <- function(dag, reliability) {
  said <- matrix(0, 20, 20)
  pairs <- which(row(dag) != col(dag))
  named <- sample(pairs, length(pairs) / 2)
  right <- stats::runif(length(named)) < reliability
  said[named] <- ifelse(xor(dag[named] == 1, !right), 1, -1)
  said
}

# The interface matrix has children in its rows.
interface <- function(source, strength) matrix(0.5 + strength * t(source), 20, dimnames = list(nodes, nodes))

learn <- function(x, iterations, prior = NULL) {
  bn_learn(as_states(x), 4, prior = prior, iterations = iterations, chains = 2, seed = 1)
}

set.seed(11)
repeats <- 10
strengths <- c(0, 0.1, 0.15, 0.2, 0.25, 0.3)
reliabilities <- c(0.6, 0.75, 0.9)
cases <- lapply(seq_len(repeats), function(k) {
  dag <- random_network()
  list(dag = dag, x = simulate(dag, 1000), sources = lapply(reliabilities, function(r) draw_source(dag, r)))
})

prior_points <- function(iterations) {
  grid <- expand.grid(strength = strengths, reliability = seq_along(reliabilities))
  rates <- t(mapply(function(strength, r) {
    rowMeans(vapply(cases, function(case) {
      unlist(bn_compare(learn(case$x, iterations, interface(case$sources[[r]], strength)), case$dag)[c("tpr", "fpr")])
    }, double(2)))
  }, grid$strength, grid$reliability))
  data.frame(iterations = iterations, reliability = reliabilities[grid$reliability], strength = grid$strength, rates)
}

rates_of_noise <- c(0, 0.01, 0.05, 0.06, 0.07, 0.08, 0.1, 0.11, 0.13, 0.15)
noise_points <- data.frame(noise = rates_of_noise, t(vapply(rates_of_noise, function(rate) {
  rowMeans(vapply(cases, function(case) {
    flipped <- ifelse(stats::runif(length(case$x)) < rate, 1L - case$x, case$x)
    dim(flipped) <- dim(case$x)
    colnames(flipped) <- nodes
    unlist(bn_compare(learn(flipped, 10000), case$dag)[c("tpr", "fpr", "skeleton_tpr", "skeleton_fpr")])
  }, double(4)))
}, double(4))))

priors <- rbind(prior_points(10000), prior_points(1000))
print(format(priors, digits = 3), row.names = FALSE)
print(format(noise_points, digits = 3), row.names = FALSE)

grDevices::png(file.path(out, "bn-priors.png"), 1300, 460, res = 110)
graphics::par(mfrow = c(1, 3), mar = c(4.2, 4.2, 2.6, 0.8))
room <- function(x) range(x) + c(0, 0.12 * diff(range(x))) # for the labels on the right
shades <- c("#9ecae1", "#4292c6", "#084594")
for (iterations in c(10000, 1000)) {
  shown <- priors[priors$iterations == iterations, ]
  graphics::plot(shown$fpr, shown$tpr, type = "n", xlim = room(shown$fpr), xlab = "false positive rate",
                 ylab = "true positive rate", main = sprintf("Priors, %s steps", format(iterations, big.mark = ",")))
  for (r in seq_along(reliabilities)) {
    one <- shown[shown$reliability == reliabilities[r], ]
    graphics::lines(one$fpr, one$tpr, type = "b", pch = 19, col = shades[r])
    graphics::text(one$fpr, one$tpr, one$strength, pos = 4, cex = 0.7)
  }
  graphics::legend("right", sprintf("source right %.0f%%", 100 * reliabilities), pch = 19, col = shades, bty = "n",
                   cex = 0.8)
}
graphics::plot(noise_points$fpr, noise_points$tpr, type = "b", pch = 19, col = shades[2], xlim = room(noise_points$fpr),
               xlab = "false positive rate", ylab = "true positive rate", main = "Flipped values")
graphics::text(noise_points$fpr, noise_points$tpr, noise_points$noise, pos = 4, cex = 0.7)
invisible(grDevices::dev.off())
