#include "rsocket/mappings.h"

#include <algorithm>
#include <limits>

namespace ringbolt::rsocket {

int Mappings::add(ibv_pd* pd, void* memory, size_t bytes, bool is_remote, uint64_t offset, uint32_t peer_entries) {
  std::optional<uint32_t> index;
  int access = IBV_ACCESS_LOCAL_WRITE;
  if (is_remote) {
    index = free_index(peer_entries);
    if (!index) {
      return ENOMEM;
    }
    if (bytes > std::numeric_limits<uint32_t>::max()) {
      return EINVAL;  // an entry has 32 bits for it
    }
    access |= IBV_ACCESS_REMOTE_WRITE;
  }
  MemoryRegion region = register_memory(pd, memory, bytes, access);
  if (region == nullptr) {
    return errno == 0 ? ENOMEM : errno;
  }
  const uint32_t rkey = region->rkey;
  mappings_.push_back({memory, bytes, index, std::move(region)});
  if (index) {
    try {
      news_.push_back({*index, offset, {reinterpret_cast<uint64_t>(memory), rkey, static_cast<uint32_t>(bytes)}});
    } catch (...) {
      mappings_.pop_back();
      throw;
    }
  }
  return 0;
}

bool Mappings::remove(void* memory, size_t bytes) {
  const auto found = std::find_if(mappings_.begin(), mappings_.end(),
                                  [&](const Mapping& m) { return m.memory == memory && m.bytes == bytes; });
  if (found == mappings_.end()) {
    return false;
  }
  // One that the peer was told of it keeps in its table: its WRITEs fail by the key from here on.
  if (found->index) {
    news_.remove_if([&](const News& news) { return news.index == *found->index; });
  }
  mappings_.erase(found);
  return true;
}

std::optional<uint32_t> Mappings::free_index(uint32_t peer_entries) const {
  for (uint32_t index = 0; index < peer_entries; ++index) {
    if (std::none_of(mappings_.begin(), mappings_.end(), [&](const Mapping& m) { return m.index == index; })) {
      return index;
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::rsocket
