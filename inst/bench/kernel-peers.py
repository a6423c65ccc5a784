# Run by kernel.R: kernel sums of sklearn and mlpack on points in CSV files. Arguments: directory, kernel, h, relative
# error, peer. Writes the sums (not normalised) and prints the seconds.
import sys, time
import numpy as np

folder, kernel, h, error, peer = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
x = np.loadtxt(folder + "/x.csv", delimiter=",", ndmin=2)
q = np.loadtxt(folder + "/q.csv", delimiter=",", ndmin=2)
n, d = x.shape
if peer == "sklearn":
    from sklearn.neighbors import KDTree
    start = time.time()
    f = KDTree(x).kernel_density(q, h, kernel=kernel, rtol=error)
    seconds = time.time() - start
    from sklearn.neighbors import KDTree as T
    one = T(np.zeros((1, d))).kernel_density(np.zeros((1, d)), h, kernel=kernel, rtol=0)
    f = f / one[0]
else:
    import mlpack
    start = time.time()
    out = mlpack.kde(reference=x, query=q, kernel=kernel, bandwidth=h, rel_error=error, abs_error=0.0)
    seconds = time.time() - start
    one = mlpack.kde(reference=np.zeros((1, d)), query=np.zeros((1, d)), kernel=kernel, bandwidth=h)
    f = np.asarray(out["predictions"]).ravel() * n / np.asarray(one["predictions"]).ravel()[0]
np.savetxt(folder + "/f.csv", f, fmt="%.17g")
print(seconds)
