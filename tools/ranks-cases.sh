#!/bin/sh
# The hard cases on 1 to 7 ranks: tools/ranks-cases.sh [first seed] [number of seeds]; MPIRUN chooses the launcher.
MPIRUN=${MPIRUN:-mpirun}
more=
if $MPIRUN --version 2>&1 | grep -q "Open MPI"; then more=--oversubscribe; fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
for size in 1 2 3 4 5 6 7; do
  $MPIRUN $more -n $size Rscript tools/ranks-cases.R "$@" || exit 1
done
