/* Reads X/data and X/indices of an .h5ad file in pieces, as float and int, and does nothing with them: what an import
 * cannot be faster than where one process reads. Prints seconds, processor seconds, the most memory in GB, 0. Built by
 * cells-import.R with h5cc. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <hdf5.h>

static double clock_of(clockid_t which)
{
  struct timespec t;
  clock_gettime(which, &t);
  return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void read_all(hid_t file, const char *name, hid_t type)
{
  static char piece[(size_t) 4 << 19];
  const hid_t data = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(data);
  hsize_t size, first = 0;
  if (H5Sget_simple_extent_dims(space, &size, NULL) != 1) exit(1);
  while (first < size) {
    hsize_t count = size - first < (1u << 19) ? size - first : 1u << 19;
    const hid_t here = H5Screate_simple(1, &count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL);
    if (H5Dread(data, type, here, space, H5P_DEFAULT, piece) < 0) exit(1);
    H5Sclose(here);
    first += count;
  }
}

int main(int argc, char **argv)
{
  struct rusage used;
  const double start = clock_of(CLOCK_MONOTONIC);
  const hid_t file = argc == 2 ? H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT) : -1;
  if (file < 0) return 1;
  read_all(file, "X/data", H5T_NATIVE_FLOAT);
  read_all(file, "X/indices", H5T_NATIVE_INT);
  getrusage(RUSAGE_SELF, &used);
  printf("%f %f %f 0\n", clock_of(CLOCK_MONOTONIC) - start, clock_of(CLOCK_PROCESS_CPUTIME_ID),
         (double) used.ru_maxrss / 1048576);
  return 0;
}
