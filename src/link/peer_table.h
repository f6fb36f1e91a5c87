#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "link/peer.h"

namespace ringbolt::link {

/// One connection. Except for `id`, `pid` and `socket`, which never change, the dispatching thread alone looks at it
/// once it is in the table.
struct Line {
  uint64_t id = 0;
  pid_t pid = 0;
  std::shared_ptr<PeerSocket> socket;
  std::shared_ptr<ConnectedPeer> peer;  ///< none: a stranger
  bool has_heard_hello = false;
  bool is_parked = false;  ///< its Hello came, but which peer it belongs to is not known yet
  Introduction introduction;
};

/// Who is known, at which slot, by which connections. A slot that we called and that has not said Hello yet is
/// pending: who owns it is unknown, so connections from that slot are parked until it is. That keeps it to one Peer for
/// one process when two processes call each other at the same time. Thread-safe.
/// Its lock comes before those of sockets, which insert_caller() sends under. What it gives is shared: it outlives
/// removal.
class PeerTable {
 public:
  /// Connections without a peer; beyond it the oldest are dropped.
  static constexpr size_t kMaxStrangers = 1024;

  /// From 1, and never again: an event that is late names nobody.
  uint64_t next_id();

  /// The peer at a slot that is not gone, pending or not.
  std::shared_ptr<ConnectedPeer> living_at(uint32_t slot) const;
  std::shared_ptr<Line> line(uint64_t id) const;
  std::shared_ptr<ConnectedPeer> peer(uint64_t id) const;

  /// Enters an outgoing connection with its new, pending peer, after sending `hello` on it, so that nothing else can be
  /// sent before. When the slot has a living peer by now that one is returned and nothing is sent or entered. Nothing
  /// after close().
  std::shared_ptr<ConnectedPeer> insert_caller(const std::shared_ptr<Line>& line, std::span<const std::byte> hello,
                                               std::span<const int> descriptors);

  /// Enters an incoming connection. Returns the connection to drop in its favour, if any.
  std::shared_ptr<Line> insert_stranger(const std::shared_ptr<Line>& line);

  /// Finds the peer of a connection whose Hello came. `candidate` becomes the slot's peer unless one with the same
  /// incarnation lives.
  enum class Seat {
    parked,  ///< the slot is pending: ask again when it is settled
    joined,  ///< a further connection of a known peer
    fresh,   ///< `candidate` is entered
    closed,
  };
  Seat seat(Line& line, const std::shared_ptr<ConnectedPeer>& candidate);

  std::vector<std::shared_ptr<Line>> lines() const;
  std::vector<std::shared_ptr<Line>> lines_of(const ConnectedPeer& peer) const;
  std::vector<std::shared_ptr<Line>> parked_at(uint32_t slot) const;
  bool has_parked() const;
  /// Gives the parked connections that come from the process of `peer` to it, and returns them.
  std::vector<std::shared_ptr<Line>> join_parked(const std::shared_ptr<ConnectedPeer>& peer);

  void remove(const Line& line);
  void remove(const ConnectedPeer& peer);

  /// Empties the table and refuses new entries.
  struct Content {
    std::map<uint64_t, std::shared_ptr<ConnectedPeer>> peers;
    std::map<uint64_t, std::shared_ptr<Line>> lines;
  };
  Content close();

  /// In a forked child: closes the descriptors of all entries. Leaves them open when the parent was changing the
  /// table at the moment of the fork.
  void abandon_after_fork();

 private:
  mutable base::Mutex mutex_;
  Content content_ RINGBOLT_GUARDED_BY(mutex_);  // by id, that is by age
  std::array<std::shared_ptr<ConnectedPeer>, kSlotCount> by_slot_ RINGBOLT_GUARDED_BY(mutex_);
  uint64_t last_id_ RINGBOLT_GUARDED_BY(mutex_) = 0;
  bool is_closed_ RINGBOLT_GUARDED_BY(mutex_) = false;
};

}  // namespace ringbolt::link
