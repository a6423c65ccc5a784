/* The numbers by which engines are chosen; kernels rely on them. */
#pragma once

#define WEFT_IRM_LIGHT_CLUSTERS 2048 /* most clusters of either mode for a device's kernels of light nodes, */
#define WEFT_IRM_WGMMA_CLUSTERS 1024 /* and for those on Hopper's tensor cores */
