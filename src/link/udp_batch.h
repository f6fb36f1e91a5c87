#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/assert.h"
#include "link/udp_message.h"

namespace ringbolt::link {

class UdpEndpoint;
class UdpFaults;
struct UdpDeparture;

/// Packets on their way out: the caller writes them in place, one after the other, and flush() hands them to the
/// kernel. What goes to one place in equal sizes (the last may be shorter) becomes one GSO call; everything else is a
/// message of its own in one sendmmsg(), or, where there is but one, in a sendmsg(). No allocation after construction.
///
///     if (auto place = batch.reserve(bytes); !place.empty()) {
///       write BTH to pad into place;
///       batch.commit(path, bytes);
///     }
///     ...
///     batch.flush();
///
/// Not thread-safe; different batches of one endpoint may be used by different threads at a time. The endpoint must
/// outlive it.
/// Owns kArenaBytes of memory. A receiver sees nothing of which packets became one call but their IPv4 IDs, which the
/// ICRC covers.
class UdpBatch {
 public:
  explicit UdpBatch(UdpEndpoint& endpoint);
  ~UdpBatch();
  UdpBatch(const UdpBatch&) = delete;
  UdpBatch& operator=(const UdpBatch&) = delete;

  /// A place for a packet of up to `bytes` bytes from BTH to pad (4 more for the ICRC are set aside behind it), valid
  /// until the next call. Empty when the batch is full: flush() first. At most kMaxUdpPacketBytes - 4.
  std::span<std::byte> reserve(size_t bytes) {
    RINGBOLT_ASSERT(bytes + kIcrcBytes <= kMaxUdpPacketBytes);
    if (used_bytes_ + bytes + kIcrcBytes > kArenaBytes || message_count_ == kMaxMessages) {
      reserved_bytes_ = 0;
      return {};
    }
    reserved_bytes_ = bytes;
    return {arena_.get() + used_bytes_, bytes};
  }

  /// Takes the reserved packet's first `bytes` bytes (a multiple of 4, at least a BTH) and writes the ICRC behind them.
  /// Where faults are in effect it may come to nothing, or to something else (UdpFaults).
  void commit(const UdpPath& path, size_t bytes);

  struct Flushed {
    size_t sent = 0;      ///< packets that the kernel has taken
    size_t refused = 0;   ///< packets that can't be sent (no route, too long...): gone, as if lost on the way
    size_t left = 0;      ///< packets still in the batch, in order: the socket is full now. Flush again later
    int error = 0;        ///< the last errno: EAGAIN or ENOBUFS with `left`, another with `refused`; else 0
    size_t too_long = 0;  ///< of `refused`: EMSGSIZE, beyond the interface's MTU or the path's
  };
  /// Sends, also frames that faults held back and that are due. Never blocks. While packets are left after EAGAIN, the
  /// endpoint's descriptor() is readable whenever there is room.
  Flushed flush();

  /// Drops what has not been sent.
  void clear();

  size_t packet_count() const { return packet_count_; }
  bool is_empty() const { return packet_count_ == 0; }

 private:
  // What a GSO call can hold at most: 64 KiB with all headers, and 64 packets on kernels before 6.9.
  static constexpr size_t kArenaBytes = 64 * 1024;
  // A UDP datagram has 65,507 bytes over IPv4 at most; 64 segments are UDP_MAX_SEGMENTS of include/linux/udp.h.
  static constexpr size_t kMaxMessageBytes = 65'000;
  static constexpr size_t kMaxSegments = 64;
  static constexpr size_t kMaxMessages = 32;
  static constexpr size_t kIcrcBytes = 4;

  // Takes the reserved packet, as commit() has it.
  void append(const UdpPath& path, size_t bytes);
  // udp_batch_faults.cpp: the same, where faults are in effect
  void append_through(UdpFaults& faults, const UdpPath& path, size_t bytes);
  /// Frames that were held back and whose time has come. False: none.
  bool append_late(UdpFaults& faults);
  /// False: there is no room.
  bool append(const UdpDeparture& departure);
  void append_harmed(const UdpDeparture& departure);

  void send_all(Flushed& flushed);
  bool joins(const UdpMessage& message, const UdpPath& path, size_t bytes, uint32_t slot) const;
  /// Hands messages from first_message_ on to the kernel in one call, as many as go to the same socket. False: stop.
  bool send_some(Flushed& flushed);
  /// Sends the first message packet by packet, each with IPv4 ID 0. False: stop.
  bool send_singly(Flushed& flushed);
  /// The kernel refused the first message. False: stop.
  bool handle_refusal(int error, Flushed& flushed);
  void drop_first_message(Flushed& flushed);
  void account(const UdpMessage& message, Flushed& flushed);
  void wait_for(std::optional<size_t> family);

  UdpEndpoint& endpoint_;
  std::unique_ptr<std::byte[]> arena_;
  std::array<UdpMessage, kMaxMessages> messages_;
  size_t first_message_ = 0;  // those before it have been sent
  size_t message_count_ = 0;
  size_t used_bytes_ = 0;
  size_t reserved_bytes_ = 0;
  size_t packet_count_ = 0;
  std::optional<size_t> awaited_family_;  // whose socket has no room
};

}  // namespace ringbolt::link
