/* Categorical data as bit planes, made once for all that counts pairs, triples and matrices.
 *
 * Rows without a class are left out; the others are sorted by class, and each class is padded to whole words:
 *
 *   plane   | class 0 ........ 0 | class 1 ... 0 | class 2 ...... 0 |        a word: 64 rows
 *           ^ class_word[0]      ^ class_word[1] ^ class_word[2]    ^ class_word[3] = words
 *
 * Attributes with the same number of planes stand next to each other as a group, plane by plane:
 *
 *   group   | plane 0 of all members | plane 1 of all members | ...
 *
 * so that a tile of pairs of two groups is one product of bit matrices for each pair of planes, and scoring can take
 * neighbours in vectors. An attribute of many levels has codes in place of planes. */
#pragma once

#include "core/call/arena.h"
#include "core/data/codes.h"
#include "mi/pack/both/fixed_point.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MI_PLANAR_LEVELS 24u  /* more levels: codes */
#define WEFT_MI_PLANAR_CLASSES 64u /* more classes: codes */
#define WEFT_MI_MISSING 65535u     /* a code */
#define WEFT_MI_TILE 64            /* attributes per side of a tile of pairs */

/* Neighbouring attributes of one shape. Member m's plane q is row plane0 + q * count + m of the bits. */
typedef struct weft_mi_group {
  weft_mi_shape shape; /* of coded members: no planes, levels in pack->levels */
  int coded, side;     /* side: bit 0, in the first of two sets; bit 1, in the second */
  size_t first, count; /* places of its members */
  size_t plane0, code0;
} weft_mi_group;

typedef struct weft_mi_pack {
  size_t n, p;             /* rows that count; attributes */
  size_t rows_in, columns; /* of the input */
  uint32_t classes;        /* of all strata together */
  uint32_t per;            /* of one stratum; class c of stratum s is number s * per + c */
  size_t words;            /* of a plane */
  size_t *class_word;      /* classes + 1 */
  uint32_t *class_rows;
  uint32_t *order; /* the input's row of each of the n sorted rows */
  size_t group_count, plane_rows;
  weft_mi_group *groups;
  uint32_t *column, *place; /* attribute of a place, place of an attribute */
  uint32_t *group_of;       /* group of a place */
  uint32_t *levels;         /* of a place: levels that occur; 1 where no value is known */
  uint64_t *bits;           /* NULL: only `away` has them */
  struct weft_mi_away {
    const struct weft_mi_ops *ops;
    struct weft_mi_resident *at;
  } away;             /* the back end that made the planes, and its copy; else NULL */
  const size_t *rows; /* of a view: row of `bits` of each of its rows of planes; else NULL, in order */
  uint16_t *codes;    /* coded member m of a group: n codes from (code0 + m) * n on, in sorted order */
  uint32_t *margins;  /* margins[class * plane_rows + row]: set bits */
  double *missing;    /* of an attribute: values missing in rows_in rows */
  weft_mi_log f;
  int64_t class_fixed; /* Σ f(n_c) - f(n), summed over strata */
} weft_mi_pack;

/* The class of every row, of `levels`, of which a stratum has `per`; WEFT_NA_U16 where the row does not count. */
typedef struct weft_mi_classes {
  const uint16_t *codes;
  uint32_t levels, per;
} weft_mi_classes;

/* Memory is taken from `mem`. */
weft_status weft_mi_pack_build(weft_ctx *ctx, weft_arena *mem, const weft_column *columns, size_t p, size_t n,
                               const weft_mi_classes *classes, int na_level, weft_mi_pack *out);

/* The parts of that for a back end that makes planes: all that classes say; and, from the levels of every attribute and
 * whether it has missing values, all that is left but planes and margins. levels: 0 becomes 1, a level that no row
 * has. */
weft_status weft_mi_pack_begin(weft_arena *mem, const weft_mi_classes *classes, size_t p, size_t n, weft_mi_pack *out);
weft_status weft_mi_pack_group(weft_arena *mem, uint32_t *levels, const uint8_t *missing, weft_mi_pack *out);

/* Whether a back end can make the planes: columns of genotypes, few classes. */
int weft_mi_pack_plantable(const weft_column *columns, size_t p, const weft_mi_classes *classes);

/* The same attributes with the classes of the rows exchanged: sorted row r gets the class of sorted row perm[r]. Shares
 * what does not change with `in`. `out` may be refilled: its blocks are taken when it has none. */
weft_status weft_mi_pack_permute(weft_ctx *ctx, weft_arena *mem, const weft_mi_pack *in, const uint32_t *perm,
                                 weft_mi_pack *out);

/* Only the attributes with side[attribute] != 0, grouped by side. Column numbers stay those of `in`. Planes that are
 * away are fetched. */
weft_status weft_mi_pack_select(weft_ctx *ctx, weft_arena *mem, const weft_mi_pack *in, const uint8_t *side,
                                weft_mi_pack *out);

/* The same for what goes by margins and by weft_mi_pack_row() alone, as a device's copy: planes stay where they are. */
weft_status weft_mi_pack_view(weft_arena *mem, const weft_mi_pack *in, const uint8_t *side, weft_mi_pack *out);

/* Codes of the attribute at `place` in sorted order. */
void weft_mi_pack_codes(const weft_mi_pack *pack, size_t place, uint16_t *out);

static inline size_t weft_mi_plane_row(const weft_mi_group *group, size_t place, uint32_t plane)
{
  return group->plane0 + plane * group->count + (place - group->first);
}

static inline const uint64_t *weft_mi_pack_row(const weft_mi_pack *pack, size_t row)
{
  return pack->bits + (pack->rows ? pack->rows[row] : row) * pack->words;
}

/* A pack on a device; of the back end that made it. */
typedef struct weft_mi_resident weft_mi_resident;

/* Frees a device's copy of a pack. */
void weft_mi_resident_release(weft_ctx *ctx, weft_mi_resident *device);
/* What weft_mi_pack_permute() does, on the device alone: *out is its copy of the pack with rows exchanged, made if NULL
 * and overwritten otherwise; `moved` is the pack with the new margins, whose memory is the caller's, and the old bits.
 * *out stays NULL where the device has no room, or an attribute has codes. */
weft_status weft_mi_permute_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                 const uint32_t *perm, weft_mi_pack *moved, weft_mi_resident **out);

#ifdef __cplusplus
}
#endif
