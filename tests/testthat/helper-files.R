# What reads and what writes files of users, in two tables, and the kinds of things that may stand at a path. Tests and
# proofs/files.R go through both.

# Rows: ending (of the file's name), make(path) writes a valid file, read(path) reads it.
file_readers <- function() {
  words <- function(path) writeLines(c("2", "2", "2", "1 1 1", "2 2 3"), path)
  genotypes <- function(path, broken) { # a data set in whose place `path` is one of the three files
    stem <- tempfile()
    ends <- c(".bed", ".bim", ".fam")
    writeBin(as.raw(c(0x6c, 0x1b, 0x01, 0xdc, 0x0f)), paste0(stem, ".bed"))
    writeLines(c("1 rs1 0 100 A G", "1 rs2 0 200 C T"), paste0(stem, ".bim"))
    writeLines(sprintf("f%d i%d 0 0 0 -9", 1:4, 1:4), paste0(stem, ".fam"))
    if (identical(path, "make")) return(paste0(stem, broken))
    for (end in setdiff(ends, broken)) file.copy(paste0(stem, end), sub("[.]b..$|[.]fam$", end, path), overwrite = TRUE)
    sub("[.]b..$|[.]fam$", ".bed", path)
  }
  of_plink <- function(broken) list(
    ending = broken, make = function(path) file.copy(genotypes("make", broken), path),
    read = function(path) read_plink(genotypes(path, broken)))
  import <- function(path) weft_import(path, tempfile(fileext = ".weft"), run = weft_run(progress = FALSE))
  market <- function(path) writeLines(c("%%MatrixMarket matrix coordinate integer general", "3 2 3", "1 1 5", "3 1 1",
                                        "2 2 7"), path)
  bif <- c("network example { }", "variable rain { type discrete [ 2 ] { yes, no }; }",
           "probability ( rain ) { table 0.2, 0.8; }")
  folder_file <- function(path, name) {
    folder <- tempfile()
    dir.create(folder)
    market(file.path(folder, "matrix.mtx"))
    writeLines(c("c1", "c2"), file.path(folder, "barcodes.tsv"))
    writeLines(c("g1", "g2", "g3"), file.path(folder, "features.tsv"))
    unlink(file.path(folder, name))
    file.symlink(path, file.path(folder, name))
    import(folder)
  }
  list(
    read_gmt = list(ending = ".gmt", make = function(path) writeLines("a\tb\tc", path), read = read_gmt),
    gene_sets = list(ending = ".gmt", make = function(path) writeLines("a\tb\tc", path),
                     read = function(path) gene_sets("c", path, c("c", "d"), min_size = 1)),
    bag = list(ending = ".txt", make = words, read = read_bag_of_words),
    vocab = list(ending = ".txt", make = function(path) writeLines(c("u", "v"), path), read = function(path) {
      words(bag <- tempfile())
      read_bag_of_words(bag, path)
    }),
    bn_read = list(ending = ".bif", make = function(path) writeLines(bif, path), read = bn_read),
    bed = of_plink(".bed"), bim = of_plink(".bim"), fam = of_plink(".fam"),
    checkpoint = list(ending = ".rds", make = function(path) {
      irm(diag(3), chains = 1, sweeps = 2, seed = 1, run = weft_run(progress = FALSE),
          control = list(checkpoint = path))
    }, read = function(path) irm_resume(path, run = weft_run(progress = FALSE))),
    market = list(ending = ".mtx", make = market, read = import),
    tenx_matrix = list(ending = ".mtx", make = market, read = function(path) folder_file(path, "matrix.mtx")),
    tenx_cells = list(ending = ".tsv", make = function(path) writeLines(c("c1", "c2"), path),
                      read = function(path) folder_file(path, "barcodes.tsv")),
    h5ad = if (requireNamespace("rhdf5", quietly = TRUE)) list(ending = ".h5ad", make = function(path) {
      rhdf5::h5createFile(path)
      rhdf5::h5write(matrix(c(1, 2, 3, 4), 2), path, "X")
    }, read = import),
    zarr = list(ending = ".json", make = function(path) {
      writeLines("{\"shape\": [2, 1], \"chunks\": [2, 1], \"dtype\": \"<f8\", \"zarr_format\": 2}", path)
    }, read = function(path) {
      dir.create(file.path(folder <- tempfile(), "X"), recursive = TRUE)
      writeLines("{\"zarr_format\": 2}", file.path(folder, ".zgroup"))
      writeBin(c(1, 2), file.path(folder, "X", "0.0"))
      file.symlink(path, file.path(folder, "X", ".zarray"))
      import(folder)
    }),
    bpcells = list(ending = ".bin", make = function(path) {
      writeBin(c(charToRaw("UINT32v1"), as.raw(c(5, 0, 0, 0))), path)
    }, read = function(path) {
      dir.create(folder <- tempfile())
      put <- function(part, values) writeBin(c(charToRaw("UINT32v1"), writeBin(as.integer(values), raw())),
                                             file.path(folder, part))
      put("shape", c(1, 1))
      put("idxptr", 0:1)
      put("index", 0)
      writeLines("unpacked-uint-matrix-v1", file.path(folder, "version"))
      writeLines("col", file.path(folder, "storage_order"))
      file.symlink(path, file.path(folder, "val"))
      import(folder)
    }),
    store = list(ending = ".weft", make = function(path) weft_import(diag(3), path, run = weft_run(progress = FALSE)),
                 read = weft_store),
    numbers = list(ending = ".bin", make = function(path) writeBin(c(1, 2, 3, 4), path),
                   read = function(path) as.matrix(weft_file(path, ncol = 2)))
  )
}

# Functions of a path that write a file of at least 20 kB, or signal an error or warning of weft's.
file_writers <- function() {
  net <- matrix(0, 60, 60, dimnames = list(sprintf("gene%d", 1:60), sprintf("gene%d", 1:60)))
  net[] <- stats::cor(matrix(sin(seq_len(3000)), 50))
  net <- mi_network(abs(net), "clr")
  words <- matrix(rep_len(c(0, 1, 2, 3, 5, 7, 11), 2e4), 200,
                  dimnames = list(sprintf("a word that is long enough to fill %s %d", strrep("x", 80), 1:200), NULL))
  list(
    graphml = function(path) write_network(net, path, "graphml"), sif = function(path) write_network(net, path, "sif"),
    csv = function(path) write_network(net, path, "csv"),
    bag = function(path) write_bag_of_words(words, path),
    vocab = function(path) {
      write_bag_of_words(words, bag <- tempfile(), path)
      unlink(bag)
    },
    store = function(path) weft_import(matrix(sin(seq_len(1e4)), 100), path, overwrite = TRUE,
                                       run = weft_run(progress = FALSE)),
    checkpoint = function(path) {
      irm(words, family = "poisson", chains = 4, sweeps = 20, seed = 1, run = weft_run(progress = FALSE),
          control = list(checkpoint = path))
    },
    report = function(path) { # what weft_report() does with the page
      weft:::check_output(path, "file")
      weft:::put_in_place(system.file("R", "stats.rdb", package = "stats"), path)
    }
  )
}

# "done", or the classes of weft's error or warning; anything else is signalled.
file_end <- function(code) {
  tryCatch({
    force(code)
    "done"
  }, weft_error_input = function(e) "refused", weft_warning_checkpoint = function(w) "refused")
}

# Makes something of a kind that is no regular file at `path`; FALSE where it cannot be made here.
put_odd <- function(kind, path) {
  made <- function(program, ...) suppressWarnings(system2(program, c(...), stdout = FALSE, stderr = FALSE)) == 0L
  switch(kind,
    pipe = made("mkfifo", shQuote(path)),
    zero = made("mknod", shQuote(path), "c", "1", "5"), # endless, and swallows what is written
    folder = dir.create(path),
    "link to a device" = file.symlink("/dev/zero", path),
    "link to a pipe" = made("mkfifo", shQuote(to <- tempfile())) && file.symlink(to, path),
    "system link" = file.symlink("/proc/self/fd/1", path),
    "link to itself" = file.symlink(path, path)
  )
}
odd_kinds <- c("pipe", "zero", "folder", "link to a device", "link to a pipe", "system link", "link to itself")

# What stands at a path, without following a link.
kind_at <- function(path) system2("stat", c("-c", "%F", shQuote(path)), stdout = TRUE)
