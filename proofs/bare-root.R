# One driver of proofs/bare-root.sh: what weft says of it, and what still works.
given <- commandArgs(TRUE)
library(weft)
wanted <- c(none = "no NVIDIA driver is installed", "without-device" = "no CUDA device is visible",
            old = "driver for up to 12000", "without-symbols" = "no NVIDIA driver is installed",
            "no-library" = "no NVIDIA driver is installed")[[given[1]]]
expect <- function(holds, what) if (!isTRUE(holds)) stop(given[1], ": ", what, call. = FALSE)
error_of <- function(code) tryCatch({
  code
  NULL
}, error = identity)

said <- character()
object <- withCallingHandlers(weft_install_cuda(from = given[2], ask = FALSE), message = function(m) {
  said <<- c(said, conditionMessage(m))
  invokeRestart("muffleMessage")
})
expect(file.exists(object), "the object is in place")
expect(any(grepl(wanted, said, fixed = TRUE)), "the installation says why it cannot be used yet")
expect(any(grepl("pip install nvidia-cublas", said, fixed = TRUE)), "and which libraries are missing")
devices <- weft_devices()
expect(nrow(devices) == 0 && grepl(wanted, attr(devices, "reason"), fixed = TRUE), "there is no device")
x <- matrix(sin(seq_len(200)), 50)
for (call in list(quote(pca(x, 2, run = "cuda")), quote(kernel_sum(x, run = "cuda")),
                  quote(mi_pairs(x > 0, rep(0:1, 25), run = "cuda")), quote(weft_upload(x)))) {
  error <- error_of(eval(call))
  expect(inherits(error, "weft_error_device"), paste("a classed error:", deparse(call)))
  expect(grepl(wanted, conditionMessage(error), fixed = TRUE), paste("the reason:", deparse(call)))
}
for (run in c("auto", "cpu")) {
  expect(identical(pca(x, 2, seed = 1, run = run)$backend, "cpu"), "the CPU works")
  expect(all(is.finite(kernel_sum(x, run = run))), "and kernel sums")
}
expect(is.null(weft_free()), "there is nothing to give back")
shown <- utils::capture.output(print(weft_sitrep()))
expect(any(grepl(wanted, shown, fixed = TRUE)), "weft_sitrep() has the reason")
expect(any(grepl("weft_cuda[.]so$", dir(dirname(object)))), "the object stays")
weft_install_cuda(remove = TRUE)
cat(sprintf("%-16s %s\n", given[1], attr(devices, "reason")))
