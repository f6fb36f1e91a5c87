#include "abi/gid_entries.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/gid_table.h"
#include "device/port.h"

namespace ringbolt::abi {

int GidEntries::write(uint32_t index, void* entry, size_t entry_bytes) const {
  if (device::is_zero(at(index))) {
    return ENODATA;
  }
  put(index, entry, entry_bytes);
  return 0;
}

ssize_t GidEntries::write_all(void* entries, size_t most, size_t entry_bytes) const {
  size_t count = 0;
  for (uint32_t i = 0; i < shown_.size(); ++i) {
    if (device::is_zero(shown_[i])) {
      continue;
    }
    if (count == most) {
      return -EINVAL;
    }
    put(i, static_cast<std::byte*>(entries) + count * entry_bytes, entry_bytes);
    ++count;
  }
  return static_cast<ssize_t>(count);
}

void GidEntries::put(uint32_t index, void* entry, size_t entry_bytes) const {
  // The kernel gives lo the index 1 in each network namespace.
  constexpr uint32_t kLoopbackInterface = 1;
  const bool has_interface = netdev_index_ != 0 && netdev_index_ < device::kFirstStreamInterface;
  ibv_gid_entry all{};
  all.gid = shown_[index];
  all.gid_index = index;
  all.port_num = 1;
  all.gid_type = profile::is_version_1(layout_, index) ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
  all.ndev_ifindex = has_interface ? netdev_index_ : kLoopbackInterface;
  // A newer program's structure is longer: what we don't know is 0 there.
  std::memset(entry, 0, entry_bytes);
  std::memcpy(entry, &all, std::min(entry_bytes, sizeof all));
}

}  // namespace ringbolt::abi
