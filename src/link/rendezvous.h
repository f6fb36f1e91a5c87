#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "link/messages.h"

/// How processes of one user on one host find each other: each owns a numbered slot, a lock file and a UNIX
/// SOCK_SEQPACKET socket `<directory>/<slot>.sock`; descriptors of shared memory travel over it.
namespace ringbolt::link {

inline constexpr uint32_t kSlotCount = 1024;

/// One other process (or this one: loopback is no special case). Made by Rendezvous; lives as long as anybody holds it.
/// Thread-safe.
/// Pointers and descriptors that it gives are good as long as it is held.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual uint32_t slot() const = 0;
  virtual uint64_t incarnation() const = 0;  ///< 0 until its Hello came
  virtual pid_t pid() const = 0;             ///< as seen in our pid namespace; 0 when it can't be seen
  /// Its Hello came: bell and region table are there.
  virtual bool is_ready() const = 0;
  /// Its process ended, or its sockets broke. Final.
  virtual bool is_gone() const = 0;
  /// It said Bye before it went.
  virtual bool left_orderly() const = 0;
  /// The probe at hello time read its nonce: process_vm_readv/writev to it works.
  virtual bool memory_is_reachable() const = 0;
  /// True while the kernel shows the process stopped (state T or t). Reads /proc: not for hot paths.
  virtual bool is_stopped() const = 0;
  /// Wakes its service thread: one eventfd write. No effect before is_ready() or after is_gone(). Never blocks.
  virtual void ring() = 0;
  /// Its region table memfd, open read-only, and its wake table's; -1 before is_ready(). Owned by the peer.
  virtual int region_table_fd() const = 0;
  virtual int wake_table_fd() const = 0;
  /// Queues a message (and copies of the descriptors that belong to it); sends at once when the socket takes it.
  /// Messages arrive in the order they were sent. False when the peer is gone. Never blocks.
  virtual bool send(const Message& message, std::span<const int> descriptors) = 0;
  bool send(const Message& message) { return send(message, std::span<const int>()); }
  bool send(const Message& message, int descriptor) { return send(message, std::span<const int>(&descriptor, 1)); }
};

/// What comes with an offer. Not open: a channel that the queue pair does not have, and whatever this process had no
/// descriptor left for.
struct OfferFiles {
  base::UniqueFd lane;
  base::UniqueFd receive_channel;
  base::UniqueFd send_channel;  ///< if it is another one than that of the receives
};

/// Told what comes in. Called on the thread that runs Rendezvous::dispatch(), without locks held.
/// May throw std::bad_alloc, which leaves dispatch(): what that message said is lost, and whatever waits is told next
/// time.
class RendezvousSink {
 public:
  virtual ~RendezvousSink() = default;
  virtual void on_ready(const std::shared_ptr<Peer>& peer) = 0;
  virtual void on_offer(const std::shared_ptr<Peer>& peer, const Offer& offer, OfferFiles files) = 0;
  virtual void on_withdraw(const std::shared_ptr<Peer>& peer, const Withdraw& withdraw) = 0;
  virtual void on_refuse(const std::shared_ptr<Peer>& peer, const Refuse& refuse) = 0;
  /// `memory` is not open when this process had no descriptor left for it.
  virtual void on_arena(const std::shared_ptr<Peer>& peer, const Arena& arena, base::UniqueFd memory) = 0;
  virtual void on_release(const std::shared_ptr<Peer>& peer, const Release& release) = 0;
  /// After its last message was delivered. Once per peer.
  virtual void on_gone(const std::shared_ptr<Peer>& peer) = 0;
  virtual void on_poke() = 0;
  /// Our bell rang.
  virtual void on_bell() = 0;
  /// A descriptor that was given to watch() is readable.
  virtual void on_readable() {}
};

/// Owned by the process. Its locks are leaves but for those of peers' sockets, which come after them.
class Rendezvous {
 public:
  struct Options {
    std::string directory;     ///< slots folder; made 0700 if absent
    int region_table_fd = -1;  ///< memfd to hand out (a read-only reopening of it is what peers get). Not owned
    int wake_table_fd = -1;    ///< memfd to hand out. Not owned
    uint32_t slot_limit = kSlotCount;
  };

  /// Claims a free slot, cleans what a crashed owner left there, listens. `sink` must outlive it. Throws base::Error.
  static std::unique_ptr<Rendezvous> open(const Options& options, RendezvousSink& sink);
  virtual ~Rendezvous() = default;

  virtual uint32_t slot() const = 0;
  virtual uint64_t incarnation() const = 0;

  /// The process that owns `slot`, connecting to it when we know it not yet (never blocks for long: a connect to a
  /// listening socket needs no accept). Nothing when nobody owns the slot, and when this process may open no more files
  /// or has no memory, which errno says. Thread-safe.
  virtual std::shared_ptr<Peer> peer_at(uint32_t slot) = 0;

  /// Waits up to timeout_ms (-1: for ever) for messages, deaths or the bell and tells the sink. One thread only.
  /// Also returns when a signal comes.
  virtual void dispatch(int timeout_ms) = 0;

  /// Something waits for dispatch(), or on a connection whose peer is not known for sure yet. Thread-safe.
  virtual bool has_pending() const = 0;

  /// Wakes dispatch() from any thread of this process (the same bell the peers ring).
  /// Never blocks; before dispatch() sleeps as well as while it does.
  virtual void wake() = 0;

  /// Has dispatch() wait for `descriptor` as well; told again and again while it is readable. It stays the caller's,
  /// and unwatch() comes before it is closed. False when the kernel refuses (errno). Thread-safe.
  virtual bool watch(int descriptor) = 0;
  virtual void unwatch(int descriptor) = 0;

  /// Says Bye to all, gives the slot back, removes its files. Further calls have no effect. Thread-safe.
  /// Waits 20 ms at most, in all, for peers that do not read.
  virtual void leave() = 0;

  /// In a forked child: closes every descriptor without a word to the peers (the parent goes on). The object is dead.
  virtual void abandon_after_fork() = 0;
};

}  // namespace ringbolt::link
