# Calls of the store for helper-calls.R: what is imported, in one piece or many, and what is read of it.
calls_store <- function() {
  list(weft_import = list(share = 3, make = draw_import))
}

# Counts, fractions, numbers of any sign, gaps; rows and columns without an entry.
some_entries <- function(n, p) {
  m <- matrix(stats::rpois(n * p, pick(0.05, 0.5, 3)), n, p, dimnames = maybe_names(n, p))
  if (chance(0.3)) m <- m / 3
  if (chance(0.2)) m <- m * stats::rnorm(n * p)
  if (chance(0.1)) m[sample(n * p, 1L)] <- pick(NA, 1e6, 2^31, -1e300)
  m
}

maybe_names <- function(n, p) if (chance(0.5)) list(sprintf("cell%d", seq_len(n)), sprintf("gene%d", seq_len(p)))

draw_import <- function() {
  m <- some_entries(max(1, some_size(pick(30, 700))), whole(1, 30))
  form <- pick("matrix", "sparse", "blocks", "market", prob = c(2, 3, 1, 1))
  sparse <- if (form != "matrix") methods::as(methods::as(Matrix::Matrix(m, sparse = TRUE, doDiag = FALSE),
                                                          "generalMatrix"), "CsparseMatrix")
  x <- switch(form, matrix = m, blocks = list(sparse, sparse), sparse)
  args <- c(list(x = x), maybe(0.4, memory = 2^20))
  scaled <- chance(0.5)
  # the sums of a fit depend on the vector code, what is stored does not
  agree <- function(a, b) {
    one <- a[[7L]]
    other <- b[[7L]]
    if (!is.list(one) || !is.list(other)) return(same_bits(a, b))
    bound <- 1e-12 * max(1, abs(one$sdev), abs(one$center))
    first_of(same_bits(a[1:6], b[1:6]), within(one$sdev, other$sdev, bound, "sdev"),
             within(one$center, other$center, bound, "center"))
  }
  call <- drawn_call("weft_import", args, agree = agree)
  call$run <- function(side) {
    withr::local_options(weft.threads = side$threads)
    folder <- withr::local_tempdir()
    if (form == "market") {
      args$x <- file.path(folder, "m.mtx")
      invisible(Matrix::writeMM(sparse, args$x))
    }
    store <- call_with(weft::weft_import, c(args, path = file.path(folder, "s.weft"), progress = FALSE))
    values <- store[, ]
    columns <- store[, rev(seq_len(ncol(store)))]
    fitted <- tryCatch(weft::pca(if (scaled) weft::store_normalise(store) else store, 1, seed = 1,
                                 run = weft_run(threads = side$threads, progress = FALSE)), weft_error = class)
    list(plain(dim(store)), values@i, values@p, values@x, columns@i, columns@x,
         if (is.list(fitted)) plain(unclass(fitted)[c("sdev", "center")]) else fitted)
  }
  call
}
