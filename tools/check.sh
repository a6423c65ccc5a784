#!/bin/sh
# All checks: R CMD check with and without CUDA, sanitizers, valgrind, other compilers and flags, installation
# trials, lintr, spelling and BiocCheck where they are installed. One line per check; logs stay in the folder named at
# the end when something failed.
# Usage: tools/check.sh [check|sanitize|install|lint|bioc ...]   (default: all)
set -u
here=$(pwd); w=$(mktemp -d)
parts=${*:-check sanitize install lint bioc}
failed=0
wants() { case " $parts " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
report() { # report NAME RESULT EXPECTED-PATTERN
  if printf '%s\n' "$2" | grep -Eq -- "$3"; then printf 'ok    %-46s %s\n' "$1" "$2"
  else printf 'FAIL  %-46s %s\n' "$1" "$2"; failed=1; fi
}
cd "$w" || exit 1
R CMD build --no-build-vignettes "$here" >build.log 2>&1 || { tail build.log; exit 1; }
tarball=$w/$(ls weft_*.tar.gz)
WEFT_CUDA_ARCH=${WEFT_CUDA_ARCH-90}; export WEFT_CUDA_ARCH
install_into() { # install_into LIBRARY [R CMD INSTALL options]: its log beside it
  mkdir -p "$1"; lib=$1; shift
  R CMD INSTALL --no-docs "$@" --library="$lib" "$tarball" >"$lib.log" 2>&1
}
cat > small.R <<'END'
library(weft)
x <- data.frame(a = rep(1:3, 100), wide = seq_len(300) * 1000000, c = factor(rep(c("u", NA, "v"), 100)))
for (na in c("drop", "level")) print(mi_rank(x, rep(1:4, 75), na = na, run = "cpu")$mi)
try(mi_rank(x, rep(1:4, 75)), silent = TRUE)
.Call(weft:::C_weft_memory, -2)
try(mi_rank(x, rep(1:4, 75), na = "drop"), silent = TRUE)
.Call(weft:::C_weft_memory, 0)
for (kind in c("normal", "gamma", "beta")) print(sum(weft:::draws(kind, 1000, 2, 3)))
f <- tempfile(); writeBin(as.double(1:10), f); print(sum(as.matrix(weft_file(f, 5))))
END

if wants check; then
  for cuda in no yes; do
    [ $cuda = yes ] && ! command -v nvcc >/dev/null && continue
    mkdir check-$cuda
    WEFT_CUDA=$cuda _R_CHECK_CRAN_INCOMING_=false _R_CHECK_SYSTEM_CLOCK_=0 _R_CHECK_FORCE_SUGGESTS_=false \
      R CMD check --as-cran --no-manual --no-build-vignettes --ignore-vignettes \
        -o check-$cuda "$tarball" >check-$cuda/log 2>&1
    # with the CUDA object the installed size may be noted
    notes=$(grep -E '\.\.\. (NOTE|WARNING|ERROR)' check-$cuda/log | grep -v 'installed package size' | tr '\n' ';')
    report "R CMD check --as-cran, CUDA $cuda" "$(grep '^Status' check-$cuda/log) $notes" '^Status: (OK|1 NOTE) $'
    if [ $cuda = no ]; then
      size=$(du -sk check-no/weft.Rcheck/weft | cut -f1)
      report "installed size without CUDA" "$([ "$size" -lt 5000 ] && echo small: || echo large:) $size KB" '^small'
    fi
  done
fi

if wants sanitize; then
  WEFT_CUDA=no WEFT_MPI=no; export WEFT_CUDA WEFT_MPI
  sanitized="sh $here/tools/sanitized.sh $w/lib-san $tarball"
  $sanitized R --vanilla --no-echo -f small.R >san.log 2>&1
  report "address + undefined sanitizers, small script" "exit $?" 'exit 0'
  report "address + undefined sanitizers, suite" \
    "$(cd "$here" && NOT_CRAN=true $sanitized sh tools/test.sh 2>&1 | tee "$w/san-suite.log" | tail -n 1)" \
    ', 0 failed,'
  report "no warning with -Wall -Wextra" "$(grep -c 'warning:' "$w/lib-san.log") warnings" '^0 '
  if command -v valgrind >/dev/null; then
    install_into "$w/lib-plain"
    WEFT_SIMD=avx2 R_LIBS=$w/lib-plain${R_LIBS:+:$R_LIBS} \
      R -d "valgrind --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=7" \
      --vanilla --no-echo -f small.R >valgrind.log 2>&1
    report "valgrind" "exit $?" 'exit 0'
  fi
  unset WEFT_CUDA WEFT_MPI
fi

if wants install; then
  WEFT_MPI=no; export WEFT_MPI
  trial() { # trial LIBRARY: the sum that any working installation gives
    R_LIBS="$1${R_LIBS:+:$R_LIBS}" R --vanilla --no-echo \
      -e 'suppressMessages(library(weft)); cat(mi_rank(data.frame(a = 1:2), 1:2)$mi)' 2>&1 | tail -1
  }
  why() {
    R_LIBS="$1${R_LIBS:+:$R_LIBS}" R --vanilla --no-echo -e 'cat(weft::weft_sitrep()$cuda_reason)' 2>&1 | tail -1; }

  NVCC=$w/none/nvcc; export NVCC
  WEFT_CUDA=auto install_into "$w/lib-none"
  report "auto without nvcc" "$(grep 'weft: CUDA' lib-none.log)" 'CUDA: no \(no nvcc'
  report "  works" "$(trial "$w/lib-none")" '^1$'
  report "  says so" "$(why "$w/lib-none")" 'installed without CUDA support'
  WEFT_CUDA=yes install_into "$w/lib-yes"
  report "WEFT_CUDA=yes without nvcc fails" "exit $? $(grep 'WEFT_CUDA=yes, but' lib-yes.log)" 'exit 1 .*no nvcc'
  unset NVCC

  mkdir broken
  printf '#!/bin/sh\n[ "$1" = --list-gpu-code ] && { echo sm_90; exit 0; }\n%s\nexit 1\n' \
    'echo "fatal error: unsupported GNU version" >&2' > broken/nvcc
  chmod +x broken/nvcc
  WEFT_CUDA=auto NVCC=$w/broken/nvcc install_into "$w/lib-broken"
  report "auto with a broken nvcc" "$(grep 'weft: CUDA' lib-broken.log)" 'CUDA: no .*unsupported GNU version'
  report "  works" "$(trial "$w/lib-broken")" '^1$'

  WEFT_CUDA=no WEFT_OPENMP=no install_into "$w/lib-serial"
  report "without OpenMP" "$(grep 'weft: OpenMP' lib-serial.log) $(trial "$w/lib-serial")" 'OpenMP: no .* 1$'
  if command -v clang >/dev/null; then
    printf 'CC = clang\nSHLIB_OPENMP_CFLAGS = -fopenmp\n' > clang.mk
    WEFT_CUDA=no R_MAKEVARS_USER=$w/clang.mk install_into "$w/lib-clang"
    report "clang" \
      "$(grep -c '^clang' lib-clang.log) files, $(grep -c 'warning:' lib-clang.log) warnings, $(trial "$w/lib-clang")" \
      '^[1-9].*, 0 warnings, 1$'
  fi
  mkdir "lib with spaces"
  WEFT_CUDA=no MAKEFLAGS=-j4 R CMD INSTALL --no-docs --library="$w/lib with spaces" "$tarball" >lib-spaces.log 2>&1
  report "parallel make, library path with spaces" "$(trial "$w/lib with spaces")" '^1$'
  cp -r "$here" readonly && rm -rf readonly/.git readonly/.lib && (cd readonly && ./cleanup) && chmod -R a-w readonly
  mkdir from-readonly && (cd from-readonly && R CMD build --no-build-vignettes "$w/readonly" >build.log 2>&1 &&
    WEFT_CUDA=no R CMD INSTALL --no-docs \
    --library="$(mkdir lib; pwd)/lib" weft_*.tar.gz >install.log 2>&1)
  report "from a read-only source tree" "$(trial "$w/from-readonly/lib")" '^1$'
  chmod -R u+w readonly

  if command -v nvcc >/dev/null; then
    WEFT_CUDA=yes install_into "$w/lib-cuda"
    so=$w/lib-cuda/weft/libs/cuda/weft_cuda.so
    [ -e /proc/driver/nvidia ] || report "no driver" "$(why "$w/lib-cuda")" 'no NVIDIA driver'
    # a library that the CUDA object needs is not there: cuBLAS where it is linked, else the OpenMP runtime
    needs=$(objdump -p "$so" | awk '/NEEDED/ && $2 ~ /cublas|gomp|omp/ {print $2}' | sort | head -1)
    sed -i "s/$needs/$(printf %s "$needs" | sed 's/[0-9]$/9/; s/^lib/lic/')/" "$so"
    report "$needs missing at run time" "$(why "$w/lib-cuda")" 'cannot be opened: .*No such file'
    report "  works on the CPU" "$(trial "$w/lib-cuda")" '^1$'
    echo garbage > "$so"
    report "a damaged CUDA object" "$(why "$w/lib-cuda")" 'cannot be opened'
    report "  works on the CPU" "$(trial "$w/lib-cuda")" '^1$'
  fi
  unset WEFT_MPI
fi

if wants lint; then
  report "lintr" \
    "$(cd "$here" && Rscript -e 'l <- lintr::lint_package(); print(l); cat(length(l), "lints\n")' 2>&1 |
      tee "$w/lint.log" | tail -1)" '^0 lints'
  if Rscript -e 'quit(status = !requireNamespace("spelling", quietly = TRUE))' >/dev/null 2>&1; then
    report "spelling" \
      "$(cd "$here" && Rscript -e 'w <- spelling::spell_check_package(); print(w); cat(nrow(w), "words\n")' 2>&1 |
        tee "$w/spelling.log" | tail -1)" '^0 words'
  fi
fi

# Without a network: the steps that ask servers (deprecated packages, names on CRAN, the maintainer's registration) are
# left out, and which release of Bioconductor goes with which R is read from a file; it only matters for version numbers
# from 1.0.0 on.
if wants bioc && Rscript -e 'quit(status = !requireNamespace("BiocCheck", quietly = TRUE))' >/dev/null 2>&1; then
  r=$(Rscript -e 'cat(R.version$major, sub("[.].*", "", R.version$minor), sep = ".")')
  cat >bioc.yaml <<END
release_version: "3.16"
devel_version: "3.17"
r_ver_for_bioc_ver:
  "3.15": "$r"
  "3.16": "$r"
  "3.17": "$r"
END
  cat >bioc.R <<'END'
options(BIOCONDUCTOR_CONFIG_FILE = paste0("file://", normalizePath("bioc.yaml")))
BiocCheck::BiocCheck(commandArgs(TRUE)[1], checkDir = ".", `no-check-deprecated` = TRUE,
                      `no-check-CRAN` = TRUE, `no-check-bioc-help` = TRUE)
END
  WEFT_CUDA=no WEFT_MPI=no Rscript bioc.R "$tarball" >bioc.log 2>&1
  report "BiocCheck without its steps on the network" "$(grep ' ERRORS ' bioc.log)" '0 ERRORS \| 0 WARNINGS'
fi
cd "$here"
if [ $failed = 0 ]; then chmod -R u+w "$w"; rm -rf "$w"; else echo "logs: $w"; fi
exit $failed
