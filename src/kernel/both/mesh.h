/* Sums of the Gaussian kernel in one to three dimensions over a mesh: a regular grid of nodes, `spacing` bandwidths
 * apart. The weight of a reference is spread over the width^d nodes around it, the nodes' weights are convolved with
 * taps, one dimension after another, and the sum of a query is gathered from the nodes around it:
 *
 *   k(x - q) = product over dimensions of Σ_a Σ_b window(x - a) tap(a - b) window(q - b)   within a bound
 *
 * The window is that of Kaiser and Bessel, in pieces of polynomials; the taps are the kernel's spectrum over the square
 * of the window's. Everything is separable, so that one dimension's error e bounds all: (1 + e)^d - 1, as no factor of
 * the kernel is above 1. e is found for each scheme when it is made: see scheme.c.
 *
 *   scheme.c     windows, taps and their error; the choice of width and spacing
 *   mesh/mesh.c  points in blocks, and what is done with them
 *   vectors.h    spreading, convolving, gathering: vector code
 *   mesh.cu      the same on a device */
#pragma once

#include "kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MESH_DIMENSIONS 3
#define WEFT_MESH_MAX_NODES 1e9
#define WEFT_MESH_WIDTH 16  /* the greatest */
#define WEFT_MESH_DEGREE 22 /* of a piece */
#define WEFT_MESH_TAPS 96   /* on either side of the middle */
#define WEFT_MESH_BLOCK 16  /* nodes per dimension of a block of points; at least the greatest width */

typedef struct weft_mesh_scheme {
  int width, lanes, degree, taps;     /* lanes: width, filled up with zeros to 8 or 16 */
  double spacing;                     /* of nodes, in bandwidths */
  double error;                       /* of the kernel in one dimension */
  double size;                        /* at most Σ |window tap window| of a pair in one dimension */
  double gain;                        /* at most Σ over nodes of what a node's weight of 1 gives a query there */
  double tap[2 * WEFT_MESH_TAPS + 1]; /* of lags -taps .. taps */
  double piece[(WEFT_MESH_DEGREE + 1) * WEFT_MESH_WIDTH]; /* [power][lane] of 2 t - 1, t the place in a cell */
} weft_mesh_scheme;

typedef struct weft_mesh {
  size_t d, m, nodes, stride[WEFT_MESH_DIMENSIONS], count[WEFT_MESH_DIMENSIONS]; /* stride[0] is 1; rows are padded */
  double least[WEFT_MESH_DIMENSIONS], per_node; /* the window of a point at x begins at node (x - least) per_node */
  const weft_mesh_scheme *scheme;
  double *node; /* m * nodes from node `origin` on; NULL where a mesh is only placed */
  size_t origin;
} weft_mesh;

typedef struct weft_mesh_box {
  double least[WEFT_MESH_DIMENSIONS], most[WEFT_MESH_DIMENSIONS];
} weft_mesh_box;
/* Places a mesh with a scheme, d and m over the references, and over queries as far as references reach. */
void weft_mesh_place(weft_mesh *mesh, const weft_mesh_box *references, const weft_mesh_box *queries, double h);
/* The error of a sum, over the sum of its weights: of the scheme, and of places. Rounding comes on top. */
double weft_mesh_error(const weft_mesh *mesh);

/* Points in some order: coordinate j of point i is x[i * point + j * dimension]. */
typedef struct weft_mesh_points {
  const double *x;
  size_t n, point, dimension;
  const int32_t *order;
} weft_mesh_points;

static inline double weft_mesh_at(const weft_mesh *mesh, const weft_mesh_points *p, size_t i, size_t j)
{
  const size_t k = i * p->point + j * p->dimension;
  return (p->x[k] - mesh->least[j]) * mesh->per_node;
}

/* Sums of the Gaussian kernel in one to three dimensions by ops->mesh(). *error: the greatest error of a sum over all
 * weights, over their sum. missed: room for all queries, gets those whose error may be above the task's, *missing of
 * them, from 0, in order. */
weft_status weft_kernel_mesh(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                             const weft_mesh_scheme *scheme, double *out, int32_t *missed, size_t *missing,
                             double *error);
/* ops->mesh() of the CPU. */
weft_status weft_kernel_mesh_sums(weft_ctx *ctx, const weft_kernel_task *task, const weft_mesh *mesh,
                                  const double *total, double *out, double *rounding);
/* The sum over all ordered pairs of references, of a point with itself among them, and its greatest error; one column
 * of weights. */
weft_status weft_kernel_mesh_pairs(weft_ctx *ctx, const weft_kernel_task *task, const weft_mesh_scheme *scheme,
                                   double *sum, double *error);

typedef struct weft_mesh_code {
  /* Adds weights (m per point) of points order[from .. end - 1] to the nodes. */
  void (*spread)(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end, const double *weights);
  /* out[order[i] + c * n]: the sums of these points. */
  void (*gather)(const weft_mesh *mesh, const weft_mesh_points *p, size_t from, size_t end, double *out);
  /* out[i] = Σ_k tap[k] in[i + k * stride], i < n, a multiple of 8. */
  void (*convolve)(const double *in, size_t stride, const double *tap, size_t taps, size_t n, double *out);
} weft_mesh_code;

extern const weft_mesh_code weft_mesh_avx512, weft_mesh_avx2, weft_mesh_portable;
const weft_mesh_code *weft_mesh_variant(void);

#ifdef __cplusplus
}
#endif
