#!/bin/sh
# Runs one part of `make demo` or `make test`: one line on the screen, what the part prints in a log; if it fails,
# the end of that log and its path. Usage: tools/step.sh LOG "1/4 what" command ...
set -u
log=$1; what=$2; shift 2
printf '%s ... ' "$what"
printf '== %s: %s\n' "$what" "$*" >>"$log"
began=$(date +%s)
if "$@" >>"$log" 2>&1; then
  echo "$(($(date +%s) - began)) s"
else
  failed=$?
  echo "failed. The end of its output:"
  tail -n 20 "$log"
  echo "All of it: $log"
  exit $failed
fi
