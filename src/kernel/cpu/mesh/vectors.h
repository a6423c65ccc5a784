/* Spreading, convolving and gathering, once for each kind of vectors: TARGET says which the compiler may use for
 * vectors of eight numbers. A window is one of these or two. */
#include <string.h>
#include "kernel/both/mesh.h"

#define MESH_INLINE TARGET static inline __attribute__((always_inline))
#define EIGHT 8
#define MAX_VECTORS (WEFT_MESH_WIDTH / EIGHT)
/* Without it gcc leaves loops over a known few vectors as they are at -O2, and what they sum up in memory. */
#ifdef __clang__
#  define UNROLLED _Pragma("unroll")
#else
#  define UNROLLED _Pragma("GCC unroll 4")
#endif
#define AHEAD 24 /* points that are asked for before they are needed, since they lie anywhere in memory */

/* Anywhere in an array of doubles. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));

/* The window's values at the nodes around a point, and the first of these nodes. */
MESH_INLINE size_t window_of(const weft_mesh *mesh, double at, const int vectors, eight *value)
{
  const weft_mesh_scheme *scheme = mesh->scheme;
  const eight *piece = (const eight *) scheme->piece + scheme->degree * vectors;
  const size_t first = (size_t) at;
  const double y = 2 * (at - (double) first) - 1;
  UNROLLED
  for (int v = 0; v < vectors; v++) value[v] = piece[v];
  for (int k = scheme->degree - 1; k >= 0; k--) {
    piece -= vectors;
    UNROLLED
    for (int v = 0; v < vectors; v++) value[v] = value[v] * y + piece[v];
  }
  return first;
}

/* Windows in all dimensions; the node at which they begin, counted from the first there is. */
MESH_INLINE size_t windows_of(const weft_mesh *mesh, const weft_mesh_points *p, size_t i, const int vectors,
                              const int d, eight (*value)[MAX_VECTORS])
{
  size_t first = 0;
  for (int j = 0; j < d; j++)
    first += window_of(mesh, weft_mesh_at(mesh, p, i, (size_t) j), vectors, value[j]) * mesh->stride[j];
  return first - mesh->origin;
}

MESH_INLINE void ask_for(const weft_mesh_points *p, size_t i, size_t end, const int d)
{
  if (i + AHEAD >= end) return;
  const size_t k = (size_t) p->order[i + AHEAD];
  for (int j = 0; j < d; j++) __builtin_prefetch(p->x + k * p->point + (size_t) j * p->dimension);
}

/* The first dimension's window where whole aligned vectors of nodes begin, `back` nodes before it: a vector that is
 * read as it was written comes from the store buffer, another one waits for memory. *of: how many vectors. */
MESH_INLINE size_t align_window(size_t first, int width, const int vectors, const eight *value, eight *aligned, int *of)
{
  const size_t back = first % EIGHT;
  double room[(MAX_VECTORS + 1) * EIGHT];
  memset(room, 0, sizeof room);
  memcpy(room + back, value, (size_t) vectors * sizeof *value);
  memcpy(aligned, room, sizeof room);
  *of = ((int) back + width + EIGHT - 1) / EIGHT;
  return first - back;
}

MESH_INLINE void add_rows(const weft_mesh *mesh, double *node, const eight *window, const double *by_row,
                          const double *by_plane, double w, const int vectors, const int d)
{
  const int width = mesh->scheme->width, rows = d > 1 ? width : 1, planes = d > 2 ? width : 1;
  for (int b = 0; b < planes; b++) {
    double *row = node + (d > 2 ? (size_t) b * mesh->stride[2] : 0);
    const double of_plane = d > 2 ? w * by_plane[b] : w;
    for (int a = 0; a < rows; a++) {
      const double by = d > 1 ? of_plane * by_row[a] : of_plane;
      UNROLLED
      for (int v = 0; v < vectors; v++) ((eight *) row)[v] += by * window[v];
      if (d > 1) row += mesh->stride[1];
    }
  }
}

/* The sum over a window of nodes, each times its factors in up to three dimensions; rows lie along `window`. */
MESH_INLINE double sum_rows(const weft_mesh *mesh, const double *node, const eight *window, const double *by_row,
                            const double *by_plane, const int vectors, const int d)
{
  const int width = mesh->scheme->width, rows = d > 1 ? width : 1, planes = d > 2 ? width : 1;
  eight sum[MAX_VECTORS + 1] = { { 0 } };
  double total = 0;
  for (int b = 0; b < planes; b++) {
    const double *row = node + (d > 2 ? (size_t) b * mesh->stride[2] : 0);
    eight of_plane[MAX_VECTORS + 1] = { { 0 } };
    for (int a = 0; a < rows; a++) {
      const double by = d > 1 ? by_row[a] : 1;
      UNROLLED
      for (int v = 0; v < vectors; v++) of_plane[v] += by * ((const eight *) row)[v];
      if (d > 1) row += mesh->stride[1];
    }
    const double by = d > 2 ? by_plane[b] : 1;
    UNROLLED
    for (int v = 0; v < vectors; v++) sum[v] += by * of_plane[v];
  }
  sum[0] *= window[0];
  UNROLLED
  for (int v = 1; v < vectors; v++) sum[0] += sum[v] * window[v];
  for (int lane = 0; lane < EIGHT; lane++) total += sum[0][lane];
  return total;
}

/* Adds the weights of points order[from .. end - 1] to the nodes of their windows, all columns of a point at once. */
MESH_INLINE void spread_some(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end,
                             const double *weights, const int vectors, const int d)
{
  eight value[WEFT_MESH_DIMENSIONS][MAX_VECTORS], window[MAX_VECTORS + 1];
  const double *by_row = (const double *) value[1], *by_plane = (const double *) value[2];
  for (size_t i = from; i < end; i++) {
    const size_t k = (size_t) p->order[i], first = windows_of(mesh, p, k, vectors, d, value);
    int of;
    ask_for(p, i, end, d);
    if (weights && i + AHEAD < end) __builtin_prefetch(weights + (size_t) p->order[i + AHEAD] * mesh->m);
    double *node = mesh->node + align_window(first, mesh->scheme->width, vectors, value[0], window, &of);
    for (size_t c = 0; c < mesh->m; c++, node += mesh->nodes) {
      const double w = weights ? weights[k * mesh->m + c] : 1;
      if (of == 1)
        add_rows(mesh, node, window, by_row, by_plane, w, 1, d);
      else if (of == 2)
        add_rows(mesh, node, window, by_row, by_plane, w, 2, d);
      else
        add_rows(mesh, node, window, by_row, by_plane, w, 3, d);
    }
  }
}

/* out[k + c n]: the sums of points order[from .. end - 1], gathered from the convolved nodes. vectors: of a window of
 * the scheme; d: dimensions; both are constants where this is inlined. */
MESH_INLINE void gather_some(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end, double *out,
                             const int vectors, const int d)
{
  eight value[WEFT_MESH_DIMENSIONS][MAX_VECTORS], window[MAX_VECTORS + 1];
  const double *by_row = (const double *) value[1], *by_plane = (const double *) value[2];
  for (size_t i = from; i < end; i++) {
    const size_t k = (size_t) p->order[i], first = windows_of(mesh, p, k, vectors, d, value);
    int of;
    ask_for(p, i, end, d);
    const double *node = mesh->node + align_window(first, mesh->scheme->width, vectors, value[0], window, &of);
    for (size_t c = 0; c < mesh->m; c++, node += mesh->nodes) {
      if (of == 1)
        out[k + c * p->n] = sum_rows(mesh, node, window, by_row, by_plane, 1, d);
      else if (of == 2)
        out[k + c * p->n] = sum_rows(mesh, node, window, by_row, by_plane, 2, d);
      else
        out[k + c * p->n] = sum_rows(mesh, node, window, by_row, by_plane, 3, d);
    }
  }
}

#define MESH_BY_SHAPE(call) \
  switch (mesh->d * 2 + (mesh->scheme->lanes > 8)) { \
  case 2: call(1, 1); break; \
  case 3: call(2, 1); break; \
  case 4: call(1, 2); break; \
  case 5: call(2, 2); break; \
  case 6: call(1, 3); break; \
  default: call(2, 3); break; \
  }

TARGET static void spread(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end,
                          const double *weights)
{
#define MESH_SPREAD(vectors, d) spread_some(mesh, p, from, end, weights, vectors, d)
  MESH_BY_SHAPE(MESH_SPREAD)
}

TARGET static void gather(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end, double *out)
{
#define MESH_GATHER(vectors, d) gather_some(mesh, p, from, end, out, vectors, d)
  MESH_BY_SHAPE(MESH_GATHER)
}

MESH_INLINE void convolve_some(const double *in, size_t stride, const double *tap, size_t taps, const int vectors,
                               double *out)
{
  eight sum[4] = { { 0 } };
  for (size_t k = 0; k < taps; k++) UNROLLED
  for (int v = 0; v < vectors; v++) sum[v] += tap[k] * ((const eight *) (in + k * stride))[v];
  UNROLLED
  for (int v = 0; v < vectors; v++) ((eight *) out)[v] = sum[v];
}

TARGET static void convolve(const double *in, size_t stride, const double *tap, size_t taps, size_t n, double *out)
{
  size_t i = 0;
  for (; i + 4 * EIGHT <= n; i += 4 * EIGHT) convolve_some(in + i, stride, tap, taps, 4, out + i);
  for (; i < n; i += EIGHT) convolve_some(in + i, stride, tap, taps, 1, out + i);
}

const weft_mesh_code MESH_CODE = { spread, gather, convolve };
