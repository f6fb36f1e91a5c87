#include "mesh/word.h"

#include <algorithm>

namespace ringbolt::mesh {
namespace {

/// Behind the kind and four bytes of the code, little-endian (docs/formats/chunk.md).
constexpr size_t kTextBegin = 5;
/// Letters. A word has to fit a small slot of the engine, engine::kSmallPayloadBytes.
constexpr size_t kMostText = 2000;

}  // namespace

std::vector<std::byte> emit(const Word& word) {
  std::vector<std::byte> bytes = {static_cast<std::byte>(word.kind)};
  const auto code = static_cast<uint32_t>(word.code);
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<std::byte>(code >> shift));
  }
  const size_t length = std::min(word.text.size(), kMostText);
  for (size_t i = 0; i < length; ++i) {
    bytes.push_back(static_cast<std::byte>(word.text[i]));
  }
  return bytes;
}

std::optional<Word> parse_word(std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return std::nullopt;
  }
  Word word;
  const auto kind = static_cast<uint8_t>(bytes[0]);
  if (kind < static_cast<uint8_t>(WordKind::used) || kind > static_cast<uint8_t>(WordKind::finished)) {
    return std::nullopt;
  }
  word.kind = static_cast<WordKind>(kind);
  if (word.kind == WordKind::used || word.kind == WordKind::finished) {
    return word;
  }
  if (bytes.size() < kTextBegin) {
    return std::nullopt;
  }
  uint32_t code = 0;
  for (size_t i = 0; i < 4; ++i) {
    code |= static_cast<uint32_t>(bytes[1 + i]) << (8 * i);
  }
  word.code = static_cast<int32_t>(code);
  for (size_t i = kTextBegin; i < bytes.size(); ++i) {
    const char c = static_cast<char>(bytes[i]);
    // A peer's text ends up in terminals and logs: nothing that these obey gets through.
    word.text.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  return word;
}

}  // namespace ringbolt::mesh
