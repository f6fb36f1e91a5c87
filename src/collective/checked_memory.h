#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "collective/happenings.h"
#include "collective/symbols.h"

namespace ringbolt::collective {

/// A memory of a rank in check(): what its bytes stand for, and who has read and written them. Not thread-safe.
class CheckedMemory {
 public:
  /// A chunk of a step of this rank.
  struct Chunk {
    uint32_t step = 0;
    uint32_t event = 0;
  };

  void write(uint64_t offset, const Symbols& symbols) { symbols_.write(offset, symbols); }
  std::optional<Symbols> read(uint64_t offset, uint64_t bytes, uint64_t* hole) const {
    return symbols_.read(offset, bytes, hole);
  }
  /// Notes that the chunk reads or writes these bytes. An earlier access to them, of another step, of which nothing
  /// says that it comes before, if one of the two writes; nothing if there is none. In words.
  std::optional<std::string> note(const Chunk& chunk, uint64_t offset, uint64_t bytes, bool is_write,
                                  Happenings& happenings);

 private:
  struct Access {
    uint64_t bytes = 0;
    bool is_write = false;
    Chunk chunk;
  };

  SymbolicMemory symbols_;
  std::multimap<uint64_t, Access> accesses_;  // by offset
  uint64_t longest_ = 0;                      // of them
};

}  // namespace ringbolt::collective
