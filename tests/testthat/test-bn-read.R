# Networks from files, in three formats, and files that are wrong.

bif_lines <- c(
  "network unknown {", "  property \"made { by hand }\" ;", "}", "// a comment; {",
  "variable a {", "  type discrete [ 2 ] { yes, no };", "}",
  "variable c { type discrete [ 3 ] { <5, 5-12, >12 }; property \"x ; y\" ; }",
  "variable b { type discrete [ 2 ] { on, off }; }",
  "probability ( a ) { table 0.2, 0.8; }",
  "probability ( b ) {", "  table 0.5, 0.5;", "}",
  "probability ( c | b, a ) {",
  "  (on, yes) 0.1, 0.2, 0.7;", "  (off, yes) 0.2, 0.2, 0.6;", "  (on, no) 0.3, 0.3, 0.4;",
  "  default 0.25, 0.25, 0.5;", "}")

net_lines <- c(
  "net { node_size = (80 40); }", "node a { states = ( \"yes\" \"no\" ); position = (1 2); }",
  "node c { label = \"a = { b\"; states = ( \"<5\" \"5-12\" \">12\" ); }",
  "node b { states = ( \"on\" \"off\" ); } % end",
  "potential ( a ) { data = ( 0.2 0.8 ); }", "potential ( b | ) { data = ( 0.5 0.5 ); }",
  "potential ( c | b a ) {", "  data = ((( 0.1 0.2 0.7 ) ( 0.3 0.3 0.4 ))",
  "          (( 0.2 0.2 0.6 ) ( 0.25 0.25 0.5 )));", "}")

dsc_lines <- c(
  "belief network \"unknown\"", "node a { type : discrete [ 2 ] = { \"yes\", \"no\" }; }",
  "node c { type : discrete [ 3 ] = { \"<5\", \"5-12\", \">12\" }; }",
  "node b { type : discrete [ 2 ] = { \"on\", \"off\" }; }",
  "probability ( a ) { 0.2, 0.8; }", "probability ( b ) { 0.5, 0.5; }",
  "probability ( c | b, a ) {", "  (0, 0) : 0.1, 0.2, 0.7;", "  (1, 0) : 0.2, 0.2, 0.6;", "  (0, 1) : 0.3, 0.3, 0.4;",
  "  (1, 1) : 0.25, 0.25, 0.5;", "}")

read_lines <- function(lines, format, sep = "\n") {
  file <- withr::local_tempfile(fileext = paste0(".", format))
  writeBin(charToRaw(paste0(paste(lines, collapse = sep), sep)), file)
  bn_read(file)
}

test_that("a network is the same from each format, its parents in the order of the nodes", {
  bif <- read_lines(bif_lines, "bif")
  expect_identical(rownames(bif$dag), c("a", "c", "b"))
  expect_identical(bif$nodes$c$parents, c("a", "b"))
  expect_identical(dimnames(bif$nodes$c$probability),
                   list(c = c("<5", "5-12", ">12"), a = c("yes", "no"), b = c("on", "off")))
  expect_equal(bif$nodes$c$probability[, "yes", "off"], c(0.2, 0.2, 0.6), ignore_attr = TRUE)
  expect_equal(bif$nodes$c$probability[, "no", "on"], c(0.3, 0.3, 0.4), ignore_attr = TRUE)
  expect_equal(bif$nodes$c$probability[, "no", "off"], c(0.25, 0.25, 0.5), ignore_attr = TRUE)
  expect_identical(read_lines(net_lines, "net"), bif)
  expect_identical(read_lines(dsc_lines, "dsc"), bif)
  expect_identical(read_lines(bif_lines, "bif", "\r\n"), bif)
})

test_that("a percent sign begins a comment in NET, and is a sign like others in BIF", {
  bif <- read_lines(sub("yes", "%5", bif_lines, fixed = TRUE), "bif")
  expect_identical(bif$labels$a, c("%5", "no"))
  expect_identical(unname(bif$nodes$c$probability), unname(read_lines(bif_lines, "bif")$nodes$c$probability))
})

test_that("what is read can be sampled, and learned again", {
  fit <- read_lines(bif_lines, "bif")
  d <- bn_sample(fit, 4000, seed = 1)
  expect_identical(levels(d$c), c("<5", "5-12", ">12"))
  again <- bn_fit(d, fit$dag)
  expect_lt(max(abs(again$nodes$c$probability - fit$nodes$c$probability)), 0.07) # 400 rows: 3 standard errors
  expect_equal(sum(exp(bn_log_lik(fit, expand.grid(lapply(fit$labels, function(l) factor(l, l)))))), 1)
})

test_that("compressed files are read, their format is what stands before the ending of the compression", {
  for (ending in c("gz", "bz2", "xz")) {
    file <- withr::local_tempfile(fileext = paste0(".BIF.", ending))
    connection <- switch(ending, gz = gzfile, bz2 = bzfile, xz = xzfile)(file, "w")
    writeLines(bif_lines, connection)
    close(connection)
    expect_identical(bn_read(file), read_lines(bif_lines, "bif"))
  }
})

# The object that bnlearn's bn.fit() makes, by hand: parents in another order than the nodes.
fitted_by_bnlearn <- function() {
  category <- function(name, parents, prob) list(node = name, parents = parents, prob = as.table(prob))
  levels <- list(a = c("x", "y"), b = c("l", "m", "r"))
  structure(list(
    u = list(node = "u", parents = c("b", "w", "a"), dparents = c(1L, 3L), gparents = 2L, dlevels = levels[c("b", "a")],
             coefficients = rbind(`(Intercept)` = 1:6, w = c(0, 2, 4, 6, 8, 10)), sd = stats::setNames(1:6 / 10, 0:5)),
    a = category("a", character(), array(c(0.3, 0.7), 2, levels["a"])),
    w = list(node = "w", parents = "v", coefficients = c(`(Intercept)` = 2, v = -1), sd = 0.5),
    b = category("b", "a", array(c(0.2, 0.3, 0.5, 0.6, 0.3, 0.1), 3:2, levels[c("b", "a")])),
    v = list(node = "v", parents = character(), coefficients = c(`(Intercept)` = 4), sd = 2)
  ), class = "bn.fit")
}

test_that("bnlearn's networks with their parameters become fitted ones", {
  theirs <- fitted_by_bnlearn()
  fit <- bn_convert(theirs, "fit")
  expect_s3_class(fit, "weft_bn_fit")
  expect_identical(fit$nodes$u$parents, c("a", "w", "b"))
  expect_identical(bn_convert(theirs), fit$dag)
  d <- bn_sample(fit, 50, seed = 1)
  cell <- as.integer(d$b) + 3 * (as.integer(d$a) - 1)
  by_hand <- stats::dnorm(d$u, cell + 2 * (cell - 1) * d$w, cell / 10, TRUE) + log(c(0.3, 0.7)[d$a]) +
    stats::dnorm(d$w, 2 - d$v, 0.5, TRUE) + log(theirs$b$prob[cbind(d$b, d$a)]) + stats::dnorm(d$v, 4, 2, TRUE)
  expect_equal(bn_log_lik(fit, d), by_hand, tolerance = 1e-12)
  numbers <- bn_convert(structure(theirs[c("w", "v")], class = "bn.fit"), "fit")
  expect_true(numbers$gaussian)
  expect_equal(bn_log_lik(numbers, d[c("w", "v")]),
               stats::dnorm(d$w, 2 - d$v, 0.5, TRUE) + stats::dnorm(d$v, 4, 2, TRUE), tolerance = 1e-12)
  expect_identical(bn_convert(fit, "fit"), fit)
  categories <- bn_convert(structure(theirs[c("b", "a")], class = "bn.fit"), "fit")
  expect_equal(unclass(categories$nodes$b$probability), unclass(theirs$b$prob), ignore_attr = TRUE)
  expect_identical(bn_compare(fit$dag, theirs)$shd_cpdag, bn_compare(fit$dag, fit$dag)$shd_cpdag)
})

test_that("bnlearn's networks without all parameters are refused by the node's name", {
  bad <- function(change, text) {
    expect_error(bn_convert(change(fitted_by_bnlearn()), "fit"), class = "weft_error_input", regexp = text)
  }
  set <- function(node, part, value) function(x) {
    x <- unclass(x)
    x[[node]][[part]] <- value
    structure(x, class = "bn.fit")
  }
  bad(set("b", "prob", array(NaN, 3:2, list(b = letters[1:3], a = c("x", "y")))), "`b`")
  bad(set("b", "prob", "text"), "`b`")
  bad(set("b", "prob", NULL), "`b`")
  bad(set("a", "prob", array(c(0.3, 0.8), 2, list(a = c("x", "y")))), "`a`")
  bad(set("w", "coefficients", c(`(Intercept)` = 2)), "`w`")
  bad(set("w", "coefficients", c(`(Intercept)` = NA, v = 1)), "`w`")
  bad(set("w", "sd", -1), "`w`")
  bad(set("u", "sd", 1:5), "`u`")
  bad(set("u", "coefficients", list(1)), "`u`")
  bad(set("u", "parents", "nobody"), "parents among them")
  bad(set("v", "parents", "w"), "cycle")
  bad(unclass, "bn.fit")
  bad(function(x) structure(list(), class = "bn.fit"), "named nodes")
  expect_error(bn_convert(diag(0, 2), "fit"), class = "weft_error_input", regexp = "bn_fit")
})

test_that("files that break a rule are errors that name the line", {
  bad <- function(change, text, lines = bif_lines, format = "bif") {
    expect_error(read_lines(change(lines), format), class = "weft_error_input", regexp = text)
  }
  swap <- function(from, to) function(lines) sub(from, to, lines, fixed = TRUE)
  bad(swap("0.2, 0.8", "0.2, 0.9"), "sum to 1, not 1.1.*Line 10")
  bad(swap("0.2, 0.8", "-0.2, 1.2"), "at least 0")
  bad(swap("0.2, 0.8", "0.2, x"), "`x` is not a number.*Line 10")
  bad(swap("0.2, 0.8", "NaN, 1"), "not a number|lacks")
  bad(swap("(off, yes) 0.2, 0.2, 0.6", "(off, yes) 0.2, 0.8"), "needs 3 numbers here, but 2.*Line 16")
  bad(swap("(off, yes)", "(off, maybe)"), "`maybe` is not a state of node `a`.*Line 16")
  bad(swap("(off, yes)", "(off)"), "2 parents, not 1")
  bad(swap("default 0.25, 0.25, 0.5;", ""), "lacks probabilities.*Line 14")
  bad(swap("c | b, a", "c | b, z"), "no node `z`")
  bad(swap("c | b, a", "c | b, b"), "different nodes")
  bad(swap("{ yes, no }", "{ yes, yes }"), "different states.*Line 5")
  bad(swap("variable b", "variable a"), "`a` occurs twice.*Line 9")
  bad(swap("probability ( b )", "probability ( a )"), "probabilities twice")
  bad(function(lines) lines[-10], "`a` has no probabilities")
  bad(function(lines) lines[1:16], "`;|ends|expected|missing")
  bad(swap("network unknown", "nonsense unknown"), "`nonsense` is not allowed in BIF.*Line 1")
  bad(function(lines) character(), "no nodes")
  bad(swap("(0, 0)", "(0, 2)"), "`3` is not a state", dsc_lines, "dsc")
  bad(swap("(1, 0)", "(1, x)"), "not a number", dsc_lines, "dsc")
  bad(swap("( 0.2 0.8 )", "( 0.2 0.8 0 )"), "needs 2 numbers", net_lines, "net")
  cycle <- c(bif_lines[5:9], "probability ( a | b ) { default 0.2, 0.8; }",
             "probability ( b | a ) { default 0.5, 0.5; }", "probability ( c ) { table 0.2, 0.3, 0.5; }")
  bad(function(lines) cycle, "cycle")
  expect_error(bn_read(tempfile(fileext = ".bif")), class = "weft_error_input", regexp = "does not exist")
  expect_error(bn_read(withr::local_tempfile(lines = "network", fileext = ".txt")), class = "weft_error_input",
               regexp = "format")
  expect_error(bn_read(1), class = "weft_error_input", regexp = "name of a file")
  zeros <- withr::local_tempfile(fileext = ".bif")
  writeBin(as.raw(c(65, 0, 66)), zeros)
  expect_error(bn_read(zeros), class = "weft_error_input", regexp = "NUL bytes")
})
