#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/mutex.h"
#include "link/arena.h"
#include "link/peer_queue.h"
#include "link/region_table.h"
#include "link/rendezvous.h"
#include "link/shared_segment.h"

namespace ringbolt::link {

/// How a copy to or from another process ended.
enum class CopyOutcome {
  done,
  unreachable,  ///< neither shared nor open to process_vm_*, or its region table is not mapped: the owner must copy
  fault,        ///< the owner has no memory there any more
  gone,         ///< the owner has ended
};

/// What we can see of another process' memory: its region table and its arenas. Thread-safe.
/// Shared by RemoteProcesses and the connections to it, and mapped as long as any of them lives. What is opened is
/// opened by the service thread before it takes an offer of theirs.
class RemoteProcess {
 public:
  explicit RemoteProcess(std::shared_ptr<Peer> peer) : peer_(std::move(peer)) {}

  Peer& peer() const { return *peer_; }
  const std::shared_ptr<Peer>& shared_peer() const { return peer_; }
  /// Maps the region table; once, when the peer is ready. 0, or an errno; EINVAL when what it gave is none.
  int open_regions();
  /// The same for the wake table, without which nobody can tell the peer of anything.
  int open_wakes();
  /// The table was mapped: 0; or the errno that open_wakes() returned.
  int wakes_error() const { return wakes_error_; }
  /// A completion queue of its, which is told of things at `channel`, known by `number`; `file` may not be open. Of
  /// several descriptors of one channel one is kept; none when they are about to run out: then its service thread is
  /// woken instead. Throws std::bad_alloc.
  PeerQueue queue(WakeName name, uint32_t number, base::UniqueFd file);
  /// The table is mapped: what its keys allow can be seen here. If not, the peer has to check and copy itself.
  bool has_regions() const { return regions_.is_open(); }
  bool find_region(uint32_t key, Region& region) const { return regions_.is_open() && regions_.find(key, region); }
  /// Where the bytes that a key names are mapped here. Null: the key does not allow this to the peer's queue pair `qpn`
  /// in the domain, or they are not mapped; find_region() and mapped() know which.
  std::byte* reach(uint32_t key, uint32_t pd_key, uint32_t qpn, uint32_t access, uint64_t address,
                   uint64_t length) const {
    RegionTableView::Place place;
    return regions_.is_open() && regions_.locate(key, pd_key, qpn, access, address, length, place)
               ? arenas_.find(place.arena_id, place.arena_offset, length)
               : nullptr;
  }
  PeerArenas& arenas() { return arenas_; }
  const PeerArenas& arenas() const { return arenas_; }

  /// Where `length` bytes from `address` of the region are mapped here; nullptr when they are not.
  std::byte* mapped(const Region& region, uint64_t address, uint64_t length) const {
    return arenas_.find(region.arena_id, region.arena_offset + (address - region.first), length);
  }
  /// Copies the pieces, in order, to `address` of the region, which must hold them.
  /// Until the first that fails: those before it are there then. Blocks for no peer; a stopped one can be read and
  /// written.
  CopyOutcome write(const Region& region, uint64_t address, std::span<const iovec> pieces) const;
  /// Copies from `address` of the region into the pieces, in order.
  CopyOutcome read(const Region& region, uint64_t address, std::span<const iovec> pieces) const;

 private:
  CopyOutcome copy_by_kernel(bool is_write, uint64_t remote, std::span<const iovec> pieces) const;

  std::shared_ptr<Peer> peer_;
  SharedSegment region_segment_;
  RegionTableView regions_;
  SharedSegment wake_segment_;
  int wakes_error_ = EAGAIN;
  base::Mutex channels_mutex_;  // a leaf
  std::unordered_map<uint32_t, std::weak_ptr<const base::UniqueFd>> channels_ RINGBOLT_GUARDED_BY(channels_mutex_);
  size_t purge_at_ RINGBOLT_GUARDED_BY(channels_mutex_) =
      64;  // how many there are when those that are over are dropped
  PeerArenas arenas_;
};

}  // namespace ringbolt::link
