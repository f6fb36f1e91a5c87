#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/adaptive_mutex.h"
#include "base/unique_fd.h"
#include "link/udp_batch.h"
#include "link/udp_buffer.h"
#include "link/udp_counters.h"
#include "link/udp_datagram.h"
#include "link/udp_faults.h"
#include "link/udp_message.h"
#include "link/udp_segmentation.h"
#include "wire/flow.h"

namespace ringbolt::link {

class UdpForwarder;
class UdpGroup;

/// RoCEv2 datagrams in and out of UDP port 4791, for IPv4 and IPv6. Several processes of one user share the port: the
/// kernel hands each datagram to the process whose slot stands in the top bits of its DestQP, and what reaches a wrong
/// one nevertheless is passed on (docs/formats/udp-sharing.md). One object per process. Thread-safe.
/// Owned by the network side of a process. Receiving has one lock, which is only tried, so that a thread that is off
/// its core in there holds nobody up. Nothing of a packet is looked at but its length, its DestQP, and whether it is a
/// probe.
class UdpEndpoint {
 public:
  struct Options {
    std::string slots_directory;  ///< exists, is ours alone; shared by all processes that share the port
    uint32_t slot = 0;            ///< this process' number, unique in the folder
    uint32_t slot_shift = 14;     ///< QPN >> slot_shift = slot
    uint16_t port = wire::kRocePort;
    /// Called when members of the group have come, gone or died, soon after, by a thread that receives: under a lock,
    /// so it should only take note.
    std::function<void()> on_members_changed{};
  };

  /// Opens the sockets and joins the processes that share the port. Throws base::Error that names who holds the port.
  static std::unique_ptr<UdpEndpoint> open(const Options& options);

  /// Leaves the group. Packets that had come in for others are passed on first. Buffers that are held stay.
  ~UdpEndpoint();
  UdpEndpoint(const UdpEndpoint&) = delete;
  UdpEndpoint& operator=(const UdpEndpoint&) = delete;

  /// One packet that came in: from BTH to ICRC. Its length is checked (a multiple of 4, kMinUdpPacketBytes to
  /// kMaxUdpPacketBytes) and that its DestQP is in our slot, or 1, unless a fault turned a bit of it; nothing else is,
  /// the ICRC neither.
  struct Arrived {
    // References and spans are good until the sink returns; keep() makes those into `buffer` last.
    const wire::Flow& flow;
    uint32_t interface_index;
    uint16_t segment;  ///< its place in a GRO datagram: very probably its IPv4 ID if the sender is one of ours
    std::span<const std::byte> packet;
    UdpBuffer& buffer;

    /// Keeps `packet` valid beyond the call of the sink.
    UdpBufferRef keep() const { return UdpBufferRef(buffer); }
  };

  /// Hands the packets of up to `max_datagrams` datagrams to `sink(const Arrived&)` and returns how many packets that
  /// were. Never blocks: nothing when another thread is in here, for whom whoever waits for descriptor() should make
  /// way. A sink must not throw, and is called under a lock: packets of one flow arrive in order. A socket that was
  /// quiet is looked at every kQuietTurns-th call only, for those who poll, and who found one datagram alone, as in a
  /// ping-pong, is not made to look for a second one each time: a system call in vain before the program gets the
  /// first. Who was woken by the descriptor asks for a thorough look at all of them, until nothing more is there.
  template <class Sink>
  std::optional<size_t> receive(Sink&& sink, size_t max_datagrams, bool is_thorough = false);

  /// Readable when receive() has something to do or when there is room for a batch's leftovers. For poll and epoll; do
  /// not read it.
  int descriptor() const { return epoll_.get(); }

  /// From now on these faults befall the packets of these ports, both ways. Held back packets leave with some batch's
  /// flush() and get in with receive(), for which descriptor() becomes readable.
  void set_faults(const fault::Plan& plan, std::span<const UdpFaultPort> ports);
  /// A batch's flush() has something to send that was held back.
  bool has_late_packets(uint64_t now_ns) const { return faults() != nullptr && faults_.has_departures(now_ns); }
  std::vector<UdpFaults::Seen> faults_seen() const { return faults_.seen(); }

  UdpCounters counters() const;
  bool has_ipv4() const { return sockets_[0].is_open(); }
  bool has_ipv6() const { return sockets_[1].is_open(); }

  /// In a forked child: closes the descriptors and leaves the parent's group as it is.
  void abandon_after_fork();

 private:
  friend class UdpBatch;
  static constexpr size_t kSources = 3;  // IPv4, IPv6, what other processes pass on
  // In turns, that is calls of receive(): a source that had something is looked at in each of the next kHotTurns.
  static constexpr uint32_t kQuietTurns = 16;
  static constexpr uint32_t kHotTurns = 4096;
  static constexpr uint32_t kLoneTurns = 16;  // a queue that builds up is found within so many

  explicit UdpEndpoint(const Options& options);

  /// Null while there are none: all that faults cost then.
  UdpFaults* faults() { return faults_.is_on() ? &faults_ : nullptr; }
  const UdpFaults* faults() const { return faults_.is_on() ? &faults_ : nullptr; }

  static bool is_whole(std::span<const std::byte> packet) {
    return packet.size() >= kMinUdpPacketBytes && packet.size() <= kMaxUdpPacketBytes && packet.size() % 4 == 0;
  }
  bool is_mine(std::span<const std::byte> packet) const {
    if (!is_whole(packet)) {
      return false;
    }
    const uint32_t qpn = dest_qp(packet);
    if (is_probe(packet)) {
      return false;
    }
    return qpn >> options_.slot_shift == options_.slot || qpn == kGeneralServicesQp;
  }
  void begin_turn(bool is_thorough) RINGBOLT_REQUIRES(receiving_);
  void look_after_group() RINGBOLT_REQUIRES(receiving_);
  /// Keeps account of datagrams that came alone.
  void note_found(size_t source) RINGBOLT_REQUIRES(receiving_);
  void note_empty(size_t source) RINGBOLT_REQUIRES(receiving_);
  /// The next datagram of this turn, in datagram_. False: nothing more.
  bool next_datagram() RINGBOLT_REQUIRES(receiving_);
  bool read_source(size_t source) RINGBOLT_REQUIRES(receiving_);
  bool read_socket(size_t family) RINGBOLT_REQUIRES(receiving_);
  /// A packet that came in, or none, goes through the faults into late_.
  void pass_through(UdpFaults& faults, std::span<const std::byte> packet, uint16_t segment)
      RINGBOLT_REQUIRES(receiving_);
  template <class Sink>
  void hand_over_late(Sink& sink) RINGBOLT_REQUIRES(receiving_);
  /// Deals with the packets at `offset` that are not ours: passes them on or drops them. Returns how many bytes they
  /// are.
  size_t divert(size_t offset) RINGBOLT_REQUIRES(receiving_);
  /// While at least one batch waits for that socket, descriptor() reports room in it.
  void add_waiting_batch(size_t family);
  void remove_waiting_batch(size_t family);
  void watch_socket(size_t family, uint32_t events) RINGBOLT_REQUIRES(waiting_lock_);

  /// Of our own group, see udp_selector.h: an opcode that no packet of a queue pair has.
  static bool is_probe(std::span<const std::byte> packet) { return packet[0] == std::byte{0x52}; }

  static constexpr uint32_t kAllSources = (1U << kSources) - 1;
  static constexpr uint32_t kGeneralServicesQp = 1;  // connection management: any process may get it

  const Options options_;
  const pid_t owner_;
  const std::shared_ptr<UdpBufferPool> pool_;
  UdpTally tally_;
  std::array<base::UniqueFd, 2> sockets_;  // IPv4, IPv6
  std::unique_ptr<UdpForwarder> forwarder_;
  std::unique_ptr<UdpGroup> group_;
  base::UniqueFd epoll_;
  base::AdaptiveMutex waiting_lock_;
  std::array<uint32_t, 2> waiting_batches_ RINGBOLT_GUARDED_BY(waiting_lock_){};  // by socket
  UdpSegmentationMemory segmentation_;
  UdpFaults faults_;

  base::AdaptiveMutex receiving_;  // only ever tried
  UdpDatagram datagram_ RINGBOLT_GUARDED_BY(receiving_);
  UdpBufferRef spare_ RINGBOLT_GUARDED_BY(receiving_);
  std::array<uint32_t, kSources> hot_turns_ RINGBOLT_GUARDED_BY(receiving_){};
  /// Turns in which a source is not looked at again after its first datagram.
  std::array<uint32_t, kSources> lone_turns_ RINGBOLT_GUARDED_BY(receiving_){};
  std::array<uint32_t, kSources> found_ RINGBOLT_GUARDED_BY(receiving_){};  // datagrams in this turn
  bool is_thorough_ RINGBOLT_GUARDED_BY(receiving_) = false;
  uint32_t turn_ RINGBOLT_GUARDED_BY(receiving_) = 0;
  uint32_t due_ RINGBOLT_GUARDED_BY(receiving_) = 0;  // bit i: source i has not been found empty in this turn
  size_t source_ RINGBOLT_GUARDED_BY(receiving_) = 0;
  bool is_leaving_ RINGBOLT_GUARDED_BY(receiving_) = false;
  std::vector<UdpArrival> late_ RINGBOLT_GUARDED_BY(receiving_);  // what faults let in
};

template <class Sink>
void UdpEndpoint::hand_over_late(Sink& sink) {
  for (const UdpArrival& late : late_) {
    if (is_whole(late.packet)) {
      sink(Arrived{late.flow, late.interface_index, late.segment, late.packet, *late.buffer.get()});
    } else {
      count_alone(tally_.dropped_runts);
    }
  }
  late_.clear();
}

template <class Sink>
std::optional<size_t> UdpEndpoint::receive(Sink&& sink, size_t max_datagrams, bool is_thorough) {
  if (!receiving_.try_lock()) {
    return std::nullopt;
  }
  const base::LockGuard lock(receiving_, base::kAdoptLock);
  begin_turn(is_thorough);
  size_t packets = 0;
  uint64_t bytes = 0;
  UdpFaults* const faults = this->faults();
  if (faults != nullptr) [[unlikely]] {
    pass_through(*faults, {}, 0);
    hand_over_late(sink);
  }
  for (size_t i = 0; i < max_datagrams && next_datagram(); ++i) {
    uint16_t segment = 0;
    for (size_t offset = 0; offset < datagram_.bytes; ++segment) {
      const std::span<const std::byte> packet = datagram_.packet_at(offset);
      if (!is_mine(packet)) [[unlikely]] {
        offset += divert(offset);  // and those behind it that go the same way
        segment = static_cast<uint16_t>((offset - 1) / datagram_.segment_bytes);
        continue;
      }
      if (faults != nullptr) [[unlikely]] {
        pass_through(*faults, packet, segment);
        hand_over_late(sink);
      } else {
        sink(Arrived{datagram_.flow, datagram_.interface_index, segment, packet, *datagram_.buffer.get()});
      }
      offset += packet.size();
      bytes += packet.size();
      ++packets;
    }
    datagram_.buffer.reset();
  }
  if (packets > 0) {
    count_alone(tally_.received_packets, packets);
    count_alone(tally_.received_bytes, bytes);
  }
  return packets;
}

}  // namespace ringbolt::link
