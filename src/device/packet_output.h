#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/assert.h"
#include "device/network.h"
#include "device/packet_sizes.h"
#include "device/queue_pair_core.h"
#include "device/recording.h"
#include "link/udp_message.h"
#include "transport/operation.h"
#include "transport/seal.h"
#include "wire/greeting.h"
#include "wire/packet.h"

namespace ringbolt::device {

/// The packets of one half of a queue pair on their way into the socket: what finds no room there stays here, in its
/// order, for the next call. Under the lock of that half, but for has_unsent().
/// Holds a batch of the network only from reserve() until all of it has left: a batch is 64 KiB.
class PacketOutput {
 public:
  /// `lane` counts what leaves. `path_mtu_bytes`: of the packets, to name it where the network takes less.
  PacketOutput(QueuePairCore& core, cluster::CounterLane& lane, uint32_t path_mtu_bytes)
      : core_(core), lane_(lane), path_mtu_bytes_(path_mtu_bytes) {}

  /// A place for a packet of `bytes`. Empty: what is here already finds no room in the socket.
  std::span<std::byte> reserve(size_t bytes = kMostPacketBytes) {
    return (batch_ ? *batch_ : batch_.emplace(core_.process.network(), core_.port->netdev_index)).reserve(bytes);
  }
  /// Takes the first `bytes` bytes of the reserved place, from BTH to pad.
  void commit(const link::UdpPath& path, size_t bytes) {
    batch_->commit(path, bytes);
    count_sent(lane_, {1, (bytes + wire::kIcrcBytes) / 4});
  }
  /// A packet that does not leave after all.
  void drop() { core_.counts.note(kSharedXmitDiscards); }
  /// Builds the packet at a reserved place for the longest one, sealed with `token`, with the payload that `fill` puts
  /// at the address it is given. False: `fill` says that its bytes are no longer there.
  /// `packet` is patched in place. With a cable that is cut what is built is counted as discarded, and goes nowhere.
  template <class Fill>
  bool build(std::span<std::byte> place, const link::UdpPath& path, transport::OutPacket& packet, uint64_t token,
             Fill fill) {
    if (packet.headers.bth.opcode != wire::kGreeting) {
      transport::seal(packet.headers, token);
    }
    const size_t header = wire::header_bytes(packet.headers.bth.opcode);
    const size_t pad = wire::pad_bytes(packet.length);
    const size_t bytes = header + packet.length + pad + wire::seal_bytes(packet.headers.bth);
    RINGBOLT_ASSERT(bytes <= place.size());  // the engine keeps to the MTU
    place = place.first(bytes);
    wire::emit(packet.headers, place);
    if (!fill(place.data() + header)) {
      return false;
    }
    std::memset(place.data() + header + packet.length, 0, pad);
    if (packet.headers.bth.is_sealed) {
      wire::emit_seal(packet.headers, place.subspan(header + packet.length + pad));
    }
    if (!core_.cable.is_cut_off() && (core_.type == IBV_QPT_RC || core_.port->is_up())) {
      commit(path, bytes);
      record_packet(trace::Kind::packet_sent, core_.qpn, packet.headers.bth, packet.length);
      if (packet.headers.bth.carries_ack) {
        record_packet(trace::Kind::packet_sent, core_.qpn, wire::carried_acknowledgement(packet.headers).bth, 0);
      }
    } else {
      drop();
    }
    return true;
  }
  /// Sends what is here. False: some of it finds no room in the socket, and is tried again when there is, or soon, by
  /// the service thread: whoever sends or polls may do it no more.
  /// A packet that the kernel refuses is lost, and counted: RC sends it again.
  bool send();
  /// Some of what was sent is still here.
  bool is_holding() const { return batch_.has_value(); }
  /// The same, without a lock.
  bool has_unsent() const { return has_unsent_.load(std::memory_order_relaxed); }
  /// Sends what it can for the last time; the rest is lost.
  void finish();

 private:
  bool try_send();

  QueuePairCore& core_;
  cluster::CounterLane& lane_;
  const uint32_t path_mtu_bytes_;
  std::optional<Network::Lease> batch_;  // there between two calls if the socket is full
  // Written under the lock of the half. Relaxed: whoever sees it late has been asked for by request_service().
  std::atomic<bool> has_unsent_{false};
};

}  // namespace ringbolt::device
