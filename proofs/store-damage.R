# Stores, and the texts they are made from, changed at random: every use must end in the right type of result or in an
# error of weft's own, and R must live. Rscript proofs/store-damage.R [number of files, default 20000] [first seed]
# Two of three stores have their checksums made right again, as somebody would who means harm.
suppressPackageStartupMessages(library(weft))
for (file in c("helper-store.R", "helper-store-files.R")) source(file.path("tests/testthat", file))
arguments <- as.numeric(commandArgs(TRUE))
count <- if (length(arguments) > 0L) arguments[1L] else 20000
first <- if (length(arguments) > 1L) arguments[2L] else 1

folder <- tempfile("stores")
dir.create(folder)
stores <- function() {
  set.seed(1)
  m <- some_counts(60, 12, 0.3)
  fractions <- m
  fractions@x <- fractions@x / 3
  halves <- m
  halves@x <- halves@x / 2
  made <- list(m, fractions, halves, m[1:3, ], m[, 1, drop = FALSE], m * 0, as.matrix(m))
  lapply(seq_along(made), function(k) bytes_of(store_file(weft_import(made[[k]], file.path(folder, k)))))
}

texts <- list(
  c("%%MatrixMarket matrix coordinate real general", "% c", "5 4 3", "1 1 2.5", "5 4 1e-3", "2 2 -7"),
  c("%%MatrixMarket matrix coordinate pattern symmetric", "5 5 2", "2 1", "5 5"),
  c("%%MatrixMarket matrix array integer skew-symmetric", "3 3", "1", "2", "3"))

use_text <- function(file) {
  to <- file.path(folder, "text.weft")
  tryCatch(list(weft_import(file, to, overwrite = TRUE)[, ]), weft_error_input = function(e) "input",
           weft_error_memory = function(e) "memory")
}

good <- stores()
wrong <- 0
ends <- c(input = 0, memory = 0, result = 0)
for (k in seq_len(count)) {
  set.seed(first + k - 1)
  text <- k %% 5 == 0
  bytes <- if (text) charToRaw(paste0(sample(texts, 1)[[1L]], "\n", collapse = "")) else sample(good, 1)[[1L]]
  bytes <- spoil_bytes(bytes)
  if (!text && length(bytes) >= 64 && k %% 3 > 0) bytes <- with_checksums(bytes)
  file <- file.path(folder, if (text) "spoilt.mtx" else "spoilt.weft")
  writeBin(bytes, file)
  got <- tryCatch(if (text) use_text(file) else use_store(file), error = function(e) {
    cat(sprintf("seed %.0f: %s: %s\n", first + k - 1, class(e)[1L], conditionMessage(e)))
    wrong <<- wrong + 1
    "other"
  })
  how <- if (is.list(got)) "result" else got
  if (how %in% names(ends)) ends[how] <- ends[how] + 1
}
left <- list.files(folder, "part$", all.files = TRUE)
cat(sprintf("%.0f files: %.0f results, %.0f input errors, %.0f memory errors, %.0f others; %d temporary files left\n",
            count, ends[["result"]], ends[["input"]], ends[["memory"]], wrong, length(left)))
unlink(folder, recursive = TRUE)
quit(status = wrong > 0 || length(left) > 0)
