# A file is described and read where it lies; what comes of it must be what read_plink()'s integers give.

test_that("every function that counts gives what integers give, whatever the classes, rows and missing calls", {
  set.seed(1)
  stem <- withr::local_tempfile()
  for (n in c(1, 3, 63, 64, 65, 200, 517)) {
    g <- some_genotypes(n, 40)
    write_genotypes(stem, g)
    file <- plink_file(stem)
    whole <- read_plink(stem)[, , drop = FALSE]
    expect_identical(dim(file), dim(whole))
    expect_identical(dimnames(file), dimnames(whole))
    expect_identical(as.matrix(file), whole)
    for (classes in c(1, 2, 5, 8, 9, 20)) {
      class <- sample(classes, n, TRUE)
      if (n > 60) class[sample(n, 20)] <- NA
      for (na in c("drop", "level")) {
        packs <- list(mi_pack(file, class, na = na), mi_pack(whole, class, na = na))
        expect_identical(weft:::what_is_packed(packs[[1]]), weft:::what_is_packed(packs[[2]]))
        lapply(packs, weft_free)
      }
      expect_identical(tidy(mi_rank(file, class, na = "drop")), tidy(mi_rank(whole, class, na = "drop")))
    }
  }
})

test_that("pairs, triples, matrices, selection, components and blocks take a file", {
  set.seed(2)
  stem <- write_genotypes(withr::local_tempfile(), some_genotypes(120, 30, 0)[, 1:26])
  file <- plink_file(stem)
  whole <- read_plink(stem)[, , drop = FALSE]
  class <- sample(2, 120, TRUE)
  for (take in list(
    function(x) tidy(mi_pairs(x, class, top = 50)), function(x) tidy(mi_triples(x, class, top = 50)),
    function(x) tidy(mi_tuples(x, class, order = 3, features = c("rs2", "rs5", "rs7", "rs8"))),
    function(x) as.matrix(mi_matrix(x)), function(x) as.matrix(mi_matrix(x, estimator = "spearman")),
    function(x) mi_select(x, class, 5)[c("feature", "score")], function(x) tidy(mi_rank(x, class, bins = 2)),
    function(x) abs(pca(x, 3, run = "cpu")$rotation),
    function(x) irm(x, sweeps = 5, seed = 1, control = list(threshold = 1))[c("row", "col")]
  )) expect_equal(take(file), take(whole), tolerance = 1e-12)
  blocks <- pca(file, 3, run = "cpu", control = list(block_size = 3000))
  expect_equal(abs(blocks$rotation), abs(pca(whole, 3, run = "cpu")$rotation), tolerance = 1e-8)
})

# All numbers of heterozygotes, given the alleles.
hwe_reference <- function(counts) {
  n <- sum(counts)
  copies <- counts[2] + 2 * counts[3]
  h <- seq(copies %% 2, min(copies, 2 * n - copies), by = 2)
  log_p <- lfactorial(n) - lfactorial((copies - h) / 2) - lfactorial(h) - lfactorial(n - (copies + h) / 2) + h * log(2)
  p <- exp(log_p - max(log_p))
  sum(p[p <= p[h == counts[2]] * (1 + 1e-7)]) / sum(p)
}

test_that("filters keep the variants that counts in R keep", {
  set.seed(3)
  g <- some_genotypes(150, 60)
  g[, 7] <- c(rep(0L, 75), rep(2L, 75))
  bim <- sprintf("%s rs%d 0 %d A G", rep(c("1", "X"), 30), 1:60, 10 * (1:60))
  stem <- write_genotypes(withr::local_tempfile(), g, bim)
  counts <- vapply(1:60, function(j) tabulate(g[, j] + 1L, 3), integer(3))
  share <- ifelse(colSums(counts) > 0, (counts[2, ] + 2 * counts[3, ]) / (2 * colSums(counts)), 0)
  maf <- pmin(share, 1 - share)
  missing <- colMeans(is.na(g))
  hwe <- apply(counts, 2, hwe_reference)
  kept <- function(...) match(colnames(plink_file(stem, ...)), paste0("rs", 1:60))
  expect_identical(kept(min_maf = 0.1), which(maf >= 0.1))
  expect_identical(kept(max_missing = 0.04), which(missing <= 0.04))
  expect_identical(kept(min_hwe = 0.2), which(hwe >= 0.2))
  expect_false(7 %in% kept(min_hwe = 1e-10))
  expect_identical(kept(chromosome = "X", from = 100, to = 305), seq(10L, 30L, 2L))
  expect_identical(kept(variants = c("rs9", "rs3"), min_maf = 0), c(9L, 3L))
  about <- plink_file(stem, min_maf = 1e-9)$variants
  among <- which(maf > 0)
  expect_identical(about$variant, paste0("rs", among))
  expect_equal(about[c("maf", "missing", "hwe")], data.frame(maf, missing, hwe)[among, ], tolerance = 1e-9,
               ignore_attr = "row.names")
  expect_identical(ncol(plink_file(stem, from = 1e6)), 0L)
})

test_that("the test of proportions holds for very many samples and for none", {
  expect_hwe <- function(counts, expected) {
    g <- rep(c(0L, 1L, 2L, NA), counts)
    stem <- write_genotypes(withr::local_tempfile(), matrix(g))
    expect_equal(weft:::variant_summary(plink_file(stem), NULL)$hwe, expected, tolerance = 1e-8)
  }
  for (counts in list(c(900, 90, 10), c(30000, 15000, 2000), c(1, 1, 0), c(5, 0, 5), c(0, 7, 0)))
    expect_hwe(c(counts, 1), hwe_reference(counts))
  expect_hwe(c(0, 0, 0, 3), 1)
  expect_hwe(c(4, 0, 0, 0), 1)
  expect_hwe(c(20000, 0, 20000, 0), 0)
})

test_that("what is wrong with a file is said when it is described and when it is read", {
  stem <- write_genotypes(withr::local_tempfile(), some_genotypes(30, 10, 0))
  bed <- paste0(stem, ".bed")
  expect_error(plink_file(paste0(stem, "no")), "does not exist", class = "weft_error_input")
  expect_error(plink_file(stem, chromosome = "7"), "There is no `7`", class = "weft_error_input")
  expect_error(plink_file(stem, min_maf = 0.6), "min_maf", class = "weft_error_input")
  file <- plink_file(stem)
  expect_error(mi_pairs(file, 1:3), "30", class = "weft_error_input")
  bytes <- readBin(bed, "raw", 1e4)
  writeBin(bytes[-length(bytes)], bed)
  expect_error(plink_file(stem), "truncated", class = "weft_error_input")
  expect_error(mi_pack(file, rep(1:2, 15)), "must have 83 bytes; it has 82", class = "weft_error_input")
  expect_error(as.matrix(file), "must have 83 bytes", class = "weft_error_input")
  unlink(bed)
  expect_error(mi_pack(file, rep(1:2, 15)), "does not exist", class = "weft_error_input")
  for (damage in list(list(wanted = 11), list(wanted = "1"), list(path = NULL), list(samples = 3),
                      list(variants = data.frame()))) {
    bad <- file
    bad[names(damage)] <- damage
    expect_error(mi_pack(bad, rep(1:2, 15)), "plink_file", class = "weft_error_input")
  }
  expect_output(print(file), "30 samples, 10 of 10 variants")
})

test_that("pairs nearer than min_distance are left out, whatever the order and the tests", {
  set.seed(4)
  n <- 150
  g <- some_genotypes(n, 60, 0)[, 1:40]
  bim <- sprintf("%d rs%d 0 %d A G", rep(1:2, each = 20), 1:40, c(1:20 * 10, 20:1 * 10))
  stem <- write_genotypes(withr::local_tempfile(), g, bim)
  file <- plink_file(stem)
  class <- xor(g[, 3] > 0, g[, 15] > 0) + 0
  at <- file$variants
  for (backend in test_backends()) {
    for (by in c("mi", "interaction")) {
      all <- as.data.frame(mi_pairs(file, class, top = Inf, by = by, run = backend))
      i <- match(all$feature1, at$variant)
      j <- match(all$feature2, at$variant)
      far <- at$chromosome[i] != at$chromosome[j] | abs(at$position[i] - at$position[j]) >= 70
      found <- mi_pairs(file, class, top = Inf, by = by, run = backend, control = list(min_distance = 70))
      expect_identical(as.data.frame(found), all[far, ], ignore_attr = "row.names")
      expect_identical(attr(found, "searched"), sum(far) + 0)
      best <- mi_pairs(read_plink(stem), class, top = 9, by = by, run = backend, control = list(min_distance = 70))
      expect_identical(as.data.frame(best), utils::head(all[far, ], 9), ignore_attr = "row.names")
    }
    pack <- mi_pack(file, class)
    between <- as.data.frame(mi_pairs(pack, features = 1:20, top = 50, permutations = 9, seed = 1, run = backend,
                                      control = list(with = 21:40)))
    apart <- mi_pairs(pack, top = 50, permutations = 9, seed = 1, run = backend, control = list(min_distance = 1e6))
    expect_identical(as.data.frame(apart), between)
    expect_identical(attr(apart, "searched"), 400)
    weft_free(pack)
  }
  some <- mi_pairs(file, class, features = 1:5, control = list(with = 4:9, min_distance = 25))
  expect_identical(nrow(some), as.integer(attr(some, "searched")))
  unknown <- data.frame(chromosome = 1, position = c(NA, rep(5, 39)))
  expect_identical(nrow(mi_pairs(g, class, control = list(min_distance = 1, positions = unknown))), 39L)
  expect_error(mi_pairs(g, class, control = list(min_distance = 5)), "positions", class = "weft_error_input")
  expect_error(mi_pairs(file, class, control = list(min_distance = 5, full = TRUE)), "min_distance",
               class = "weft_error_input")
  expect_error(mi_pairs(file, class, control = list(min_distance = -1)), "min_distance", class = "weft_error_input")
})

test_that("a file that becomes shorter while it is read is an error, and R goes on", {
  skip_on_os("windows") # there the file is read whole
  stem <- tempfile()
  variants <- 3000
  make <- function() writeBin(as.raw(c(0x6c, 0x1b, 0x01, rep(0x1b, 50 * variants))), paste0(stem, ".bed"))
  make()
  writeLines(sprintf("1 rs%d 0 %d A G", seq_len(variants), seq_len(variants)), paste0(stem, ".bim"))
  writeLines(sprintf("f%d i%d 0 0 0 -9", 1:200, 1:200), paste0(stem, ".fam"))
  control <- weft:::run_control("cpu", 2, FALSE)
  summary_of <- function(columns) .Call(weft:::C_weft_mi_genotype_summary, columns, control)
  whole <- summary_of(weft:::genotype_columns(plink_file(stem)))
  columns <- weft:::genotype_columns(plink_file(stem))
  other <- weft:::genotype_columns(plink_file(stem))
  writeBin(as.raw(c(0x6c, 0x1b, 0x01)), paste0(stem, ".bed"))
  expect_error(summary_of(columns), class = "weft_error_input", "truncated")
  expect_error(summary_of(other[2900]), class = "weft_error_input", "truncated")
  expect_error(mi_rank(plink_file(stem), rep(0:1, 100)), class = "weft_error_input")
  rm(columns, other)
  gc()
  make()
  expect_identical(summary_of(weft:::genotype_columns(plink_file(stem))), whole)
})

test_that("planes that exceed the memory are searched in blocks, with the same result", {
  set.seed(4)
  n <- 130
  stem <- withr::local_tempfile()
  p <- 23
  codes <- matrix(sample(c(0L, 2L, 3L), 4L * 33L * p, TRUE), 4L)
  codes[sample(length(codes), 40)] <- 1L
  writeBin(c(as.raw(c(0x6c, 0x1b, 1)), as.raw(colSums(codes * c(1L, 4L, 16L, 64L)))), paste0(stem, ".bed"))
  writeLines(sprintf("%d rs%d 0 %d A G", rep(1:2, c(12, 11)), 1:p, 100 * 1:p), paste0(stem, ".bim"))
  writeLines(sprintf("f i%d 0 0 0 -9", seq_len(n)), paste0(stem, ".fam"))
  x <- plink_file(stem)
  class <- sample(2, n, TRUE)
  strata <- sample(c("a", "b", NA), n, TRUE, c(3, 3, 1))
  small <- list(weft.memory = 3 * 8 * 3 * 10) # ten variants at a time
  expect_null(weft:::variants_at_once(x))
  expect_identical(withr::with_options(small, weft:::variants_at_once(x)), 5)
  calls <- list(
    list(na = "drop", top = 40), list(na = "level", top = Inf, min_mi = 0.01),
    list(na = "drop", top = 7, by = "interaction"),
    list(na = "drop", features = c(3, 9:20), with = 1:12, top = 30), list(na = "drop", top = 25, strata = strata),
    list(na = "drop", min_distance = 350, top = 50, permutations = 6, seed = 1),
    list(na = "drop", top = 9, by = "interaction", features = 2:14, permutations = 4, seed = 2),
    list(na = "drop", top = 5, min_mi = 99, permutations = 2, seed = 3), list(na = "drop", features = 5, with = c(5, 6))
  )
  for (args in calls) {
    run <- function() call_with(mi_pairs, c(list(x, class, backend = "cpu"), args))
    whole <- run()
    blocks <- withr::with_options(small, run())
    expect_identical(tidy(blocks), tidy(whole))
    kept <- c("searched", "class_levels", "strata", "na", "permutations", "by", "backend")
    expect_identical(attributes(blocks)[kept], attributes(whole)[kept])
  }
  withr::local_options(small)
  expect_error(mi_pairs(x, class), "missing", class = "weft_error_input")
  expect_error(mi_pairs(x, class, na = "drop", features = "rs99"), "rs99", class = "weft_error_input")
  withr::local_options(weft.memory = "much")
  expect_error(mi_pairs(x, class, na = "drop"), "weft.memory", class = "weft_error_input")
})

test_that("F tests on a trait are those of the genotypes in memory", {
  set.seed(3)
  g <- matrix(sample(c(0:2, NA), 120 * 8, TRUE, c(5, 3, 1, 1)), 120)
  stem <- write_genotypes(withr::local_tempfile(), g)
  file <- plink_file(stem)
  trait <- stats::rnorm(120)
  class <- discretize(data.frame(trait), bins = 3)$trait
  found <- mi_pairs(file, class, na = "drop", top = 9)
  whole <- as.matrix(file)
  expect_identical(mi_trait(found, file, trait), mi_trait(found, whole, trait))
  expect_identical(mi_trait(found, file, trait), mi_trait(found, as.data.frame(whole), trait))
})
