#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::tools::pair {

/// One queue pair, for the other end.
struct QueuePairAddress {
  uint32_t number = 0;
  uint32_t psn = 0;
  friend bool operator==(const QueuePairAddress&, const QueuePairAddress&) = default;
};

/// What an end tells the other before both connect: its port, its queue pairs, and its memory.
struct Offer {
  std::array<uint8_t, 16> gid{};
  uint16_t lid = 0;
  uint32_t mtu_bytes = 0;
  uint32_t target_depth = 0;  ///< READs and atomics that it serves at once
  uint32_t seed = 0;          ///< of what it sends
  uint32_t window = 0;        ///< receive slots of each queue pair
  uint32_t send_slots = 0;
  uint32_t stride = 0;           ///< bytes from slot to slot
  uint64_t send_address = 0;     ///< of the first queue pair's send slots; those of the others follow
  uint64_t receive_address = 0;  ///< likewise
  uint32_t remote_key = 0;
  std::vector<QueuePairAddress> queue_pairs = {};  ///< the last is that of the credits, if there are some
  friend bool operator==(const Offer&, const Offer&) = default;
};

/// One line. Thread-safe.
std::string emit_offer(const Offer& offer);
/// Any bytes are safe to pass. Thread-safe.
std::optional<Offer> parse_offer(std::string_view text);

}  // namespace ringbolt::tools::pair
