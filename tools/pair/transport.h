#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringbolt::tools::pair {

enum class Transport : uint8_t { kRc, kUc, kUd };

/// "RC".
inline const char* text_of(Transport transport) {
  constexpr std::array kTexts{"RC", "UC", "UD"};
  return kTexts[static_cast<size_t>(transport)];
}

/// Which port an end uses, and how its connections behave; each end chooses for itself.
struct PortChoice {
  uint32_t mtu_bytes = 0;  ///< of a packet; 0: as the port has
  /// 4.096 us * 2^14, 67 ms, before an answer is missed (ibv_modify_qp(3)).
  uint8_t timeout_code = 14;
  uint8_t retry_count = 7;
  uint8_t port = 1;
  int gid_index = -1;  ///< -1: the first that stands for an IPv4 address
};

}  // namespace ringbolt::tools::pair
