# Information between all pairs of categorical columns, in bits; what mi_matrix() calls for categories.
#
# input, input_y: what categorical_input() returns, or a pointer made by mi_pack(); input_y NULL: `input` with itself.
# estimator: one of `count_estimators`. na: "drop" leaves out rows pair by pair, "level" makes missing a level; "fail"
# is the caller's to check (missing_counts()) and counts as "drop" here. control: run_control(). Returns a matrix of
# input$p by input_y$p with names; without input_y it is symmetric with H on the diagonal.
mi_counts_matrix <- function(input, input_y = NULL, estimator = "empirical", na = "drop", control = run_control()) {
  out <- .Call(C_weft_mi_matrix_counts, whole_data(input), if (!is.null(input_y)) whole_data(input_y), estimator,
               na == "level", control)
  set_attributes(out, list(dimnames = list(input$names, (input_y %||% input)$names)))
}

# those of src/mi/matrix/kinds.h
count_estimators <- c("empirical", "miller-madow", "shrink", "schurmann-grassberger")

# A DelayedArray is brought into memory: packing needs all of it.
whole_data <- function(input) {
  if (inherits(input, "weft_mi_pack")) return(pack_pointer(input))
  whole_input(input)$data
}
