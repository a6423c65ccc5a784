#!/bin/sh
# A CUDA object that tools/gpu-object.sh built, in a root that has R and weft, and no compiler, make, Python or CUDA:
# weft_install_cuda(from = ) installs it, and each kind of driver gives its reason and no crash: none, one without a
# device, one that is too old, one without symbols, and a file that is no library. Then NVIDIA's libraries, which are
# missing there, are asked for (bare-libraries.cpp). The root is a copy in a temporary folder; needs root rights
# (chroot), gcc and a CUDA toolkit outside of it. Seconds: 30.
# Usage: sh proofs/bare-root.sh ARCHIVE [LIBRARY]     LIBRARY: where weft is, built of the same sources (.lib)
set -eu
archive=$(readlink -f "$1"); library=$(readlink -f "${2:-.lib}")
cd "$(dirname "$0")/.."
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
home=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$nvcc")")")}
root=$(mktemp -d); trap 'rm -rf "$root"' 0
r_home=$(R RHOME); chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)

# ---- the root ----

put() { mkdir -p "$root$(dirname "$1")"; cp -L "$1" "$root$1"; }
needed_by() { ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^[/]/ { print $3 } $1 ~ /^[/].*ld-/ { print $1 }' | sort -u; }
mkdir -p "$root/tmp" "$root/dev" "$root/home" "$root/drivers" "$root$r_home"
chmod 1777 "$root/tmp"
for folder in bin lib lib64; do
  mkdir -p "$root/usr/$folder"
  if [ -h "/$folder" ]; then ln -s "usr/$folder" "$root/$folder"; else mkdir "$root/$folder"; fi
done
for device in null zero urandom; do cp -a "/dev/$device" "$root/dev"; done
cp -rL "$r_home/bin" "$r_home/etc" "$r_home/lib" "$r_home/modules" "$root$r_home"
mkdir "$root$r_home/library"
for package in base compiler datasets grDevices graphics grid lattice Matrix methods parallel splines stats stats4 \
  tcltk tools utils; do
  cp -r "$r_home/library/$package" "$root$r_home/library"
done
cp -r "$library/weft" "$root$r_home/library"
rm -rf "$root$r_home/library/weft/libs/cuda"
Rscript -e 'cat(find.package(c("cli", "generics")), sep = "\n")' | while read -r package; do
  cp -r "$package" "$root$r_home/library"
done
for program in sh bash which sed uname rm cat expr basename dirname env grep sha256sum xz ls; do put "$(command -v $program)"; done
# shellcheck disable=SC2046 # names without spaces
needed_by $(find "$root" -name '*.so*' -type f) $(find "$root/usr/bin" "$root/bin" "$root$r_home/bin/exec" -type f) |
  while read -r file; do case $file in "$root"*) ;; *) put "$file" ;; esac; done
for folder in /usr/lib/locale/C.utf8 /usr/share/R; do
  [ ! -d $folder ] || { mkdir -p "$root$(dirname $folder)"; cp -rL $folder "$root$folder"; }
done
cp "$archive" "$archive.sha256" "$root/home"
for program in cc gcc nvcc make python3 nvidia-smi; do
  [ ! -e "$root/usr/bin/$program" ] || { echo "$program is in the root" >&2; exit 1; }
done

# ---- drivers ----

cat >"$root/tmp/driver.c" <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
enum { NO_DEVICE = 100 };
static int none(void) { return NO_DEVICE; }
int cuInit(unsigned flags) { (void) flags; return NO_DEVICE; }
int cuDriverGetVersion(int *out) { *out = VERSION; return 0; }
int cuDeviceGetCount(int *out) { *out = 0; return NO_DEVICE; }
int cuGetExportTable(const void **out, const void *id) { (void) id; *out = 0; return NO_DEVICE; }
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
  void *own = dlsym(RTLD_DEFAULT, name);
  (void) version, (void) flags;
  *out = own ? own : (void *) none;
  return 0;
}
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *found)
{
  if (found) *found = 0;
  return cuGetProcAddress(name, out, version, flags);
}
EOF
driver() { # name, flags
  mkdir "$root/drivers/$1"
  ${CC:-cc} -shared -fPIC -Wl,-soname,libcuda.so.1 $2 -o "$root/drivers/$1/libcuda.so.1" "$root/tmp/$3" -ldl
}
driver without-device -DVERSION=13000 driver.c
driver old -DVERSION=12000 driver.c
echo 'int nothing;' >"$root/tmp/nothing.c"
driver without-symbols "" nothing.c
mkdir "$root/drivers/no-library" "$root/drivers/none"
echo "no library" >"$root/drivers/no-library/libcuda.so.1"
rm "$root"/tmp/*.c

# ---- the calls ----

cp proofs/bare-root.R "$root/home"
failed=0
inside() { # folder of a driver, command
  env -i PATH=/usr/bin:/bin HOME=/home LANG=C.UTF-8 LD_LIBRARY_PATH="/drivers/$1:$r_home/lib" "$chroot" "$root" /bin/sh -c "$2"
}
for name in none without-device old without-symbols no-library; do
  inside $name "$r_home/bin/R --no-echo --no-restore --no-save -f /home/bare-root.R --args $name /home/$(basename "$archive")" ||
    failed=1
done

# ---- NVIDIA's libraries ----

flags="-O1 -I src -I $home/include"
objects=
for file in src/core/call/arena.c src/core/call/context.c; do
  objects="$objects $root/tmp/$(basename "$file").o"
  ${CC:-cc} -std=c11 $flags -c "$file" -o "$root/tmp/$(basename "$file").o"
done
for file in device libraries kept; do
  objects="$objects $root/tmp/$file.o"
  ${CXX:-c++} -std=c++17 $flags -x c++ -c "src/core/device/$file.cu" -o "$root/tmp/$file.o"
done
${CXX:-c++} -std=c++17 $flags proofs/bare-libraries.cpp $objects "$home/lib64/libcudart_static.a" -ldl -lrt -lpthread \
  -o "$root/home/libraries"
needed_by "$root/home/libraries" | while read -r file; do put "$file"; done
major=$(sed -n 's/^#define CUBLAS_VER_MAJOR *//p' "$home/include/cublas_api.h")
mkdir "$root/home/damaged" "$root/home/foreign"
echo "no library" >"$root/home/damaged/libcublas.so.$major"
cp "$root/drivers/without-symbols/libcuda.so.1" "$root/home/foreign/libcublas.so.$major"
for folder in none damaged foreign; do inside "none:/home/$folder" "/home/libraries $folder" || failed=1; done
[ $failed = 0 ] && echo "0 findings" || echo "FAILED"
exit $failed
