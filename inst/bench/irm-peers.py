# One peer's partition of an edge list (row, column; from 0): prints seconds, and those of processors; writes the
# labels, a line each, rows then columns.
# python3 irm-peers.py PEER links.csv rows columns clusters.csv K     columns 0: an undirected graph of `rows` nodes
#   graph-tool   stochastic block model without degree correction, by minimum description length (Peixoto)
#   irmlearn     infinite relational model by collapsed Gibbs sampling, 50 sweeps; bipartite graphs only
#   spectral     scikit-learn's spectral co-clustering, which is told K
import csv, sys, time

peer, file, out = sys.argv[1], sys.argv[2], sys.argv[5]
rows, columns, k = int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[6])
with open(file) as f:
    pairs = [(int(a), int(b)) for a, b in csv.reader(f)]

if peer == "graph-tool":
    import graph_tool.all as gt
    g = gt.Graph(directed=False)
    g.add_vertex(rows + columns)
    g.add_edge_list([(a, (rows if columns else 0) + b) for a, b in pairs])
    args = dict(deg_corr=False)
    if columns:
        side = g.new_vp("int", [0] * rows + [1] * columns)
        args.update(clabel=side, pclabel=side)
    gt.seed_rng(1)
    started, worked = time.time(), time.process_time()
    labels = gt.minimize_blockmodel_dl(g, state_args=args).get_blocks().a
else:
    import numpy as np
    A = np.zeros((rows, columns or rows), dtype=int)
    for a, b in pairs:
        A[a, b] = 1
        if not columns:
            A[b, a] = 1
    started, worked = time.time(), time.process_time()
    if peer == "irmlearn":
        from irmlearn import IRM
        model = IRM(alpha=1, a=1, b=1, max_iter=50, verbose=False)
        model.fit(A)
        labels = list(model.sample_labels_) + list(model.feature_labels_)
    else:
        from sklearn.cluster import SpectralCoclustering
        model = SpectralCoclustering(n_clusters=k, random_state=1)
        model.fit(A)
        labels = list(model.row_labels_) + list(model.column_labels_ if columns else [])
seconds, processor = time.time() - started, time.process_time() - worked
with open(out, "w") as f:
    f.write("\n".join(str(int(b)) for b in labels))
print("%.3f %.3f" % (seconds, processor))
