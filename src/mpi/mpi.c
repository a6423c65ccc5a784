/* The MPI object's table. Opened by base/backend.c when a distributed call, or weft_sitrep(), first asks for it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include "../base/backend.h"

/* The library's name and version, its first line. Allowed before MPI_Init. */
static int describe(char *out, size_t len)
{
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  if (MPI_Get_library_version(text, &n) != MPI_SUCCESS) return -1;
  text[strcspn(text, "\r\n")] = 0;
  return snprintf(out, len, "%s", text);
}

static const weft_mpi_table table = { WEFT_ABI, sizeof(weft_mpi_table), describe };

__attribute__((visibility("default"))) const weft_mpi_table *weft_mpi_entry(void) { return &table; }
