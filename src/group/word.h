#pragma once

#include <cstdint>

#include "mesh/client.h"
#include "mesh/word.h"

namespace ringbolt::group {

using mesh::emit;
using mesh::parse_word;
using mesh::Word;
using mesh::WordKind;

/// Kind of a message in the side channel (mesh::Mesh::send_message()): of Shrinking. The mesh's own are in mesh/word.h.
inline constexpr uint16_t kShrinkingMessage = 2;
/// Groups of chunks of messages (send, recv) have this bit, those of collectives have not.
/// The highest bit of ChunkHeader::group, which the mesh leaves to its clients (mesh/client.h).
inline constexpr uint16_t kMessageGroup = 0x8000;
inline constexpr uint16_t kMostGroups = mesh::kGroupChannels.last;
/// From here on are groups that have been shrunk: their ranks choose a number by votes, those of a split by asking
/// whether it is free. Neither may take what the other one is about to.
inline constexpr uint16_t kFirstShrunkGroup = 0x4000;

}  // namespace ringbolt::group
