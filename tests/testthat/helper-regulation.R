# Directed networks in plain R, from the formulas of the help page; shares no code with the package. And the room's rows
# of the table in test-twins.R.

reference_scores <- function(x, by_rank = min(1, nrow(x) / 100)) {
  n <- nrow(x)
  most <- min(2047, floor(sqrt((2^31 - 1) / (n %/% 2))))
  apply(x, 2, function(v) {
    z <- stats::qnorm((rank(v) - 0.5) / n)
    if (length(unique(v)) == 1) return(integer(n))
    centre <- stats::median(v)
    unit <- stats::median(abs(v - centre)) / stats::qnorm(0.75)
    if (by_rank < 1 && is.finite(unit) && unit > 0) {
      reach <- stats::qnorm(1 - 0.5 / n)
      z <- by_rank * z + (1 - by_rank) * pmax(-reach, pmin(reach, (v - centre) / unit))
    }
    total <- 0
    for (one in z) total <- total + one # one after the other: mean() would round otherwise
    z <- z - total / n
    as.integer(round(z * (most / max(abs(z)))))
  })
}

# Forward selection for one target: 1 + kind * regulators + regulator, negative where the effect is. f: scores of the
# regulators; y: of the target; own: which regulator it is, or 0.
reference_choice <- function(f, y, own, steps, hinges, favour) {
  m <- nrow(f)
  count <- ncol(f)
  parts <- if (hinges) list(pmax(f, 0), pmin(f, 0)) else list(f)
  scaled <- function(a, b) m * c(crossprod(a, b)) - colSums(a) * sum(b)
  whole <- function(v) if (hinges) v[[1]] + v[[2]] else v[[1]]
  kinds <- function(v) if (hinges) c(list(whole(v)), v) else v
  features <- if (hinges) list(f, parts[[1]], parts[[2]]) else list(f)
  d <- lapply(features, function(a) m * colSums(a * a) - colSums(a) * colSums(a))
  least <- unlist(d) * 1e-3
  constant <- unlist(d) == 0
  r <- lapply(parts, scaled, y)
  directions <- list()
  out <- integer(steps)
  barred <- rep(seq_len(count) == own, length(features))
  for (s in seq_len(steps)) {
    gain <- unlist(kinds(r))^2 / unlist(d) * favour
    gain[barred | constant | unlist(d) < least] <- -1
    best <- which.max(gain)
    if (gain[best] <= 0) break
    out[s] <- if (unlist(kinds(r))[best] > 0) best else -best
    j <- (best - 1) %% count + 1
    root <- sqrt(unlist(d)[best])
    share <- unlist(kinds(r))[best] / root
    chosen <- do.call(cbind, features)[, best]
    q <- lapply(parts, scaled, chosen)
    for (earlier in directions) q <- Map(function(a, b) a - b * unlist(kinds(earlier))[best], q, earlier)
    q <- lapply(q, `*`, 1 / root)
    r <- Map(function(a, b) a - b * share, r, q)
    d <- Map(function(a, b) a - b * b, d, kinds(q))
    directions <- c(directions, list(q))
    barred[(seq_along(features) - 1) * count + j] <- TRUE
  }
  out
}

# steps x targets x (1 + copies) x halves. regulators, targets: from 0, as rows and partner are. favour: 1, or
# regulators x (1 + copies).
reference_choices <- function(scores, regulators, targets, rows, partner, steps, hinges, favour = 1) {
  favour <- matrix(favour, length(regulators), 1 + ncol(partner))
  out <- array(0L, c(steps, length(targets), 1L + ncol(partner), ncol(rows)))
  own <- match(targets, regulators, 0L)
  for (half in seq_len(ncol(rows))) for (world in seq_len(1L + ncol(partner))) for (t in seq_along(targets)) {
    here <- rows[, half] + 1L
    there <- if (world == 1L) here else partner[here, world - 1L] + 1L
    out[, t, world, half] <- reference_choice(scores[here, regulators + 1L, drop = FALSE],
                                              scores[there, targets[t] + 1L], own[t], steps,
                                              hinges, favour[, world])
  }
  out
}

# The areas of one world, regulators x targets.
reference_area <- function(choices, regulators, world = 1L) {
  steps <- dim(choices)[1]
  halves <- dim(choices)[4]
  area <- matrix(0, regulators, dim(choices)[2])
  for (half in seq_len(halves)) for (t in seq_len(ncol(area))) for (s in seq_len(steps)) {
    choice <- abs(choices[s, t, world, half])
    if (choice == 0) next
    j <- (choice - 1) %% regulators + 1
    area[j, t] <- area[j, t] + (steps - s + 1) / steps
  }
  area / halves
}

# The weights of areas (regulators x targets, numbers of genes from 1). scores: of all genes.
reference_weights <- function(area, scores, regulators = seq_len(nrow(area)), targets = seq_len(ncol(area)),
                              named = FALSE) {
  n <- nrow(scores)
  ramp <- function(v, from, to) min(1, max(0, (v - from) / (to - from)))
  r <- suppressWarnings(stats::cor(scores))
  varied <- which(apply(scores, 2, stats::sd) > 0)
  r[is.na(r)] <- 0
  diag(r) <- as.numeric(seq_len(ncol(r)) %in% varied)
  mean_square <- mean(r[varied, varied][upper.tri(diag(length(varied)))]^2)
  share <- ramp(mean_square - 1 / (n - 1) - 0.8 / length(varied), 0.06, 0.1)
  standing <- if (named) rowMeans(area) else apply(area, 1, stats::var)
  standing <- standing / max(standing)
  mixed <- area
  if (!named) {
    both <- intersect(regulators, targets)
    forth <- area[match(both, regulators), match(both, targets)]
    off <- diag(length(both)) == 0
    alike <- if (length(both) > 2) stats::cor(forth[off], t(forth)[off]) else 0
    share <- max(share, ramp(alike, 0.75, 0.85))
    back <- 0 * area
    back[match(both, regulators), match(both, targets)] <- t(forth)
    mixed <- (area + share * back) / (1 + share)
  }
  if (share == 0) return(area * standing)
  ridge <- sum(r^2) / length(varied) * min(1, length(varied) / n)
  weighed <- r %*% solve(r + diag(ridge, nrow(r)))
  own <- sqrt(pmax(diag(weighed), 0))
  own[own < 1e-6] <- 1
  squared <- (weighed / own / rep(own, each = length(own)))[regulators, targets]^2
  related <- -0.5 * log(1 - pmin(squared, 1 - 1e-12))
  related[outer(regulators, targets, `==`)] <- NA
  z <- function(m) {
    deviation <- apply(m, 1, stats::sd, na.rm = TRUE)
    out <- (m - rowMeans(m, na.rm = TRUE)) / deviation
    out[is.na(deviation) | deviation < 1e-12, ] <- 0
    out
  }
  squares <- z(related) * abs(z(related)) + t(z(t(related)) * abs(z(t(related))))
  distance <- sign(squares) * sqrt(abs(squares))
  weight <- ((1 - share) * mixed + share * (0.5 + 0.5 * distance / (3 + abs(distance)))) * standing^(1 - share)
  ifelse(area > 0, weight, 0)
}

# Samples of a chain and some noise; the first columns regulate.
regulated <- function(n, p) {
  x <- matrix(stats::rnorm(n * p), n, dimnames = list(NULL, sprintf("g%d", seq_len(p))))
  for (j in seq_len(p)[-1]) if (j %% 3 == 0) x[, j] <- 0.4 * x[, j] + pmax(x[, j - 1], 0) - (j > 3) * x[, j - 2]
  x
}

regulation_samples <- function(x, resamples, copies, key = c(0, 1), half = nrow(x) %/% 2L) {
  plan <- list(half = half, pairs = resamples / 2, copies = copies, key = key)
  .Call(weft:::C_weft_regulation_halves, x, plan, weft:::run_control())
}

regulation_select <- function(scores, regulators, targets, samples, hinges, steps, control = weft:::run_control(),
                              favour = 1) {
  genes <- list(regulators = as.integer(regulators), targets = as.integer(targets),
                favour = matrix(favour, length(regulators), 1 + ncol(samples$partner)))
  plan <- list(nonlinear = hinges, steps = steps)
  .Call(weft:::C_weft_regulation_select, scores, genes, samples, plan, control)
}

twins_regulation <- function() {
  data <- function(n, p) {
    x <- regulated(n, p)
    x[, p] <- 1
    x[, p - 1] <- x[, 1]
    x[, 2] <- round(x[, 2])
    x
  }
  run <- function(x, ...) {
    net <- call_with(regulation, list(x, seed = 1, ...))
    list(as.matrix(net), attr(net, "edges"))
  }
  list(
    "regulation" = list(tolerance = 0, work = function(backend) run(data(sample(8:90, 1), sample(4:150, 1)),
                                                                    resamples = 6, backend = backend)),
    "regulation, some regulators and targets" = list(tolerance = 0, work = function(backend) {
      p <- sample(20:200, 1)
      run(data(sample(8:200, 1), p), regulators = sample(p, sample(15, 1)), targets = sample(p, sample(19, 1)),
          null_copies = 2, steps = 8, resamples = 4, backend = backend)
    }),
    "regulation, linear" = list(tolerance = 0, work = function(backend) {
      run(data(sample(8:90, 1), sample(4:300, 1)), resamples = 4, nonlinear = FALSE, steps = 3, backend = backend)
    }),
    "regulation, sparse cells" = list(tolerance = 0, work = function(backend) {
      n <- sample(1000:1400, 1)
      x <- data(n, sample(c(5, 40, 90), 1))
      x <- Matrix::Matrix(pmax(round(4 * x - sample(0:4, 1)), 0), sparse = TRUE)
      regulators <- sample(ncol(x), sample(ncol(x), 1))
      lapply(c(TRUE, FALSE), function(nonlinear) run(x, transform = "counts", regulators = regulators, null_copies = 2,
                                                     resamples = 4, nonlinear = nonlinear, backend = backend))
    }),
    "regulation, many steps" = list(tolerance = 0, work = function(backend) {
      x <- data(sample(30:90, 1), sample(50:90, 1))
      lapply(c(TRUE, FALSE), function(nonlinear) lapply(c(sample(6:9, 1), sample(10:32, 1)), function(steps)
        run(x, targets = 1:9, steps = steps, nonlinear = nonlinear, resamples = 2, backend = backend)))
    }),
    "regulation, many samples" = list(tolerance = 0, work = function(backend) {
      run(data(sample(3000:5000, 1), 30), resamples = 4, backend = backend)
    })
  )
}
