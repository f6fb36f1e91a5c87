#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_writer.h"
#include "bootstrap/side_channel.h"

namespace ringbolt::mesh {

/// One stage of bring-up: every rank gives its share, or the words that say why it can't, and gets all shares. If any
/// rank can't, or leaves, all throw JoinError with those words.
std::vector<std::vector<std::byte>> share(bootstrap::SideChannel& side_channel, std::span<const std::byte> mine,
                                          const std::string& trouble, uint64_t deadline_ns);

}  // namespace ringbolt::mesh
