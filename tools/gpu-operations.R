# Every operation of the table of twins once on the device, for compute-sanitizer, and the handles.
library(weft)
for (file in Sys.glob("tests/testthat/helper-twins-*.R")) source(file)
operations <- unlist(lapply(ls(pattern = "^twins_"), function(maker) get(maker)()), recursive = FALSE)
for (name in names(operations)) {
  set.seed(sum(utf8ToInt(name)))
  invisible(operations[[name]]$work("cuda"))
  cat(name, "\n")
}
h <- weft_upload(matrix(runif(1e5), 100), precision = "single")
stopifnot(max(abs(as.matrix(h))) <= 1)
weft_free(h)
