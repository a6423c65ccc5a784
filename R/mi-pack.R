pack_pointer <- function(pack) pack$pointer
