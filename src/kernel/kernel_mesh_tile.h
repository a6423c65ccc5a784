/* Spreading, convolving and gathering, once for each kind of vectors: loops of eight lanes, which the compiler turns
 * into the vectors that TARGET allows. */
#include <string.h>
#include "kernel_mesh.h"

#define MESH_INLINE TARGET static inline __attribute__((always_inline))

/* The window's values at the nodes around a point, and the first of these nodes. */
MESH_INLINE size_t window_of(const weft_mesh *mesh, double at, const int lanes, double *value)
{
  const weft_mesh_scheme *s = mesh->scheme;
  const double *piece = s->piece + s->degree * lanes;
  const size_t first = (size_t) at;
  const double y = 2 * (at - (double) first) - 1;
  for (int l = 0; l < lanes; l++) value[l] = piece[l];
  for (int k = s->degree - 1; k >= 0; k--) {
    piece -= lanes;
    for (int l = 0; l < lanes; l++) value[l] = value[l] * y + piece[l];
  }
  return first;
}

/* Windows in all dimensions; the node at which they begin. */
MESH_INLINE size_t windows_of(const weft_mesh *mesh, const weft_mesh_points *p, size_t i, const int lanes, const int d,
                              double (*value)[WEFT_MESH_WIDTH])
{
  size_t first = 0;
  for (int j = 0; j < d; j++)
    first += window_of(mesh, weft_mesh_at(mesh, p, i, (size_t) j), lanes, value[j]) * mesh->stride[j];
  return first;
}

MESH_INLINE void spread_some(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end,
                             const double *weights, const int lanes, const int d)
{
  const int width = mesh->scheme->width, rows = d > 1 ? width : 1, planes = d > 2 ? width : 1;
  double value[WEFT_MESH_DIMENSIONS][WEFT_MESH_WIDTH];
  for (size_t i = from; i < end; i++) {
    const size_t k = (size_t) p->order[i], first = windows_of(mesh, p, k, lanes, d, value);
    for (size_t c = 0; c < mesh->m; c++) {
      const double w = weights[k * mesh->m + c];
      for (int b = 0; b < planes; b++) {
        double *plane = mesh->node + c * mesh->nodes + first + (d > 2 ? (size_t) b * mesh->stride[2] : 0);
        const double of_plane = d > 2 ? w * value[2][b] : w;
        for (int a = 0; a < rows; a++) {
          double *row = plane + (d > 1 ? (size_t) a * mesh->stride[1] : 0);
          const double of_row = d > 1 ? of_plane * value[1][a] : of_plane;
          for (int l = 0; l < lanes; l++) row[l] += of_row * value[0][l];
        }
      }
    }
  }
}

MESH_INLINE void gather_some(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end, double *out,
                             const int lanes, const int d)
{
  const int width = mesh->scheme->width, rows = d > 1 ? width : 1, planes = d > 2 ? width : 1;
  double value[WEFT_MESH_DIMENSIONS][WEFT_MESH_WIDTH];
  for (size_t i = from; i < end; i++) {
    const size_t k = (size_t) p->order[i], first = windows_of(mesh, p, k, lanes, d, value);
    for (size_t c = 0; c < mesh->m; c++) {
      double sum[WEFT_MESH_WIDTH] = { 0 }, total = 0;
      for (int b = 0; b < planes; b++) {
        const double *plane = mesh->node + c * mesh->nodes + first + (d > 2 ? (size_t) b * mesh->stride[2] : 0);
        double of_plane[WEFT_MESH_WIDTH] = { 0 };
        for (int a = 0; a < rows; a++) {
          const double *row = plane + (d > 1 ? (size_t) a * mesh->stride[1] : 0);
          const double by = d > 1 ? value[1][a] : 1;
          for (int l = 0; l < lanes; l++) of_plane[l] += by * row[l];
        }
        const double by = d > 2 ? value[2][b] : 1;
        for (int l = 0; l < lanes; l++) sum[l] += by * of_plane[l];
      }
      for (int l = 0; l < lanes; l++) total += sum[l] * value[0][l];
      out[k + c * p->n] = total;
    }
  }
}

#define MESH_BY_SHAPE(call) \
  switch (mesh->d * 2 + (mesh->scheme->lanes > 8)) { \
  case 2: call(8, 1); break; \
  case 3: call(16, 1); break; \
  case 4: call(8, 2); break; \
  case 5: call(16, 2); break; \
  case 6: call(8, 3); break; \
  default: call(16, 3); break; \
  }

TARGET VECTORIZE static void spread(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end,
                                    const double *weights)
{
#define MESH_SPREAD(lanes, d) spread_some(mesh, p, from, end, weights, lanes, d)
  MESH_BY_SHAPE(MESH_SPREAD)
}

TARGET VECTORIZE static void gather(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end,
                                    double *out)
{
#define MESH_GATHER(lanes, d) gather_some(mesh, p, from, end, out, lanes, d)
  MESH_BY_SHAPE(MESH_GATHER)
}

TARGET VECTORIZE static void convolve(const double *in, size_t stride, const double *tap, size_t taps, size_t n,
                                      double *out)
{
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    double sum[32] = { 0 };
    for (size_t k = 0; k < taps; k++)
      for (size_t l = 0; l < 32; l++) sum[l] += tap[k] * in[i + k * stride + l];
    memcpy(out + i, sum, sizeof sum);
  }
  for (; i < n; i += 8) {
    double sum[8] = { 0 };
    for (size_t k = 0; k < taps; k++)
      for (size_t l = 0; l < 8; l++) sum[l] += tap[k] * in[i + k * stride + l];
    memcpy(out + i, sum, sizeof sum);
  }
}

const weft_mesh_code MESH_CODE = { spread, gather, convolve };
