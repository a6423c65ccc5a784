#!/bin/sh
# Builds the CUDA object for all devices, compute capability 7.5 to 12.0 and PTX. The CUDA runtime is in it; NVIDIA's
# other libraries are not, and are opened when they are needed. Writes an archive of the object and of the key of its
# sources, and the archive's SHA-256, for weft_install_cuda(from = ).
# Usage: tools/gpu-object.sh FOLDER [capabilities]     minutes: 25 of processor; JOBS=8 builds in parallel
set -eu
folder=$1; arch=${2:-all}
mkdir -p "$folder"; folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d); trap 'rm -rf "$work"' 0
mkdir "$work/lib" "$work/source"
{ git archive HEAD 2>/dev/null || tar -c --exclude='*.o' --exclude='*.so' --exclude=Makevars -- *; } | # or of a copy
  tar -x -C "$work/source"
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
export NVCC_APPEND_FLAGS="--threads 4" # kinds of devices side by side: the longest file takes half of the time of all
WEFT_CUDA=yes WEFT_CUDA_ARCH=$arch WEFT_MPI=no WEFT_TESTS=no MAKEFLAGS=-j$jobs \
  R CMD INSTALL --no-test-load --no-docs -l "$work/lib" "$work/source" >"$work/log" 2>&1 || {
  tail -20 "$work/log" >&2; exit 1; }
mkdir "$work/object"
cp "$work/lib/weft/libs/cuda/weft_cuda.so" "$work/lib/weft/cuda/key" "$work/object"
strip -s "$work/object/weft_cuda.so"
needs=$(objdump -p "$work/object/weft_cuda.so" | awk '/NEEDED/ { print $2 }' | tr '\n' ' ')
case $needs in *cublas* | *cusolver* | *cusparse* | *cudart* | *libcuda.*) echo "linked to: $needs" >&2; exit 1 ;; esac
version=$(sed -n 's/^Version: *//p' DESCRIPTION)
name=weft-cuda-$version-$(cut -c1-8 "$work/object/key")-$(uname -m).tar.xz
XZ_OPT=-6 tar -C "$work/object" --owner=0 --group=0 --mtime=@0 -cJf "$folder/$name" key weft_cuda.so
(cd "$folder" && sha256sum "$name" >"$name.sha256")
size=$(stat -c %s "$folder/$name")
echo "$folder/$name: $((size / 1000000)) MB, the object $(($(stat -c %s "$work/object/weft_cuda.so") / 1000000)) MB"
echo "needs: $needs"
[ "$size" -le 60000000 ] || { echo "more than 60 MB" >&2; exit 1; }
