#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"
#include "link/arena.h"
#include "link/remote_process.h"

namespace ringbolt::device {

/// The other processes that a process has to do with, and the memory that it shares with all of them: each peer is told
/// of every arena, those that come and those that go, in that order. Under its lock peers send, and that of the arenas
/// is taken; nothing else. Thread-safe.
/// Owned by the process. What it gives is shared: a connection that holds a remote process outlives forget().
class RemoteProcesses {
 public:
  link::OwnArenas& arenas() { return arenas_; }

  /// The same for all who ask, until forget(). One that was not known yet is told of all arenas. Throws std::bad_alloc.
  std::shared_ptr<link::RemoteProcess> of(const std::shared_ptr<link::Peer>& peer) RINGBOLT_EXCLUDES(mutex_);
  /// The peer has ended. Who holds it goes on holding it.
  void forget(const link::Peer& peer) RINGBOLT_EXCLUDES(mutex_);

  /// An arena, known to every peer. ENOMEM, EMFILE.
  base::Result<std::byte*> allocate(size_t length_bytes) RINGBOLT_EXCLUDES(mutex_);
  /// The program needs it no longer; no effect for what allocate() has not returned. It is gone, here and at the peers,
  /// once the last region over it is, too.
  void free(const void* address);
  /// A region over the arena is gone; 0: it was over none.
  // Both may send to every peer: no waiting, but system calls.
  void drop(uint32_t arena_id);

 private:
  void tell_freed(uint32_t arena_id) RINGBOLT_EXCLUDES(mutex_);

  link::OwnArenas arenas_;
  base::Mutex mutex_;
  std::unordered_map<const link::Peer*, std::shared_ptr<link::RemoteProcess>> remotes_ RINGBOLT_GUARDED_BY(mutex_);
};

}  // namespace ringbolt::device
