#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "bootstrap/authenticator.h"
#include "bootstrap/frame.h"

/// Payloads of the handshake. Layout: docs/formats/bootstrap.md.
namespace ringbolt::bootstrap {

inline constexpr uint16_t kVersion = 2;
inline constexpr size_t kMaxGroupNameBytes = 64;
// Bytes of words: what is longer is cut.
inline constexpr size_t kMaxRefusalBytes = 400;
inline constexpr size_t kChallengeBytes = 40;

/// Who calls. Its first four bytes are the same in all versions.
struct Hello {
  uint16_t first_version = kVersion;  ///< the oldest that the caller speaks
  uint16_t last_version = kVersion;   ///< the newest
  bool has_secret = false;
  // As the caller says: proven by nothing but the group's secret.
  uint32_t rank = 0;
  uint32_t n_ranks = 0;
  uint64_t incarnation = 0;  ///< of the process: random
  Nonce nonce{};
  std::string group = {};
  friend bool operator==(const Hello&, const Hello&) = default;
};

std::vector<std::byte> emit(const Hello& hello);
/// Of another version only the versions are read. Any bytes are safe; so with the challenge. The rank is not checked
/// against anything.
base::Parsed<Hello> parse_hello(std::span<const std::byte> payload);

struct Challenge {
  uint16_t version = kVersion;  ///< the one to speak
  bool has_secret = false;
  Nonce nonce{};
  friend bool operator==(const Challenge&, const Challenge&) = default;
};

std::vector<std::byte> emit(const Challenge& challenge);
base::Parsed<Challenge> parse_challenge(std::span<const std::byte> payload);

/// Somebody's words, cut to `most_bytes` and safe to print. Thread-safe.
std::string printable(std::span<const std::byte> text, size_t most_bytes);
/// Words as a payload, cut to what a frame of the handshake holds.
std::vector<std::byte> as_payload(std::string_view text);

}  // namespace ringbolt::bootstrap
