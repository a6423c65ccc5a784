# Every operation on both back ends, on the same fresh inputs, by one table: name, work(backend), tolerance (0: the same
# bits). A room adds its operations as twins_<room>() in its own helper file. WEFT_TWIN_SEED repeats a failure, and the
# pattern WEFT_OPERATIONS compares a part of them.

twin_operations <- function() unlist(lapply(functions_of_rooms("twins_"), function(make) make()), recursive = FALSE)

test_that("every operation gives on the device what it gives on the CPU", {
  skip_if_no_cuda()
  seed <- as.integer(Sys.getenv("WEFT_TWIN_SEED", as.integer(Sys.time()) %% 1e6))
  operations <- twin_operations()
  operations <- operations[grep(Sys.getenv("WEFT_OPERATIONS"), names(operations))]
  for (k in seq_along(operations)) {
    operation <- operations[[k]]
    name <- names(operations)[k]
    label <- sprintf("%s (WEFT_TWIN_SEED=%d)", name, seed)
    results <- lapply(c("cpu", "cuda"), function(backend) withr::with_seed(seed + k, operation$work(backend)))
    if (operation$tolerance == 0) expect_identical(results[[2]], results[[1]], label = label)
    else expect_equal(results[[2]], results[[1]], tolerance = operation$tolerance, label = label)
  }
})

test_that("the table has every room's operations, and they run on the CPU", {
  operations <- twin_operations()
  expect_true(all(c("mi_rank, mixed levels", "mi_pairs, binary", "mi_network, aracne", "draws, normal", "pca, krylov",
                    "irm, light nodes", "kernel sums, gaussian") %in% names(operations)))
  for (name in names(operations)) expect_no_error(operations[[name]]$work("cpu"))
})
