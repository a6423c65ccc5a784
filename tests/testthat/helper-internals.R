# Runs code while an object of the package has another value.
with_internal <- function(name, value, code) {
  room <- asNamespace("weft")
  put <- function(value) {
    unlockBinding(name, room)
    assign(name, value, room)
    lockBinding(name, room)
  }
  before <- get(name, room)
  on.exit(put(before))
  put(value)
  code
}
