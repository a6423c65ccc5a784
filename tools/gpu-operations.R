# Every operation of the table of twins once on the device, for compute-sanitizer, and the handles; or, by the pattern
# WEFT_OPERATIONS, some of them.
library(weft)
for (file in Sys.glob("tests/testthat/helper*.R")) source(file)
operations <- unlist(lapply(ls(pattern = "^twins_"), function(maker) get(maker)()), recursive = FALSE)
names <- grep(Sys.getenv("WEFT_OPERATIONS"), names(operations), value = TRUE)
stopifnot(length(names) > 0)
for (name in names) {
  set.seed(sum(utf8ToInt(name)))
  took <- system.time(operations[[name]]$work("cuda"))[["elapsed"]]
  cat(sprintf("%s: %.1f s\n", name, took))
}
h <- weft_upload(matrix(runif(1e5), 100), precision = "single")
stopifnot(max(abs(as.matrix(h))) <= 1)
weft_free(h)
