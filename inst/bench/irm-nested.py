# A nested partition by graph-tool's entropy() of the nested, degree-corrected block model, and the best that graph-tool
# finds in ten runs, with its seconds.
# python3 irm-nested.py FOLDER nodes directed|undirected [runs]   FOLDER: links.csv, levels.csv (numbers from 0)
# python3 irm-nested.py collection NAME FOLDER   writes a graph of graph-tool: links.csv, and nodes and kind
# python3 irm-nested.py masked FOLDER nodes KIND runs   links.csv without the pairs of held.csv; its third column tells
# links from others: AUC of their probabilities by the best partition, each pair's by itself
import sys, time, warnings
import numpy as np

warnings.simplefilter("ignore")
import graph_tool.all as gt

if sys.argv[1] == "collection":
    g = gt.collection.data[sys.argv[2]]
    np.savetxt(sys.argv[3] + "/links.csv", g.get_edges()[:, :2], "%d", ",")
    print(g.num_vertices(), "directed" if g.is_directed() else "undirected")
    sys.exit()

if sys.argv[1] == "masked":
    folder, n, directed, runs = sys.argv[2], int(sys.argv[3]), sys.argv[4] == "directed", int(sys.argv[5])
    g = gt.Graph(directed=directed)
    g.add_vertex(n)
    g.add_edge_list(np.loadtxt(folder + "/links.csv", delimiter=",", dtype=int, ndmin=2))
    held = np.loadtxt(folder + "/held.csv", delimiter=",", dtype=int, ndmin=2)
    found, started = [], time.time()
    for seed in range(runs):
        gt.seed_rng(seed + 1)
        np.random.seed(seed + 1)
        found.append(gt.minimize_nested_blockmodel_dl(g))
    best = min(found, key=lambda state: state.entropy())
    score = np.array([best.get_edges_prob([(i, j)]) for i, j in held[:, :2]])
    order = score.argsort(kind="stable")
    rank = np.empty(len(score))
    rank[order] = np.arange(1, len(score) + 1)
    for value in np.unique(score):
        rank[score == value] = rank[score == value].mean()
    link = held[:, 2] > 0
    links = link.sum()
    auc = (rank[link].sum() - links * (links + 1) / 2) / (links * (len(score) - links))
    print("  graph-tool, best of %d: AUC %.4f, %.1f s" % (runs, auc, time.time() - started))
    sys.exit()

folder, n, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
runs = int(sys.argv[4]) if len(sys.argv) > 4 else 10
g = gt.Graph(directed=kind == "directed")
g.add_vertex(n)
g.add_edge_list(np.loadtxt(folder + "/links.csv", delimiter=",", dtype=int, ndmin=2))
levels = np.loadtxt(folder + "/levels.csv", delimiter=",", dtype=int, ndmin=2)
below, bs = np.arange(n), []
for column in levels.T:
    label = np.zeros(below.max() + 1, dtype=int)
    label[below] = column
    bs.append(label)
    below = column
state = gt.NestedBlockState(g, bs=bs, state_args=dict(deg_corr=True))
print("  weft's partition by graph-tool: %.2f" % state.entropy())
if runs == 0:
    sys.exit()
lengths, groups, started = [], [], time.time()
for seed in range(runs):
    gt.seed_rng(seed + 1)
    np.random.seed(seed + 1)
    found = gt.minimize_nested_blockmodel_dl(g)
    lengths.append(found.entropy())
    groups.append(found.get_levels()[0].get_nonempty_B())
print("  graph-tool, %d runs: best %.2f (%d groups), median %.2f, %.1f s each"
      % (runs, min(lengths), groups[int(np.argmin(lengths))], np.median(lengths), (time.time() - started) / runs))
