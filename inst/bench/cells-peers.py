# scanpy's part of cells-peers.R: reads the compressed rows p, i and x in a folder, writes seconds, processor seconds,
# GB, loadings and groups.
import resource
import sys
import time

import anndata
import numpy
import scanpy
import scipy.sparse

folder, n, p, k = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
read = lambda name: numpy.fromfile(folder + "/" + name, dtype=numpy.int32)
x = scipy.sparse.csr_matrix((read("x").astype(numpy.float32), read("i"), read("p")), shape=(n, p))
started, cpu = time.time(), time.process_time()
cells = anndata.AnnData(x)
scanpy.pp.normalize_total(cells, target_sum=1e4)
scanpy.pp.log1p(cells)
scanpy.pp.pca(cells, n_comps=k)
print("  scanpy: components after %.1f s" % (time.time() - started), flush=True)
groups = numpy.zeros(n)
if k == 50:
    scanpy.pp.neighbors(cells)
    scanpy.tl.leiden(cells, flavor="igraph", n_iterations=2, directed=False)
    groups = cells.obs["leiden"].astype(int).to_numpy().astype(float)
seconds, cpu = time.time() - started, time.process_time() - cpu
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
numpy.concatenate([[seconds, cpu, memory], cells.varm["PCs"].T.ravel().astype(float),
                   groups]).tofile(folder + "/out")
