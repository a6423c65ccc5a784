# Writes tests/testthat/folders.tgz: small folders of Zarr (as AnnData writes them, and arrays by every codec) and of
# BPCells, with .h5ad files of the same data. Usage: python tools/make-folders.py, with the packages anndata, zarr (3)
# and bpcells. The tests have the same numbers by the same formulas.
import gzip, io, os, shutil, tarfile, tempfile, warnings
import anndata as ad, bpcells.experimental as bp, numpy as np, pandas as pd, scipy.sparse as sp, zarr
from numcodecs import Blosc, GZip, LZ4, Zlib, Zstd
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

warnings.filterwarnings("ignore")
folder = tempfile.mkdtemp()
at = lambda name: os.path.join(folder, name)
i, j = np.arange(40)[:, None], np.arange(13)[None, :]
x = np.where((i * 7 + j * 13) % 5 == 0, 1 + (i * j) % 5, 0)
obs = pd.DataFrame({
    "whole": np.arange(40), "real": np.arange(40) / 7, "flag": np.arange(40) % 3 == 0,
    "kind": pd.Categorical([["b", "a", "c"][k % 3] for k in range(40)], categories=["c", "b", "a"]),
    "gaps": pd.Categorical([None if k % 4 == 0 else "only" for k in range(40)]),
    "maybe": pd.array([None if k % 5 == 0 else k for k in range(40)], dtype="Int64"),
}, index=["cell%d" % k for k in range(40)])
var = pd.DataFrame({"size": np.arange(13) * 10}, index=["gene%d" % k for k in range(13)])
layouts = {"csr": (sp.csr_matrix, "float32"), "csc": (sp.csc_matrix, "float64"), "dense": (np.asarray, "int32")}
for name, (layout, kind) in layouts.items():
    a = ad.AnnData(X=layout(x.astype(kind)), obs=obs.copy(), var=var.copy())
    a.write_h5ad(at(name + ".h5ad"))
    for version in (2, 3):
        ad.settings.zarr_write_format = version
        a.write_zarr(at("%s_%d.zarr" % (name, version)))

k = np.arange(2500)
values = ((k * k // 3) % 7 * (k % 11 > 3)).astype("int32")
group = zarr.open_group(at("codecs_2.zarr"), mode="w", zarr_format=2)
def put(name, values=values, chunks=(1000,), **how):
    group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks, **how)[...] = values
for kind in ["lz4", "lz4hc", "blosclz", "zlib", "zstd"]:
    for shuffle in (0, 1, 2):
        put("%s_%d" % (kind, shuffle), compressors=Blosc(kind, 5, shuffle, 2048))
for kind, codec in {"zlib": Zlib(6), "gzip": GZip(6), "zstd": Zstd(3), "lz4": LZ4(1)}.items():
    put(kind, compressors=codec)
grid = np.arange(77).reshape(11, 7)
for kind in ["<i2", ">i4", "<f4", ">f8", "|u1", "<u4", "<i8"]:
    put("grid_" + "".join(c for c in kind if c.isalnum()), grid.astype(kind), (4, 3), compressors=None)
put("columns", grid.astype("<i4"), (4, 3), compressors=None, order="F")
sparse = np.where(grid % 40 == 5, grid, 0).astype("<i4") # most of its chunks are nowhere
put("absent", sparse, (4, 3), compressors=None, config={"write_empty_chunks": False})
group = zarr.open_group(at("codecs_3.zarr"), mode="w", zarr_format=3)
for kind, codecs in {"blosc": [BloscCodec(cname="lz4")], "bits": [BloscCodec(cname="zstd", shuffle="bitshuffle")],
                     "zstd": [ZstdCodec(level=3, checksum=True)], "gzip": [GzipCodec()],
                     "sum": [ZstdCodec(), Crc32cCodec()], "plain": []}.items():
    put(kind, compressors=codecs)
put("columns", grid.astype("<i4"), (4, 3), filters=[TransposeCodec(order=(1, 0))], compressors=[])
put("shards", chunks=(100,), shards=(1000,), compressors=[ZstdCodec()])
put("shards_grid", sparse, (2, 3), shards=(4, 6), compressors=[], config={"write_empty_chunks": False})

counts = sp.csc_matrix(np.where((i * 7 + j * 13) % 3 == 0, 1 + (i * j) % 50, 0).T.astype("uint32"))
bp.DirMatrix.from_scipy_sparse(counts, at("bpcells_csc"))
bp.DirMatrix.from_scipy_sparse(counts.tocsr(), at("bpcells_csr"))

bytes = io.BytesIO()
with tarfile.open(fileobj=bytes, mode="w", format=tarfile.USTAR_FORMAT) as out:
    for where, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(where, name)
            entry = tarfile.TarInfo(os.path.relpath(path, folder))
            entry.size = os.path.getsize(path)
            with open(path, "rb") as file:
                out.addfile(entry, file)
with open("tests/testthat/folders.tgz", "wb") as out:
    out.write(gzip.compress(bytes.getvalue(), 9, mtime=0))
shutil.rmtree(folder)
