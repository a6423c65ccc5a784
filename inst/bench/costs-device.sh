#!/bin/sh
# The costs of calls on a device beside their work: sh inst/bench/costs-device.sh, in the source folder, with weft
# installed in .lib with CUDA and WEFT_TESTS=yes. On one H100 about seven minutes: tests of what opens libraries and of
# densities (two), memcheck of principal components (two), first calls in fresh processes (two and a half), densities
# moved by their score, densities on a grid (half a minute).
export R_LIBS="$PWD/.lib" WEFT_TEST_CUDA=1
Rscript tools/test-and-count.R twins,pca,kernel-tensor,kernel-line,devices,backend,handles,memory
sh tools/gpu-check.sh one memcheck "pca, (gram|sparse|krylov)"
Rscript inst/bench/opening.R
Rscript inst/bench/kernel-score.R debiased
Rscript inst/bench/kernel-score.R around
Rscript inst/bench/peers.R --system kernel --only "density on a grid"
