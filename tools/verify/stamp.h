#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pattern.h"

namespace ringbolt::tools::verify {

/// Who a message is. Its bytes are a function of these and the run's seed alone.
/// A step has up to 256 queue pairs; what is exactly 65536 epochs old can't be told from what is new.
struct Stamp {
  uint16_t epoch = 0;      ///< of the queue pair: those made later have others
  uint8_t queue_pair = 0;  ///< index
  uint64_t sequence = 0;   ///< 40 bits travel
  uint32_t length = 0;     ///< of the whole message, in bytes
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

/// Messages of so many bytes can tell who they are; shorter ones are compared with what is expected, no more.
inline constexpr size_t kTellingBytes = 16;

/// Writes the whole message; `message` is as long as the stamp says. Hot path. Thread-safe.
void write_message(std::span<std::byte> message, uint64_t seed, const Stamp& stamp);

/// Whether that is the message. `message` is as long as the stamp says. Hot path. Thread-safe.
bool is_message(std::span<const std::byte> message, uint64_t seed, const Stamp& stamp);

/// How `message`, a beginning of it, departs from the message. Thread-safe.
std::optional<Difference> message_difference(std::span<const std::byte> message, uint64_t seed, const Stamp& stamp);

/// Who the message says that it is, if it is long enough and says so consistently. Any bytes are safe to pass.
/// Thread-safe.
std::optional<Stamp> stamp_in(std::span<const std::byte> message, uint64_t seed);

}  // namespace ringbolt::tools::verify
