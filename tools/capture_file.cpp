// Formats: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, and the list of link types at tcpdump.org.

#include "capture_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "failure.h"
#include "wire/bytes.h"

namespace ringbolt::tools {
namespace {

constexpr uint32_t kMicroseconds = 0xa1b2c3d4;
constexpr uint32_t kNanoseconds = 0xa1b23c4d;
constexpr uint32_t kSectionHeader = 0x0a0d0d0a;  // the same in either byte order
constexpr uint32_t kByteOrder = 0x1a2b3c4d;
constexpr uint32_t kInterface = 1;
constexpr uint32_t kSimplePacket = 3;
constexpr uint32_t kEnhancedPacket = 6;
constexpr uint16_t kResolutionOption = 9;
constexpr uint64_t kNsPerS = 1'000'000'000;

struct Link {
  uint32_t type = 0;
  uint64_t ticks_per_s = 1'000'000;
};

/// Fields in the byte order of the machine that wrote the file.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, bool is_swapped) : bytes_(bytes), is_swapped_(is_swapped) {}

  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  uint32_t word(size_t at) const {
    const auto value = wire::get_le<uint32_t>(bytes_, at);
    return is_swapped_ ? __builtin_bswap32(value) : value;
  }
  uint16_t half(size_t at) const {
    const auto value = wire::get_le<uint16_t>(bytes_, at);
    return is_swapped_ ? __builtin_bswap16(value) : value;
  }
  Fields part(size_t at, size_t length) const { return {bytes_.subspan(at, length), is_swapped_}; }

 private:
  std::span<const std::byte> bytes_;
  bool is_swapped_;
};

uint32_t first_word(std::span<const std::byte> file) { return file.size() < 4 ? 0 : wire::get_le<uint32_t>(file, 0); }

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UsageError(fmt::format("{}: {}; write it anew with tcpdump -w or Wireshark", path, why));
}

uint64_t in_ns(uint64_t ticks, uint64_t ticks_per_s) {
  return ticks / ticks_per_s * kNsPerS +
         static_cast<uint64_t>(static_cast<double>(ticks % ticks_per_s) / static_cast<double>(ticks_per_s) * 1e9);
}

/// What is behind the link's header, if that is IP.
std::optional<std::span<const std::byte>> ip_datagram(const std::string& path, uint32_t link,
                                                      std::span<const std::byte> frame) {
  constexpr uint16_t kVlan = 0x8100;
  constexpr uint16_t kIpv4 = 0x0800;
  constexpr uint16_t kIpv6 = 0x86dd;
  const auto behind = [&](size_t type_at, size_t header) -> std::optional<std::span<const std::byte>> {
    if (frame.size() < header) {
      return std::nullopt;
    }
    auto type = wire::get_be<uint16_t>(frame, type_at);
    while (type == kVlan && frame.size() >= header + 4) {
      type = wire::get_be<uint16_t>(frame, header + 2);
      header += 4;
    }
    return type == kIpv4 || type == kIpv6 ? std::optional(frame.subspan(header)) : std::nullopt;
  };
  switch (link) {
    case 0:  // BSD loopback: a word that names the family
      return frame.size() < 4 ? std::nullopt : std::optional(frame.subspan(4));
    case 1:
      return behind(12, 14);
    case 101:
    case 228:
    case 229:
      return frame;
    case 113:
      return behind(14, 16);
    case 276:
      return behind(0, 20);
    default:
      throw UsageError(
          fmt::format("{}: it was captured on links of type {}; this command knows Ethernet (1), raw IP (101), "
                      "Linux \"any\" (113, 276) and BSD loopback (0)",
                      path, link));
  }
}

void add(const std::string& path, uint32_t link, uint64_t time_ns, std::span<const std::byte> frame, bool is_cut,
         std::vector<CapturedDatagram>& out) {
  if (const auto datagram = ip_datagram(path, link, frame); datagram && !datagram->empty()) {
    out.push_back({time_ns, *datagram, is_cut});
  }
}

std::vector<CapturedDatagram> read_classic(const std::string& path, const Fields& file) {
  constexpr size_t kFileHeader = 24;
  constexpr size_t kPacketHeader = 16;
  if (file.size() < kFileHeader) {
    refuse(path,
           fmt::format("the capture breaks off after {} of the {} bytes of its header", file.size(), kFileHeader));
  }
  const uint64_t ticks_per_s = file.word(0) == kNanoseconds ? kNsPerS : 1'000'000;
  const uint32_t link = file.word(20) & 0xffffU;
  std::vector<CapturedDatagram> out;
  for (size_t at = kFileHeader; file.size() - at >= kPacketHeader;) {
    const uint32_t held = file.word(at + 8);
    if (held > file.size() - at - kPacketHeader) {
      break;
    }
    const uint64_t time_ns = file.word(at) * kNsPerS + in_ns(file.word(at + 4), ticks_per_s);
    add(path, link, time_ns, file.bytes().subspan(at + kPacketHeader, held), held < file.word(at + 12), out);
    at += kPacketHeader + held;
  }
  return out;
}

Link read_interface(const Fields& block) {
  Link link;
  link.type = block.half(8);
  for (size_t at = 16; at + 4 <= block.size() - 4;) {
    const uint16_t code = block.half(at);
    const uint16_t length = block.half(at + 2);
    if (code == 0 || at + 4 + length > block.size() - 4) {
      break;
    }
    if (code == kResolutionOption && length >= 1) {
      const auto value = std::to_integer<unsigned>(block.bytes()[at + 4]);
      const unsigned exponent = value & 0x7fU;
      link.ticks_per_s = 1;
      for (unsigned i = 0; i < exponent && link.ticks_per_s < kNsPerS; ++i) {
        link.ticks_per_s *= (value & 0x80U) != 0 ? 2 : 10;
      }
    }
    at += 4 + ((length + 3U) & ~3U);
  }
  return link;
}

void read_packet(const std::string& path, const Fields& block, const std::vector<Link>& links,
                 std::vector<CapturedDatagram>& out) {
  const bool is_simple = block.word(0) == kSimplePacket;
  const size_t header = is_simple ? 12 : 28;
  const uint32_t interface = is_simple ? 0 : block.word(8);
  if (block.size() < header + 4 || interface >= links.size()) {
    return;
  }
  const uint64_t ticks = is_simple ? 0 : uint64_t{block.word(12)} << 32U | block.word(16);
  const uint32_t whole = block.word(is_simple ? 8 : 24);
  const size_t held = std::min<size_t>(is_simple ? whole : block.word(20), block.size() - header - 4);
  add(path, links[interface].type, in_ns(ticks, links[interface].ticks_per_s), block.bytes().subspan(header, held),
      held < whole, out);
}

std::vector<CapturedDatagram> read_blocks(const std::string& path, std::span<const std::byte> file) {
  constexpr size_t kLeastBlock = 12;
  std::vector<CapturedDatagram> out;
  std::vector<Link> links;
  bool is_swapped = false;
  for (size_t at = 0; file.size() - at >= kLeastBlock;) {
    if (first_word(file.subspan(at)) == kSectionHeader) {
      is_swapped = wire::get_le<uint32_t>(file, at + 8) != kByteOrder;
      links.clear();
    }
    const Fields rest(file.subspan(at), is_swapped);
    const uint32_t length = rest.word(4);
    if (length < kLeastBlock || length % 4 != 0) {
      refuse(path, fmt::format("the block at byte {} says that it has {} bytes", at, length));
    }
    if (length > rest.size()) {
      break;
    }
    const Fields block = rest.part(0, length);
    if (block.word(0) == kInterface && length >= 20) {
      links.push_back(read_interface(block));
    } else if ((block.word(0) == kEnhancedPacket && length >= 32) || (block.word(0) == kSimplePacket && length >= 16)) {
      read_packet(path, block, links, out);
    }
    at += length;
  }
  return out;
}

}  // namespace

bool is_capture(std::span<const std::byte> file) {
  const uint32_t magic = first_word(file);
  const uint32_t swapped = __builtin_bswap32(magic);
  return magic == kSectionHeader || magic == kMicroseconds || magic == kNanoseconds || swapped == kMicroseconds ||
         swapped == kNanoseconds;
}

std::vector<CapturedDatagram> read_capture(const std::string& path, std::span<const std::byte> file) {
  const uint32_t magic = first_word(file);
  if (magic == kSectionHeader) {
    return read_blocks(path, file);
  }
  return read_classic(path, Fields(file, magic != kMicroseconds && magic != kNanoseconds));
}

}  // namespace ringbolt::tools
