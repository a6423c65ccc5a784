/* The split-merge proposals of a sweep, split_merge.c, by all threads.
 *
 * Most are rejected. In bipartite graphs threads therefore evaluate many at once, each for the present state and with
 * draws of its own. The first that is accepted changes the state, and those after it are evaluated again: the outcome
 * is the same as one after another. Little is done twice: a proposal chooses the cluster with the greatest log weight +
 * Gumbel noise, with a draw for each cluster, so that it mostly makes the same choice again, and where its clusters'
 * nodes are also the same, the result of the scans remains valid (irm_trial.known). Chains that run together share the
 * threads. */
#include "core/call/parallel.h"
#include "irm/cpu/moves.h"
#include "irm/cpu/split/split_choice.h"

/* Entries of all proposals that are evaluated at once, and of one at least: larger ones wait for room of their own. */
#define BESIDE_ENTRIES ((int64_t) 1 << 24)
#define MIN_ENTRIES ((int64_t) 1 << 16)
enum { MAX_TRIALS = 32 };

/* Makes as many trials as threads can use at once, and one more with room for the largest proposal where the others
 * are too small for it. */
weft_status irm_trials_make(weft_arena *arena, irm_state *s, int chains)
{
  weft_status st = WEFT_OK;
  const int32_t most = s->k[0] > s->k[1] ? s->k[0] : s->k[1];
  const int64_t entries = s->one_mode ? 0 : irm_pair_entries(s);
  int64_t nodes = s->graph->n[0] > s->graph->n[1] ? s->graph->n[0] : s->graph->n[1];
  int slots = s->one_mode || s->threads == 1 ? 1 : 2 * s->threads;
  if (nodes > IRM_SPLIT_NODES) nodes = IRM_SPLIT_NODES;
  if (slots > MAX_TRIALS) slots = MAX_TRIALS;
  if (slots > s->model->attempts) slots = s->model->attempts;
  int64_t beside = BESIDE_ENTRIES / ((int64_t) slots * chains);
  if (beside < MIN_ENTRIES) beside = MIN_ENTRIES;
  irm_trial *t;
  s->trial_count = slots;
  WEFT_TAKE0(t, arena, (size_t) slots + 1);
  for (int k = 0; k < slots + (slots > 1 && entries > beside); k++) { /* the last one has room for all */
    WEFT_TAKE(t[k].members, arena, (size_t) nodes);
    WEFT_TAKE(t[k].targets, arena, (size_t) nodes);
    WEFT_TAKE(t[k].scores, arena, (size_t) most);
    WEFT_TAKE(t[k].counts, arena, (size_t) most);
    if (s->one_mode) continue;
    WEFT_TRY(irm_pair_make(arena, s, slots == 1 || k == slots || entries < beside ? entries : beside, &t[k].pair));
  }
  for (int mode = 0; mode < s->modes; mode++) WEFT_TAKE0(s->changes[mode], arena, (size_t) s->k[mode]);
  s->trials = t;
done:
  return st;
}

/* The n-th proposal of all chains that waits for its outcome: first those that were never evaluated, which take
 * longest. */
static irm_trial *waiting(irm_state *const *states, int chains, int n, irm_state **s, int *number)
{
  for (int known = 0; known < 2; known++)
    for (int c = 0; c < chains; c++) {
      const irm_queue *q = &states[c]->queue;
      const int first = known ? q->next : q->begun, count = (known ? q->begun : q->end) - first;
      if (n < count) {
        *s = states[c];
        *number = first + n;
        return &states[c]->trials[*number % states[c]->trial_count];
      }
      n -= count;
    }
  return NULL;
}

static weft_status weigh_nth(weft_ctx *poll, irm_state *const *states, int chains, int mode, int n)
{
  int number;
  irm_state *s;
  irm_trial *t = waiting(states, chains, n, &s, &number);
  return irm_weigh(poll, s, t, mode, number);
}

static weft_status weigh_waiting(weft_ctx *poll, irm_state *const *states, int chains, int mode, int count)
{
  weft_status st = WEFT_OK;
  if (count == 1) {
    st = weigh_nth(poll, states, chains, mode, 0);
  } else {
    const int team = count < states[0]->threads ? count : states[0]->threads;
    (void) team;
    WEFT_PARALLEL_FOR(team, dynamic)
    for (int n = 0; n < count; n++) weigh_nth(NULL, states, chains, mode, n);
    if (poll) st = weft_poll(poll, 0, 0);
  }
  for (int c = 0; c < chains; c++) states[c]->queue.begun = states[c]->queue.end;
  return st;
}

static void apply(irm_state *s, irm_trial *t, int mode)
{
  if (s->one_mode) return; /* its scans go through the state */
  irm_pair_apply(s, t, t->joins);
  s->changes[mode][t->a]++;
  s->changes[mode][t->b]++;
  irm_uneven_renew(s, mode, t);
}

/* Takes the outcomes of a chain's evaluated proposals up to the first that changes the state. */
static weft_status take_outcomes(weft_ctx *poll, irm_state *s, int mode, int *changed)
{
  weft_status st = WEFT_OK;
  irm_queue *q = &s->queue;
  while (q->next < q->begun) {
    irm_trial *t = &s->trials[q->next % s->trial_count];
    if (t->deferred) WEFT_TRY(irm_weigh(poll, s, t = &s->trials[s->trial_count], mode, q->next));
    q->next++;
    if (!t->accepted) continue;
    apply(s, t, mode);
    *changed = 1;
    break;
  }
done:
  return st;
}

/* Fills the slots; returns how many proposals of the chain wait. */
static int fill_slots(irm_state *s, int attempts)
{
  irm_queue *q = &s->queue;
  q->end = attempts - q->next < s->trial_count ? attempts : q->next + s->trial_count;
  for (int n = q->begun; n < q->end; n++) s->trials[n % s->trial_count].known = 0;
  return q->end - q->next;
}

/* Evaluates what waits, takes outcomes in the order of their numbers up to the first that changes a chain, and so on
 * until all chains have had `attempts` proposals. */
weft_status irm_split_merge(weft_ctx *poll, irm_state *const *states, int chains, int mode, int attempts)
{
  weft_status st = WEFT_OK;
  for (int c = 0; c < chains; c++) {
    states[c]->queue = (irm_queue){ 0, 0, 0, 0 };
    if (!states[c]->one_mode) WEFT_TRY(irm_uneven_begin(poll, states[c], mode));
  }
  for (;;) {
    int count = 0;
    for (int c = 0; c < chains; c++) count += fill_slots(states[c], attempts);
    if (!count) break;
    WEFT_TRY(weigh_waiting(poll, states, chains, mode, count));
    for (int c = 0; c < chains; c++) WEFT_TRY(take_outcomes(poll, states[c], mode, &states[c]->queue.changed));
    if (poll) WEFT_TRY(weft_poll(poll, 0, 0));
  }
done:
  return st;
}
