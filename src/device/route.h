#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace ringbolt::device {

/// The kernel knows a way to `gid` that leads out of that interface: only there do packets of its port leave, whatever
/// others lead to. Where the kernel can't be asked, true: the silence of the other end tells. Costs a few system calls.
/// Thread-safe.
bool has_route(const ibv_gid& gid, uint32_t netdev_index);

}  // namespace ringbolt::device
