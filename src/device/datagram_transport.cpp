// Datagrams of UD queue pairs. Hot path: submit() and receive().

#include "device/datagram_transport.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/explanations.h"
#include "device/failure_notes.h"
#include "device/failures.h"
#include "device/lane_drain.h"
#include "device/limits.h"
#include "device/receive_queue.h"
#include "device/send_queue.h"

namespace ringbolt::device {
namespace {

// So that packets do not starve those of the host's lanes.
constexpr int kMaxDatagramsAtOnce = 256;
// A datagram waits so long for room in its lane; and for the lane itself, which the peer's service thread offers, as
// long as it may be off its core. Then it is lost, as datagrams may be. Nobody there is said at once
// (Process::on_offer).
constexpr uint64_t kPatienceNs = 100'000'000;
constexpr uint64_t kFirstPatienceNs = 2'000'000'000;
constexpr uint32_t kMostInlineBytes = link::kInlineBytes - sizeof(link::DatagramFields);
// What senders set as a rule: the socket does not tell how many hops were left.
constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kUdpProtocol = 17;
constexpr size_t kUdpHeaderBytes = 8;

/// In network byte order.
void put16(std::byte* at, size_t value) {
  at[0] = static_cast<std::byte>(value >> 8U);
  at[1] = static_cast<std::byte>(value);
}

/// The 40 bytes before a datagram hold the IP header that it came with: an IPv6 one, or an IPv4 one in the last 20
/// (InfiniBand specification, annex 17). What the socket does not tell is made up from what must have been there. On
/// the overlay no IP header ever was: there it always has the two GIDs, as in shared memory, where UCX 1.13 awaits
/// them. What is made up: hop limit, don't-fragment, and no traffic class.
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

/// Those of what came through memory: a Global Routing Header (InfiniBand Architecture Specification 1.4, 8.3).
void write_grh(std::byte* grh, const ibv_gid& source, const ibv_gid& target, uint32_t payload) {
  constexpr uint8_t kVersion6 = 0x60;
  constexpr uint8_t kIbaTransport = 0x1b;
  std::memset(grh, 0, kGrhBytes);
  grh[0] = std::byte{kVersion6};
  grh[4] = static_cast<std::byte>(payload >> 8U);
  grh[5] = static_cast<std::byte>(payload);
  grh[6] = std::byte{kIbaTransport};
  grh[7] = std::byte{64};
  std::memcpy(grh + 8, source.raw, sizeof source.raw);
  std::memcpy(grh + 24, target.raw, sizeof target.raw);
}

}  // namespace

DatagramTransport::DatagramTransport(QueuePairCore& core, Lanes& lanes, Inboxes* inboxes)
    : core_(core), lanes_(lanes), inboxes_(inboxes), output_(core, core.counts.first(), mtu_bytes(core.port->mtu)) {}

void DatagramTransport::disconnect() {
  output_.finish();
  if (inboxes_ != nullptr) {
    inboxes_->requests.clear();
    inboxes_->answers.clear();
  }
}

bool DatagramTransport::submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (request.length > (request.is_remote ? mtu_bytes(core_.port->mtu) : kDatagramBytes)) {
    return queue.fail_overlong(entry, request.length);
  }
  Pieces pieces;
  if (!core_.translate({request.pieces, request.pieces_count}, request.is_inline, 0, pieces)) {
    return queue.fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  return request.is_remote ? send_packet(request, pieces, entry) : send_through_lane(queue, request, pieces, entry);
}

void DatagramTransport::push_out(SendQueue&) {
  if (output_.is_holding()) {
    output_.send();
  }
}

/// Complete with success: UD promises nothing else.
void DatagramTransport::lose(SendEntry& entry) {
  core_.counts.note(kSharedXmitDiscards);
  entry.phase = SendPhase::sent;
}

/// What can't get there is told where it was sent: nobody at the other end knows of it.
[[gnu::cold, gnu::noinline]] void DatagramTransport::explain_lost(const SendQueue& queue, const SendEntry& entry,
                                                                  const SendRequest& request,
                                                                  const Connection* connection) {
  core_.when_noting([&](const QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED {
    base::Incident incident;
    incident.call = opcode_text(request.opcode);
    incident.object = fmt::format("queue pair {:#x}", core_.qpn);
    incident.detail = fmt::format("wr_id {}, to queue pair {:#x}", entry.wr_id, request.remote_qpn);
    incident.status = "lost";
    incident.posted = notes.send(queue.place(entry)).site;
    const bool is_nobody = connection != nullptr && (connection->remote == nullptr || connection->is_refused);
    base::explain(
        incident,
        is_nobody ? base::Explanation{fmt::format("no process has a UD queue pair of the number {:#x} there",
                                                  request.remote_qpn),
                                      "send the peer's qp_num over, and use that as remote_qpn"}
        : core_.cable.is_cut_off()
            ? base::Explanation{fmt::format("the cable of {} is cut", core_.port->name), "see `ringbolt status`"}
            : base::Explanation{fmt::format("queue pair {:#x} has taken nothing for {} ms, and its lane is full",
                                            request.remote_qpn, kPatienceNs / 1'000'000),
                                "have the peer poll its completion queue"});
  });
}

bool DatagramTransport::send_through_lane(SendQueue& queue, const SendRequest& request, const Pieces& pieces,
                                          SendEntry& entry) {
  Connection* const connection = lanes_.reach(request.remote_qpn, request.remote_gid);
  if (connection == nullptr || connection->remote == nullptr || core_.cable.is_cut_off()) {
    explain_lost(queue, entry, request, connection);
    lose(entry);
    return true;
  }
  link::LaneProducer::Place place;
  const bool is_inline = request.length <= kMostInlineBytes;
  if (!connection->sender || !connection->make_room(is_inline ? 0 : request.length, place)) {
    const uint64_t now = base::now_ns();
    if (connection->wait_began_ns == 0) {
      connection->wait_began_ns = now;
    }
    const uint64_t patience_ns = connection->sender ? kPatienceNs : connection->is_refused ? 0 : kFirstPatienceNs;
    if (now - connection->wait_began_ns < patience_ns) {
      return false;
    }
    explain_lost(queue, entry, request, connection);
    lose(entry);
    return true;
  }
  connection->wait_began_ns = 0;
  link::LaneProducer& lane = *connection->sender;
  const link::DatagramFields fields{request.qkey, request.source_gid_index, request.target_gid_index,
                                    static_cast<uint8_t>(request.is_loopback ? 1 : 0), 0};
  std::memcpy(lane.next_slot().body, &fields, sizeof fields);
  pieces.gather(0, is_inline ? lane.next_slot().body + sizeof fields : place.data, request.length);
  const bool has_immediate = request.opcode == IBV_WR_SEND_WITH_IMM;
  const unsigned flags = link::kSlotLast | (request.is_solicited ? link::kSlotSolicited : 0U) |
                         (has_immediate ? link::kSlotImmediate : 0U);
  if (is_inline) {
    connection->publish(link::SlotKind::datagram, flags, request.length, request.immediate);
  } else {
    connection->publish(link::SlotKind::datagram, flags, request.length, request.immediate, place);
  }
  // At once, and not with push_out(): each datagram may go to somebody else.
  connection->ring();
  const uint32_t words = kPacketWords + kDethWords + (has_immediate ? kImmediateWords : 0) + (request.length + 3) / 4;
  count_sent(core_.counts.first(), {1, words});
  core_.counts.first().add(kLaneMessages, 1);
  entry.phase = SendPhase::sent;
  return true;
}

bool DatagramTransport::send_packet(const SendRequest& request, const Pieces& pieces, SendEntry& entry) {
  wire::Headers headers;
  headers.bth.opcode = request.opcode == IBV_WR_SEND_WITH_IMM ? wire::kUdSendOnlyImmediate : wire::kUdSendOnly;
  headers.bth.pad_count = static_cast<uint8_t>(wire::pad_bytes(request.length));
  if (core_.cable.is_cut_off() || !core_.port->is_up()) {
    lose(entry);
    return true;
  }
  const size_t header = wire::header_bytes(headers.bth.opcode);
  const size_t bytes = header + request.length + headers.bth.pad_count;
  const auto place = output_.reserve(bytes);
  if (place.empty()) {
    return false;  // the socket is full; a path MTU and headers always fit into a batch
  }
  headers.bth.is_solicited = request.is_solicited;
  headers.bth.dest_qp = request.remote_qpn;
  headers.bth.psn = next_psn_++ & wire::kPsnMask;
  headers.deth = {request.qkey, core_.qpn};
  headers.immediate = request.immediate;
  wire::emit(headers, place);
  pieces.gather(0, place.data() + header, request.length);
  std::memset(place.data() + header + request.length, 0, headers.bth.pad_count);
  link::UdpPath path;
  path.source = request.source_gid;
  path.destination = request.remote_gid;
  path.interface_index = core_.port->netdev_index;
  path.traffic_class = request.traffic_class;
  output_.commit(path, bytes);
  record_packet(trace::Kind::packet_sent, core_.qpn, headers.bth, request.length);
  core_.counts.first().add(kLaneMessages, 1);
  entry.phase = SendPhase::sent;
  return true;
}

/// What found no lane, or no room in one, tries again.
void DatagramTransport::check_timers(SendQueue& queue, uint64_t) {
  if (core_.sends.has_queued()) {
    queue.advance();
  }
}

bool DatagramTransport::has_arrived() const {
  bool has_some = inboxes_ != nullptr && !inboxes_->requests.is_empty();
  lanes_.each_receiving([&](const Connection& connection) { has_some = has_some || connection.receiver.has_slot(); });
  return has_some;
}

bool DatagramTransport::may_have_news() const {
  bool has_some = false;
  lanes_.each_receiving([&](const Connection& connection) { has_some = has_some || connection.receiver.has_news(); });
  return has_some;
}

void DatagramTransport::receive(ReceiveQueue& queue, CompletionQueue& cq) {
  InboundPacket packet;
  for (int taken = 0;
       inboxes_ != nullptr && taken < kMaxDatagramsAtOnce && cq.has_room() && inboxes_->requests.pop(packet); ++taken) {
    receive_packet(queue, cq, packet);
  }
  bool had_room = true;
  lanes_.each_receiving_from(turn_, [&](Connection& connection) RINGBOLT_REQUIRES(receive_half, cq.lock) {
    if (!cq.has_room() && std::exchange(had_room, false)) {
      turn_ = connection.remote_qpn;  // so that each peer has its turn, however much the others send
    }
    drain_lane(core_, cq, connection, [&](const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_half, cq.lock) {
      return receive_slot(queue, cq, connection, header);
    });
  });
}

/// False: the queue pair has failed by it.
bool DatagramTransport::receive_slot(ReceiveQueue& queue, CompletionQueue& cq, Connection& connection,
                                     const link::SlotHeader& header) {
  if (header.kind == link::SlotKind::datagram) {  // no peer of ours sends anything else
    take_slot(queue, cq, connection, header);
    if (core_.state() == IBV_QPS_ERR) {
      return false;
    }
  }
  connection.receiver.release();
  return true;
}

/// Its Q_Key is another one, or there is no receive for it.
template <class Source>
[[gnu::cold, gnu::noinline]] void DatagramTransport::explain_unwanted(ReceiveQueue& queue, const Source& source,
                                                                      uint32_t qkey) {
  core_.when_noting([&](QueuePairNotes&) RINGBOLT_NOT_ANALYSED {
    base::Explanation why{
        fmt::format("it came with the Q_Key {:#x}, and the queue pair has {:#x}", qkey, core_.attributes.qkey),
        "send with the receiver's Q_Key: wr.ud.remote_qkey is what it gave to ibv_modify_qp"};
    if (qkey == core_.attributes.qkey) {
      why = {receives_text(core_, queue.ring().count()), "post receives before datagrams are sent, and more of them"};
    }
    if constexpr (std::is_same_v<Source, Connection>) {
      explain_dropped(core_, fmt::format("queue pair {:#x}", source.remote_qpn), std::move(why));
    } else {
      explain_dropped(core_, source_text(source.view, source.flow), std::move(why));
    }
  });
}

/// A datagram that nobody waits for is lost.
void DatagramTransport::take_slot(ReceiveQueue& queue, CompletionQueue& cq, Connection& connection,
                                  const link::SlotHeader& header) {
  link::LaneConsumer& lane = connection.receiver;
  const auto fields = lane.fields<link::DatagramFields>();
  const bool is_inline = header.length <= kMostInlineBytes;
  const std::byte* const data = is_inline ? lane.inline_body() + sizeof fields : lane.payload(header);
  const auto& own = core_.port->known_gids;
  const auto& sources = fields.is_loopback != 0 ? own : core_.port->peer_gids;
  // All of it is the sender's word: indices are into tables of ours, and checked.
  const bool is_wanted = data != nullptr && header.length <= kDatagramBytes && fields.qkey == core_.attributes.qkey &&
                         fields.source_gid_index < sources.size() && fields.target_gid_index < own.size();
  const bool has_immediate = (header.flags & link::kSlotImmediate) != 0;
  count_received(core_.counts.second(),
                 {1, kPacketWords + kDethWords + (has_immediate ? kImmediateWords : 0) + (header.length + 3) / 4});
  if (!is_wanted || !queue.open()) {
    core_.counts.note(kSharedRcvDrops);
    if (is_wanted) {
      core_.counts.note(kSharedOutOfBuffer);
    }
    if (is_wanted || fields.qkey != core_.attributes.qkey) {
      explain_unwanted(queue, connection, fields.qkey);
    }
    return;
  }
  const bool is_allowed = queue.translate();
  if (!is_allowed || kGrhBytes + header.length > queue.current().pieces.length()) {
    queue.note_failure(is_allowed ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR, kGrhBytes + header.length, false);
    queue.fail(cq, is_allowed ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR);
    core_.enter_error(IBV_WC_WR_FLUSH_ERR);
    return;
  }
  std::array<std::byte, kGrhBytes> grh;
  write_grh(grh.data(), sources[fields.source_gid_index], own[fields.target_gid_index], header.length);
  queue.place(0, grh.data(), kGrhBytes);
  queue.place(kGrhBytes, data, header.length);
  queue.complete(cq, {connection.remote_qpn, IBV_WC_RECV, kGrhBytes + header.length, header.flags, header.immediate});
}

void DatagramTransport::receive_packet(ReceiveQueue& queue, CompletionQueue& cq, const InboundPacket& packet) {
  const wire::Headers& headers = packet.view.headers;
  count_received(core_.counts.second(), load_of(packet.view));
  if (headers.deth.qkey != core_.attributes.qkey) {
    explain_unwanted(queue, packet, headers.deth.qkey);
    return drop(Drop::wrong_qkey);
  }
  if (core_.state() == IBV_QPS_ERR) {
    return drop(Drop::not_ready);
  }
  if (!queue.open()) {
    explain_unwanted(queue, packet, headers.deth.qkey);
    return drop(Drop::no_receive);
  }
  const auto length = static_cast<uint32_t>(packet.view.payload.size());
  const bool is_allowed = queue.translate();
  if (!is_allowed || kGrhBytes + length > queue.current().pieces.length()) {
    queue.note_failure(is_allowed ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR, kGrhBytes + length, false);
    queue.fail(cq, is_allowed ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR);
    core_.enter_error(IBV_WC_WR_FLUSH_ERR);
    return;
  }
  const auto route = route_header(packet, core_.port->is_overlay);
  queue.place(0, route.data(), kGrhBytes);
  queue.place(kGrhBytes, packet.view.payload.data(), length);
  const unsigned flags = (headers.bth.is_solicited ? link::kSlotSolicited : 0U) |
                         (wire::has_immediate(headers.bth.opcode) ? link::kSlotImmediate : 0U);
  queue.complete(cq, {headers.deth.source_qp, IBV_WC_RECV, kGrhBytes + length, flags, headers.immediate});
}

}  // namespace ringbolt::device
