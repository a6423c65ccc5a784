/* Component after component: gs and nipals. */
#pragma once

#include "pca/engines/run.h"

/* The k leading triplets of X into run->out, one after another; X is open. */
weft_status weft_pca_vectors(weft_pca_run *run);
