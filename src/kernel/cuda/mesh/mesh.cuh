/* Meshes on a device: what the sums of a task (mesh.cu) and those of points that are made there
 * (cube.cu) share.
 *
 * Points are sorted by the node at which their windows begin, so that those of a cell lie together; a run of them is a
 * warp's. To spread, its lanes keep the sums for blocks of 8 nodes per dimension in registers, and add them to the
 * nodes where the next cell begins. The nodes are whole numbers, in units of at most 2^-60 of the sum of weights: their
 * sums are the same in whatever order warps come. To gather, a lane has a query, and the warp a copy of the cell's
 * nodes. Windows of more than 8 nodes are taken in blocks of 8, one after another. */
#pragma once

#include "kernel/cuda/host.cuh"
#include "kernel/both/mesh.h"

/* Strides and counts are of nodes on the device: windows end on whole blocks there. */
struct mesh_place {
  int cells[3], count[3];
  int64_t stride[3], nodes;
  double least[3], per_node;
  uint32_t nowhere; /* the number of cells: what a point beyond the mesh has for a cell */
};

struct mesh_window {
  int degree, lanes;
  double piece[(WEFT_MESH_DEGREE + 1) * WEFT_MESH_WIDTH];
};

/* On the device; coordinate j of point i is x[i * point + j * dimension]. */
struct mesh_points {
  const double *x, *lo;
  int64_t n, point, dimension;
};

struct mesh_sorted {
  uint32_t *cell, *order; /* in the order of the cells */
  uint32_t *cell_other, *order_other;
  unsigned char *scratch;
  size_t scratch_bytes, room; /* room: points */
};

struct mesh_run {
  weft_ctx *ctx;
  weft_device_arena *mem;
  const weft_mesh *mesh;
  mesh_place place;
  mesh_window window;
  unsigned long long *node; /* m * place.nodes: whole numbers, later replaced by doubles */
  double *other;            /* place.nodes */
  mesh_sorted sorted;
  double flushes; /* to a node, at most */
};

/* Takes the nodes and room for `room` points to be sorted. */
weft_status weft_mesh_begin_cuda(mesh_run *run, weft_ctx *ctx, weft_device_arena *mem, const weft_mesh *mesh,
                                 size_t room);
/* Bytes that weft_mesh_begin_cuda() takes, of a point and of all else. */
double weft_mesh_bytes_of_point(void);
double weft_mesh_bytes(const weft_mesh *mesh);
weft_status weft_mesh_sort_cuda(mesh_run *run, const mesh_points *points);
/* Adds column c of the sorted points' weights, m of them per point, or 1 each where there are none; total: of all. */
weft_status weft_mesh_spread_cuda(mesh_run *run, const mesh_points *points, const double *weights, size_t c,
                                  double total);
weft_status weft_mesh_convolve_cuda(mesh_run *run, size_t c, double total);
/* out[i]: the sum of point i. */
weft_status weft_mesh_gather_cuda(mesh_run *run, const mesh_points *points, size_t c, double *out);
double weft_mesh_rounding_cuda(const mesh_run *run);

/* As weft_kernel_ops' mesh(). */
weft_status weft_kernel_mesh_cuda(weft_ctx *ctx, const weft_kernel_task *task, const struct weft_mesh *mesh,
                                  const double *total, double *out, double *rounding);
