#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/parsed.h"
#include "bootstrap/authenticator.h"

/// What travels on a connection between rank 0 and another rank. Layout: docs/formats/bootstrap.md.
namespace ringbolt::bootstrap {

inline constexpr size_t kHeaderBytes = 16;
inline constexpr uint32_t kMagic = 0x31424252;  // "RBB1"
/// Of what one rank gives to an all_gather.
inline constexpr size_t kMaxShareBytes = size_t{16} << 20;
/// Of what all ranks give to it together.
inline constexpr size_t kMaxGatheredBytes = size_t{256} << 20;
/// Of a message of the side channel.
inline constexpr size_t kMaxMessageBytes = size_t{64} << 10;
inline constexpr uint32_t kMaxRanks = 1024;
/// Nothing longer is taken before the other side is known to be one of us.
inline constexpr size_t kMaxHandshakeBytes = 512;
/// Longest payloads in either direction once it is.
inline constexpr size_t kMaxToRootBytes = kMaxShareBytes + 4;
inline constexpr size_t kMaxFromRootBytes = kMaxGatheredBytes + 8 + size_t{4} * kMaxRanks;

/// The numbers are those on the wire; of handshake frames 1 to 15, of others from 16 on.
enum class FrameType : uint8_t {
  // Of the handshake, without a tag.
  hello = 1,      ///< to rank 0: who calls
  challenge = 2,  ///< from rank 0: its nonce
  proof = 3,      ///< to rank 0: that the caller has the secret
  welcome = 4,    ///< from rank 0: that rank 0 has it
  refused = 5,    ///< from rank 0: why not
  // Each of these ends in a tag.
  roster = 16,    ///< from rank 0: who has joined
  start = 17,     ///< from rank 0: all have
  abort = 18,     ///< either way: the rendezvous or the exchange has failed, in words
  gather = 19,    ///< to rank 0: one rank's share of an exchange
  gathered = 20,  ///< from rank 0: all shares
  message = 21,   ///< either way: of the side channel
  lost = 22,      ///< from rank 0: a rank's connection has ended
  goodbye = 23,   ///< either way: the sender leaves in order
};

/// Of a goodbye of a rank that gives up before all have met: why, an errno. Any other goodbye has no payload.
inline constexpr size_t kGoodbyeBytes = 4;

/// These carry no tag.
constexpr bool is_of_handshake(FrameType type) { return type <= FrameType::refused; }

/// The newest of these of one sender and kind takes the place of an older one that has not been sent.
inline constexpr uint8_t kLatestOnly = 1;

/// Little-endian on the wire, behind the magic.
struct FrameHeader {
  FrameType type = FrameType::hello;
  uint8_t flags = 0;
  uint16_t kind = 0;    ///< of a message: its user's; of a gather: which exchange
  uint32_t rank = 0;    ///< whom it is about; of a message: to whom (kEveryone: all), from rank 0: from whom
  uint32_t length = 0;  ///< of the payload, bytes
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

std::array<std::byte, kHeaderBytes> emit(const FrameHeader& header);

/// Looks at kHeaderBytes bytes. Refuses another magic, an unknown type or flag, and a payload of more than
/// `most_bytes`.
base::Parsed<FrameHeader> parse_header(std::span<const std::byte> in, size_t most_bytes);

struct Frame {
  FrameHeader header;
  std::vector<std::byte> payload;
};

/// Makes frames of the bytes of a stream. Any bytes are safe. Memory grows with what has arrived, not with what a
/// header promises. Not thread-safe. Owns what has arrived and not been taken: at most one frame more than its
/// longest one.
class FrameReader {
 public:
  /// Until authenticate(): frames of the handshake only, without tags.
  FrameReader() = default;
  /// From here on frames end in tags of `key`, and payloads have up to `most_bytes`.
  void authenticate(const Key& key, size_t most_bytes);

  /// Where to put the next bytes: never empty. Valid until the next call.
  std::span<std::byte> space();
  /// That many of them have been put there.
  void filled(size_t n_bytes) { end_ += n_bytes; }

  /// The next frame; nothing if more bytes are needed. After a refusal the stream is of no use any more.
  base::Parsed<std::optional<Frame>> next();

 private:
  size_t held() const { return end_ - begin_; }
  std::vector<std::byte> bytes_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t wanted_ = kHeaderBytes;  ///< of the frame that has begun
  size_t most_bytes_ = kMaxHandshakeBytes;
  std::optional<Authenticator> authenticator_;
};

}  // namespace ringbolt::bootstrap
