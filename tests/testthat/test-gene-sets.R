# Sets of genes: the file format, whose damages are errors, and the test against R's own hypergeometric law.

gmt <- function(..., raw = NULL, gz = FALSE) {
  file <- withr::local_tempfile(fileext = ".gmt", .local_envir = parent.frame())
  to <- if (gz) gzfile(file, "wb") else file(file, "wb")
  writeBin(raw %||% charToRaw(paste0(c(...), collapse = "\n")), to)
  close(to)
  file
}
`%||%` <- function(a, b) if (is.null(a)) b else a

test_that("GMT files are read: repetitions, empty cells and line ends of any kind", {
  read <- read_gmt(gmt("one\tfirst\tA\tB\tA\t\t", "two\t\tC", "", gz = TRUE))
  expect_identical(names(read), c("one", "two"))
  expect_identical(read$one, c("A", "B"))
  expect_identical(attr(read, "description"), c("first", ""))
  expect_identical(read_gmt(gmt(raw = charToRaw("\xef\xbb\xbfone\tx\tA\r\ntwo\tx\tB\r\n")))$two, "B")
})

test_that("damaged files are errors that name the line", {
  bad <- function(file, words) expect_error(read_gmt(file), words, class = "weft_error_input")
  bad(gmt("one\tx\tA", "two\tx"), "Line 2 has no genes")
  bad(gmt("one\tx\tA", "", "two\tx\t\t"), "Line 3 has no genes")
  bad(gmt("\tx\tA"), "Line 1 has no name")
  bad(gmt("one\tx\tA", "one\tx\tB"), "Line 2 repeats the name of line 1")
  bad(gmt("no tabs at all"), "Line 1 has no genes")
  bad(gmt(""), "is empty")
  bad(gmt(raw = as.raw(c(65, 0, 66))), "NUL bytes")
  bad(gmt(raw = as.raw(c(0x1f, 0x8b, 8, 0, 1, 2, 3))), "could not be read to its end|is empty")
  bad("no/such/file", "does not exist")
  expect_error(read_gmt(), "`file` must be given", class = "weft_error_input")
})

test_that("p-values are those of the hypergeometric law in the tested universe, q-values of all tests", {
  universe <- sprintf("g%d", 1:100)
  sets <- list(a = universe[1:10], b = c(universe[11:30], "elsewhere"), small = universe[1:2], large = universe)
  lists <- list(first = universe[c(1:6, 40:43)], second = universe[11:15])
  found <- gene_sets(lists, sets, universe, max_size = 50)
  expect_identical(sort(unique(found$set)), c("a", "b"))
  row <- found[found$query == "first" & found$set == "a", ]
  expect_identical(c(row$size, row$listed, row$overlap), c(10L, 10L, 6L))
  expect_equal(row$expected, 1)
  by_fisher <- stats::fisher.test(matrix(c(6, 4, 4, 86), 2), alternative = "greater")$p.value
  expect_equal(row$p_value, by_fisher)
  expect_equal(found$q_value, stats::p.adjust(found$p_value, "BH"))
  expect_identical(row$genes, "g1, g2, g3, g4, g5, g6")
  expect_identical(found$set[1], "a")
  expect_output(print(found), "2 lists tested against 2 sets: [0-9] significant at a false discovery rate")
  expect_identical(nrow(gene_sets(lists, sets["small"], universe)), 0L)
  expect_output(print(gene_sets(lists, sets["small"], universe)), "0 lists")
})

test_that("sets come as a data frame, too, as msigdbr and AnnotationDbi give them", {
  universe <- sprintf("g%d", 1:40)
  sets <- list(a = universe[1:10], b = universe[5:20])
  table <- data.frame(gs_name = rep(names(sets), lengths(sets)), gene_symbol = unlist(sets))[c(26:1, 3), ]
  table <- rbind(table, data.frame(gs_name = c(NA, "a"), gene_symbol = c("g1", NA)))
  expect_identical(gene_sets(universe[1:9], table, universe), gene_sets(universe[1:9], lapply(sets, rev), universe),
                   ignore_attr = TRUE)
  table$gs_name <- factor(table$gs_name)
  expect_identical(sort(weft:::sets_of(table)$b), sort(sets$b))
  for (bad in list(table[1], table[0, ], data.frame(1, "a"), cbind(table, 1))) {
    expect_error(gene_sets(universe[1:9], bad, universe), "two text columns", class = "weft_error_input")
  }
})

test_that("of a whole analysis the universe is what was tested, and a gene of several columns counts once", {
  e <- weft_example("expression", n = 60, p = 40, seed = 4, missing = 0, spoilt = FALSE)
  symbols <- colnames(e$x)
  symbols[2] <- symbols[1]
  fit <- gene_network(e$x, e$class, seed = 2, run = weft_run(progress = FALSE), symbols = symbols,
                      steps = list(clusters = FALSE, bayes = FALSE, pairs = FALSE, network = list(genes = 20)))
  found <- gene_sets(fit, list(known = unique(symbols)[1:10]), min_size = 1)
  expect_identical(attr(found, "universe"), c(ranking = 39L, network = 20L))
  best <- unique(symbols[match(fit$ranking$gene[fit$ranking$q_value <= 0.05], colnames(e$x))])
  ranked <- found[startsWith(found$query, "higher in"), ]
  expect_identical(sum(ranked$overlap), sum(best %in% unique(symbols)[1:10]))
  expect_error(gene_sets(fit, list(a = "b"), universe = "x"), "must not be given", class = "weft_error_input")
  expect_error(gene_sets(fit, list(a = "b"), from = "clusters"), "steps were not run", class = "weft_error_input")
  expect_error(gene_sets(fit, list(a = "b"), from = "pairs"), "one or more of", class = "weft_error_input")
})

test_that("arguments are checked", {
  expect_error(gene_sets("a", list(s = "a")), "`universe` must contain", class = "weft_error_input")
  expect_error(gene_sets("a", list(s = "a"), "b"), "must be in `universe`", class = "weft_error_input")
  expect_error(gene_sets("a", list("a"), "a"), "must be a named list", class = "weft_error_input")
  expect_error(gene_sets("a", list(s = "a", s = "b"), "a"), "must be unique", class = "weft_error_input")
  expect_error(gene_sets(1, list(s = "a"), "a"), "`x` must be a named list", class = "weft_error_input")
  expect_error(gene_sets("a", list(s = "a"), "a", min_size = 0), "`min_size`", class = "weft_error_input")
})
