/* What the device files of the room share. */
#pragma once

#include "bn/bn.h"

extern "C" {
weft_bn_chain_op weft_bn_chain_cuda;
weft_bn_optimum_op weft_bn_optimum_cuda;
weft_bn_edges_orders_op weft_bn_edges_orders_cuda;
weft_bn_edges_graphs_op weft_bn_edges_graphs_cuda;
}
