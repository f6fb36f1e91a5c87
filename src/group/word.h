#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ringbolt/status.h"

namespace ringbolt::group {

/// Groups of chunks of messages (send, recv) have this bit, those of collectives have not.
inline constexpr uint16_t kMessageGroup = 0x8000;
inline constexpr uint16_t kMostGroups = 0x7fff;

/// The first byte of a word between ranks (docs/formats/chunk.md).
enum class WordKind : uint8_t {
  used = 1,      ///< chunks of a lane have been used: how many is the header's chunk number
  failed = 2,    ///< the call has failed at the sender, which says why
  differs = 3,   ///< the call is another one at the sender, which says what
  aborted = 4,   ///< the group has been given up
  finished = 5,  ///< all calls before the header's have ended at the sender; of messages: from this rank to it
};

/// What a word says besides its kind: an errno and words for people.
struct Word {
  WordKind kind = WordKind::used;
  int32_t code = 0;
  std::string text = {};
};

std::vector<std::byte> emit(const Word& word);
/// Any bytes are safe. Nothing if it is no word, or of a kind that is not known.
std::optional<Word> parse_word(std::span<const std::byte> bytes);

}  // namespace ringbolt::group
