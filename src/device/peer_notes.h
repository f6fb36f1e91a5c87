#pragma once

#include <infiniband/verbs.h>

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace ringbolt::device {

/// What processes of one user on one host that explain (RINGBOLT_EXPLAIN) tell each other of what only one of them
/// knows: a ring of short notes in a file of the runtime folder that all of them map, so that a writer waits for nobody
/// and a reader finds what the other side knew when it decided. The last to close it removes the file. Thread-safe.
class PeerNotes {
 public:
  enum class Kind : uint32_t {
    region_gone,      ///< `number`: the key
    queue_pair_made,  ///< connected: `number`, to `peer_number`
    queue_pair_gone,  ///< reset or destroyed
    refused,          ///< a request between the two was, or can't be answered
    starved,          ///< a message of the peer waits for a receive
    state,            ///< of a queue pair that is idle
  };
  struct Note {
    Kind kind{};
    pid_t pid = 0;
    uint32_t number = 0;
    uint32_t peer_number = 0;
    ibv_gid peer_gid{};  ///< of the port where `peer_number` is
    uint64_t time_ns = 0;
    std::string text{};  ///< kTextBytes at most; what is longer is cut
  };
  static constexpr size_t kTextBytes = 256;
  static constexpr size_t kNotes = 2048;

  /// `folder`: where the file is, or is made. Without it notes are this process' own. Throws std::bad_alloc.
  static std::unique_ptr<PeerNotes> open(const std::string& folder);
  ~PeerNotes();
  PeerNotes(const PeerNotes&) = delete;
  PeerNotes& operator=(const PeerNotes&) = delete;

  /// Removes the file if nobody else has it open; notes can be written and found on. Further calls have no effect.
  void leave();
  /// `note.pid` and `note.time_ns` are set here.
  void write(const Note& note);
  /// How many were ever written, by anybody: those from here on are news. A load, for the hot path.
  // Relaxed: only told how many; find() acquires what they say, and checks each note's sum.
  uint64_t count() const noexcept { return std::atomic_ref<uint64_t>(*written_).load(std::memory_order_relaxed); }
  /// The newest that is wanted, of those from number `first` on.
  std::optional<Note> find(const std::function<bool(const Note&)>& is_wanted, uint64_t first = 0) const;

 private:
  PeerNotes(std::string path, base::UniqueFd file, void* memory);

  const std::string path_;
  base::UniqueFd file_;
  void* const memory_;
  uint64_t* const written_;  // of that memory
};

}  // namespace ringbolt::device
