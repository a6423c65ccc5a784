#!/bin/sh
# What weft keeps of devices between calls, on two devices that are made up (kept.cpp), under both sanitizers. Needs the
# headers of a CUDA toolkit (CUDA_HOME, or beside nvcc) and no device. Seconds: 20. Usage: sh proofs/kept.sh
set -eu
cd "$(dirname "$0")/.."
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
home=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$nvcc")")")}
work=$(mktemp -d); trap 'rm -rf "$work"' 0
flags="-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -I src -I $home/include"
for file in arena context; do ${CC:-cc} -std=c11 $flags -c "src/core/call/$file.c" -o "$work/$file.o"; done
for file in src/core/device/device.cu src/core/device/kept.cu proofs/kept.cpp; do
  ${CXX:-c++} -std=c++17 $flags -x c++ -c "$file" -o "$work/$(basename "$file").o"
done
${CXX:-c++} $flags "$work"/*.o -lm -lpthread -o "$work/kept"
"$work/kept"
