#!/bin/sh
case ${cuda_compiler_version:-None} in
  None) WEFT_CUDA=no ;; # weft::weft_install_cuda() adds the CUDA part later
  *) WEFT_CUDA=yes WEFT_CUDA_ARCH=all ;;
esac
export WEFT_CUDA WEFT_CUDA_ARCH WEFT_MPI=no MAKEFLAGS="-j${CPU_COUNT:-1}"
"$R" CMD INSTALL --build .
