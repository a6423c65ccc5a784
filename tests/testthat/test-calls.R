# Random valid calls (helper-calls.R) on one thread and on two: the same bits, and what each function promises. On a
# machine with a device some run there too; proofs/backends.R runs thousands. A failure names its call:
# seeded_call(<seed>).

expect_no_difference <- function(sides, calls = 200) {
  for (seed in sample(1e8, 1) + seq_len(calls)) {
    call <- seeded_call(seed)
    found <- check_call(call, sides)
    expect_true(found$state != "different", info = sprintf("seed %d: %s\n%s", seed, call$text, found$text))
  }
}

test_that("random calls give the same bits on one thread and on two, and keep their promises", {
  skip_on_cran()
  expect_no_difference(list(list(backend = "cpu", threads = 1), list(backend = "cpu", threads = 2), bits = TRUE))
})

test_that("random calls agree on both back ends", {
  skip_if_no_cuda()
  expect_no_difference(list(list(backend = "cpu", threads = 1), list(backend = "cuda", threads = 2)))
})

test_that("every function that takes a back end or devices has calls, but those that run on the CPU only", {
  exported <- mget(ls("package:weft"), as.environment("package:weft"))
  takes <- function(f) is.function(f) && "run" %in% names(formals(f))
  # gene_cells() passes its back end on to pca(), whose calls are there
  functions <- setdiff(names(Filter(takes, exported)),
                       c("gene_cells", "gene_outliers", "gene_quality", "bn_features", "irm_resume", "kernel_bandwidth",
                         "kernel_tree", "mi_pack"))
  cpu_alone <- "mi_select"
  expect_identical(setdiff(functions, names(call_makers())), character())
  for (f in cpu_alone) {
    call <- function() exported[[f]](data.frame(a = 1:2), 1:2, run = "cuda")
    expect_error(call(), class = "weft_error_device", regexp = "on the CPU only")
  }
})

test_that("a call is the same however it is chosen", {
  for (seed in 1:20) {
    a <- seeded_call(seed)
    b <- seeded_call(seed, a$name)
    expect_identical(a[c("name", "text")], b[c("name", "text")])
  }
})

test_that("differences are found: of bits, of numbers, of errors and of their classes", {
  state <- function(call, second, bits = TRUE) {
    sides <- list(list(backend = "cpu"), second)
    compare_outcomes(call, outcome(call, sides[[1]]), outcome(call, second), bits)$state
  }
  other <- list(backend = "other")
  call_of <- function(run, agree = same_bits) list(text = "", agree = agree, exact = TRUE, run = run)
  by_side <- function(cpu, not) call_of(function(side) if (side$backend == "cpu") cpu() else not())
  input <- function() weft:::abort_input("no")
  expect_identical(state(call_of(function(side) 1), other), "same")
  expect_identical(state(by_side(function() 1, function() 1 + 1e-15), other), "different")
  near <- by_side(function() 1, function() 1 + 1e-15)
  near$agree <- function(a, b) within(a, b, 1e-12)
  expect_identical(state(near, other), "different")
  expect_identical(state(near, other, bits = FALSE), "same")
  near$agree <- function(a, b) within(a, b, 1e-16)
  expect_identical(state(near, other, bits = FALSE), "different")
  expect_identical(state(by_side(input, input), other), "failed")
  expect_identical(state(by_side(function() 1, input), other), "different")
  expect_identical(state(by_side(input, function() weft:::weft_abort("memory", "no")), other), "different")
  expect_identical(state(call_of(function(side) stop("raw")), other), "different")
  expect_identical(state(by_side(function() 1, function() weft:::cpu_only("cuda", "This runs")), other), "refused")
  expect_identical(state(by_side(function() 1, function() weft:::weft_abort("device", "broken")), other), "different")
  expect_match(within(c(1, NA, Inf), c(1, NaN, Inf), 0) %||% "none", "none")
  expect_match(within(c(1, NA), c(1, 2), 9), "number 2 is NA and 2")
  # a wrong sum is found whichever side it is on
  sums <- kernel_call(list(x = cbind(1:3), reference = cbind(c(1, 2, 9)), kernel = "uniform", method = "direct"))
  right <- sums$run(list(backend = "cpu"))
  wrong <- right
  wrong$sum[2] <- 0
  expect_null(sums$agree(right, right))
  expect_match(sums$agree(right, wrong), "the second sums: 1 of 3")
  expect_match(sums$agree(wrong, right), "the first sums")
})
