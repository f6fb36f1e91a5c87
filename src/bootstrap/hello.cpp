#include "bootstrap/hello.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/little_endian.h"

namespace ringbolt::bootstrap {
namespace {

// Offsets in the payload, docs/formats/bootstrap.md.
constexpr size_t kFirstVersionAt = 0;
constexpr size_t kLastVersionAt = 2;
constexpr size_t kFlagsAt = 4;
constexpr size_t kRankAt = 8;
constexpr size_t kRanksAt = 12;
constexpr size_t kIncarnationAt = 16;
constexpr size_t kNonceAt = 24;
constexpr size_t kGroupLengthAt = kNonceAt + kNonceBytes;
constexpr size_t kGroupAt = kGroupLengthAt + 1;
constexpr size_t kChallengeNonceAt = 8;
// A bit of the flags; others are refused, so that a later version can't be misread.
constexpr uint32_t kHasSecret = 1;

static_assert(kGroupAt == 57 && kChallengeNonceAt + kNonceBytes == kChallengeBytes);
static_assert(kGroupAt + kMaxGroupNameBytes <= kMaxHandshakeBytes && kMaxRefusalBytes <= kMaxHandshakeBytes);

bool is_printable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

std::vector<std::byte> emit(const Hello& hello) {
  RINGBOLT_ASSERT(hello.group.size() <= kMaxGroupNameBytes);
  std::vector<std::byte> bytes(kGroupAt + hello.group.size());
  const std::span<std::byte> out(bytes);
  base::put_le(out, kFirstVersionAt, hello.first_version);
  base::put_le(out, kLastVersionAt, hello.last_version);
  base::put_le<uint32_t>(out, kFlagsAt, hello.has_secret ? kHasSecret : 0);
  base::put_le(out, kRankAt, hello.rank);
  base::put_le(out, kRanksAt, hello.n_ranks);
  base::put_le(out, kIncarnationAt, hello.incarnation);
  std::copy(hello.nonce.begin(), hello.nonce.end(), bytes.begin() + kNonceAt);
  base::put_le(out, kGroupLengthAt, static_cast<uint8_t>(hello.group.size()));
  std::memcpy(bytes.data() + kGroupAt, hello.group.data(), hello.group.size());
  return bytes;
}

base::Parsed<Hello> parse_hello(std::span<const std::byte> payload) {
  // Both versions are readable in each version of the format: their places never change.
  if (payload.size() < 4) {
    return base::refuse(0, "sent a greeting that is too short");
  }
  Hello hello;
  hello.first_version = base::get_le<uint16_t>(payload, kFirstVersionAt);
  hello.last_version = base::get_le<uint16_t>(payload, kLastVersionAt);
  // The caller of this sees that by the versions, and says so.
  if (hello.first_version > kVersion || hello.last_version < kVersion) {
    return hello;
  }
  // The first comparison makes the read in the second one safe.
  if (payload.size() < kGroupAt || payload.size() != kGroupAt + base::get_le<uint8_t>(payload, kGroupLengthAt) ||
      payload.size() > kGroupAt + kMaxGroupNameBytes) {
    return base::refuse(0, fmt::format("sent a greeting of {} bytes", payload.size()));
  }
  const auto flags = base::get_le<uint32_t>(payload, kFlagsAt);
  if ((flags & ~kHasSecret) != 0) {
    return base::refuse(0, fmt::format("sent a greeting with unknown flags {:#x}", flags));
  }
  hello.has_secret = flags != 0;
  hello.rank = base::get_le<uint32_t>(payload, kRankAt);
  hello.n_ranks = base::get_le<uint32_t>(payload, kRanksAt);
  hello.incarnation = base::get_le<uint64_t>(payload, kIncarnationAt);
  std::copy_n(payload.begin() + kNonceAt, kNonceBytes, hello.nonce.begin());
  hello.group.assign(reinterpret_cast<const char*>(payload.data()) + kGroupAt, payload.size() - kGroupAt);
  if (!std::all_of(hello.group.begin(), hello.group.end(), is_printable)) {
    return base::refuse(0, "sent a group's name that is no text");
  }
  return hello;
}

std::vector<std::byte> emit(const Challenge& challenge) {
  std::vector<std::byte> bytes(kChallengeBytes);
  const std::span<std::byte> out(bytes);
  base::put_le(out, 0, challenge.version);
  base::put_le<uint32_t>(out, kFlagsAt, challenge.has_secret ? kHasSecret : 0);
  std::copy(challenge.nonce.begin(), challenge.nonce.end(), bytes.begin() + kChallengeNonceAt);
  return bytes;
}

base::Parsed<Challenge> parse_challenge(std::span<const std::byte> payload) {
  // Exactly: this side has offered the version, so that it knows the length.
  if (payload.size() != kChallengeBytes) {
    return base::refuse(0, fmt::format("sent a challenge of {} bytes", payload.size()));
  }
  Challenge challenge;
  challenge.version = base::get_le<uint16_t>(payload, 0);
  const auto flags = base::get_le<uint32_t>(payload, kFlagsAt);
  if (challenge.version != kVersion || base::get_le<uint16_t>(payload, 2) != 0 || (flags & ~kHasSecret) != 0) {
    return base::refuse(0, fmt::format("answered in version {} with flags {:#x}", challenge.version, flags));
  }
  challenge.has_secret = flags != 0;
  std::copy_n(payload.begin() + kChallengeNonceAt, kNonceBytes, challenge.nonce.begin());
  return challenge;
}

std::string printable(std::span<const std::byte> text, size_t most_bytes) {
  std::string safe(reinterpret_cast<const char*>(text.data()), std::min(text.size(), most_bytes));
  std::replace_if(
      safe.begin(), safe.end(), [](char c) { return !is_printable(c); }, '?');
  return safe;
}

std::vector<std::byte> as_payload(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text)).first(std::min(text.size(), kMaxRefusalBytes));
  return {bytes.begin(), bytes.end()};
}

}  // namespace ringbolt::bootstrap
