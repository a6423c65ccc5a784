/* The functions f of counts that a score table on the device needs (count.h), found and filled in by the host. */
#pragma once

#include <cstring>
#include "bn/both/count.h"

/* Distinct parameters a of f and which of them a number of parent cells takes. */
struct functions {
  double *a;
  uint32_t count, room;
  uint32_t *table; /* kinds × q_stride */
  uint32_t q_stride, kinds;
};

static uint32_t find_function(functions *list, double a)
{
  for (uint32_t k = list->count; k-- > 0;)
    if (list->a[k] == a) return k;
  if (list->count == list->room) return UINT32_MAX;
  list->a[list->count] = a;
  return list->count++;
}

struct fill_task_data {
  const functions *f;
  int64_t *value;
  size_t n;
  double unit;
};

static void fill_task(void *data, size_t t, int thread)
{
  const fill_task_data *task = (const fill_task_data *) data;
  weft_bn_ftable one;
  weft_bn_counter counter;
  (void) thread;
  memset(&one, 0, sizeof one);
  memset(&counter, 0, sizeof counter);
  one.value = task->value + t * (task->n + 1);
  counter.tables = &one;
  counter.slots = 1;
  counter.unit = task->unit;
  weft_bn_function(&counter, task->f->a[t], (uint32_t) task->n);
}
