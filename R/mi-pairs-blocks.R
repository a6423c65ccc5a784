# Pairs of genotypes whose planes exceed the memory: variants are read from the file in blocks, and every block is
# searched against itself and every other.

# How many variants make a block, two of which fit; NULL where all variants do. One has three planes at most.
variants_at_once <- function(x) {
  if (!inherits(x, "weft_plink")) return(NULL)
  most <- check_number(getOption("weft.memory", 0), "weft.memory", min = 0)
  if (most == 0) {
    free <- host_free()
    most <- if (free >= 0) 0.7 * free else Inf
  }
  d <- dim(x)
  each <- 3 * 8 * ceiling(d[1L] / 64)
  if (each * d[2L] > most) max(1, floor(most / each / 2))
}

some_variants <- function(x, at) {
  parts <- whole_plink(x)
  parts$wanted <- parts$wanted[at]
  parts$variants <- parts$variants[at, ]
  row.names(parts$variants) <- NULL
  structure(parts, class = "weft_plink")
}

# Blocks of at most `most` columns that are in the same set of the search: lists of columns and side.
variant_blocks <- function(side, p, most) {
  of <- if (is.null(side)) rep(3L, p) else as.integer(side)
  cut <- lapply(1:3, function(s) {
    at <- which(of == s)
    lapply(unname(split(at, (seq_along(at) - 1) %/% most)), function(columns) list(columns = columns, side = s))
  })
  unlist(cut, recursive = FALSE)
}

are_searched <- function(one, other) {
  (bitwAnd(one, 1L) && bitwAnd(other, 2L)) || (bitwAnd(one, 2L) && bitwAnd(other, 1L))
}

# What mi_pairs() has of a search and its test, made with packs of some columns at a time. pack_of(columns): a pack,
# which this function frees; choose(pack): the back end; control(chosen, pack); test: list(permutations, key), or NULL.
search_by_blocks <- function(side, p, at_once, keep, pack_of, choose, control, test) {
  blocks <- variant_blocks(side, p, at_once)
  given <- keep
  found <- chosen <- greatest <- about <- NULL
  part <- function(columns, use) {
    pack <- pack_of(columns)
    on.exit(weft_free(pack))
    if (is.null(chosen)) {
      chosen <<- choose(pack)
      about <<- pack[c("class_levels", "strata_levels", "na")]
    }
    keep$near <<- if (!is.null(given$near)) near_of(given$near, columns)
    use(pack, control(chosen, pack))
  }
  permute <- function(pack, side, columns, control) {
    how <- c(list(by_interaction = keep$by == "interaction"), test, near_list(keep$near), rank_part(NULL))
    .Call(C_weft_mi_permute_pairs, pack_pointer(pack), side, columns, how, control)
  }
  for (i in seq_along(blocks)) for (j in i:length(blocks)) {
    columns <- sort(unique(c(blocks[[i]]$columns, blocks[[j]]$columns)))
    if (!are_searched(blocks[[i]]$side, blocks[[j]]$side) || length(columns) < 2L) next
    sets <- if (i < j) as.raw(ifelse(columns %in% blocks[[i]]$columns, 1L, 2L))
    part(columns, function(pack, control) {
      now <- search_tuples(pack, sets, 2L, keep, NULL, control)
      now$columns[] <- columns[now$columns]
      found <<- best_of(c(if (!is.null(found)) list(found), list(now)), keep)
      if (!is.null(test))
        greatest <<- pmax(greatest %||% -Inf, permute(pack, sets, matrix(0L, 2L, 0L), control)$greatest)
    })
    keep <- raise_bar(keep, found)
  }
  tested <- NULL
  if (!is.null(test)) { # the pairs that were found, from packs of their own
    groups <- split(seq_along(found$mi), (seq_along(found$mi) - 1) %/% at_once)
    at_least <- lapply(unname(groups), function(at) {
      pairs <- found$columns[, at, drop = FALSE]
      columns <- sort(unique(as.vector(pairs)))
      pairs[] <- match(pairs, columns)
      part(columns, function(pack, control) permute(pack, NULL, pairs, control)$at_least)
    })
    tested <- list(list(at_least = as.double(unlist(at_least)), greatest = greatest))
  }
  list(found = found, chosen = chosen, about = about, tested = tested)
}

near_of <- function(near, columns) {
  list(chromosome = near$chromosome[columns], position = near$position[columns], distance = near$distance)
}

# With as many pairs as are kept, what comes must be at least as good as the worst of them; a hair less, for roundings.
raise_bar <- function(keep, found) {
  if (length(found$mi) < keep$top) return(keep)
  bar <- if (keep$by == "mi") "min_mi" else "min_gain"
  worst <- min(found[[keep$by]])
  keep[[bar]] <- max(keep[[bar]], worst - 1e-12 * abs(worst))
  keep
}
