# Every operation of the table of twins once on the device, for compute-sanitizer, and the handles; or, by the pattern
# WEFT_OPERATIONS, some of them, of which WEFT_SHARE, as "2/6", takes a part. Prints what each took, in seconds.
library(weft)
for (file in Sys.glob("tests/testthat/helper*.R")) source(file)
operations <- unlist(lapply(ls(pattern = "^twins_"), function(maker) get(maker)()), recursive = FALSE)
names <- grep(Sys.getenv("WEFT_OPERATIONS"), names(operations), value = TRUE)
stopifnot(length(names) > 0)
share <- as.integer(strsplit(Sys.getenv("WEFT_SHARE", "1/1"), "/")[[1]])
for (name in names[seq_along(names) %% share[2] == share[1] %% share[2]]) {
  set.seed(sum(utf8ToInt(name)))
  took <- system.time(operations[[name]]$work("cuda"))[["elapsed"]]
  cat(sprintf("%.1f %s\n", took, name))
  flush(stdout()) # what is read when a tool is stopped
}
h <- weft_upload(matrix(runif(1e5), 100), precision = "single")
stopifnot(max(abs(as.matrix(h))) <= 1)
weft_free(h)
