#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pair/device.h"

namespace ringbolt::tools::verify {

/// What a device can do, as far as it says so. For the other end a text.
struct Abilities {
  bool has_rc = false;  ///< it has READ contexts, and so a type of queue pair that uses them
  bool has_ud = false;  ///< it has address handles
  bool has_atomics = false;
  bool counts_frames = false;  ///< it has the shape of a Mac's: one scatter entry, and neither RC nor UD
  uint32_t most_queue_pairs = 0;
  uint32_t most_completions = 0;  ///< of a completion queue
  uint32_t most_requests = 0;     ///< of a queue
  uint32_t mtu_bytes = 0;
  uint64_t most_message_bytes = 0;
  double port_rate_gbps = 0;
  friend bool operator==(const Abilities&, const Abilities&) = default;
};

Abilities abilities_of(const pair::Device& device);

/// What both have. Thread-safe.
Abilities common(const Abilities& one, const Abilities& other);

/// One line. Thread-safe.
std::string emit_abilities(const Abilities& abilities);
/// Any bytes are safe to pass. Thread-safe.
std::optional<Abilities> parse_abilities(std::string_view text);

}  // namespace ringbolt::tools::verify
