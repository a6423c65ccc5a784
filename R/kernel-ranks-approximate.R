# Kernel sums over ranks by samples and by random Fourier features: what one rank would draw from the references of
# all, in the order of the ranks, so that equal seeds give the same sums to rounding however many ranks there are.
# Batches are drawn 32 at a time by all ranks together, as long as one of them has a query whose bound does not hold
# yet; each looks at its own queries.

approximate_over_ranks <- function(problem, method) {
  cpu_only(problem$backend, "Approximations by samples, features and reduced sets run")
  if (problem$size$n == 0) return(sum_over_ranks(share_tolerance(problem), "auto"))
  ways <- list(montecarlo = samples_over_ranks, features = features_over_ranks, exact = sum_missed)
  out <- kernel_approximate(problem, method, split_weights(problem, negative = problem$negative), ways)
  out$reason <- sprintf("%d ranks; %s", ranks$me$size, out$reason)
  out
}

together <- 32L

# sum_by_batches() on every rank. `draw(first)`: this rank's part of the batches from the first on; `join(parts)`: the
# batches, of all parts; `batch(batches, k, open)`: the k-th of them for some queries.
batches_over_ranks <- function(task, draw, join, batch, most) {
  drawn <- 0
  batches <- NULL
  next_ones <- function(needed) {
    all <- ranks_gather(list(needed = needed, part = draw(drawn + 1)), task$problem$control)
    drawn <<- drawn + together
    batches <<- join(lapply(all, `[[`, "part"))
    any(vapply(all, `[[`, NA, "needed"))
  }
  out <- sum_by_batches(task, function(b, open) {
    if (b > drawn) next_ones(TRUE)
    batch(batches, b - (drawn - together), open)
  }, most)
  while (next_ones(FALSE)) NULL # others go on
  out
}

# Exact sums of the queries whose bound no batches keep; all ranks come here.
sum_missed <- function(task, missed) {
  p <- task$problem
  p$size$nq <- ranks_sum(sum(missed))
  if (p$size$nq == 0) return(NULL)
  p$query <- p$query[missed, , drop = FALSE]
  p$weights <- task$w
  p$m <- ncol(task$w)
  p$total <- ranks_sum(colSums(task$w))
  p$rel_error <- p$abs_error <- 0
  p$self <- p$log <- FALSE
  sum_over_ranks(share_tolerance(p), "auto")$sum
}

samples_over_ranks <- function(task, size = 256) {
  p <- task$problem
  w <- task$w
  me <- ranks$me$rank + 1L
  total <- ranks_sum(colSums(w))
  share <- rowSums(w / rep(ifelse(total > 0, total, 1), each = nrow(w)))
  of_ranks <- unlist(ranks_gather(sum(share)))
  if (sum(of_ranks) == 0) {
    nq <- nrow(p$query)
    return(list(sum = matrix(0, nq, ncol(w)), missed = logical(nq), work = 0, note = "no weights"))
  }
  share <- share / sum(of_ranks)
  to <- cumsum(of_ranks) / sum(of_ranks) # where the ranks' shares end
  reach <- cumsum(share) + if (me > 1L) to[me - 1L] else 0
  last <- max(which(share > 0), 0)
  task$w_zero <- function(m, rows) matrix(total == 0, rows, m, byrow = TRUE)
  draw <- function(first) {
    u <- draws("uniform", together * size, key = p$key, stream = 1, first = (first - 1) * size)
    at <- which(pmin(findInterval(u, to) + 1L, max(which(of_ranks > 0))) == me)
    drawn <- pmin(findInterval(u[at], reach) + 1L, last)
    weights <- w[drawn, , drop = FALSE] / (share[drawn] * size)
    list(at = at, columns = rbind(t(p$reference[drawn, , drop = FALSE]), t(weights)))
  }
  join <- function(parts) {
    columns <- matrix(0, p$d + ncol(w), together * size)
    for (part in parts) columns[, part$at] <- part$columns
    columns
  }
  batch <- function(columns, k, open) {
    columns <- columns[, (k - 1) * size + seq_len(size), drop = FALSE]
    task$problem$reference <- t(columns[seq_len(p$d), , drop = FALSE])
    exact_parts(task, open, w = t(columns[-seq_len(p$d), , drop = FALSE]))
  }
  out <- batches_over_ranks(task, draw, join, batch, max(32, floor(p$size$n / (2 * size))))
  c(out, list(work = out$batches * size * nrow(p$query), note = sprintf("%d samples", out$batches * size)))
}

features_over_ranks <- function(task, size = 64) {
  p <- task$problem
  d <- p$d
  w <- task$w
  nothing <- ranks_sum(colSums(w)) == 0
  task$w_zero <- function(m, rows) matrix(nothing, rows, m, byrow = TRUE)
  q <- t(native_points(p$query, p)$x) / p$bandwidth$h
  x <- t(native_points(p$reference, p)$x) / p$bandwidth$h
  centre <- ranks_sum(colSums(x)) / max(p$size$n, 1)
  q <- q - rep(centre, each = nrow(q))
  x <- x - rep(centre, each = nrow(x))
  omega_of <- function(b) spectral_draws(p$kernel, d, size, p$key, b)
  first <- 0
  draw <- function(from) {
    first <<- from
    lapply(seq.int(from, length.out = together), function(b) {
      phase <- x %*% omega_of(b)
      rbind(crossprod(cos(phase), w), crossprod(sin(phase), w))
    })
  }
  join <- function(parts) Reduce(function(a, b) Map(`+`, a, b), parts)
  batch <- function(sums, k, open) {
    phase <- q[open, , drop = FALSE] %*% omega_of(first + k - 1)
    cbind(cos(phase), sin(phase)) %*% sums[[k]] / size
  }
  pair_work <- kernel_work(p$kernel, d, ncol(w))[["pairs"]]
  most <- max(32, floor(p$size$nq * p$size$n * pair_work / ((p$size$nq + p$size$n) * size * (d + 80))))
  out <- batches_over_ranks(task, draw, join, batch, min(most, 4096))
  c(out, list(work = 0, note = sprintf("%d frequencies", out$batches * size)))
}
