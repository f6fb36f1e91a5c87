#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "rsocket/connection_data.h"
#include "rsocket/verbs_objects.h"

namespace ringbolt::rsocket {

/// The memory that a program has mapped to a socket (riomap). Not thread-safe.
/// Owns the registrations, not the memory, which stays the program's. Under the socket's lock.
class Mappings {
 public:
  /// A mapping that the peer has to be told of.
  struct News {
    uint32_t index;
    uint64_t offset;
    RemoteBlock block;
  };

  /// Registers `bytes` at `memory`. `is_remote`: the peer may write there, as entry `index` of its table, the first
  /// free one below `peer_entries`, at `offset`. An errno: ENOMEM if the table is full, or why it cannot be registered.
  int add(ibv_pd* pd, void* memory, size_t bytes, bool is_remote, uint64_t offset, uint32_t peer_entries);
  /// Takes the oldest mapping of exactly this memory back. False: there is none. The peer is not told.
  bool remove(void* memory, size_t bytes);

  /// The oldest mapping that the peer does not know of; null: it knows all.
  /// Good until told() or remove().
  const News* news() const { return news_.empty() ? nullptr : &news_.front(); }
  void told() { news_.pop_front(); }

 private:
  struct Mapping {
    void* memory;
    size_t bytes;
    std::optional<uint32_t> index;
    MemoryRegion region;
  };
  std::optional<uint32_t> free_index(uint32_t peer_entries) const;

  std::list<Mapping> mappings_;
  std::list<News> news_;
};

}  // namespace ringbolt::rsocket
