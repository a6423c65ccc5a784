/* The .Call entry points of the room of modules: name and number of arguments. */
/* clang-format off */
#define MODULES_ROUTINES(R) \
  R(C_weft_modules_neighbours, 3) \
  R(C_weft_modules_communities, 3)
/* clang-format on */
