// Datagrams of UD queue pairs through the network: each is one packet, and nothing answers.

#include <array>
#include <cstring>

#include "device/network.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

constexpr int kMaxDatagramsAtOnce = 256;
constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kUdpProtocol = 17;
constexpr size_t kUdpHeaderBytes = 8;

void put16(std::byte* at, size_t value) {
  at[0] = static_cast<std::byte>(value >> 8U);
  at[1] = static_cast<std::byte>(value);
}

/// The 40 bytes before a datagram hold the IP header that it came with: an IPv6 one, or an IPv4 one in the last 20
/// (InfiniBand specification, annex 17). What the socket does not tell is made up from what must have been there. On
/// the overlay no IP header ever was: there it always has the two GIDs, as in shared memory, where UCX 1.13 awaits
/// them.
std::array<std::byte, kGrhBytes> route_header(const InboundPacket& packet, bool is_overlay) {
  std::array<std::byte, kGrhBytes> header{};
  const wire::Flow& flow = packet.flow;
  const size_t datagram = kUdpHeaderBytes + wire::header_bytes(packet.view.headers.bth.opcode) +
                          packet.view.payload.size() + packet.view.headers.bth.pad_count + wire::kIcrcBytes;
  if (wire::is_ipv4(flow) && !is_overlay) {
    constexpr size_t kAt = 20;
    std::byte* ip = header.data() + kAt;
    ip[0] = std::byte{0x45};
    put16(ip + 2, kAt + datagram);
    ip[6] = std::byte{0x40};  // don't fragment
    ip[8] = std::byte{kHopLimit};
    ip[9] = std::byte{kUdpProtocol};
    std::memcpy(ip + 12, flow.source.data() + 12, 4);
    std::memcpy(ip + 16, flow.destination.data() + 12, 4);
    uint32_t sum = 0;
    for (size_t i = 0; i < kAt; i += 2) {
      sum += (std::to_integer<uint32_t>(ip[i]) << 8U) | std::to_integer<uint32_t>(ip[i + 1]);
    }
    sum = (sum & 0xffffU) + (sum >> 16U);
    put16(ip + 10, ~(sum + (sum >> 16U)) & 0xffffU);
    return header;
  }
  header[0] = std::byte{0x60};
  put16(header.data() + 4, datagram);
  header[6] = std::byte{kUdpProtocol};
  header[7] = std::byte{kHopLimit};
  std::memcpy(header.data() + 8, flow.source.data(), flow.source.size());
  std::memcpy(header.data() + 24, flow.destination.data(), flow.destination.size());
  return header;
}

}  // namespace

bool QueuePair::send_datagram_out(SendEntry& entry, const SendRequest& request, const Pieces& pieces) {
  wire::Headers headers;
  const bool has_immediate = request.opcode == IBV_WR_SEND_WITH_IMM;
  headers.bth.opcode = has_immediate ? wire::kUdSendOnlyImmediate : wire::kUdSendOnly;
  headers.bth.pad_count = static_cast<uint8_t>(wire::pad_bytes(request.length));
  if (is_cut_off() || !context_.port().is_up()) {
    counts_.note(kSharedXmitDiscards);
    entry.phase = SendPhase::sent;  // lost
    return true;
  }
  const size_t header = wire::header_bytes(headers.bth.opcode);
  const size_t bytes = header + request.length + headers.bth.pad_count;
  Network::Lease& out = lease(send_.out);
  const auto place = out.reserve(bytes);
  if (place.empty()) {
    return false;  // the socket is full; a path MTU and headers always fit into a batch
  }
  headers.bth.is_solicited = request.is_solicited;
  headers.bth.dest_qp = request.remote_qpn;
  headers.bth.psn = send_.next_datagram_psn++ & wire::kPsnMask;
  headers.deth = {request.qkey, qpn_};
  headers.immediate = request.immediate;
  entry.phase = SendPhase::sent;
  wire::emit(headers, place);
  pieces.gather(0, place.data() + header, request.length);
  std::memset(place.data() + header + request.length, 0, headers.bth.pad_count);
  link::UdpPath path;
  path.source = request.source_gid;
  path.destination = request.remote_gid;
  path.interface_index = context_.port().netdev_index;
  path.traffic_class = request.traffic_class;
  commit(out, path, bytes, counts_.first());
  counts_.first().add(kLaneMessages, 1);
  return true;
}

void QueuePair::receive_datagrams(CompletionQueue& cq) {
  InboundPacket packet;
  for (int taken = 0; taken < kMaxDatagramsAtOnce && cq.has_room() && inboxes_->requests.pop(packet); ++taken) {
    receive_datagram(cq, packet);
  }
}

void QueuePair::receive_datagram(CompletionQueue& cq, const InboundPacket& packet) {
  const wire::Headers& headers = packet.view.headers;
  count_received(counts_.second(), load_of(packet.view));
  if (headers.deth.qkey != receive_attributes().qkey) {
    return drop(Drop::wrong_qkey);
  }
  if (state_.load(std::memory_order_relaxed) == IBV_QPS_ERR) {
    return drop(Drop::not_ready);
  }
  if (!take_posted()) {
    return drop(Drop::no_receive);
  }
  receive_.current.pieces.arena = {};
  const auto length = static_cast<uint32_t>(packet.view.payload.size());
  const bool is_allowed = translate({receive_.current.wanted.data(), receive_.current.wanted_count}, false,
                                    IBV_ACCESS_LOCAL_WRITE, receive_.current.pieces);
  if (!is_allowed || kGrhBytes + length > receive_.current.pieces.length()) {
    receive_.current.is_open = false;
    push_failed_receive(cq, receive_.current.wr_id, is_allowed ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR);
    enter_error(IBV_WC_WR_FLUSH_ERR);
    return;
  }
  const auto route = route_header(packet, context_.port().is_overlay);
  receive_.current.pieces.scatter(0, route.data(), kGrhBytes);
  receive_.current.pieces.scatter(kGrhBytes, packet.view.payload.data(), length);
  link::SlotHeader header;
  header.flags = static_cast<uint8_t>((headers.bth.is_solicited ? link::kSlotSolicited : 0U) |
                                      (wire::has_immediate(headers.bth.opcode) ? link::kSlotImmediate : 0U));
  header.immediate = headers.immediate;
  complete_receive(cq, headers.deth.source_qp, header, IBV_WC_RECV, kGrhBytes + length);
}

}  // namespace ringbolt::device
