/* How much memory a pack takes on the device, and whether the device has room for it. */
#include <cmath>
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/pack/cuda/capacity.cuh"

#define WORKING_SHARE 0.25 /* of what is left: for counts of tiles and the like, beside planes */
#define MAX_WORKING 512e6

uint32_t weft_mi_resident_words(const weft_mi_pack *p, uint32_t classes)
{
  uint32_t words = 0;
  for (uint32_t c = 0; c < classes; c++) words += mi_padded_words(p->class_rows[c]);
  return words;
}

/* Bytes of a group's planes in the order of a kernel: at least two per attribute, for whole tiles. */
static double arranged_bytes(const weft_mi_group *group, double plane)
{
  const double rows = (double) ((group->count + ROWS_B - 1) / ROWS_B * ROWS_B);
  return group->coded ? 0 : rows * plane * fmax(2, group->shape.planes);
}

/* Bytes of a pack on the device while pairs are searched: its planes, one group's in another order that stays, and both
 * sides of a panel. */
static double resident_bytes(const weft_mi_pack *p, double plane)
{
  double largest = 0, second = 0, planes = (double) p->plane_rows * plane;
  for (size_t g = 0; g < p->group_count; g++) {
    const double bytes = arranged_bytes(&p->groups[g], plane);
    second = fmax(second, fmin(bytes, largest));
    largest = fmax(largest, bytes);
  }
  return planes + largest + (p->group_count > 1 ? largest + second : 0);
}

static uint32_t max_planes(const weft_mi_pack *p)
{
  uint32_t planes = 0;
  for (size_t g = 0; g < p->group_count; g++)
    if (p->groups[g].shape.planes > planes) planes = p->groups[g].shape.planes;
  return planes;
}

/* The counts of one tile of the largest products, and what does not grow with attributes. */
static double min_working(const weft_mi_pack *p)
{
  const double products = (double) (p->classes / p->per) * weft_mi_counts_words(p) * max_planes(p) * max_planes(p);
  return products * AREA * 4 + 8.0 * (double) p->f.known + 64e3;
}

int weft_mi_device_holds(weft_ctx *ctx, const weft_mi_pack *p, int copies, mi_block_plan *plan)
{
  const double left = weft_device_available(ctx);
  const double working = fmax(min_working(p), fmin(MAX_WORKING, WORKING_SHARE * left));
  const double margins = 4.0 * p->classes + 12; /* a plane's and an attribute's, besides */
  double whole_tiles;
  plan->plane = 4.0 * weft_mi_resident_words(p, p->classes) + margins;
  whole_tiles = 3.0 * ROWS_B * fmax(2, max_planes(p)) * plan->plane;
  /* an attribute's planes, and the same in another order; two blocks */
  plan->max_bytes = (left - working - whole_tiles) / 4;
  return resident_bytes(p, plan->plane) + copies * (double) p->plane_rows * plan->plane <= left - working;
}
