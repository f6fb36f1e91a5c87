#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

/// What `ringbolt decode` says of packets and frames: one line each, in the field's words.
namespace ringbolt::tools {

/// Of an IP datagram to port 4791: one line for each packet in it, since a capture on the sending machine may hold many
/// in one (segmentation offload). Nothing for other datagrams, and for later fragments of one. `is_whole` tells whether
/// all its bytes are there. Any bytes are safe to pass. Pure. Thread-safe; so are the others here.
struct PacketText {
  std::string text;
  bool is_good = true;  ///< parsed, and its ICRC is right
};
std::vector<PacketText> describe_datagram(std::span<const std::byte> datagram, bool is_whole);

/// Of a frame of the native Thunderbolt verbs or of a stream. Not good where it is neither, or damaged.
PacketText describe_frame(std::span<const std::byte> frame);

/// Of all frames of a stream, in a row; what lies between is counted.
std::vector<PacketText> describe_stream(std::span<const std::byte> stream);

}  // namespace ringbolt::tools
