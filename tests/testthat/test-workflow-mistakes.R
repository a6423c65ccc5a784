# What new users do: each mistake gets a message that says what is wrong and what to do.

e <- weft_example("expression", n = 30, p = 40, missing = 0, spoilt = FALSE)
told <- function(expr) {
  text <- tryCatch(expr, weft_error = conditionMessage, weft_warning = conditionMessage)
  cat(gsub("\u2716|\u2139", "", cli::ansi_strip(text)), sep = "\n")
}

test_that("1. samples in columns", {
  expect_snapshot(told(gene_network(t(e$x), e$class)))
  expect_snapshot(told(gene_network(matrix(0, 6000, 30))))
})

test_that("1. samples in columns of a small table, without a class: names and levels tell", {
  expect_snapshot(told(gene_quality(t(e$x))))
  symbols <- t(e$x[, 1:12])
  dimnames(symbols) <- list(c("Actb", "Gapdh", "Trp53", "Myc", "Kras", "Sox2", "Foxp3", "Il2ra", "Gata3", "Cd8a", "Cd4",
                              "Irf4"),
                            sprintf("KO%d", 1:30))
  expect_snapshot(told(gene_quality(symbols)))
  levels <- unname(t(e$x) + seq_len(40))
  expect_snapshot(told(gene_quality(levels)))
})

test_that("1. samples in rows are not doubted", {
  quiet <- function(x, ...) expect_no_warning(weft:::check_orientation(x, NULL, x), class = "weft_warning_orientation")
  quiet(e$x)
  quiet(unname(e$x))
  quiet(unname(e$x) + rep(seq_len(40), each = 30))
  quiet(scale(e$x)) # equal means of columns tell nothing
  quiet(matrix(weft:::draws("normal", 900, key = 1), 30))
  counts <- matrix(2^weft:::draws("normal", 6000, key = 2) * rep(2^weft:::draws("uniform", 100, 0, 1, key = 3), 60), 60,
                   byrow = TRUE)
  quiet(round(100 * counts))
  cells <- matrix(weft:::draws("uniform", 9000, key = 4), 900, dimnames = list(NULL, sprintf("ENSG%011d", 1:10)))
  quiet(cells) # many cells, few genes
  quiet(matrix(1:900, 30, dimnames = list(c("TP53", "MYC", sprintf("cell%d", 1:28)),
                                          c("ACTB", "GAPDH", sprintf("x%d", 1:28)))))
  expect_silent(weft:::check_orientation(t(e$x), factor(rep(1:2, 20)), t(e$x))) # a class settles it
})

test_that("1. and 2. a table as it was read: genes in rows, their names in a column", {
  table <- data.frame(gene = colnames(e$x), t(e$x))
  expect_snapshot(told(gene_network(table, e$class)))
  expect_snapshot(told(gene_network(t(as.matrix(table)), e$class)))
  expect_snapshot(told(gene_network(table)))
  names(table)[1] <- "gene id"
  expect_snapshot(told(gene_network(table, e$class)))
})

test_that("2. a character matrix", {
  text <- e$x
  storage.mode(text) <- "character"
  expect_snapshot(told(gene_network(text, e$class)))
  with_names <- as.matrix(data.frame(id = rownames(e$x), e$x[, 1:5]))
  expect_snapshot(told(gene_network(with_names, e$class)))
  expect_snapshot(told(gene_network(data.frame(id = rownames(e$x), e$x[, 1:5]), e$class)))
  expect_snapshot(told(gene_network(data.frame(id = rownames(e$x), e$x[, 1:5]))))
  one <- as.data.frame(e$x[, 1:5])
  one$TF02 <- as.character(one$TF02)
  one$TF02[4] <- "n/a"
  expect_snapshot(told(gene_network(one, e$class)))
})

test_that("3. raw counts", {
  counts <- matrix(as.integer(2^e$x), nrow(e$x), dimnames = dimnames(e$x))
  expect_snapshot(told(gene_quality(counts, e$class)))
  cells <- matrix(weft:::draws("uniform", 3000, key = 5)^6 * rep(20 * weft:::draws("uniform", 30, key = 6), each = 100),
                  100)
  expect_warning(gene_quality(round(cells)), class = "weft_warning_counts")
  expect_no_warning(gene_quality(round(10 * matrix(weft:::draws("uniform", 3000, key = 7), 100))),
                    class = "weft_warning_counts")
})

test_that("4. a class with missing values", {
  class <- e$class
  class[c(2, 5)] <- NA
  expect_snapshot(told(gene_network(e$x, class)))
  expect_snapshot(told(gene_quality(e$x, ifelse(is.na(class), "NA", as.character(class)))))
})

test_that("a class that is empty, in another order, a table or a name", {
  class <- as.character(e$class)
  class[3] <- ""
  expect_snapshot(told(gene_network(e$x, class)))
  expect_snapshot(told(gene_network(e$x, stats::setNames(rev(e$class), rev(rownames(e$x))))))
  expect_snapshot(told(gene_network(e$x, data.frame(id = rownames(e$x), group = e$class))))
  expect_snapshot(told(gene_network(e$x, "group")))
})

test_that("5. too few samples", {
  expect_snapshot(told(gene_network(e$x[1:3, ], e$class[1:3])))
  few <- gene_network(e$x[1:12, ], e$class[1:12], seed = 1, steps = list(ranking = FALSE))
  expect_snapshot(writeLines(few$left_out))
})

test_that("and some more", {
  expect_snapshot(told(gene_network(e$x, rownames(e$x))))
  expect_snapshot(told(gene_network(e$x, rep("tumour", 30))))
  expect_snapshot(told(gene_network(e$x, e$class, batch = e$class)))
  infinite <- e$x
  infinite[3, 4] <- -Inf
  expect_snapshot(told(gene_network(infinite, e$class)))
  expect_snapshot(told(gene_network("expression.csv")))
  expect_snapshot(told(weft_report(e)))
})
