#include "device/packet_output.h"

namespace ringbolt::device {

bool PacketOutput::try_send() {
  if (!batch_) {
    return true;
  }
  const Network::Sent sent = batch_->send();
  if (sent.lost_packets != 0 || sent.waited_us != 0) [[unlikely]] {
    core_.counts.note(kSharedXmitDiscards, sent.lost_packets);
    core_.counts.note(kSharedXmitWait, sent.waited_us);
    if (sent.too_long_packets != 0 && core_.port->live->misfit_packets.note(core_.qpn, path_mtu_bytes_)) {
      core_.process.tell_soon();
    }
  }
  if (batch_->packet_count() != 0) [[unlikely]] {
    return false;
  }
  batch_.reset();
  return true;
}

bool PacketOutput::send() {
  const bool is_out = try_send();
  if (is_out) {
    has_unsent_.store(false, std::memory_order_relaxed);
  } else if (!has_unsent_.exchange(true, std::memory_order_relaxed)) {
    core_.process.request_service(*core_.queues.send);
    core_.process.request_service(*core_.queues.receive);
  }
  return is_out;
}

void PacketOutput::finish() {
  if (!try_send()) {
    core_.counts.note(kSharedXmitDiscards, batch_->packet_count());
    batch_.reset();
  }
  has_unsent_.store(false);
}

}  // namespace ringbolt::device
