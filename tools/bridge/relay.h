#pragma once

// Hot path: no allocation, no call into the system but those that move bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace ringbolt::tools::bridge {

/// Unread bytes where they lie, the second piece behind the first.
using Pieces = std::array<std::span<const std::byte>, 2>;

/// The end that is a byte stream over RDMA: its bytes lie in its own memory in both directions. Nothing blocks. Errors
/// are errnos.
class FabricEnd {
 public:
  virtual ~FabricEnd() = default;
  /// Where bytes are put to be sent; empty while there is no room.
  virtual std::span<std::byte> room() = 0;
  /// Sends the first bytes of what room() gave. 0 or an errno.
  /// Nothing else may have been sent since room().
  virtual int send(std::span<const std::byte> filled) = 0;
  /// EAGAIN: nothing yet; no bytes: the peer has closed it and all was taken; another error: it has failed.
  virtual base::Result<Pieces> peek() = 0;
  /// So many of them were taken.
  virtual void consume(size_t count) = 0;
  /// Whether all that was sent is in the peer's memory, or never will be.
  virtual bool is_drained() = 0;
  /// Whether nothing more can be sent. What came before may still be unread.
  virtual bool is_ended() = 0;
};

/// The end that is a connected socket: its bytes are moved by calls into the system. Nothing blocks.
class SocketEnd {
 public:
  virtual ~SocketEnd() = default;
  /// EAGAIN: nothing yet; 0: the peer has shut its direction down; another error: the connection is gone.
  virtual base::Result<size_t> read(std::span<std::byte> into) = 0;
  /// How much of both pieces was taken; EAGAIN: none of it.
  virtual base::Result<size_t> write(const Pieces& pieces) = 0;
  /// Tells the peer that no more comes.
  virtual void shut_down() = 0;
  /// After read() said 0: whether the peer takes nothing any more, either. A TCP socket can't know.
  virtual bool has_gone() = 0;
};

struct RelaySettings {
  /// After one side's end the other may go on for so long without a byte.
  uint64_t linger_ns = 5'000'000'000;
  /// After one side's end, a socket that takes none of the bytes which are left for it.
  uint64_t stuck_ns = 60'000'000'000;
  /// For what was written to reach the peer's memory, at the end.
  uint64_t flush_ns = 10'000'000'000;
};

/// What a relay has moved. A value.
struct Moved {
  uint64_t to_fabric_bytes = 0;
  uint64_t to_socket_bytes = 0;
  uint64_t socket_stalls = 0;  ///< times that the socket began to take no more
};

/// What a relay waits for. A value.
struct Wants {
  bool socket_readable = false;
  bool socket_writable = false;
  bool fabric_readable = false;
  bool fabric_writable = false;
  bool fabric_drained = false;
  uint64_t deadline_ns = 0;  ///< 0: none
  friend bool operator==(const Wants&, const Wants&) = default;
};

/// Moves the bytes of one connection both ways, as they are, and ends it: the end of one side is passed on behind its
/// last byte. A side that takes nothing holds the other one up, and none of it is kept here. The fabric knows no half
/// close: when the socket's peer shuts its direction down, replies are relayed until none came for the linger time.
/// Pure but for its ends, which outlive it. Not thread-safe.
/// Owns nothing. `now_ns`: of base::now_ns(), which never goes back.
class Relay {
 public:
  /// Bytes of one turn in each direction, so that nobody waits for long.
  static constexpr size_t kTurnBytes = size_t{1} << 18U;

  Relay(FabricEnd& fabric, SocketEnd& socket, const RelaySettings& settings)
      : fabric_(fabric), socket_(socket), settings_(settings) {}

  /// Moves what can be moved now. False: it is over, and both ends can be closed.
  /// Never blocks; bounded by kTurnBytes each way. Afterwards wants() is what it waits for.
  bool turn(uint64_t now_ns);
  /// Ends it in good order: reads no more from the socket, and lets what was read arrive.
  /// `reason`: must stay, as a constant does. Takes effect with the next turn().
  void stop(std::string_view reason);
  const Wants& wants() const { return wants_; }
  const Moved& moved() const { return moved_; }
  /// Why it ended, or is ending: "socket-closed", "socket-reset", "flush-timeout", "socket-stuck", what stop() said, or
  /// empty: the stream's own reason says why.
  std::string_view reason() const { return reason_; }
  /// Whether bytes may be missing: the socket's peer should hear of it otherwise than by an end.
  bool is_abrupt() const { return is_abrupt_; }

 private:
  enum class Phase : uint8_t {
    open,          // both directions may go on
    socket_ended,  // the socket's peer will send no more: replies go on
    flushing,      // nothing is read any more: what was, arrives
    fabric_ended,  // the stream has ended: what was left went to the socket, whose last words are thrown away
    over,
  };

  void move_to_socket(uint64_t now_ns);
  void move_to_fabric(uint64_t now_ns);
  void look_at_flush(uint64_t now_ns);
  void discard();
  uint64_t deadline_ns() const;
  void look_at_deadline(uint64_t now_ns);
  void note_progress(uint64_t now_ns);
  void end_fabric(uint64_t now_ns);
  void fail_socket(uint64_t now_ns);
  void begin_flush(uint64_t now_ns);
  void give_up(std::string_view reason);

  FabricEnd& fabric_;
  SocketEnd& socket_;
  const RelaySettings settings_;
  Wants wants_;
  Moved moved_;
  std::string_view reason_;
  uint64_t deadline_ns_ = 0;       // of the phase
  uint64_t stalled_since_ns_ = 0;  // the socket takes nothing; 0: it does
  Phase phase_ = Phase::open;
  bool socket_has_failed_ = false;
  bool socket_has_ended_ = false;  // read() said 0
  bool is_stopping_ = false;
  bool is_abrupt_ = false;
};

}  // namespace ringbolt::tools::bridge
