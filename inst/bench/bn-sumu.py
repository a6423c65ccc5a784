# Samples networks with sumu's Gadget, for bn-repository.R. Its prior gives each number of a node's parents the same
# weight; candidates and the most parents from outside are its own settings.
#   python bn-sumu.py codes.csv chains iterations edges.csv
# codes.csv: levels from 0, separated by blanks, a column per node. edges.csv gets a line per chain: seconds of
# processor time that its steps and its graphs took, and the share of graphs with each edge, from * nodes + to.
import sys
import time

import numpy as np
import sumu

codes, chains, iterations, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
data = sumu.Data(codes)
with open(out, "w") as lines:
    for seed in range(chains):
        np.random.seed(seed)
        g = sumu.Gadget(data=data, scoref="bdeu", ess=1, max_id=-1, K=min(10, data.n - 1), d=2, cp_algo="greedy-lite",
                        mc3_chains=4, burn_in=iterations // 4, iterations=iterations - iterations // 4, thinning=20,
                        tolerance=2**-32)
        g._find_candidate_parents()
        g._precompute_scores_for_all_candidate_psets()
        g._precompute_candidate_restricted_scoring()
        g._precompute_candidate_complement_scoring()
        started = time.process_time()
        g._init_mcmc()
        g._run_mcmc()
        dags, _ = g._sample_dags()
        seconds = time.process_time() - started
        edges = np.zeros((data.n, data.n))
        for dag in dags:
            for family in dag:
                child = int(family[0])
                for parent in family[1] if len(family) > 1 and hasattr(family[1], "__iter__") else family[1:]:
                    edges[int(parent), child] += 1
        lines.write(" ".join(repr(float(x)) for x in [seconds, *(edges / len(dags)).ravel()]) + "\n")
        lines.flush()
