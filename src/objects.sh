#!/bin/sh
# Writes what Makevars says about single files: lists of objects, how each is made, and which headers it depends on.
# configure and configure.win run it in src/. A new file needs no entry anywhere. Its place says what becomes of it,
#   *.c                      an object of weft.so
#   *.cu                     an object of weft_cuda.so
#   core/together/mpi/*.c    a source of weft_mpi.so
#   */test/*                 only with WEFT_TESTS=yes
# and a line "/* Build: WORD, WORD. */" says what else:
#   shared  .c: an object of weft_cuda.so, too
#   fused   .c: a product and a sum may be contracted into one rounding (vector code whose results are bounds, or are
#           compared with a tolerance)
#   exact   .cu: they may not (device code whose results must have the CPU's bits)
#   hopper  .cu: for compute capability 9.0a when the toolkit builds for it; else an object that says it cannot
set -u
files=`find . -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' | sed 's|^[.]/||' | LC_ALL=C sort`
{
  echo "$files" | sed 's/$/:file/'
  grep -E '^ *# *include "|^/[*] Build: ' $files /dev/null
} | awk -F '[:"]' '
  $2 == "file" { if ($1 ~ /[.](c|cu)$/) sources[++count] = $1; next }
  $2 == "/* Build" { words[$1] = $3; next }
  { includes[$1] = includes[$1] " " $3 }
  function is(file, word) { return words[file] ~ "[ ,]" word "[.,]" }
  function follow(file, seen,    list, n, i) {
    n = split(includes[file], list, " ")
    for (i = 1; i <= n; i++)
      if (!(list[i] in seen)) { seen[list[i]]; headers = headers " " list[i]; follow(list[i], seen) }
  }
  function command(file) {
    if (file ~ /[.]c$/) return is(file, "fused") ? "$(FUSED_CC)" : ""
    if (is(file, "hopper")) return "$(HOPPER_NVCC)" (is(file, "exact") ? " -fmad=false" : "")
    return is(file, "exact") ? "$(EXACT_NVCC)" : "$(NVCC) $(NVCCFLAGS)"
  }
  END {
    for (k = 1; k <= count; k++) {
      file = sources[k]; object = file; sub("[.][a-z]*$", ".o", object)
      split("", seen); headers = ""; follow(file, seen)
      if (file ~ /^core\/together\/mpi\//) {
        lists["MPI_SOURCES"] = lists["MPI_SOURCES"] " \\\n  " file
        mpi_headers = mpi_headers headers
        continue
      }
      name = (file ~ /\/test\// ? "TEST_" : "") (file ~ /[.]cu$/ ? "CUDA_OBJECTS" : "C_OBJECTS")
      lists[name] = lists[name] " \\\n  " object
      if (is(file, "shared")) lists["CUDA_OBJECTS"] = lists["CUDA_OBJECTS"] " \\\n  " object
      made = command(file)
      rules = rules "\n" object ": " file headers (made == "" ? "" : "\n\t" made " -c " file " -o $@")
    }
    split("C_OBJECTS TEST_C_OBJECTS CUDA_OBJECTS TEST_CUDA_OBJECTS MPI_SOURCES", names, " ")
    for (k = 1; k <= 5; k++) print names[k] " =" lists[names[k]] "\n"
    print "weft_mpi.so:" mpi_headers
    print rules
  }'
