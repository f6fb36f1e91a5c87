#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "rsocket/connection_data.h"
#include "rsocket/endpoint.h"
#include "rsocket/immediate.h"
#include "rsocket/io_cursor.h"
#include "rsocket/peer_tables.h"
#include "rsocket/receive_window.h"
#include "rsocket/send_window.h"

// Hot path: no allocation and no lock of its own per message.

namespace ringbolt::rsocket {

/// The data part of a connected stream: turns what SendWindow, ReceiveWindow and PeerTables decide into work requests,
/// and tells them what completed. Knows nothing of waiting. Not thread-safe: its owner's lock guards it. Two calls let
/// go of that lock while they copy, and rely on their owner that only one thread sends, and one receives, at a time.
/// Owns the endpoint; destroys the queue pair, not the id.
class Connection {
 public:
  /// Makes the verbs objects on `id`, which outlives this. Throws base::Error.
  Connection(rdma_cm_id* id, const Settings& settings);

  /// What was asked for, lowered to what the device can do.
  const Settings& settings() const { return settings_; }

  /// What to tell the peer.
  ConnectionData local_data() const;
  /// What the peer told. Only after this may anything be sent. EPROTO: it makes no sense.
  /// Once.
  base::Result<void> join(const ConnectionData& peer);

  /// Takes all completions, tells the peer of room that became free. Returns whether anything came in.
  bool progress();

  /// Why nothing moves any more; 0 while it does. Data that has come in can still be received.
  int error() const { return error_; }
  bool peer_has_shut_down() const { return peer_shut_down_; }  ///< no more data will come
  bool peer_has_disconnected() const { return peer_disconnected_; }
  bool has_heard_from_peer() const { return heard_; }

  /// Whether a message of `wanted` bytes can go now, or of as many as the peer and our buffer take at a time. Waiting
  /// for room for all of them keeps a full buffer from being passed on in crumbs.
  bool can_send(size_t wanted) const { return is_usable() && out_.has_room_for_message(wanted); }
  bool can_send_direct(size_t wanted) const { return is_usable() && out_.has_room_for(wanted); }
  /// Everything that was sent has reached the peer's memory.
  bool is_idle() const { return out_.is_idle(); }
  uint32_t readable() const { return in_.readable(); }

  /// Sends a message of the next bytes of `from`, at most `at_most`. Precondition: can_send(that). Returns how many.
  uint32_t send(IoCursor& from, uint32_t at_most, base::Mutex& lock) RINGBOLT_REQUIRES(lock);
  /// Writes the next bytes of `from`, at most `at_most`, to the peer's mapping at `offset`; the peer gets no message.
  /// Precondition: can_send_direct(that). Returns how many; 0: the peer has no such mapping.
  uint32_t send_direct(IoCursor& from, uint64_t offset, uint32_t at_most, base::Mutex& lock) RINGBOLT_REQUIRES(lock);
  bool can_send_mapping() const { return is_usable() && out_.has_room_for_mapping(); }
  /// Makes known a mapping of ours as entry `index` of the peer's table. Precondition: can_send_mapping().
  void send_mapping(uint32_t index, uint64_t offset, const RemoteBlock& block);
  /// How many mappings the peer can keep.
  uint32_t peer_mappings() const { return peer_tables_.iomap_entries(); }

  bool can_send_control() const { return out_.has_control(); }
  /// Precondition: can_send_control().
  void send_control(Control what);

  /// Copies what has come in, as much as fits. `peek`: it stays there. Returns how many bytes.
  /// Also after an error: what has come in stays. The peer may not write there before it is offered the half anew, so
  /// the bytes stand still while they are copied.
  size_t receive(IoCursor& to, bool peek, base::Mutex& lock) RINGBOLT_REQUIRES(lock);

  Endpoint& endpoint() { return endpoint_; }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  void handle_receive(const ibv_wc& completion);
  void handle_send(const ibv_wc& completion);
  void handle_message(Immediate message, uint32_t written_bytes);
  void break_off(int error);
  void grant_if_due();
  bool is_usable() const { return has_joined_ && error_ == 0 && !peer_disconnected_; }
  void write(Immediate message, const RemoteBlock& target, ibv_sge& piece, uint32_t staged_bytes, ibv_wr_opcode opcode);
  uint32_t stage(IoCursor& from, uint32_t length, ibv_sge& piece, base::Mutex& lock) RINGBOLT_REQUIRES(lock);
  void post(ibv_send_wr& request);

  Settings settings_;
  Endpoint endpoint_;
  SendWindow out_;
  ReceiveWindow in_;
  PeerTables peer_tables_;
  uint32_t control_number_ = 0;
  uint32_t receives_to_post_ = 0;
  // The first one, for good.
  int error_ = 0;
  bool has_joined_ = false;
  bool heard_ = false;
  bool peer_shut_down_ = false;
  bool peer_disconnected_ = false;
};

}  // namespace ringbolt::rsocket
