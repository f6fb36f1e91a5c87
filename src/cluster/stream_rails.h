#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cluster/thunderbolt.h"

namespace ringbolt::cluster {

/// A machine's end of the links between two routers. `host` is an index into the list that find_stream_cables() was
/// given.
struct StreamSide {
  uint32_t host = 0;
  std::vector<ThunderboltPeer> peers = {};
};

using StreamPair = std::pair<StreamSide, StreamSide>;
using StreamRail = std::pair<ThunderboltStream, ThunderboltStream>;

/// The stream has ids both ways. Thread-safe. A positive id is one that the driver has given; 0 is none.
bool is_whole(const ThunderboltStream& stream);

/// One of the streams that set-up makes is whole there. Thread-safe.
bool has_whole_stream(const StreamSide& side);

/// What one sends the other takes in, both ways. Thread-safe.
bool face_each_other(const ThunderboltStream& a, const ThunderboltStream& b);

/// The streams that both ends have, kMaxCableRails at most, in the order of the first end's devices. A name joins as
/// many as both ends have of it; over a single link, what is left is joined by ids. Of several links between the same
/// routers only the kernel knows which end is whose, and rails need no order. Pure. Thread-safe.
std::vector<StreamRail> match_rails(const StreamPair& pair);

}  // namespace ringbolt::cluster
