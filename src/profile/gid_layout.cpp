#include "profile/gid_layout.h"

#include <algorithm>

namespace ringbolt::profile {

std::vector<std::optional<size_t>> gid_slots(GidLayout layout, const std::vector<GidKind>& kinds) {
  std::vector<std::optional<size_t>> slots;
  if (layout == GidLayout::empty) {
    return slots;
  }
  if (layout == GidLayout::plain || layout == GidLayout::mlx5) {
    // mlx5: each address twice, v1 before v2.
    for (size_t i = 0; i < kinds.size(); ++i) {
      slots.insert(slots.end(), layout == GidLayout::mlx5 ? 2 : 1, i);
    }
    return slots;
  }
  const auto first_of = [&](GidKind kind) {
    const auto at = std::ranges::find(kinds, kind);
    return at == kinds.end() ? std::nullopt : std::optional(static_cast<size_t>(at - kinds.begin()));
  };
  const auto link_local = first_of(GidKind::link_local);
  const auto ipv4 = first_of(GidKind::ipv4);
  // Slots 0 and 1 (late: 2) are there even if the address is missing: programs go by the index.
  slots.push_back(link_local);
  if (layout == GidLayout::late) {
    slots.emplace_back();
  }
  slots.push_back(ipv4);
  for (size_t i = 0; i < kinds.size(); ++i) {
    // An optional without a value is equal to no index.
    if (link_local != i && ipv4 != i) {
      slots.emplace_back(i);
    }
  }
  return slots;
}

uint64_t second_interface_id(uint64_t guid) {  // the finishing steps of splitmix64
  // Any mixing would do; it has to be the same in all processes, as peers see the address.
  guid = (guid ^ guid >> 30U) * 0xbf58476d1ce4e5b9U;
  guid = (guid ^ guid >> 27U) * 0x94d049bb133111ebU;
  return guid ^ guid >> 31U;
}

bool is_version_1(GidLayout layout, size_t slot) { return layout == GidLayout::mlx5 && slot % 2 == 0; }

}  // namespace ringbolt::profile
