# What users may hand back after a file, a merge or a typo: copies of an object with one part changed in length, type or
# value.

# list(label = object): one part changed at a time, parts of parts to `depth`.
mi_damaged <- function(x, depth = 2L, label = "") {
  out <- list()
  add <- function(name, value) out[[paste0(label, name)]] <<- value
  for (name in setdiff(names(attributes(x)),
                       if (isS4(x)) "class" else c("class", "dim", "dimnames", "names", "row.names"))) {
    for (kind in names(mi_changes)) {
      changed <- tryCatch(`attr<-`(x, name, mi_changes[[kind]](attr(x, name, exact = TRUE))), error = function(e) NULL)
      if (!is.null(changed)) add(sprintf("@%s %s", name, kind), changed)
    }
    inner <- attr(x, name, exact = TRUE)
    if (depth > 0L && (is.list(inner) || is.matrix(inner)) && !isS4(inner)) {
      for (part in names(parts <- mi_damaged(inner, depth - 1L))) add(sprintf("@%s%s", name, part),
                                                                      `attr<-`(x, name, parts[[part]]))
    }
  }
  if (is.list(x)) out <- c(out, mi_damaged_list(x, depth, label))
  if (is.matrix(x)) out <- c(out, mi_damaged_matrix(x, label))
  out
}

mi_damaged_list <- function(x, depth, label) {
  out <- list()
  plain <- function(parts) `attributes<-`(parts, attributes(x))
  for (k in utils::head(seq_along(x), 12L)) {
    values <- c(lapply(mi_changes, function(change) change(unclass(x)[[k]])),
                if (depth > 0L && is.list(unclass(x)[[k]])) mi_damaged(unclass(x)[[k]], depth - 1L))
    for (kind in names(values)) {
      parts <- lapply(unclass(x), identity)
      parts[k] <- list(values[[kind]])
      out[[sprintf("%s$%s %s", label, names(x)[k] %||% k, kind)]] <- plain(parts)
    }
  }
  out
}

mi_damaged_matrix <- function(x, label) {
  shape <- function(dim) {
    out <- `attributes<-`(rep_len(c(unclass(x)), prod(dim)),
                          attributes(x)[setdiff(names(attributes(x)), c("dim", "dimnames"))])
    if (length(dim) > 1L) dim(out) <- dim
    out
  }
  typed <- function(mode) tryCatch({ storage.mode(x) <- mode; x }, warning = function(w) NULL, error = function(e) NULL)
  values <- function(value) tryCatch({ x[] <- value; x }, error = function(e) NULL)
  d <- dim(x)
  out <- list(`no dim` = shape(length(x)), wider = shape(d + 0:1), taller = shape(d + 1:0), three = shape(c(d, 1L)),
              empty = shape(c(0L, d[2L])),
              integers = typed("integer"), texts = typed("character"), missing = values(NA_real_),
              infinite = values(Inf),
              negative = values(-1))
  names(out) <- paste(label, names(out))
  Filter(Negate(is.null), out)
}

mi_changes <- list(
  null = function(x) NULL, na = function(x) x[NA], text = function(x) "a", nothing = function(x) x[0L],
  longer = function(x) c(x, x[1L]),
  shorter = function(x) x[-1L], negative = function(x) if (is.numeric(x)) -x - 1 else -1,
  large = function(x) if (is.numeric(x)) x + 1e9 else 1e9,
  infinite = function(x) Inf, number = function(x) 7L, list = function(x) list(1, "a"),
  a_function = function(x) function(...) 1
)
mi_changes <- lapply(mi_changes, function(change) function(x) tryCatch(change(x), error = function(e) NULL))

# Errors of `uses`, functions of one argument, on each of `objects`, that are not weft's. `share`: one of so many uses
# of each object, others of the next.
mi_unclassed_uses <- function(objects, uses, share = 1L, note = function(label) NULL) {
  found <- character()
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  for (k in seq_along(objects)) {
    label <- names(objects)[k]
    for (use in names(uses)[(k + seq_along(uses)) %% share == 0L]) {
      note(paste(use, label))
      for (condition in one_call(uses[[use]], list(objects[[k]]))) {
        if (inherits(condition, "error")) found <- c(found,
                                                     sprintf("%s of %s: %s", use, label, conditionMessage(condition)))
      }
    }
  }
  found
}

# What is saved, and everything that takes it: list(object, uses).
mi_damage_cases <- function() {
  folder <- errors_folder()
  data <- errors_data(folder)
  numbers <- as.data.frame(data$numbers)
  results <- list(
    weft_mi = mi_rank(data$levels, data$class), weft_mi_tuples = mi_pairs(data$levels, data$class),
    weft_pair_scan = pair_scan(data$variants, data$class, data$numbers[, 2], permutations = 2),
    weft_transfer = transfer_entropy(numbers, seq_len(nrow(numbers)), permutations = 2, fdr = 1, seed = 1),
    weft_mi_matrix = mi_matrix(data$levels), correlations = mi_matrix(data$numbers, estimator = "kendall"),
    weft_network = mi_network(data$numbers, "mrnet", estimator = "pearson"),
    weft_selection = mi_select(data$levels, data$class, 2), weft_bins = discretize(numbers, bins = 3),
    widths = discretize(numbers, "equalwidth", bins = 3), weft_mi_pack = mi_pack(data$levels, data$class),
    weft_file = weft_file(folder("numbers"), 2)
  )
  uses <- list(
    weft_mi_matrix = list(relnet = function(x) mi_network(x, "relnet", fdr = 0.5),
                          clr = function(x) mi_network(x, "clr"),
                          threshold = function(x) mi_network(x, "relnet", threshold = 0)),
    weft_network = list(igraph = as_igraph), weft_transfer = list(igraph = as_igraph),
    weft_pair_scan = list(pairs = function(x) pair_scan(data$variants, data$class, pairs = x)),
    weft_bins = list(predict = function(x) predict(x, numbers), rank = function(x) mi_rank(x, data$class)),
    weft_mi_pack = list(pairs = mi_pairs, triples = mi_triples, tuples = function(x) mi_tuples(x, order = 3),
                        rank = mi_rank, permuted = function(x) mi_rank(x, permutations = 3),
                        full = function(x) mi_pairs(x, control = list(full = TRUE)),
                        dim = dim, some = function(x) mi_pairs(x, features = 1:3)),
    weft_file = list(dim = dim, rows = function(x) x[1:2, ], pca = function(x) pca(x, 1))
  )
  generics <- list(print = print, summary = summary, as.data.frame = as.data.frame, as.matrix = as.matrix, tidy = tidy,
                   glance = glance, plot = plot)
  lapply(results, function(result) {
    class <- class(result)[1L]
    ours <- function(generic) !is.null(utils::getS3method(generic, class, optional = TRUE, envir = asNamespace("weft")))
    list(result, c(generics[vapply(names(generics), ours, NA)], uses[[class]]))
  })
}
