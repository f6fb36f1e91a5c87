#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "stream/close_reason.h"
#include "stream/control_message.h"
#include "stream/flood_gauge.h"
#include "stream/receive_space.h"
#include "stream/send_space.h"
#include "stream/statistics.h"

namespace ringbolt::stream {

enum class Role : uint8_t { client, server };

/// rx_length * rx_buffers: below 4 GiB, which is asserted.
struct ProtocolSettings {
  Role role = Role::client;
  // Our receive buffers, as they are announced: so many of that length, one behind the other, under one key.
  uint64_t rx_address = 0;
  uint32_t rx_length = 1U << 20U;
  uint32_t rx_buffers = 1;
  uint32_t rx_key = 0;
  uint32_t max_tx_length = 16U << 20U;    ///< longest receive buffer of a peer that is mirrored
  uint64_t keepalive_ns = 3'000'000'000;  ///< a server's; 0: none
  uint64_t offered_features = 0;          ///< what a server answers
};

/// A command to send from its slot: the bytes stay there until the SEND has completed.
/// The SEND itself copies: what must stay is the endpoint's place for the slot.
struct OutgoingCommand {
  uint32_t slot = 0;
  ControlBytes bytes{};
};

/// One connection of Valkey over RDMA, as client or server: takes what completed and what the program does, and says
/// what to post. Knows nothing of verbs. Everything that a peer says is checked before it is believed; the first thing
/// that can't be ends the connection with a reason. Time is an argument, in nanoseconds. Hot path: no allocation, no
/// call into the system. Pure. Not thread-safe. Format and rules: docs/formats/valkey-rdma.md.
class Protocol {
 public:
  /// Commands that may be under way. A peer that takes none fills them.
  static constexpr uint32_t kCommandSlots = 32;
  /// More keepalives than that are not sent on top of each other: a peer that was stopped finds them when it goes on.
  static constexpr uint32_t kMostKeepalives = 8;

  explicit Protocol(const ProtocolSettings& settings);

  // What happened.

  /// Both sides are connected: announces our receive buffer. Data may have come before.
  void established(uint64_t now_ns);
  /// A SEND of the peer, of `bytes.size()` bytes.
  /// `bytes` must not change meanwhile: the peer may be hostile.
  void take_command(std::span<const std::byte> bytes, uint64_t now_ns);
  /// A WRITE_WITH_IMM of the peer: its immediate (host order), and how many bytes it brought by itself.
  void take_data(uint32_t immediate, uint32_t write_bytes, uint64_t now_ns);
  /// The oldest command under way was sent.
  void finish_command();
  /// That write has completed, and so have all before it: their bytes are in the peer's memory.
  void finish_write(uint64_t number) {
    tx_.finish(number);
    statistics_.bytes_arrived = tx_.bytes_done();
  }
  /// Time passed: sends a keepalive if one is due. `next_tick_ns()`: when to call again; UINT64_MAX: never.
  void tick(uint64_t now_ns);
  uint64_t next_tick_ns() const { return next_keepalive_ns_; }
  /// The connection is over, for the first reason that is given. What was received can still be read.
  void end(CloseReason reason);

  // The peer's receive buffer: our way to send.

  /// The peer has announced, and nothing was prepared: tx_length() bytes are needed to copy into. Then begin_sending(),
  /// or end() if that can't be had.
  bool wants_sending_buffer() const { return tx_.is_open() && !can_send_; }
  uint32_t tx_length() const { return tx_.length(); }
  void begin_sending() { can_send_ = true; }
  /// Bytes that can be filled in now, from tx_offset() on.
  uint32_t room() const { return can_send_ && is_alive() ? tx_.room() : 0; }
  uint32_t tx_offset() const { return tx_.offset(); }
  /// room() at most; it is asserted.
  void fill(uint32_t count) { tx_.fill(count); }
  bool has_unflushed() const { return tx_.unflushed() > 0; }
  bool can_post_write() const { return tx_.can_post(); }
  std::optional<Write> flush(bool wants_completion = false) { return count(tx_.flush(wants_completion)); }
  /// See SendSpace::direct().
  std::optional<Write> flush_direct(uint32_t length, bool is_last) { return count(tx_.direct(length, is_last)); }
  uint64_t writes_posted() const { return tx_.posted(); }
  uint64_t writes_done() const { return tx_.done(); }
  /// A writer finds no room: counts as stalled until the peer announces.
  void note_stall(uint64_t now_ns);
  /// After an announcement that came too early: unflushed bytes to move to the front of the sending buffer. Once.
  struct Move {
    uint32_t from = 0;
    uint32_t count = 0;
  };
  std::optional<Move> take_move();

  // Our receive buffers: a ring, whose end unread bytes may reach around.

  uint32_t unread() const { return rx_.unread(); }
  uint32_t rx_offset() const { return rx_.offset(); }
  /// Of the unread bytes, those before the ring's end.
  uint32_t contiguous() const { return rx_.contiguous(); }
  /// The program has taken `count` bytes: announces the next buffer if the peer waits for one that is free now.
  /// unread() at most; it is asserted.
  void consume(uint32_t count);

  // Features: nothing asks for them today, and a stock client takes both commands for an offence.

  /// As client: asks which features the server has.
  void ask_features();
  /// What the server answered.
  std::optional<uint64_t> features() const { return features_; }

  /// The next command to post.
  /// In the order of sending. The slot is free again with finish_command().
  std::optional<OutgoingCommand> next_command();
  bool has_command() const { return queued_ > 0; }
  /// Whether there is anything to do for who carries it out: a command, a sending buffer, a move.
  bool wants_attention() const { return queued_ > 0 || wants_sending_buffer() || move_.has_value(); }

  bool is_established() const { return is_established_; }
  bool is_alive() const { return reason_ == CloseReason::none; }
  CloseReason reason() const { return reason_; }
  const Statistics& statistics() const { return statistics_; }
  Statistics& statistics() { return statistics_; }

 private:
  void take_registration(const ControlMessage& message, uint64_t now_ns);
  void take_feature_command(const ControlMessage& message, uint64_t now_ns);
  CloseReason objection_to(const ControlMessage& registration) const;
  void send(const ControlMessage& message);
  void announce();
  std::optional<Write> count(std::optional<Write> write);

  ProtocolSettings settings_;
  ReceiveSpace rx_;
  SendSpace tx_;
  bool can_send_ = false;
  bool is_established_ = false;
  bool has_asked_features_ = false;
  CloseReason reason_ = CloseReason::none;
  std::optional<uint64_t> features_;
  std::optional<Move> move_;
  uint64_t stalled_since_ns_ = 0;  // 0: not stalled
  uint64_t next_keepalive_ns_ = UINT64_MAX;
  FloodGauge commands_gauge_;
  FloodGauge empty_gauge_;
  Statistics statistics_;

  // Commands leave and complete in order: the slots are a ring.
  std::array<ControlBytes, kCommandSlots> commands_{};
  uint64_t keepalive_slots_ = 0;  // bit of each slot that holds one
  uint32_t keepalives_ = 0;       // of the bits
  uint32_t first_ = 0;            // slot of the oldest under way
  uint32_t under_way_ = 0;        // posted and not completed
  uint32_t queued_ = 0;           // behind those, not posted
};

}  // namespace ringbolt::stream
