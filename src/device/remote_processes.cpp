#include "device/remote_processes.h"

#include <vector>

#include "base/lock_guard.h"

namespace ringbolt::device {
namespace {

/// A peer may be told twice of one that is made while it gets known, and leaves it at that.
void introduce(link::Peer& peer, const link::OwnArenas::Made& arena) {
  peer.send(link::Arena{arena.arena_id, arena.segment->length_bytes()}, arena.segment->descriptor());
}

}  // namespace

std::shared_ptr<link::RemoteProcess> RemoteProcesses::of(const std::shared_ptr<link::Peer>& peer) {
  const base::LockGuard guard(mutex_);
  if (const auto known = remotes_.find(peer.get()); known != remotes_.end()) {
    return known->second;
  }
  const std::vector<link::OwnArenas::Made> arenas = arenas_.all();
  const auto remote = remotes_.emplace(peer.get(), std::make_shared<link::RemoteProcess>(peer)).first->second;
  for (const link::OwnArenas::Made& arena : arenas) {
    introduce(*peer, arena);
  }
  return remote;
}

void RemoteProcesses::forget(const link::Peer& peer) {
  decltype(remotes_)::node_type forgotten;  // ends after the lock is given back
  const base::LockGuard guard(mutex_);
  forgotten = remotes_.extract(&peer);
}

base::Result<std::byte*> RemoteProcesses::allocate(size_t length_bytes) {
  const auto made = arenas_.make(length_bytes);
  if (!made) {
    return base::fail(made.error().value);
  }
  const base::LockGuard guard(mutex_);
  for (const auto& [peer, remote] : remotes_) {
    introduce(remote->peer(), *made);
  }
  return made->segment->data();
}

void RemoteProcesses::free(const void* address) {
  if (const auto arena_id = arenas_.free(address)) {
    tell_freed(*arena_id);
  }
}

void RemoteProcesses::drop(uint32_t arena_id) {
  if (arena_id != 0 && arenas_.drop(arena_id)) {
    tell_freed(arena_id);
  }
}

/// Its place is given out anew only once every peer was sent the news: they arrive in that order.
void RemoteProcesses::tell_freed(uint32_t arena_id) {
  {
    const base::LockGuard guard(mutex_);
    for (const auto& [peer, remote] : remotes_) {
      remote->peer().send(link::Release{arena_id});
    }
  }
  arenas_.retire(arena_id);
}

}  // namespace ringbolt::device
