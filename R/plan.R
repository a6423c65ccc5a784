# Which engines would do the work, and what it costs: each room's plan.c says (src/<room>/plan.h), and choose_backend()
# weighs. The numbers that decide stand there; here is how R asks, and what dry runs return.

# How many times as long as on the reference machine work takes here, by what bounds it, in the order of weft_slowness
# (src/core/call/plan.h); of what goes up and down, seconds of a byte.
slownesses <- function() {
  out <- vapply(names(reference_rates), slowness, 0)
  transfers <- c("up", "down")
  out[transfers] <- out[transfers] / reference_rates[transfers]
  out
}

# list(cpu, cuda, bytes, bytes_cuda, device_bytes, beside, divided, engine = c(cpu, cuda, hopper), stays): seconds on
# either back end, Inf where it cannot do the work; bytes of host memory beside the input, for either; those that a
# device must have; seconds that no choice changes; those of the device's that several devices share; names of engines;
# and why the work stays on the CPU, or NULL. `...`: sizes by the names of the
# room's sheet in plan.h; those that are not given are 0.
mi_plan <- function(operation, ..., kind = NULL) .Call(C_weft_mi_plan, operation, kind, list(...), slownesses())
bn_plan <- function(operation, ..., kind = NULL) .Call(C_weft_bn_plan, operation, kind, list(...), slownesses())
irm_plan <- function(operation, ...) .Call(C_weft_irm_plan, operation, list(...), slownesses())
kernel_plan <- function(operation, ..., precision = NULL) {
  .Call(C_weft_kernel_plan, operation, precision, list(...), slownesses())
}
regulation_plan <- function(operation, ...) .Call(C_weft_regulation_plan, operation, list(...), slownesses())

# A plan of work whose seconds R predicts itself, such as what a step of gene_network() adds.
cost <- function(cpu, cuda = Inf, bytes = 0, beside = 0, divided = 0) {
  list(cpu = as.double(cpu), cuda = as.double(cuda), bytes = as.double(bytes), beside = as.double(beside),
       divided = as.double(divided))
}

# The number of devices, `most` at most, for `divided` seconds of work that they can share. `open` of them are open.
# Each further one costs a thread, memory, sending the data again and merging results: 2 to 6 ms on two H100, and
# `again` seconds of work that each does for itself. One that is not open must save twice the time that opening it
# takes.
devices_worth <- function(divided, most, open, again = 0) {
  m <- seq_len(most)
  which.max(divided * (1 - 1 / m) - (launching(0.003) + again) * (m - 1) - 2 * 0.35 * pmax(0, m - max(open, 1)))
}

# Small calls on a device, seconds on the reference machine as seconds here: kernels started, memory taken and given
# back.
launching <- function(seconds) seconds * slowness("calls")

# Threads for work that takes one core `seconds`: one where waking others takes longer (src/core/call/parallel.h).
worth_threads <- function(seconds, run) if (seconds < 5e-4) 1L else run$threads

# What a function returns in a dry run, from what choose_backend() or cpu_only() chose: a data frame of one row. `also`:
# plans of work that comes before.
dry_plan <- function(name, chosen, also = list()) {
  plan <- chosen$plan
  there <- if (chosen$name == "cpu") "cpu" else if (has_bit_wgmma()) "hopper" else "cuda"
  seconds <- if (is.null(plan)) NA_real_ else plan[[chosen$name]] + plan$beside
  bytes <- if (is.null(plan)) NA_real_ else if (chosen$name == "cuda") plan$bytes_cuda else plan$bytes
  row <- list(`function` = name, engine = chosen$engine %||% plan$engine[[there]] %||% NA_character_,
              backend = chosen$name, seconds = seconds + sum(vapply(also, `[[`, 0, "seconds")),
              bytes = max(bytes, vapply(also, `[[`, 0, "bytes")), reason = chosen$reason)
  structure(list2DF(row), class = c("weft_plan", "data.frame"))
}

#' @export
print.weft_plan <- function(x, ...) {
  shown <- c("function", "engine", "backend", "seconds", "bytes", "reason")
  if (!is.data.frame(x) || !all(shown %in% names(x)) || nrow(x) != 1L) return(print_as_frame(x, 6L))
  damaged <- function(name) abort_changed("x", sprintf("its column `%s` is damaged", name))
  for (name in c("function", "engine", "backend", "reason")) if (!is.character(x[[name]])) damaged(name)
  for (name in c("seconds", "bytes")) if (!is.numeric(x[[name]])) damaged(name)
  size <- c(if (!is.na(x$seconds)) paste("about", seconds_text(x$seconds)), if (!is.na(x$bytes)) bytes_text(x$bytes),
            if (is.numeric(x[["sets"]])) paste(thousands(x[["sets"]]), "parent sets"))
  cat_wrapped(sprintf("%s() would run on %s%s%s: %s", x$`function`, if (x$backend == "cpu") "the CPU" else "a device",
                      if (is.na(x$engine)) "" else sprintf(" (%s)", x$engine),
                      if (length(size)) paste0(", ", paste(size, collapse = ", ")) else "", x$reason))
  invisible(x)
}
