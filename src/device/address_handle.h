#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringbolt::device {

/// Where a datagram goes. Programs hold a pointer to `c`, and hand it back in work requests.
struct AddressHandle {
  ibv_ah c{};
  std::array<uint8_t, 16> gid{};
  ibv_ah_attr attributes{};

  static const AddressHandle& of(const ibv_ah* ah) { return *reinterpret_cast<const AddressHandle*>(ah); }
};
static_assert(offsetof(AddressHandle, c) == 0);

}  // namespace ringbolt::device
