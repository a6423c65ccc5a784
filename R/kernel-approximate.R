kernel_approximate <- function(problem, method) abort_input("not yet")
