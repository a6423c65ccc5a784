# Files that anndata itself writes, in every layout it has: a store made of one holds the same numbers and tables.
# Python is that of WEFT_PYTHON, or the first of the path.

python <- Sys.getenv("WEFT_PYTHON", unname(Sys.which("python3")))
has_anndata <- nzchar(python) && requireNamespace("rhdf5", quietly = TRUE) &&
  system2(python, c("-c", shQuote("import anndata")), stdout = FALSE, stderr = FALSE) == 0
skip_if_not(has_anndata, "rhdf5 and Python with anndata")

# What both sides make: 40 cells, 13 genes.
script <- '
import sys, numpy as np, pandas as pd, scipy.sparse as sp, anndata as ad
folder = sys.argv[1]
i, j = np.arange(40)[:, None], np.arange(13)[None, :]
x = np.where((i * 7 + j * 13) % 5 == 0, 1 + (i * j) % 5, 0)
obs = pd.DataFrame({
  "whole": np.arange(40), "real": np.arange(40) / 7, "flag": np.arange(40) % 3 == 0,
  "text": ["t%d" % (k % 9) for k in range(40)],
  "kind": pd.Categorical([["b", "a", "c"][k % 3] for k in range(40)], categories=["c", "b", "a"]),
  "gaps": pd.Categorical([None if k % 4 == 0 else "only" for k in range(40)]),
  "maybe": pd.array([None if k % 5 == 0 else k for k in range(40)], dtype="Int64"),
  "perhaps": pd.array([None if k % 7 == 0 else k % 2 == 0 for k in range(40)], dtype="boolean"),
}, index=["cell%d" % k for k in range(40)])
var = pd.DataFrame({"size": np.arange(13) * 10}, index=["gene%d" % k for k in range(13)])
def write(name, X, **how):
    a = ad.AnnData(X=X, obs=obs.copy(), var=var.copy())
    a.layers["twice"] = X * 2
    a.raw = ad.AnnData(X=sp.csr_matrix(x * 3), obs=obs.copy(), var=var.copy())
    a = a[:, :10].copy() if name == "part" else a
    a.write_h5ad(folder + "/" + name + ".h5ad", **how)
    for v in (2, 3) if how.get("compression") is None and hasattr(ad.settings, "zarr_write_format") else ():
        ad.settings.zarr_write_format = v
        a.write_zarr("%s/%s_v%d.zarr" % (folder, name, v))
layouts = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "dense": np.asarray}
for layout, make in layouts.items():
    for kind in ["float32", "float64", "int32", "int64", "uint8", "uint16"]:
        for packed in [None, "gzip", "lzf"]:
            write("_".join([layout, kind, str(packed)]), make(x.astype(kind)), compression=packed)
    ad.read_h5ad(folder + "/" + layout + "_float32_None.h5ad", backed="r").copy(folder + "/backed_" + layout + ".h5ad")
write("flags", sp.csr_matrix(x > 0))
write("unsorted", sp.csr_matrix((np.array([5., 1., 2.]), np.array([3, 1, 0]), np.r_[0, 2, np.full(39, 3)]),
                                  shape=(40, 13)))
write("part", sp.csr_matrix(x.astype("float32")))
'

truth <- function(columns = 13) {
  out <- outer(0:39, 0:12, function(i, j) ifelse((i * 7 + j * 13) %% 5 == 0, 1 + (i * j) %% 5, 0))[, seq_len(columns)]
  dimnames(out) <- list(sprintf("cell%d", 0:39), sprintf("gene%d", seq_len(columns) - 1))
  out
}

folder <- withr::local_tempdir()
writeLines(script, file.path(folder, "make.py"))
said <- suppressWarnings(system2(python, c(file.path(folder, "make.py"), folder), stdout = TRUE, stderr = TRUE))
skip_if(!file.exists(file.path(folder, "part.h5ad")), paste(utils::tail(said, 1L), collapse = " "))

test_that("all layouts, types and compressions of X, and files in backed mode, hold the same numbers", {
  files <- list.files(folder, "^(csr|csc|dense|backed)_.*h5ad$", full.names = TRUE)
  expect_gte(length(files), 57L)
  for (file in files) {
    expect_identical(as.matrix(as_store(file)), truth(), info = basename(file))
    if (!grepl("float32_gzip", file)) next
    expect_identical(as.matrix(as_store(file, layer = "twice")), 2 * truth(), info = basename(file))
    expect_identical(as.matrix(as_store(file, layer = "raw")), 3 * truth(), info = basename(file))
  }
  expect_identical(as.matrix(as_store(file.path(folder, "flags.h5ad"))), (truth() > 0) * 1)
  expect_identical(as.matrix(as_store(file.path(folder, "part.h5ad"))), truth(10))
  expect_identical(as.matrix(as_store(file.path(folder, "part.h5ad"), layer = "raw")), 3 * truth())
  odd <- truth() * 0
  odd[1, c(2, 4)] <- c(1, 5)
  odd[2, 1] <- 2
  expect_identical(as.matrix(as_store(file.path(folder, "unsorted.h5ad"))), odd)
})

test_that("Zarr folders give the bytes of the stores that .h5ad files give", {
  folders <- list.files(folder, "zarr$", full.names = TRUE)
  skip_if(!length(folders), "an anndata that writes both versions of Zarr")
  expect_gte(length(folders), 40L)
  sum_of <- function(path, ...) unname(tools::md5sum(store_file(as_store(path, ...))))
  for (path in folders) {
    file <- sub("_v[23][.]zarr$", ".h5ad", path)
    expect_identical(sum_of(path), sum_of(file), info = basename(path))
    expect_identical(sum_of(path, layer = "raw"), sum_of(file, layer = "raw"), info = basename(path))
  }
})

test_that("tables hold what pandas wrote", {
  k <- 0:39
  x <- as_store(file.path(folder, "csr_float32_gzip.h5ad"))
  obs <- store_data(x)
  expect_identical(rownames(obs), sprintf("cell%d", k))
  expect_equal(obs$whole, k)
  expect_identical(obs$real, k / 7)
  expect_identical(obs$flag, k %% 3 == 0)
  expect_identical(as.character(obs$text), sprintf("t%d", k %% 9))
  expect_identical(obs$kind, factor(c("b", "a", "c")[k %% 3 + 1], c("c", "b", "a")))
  expect_identical(obs$gaps, factor(ifelse(k %% 4 == 0, NA, "only"), "only"))
  expect_equal(obs$maybe, ifelse(k %% 5 == 0, NA, k))
  expect_identical(obs$perhaps, ifelse(k %% 7 == 0, NA, k %% 2 == 0))
  expect_equal(store_data(x, "columns"), data.frame(size = 0:12 * 10, row.names = sprintf("gene%d", 0:12)))
})
