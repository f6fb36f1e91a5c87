#include "device/gid_table.h"

#include <algorithm>
#include <optional>

#include "device/netdev.h"

namespace ringbolt::device {
namespace {

constexpr uint8_t kUniversalBit = 0x02;

ibv_gid link_local_of(uint64_t interface_id) {
  ibv_gid gid{};
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  for (unsigned i = 0; i < 8; ++i) {
    gid.raw[8 + i] = static_cast<uint8_t>(interface_id >> (56U - 8U * i));
  }
  return gid;
}

bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0U) == 0x80; }

}  // namespace

ibv_gid link_local_gid(uint64_t guid) {
  ibv_gid gid = link_local_of(guid);
  gid.raw[8] ^= kUniversalBit;  // RFC 4291: an interface identifier is an EUI-64 with the universal bit turned
  return gid;
}

ibv_gid second_link_local_gid(uint64_t guid) { return link_local_of(profile::second_interface_id(guid)); }

ibv_gid mapped_gid(uint32_t ipv4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  for (unsigned i = 0; i < 4; ++i) {
    gid.raw[12 + i] = static_cast<uint8_t>(ipv4 >> (24U - 8U * i));
  }
  return gid;
}

std::vector<ibv_gid> memory_gids(uint64_t guid, uint32_t ipv4) {
  return {link_local_gid(guid), mapped_gid(ipv4), second_link_local_gid(guid)};
}

bool is_zero(const ibv_gid& gid) {
  return std::ranges::all_of(gid.raw, [](uint8_t byte) { return byte == 0; });
}

std::vector<ibv_gid> arranged(profile::GidLayout layout, const std::vector<ibv_gid>& found) {
  std::vector<profile::GidKind> kinds;
  for (const ibv_gid& gid : found) {
    kinds.push_back(is_ipv4(gid)         ? profile::GidKind::ipv4
                    : is_link_local(gid) ? profile::GidKind::link_local
                                         : profile::GidKind::other);
  }
  std::vector<ibv_gid> table;
  for (const std::optional<size_t> slot : profile::gid_slots(layout, kinds)) {
    table.push_back(slot ? found[*slot] : ibv_gid{});
  }
  return table;
}

}  // namespace ringbolt::device
