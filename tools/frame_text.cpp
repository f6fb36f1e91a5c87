// Frames that travel without IP: of the native Thunderbolt verbs, and of streams.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "packet_text.h"
#include "wire/stream_frame.h"
#include "wire/thunderbolt_data.h"
#include "wire/thunderbolt_hello.h"

namespace ringbolt::tools {
namespace {

using Bytes = std::span<const std::byte>;

std::string describe(const wire::ThunderboltHello& hello) {
  constexpr std::array<const char*, 5> kOps = {"", "HELLO", "HELLO_ACK", "READY", "READY_ACK"};
  return fmt::format(
      "Thunderbolt {} sequence {:#x} route {:#x} rail {} capabilities {:#x}, hops {}/{}, path {}, rings {}/{}",
      kOps[static_cast<size_t>(hello.op)], hello.sequence, hello.route, hello.rail, hello.capabilities,
      hello.transmit_hop, hello.receive_hop, hello.transmit_path, hello.transmit_ring, hello.receive_ring);
}

/// What the field that means something else for each opcode says.
std::string immediate_of(const wire::ThunderboltFrame& frame) {
  constexpr std::array<const char*, 3> kSendAnswers = {"done", "receiver not ready", "error"};
  constexpr std::array<const char*, 3> kReadAnswers = {"done", "again", "error"};
  const uint32_t value = frame.immediate;
  switch (frame.op) {
    case wire::ThunderboltOp::send_ack:
      return value < kSendAnswers.size() ? fmt::format(" {}", kSendAnswers[value]) : fmt::format(" code {}", value);
    case wire::ThunderboltOp::read_ack:
      return value < kReadAnswers.size() ? fmt::format(" {}", kReadAnswers[value]) : fmt::format(" code {}", value);
    case wire::ThunderboltOp::write_immediate:
      return fmt::format(" immediate {:#010x}", value);
    case wire::ThunderboltOp::send_immediate:
      return fmt::format(" of {} B immediate {:#010x}", value, frame.key);
    case wire::ThunderboltOp::receive_credit:
    case wire::ThunderboltOp::path_credit:
      return fmt::format(" {} frames", value);
    case wire::ThunderboltOp::management:
      return "";
    default:
      return fmt::format(" of {} B", value);
  }
}

std::string describe(const wire::ThunderboltFrame& frame) {
  constexpr std::array<const char*, 12> kOps = {
      "",     "SEND",         "SEND answer",   "WRITE",       "WRITE",       "receive credit",
      "SEND", "READ request", "READ response", "path credit", "READ answer", "management"};
  const bool has_address = frame.op == wire::ThunderboltOp::write || frame.op == wire::ThunderboltOp::write_immediate ||
                           frame.op == wire::ThunderboltOp::read_request;
  return fmt::format("Thunderbolt {} QP {:#x} from {:#x} PSN {}{}{} offset {} {} B{}{}{}",
                     kOps[static_cast<size_t>(frame.op)], frame.destination_qp, frame.source_qp, frame.psn,
                     immediate_of(frame),
                     has_address ? fmt::format(" at {:#x} key {:#x}", frame.address, frame.key) : "", frame.offset,
                     frame.length, (frame.flags & wire::kThunderboltLast) != 0 ? " last" : "",
                     (frame.flags & wire::kThunderboltSolicited) != 0 ? " solicited" : "",
                     (frame.flags & wire::kThunderboltRawStream) != 0 ? ", raw stream follows" : "");
}

std::string describe(const wire::StreamHeader& header) {
  constexpr std::array<const char*, 8> kTypes = {"", "HELLO", "HELLO_ACK", "READY", "DATA", "CREDIT", "PING", "BYE"};
  return fmt::format("stream {} epoch {:#x} sequence {} expects {} credit {} QP {:#x} {} B{}",
                     kTypes[static_cast<size_t>(header.type)], header.epoch, header.sequence, header.expected,
                     header.credit, header.destination_qp, header.length, header.is_last ? " last" : "");
}

}  // namespace

PacketText describe_frame(Bytes frame) {
  if (const auto hello = wire::parse_thunderbolt_hello(frame)) {
    return {describe(*hello), true};
  }
  if (const auto view = wire::parse_thunderbolt_frame(frame)) {
    return {describe(view->frame), true};
  }
  if (const auto header = wire::parse_stream_header(frame)) {
    const bool is_intact = wire::is_intact(*header, frame.subspan(wire::kStreamHeaderBytes));
    return {describe(*header) + (is_intact ? "" : " WRONG PAYLOAD"), is_intact};
  }
  return {fmt::format("{} B of no format that is known", frame.size()), false};
}

std::vector<PacketText> describe_stream(Bytes stream) {
  std::vector<PacketText> texts;
  size_t skipped = 0;
  const auto tell_skipped = [&] {
    if (skipped != 0) {
      texts.push_back({fmt::format("{} B between frames", skipped), false});
    }
    skipped = 0;
  };
  while (!stream.empty()) {
    const auto header = wire::parse_stream_header(stream);
    if (!header) {
      ++skipped;
      stream = stream.subspan(1);
      continue;
    }
    tell_skipped();
    const size_t bytes = std::min(stream.size(), wire::kStreamHeaderBytes + header->length);
    texts.push_back(describe_frame(stream.first(bytes)));
    stream = stream.subspan(bytes);
  }
  tell_skipped();
  return texts;
}

}  // namespace ringbolt::tools
