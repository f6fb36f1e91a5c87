#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/bytes.h"
#include "wire/mad.h"

/// What the codecs of all CM messages share; for them alone.
namespace ringbolt::wire {

inline constexpr size_t kCmBodyBytes = kMadBytes - kMadHeaderBytes;

using CmBodyIn = std::span<const std::byte, kCmBodyBytes>;
using CmBodyOut = std::span<std::byte, kCmBodyBytes>;

inline CmBodyIn cm_body(MadIn mad) { return mad.subspan<kMadHeaderBytes>(); }

/// The body of a message to be written, all zero.
inline CmBodyOut blank_cm_body(MadOut mad) {
  const CmBodyOut body = mad.subspan<kMadHeaderBytes>();
  std::fill(body.begin(), body.end(), std::byte{0});
  return body;
}

/// `width` bits of the byte at `at`; bit 0 is the most significant one, as the tables of the specification count.
inline uint8_t get_bits(CmBodyIn body, size_t at, unsigned first, unsigned width) {
  const auto byte = std::to_integer<unsigned>(body[at]);
  return static_cast<uint8_t>(byte >> (8 - first - width) & ((1U << width) - 1));
}

/// Sets the bits where there were zeros. Of `value` the low `width` bits count.
inline void put_bits(CmBodyOut body, size_t at, unsigned first, unsigned width, unsigned value) {
  body[at] |= static_cast<std::byte>((value & ((1U << width) - 1)) << (8 - first - width));
}

}  // namespace ringbolt::wire
