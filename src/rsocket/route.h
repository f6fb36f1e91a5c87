#pragma once

#include <rdma/rdma_cma.h>

#include <vector>

namespace ringbolt::rsocket {

/// The paths of a route in the form that RDMA_ROUTE tells and takes.
/// Pure. Fields of ibv_path_record are in network order.
std::vector<ibv_path_data> paths_of(const rdma_route& route);

/// The path's MTU; 2048 while there is no path.
int path_mtu_bytes(const rdma_route& route);

}  // namespace ringbolt::rsocket
