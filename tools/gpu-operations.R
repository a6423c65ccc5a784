# Every operation of the table of twins once on the device, for compute-sanitizer, and the handles; or, by the pattern
# WEFT_OPERATIONS, some of them. Each line has the seconds since the start.
library(weft)
for (file in Sys.glob("tests/testthat/helper*.R")) source(file)
operations <- unlist(lapply(ls(pattern = "^twins_"), function(maker) get(maker)()), recursive = FALSE)
names <- grep(Sys.getenv("WEFT_OPERATIONS"), names(operations), value = TRUE)
stopifnot(length(names) > 0)
started <- proc.time()[[3L]]
for (name in names) {
  set.seed(sum(utf8ToInt(name)))
  invisible(operations[[name]]$work("cuda"))
  cat(sprintf("%5.0f s  %s\n", proc.time()[[3L]] - started, name))
}
h <- weft_upload(matrix(runif(1e5), 100), precision = "single")
stopifnot(max(abs(as.matrix(h))) <= 1)
weft_free(h)
