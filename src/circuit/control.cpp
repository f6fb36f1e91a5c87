#include "circuit/control.h"

#include <algorithm>
#include <utility>

#include "base/byte_writer.h"

namespace ringbolt::circuit {
namespace {

// Bytes of text: words are for one line of a log. Longer words are cut by who writes, and refused by who reads.
constexpr size_t kMostWhyBytes = 400;
// Queue pair numbers and PSNs have 24 bits (InfiniBand specification, 9.2).
constexpr uint32_t kNumberMask = 0xffffff;
// Bits of an Open.
constexpr uint8_t kHasChecksums = 1;
constexpr uint8_t kMayWrite = 2;
// Bits of a queue pair's address.
constexpr uint8_t kReadsInPlace = 1;
constexpr uint8_t kIsUc = 2;
constexpr uint8_t kCountsFrames = 4;

using base::ByteReader;
using base::ByteWriter;

void put(ByteWriter& writer, const QueuePairAddress& address) {
  writer.put_bytes(std::as_bytes(std::span(address.gid)));
  writer.put(address.lid);
  writer.put(address.qp_number);
  writer.put(address.psn);
  writer.put(address.mtu_bytes);
  writer.put(static_cast<uint8_t>((address.reads_in_place ? kReadsInPlace : 0U) | (address.is_uc ? kIsUc : 0U) |
                                  (address.counts_frames ? kCountsFrames : 0U)));
}

QueuePairAddress take_address(ByteReader& reader) {
  QueuePairAddress address;
  const std::span<const std::byte> gid = reader.take_bytes(address.gid.size());
  std::ranges::transform(gid, address.gid.begin(), [](std::byte byte) { return static_cast<uint8_t>(byte); });
  address.lid = reader.take<uint16_t>();
  address.qp_number = reader.take<uint32_t>() & kNumberMask;
  address.psn = reader.take<uint32_t>() & kNumberMask;
  address.mtu_bytes = reader.take<uint32_t>();
  const auto flags = reader.take<uint8_t>();
  address.reads_in_place = (flags & kReadsInPlace) != 0;
  address.is_uc = (flags & kIsUc) != 0;
  address.counts_frames = (flags & kCountsFrames) != 0;
  return address;
}

void put(ByteWriter& writer, const PortUse& use) {
  writer.put(use.port);
  writer.put(use.gid_index);
}

PortUse take_use(ByteReader& reader) {
  PortUse use;
  use.port = reader.take<uint16_t>();
  use.gid_index = reader.take<uint8_t>();
  return use;
}

// Layout of each: docs/formats/circuit.md, in the order in which they are put.
struct Emit {
  ByteWriter& writer;

  void operator()(const Open& open) const {
    writer.put(open.listener);
    writer.put(static_cast<uint8_t>((open.has_checksums ? kHasChecksums : 0U) | (open.may_write ? kMayWrite : 0U)));
  }
  void operator()(const Opened& opened) const { writer.put(opened.least_written_bytes); }
  void operator()(const Refused& refused) const {
    writer.put_text(std::string_view(refused.why).substr(0, kMostWhyBytes));
  }
  void operator()(const RailOpen& open) const {
    writer.put(open.rail);
    writer.put(open.position);
    writer.put(static_cast<uint8_t>(open.path.size()));
    for (const Hop& hop : open.path) {
      writer.put(hop.member);
      put(writer, hop.entry);
      put(writer, hop.exit);
    }
    put(writer, open.from);
  }
  void operator()(const RailReady& ready) const {
    writer.put(ready.rail);
    put(writer, ready.to);
  }
  void operator()(const RailDown& down) const {
    writer.put(down.rail);
    writer.put_text(std::string_view(down.why).substr(0, kMostWhyBytes));
  }
  void operator()(const Close& close) const {
    writer.put(static_cast<uint8_t>(close.reason));
    writer.put_text(std::string_view(close.why).substr(0, kMostWhyBytes));
  }
};

RailOpen take_rail_open(CircuitId circuit, ByteReader& reader) {
  RailOpen open;
  open.circuit = circuit;
  open.rail = reader.take<uint16_t>();
  open.position = reader.take<uint8_t>();
  const auto n = reader.take<uint8_t>();
  for (size_t i = 0; i < n && reader.is_sound(); ++i) {
    Hop hop;
    hop.member = reader.take<uint64_t>();
    hop.entry = take_use(reader);
    hop.exit = take_use(reader);
    open.path.push_back(hop);
  }
  open.from = take_address(reader);
  return open;
}

/// Only the two ends may be one member, where there is nobody between them.
bool has_loop(const Path& path) {
  for (size_t i = 1; path.size() > 2 && i < path.size(); ++i) {
    const auto before = path.begin() + static_cast<ptrdiff_t>(i);
    if (std::ranges::find(path.begin(), before, path[i].member, &Hop::member) != before) {
      return true;
    }
  }
  return false;
}

// The position is that of who gets it, so never 0: there is a hop before it. Indices into the path are safe after
// this.
bool is_possible(const RailOpen& open) {
  return open.path.size() >= 2 && open.path.size() <= kMostHops && open.position >= 1 &&
         open.position < open.path.size() && !has_loop(open.path);
}

}  // namespace

std::vector<std::byte> emit(const Control& control) {
  ByteWriter writer;
  std::visit([&](const auto& one) { writer.put(one.circuit); }, control);
  std::visit(Emit{writer}, control);
  return std::move(writer).bytes();
}

// Any bytes are safe. Nothing: of a later version, cut short, or with something behind it.
std::optional<Control> parse_control(uint16_t kind, std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto circuit = reader.take<uint64_t>();
  Control control;
  // By the place among the alternatives of Control.
  switch (kind) {
    case 0: {
      const auto listener = reader.take<uint64_t>();
      const auto flags = reader.take<uint8_t>();
      // Of a later version, which asks for something that this one would get wrong.
      if (flags > (kHasChecksums | kMayWrite)) {
        return std::nullopt;
      }
      control = Open{circuit, listener, (flags & kHasChecksums) != 0, (flags & kMayWrite) != 0};
      break;
    }
    case 1:
      control = Opened{circuit, reader.take<uint64_t>()};
      break;
    case 2:
      control = Refused{circuit, reader.take_text(kMostWhyBytes)};
      break;
    case 3: {
      RailOpen open = take_rail_open(circuit, reader);
      if (!is_possible(open)) {
        return std::nullopt;
      }
      control = std::move(open);
      break;
    }
    case 4: {
      const auto rail = reader.take<uint16_t>();
      control = RailReady{circuit, rail, take_address(reader)};
      break;
    }
    case 5: {
      const auto rail = reader.take<uint16_t>();
      control = RailDown{circuit, rail, reader.take_text(kMostWhyBytes)};
      break;
    }
    case 6: {
      // A reason of a later version reads as the last known one.
      const auto reason = static_cast<CloseReason>(std::min<uint8_t>(reader.take<uint8_t>(), 3));
      control = Close{circuit, reason, reader.take_text(kMostWhyBytes)};
      break;
    }
    default:
      return std::nullopt;
  }
  return reader.is_sound() && reader.is_at_end() ? std::optional(std::move(control)) : std::nullopt;
}

}  // namespace ringbolt::circuit
