/* The split-merge proposals of a sweep, split_merge.c, by all threads.
 *
 * Most are rejected. In bipartite graphs threads therefore evaluate many at once, each for the present state and with
 * draws of its own. The first that is accepted changes the state, and those after it are evaluated again: the outcome
 * is the same as one after another. Little is done twice: a proposal chooses the cluster with the greatest log weight +
 * Gumbel noise, with a draw for each cluster, so that it mostly makes the same choice again, and where its clusters'
 * nodes are also the same, the result of the scans remains valid (irm_trial.known). Chains that run together share the
 * threads. */
#include "core/call/parallel.h"
#include "irm/cpu/split/split_merge.h"
#include "irm/cpu/split/trials.h"
#include "irm/cpu/split/split_choice.h"

/* Entries of all proposals that are evaluated at once, and of one at least: larger ones wait for room of their own. In
 * large graphs all may have one entry for BESIDE_LINKS links, a sixteenth of what the lists take. */
#define BESIDE_ENTRIES ((int64_t) 1 << 24)
#define BESIDE_LINKS 32
#define MIN_ENTRIES ((int64_t) 1 << 16)
enum { MAX_TRIALS = 32 };

/* Makes as many trials as threads can use at once, and one more with room for the largest proposal where the others
 * are too small for it. */
weft_status irm_trials_make(weft_arena *arena, irm_state *state, int chains)
{
  weft_status st = WEFT_OK;
  const int32_t most = state->k[0] > state->k[1] ? state->k[0] : state->k[1];
  const int64_t entries = state->one_mode ? 0 : irm_pair_entries(state);
  int64_t nodes = state->graph->n[0] > state->graph->n[1] ? state->graph->n[0] : state->graph->n[1];
  int slots = state->one_mode || state->threads == 1 ? 1 : 2 * state->threads;
  if (nodes > IRM_SPLIT_NODES) nodes = IRM_SPLIT_NODES;
  if (slots > MAX_TRIALS) slots = MAX_TRIALS;
  if (slots > state->model->attempts) slots = state->model->attempts;
  int64_t beside = state->graph->link_count[0] / BESIDE_LINKS;
  if (beside < BESIDE_ENTRIES) beside = BESIDE_ENTRIES;
  beside /= (int64_t) slots * chains;
  if (beside < MIN_ENTRIES) beside = MIN_ENTRIES;
  irm_trial *trial;
  state->trial_count = slots;
  WEFT_TAKE0(trial, arena, (size_t) slots + 1);
  for (int k = 0; k < slots + (slots > 1 && entries > beside); k++) { /* the last one has room for all */
    WEFT_TAKE(trial[k].members, arena, (size_t) nodes);
    WEFT_TAKE(trial[k].targets, arena, (size_t) nodes);
    WEFT_TAKE(trial[k].scores, arena, (size_t) most);
    WEFT_TAKE(trial[k].counts, arena, (size_t) most);
    WEFT_TAKE(trial[k].bounds, arena, (size_t) most + 1);
    if (state->one_mode) continue;
    WEFT_TRY(
        irm_pair_make(arena, state, slots == 1 || k == slots || entries < beside ? entries : beside, &trial[k].pair));
  }
  for (int mode = 0; mode < state->modes; mode++) WEFT_TAKE0(state->changes[mode], arena, (size_t) state->k[mode]);
  state->trials = trial;
done:
  return st;
}

/* The n-th proposal of all chains that waits for its outcome: first those that were never evaluated, which take
 * longest. */
static irm_trial *waiting(irm_state *const *states, int chains, int which, irm_state **state, int *number)
{
  for (int known = 0; known < 2; known++)
    for (int c = 0; c < chains; c++) {
      const irm_queue *queue = &states[c]->queue;
      const int first = known ? queue->next : queue->begun, count = (known ? queue->begun : queue->end) - first;
      if (which < count) {
        *state = states[c];
        *number = first + which;
        return &states[c]->trials[*number % states[c]->trial_count];
      }
      which -= count;
    }
  return NULL;
}

static weft_status weigh_nth(weft_ctx *poll, irm_state *const *states, int chains, int mode, int n)
{
  int number;
  irm_state *state;
  irm_trial *trial = waiting(states, chains, n, &state, &number);
  return irm_weigh(poll, state, trial, mode, number);
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

static void apply(irm_state *state, irm_trial *trial, int mode)
{
  if (state->one_mode) return; /* its scans go through the state */
  irm_pair_apply(state, trial, trial->joins);
  state->changes[mode][trial->a]++;
  state->changes[mode][trial->b]++;
  irm_uneven_renew(state, mode, trial);
}

/* Takes the outcomes of a chain's evaluated proposals up to the first that changes the state. */
static weft_status take_outcomes(weft_ctx *poll, irm_state *state, int mode, int *changed)
{
  weft_status st = WEFT_OK;
  irm_queue *queue = &state->queue;
  while (queue->next < queue->begun) {
    irm_trial *trial = &state->trials[queue->next % state->trial_count];
    if (trial->deferred)
      WEFT_TRY(irm_weigh(poll, state, trial = &state->trials[state->trial_count], mode, queue->next));
    queue->next++;
    if (!trial->accepted) continue;
    apply(state, trial, mode);
    *changed = 1;
    break;
  }
done:
  return st;
}

/* Fills the slots; returns how many proposals of the chain wait. */
static int fill_slots(irm_state *state, int attempts)
{
  irm_queue *queue = &state->queue;
  queue->end = attempts - queue->next < state->trial_count ? attempts : queue->next + state->trial_count;
  for (int n = queue->begun; n < queue->end; n++) state->trials[n % state->trial_count].known = 0;
  return queue->end - queue->next;
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
