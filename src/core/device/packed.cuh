/* Packed panels on a device. */
#pragma once

#include "core/device/device.cuh"
#include "core/device/packed.h"

/* Room that unpacking takes, for as many panels as come; zeros at first. It ends with the arena. */
struct weft_unpacking {
  weft_device_arena *mem;
  uint8_t *bytes;
  uint32_t *gaps, *whole; /* of some blocks at a time */
  int *unsound;
  size_t room, entries;
};

/* Compressed columns: starts has x->p + 1 numbers, rows and values x->stored; rows count from x->row. *sound = 0 where
 * an entry lies outside of its block's rows: rows and values are then of no use, but rows lie in the panel. Waits until
 * the columns are there. */
weft_status weft_unpack(weft_unpacking *unpacking, const weft_packed_panel *x, int32_t *starts, int32_t *rows,
                        double *values, int *sound);
