#!/bin/sh
# Finds what weft needs to be built and tested; installs it with apt on Debian and Ubuntu, else prints the commands.
#   tools/setup.sh          R, a compiler, the packages that weft imports, testthat, withr
#   tools/setup.sh demo     also what `make demo` uses: a report and real data
#   tools/setup.sh check    also what `make check` uses
set -u
packages="matrix cli generics testthat withr"
system="r-base-dev"
if [ "${1-}" = demo ]; then
  packages="$packages knitr rmarkdown"
  bioconductor="multtest"
  system="$system pandoc"
fi
if [ "${1-}" = check ]; then
  packages="$packages knitr rmarkdown lintr spelling roxygen2 broom cluster coda e1071 factoextra ggplot2 igraph kernlab
    ks"
  bioconductor="BiocCheck DelayedArray graph HDF5Array multtest SingleCellExperiment SummarizedExperiment"
  system="$system pandoc qpdf valgrind devscripts libzstd-dev"
fi

missing=
command -v R >/dev/null 2>&1 || missing="r-base-dev"
command -v make >/dev/null 2>&1 && command -v cc >/dev/null 2>&1 || missing="r-base-dev"
[ "${1-}" = check ] && for tool in pandoc qpdf valgrind checkbashisms; do
  command -v $tool >/dev/null 2>&1 || missing="$missing $(echo $tool | sed s/checkbashisms/devscripts/)"; done
[ "${1-}" = demo ] && { command -v pandoc >/dev/null 2>&1 || missing="$missing pandoc"; }
for p in $packages; do
  name=$p; [ "$p" = matrix ] && name=Matrix
  [ -n "$missing" ] && [ "${missing#r-base-dev}" != "$missing" ] &&
    ! command -v R >/dev/null 2>&1 && { missing="$missing r-cran-$p"; continue; }
  Rscript -e "quit(status = !requireNamespace('$name', quietly = TRUE))" >/dev/null 2>&1 || missing="$missing r-cran-$p"
done
for p in ${bioconductor-}; do
  command -v R >/dev/null 2>&1 && Rscript -e "quit(status = !requireNamespace('$p', quietly = TRUE))" >/dev/null 2>&1 ||
    missing="$missing r-bioc-$(echo "$p" | tr 'A-Z' 'a-z')"
done
[ -z "$missing" ] && exit 0

echo "weft: missing here:$(echo " $missing" | tr -s ' ')"
if ! command -v apt-get >/dev/null 2>&1; then
  echo "weft: install R (4.1 or later) with a C compiler, then in R:" >&2
  echo '  install.packages(c("Matrix", "cli", "generics", "testthat", "withr", "knitr", "rmarkdown", "lintr"))' >&2
  exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "weft: run as root: apt-get install --no-install-recommends $missing" >&2
    exit 1
  fi
  as_root=sudo
fi
$as_root apt-get update -q &&
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
