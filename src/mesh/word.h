#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ringbolt/status.h"

namespace ringbolt::mesh {

// Kinds of messages in the side channel (SideChannel::send) that are the mesh's own; all others are its clients'.
// 2 is the groups' (group/word.h).
inline constexpr uint16_t kHeartbeatMessage = 1;
inline constexpr uint16_t kMendingMessage = 3;
inline constexpr uint16_t kLeavingMessage = 4;
inline constexpr uint16_t kGivenUpMessage = 5;  ///< to one that counts as failed: why

/// The first byte of a word between ranks (docs/formats/chunk.md).
enum class WordKind : uint8_t {
  used = 1,       ///< chunks of a transfer have been used: how many is the header's chunk number
  failed = 2,     ///< the call has failed at the sender, which says why
  differs = 3,    ///< the call is another one at the sender, which says what
  aborted = 4,    ///< the group has been given up
  finished = 5,   ///< all calls before the header's have ended at the sender; of messages: from this rank to it
  shrinking = 6,  ///< of Shrinking: bytes of its own
  mending = 7,    ///< of Mending, likewise
};

/// What a word says besides its kind: an errno and words for people.
struct Word {
  WordKind kind = WordKind::used;
  int32_t code = 0;
  std::string text = {};
};

/// A text that is too long is cut. Pure, as the next one.
std::vector<std::byte> emit(const Word& word);
/// Any bytes are safe. Nothing if it is no word, or of a kind that is not known.
std::optional<Word> parse_word(std::span<const std::byte> bytes);

}  // namespace ringbolt::mesh
