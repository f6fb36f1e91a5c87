#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "profile/gid_layout.h"

/// GID tables as profiles lay them out. All pure and thread-safe.
namespace ringbolt::device {

ibv_gid link_local_gid(uint64_t guid);
/// The other link-local address that some systems give an interface, made of the GUID too.
ibv_gid second_link_local_gid(uint64_t guid);
/// `ipv4` in host order.
ibv_gid mapped_gid(uint32_t ipv4);
/// The addresses of a port in shared memory, in the order of Port::known_gids.
std::vector<ibv_gid> memory_gids(uint64_t guid, uint32_t ipv4);
bool is_zero(const ibv_gid& gid);

/// The addresses of a port in the order of `layout`. `found`: link-local, IPv4, then others, as far as there are some.
/// A slot without an address is all zeros.
std::vector<ibv_gid> arranged(profile::GidLayout layout, const std::vector<ibv_gid>& found);

}  // namespace ringbolt::device
