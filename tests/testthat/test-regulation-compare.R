# Networks of several conditions, and how stable a network is.

conditions <- function(n, p = 12, changed = TRUE) {
  x <- regulated(sum(n), p)
  group <- rep(c("before", "after", "late")[seq_along(n)], n)
  group <- factor(group, unique(group))
  second <- group == "after"
  if (changed) {
    x[second, "g3"] <- rnorm(n[2])                          # went
    x[second, "g12"] <- rnorm(n[2], 0, 0.3) - 2 * x[second, "g11"] # was max(g11, 0) - g10
    x[second, "g7"] <- 0.3 * x[second, "g7"] + x[second, "g5"]     # appeared
  }
  list(x = x, group = group)
}

test_that("what appeared, went and turned is found, with its areas and sign", {
  withr::local_seed(21)
  d <- conditions(c(60, 50))
  both <- regulation(d$x, compare = d$group, permutations = 39, seed = 1, control = list(resamples = 60))
  expect_s3_class(both, "weft_comparison")
  expect_lte(both$p_value, 0.05)
  called <- as.data.frame(both, fdr = 0.05)
  at <- paste(called$from, called$to)
  expect_true(all(c("g5 g7", "g2 g3") %in% at))
  expect_identical(called$change[match(c("g5 g7", "g2 g3"), at)], c("appeared", "went"))
  expect_identical(called$effect, called$area_after - called$area_before)
  edges <- as.data.frame(both)
  signed <- edges[c("area_before", "area_after")] * edges[c("sign_before", "sign_after")]
  expect_identical(edges$change == "turned",
                   !is.na(rowSums(signed)) & do.call(pmin, signed) <= -0.25 & do.call(pmax, signed) >= 0.25)
  expect_true(any(edges$change[edges$from == "g11" & edges$to == "g12"] == "turned"))
  expect_false(is.unsorted(edges$q_value))
  expect_true(all(edges$q_value >= both$p_value & edges$p_value >= 1 / 40))
  # a condition's network is that of its samples alone, with halves of the smaller condition's size
  first <- d$x[d$group == "after", ]
  alone <- regulation(first, seed = 1, control = list(resamples = 60, steps = attr(both$networks$after, "steps")))
  expect_identical(as.matrix(both$networks$after), as.matrix(alone))
  expect_identical(as.data.frame(both$networks$after), as.data.frame(alone))
  area <- as.data.frame(alone)
  there <- edges[edges$area_after > 0, ]
  expect_equal(there$area_after,
               area$area[match(paste(there$from, there$to), paste(area$from, area$to))])
})

test_that("a comparison depends on the seed alone, and levels of genes do not matter", {
  withr::local_seed(22)
  d <- conditions(c(20, 24, 16))
  run <- function(x = d$x, group = d$group, ...) {
    as.data.frame(call_with(regulation, list(x, compare = group, permutations = 5, seed = 2, ...,
                                             control = list(resamples = 10))))
  }
  edges <- run()
  expect_identical(names(edges)[4:10], c("effect", "area_before", "area_after", "area_late", "sign_before",
                                         "sign_after", "sign_late"))
  expect_identical(unique(edges$change %in% c("changed", "turned")), TRUE)
  expect_equal(edges$effect, do.call(pmax, edges[5:7]) - do.call(pmin, edges[5:7]))
  expect_identical(run(threads = 1), run(threads = 2))
  expect_identical(run(devices = NULL, progress = function(done, total) NULL), edges)
  shuffled <- sample(60)
  expect_identical(run(d$x[shuffled, ], d$group[shuffled]), edges)
  expect_identical(run(as.data.frame(d$x), as.character(d$group))$p_value, run(d$x, as.character(d$group))$p_value)
  # places within conditions: each gene may have other units in each of them
  placed <- weft:::places_in_groups(d$x, d$group, weft:::run_control())
  moved <- d$x
  moved[d$group == "late", ] <- 4 * moved[d$group == "late", ]
  expect_identical(weft:::places_in_groups(moved, d$group, weft:::run_control()), placed)
})

test_that("where conditions do not differ, p-values are even and few sets have edges", {
  withr::local_seed(23)
  runs <- lapply(1:40, function(k) {
    n <- if (k %% 2) c(16, 16) else c(14, 30)
    d <- conditions(n, p = 9, changed = FALSE)
    d$x[d$group == "after", 1:4] <- d$x[d$group == "after", 1:4] + k %% 3 # higher, no other network
    both <- regulation(d$x, compare = d$group, permutations = 19, seed = k,
                       control = list(null_copies = 0, resamples = 20))
    list(overall = both$p_value, p = both$edges$p_value, any = any(both$edges$q_value <= 0.05))
  })
  overall <- vapply(runs, `[[`, 0, "overall")
  expect_true(all(abs(overall * 20 - round(overall * 20)) < 1e-9))
  expect_lte(sum(vapply(runs, `[[`, NA, "any")), 6) # of 40 at .05: more with probability .003
  expect_gt(mean(overall), 0.5 - 3.3 * sqrt(1 / 12 / 40))
  p <- unlist(lapply(runs, `[[`, "p"))
  expect_lt(mean(p <= 0.05), 0.08)
  expect_gt(mean(p), 0.45)
})

test_that("one condition that is noisier is no other network", {
  runs <- vapply(1:12, function(seed) {
    e <- weft_example("expression", n = 80, p = 20, seed = seed, batch = 0, missing = 0, outliers = 0, spoilt = FALSE)
    group <- rep(c("quiet", "noisy"), each = 40)
    spread <- rep(apply(e$x, 2, stats::sd), each = 40)
    e$x[group == "noisy", ] <- e$x[group == "noisy", ] + spread * weft:::draws("normal", 800, key = seed)
    both <- regulation(e$x, compare = group, permutations = 19, seed = seed,
                       control = list(null_copies = 0, resamples = 20))
    c(both$p_value <= 0.05, !is.null(both$noise))
  }, logical(2))
  expect_lte(sum(runs[1, ]), 3) # of 12 at .05: more with probability .002
  expect_gte(sum(runs[2, ]), 9)
})

test_that("noise is added until correlations are as strong as in the weakest condition", {
  withr::local_seed(31)
  f <- matrix(rnorm(400), 200)
  noise <- matrix(rnorm(200 * 12), 200) * rep(c(1, 2), each = 100)
  x <- f %*% matrix(rnorm(24), 2) + noise
  groups <- factor(rep(c("quiet", "noisy"), each = 100))
  control <- weft:::run_control()
  placed <- weft:::places_in_groups(x, groups, control)
  how <- list(genes = list(regulators = 0:11, targets = 0:11), key = c(0, 5), host = control)
  equal <- weft:::equal_noise(x, placed, groups, how)
  expect_identical(equal$about$weakest, "noisy")
  expect_identical(unname(equal$about$factor["noisy"]), 1)
  expect_identical(equal$placed[101:200, ], placed[101:200, ])
  strength <- function(x) mean(abs(stats::cor(x)[upper.tri(diag(12))]))
  expect_gt(strength(placed[1:100, ]), 1.3 * strength(placed[101:200, ]))
  expect_lt(abs(strength(equal$placed[1:100, ]) / strength(placed[101:200, ]) - 1), 0.12)
  # so much of the excess as is needed, or the same more for all
  pairs <- weft:::strong_pairs(placed, groups, how$genes)
  left <- function(share) {
    own <- colMeans(pairs$products[1:100, ]) / pairs$overall
    stats::median(own / sqrt((1 + share[pairs$first]) * (1 + share[pairs$second])))
  }
  for (excess in list(rep(50, 12), rep(0, 12), 1:12 / 40)) {
    expect_equal(left(weft:::noise_share(pairs, 1:100, 0.8, excess)), 0.8, tolerance = 1e-3)
  }
  expect_null(weft:::equal_noise(x, placed, factor(rep(1:2, 100)), how)$about)
  both <- regulation(x, compare = groups, permutations = 9, seed = 1, control = list(resamples = 10, null_copies = 0))
  expect_output(print(both), "Correlations are weaker in noisy")
  expect_identical(as.matrix(both$networks$noisy),
                   as.matrix(regulation(x, compare = groups, permutations = 1, seed = 1,
                                        control = list(resamples = 10, null_copies = 0))$networks$noisy))
  two <- weft:::changed_in_both(list(pair = 1:3, p_value = c(0.1, 0.2, 0.3), q_value = c(0.1, 0.5, 0.6), overall = 0.1),
                                list(pair = c(1L, 3L), p_value = c(0.2, 0.1), q_value = c(0.05, 0.9), overall = 0.4))
  expect_identical(two, list(pair = 1:3, p_value = c(0.2, 1, 0.3), q_value = c(0.1, 1, 0.9), overall = 0.4))
  both$noise$factor <- 2
  expect_error(print(both), class = "weft_error_input")
})

test_that("tests of changes are permutation tests", {
  world <- function(pair, change) list(pair = pair, change = change)
  worlds <- list(world(c(3, 8), c(0.5, 0.2)), world(c(3, 5), c(0.6, 0.1)), world(8, 0.2), world(numeric(), numeric()))
  tested <- weft:::test_changes(worlds)
  expect_identical(tested$pair, c(3, 5, 8))
  expect_equal(tested$p_value, c(2, 4, 2) / 4) # pair 3: .5 of .5 .6 0 0; pair 5: 0; pair 8: .2 of .2 0 .2 0
  pooled <- c(2, 12, 4) / 12
  rates <- vapply(list(pooled, c(1, 5, 12) / 12, c(12, 12, 4) / 12, c(1, 1, 1)),
                  function(p) min(stats::p.adjust(p, "BH")), 0)
  expect_equal(tested$overall, mean(rates <= rates[1]))
  expect_equal(tested$q_value, pmax(stats::p.adjust(pooled, "BH"), tested$overall))
  nothing <- weft:::test_changes(list(world(numeric(), numeric()), world(numeric(), numeric())))
  expect_identical(nothing$overall, 1)
  expect_length(nothing$q_value, 0)
})

test_that("hard conditions", {
  withr::local_seed(24)
  constant <- matrix(1, 20, 3)
  none <- regulation(constant, compare = rep(1:2, 10), permutations = 3, seed = 1, control = list(resamples = 4))
  expect_identical(nrow(none$edges), 0L)
  expect_identical(none$p_value, 1)
  expect_output(print(none), "do not differ")
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_identical(plot(none), none)
  expect_identical(plot(none, edges = 5), none)
  x <- regulated(20, 4)
  x[, 4] <- sample(c(-Inf, 0, Inf), 20, TRUE)
  group <- factor(rep(c("a b", "c\"d"), 10), c("unused", "a b", "c\"d"))
  odd <- regulation(x, compare = group, permutations = 3, seed = 1, control = list(resamples = 4))
  expect_true(all(c("area_a b", "area_c\"d") %in% names(odd$edges)))
  one <- regulation(x, regulators = 1, targets = 2, compare = rep(1:2, 10), permutations = 3, seed = 1,
                    control = list(resamples = 4))
  expect_lte(nrow(one$edges), 1)
  expect_error(regulation(x, compare = 1:20), class = "weft_error_input", regexp = "at least 8")
  expect_error(regulation(x, compare = rep(1, 20)), class = "weft_error_input", regexp = "two conditions")
  expect_error(regulation(x, compare = c(NA, rep(1:2, 10)[-1])), class = "weft_error_input", regexp = "missing")
  expect_error(regulation(x, compare = 1:3), class = "weft_error_input", regexp = "one value")
  expect_error(regulation(x, compare = rep(1:2, 10), permutations = 0), class = "weft_error_input")
  expect_error(regulation(x, control = list(stability = "yes")), class = "weft_error_input")
  expect_error(regulation(), class = "weft_error_input", regexp = "x")
})

test_that("a comparison is one for tables, files, other packages and pictures", {
  withr::local_seed(25)
  d <- conditions(c(40, 40))
  both <- regulation(d$x, compare = d$group, permutations = 19, seed = 1, control = list(resamples = 20))
  expect_output(print(both, n = 2), "before \\(40 samples\\) and after \\(40 samples\\)")
  s <- summary(both)
  expect_identical(sum(s$changes), s$changed)
  expect_identical(summary(both, fdr = 1)$changed, nrow(both$edges))
  expect_identical(glance(both)$changed, s$changed)
  expect_identical(tidy(both)$estimate, as.data.frame(both)$effect)
  tables <- network_tables(both)
  expect_true(tables$directed)
  expect_identical(tables$edges$from, both$edges$from)
  for (format in c("graphml", "sif", "csv")) {
    file <- withr::local_tempfile(fileext = paste0(".", format))
    expect_no_warning(write_network(both, file))
    lines <- readLines(file)
    if (format == "graphml") expect_true(any(grepl("edgedefault=\"directed\"", lines)))
    first <- paste(both$edges[1, c("from", "change", "to")], collapse = "\t")
    if (format == "sif") expect_identical(lines[1], first)
    if (format == "csv") expect_equal(utils::read.csv(file)$q_value, both$edges$q_value)
  }
  if (requireNamespace("igraph", quietly = TRUE)) expect_equal(igraph::ecount(as_igraph(both)), nrow(both$edges))
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_identical(plot(both), both)
  expect_identical(plot(both, edges = 10, shared = 3, labels = FALSE), both)
  damaged <- both
  damaged$edges$change <- "exploded"
  for (use in list(print, as.data.frame, plot, network_tables)) expect_error(use(damaged), class = "weft_error_input")
})

test_that("stability is the overlap of the heaviest edges without some samples", {
  withr::local_seed(26)
  x <- regulated(60, 15)
  net <- regulation(x, seed = 3, control = list(resamples = 40))
  s <- attr(net, "stability")
  expect_identical(s[-1], list(top = 15L, left_out = 1L, samples = 60L, runs = 3L))
  without <- .Call(weft:::C_weft_regulation_orders, x, list(count = 3, purpose = 1, key = c(0, 3)),
                   weft:::run_control())[1, ] + 1L
  heavy <- function(net) {
    e <- as.data.frame(net)
    paste(e$from, e$to)[1:15]
  }
  overlap <- vapply(without, function(i) {
    less <- regulation(x[-i, ], seed = 3, control = list(resamples = 40, null_copies = 0, steps = attr(net, "steps")))
    mean(heavy(net) %in% heavy(less))
  }, 0)
  expect_equal(s$overlap, mean(overlap))
  expect_output(print(net), sprintf("Without one of 60 samples, %.0f %% of the 15 strongest edges", 100 * s$overlap))
  expect_null(attr(regulation(x, seed = 3, control = list(resamples = 4, null_copies = 0)), "stability"))
  expect_null(attr(regulation(x, seed = 3, control = list(resamples = 4, stability = FALSE)), "stability"))
  expect_false(is.null(attr(regulation(x, seed = 3,
                                       control = list(resamples = 4, null_copies = 0, stability = TRUE)), "stability")))
  expect_null(attr(regulation(x[1:4, ], seed = 3, control = list(resamples = 4, stability = TRUE)), "stability"))
  many <- regulation(regulated(300, 4), seed = 1, control = list(resamples = 4, stability = TRUE))
  expect_identical(attr(many, "stability")$left_out, 3L)
  expect_match(weft:::stability_text(many), "Without 3 of 300 samples")
  none <- regulation(matrix(1, 9, 3), seed = 1, control = list(resamples = 4, stability = TRUE))
  expect_null(weft:::stability_text(none))
})

test_that("fewer features are chosen where samples or regulators are few", {
  steps_of <- function(m, regulators) mapply(weft:::usual_steps, m, regulators)
  expect_identical(steps_of(c(2, 8, 12, 16, 31, 32, 50, 64, 6e4), 100), c(2, 2, 2, 3, 3, 4, 4, 5, 5))
  expect_identical(steps_of(500, c(1, 2, 3, 4, 8, 9)), c(1, 1, 2, 2, 4, 5))
  withr::local_seed(27)
  x <- regulated(20, 5)
  expect_identical(attr(regulation(x, seed = 1, control = list(resamples = 4)), "steps"), 2)
  expect_identical(attr(regulation(x, 1:2, seed = 1, control = list(resamples = 4)), "steps"), 1)
  expect_identical(as.matrix(regulation(x, seed = 1, control = list(resamples = 4))),
                   as.matrix(regulation(x, seed = 1, control = list(resamples = 4, steps = 2))))
})
