# Planes that a device makes of genotypes and that stay there: what searches find, and what is fetched back, must be
# what planes made on the host give.

# Scores of all pairs, on either back end.
all_pairs <- function(pack, backend) {
  keep <- list(top = Inf, min_mi = -Inf, min_gain = -Inf, by = "mi", near = NULL)
  weft:::search_tuples(pack, NULL, 2L, keep, NULL, weft:::run_control(backend, 2L, FALSE, pack$names, "Searching"))
}

expect_planted <- function(file, class, na) {
  host <- weft:::make_pack(file, class, na, NULL, NULL, weft_run(threads = 2L, progress = FALSE))
  planted <- weft:::make_pack(file, class, na, NULL, NULL, weft_run(threads = 2L, progress = FALSE), backend = "cuda")
  on.exit(lapply(list(host, planted), weft_free))
  info <- lapply(list(host, planted), function(pack) .Call(weft:::C_weft_mi_pack_info, pack$pointer))
  few <- length(info[[1]]$class_rows) <= 8
  expect_identical(info[[2]]$on_device, few)
  info <- lapply(info, function(i) i[names(i) != "on_device"])
  expect_identical(info[[2]], info[[1]])
  found <- all_pairs(host, "cpu")
  expect_identical(all_pairs(planted, "cuda"), found)
  expect_identical(all_pairs(planted, "cpu"), found) # all planes are fetched
  if (few) expect_error(weft:::what_is_packed(planted), "only a device has")
}

test_that("planes made on a device are those made on the host", {
  skip_if_no_cuda()
  set.seed(1)
  stem <- withr::local_tempfile()
  for (n in c(1, 3, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 3001)) {
    file <- plink_file(write_genotypes(stem, some_genotypes(n, sample(2:70, 1))))
    for (classes in sample(1:9, 4)) {
      class <- sample(classes, n, TRUE)
      if (n > 10) class[sample(n, n %/% 5)] <- NA
      for (na in c("drop", "level")) expect_planted(file, factor(class, 1:classes), na)
    }
  }
})

test_that("a file's pairs are found with planes on the device, whatever is asked for", {
  skip_if_no_cuda()
  set.seed(2)
  stem <- withr::local_tempfile()
  n <- 700
  file <- plink_file(write_genotypes(stem, some_genotypes(n, 120)))
  class <- sample(2, n, TRUE)
  for (ask in list(
    list(), list(by = "interaction"), list(top = Inf, min_mi = 0.01), list(features = 1:40, with = 30:100),
    list(min_distance = 5000), list(strata = sample(3, n, TRUE)), list(permutations = 9, seed = 1), list(top = 1)
  )) {
    whole <- function(backend) call_with(mi_pairs, c(list(file, class, na = "drop", backend = backend), ask))
    expect_identical(tidy(whole("cuda")), tidy(whole("cpu")))
  }
  expect_error(mi_pairs(file, class, run = "cuda"), "must not have missing values", class = "weft_error_input")
  full <- lapply(c("cpu", "cuda"), function(b) mi_pairs(file, class, na = "drop", run = b, control = list(full = TRUE)))
  expect_identical(full[[1]]$mi, full[[2]]$mi)
})

test_that("a device without room for codes and planes leaves planes to the host", {
  skip_if_no_cuda()
  set.seed(3)
  file <- plink_file(write_genotypes(withr::local_tempfile(), some_genotypes(3000, 200, 0)))
  class <- sample(2, 3000, TRUE)
  whole <- tidy(mi_pairs(file, class, na = "drop", run = "cpu"))
  for (limit in c(2e5, 1e6, 1e8)) {
    withr::local_options(weft.device_memory = limit)
    found <- tryCatch(tidy(mi_pairs(file, class, na = "drop", run = "cuda")), weft_error_memory = function(e) NULL)
    if (limit == 1e8 || !is.null(found)) expect_identical(found, whole)
  }
})
