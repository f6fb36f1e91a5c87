#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace ringbolt::fabric {

/// What a rank knows of one cable of the fabric: how often it has changed. Even: it works. A value.
struct CableNews {
  uint16_t cable = 0;
  uint16_t version = 0;
  bool works() const { return version % 2 == 0; }
  friend bool operator==(const CableNews&, const CableNews&) = default;
};

/// Behind a heartbeat; more of them would not go into a message beside it.
inline constexpr size_t kMostNews = 512;

/// Of all cables that have ever changed, `versions` by cable. If those are more than kMostNews, some: the turn of each
/// comes as `turn` grows. Layout: docs/formats/liveness.md.
std::vector<std::byte> emit_news(std::span<const uint16_t> versions, uint64_t turn);
/// In the order in which they may be believed: cables that work come first, so that no rank counts as out of reach
/// meanwhile. EBADMSG: no whole number of them.
base::Result<std::vector<CableNews>> parse_news(std::span<const std::byte> in);

}  // namespace ringbolt::fabric
