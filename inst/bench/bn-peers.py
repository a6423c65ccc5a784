# FLOP (flopsearch) or BOSS (causal-learn) for bn-peers.R: python bn-peers.py flop|flop0|boss rows.csv class.csv
# Writes the equivalence class, 1 for an arrow from row to column and 2 for a line, and prints seconds of processor time.
import sys
import time

import numpy as np

method, data, out = sys.argv[1:4]
rows = np.loadtxt(data, delimiter=",")
p = rows.shape[1]
if method != "boss":
    from flopsearch import flop

    started = time.process_time()
    found = np.asarray(flop(rows, 2.0, restarts=20 if method == "flop" else 0))
else:
    from causallearn.search.PermutationBased.BOSS import boss

    started = time.process_time()
    graph = boss(rows, score_func="local_score_BIC_from_cov", verbose=False).graph
    found = np.zeros((p, p), int)
    found[(graph == -1) & (graph.T == 1)] = 1
    found[(graph == -1) & (graph.T == -1)] = 2
print(time.process_time() - started)
np.savetxt(out, found, fmt="%d", delimiter=",")
