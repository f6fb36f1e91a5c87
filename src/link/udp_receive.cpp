// Hot path: no allocation per packet, and no lock but the one that keeps a second thread out.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "link/udp_endpoint.h"
#include "link/udp_forwarder.h"
#include "link/udp_group.h"

namespace ringbolt::link {
namespace {

constexpr size_t kForwarded = 2;

/// Room for in6_pktinfo and the segment size.
struct Control {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(int))> bytes;
};

template <class Value>
Value value_of(const cmsghdr* control) {
  Value value{};
  if (control->cmsg_len >= CMSG_LEN(sizeof value)) {
    std::memcpy(&value, CMSG_DATA(control), sizeof value);
  }
  return value;
}

wire::Address mapped(const in_addr& address) {
  std::array<uint8_t, 4> bytes;
  std::memcpy(bytes.data(), &address, bytes.size());
  return wire::ipv4_address(bytes[0], bytes[1], bytes[2], bytes[3]);
}

wire::Address plain(const in6_addr& address) {
  wire::Address bytes;
  std::memcpy(bytes.data(), &address, bytes.size());
  return bytes;
}

/// Where the datagram came to. False if the kernel did not say.
bool read_control(msghdr& header, UdpDatagram& datagram) {
  bool has_address = false;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
      const auto info = value_of<in_pktinfo>(control);
      datagram.flow.destination = mapped(info.ipi_addr);
      datagram.interface_index = static_cast<uint32_t>(info.ipi_ifindex);
      has_address = true;
    } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
      const auto info = value_of<in6_pktinfo>(control);
      datagram.flow.destination = plain(info.ipi6_addr);
      datagram.interface_index = info.ipi6_ifindex;
      has_address = true;
    } else if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
      const auto bytes = value_of<int>(control);
      if (bytes > 0) {
        datagram.segment_bytes = static_cast<size_t>(bytes);
      }
    }
  }
  return has_address;
}

}  // namespace

/// Which sources are looked at in this call: those that had something lately, or all.
void UdpEndpoint::begin_turn(bool is_thorough) {
  due_ = 0;
  found_ = {};
  is_thorough_ = is_thorough;
  is_thorough |= ++turn_ % kQuietTurns == 0;
  for (size_t source = 0; source < kSources; ++source) {
    if (hot_turns_[source] > 0) {
      --hot_turns_[source];
      due_ |= 1U << source;
    } else if (is_thorough) {
      due_ |= 1U << source;
    }
  }
  if (is_thorough || forwarder_->has_waiting()) {
    look_after_group();
  }
}

void UdpEndpoint::look_after_group() {
  if (group_->settle_if_needed()) {
    count_alone(tally_.group_changes);
    if (options_.on_members_changed) {
      options_.on_members_changed();
    }
  }
  if (forwarder_->has_waiting()) {
    count_alone(tally_.forward_failures, forwarder_->retry());
  }
}

void UdpEndpoint::note_found(size_t source) {
  hot_turns_[source] = kHotTurns;
  if (++found_[source] == 1 && lone_turns_[source] > 0 && !is_thorough_) {
    --lone_turns_[source];
    due_ &= ~(1U << source);
  }
}

void UdpEndpoint::note_empty(size_t source) {
  due_ &= ~(1U << source);
  if (found_[source] == 1) {
    lone_turns_[source] = kLoneTurns;
  }
}

bool UdpEndpoint::next_datagram() {
  // One from each source in turn, so that a flood in one does not starve the others.
  while (due_ != 0) {
    source_ = source_ + 1 == kSources ? 0 : source_ + 1;
    if ((due_ & 1U << source_) == 0) {
      continue;
    }
    if (!spare_.is_held() && !(spare_ = pool_->take_large()).is_held()) {
      count_alone(tally_.no_buffer);
      return false;
    }
    if (!read_source(source_)) {
      note_empty(source_);
      continue;
    }
    note_found(source_);
    // With no small one left it keeps the large one.
    if (datagram_.bytes <= UdpBufferPool::kSmallBytes) {
      if (UdpBufferRef small = pool_->take_small(); small.is_held()) {
        std::memcpy(small.get()->data(), spare_.get()->data(), datagram_.bytes);
        datagram_.buffer = std::move(small);
        return true;
      }
    }
    datagram_.buffer = std::move(spare_);
    return true;
  }
  return false;
}

bool UdpEndpoint::read_source(size_t source) {
  constexpr int kMaxOddities = 16;
  for (int i = 0; i < kMaxOddities; ++i) {
    if (source != kForwarded) {
      return sockets_[source].is_open() && read_socket(source);
    }
    datagram_.buffer = spare_;
    const UdpForwarder::Read what = forwarder_->read(datagram_);
    datagram_.buffer.reset();
    if (what == UdpForwarder::Read::nothing || what == UdpForwarder::Read::packets) {
      return what == UdpForwarder::Read::packets;
    }
    if (what == UdpForwarder::Read::malformed) {
      count_alone(tally_.dropped_malformed);
    } else if (!is_leaving_) {
      group_->suspect();
      look_after_group();
    }
  }
  return false;
}

bool UdpEndpoint::read_socket(size_t family) {
  // An error that ICMP left behind is reported once and takes the place of a datagram.
  // So that peers that refuse everything (ICMP) do not keep a receiver in here.
  constexpr int kMaxErrors = 16;
  for (int i = 0; i < kMaxErrors; ++i) {
    Control control;
    union {
      sockaddr_in v4;
      sockaddr_in6 v6;
    } source;
    iovec part{spare_.get()->data(), spare_.get()->capacity()};
    msghdr header{};
    header.msg_name = &source;
    header.msg_namelen = sizeof source;
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    const ssize_t length = recvmsg(sockets_[family].get(), &header, MSG_DONTWAIT);
    if (length < 0) {
      if (errno == EAGAIN) {
        return false;
      }
      if (errno != EINTR) {
        count(tally_.unreachable);
      }
      continue;
    }
    datagram_.bytes = static_cast<size_t>(length);
    datagram_.segment_bytes = datagram_.bytes;
    datagram_.is_forwarded = false;
    count_alone(tally_.received_datagrams);
    if (length == 0) {
      count_alone(tally_.dropped_runts);
      continue;
    }
    // Without the address that it came to its ICRC can't be checked.
    if (!read_control(header, datagram_) || (header.msg_flags & MSG_TRUNC) != 0) {
      count_alone(tally_.dropped_malformed);
      continue;
    }
    datagram_.flow.source = family == 0 ? mapped(source.v4.sin_addr) : plain(source.v6.sin6_addr);
    datagram_.flow.source_port = ntohs(family == 0 ? source.v4.sin_port : source.v6.sin6_port);
    datagram_.flow.destination_port = options_.port;
    return true;
  }
  return false;
}

void UdpEndpoint::pass_through(UdpFaults& faults, std::span<const std::byte> packet, uint16_t segment) {
  const uint64_t now = base::now_ns();
  if (packet.empty()) {
    faults.take_arrivals(now, late_);
    return;
  }
  const auto at = static_cast<size_t>(packet.data() - datagram_.buffer.get()->data());
  faults.arrive({datagram_.flow,
                 datagram_.interface_index,
                 segment,
                 {datagram_.buffer.get()->data() + at, packet.size()},
                 datagram_.buffer},
                now, late_);
}

size_t UdpEndpoint::divert(size_t offset) {
  const std::span<const std::byte> packet = datagram_.packet_at(offset);
  if (packet.size() < kMinUdpPacketBytes || packet.size() % 4 != 0) {
    count_alone(tally_.dropped_runts);
    return packet.size();
  }
  if (packet.size() > kMaxUdpPacketBytes) {
    count_alone(tally_.dropped_oversize);
    return packet.size();
  }
  if (is_probe(packet)) {
    if (source_ >= kForwarded || !group_->take_probe(source_, packet)) {
      count_alone(tally_.dropped_strangers);
    }
    return packet.size();
  }
  const uint32_t qpn = dest_qp(packet);
  const uint32_t slot =
      qpn == kGeneralServicesQp ? group_->another().value_or(options_.slot) : qpn >> options_.slot_shift;
  // The packets behind it that go the same way go with it.
  size_t bytes = packet.size();
  uint64_t packets = 1;
  while (offset + bytes < datagram_.bytes) {
    const std::span<const std::byte> next = datagram_.packet_at(offset + bytes);
    if (next.size() < kMinUdpPacketBytes || dest_qp(next) != qpn) {
      break;
    }
    bytes += next.size();
    ++packets;
  }
  if (slot == options_.slot || datagram_.is_forwarded) {
    count_alone(tally_.dropped_strangers, packets);
    return bytes;
  }
  // Tried for any slot: one that joined while we were stopped is not known to us yet.
  // A forwarded packet is never passed on again: two processes that disagree would send it to and fro.
  switch (forwarder_->pass_on(slot, datagram_, offset, bytes)) {
    case UdpForwarder::PassedOn::yes:
      count_alone(tally_.forwarded_packets, packets);
      group_->report_stray(slot);
      break;
    case UdpForwarder::PassedOn::nobody_there:
      count_alone(tally_.dropped_strangers, packets);
      break;
    case UdpForwarder::PassedOn::lost:
      count_alone(tally_.forward_failures, packets);
      group_->report_stray(slot);
      break;
  }
  return bytes;
}

}  // namespace ringbolt::link
