/* A call's work on several devices: one host thread per device, each with a context, arenas and a stream of its own.
 *
 *   static weft_status part(weft_ctx *ctx, size_t part, void *data) { ... }   part: 0 .. device_count - 1 of the call
 *   WEFT_TRY(weft_spread(ctx, part, &job));
 *
 * The threads never enter R: their polls only check whether to stop, and the caller's thread, which waits for them,
 * polls for all. When one fails, the others stop at their next poll; the error is that of the first part that failed by
 * itself. With one device the caller's thread runs part 0 itself, in its own context; otherwise the parts may meet
 * (exchange.h). */
#pragma once

#include "core/call/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef weft_status (*weft_part)(weft_ctx *ctx, size_t part, void *data);

/* In weft.so alone. A part's arena that is to outlive it must be given another context before the part returns. */
weft_status weft_spread(weft_ctx *ctx, weft_part run, void *data);

/* The same threads for several runs, with their contexts: what a part opened in one run it finds in the next. After a
 * run that failed, they can only be ended. */
typedef struct weft_team weft_team;
weft_status weft_team_begin(weft_ctx *ctx, weft_team **out);
weft_status weft_team_run(weft_ctx *ctx, weft_team *team, weft_part run, void *data);
void weft_team_end(weft_team *team);

/* Units of work dealt back and forth: 0 1 2 | 2 1 0 | 0 1 2 ..., so that units that grow or shrink are shared evenly.
 * How many of `units` part `part` of `parts` gets, and which its k-th is. */
static inline uint64_t weft_dealt(uint64_t units, uint64_t part, uint64_t parts)
{
  const uint64_t full = units / parts, rest = units % parts, place = full & 1 ? parts - 1 - part : part;
  return full + (place < rest);
}

static inline uint64_t weft_dealt_unit(uint64_t k, uint64_t part, uint64_t parts)
{
  return k * parts + (k & 1 ? parts - 1 - part : part);
}

/* The first unit of a part where each has a run of neighbours; part `parts` starts behind the last. */
static inline uint64_t weft_share_start(uint64_t units, uint64_t part, uint64_t parts)
{
  const uint64_t each = units / parts, rest = units % parts;
  return each * part + (part < rest ? part : rest);
}

#ifdef __cplusplus
}
#endif
