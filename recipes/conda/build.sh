#!/bin/sh
# The CUDA part is left out: a device's owner adds it with weft::weft_install_cuda().
export WEFT_CUDA=no WEFT_MPI=no MAKEFLAGS="-j${CPU_COUNT:-1}"
"$R" CMD INSTALL --build .
