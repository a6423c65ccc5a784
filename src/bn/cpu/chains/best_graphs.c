/* The best graphs that chains have met, best first, and the best graph of an order. */
/* Build: shared. */
#include "bn/cpu/chains/chain.h"

weft_status weft_bn_best_make(weft_arena *mem, size_t p, size_t most, weft_bn_best *out)
{
  weft_status st = WEFT_OK;
  *out = (weft_bn_best){ .most = most };
  WEFT_TAKE(out->score, mem, most);
  WEFT_TAKE(out->hash, mem, most);
  WEFT_TAKE(out->stamp, mem, most);
  WEFT_TAKE(out->sets, mem, most * p);
done:
  return st;
}

static int comes_before(const weft_bn_best *best, size_t k, int64_t score, uint64_t stamp)
{
  return best->score[k] > score || (best->score[k] == score && best->stamp[k] < stamp);
}

static void move_entry(weft_bn_best *best, size_t p, size_t from, size_t to)
{
  best->score[to] = best->score[from];
  best->hash[to] = best->hash[from];
  best->stamp[to] = best->stamp[from];
  memcpy(best->sets + to * p, best->sets + from * p, p * sizeof *best->sets);
}

void weft_bn_best_add(weft_bn_best *best, size_t p, int64_t score, uint64_t hash, uint64_t stamp, const int32_t *picks)
{
  if (!weft_bn_best_wants(best, score, hash, stamp)) return;
  size_t place = 0;
  while (place < best->found && best->hash[place] != hash) place++; /* found later before: it moves up */
  if (place == best->found) place = best->found < best->most ? best->found++ : best->most - 1;
  for (; place > 0 && !comes_before(best, place - 1, score, stamp); place--) move_entry(best, p, place - 1, place);
  best->score[place] = score;
  best->hash[place] = hash;
  best->stamp[place] = stamp;
  memcpy(best->sets + place * p, picks, p * sizeof *picks);
}

int64_t weft_bn_best_graph(const weft_bn_lists *lists, const uint64_t *before, int32_t *picks)
{
  const weft_bn_table *table = lists->table;
  int64_t score = 0;
  for (size_t node = 0; node < lists->p; node++) {
    int64_t k = table->start[node];
    while (!fits(table->mask + (size_t) k * lists->words, before + node * lists->words, lists->words)) k++;
    picks[node] = (int32_t) (k - table->start[node]);
    score += table->score[k];
  }
  return score;
}
