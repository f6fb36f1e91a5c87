#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/flow.h"

namespace ringbolt::wire {

inline constexpr size_t kCmPathBytes = 44;

/// A path of a REQ: the primary one, or the alternate one (which counts as absent while local_lid is 0).
struct CmPath {
  uint16_t local_lid = 0;
  uint16_t remote_lid = 0;
  Address local_gid{};
  Address remote_gid{};
  uint32_t flow_label = 0;  ///< 20 bits
  uint8_t packet_rate = 0;  ///< 6 bits
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint8_t service_level = 0;  ///< 4 bits
  bool is_subnet_local = false;
  uint8_t ack_timeout = 0;  ///< 5 bits, 4.096 us * 2^n
  friend bool operator==(const CmPath&, const CmPath&) = default;
};

CmPath parse_cm_path(std::span<const std::byte, kCmPathBytes> in);
void emit(const CmPath& path, std::span<std::byte, kCmPathBytes> out);

}  // namespace ringbolt::wire
