// Any bytes as what members and ends of circuits send each other: refused, or read as what is written back byte for
// byte. The first byte says as what.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/crc.h"
#include "base/little_endian.h"
#include "circuit/clearances.h"
#include "circuit/control.h"
#include "circuit/frame_header.h"
#include "circuit/handle.h"
#include "circuit/node_ports.h"
#include "circuit/paths.h"
#include "circuit/repeats.h"
#include "membership/announcement.h"

namespace {

using namespace ringbolt;

/// What a sender is told of: it comes back as it was, and whatever follows from it is in bounds.
void check_clearance(const circuit::ClearToSend& clearance) {
  std::array<std::byte, circuit::kClearToSendBytes> bytes{};
  size_t length = 0;
  for (uint32_t i = 0; i < clearance.n_receives; ++i) {
    length += circuit::bytes_of(clearance.receives[i], clearance.n_rails);
  }
  if (length <= circuit::room_for_receives(clearance.n_rails)) {
    const uint32_t written = circuit::emit(circuit::FrameHeader{}, clearance, bytes);
    const auto header = circuit::parse_frame(std::span(bytes).first(written), written);
    static circuit::ClearToSend again;
    RINGBOLT_ASSERT(header &&
                    circuit::parse_clear_to_send(*header, std::span(bytes).subspan(circuit::kShortHeaderBytes), again));
    RINGBOLT_ASSERT(again.n_receives == clearance.n_receives && again.rails == clearance.rails);
  }
  circuit::Clearances clearances;
  for (int message = 0; message < 4; ++message) {
    clearances.begin(message);
  }
  (void)clearances.hear(clearance);
  clearances.begin(1);
  if (const auto& target = clearances.of_latest()) {
    RINGBOLT_ASSERT(target->capacity <= UINT64_MAX - target->address && target->n_rails <= circuit::kMostRails);
  }
}

/// What one end of a rail that may lose frames makes of any word of the other's: nothing is sent again that never was.
void check_lossy(const circuit::FrameHeader& header) {
  constexpr uint64_t kBegin = 1'000'000;
  constexpr uint32_t kSent = 11;
  circuit::Repeats repeats;
  for (uint32_t i = 0; i < kSent; ++i) {
    repeats.note_sent(kBegin);
  }
  repeats.hear(header.taken, header.come, kBegin);
  repeats.hear(header.taken / 2, header.sequence, kBegin);
  for (uint64_t now_ns = kBegin; now_ns < 2'000 * kBegin; now_ns += kBegin) {
    const circuit::Repeats::Due due = repeats.take_due(now_ns);
    RINGBOLT_ASSERT(due.what != circuit::Repeats::What::frame || due.number < kSent);
  }
  circuit::Come come;
  const bool is_news = come.note(header.number, header.taken) == circuit::Come::Is::news;
  RINGBOLT_ASSERT((come.bits(header.taken) != 0) == is_news);
  RINGBOLT_ASSERT(come.note(header.number, header.taken) != circuit::Come::Is::news);
}

void check_frame(std::span<const std::byte> in) {
  const auto header = circuit::parse_frame(in, in.size());
  if (!header) {
    return;
  }
  const size_t header_bytes = circuit::header_bytes_of(header->kind);
  RINGBOLT_ASSERT(header_bytes + (header->is_written ? 0 : header->length) <= in.size());
  RINGBOLT_ASSERT(header->offset + header->length <= header->total);
  std::vector<std::byte> out(circuit::kFrameHeaderBytes);
  circuit::emit(*header, out.data());
  RINGBOLT_ASSERT(circuit::parse_frame(out, in.size()) == header);
  check_lossy(*header);
  static circuit::ClearToSend clearance;
  if (header->kind == circuit::FrameKind::clear_to_send && circuit::parse_clear_to_send(*header, in.subspan(header_bytes), clearance)) {
    check_clearance(clearance);
  }
}

void check_handle(std::span<const std::byte> in) {
  std::array<std::byte, circuit::kHandleBytes> bytes{};
  std::copy_n(in.begin(), std::min(in.size(), bytes.size()), bytes.begin());
  // With a checksum that fits, or what is behind it would never be reached.
  constexpr size_t kChecksumAt = circuit::kHandleBytes - circuit::kTicketBytes - 4;
  base::put_le(std::span<std::byte>(bytes), kChecksumAt, base::crc32c(0, std::span(bytes).first(kChecksumAt)));
  if (const auto handle = circuit::parse_handle(bytes)) {
    std::array<std::byte, circuit::kHandleBytes> out{};
    circuit::emit(*handle, out);
    const auto again = circuit::parse_handle(out);
    RINGBOLT_ASSERT(again && again->contact.member == handle->contact.member && again->listener == handle->listener);
  }
}

/// What two members say of their ports decides about paths.
void check_ports(std::span<const std::byte> in) {
  const auto first = circuit::parse_node_ports(1, in.first(in.size() / 2));
  const auto second = circuit::parse_node_ports(2, in.subspan(in.size() / 2));
  const auto whole = circuit::parse_node_ports(1, in);
  for (const auto& ports : {first, second, whole}) {
    if (ports) {
      RINGBOLT_ASSERT(circuit::parse_node_ports(ports->node, circuit::emit(*ports)) == ports);
    }
  }
  std::vector<circuit::NodePorts> nodes;
  if (whole) {
    nodes = {*whole, *whole};
    nodes[1].node = 2;
  } else if (first && second) {
    nodes = {*first, *second};
  }
  const auto links = circuit::links_between(nodes);
  (void)circuit::candidates_for(nodes, 1);
  (void)circuit::plan_paths(links, nodes, {{1, {11}}, {2, {22}}}, {1, 11}, {2, 22});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const auto in = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 16) {
    case 0:
      check_frame(in);
      break;
    case 1:
      check_handle(in);
      break;
    case 2:
      check_ports(in);
      break;
    case 3:
      if (const auto announcement = membership::parse_announcement(in)) {
        RINGBOLT_ASSERT(membership::parse_announcement(membership::emit(*announcement)) == *announcement);
      }
      break;
    default:
      if (const auto control = circuit::parse_control(static_cast<uint16_t>(data[0] % 16 - 4), in)) {
        RINGBOLT_ASSERT(circuit::parse_control(circuit::kind_of(*control), circuit::emit(*control)) == control);
      }
  }
  return 0;
}
