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
/// [n_ranks] by rank; what peers gave is not looked into. `trouble`: empty if there is none. Blocks until
/// `deadline_ns` (base::now_ns()). After a throw the side channel is of no use for further stages. Not thread-safe.
std::vector<std::vector<std::byte>> share(bootstrap::SideChannel& side_channel, std::span<const std::byte> mine,
                                          const std::string& trouble, uint64_t deadline_ns);

}  // namespace ringbolt::mesh
