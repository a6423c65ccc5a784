# Python's part of cells-import.R: what is done (write, read, bpcells) in a folder; prints seconds, processor seconds,
# the most memory in GB, and bytes.
import os
import resource
import sys
import time

import anndata
import h5py
import numpy
import scipy.sparse

what, folder = sys.argv[1], sys.argv[2]
plain, packed = folder + "/plain.h5ad", folder + "/gzip.h5ad"
started, cpu = time.time(), time.process_time()
size = 0
if what == "write":
    p = int(sys.argv[3])
    read = lambda name, kind: numpy.fromfile(folder + "/" + name, dtype=kind)
    starts = read("p", numpy.float64).astype(numpy.int64)
    x = scipy.sparse.csr_matrix((read("x", numpy.float32), read("i", numpy.int32), starts), shape=(len(starts) - 1, p))
    cells = anndata.AnnData(x)
    cells.write_h5ad(plain)
    cells.write_h5ad(packed, compression="gzip")
elif what == "read":
    with h5py.File(sys.argv[3], "r") as file:
        data, indices = file["X/data"], file["X/indices"]
        for first in range(0, data.shape[0], 1 << 22):
            data[first:first + (1 << 22)]
            indices[first:first + (1 << 22)]
else:
    import bpcells.experimental
    bpcells.experimental.DirMatrix.from_h5ad(sys.argv[3], folder + "/bpcells")
    size = sum(os.path.getsize(folder + "/bpcells/" + name) for name in os.listdir(folder + "/bpcells"))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(time.time() - started, time.process_time() - cpu, peak, size)
