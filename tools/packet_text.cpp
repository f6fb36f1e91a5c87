#include "packet_text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "wire/bytes.h"
#include "wire/cm_message.h"
#include "wire/cm_private.h"
#include "wire/greeting.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/selective_ack.h"
#include "wire/syndrome.h"

namespace ringbolt::tools {
namespace {

std::string service_of(uint64_t id) {
  const uint16_t port = wire::cm_service_port(id);
  switch (wire::cm_port_space(id)) {
    case wire::kPortSpaceTcp:
      return fmt::format("TCP port {}", port);
    case wire::kPortSpaceUdp:
      return fmt::format("UDP port {}", port);
    case wire::kPortSpaceIb:
      return fmt::format("IB port {}", port);
    case wire::kPortSpaceIpoib:
      return fmt::format("IPoIB port {}", port);
    default:
      return fmt::format("service {:#x}", id);
  }
}

std::string answered_of(wire::CmAnswered answered) {
  switch (answered) {
    case wire::CmAnswered::req:
      return "the REQ";
    case wire::CmAnswered::rep:
      return "the REP";
    default:
      return "no message";
  }
}

struct Words {
  std::string operator()(const wire::CmReq& req) const {
    const char* transport = req.transport == wire::CmTransport::uc   ? "UC"
                            : req.transport == wire::CmTransport::rc ? "RC"
                                                                     : "other";
    return fmt::format("REQ id {:#x} to {}, {} QP {:#x} PSN {}, reads {}/{}, retries {}, RNR retries {}", req.local_id,
                       service_of(req.service_id), transport, req.local_qpn, req.starting_psn, req.responder_resources,
                       req.initiator_depth, req.retry_count, req.rnr_retry_count);
  }
  std::string operator()(const wire::CmRep& rep) const {
    return fmt::format("REP id {:#x} to {:#x}, QP {:#x} PSN {}, reads {}/{}, RNR retries {}", rep.local_id,
                       rep.remote_id, rep.local_qpn, rep.starting_psn, rep.responder_resources, rep.initiator_depth,
                       rep.rnr_retry_count);
  }
  std::string operator()(const wire::CmRtu& rtu) const {
    return fmt::format("RTU id {:#x} to {:#x}", rtu.local_id, rtu.remote_id);
  }
  std::string operator()(const wire::CmMra& mra) const {
    return fmt::format("MRA id {:#x} to {:#x}: {} takes longer", mra.local_id, mra.remote_id,
                       answered_of(mra.answered));
  }
  std::string operator()(const wire::CmRej& rej) const {
    return fmt::format("REJ id {:#x} to {:#x}: {} is refused, reason {}", rej.local_id, rej.remote_id,
                       answered_of(rej.answered), rej.reason);
  }
  std::string operator()(const wire::CmDreq& dreq) const {
    return fmt::format("DREQ id {:#x} to {:#x}, QP {:#x}", dreq.local_id, dreq.remote_id, dreq.remote_qpn);
  }
  std::string operator()(const wire::CmDrep& drep) const {
    return fmt::format("DREP id {:#x} to {:#x}", drep.local_id, drep.remote_id);
  }
  std::string operator()(const wire::CmSidrReq& req) const {
    return fmt::format("SIDR_REQ id {:#x} to {}", req.request_id, service_of(req.service_id));
  }
  std::string operator()(const wire::CmSidrRep& rep) const {
    return fmt::format("SIDR_REP id {:#x}: status {}, QP {:#x} Q_Key {:#x}", rep.request_id, rep.status, rep.qpn,
                       rep.qkey);
  }
};

/// A connection management datagram in words: "REQ id 0x7d633cb2 service TCP port 7174 ...".
std::string describe_cm(wire::MadIn mad) {
  const auto message = wire::parse_cm(mad);
  if (!message) {
    const wire::MadHeader header = wire::parse_mad_header(mad);
    return fmt::format("management class {:#x} method {:#x} attribute {:#x}", header.management_class, header.method,
                       header.attribute);
  }
  return std::visit(Words{}, message->message);
}

using Bytes = std::span<const std::byte>;

struct RocePackets {
  wire::Flow flow;
  Bytes bytes;  ///< one packet, or several of the same length but the last
};

std::optional<RocePackets> find_packets(Bytes datagram) {
  const unsigned version = datagram.empty() ? 0 : std::to_integer<unsigned>(datagram[0]) >> 4U;
  const size_t udp = version == 4 ? (std::to_integer<size_t>(datagram[0]) & 0xfU) * 4 : 40;
  const size_t least = version == 4 ? 20 : 40;
  constexpr size_t kUdpBytes = 8;
  constexpr std::byte kUdp{17};
  if ((version != 4 && version != 6) || udp < least || datagram.size() < udp + kUdpBytes ||
      datagram[version == 4 ? 9 : 6] != kUdp) {
    return std::nullopt;
  }
  // RFC 791, 3.1: a later fragment begins in the midst of the payload. One of IPv6 has another next header.
  constexpr uint16_t kFragmentOffset = 0x1fff;
  if (version == 4 && (wire::get_be<uint16_t>(datagram, 6) & kFragmentOffset) != 0) {
    return std::nullopt;
  }
  RocePackets found;
  if (version == 4) {
    const auto address = [&](size_t at) {
      const auto bytes = wire::get_bytes<uint8_t, 4>(datagram, at);
      return wire::ipv4_address(bytes[0], bytes[1], bytes[2], bytes[3]);
    };
    found.flow = {address(12), address(16), 0, 0};
  } else {
    found.flow = {wire::get_bytes<uint8_t, 16>(datagram, 8), wire::get_bytes<uint8_t, 16>(datagram, 24), 0, 0};
  }
  found.flow.source_port = wire::get_be<uint16_t>(datagram, udp);
  found.flow.destination_port = wire::get_be<uint16_t>(datagram, udp + 2);
  const auto length = wire::get_be<uint16_t>(datagram, udp + 4);
  const size_t behind = datagram.size() - udp;
  // Ethernet pads short frames. A length of 0 or less than the header is offload's way to say "see the IP header".
  found.bytes =
      datagram.subspan(udp + kUdpBytes, (length >= kUdpBytes ? std::min<size_t>(length, behind) : behind) - kUdpBytes);
  return found.flow.destination_port == wire::kRocePort ? std::optional(found) : std::nullopt;
}

/// How long each packet of an offloaded row is: the least length with which the first one's ICRC is right.
size_t segment_bytes(const RocePackets& packets) {
  constexpr size_t kMostBytes = 4096 + wire::kMaxHeaderBytes + wire::kIcrcBytes;
  if (!wire::check_icrc(packets.flow, packets.bytes)) {
    for (size_t length = 16; length <= std::min(kMostBytes, packets.bytes.size()); length += 4) {
      if (wire::check_icrc(packets.flow, packets.bytes.first(length))) {
        return length;
      }
    }
  }
  return packets.bytes.size();
}

std::string text_of(const wire::Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_v4 = wire::is_ipv4(address);
  inet_ntop(is_v4 ? AF_INET : AF_INET6, address.data() + (is_v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

std::string operation_of(uint8_t opcode) {
  if (opcode == wire::kGreeting) {
    return "ringbolt greeting";
  }
  if (opcode == wire::kSelectiveAck) {
    return "ringbolt selective ACK";
  }
  if (opcode == wire::kCnp) {
    return "congestion notification";
  }
  const char* transport = wire::is_rc(opcode) ? "RC" : wire::is_uc(opcode) ? "UC" : "UD";
  const char* what = wire::is_send(opcode)                  ? "SEND"
                     : wire::is_write(opcode)               ? "WRITE"
                     : opcode == wire::kRcReadRequest       ? "READ request"
                     : wire::is_read_response(opcode)       ? "READ response"
                     : opcode == wire::kRcCompareSwap       ? "compare and swap"
                     : opcode == wire::kRcFetchAdd          ? "fetch and add"
                     : opcode == wire::kRcAtomicAcknowledge ? "atomic ACK"
                                                            : "ACK";
  const char* place = wire::is_first(opcode)    ? " first"
                      : wire::is_middle(opcode) ? " middle"
                      : wire::is_last(opcode)   ? " last"
                                                : "";
  return fmt::format("{} {}{}", transport, what, place);
}

std::string syndrome_of(uint8_t syndrome) {
  switch (syndrome) {
    case wire::kNakSequence:
      return "NAK: sequence";
    case wire::kNakInvalidRequest:
      return "NAK: invalid request";
    case wire::kNakRemoteAccess:
      return "NAK: remote access";
    case wire::kNakRemoteOperation:
      return "NAK: remote operation";
    default:
      break;
  }
  if (wire::is_rnr_nak(syndrome)) {
    return fmt::format("NAK: receiver not ready, wait {} us", wire::rnr_timer_us(syndrome));
  }
  return wire::is_ack(syndrome) ? "" : fmt::format("syndrome {:#04x}", syndrome);
}

std::string extensions_of(const wire::Headers& headers) {
  const uint8_t opcode = headers.bth.opcode;
  std::string text;
  if (wire::has_reth(opcode)) {
    text += fmt::format(" at {:#x} key {:#x} of {} B", headers.reth.address, headers.reth.key, headers.reth.length);
  }
  if (wire::has_atomic_eth(opcode)) {
    text += fmt::format(" at {:#x} key {:#x}", headers.atomic.address, headers.atomic.key);
    text += opcode == wire::kRcFetchAdd
                ? fmt::format(" add {:#x}", headers.atomic.swap_or_add)
                : fmt::format(" compare {:#x} swap {:#x}", headers.atomic.compare, headers.atomic.swap_or_add);
  }
  if (wire::has_aeth(opcode) && opcode != wire::kSelectiveAck) {
    text += fmt::format(" MSN {}", headers.aeth.msn);
    if (const std::string why = syndrome_of(headers.aeth.syndrome); !why.empty()) {
      text += " " + why;
    }
  }
  if (wire::has_atomic_ack(opcode)) {
    text += fmt::format(" was {:#x}", headers.atomic_ack);
  }
  if (wire::has_deth(opcode)) {
    text += fmt::format(" from QP {:#x} Q_Key {:#x}", headers.deth.source_qp, headers.deth.qkey);
  }
  if (wire::has_immediate(opcode)) {
    text += fmt::format(" immediate {:#010x}", wire::to_big_endian(headers.immediate));
  }
  if (wire::has_invalidate(opcode)) {
    text += fmt::format(" invalidates {:#x}", headers.invalidate_key);
  }
  return text;
}

std::string payload_of(const wire::PacketView& view) {
  const wire::Bth& bth = view.headers.bth;
  if (bth.opcode == wire::kGreeting) {
    const auto greeting = wire::parse_greeting(view.payload);
    // Without the tokens: a capture is shown around.
    return greeting
               ? fmt::format("{}{}{}", greeting->echo != 0 ? ", knows our token" : "",
                             greeting->is_sealing ? ", seals" : "", greeting->wants_answer ? ", wants an answer" : "")
               : " (unreadable)";
  }
  if (bth.opcode == wire::kSelectiveAck) {
    const auto ack = wire::parse_selective_ack(view.payload);
    if (!ack) {
      return " (unreadable)";
    }
    int held = 0;
    for (size_t bit = 0; bit < wire::kSelectiveAckBits; ++bit) {
      held += ack->has(bit) ? 1 : 0;
    }
    return fmt::format(" {} packets beyond it", held);
  }
  if (bth.dest_qp == wire::kGsiQpn && view.payload.size() == wire::kMadBytes) {
    return " " + describe_cm(wire::MadIn(view.payload.data(), wire::kMadBytes));
  }
  return wire::has_payload(bth.opcode) ? fmt::format(" {} B", view.payload.size()) : "";
}

PacketText describe_packet(const wire::Flow& flow, Bytes packet, bool is_whole) {
  PacketText text;
  text.text = fmt::format("{} > {} ", text_of(flow.source), text_of(flow.destination));
  if (!is_whole) {
    text.text += fmt::format("{} B of a packet that the capture has cut short", packet.size());
    return text;
  }
  const bool has_icrc = wire::check_icrc(flow, packet);
  const auto view = wire::parse(packet);
  text.is_good = has_icrc && view.has_value();
  if (!view) {
    text.text += fmt::format("no RoCE packet: {} B, opcode {:#04x}", packet.size(),
                             packet.empty() ? 0U : std::to_integer<unsigned>(packet[0]));
  } else {
    const wire::Bth& bth = view->headers.bth;
    text.text += fmt::format("{} QP {:#x} PSN {}{}{}{}{}", operation_of(bth.opcode), bth.dest_qp, bth.psn,
                             extensions_of(view->headers), payload_of(*view), bth.wants_ack ? " wants ACK" : "",
                             bth.is_solicited ? " solicited" : "");
  }
  if (!has_icrc) {
    text.text += " WRONG ICRC";
  }
  return text;
}

}  // namespace

std::vector<PacketText> describe_datagram(Bytes datagram, bool is_whole) {
  std::vector<PacketText> texts;
  const auto packets = find_packets(datagram);
  if (!packets) {
    return texts;
  }
  const size_t length = is_whole ? segment_bytes(*packets) : packets->bytes.size();
  Bytes left = packets->bytes;
  do {
    const size_t bytes = std::min(length, left.size());
    texts.push_back(describe_packet(packets->flow, left.first(bytes), is_whole));
    left = left.subspan(bytes);
  } while (!left.empty());
  return texts;
}

}  // namespace ringbolt::tools
