#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"

/// Frames of a verbs link over any reliable stream of bytes: a header of 40 bytes and up to 4056 bytes of payload, so
/// that one frame is one packet of a Thunderbolt stream. Layout: docs/formats/stream.md.
namespace ringbolt::wire {

inline constexpr size_t kStreamHeaderBytes = 40;
inline constexpr size_t kStreamFrameBytes = 4096;
inline constexpr size_t kStreamPayloadBytes = kStreamFrameBytes - kStreamHeaderBytes;

enum class StreamType : uint8_t { hello = 1, hello_ack = 2, ready = 3, data = 4, credit = 5, ping = 6, bye = 7 };

/// A value; little-endian on the stream. Numbers wrap.
struct StreamHeader {
  StreamType type = StreamType::data;
  bool is_last = false;   ///< last frame of a message
  uint32_t epoch = 0;     ///< of the sender; never 0, new each time the stream is opened
  uint32_t sequence = 0;  ///< counts the frames of an epoch from 0
  uint32_t length = 0;    ///< payload bytes
  uint32_t expected = 0;  ///< acknowledges all frames of the other side before this one
  uint32_t credit = 0;    ///< frames that the other side may have sent in all
  uint32_t destination_qp = 0;
  uint32_t payload_crc = 0;  ///< CRC-32C
  friend bool operator==(const StreamHeader&, const StreamHeader&) = default;
};

/// Checks everything but the payload, which may not have come yet; then its length can be trusted.
/// Errors: EBADMSG (too short, wrong magic, header size, checksum, type, flag, epoch or length).
base::Result<StreamHeader> parse_stream_header(std::span<const std::byte> bytes);

bool is_intact(const StreamHeader& header, std::span<const std::byte> payload);

/// Header and payload in a row into the first bytes of `out`; sets the header's length and checksums from the payload.
/// `out` has room for both; the payload has at most kStreamPayloadBytes. Bytes written.
size_t emit(StreamHeader header, std::span<const std::byte> payload, std::span<std::byte> out);

/// What stands in front of a stream may be the rest of an older one: the place of the first intact HELLO header, or, if
/// there is none yet, how many bytes certainly belong to none and can go.
struct StreamHunt {
  std::optional<size_t> hello;
  size_t useless = 0;
};
StreamHunt hunt_for_hello(std::span<const std::byte> bytes);

}  // namespace ringbolt::wire
