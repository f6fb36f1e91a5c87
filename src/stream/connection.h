#pragma once

// Hot path.

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "stream/endpoint.h"
#include "stream/protocol.h"

namespace ringbolt::stream {

/// The protocol on the verbs objects of one connection: carries out what the machine says, and tells it what completed.
/// Reads the clock only where the machine needs it. Never blocks, and throws nothing once it is built. What the peer
/// writes may change at any time, also while the program reads it: who does not copy first trusts the peer. Not
/// thread-safe.
/// Owns the endpoint. `id` and `budget` of the constructor outlive it.
class Connection {
 public:
  /// Throws base::Error, as Endpoint does.
  Connection(const verbs::ConnectionManager& manager, rdma_cm_id* id, Role role, const StreamSettings& settings,
             MemoryBudget& budget);

  Endpoint& endpoint() { return endpoint_; }
  const Endpoint& endpoint() const { return endpoint_; }
  const Protocol& protocol() const { return protocol_; }
  bool is_alive() const { return protocol_.is_alive(); }

  void established(uint64_t now_ns);
  /// Posts the receives that were taken and not posted again yet: while nothing comes, all should be there.
  void repost();
  /// Takes what has completed, and posts what is due. Whether anything had completed.
  /// Bounded: kMostBatches of 16 completions a call.
  bool progress();
  /// Sends a keepalive if one is due; of a client, which has none in the protocol, a write of nothing, which the peer's
  /// device alone answers: who waits for a peer with nothing under way would never hear that it is gone.
  void tick(uint64_t now_ns);
  void end(CloseReason reason) { protocol_.end(reason); }
  /// Why a request failed, which peer_lost and work_failed leave open; IBV_WC_SUCCESS: none has.
  ibv_wc_status failure() const { return failure_; }
  /// Requests were flushed, while the connection counts as alive: the connection manager knows why.
  bool is_broken() const { return failure_ == IBV_WC_WR_FLUSH_ERR && is_alive(); }
  /// The errno of a request that the device did not take; 0: it has taken all.
  int post_error() const { return post_error_; }

  /// Whether the peer has said anything by itself.
  bool has_heard() const {
    return protocol_.statistics().announcements_received + protocol_.statistics().messages_received > 0;
  }
  uint32_t unread() const { return protocol_.unread(); }
  /// The unread bytes where they lie, in two pieces if they reach around the ring's end; the second may be empty.
  /// Good until consume(), or the end of this.
  std::array<std::span<const std::byte>, 2> peek() const;
  /// `count` of them were taken.
  /// `count`: unread() at most; it is asserted.
  void consume(uint32_t count);

  /// Whether one byte at least could be sent now.
  bool can_write() const { return protocol_.room() > 0 && protocol_.can_post_write(); }
  /// Copies and sends as much as there is room for, beginning `skipped` bytes into the pieces; returns how much.
  uint64_t write(std::span<const iovec> pieces, uint64_t skipped);
  /// The sending buffer from where the next byte goes to its end; empty while can_write() is false.
  /// Good until something is written or an announcement comes, which progress() takes.
  std::span<std::byte> room();
  /// Sends bytes that were filled in where room() said, though a peer that announces too early may have moved that
  /// place since. False: they lie elsewhere.
  bool send(std::span<const std::byte> filled);
  /// As write(), from registered memory, which stays untouched until is_sent().
  uint64_t write_registered(std::span<const std::byte> data, uint32_t local_key);
  /// Whether the device has done with all that was written from registered memory.
  bool is_sent() const { return protocol_.writes_done() >= last_registered_; }
  /// Whether all that was written has reached the peer's memory; asks the device for word of it if that is open.
  bool is_drained();
  /// Likewise, as far as the device has said so by itself.
  bool has_written_all() const { return protocol_.writes_done() == protocol_.writes_posted() || !is_alive(); }

  uint64_t next_tick_ns() const { return std::min(protocol_.next_tick_ns(), next_probe_ns_); }

 private:
  void take(const ibv_wc& completion);
  void take_receive(const ibv_wc& completion, uint32_t slot);
  void take_failure(const ibv_wc& completion, const Finished& done);
  void pump();
  void prepare_sending();
  void fill(std::span<const std::byte> data);
  uint64_t post_filled();
  void fail(int error);
  void post_fence();

  // As long as the keepalive interval.
  const uint64_t probe_ns_;  // between a client's writes of nothing; 0: none
  Endpoint endpoint_;
  Protocol protocol_;
  uint64_t next_probe_ns_ = UINT64_MAX;
  uint64_t last_registered_ = 0;
  bool is_fenced_ = false;
  ibv_wc_status failure_ = IBV_WC_SUCCESS;
  int post_error_ = 0;
};

}  // namespace ringbolt::stream
