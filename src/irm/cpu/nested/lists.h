/* Lists of a level: occupied and spare groups, and the members of each. */
#pragma once

#include "irm/cpu/nested/levels.h"

static inline void irm_enlist(irm_level *level, int32_t home)
{
  const int type = irm_type_of(level, home);
  level->place[home] = level->count[type];
  level->active[(type ? level->split : 0) + level->count[type]++] = home;
}

static inline void irm_delist(irm_level *level, int32_t home)
{
  const int type = irm_type_of(level, home);
  int32_t *active = level->active + (type ? level->split : 0);
  const int32_t last = active[--level->count[type]];
  active[level->place[home]] = last;
  level->place[last] = level->place[home];
  level->place[home] = -1;
  level->spare[(type ? level->split : 0) + level->spares[type]++] = home;
}

/* A spare label that is used now. */
static inline void irm_unspare(irm_level *level, int32_t home)
{
  const int type = irm_type_of(level, home);
  int32_t *spare = level->spare + (type ? level->split : 0);
  int32_t at = level->spares[type] - 1;
  while (spare[at] != home) at--;
  spare[at] = spare[--level->spares[type]];
}

static inline void irm_link_member(irm_level *level, int32_t i, int32_t home)
{
  level->b[i] = home;
  level->before[i] = -1;
  level->next[i] = level->first[home];
  if (level->first[home] >= 0) level->before[level->first[home]] = i;
  level->first[home] = i;
}

static inline void unirm_link_member(irm_level *level, int32_t i)
{
  const int32_t home = level->b[i];
  if (level->before[i] >= 0)
    level->next[level->before[i]] = level->next[i];
  else
    level->first[home] = level->next[i];
  if (level->next[i] >= 0) level->before[level->next[i]] = level->before[i];
}
