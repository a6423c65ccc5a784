#!/bin/sh
# Strong and weak scaling of kernel sums over ranks of this host; results go to the file named first (default
# ranks.csv).
#   ranks.sh results.csv [points per rank of the weak scaling, default 166912] [most ranks, default 8]
# More ranks than cores share them: volumes and work are then what they would be, times are not.
dir=`dirname "$0"`
out=${1:-ranks.csv}
each=${2:-166912}
most=${3:-8}
MPIRUN=${MPIRUN:-mpirun}
more=
if $MPIRUN --version 2>&1 | grep -q "Open MPI"; then more="--oversubscribe --bind-to none"; fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
for size in 1 2; do
  $MPIRUN $more -n $size Rscript "$dir/ranks.R" uniform 10 100000 strong 0.5 "$out" || exit 1
  $MPIRUN $more -n $size Rscript "$dir/ranks.R" clustered 4 1000000 strong 0.04 "$out" || exit 1
done
for size in 1 2 3 4 5 6 7 8; do
  test $size -le $most || break
  $MPIRUN $more -n $size Rscript "$dir/ranks.R" uniform 10 $each weak 0.2 "$out" || exit 1
  $MPIRUN $more -n $size Rscript "$dir/ranks.R" clustered 4 $each weak 0.02 "$out" || exit 1
done
