#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringbolt::device {

/// Where a datagram goes. Programs hold a pointer to `c`, and hand it back in work requests.
/// The program owns it from ibv_create_ah to ibv_destroy_ah, and nothing here keeps it longer than a post: requests
/// copy what they need.
struct AddressHandle {
  ibv_ah c{};
  std::array<uint8_t, 16> gid{};
  std::array<uint8_t, 16> source_gid{};
  uint8_t source_gid_index = 0;  ///< in memory: in the table of this port
  uint8_t target_gid_index = 0;  ///< in the table of the port that the handle leads to
  bool is_loopback = false;      ///< to the port itself
  bool is_remote = false;        ///< through the network
  ibv_ah_attr attributes{};

  static const AddressHandle& of(const ibv_ah* ah) { return *reinterpret_cast<const AddressHandle*>(ah); }
};
static_assert(offsetof(AddressHandle, c) == 0);

}  // namespace ringbolt::device
