#!/bin/sh
# The tables of an NVIDIA device that the vignette on benchmarks shows, measured anew. Each gets a first line that names
# machine, day and commit, which the page quotes. Expects weft in R_LIBS and a quiet machine.
# Usage: tools/bench-device.sh FOLDER [mi pca kernel irm devices auto]     ten minutes for all; tables go there
#        tools/bench-device.sh FOLDER keep                                  puts them into inst/bench
# `devices` needs two devices or more.
# SECONDS_FOR_AUTO (1200) bounds the last, whose largest cases are then left out. Without a C compiler,
# WEFT_BENCH_OBJECTS names a folder with naive.so and irm-graph.so, which `R CMD SHLIB` makes of the files in
# inst/bench.
set -eu
folder=$1; shift
mkdir -p "$folder"; folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."
asked=${*:-mi pca kernel irm devices auto}
if [ "$asked" = keep ]; then
  for table in "$folder"/*-cuda.csv; do cp "$table" inst/bench/; done
  exit 0
fi
commit=${WEFT_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)} # of a copy without its history: given
about=$(Rscript -e 'suppressMessages(library(weft)); d <- weft_devices(); if (!nrow(d)) stop("there is no device")
  cat(sprintf("%s, %d processors of its host, %s", d$name[1], parallel::detectCores(), Sys.Date()))')
bench() { # bench SCRIPT ARGUMENT ...
  script=$1; shift
  from=$(date +%s)
  Rscript "inst/bench/$script.R" "$@" >"$folder/$script.log" 2>&1 || return
  echo "inst/bench/$script.R $*: $(($(date +%s) - from)) s"
}
keep() { # keep FILE NAME SCRIPT
  { echo "# inst/bench/$3.R: $about, commit $commit"; grep -v '^#' "$folder/$1"; } >"$folder/$2-cuda.csv.part"
  mv "$folder/$2-cuda.csv.part" "$folder/$2-cuda.csv"
}
failed=0
for one in $asked; do
  case $one in
    mi) bench mi-figures "$folder" && keep mi-figures.csv mi-figures mi-figures ;;
    pca) bench pca-figure run cuda "$folder/pca.csv" && keep pca.csv pca-figure pca-figure ;;
    kernel) WEFT_BENCH_PLOTS=$folder bench kernel-device figure &&
      keep kernel-direct-cuda.csv kernel-direct kernel-device &&
      keep kernel-trees-cuda.csv kernel-trees kernel-device ;;
    irm) bench irm-device figure "$folder" && keep irm-figure.csv irm-figure irm-device ;;
    devices) rm -f "$folder/devices.csv"
      WEFT_BENCH_TABLE=$folder/devices.csv bench devices && keep devices.csv devices devices ;;
    auto) rm -f "$folder/auto.csv"
      bench auto --seconds "${SECONDS_FOR_AUTO:-1200}" --csv "$folder/auto.csv" && keep auto.csv auto auto ;;
    *) echo "there is no table $one" >&2; exit 2 ;;
  esac || { echo "FAIL $one: $folder/*.log" >&2; failed=1; }
done
exit $failed
