#include "mesh/shares.h"

#include <fmt/core.h>

#include "mesh/failure.h"

namespace ringbolt::mesh {

std::vector<std::vector<std::byte>> share(bootstrap::SideChannel& side_channel, std::span<const std::byte> mine,
                                          const std::string& trouble, uint64_t deadline_ns) {
  base::ByteWriter writer;
  writer.put(static_cast<uint8_t>(trouble.empty() ? 1 : 0));
  writer.put_bytes(trouble.empty() ? mine : std::as_bytes(std::span(trouble)));
  // Also by a rank that is in trouble: the others wait for it, and are to hear why.
  auto shares = side_channel.all_gather(writer.bytes(), deadline_ns);
  if (!shares) {
    throw trouble.empty() ? JoinError(shares.error().text, shares.error().errno_value) : JoinError(trouble);
  }
  std::string words;
  for (uint32_t rank = 0; rank < shares->size(); ++rank) {
    std::vector<std::byte>& bytes = (*shares)[rank];
    // Format: a byte, 1 with a share and 0 with the words of trouble.
    if (bytes.empty() || bytes[0] != std::byte{1}) {
      const size_t n_letters = bytes.empty() ? 0 : bytes.size() - 1;
      words += fmt::format("{}rank {}: {}", words.empty() ? "" : "; ", rank,
                           n_letters == 0 ? "it gave no reason"
                                          : std::string(reinterpret_cast<const char*>(bytes.data()) + 1, n_letters));
    } else {
      bytes.erase(bytes.begin());
    }
  }
  if (!words.empty()) {
    throw JoinError(words);
  }
  return std::move(*shares);
}

}  // namespace ringbolt::mesh
