# Nested-free bipartite stochastic block model by graph-tool on an edge list (row, column; from 0): seconds and both partitions.
# python3 irm-peers.py links.csv rows clusters.csv
import csv, sys, time
import graph_tool.all as gt

rows = int(sys.argv[2])
with open(sys.argv[1]) as f:
    pairs = [(int(a), int(b)) for a, b in csv.reader(f)]
columns = 1 + max(b for a, b in pairs)
g = gt.Graph(directed=False)
g.add_vertex(rows + columns)
g.add_edge_list([(a, rows + b) for a, b in pairs])
side = g.new_vp("int", [0] * rows + [1] * columns)
gt.seed_rng(1)
started = time.time()
state = gt.minimize_blockmodel_dl(g, state_args=dict(deg_corr=False, clabel=side, pclabel=side))
seconds = time.time() - started
with open(sys.argv[3], "w") as f:
    f.write("\n".join(str(b) for b in state.get_blocks().a))
print("%.2f" % seconds)
