#include "device/overlay.h"

#include <algorithm>

#include "cluster/address.h"
#include "device/gid_table.h"
#include "device/gids.h"
#include "device/packet_sizes.h"

namespace ringbolt::device {

std::optional<uint8_t> overlay_place(const wire::Address& gid) {
  const ibv_gid none =
      wire::is_ipv4(gid) ? mapped_gid(cluster::kOverlayIpv4) : link_local_gid(cluster::kOverlayGuid);  // of no node
  const wire::Address stem = address_of(none);
  const bool is_ours = std::equal(stem.begin(), stem.end() - 1, gid.begin()) && gid.back() != stem.back();
  return is_ours ? std::optional(gid.back()) : std::nullopt;
}

wire::Address overlay_address(const wire::Address& own, uint8_t place) {
  wire::Address address = own;
  address.back() = place;
  return address;
}

}  // namespace ringbolt::device
