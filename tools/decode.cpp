// Formats: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, and the list of link types at tcpdump.org.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/say.h"
#include "cluster/read_file.h"
#include "commands.h"
#include "failure.h"
#include "packet_text.h"
#include "wire/bytes.h"
#include "wire/stream_frame.h"

namespace ringbolt::tools {
namespace {

/// One IP datagram of a capture.
struct CapturedDatagram {
  uint64_t time_ns = 0;              ///< since the epoch of the clock that captured
  std::span<const std::byte> bytes;  ///< from the IP header on; into the file's bytes
  bool is_cut = false;               ///< the capture holds only its beginning
};

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

/// To the nearest: a double is off by a ten-millionth of a nanosecond, which cut off would be a whole one.
uint64_t in_ns(uint64_t ticks, uint64_t ticks_per_s) {
  const double part = static_cast<double>(ticks % ticks_per_s) / static_cast<double>(ticks_per_s);
  return ticks / ticks_per_s * kNsPerS + static_cast<uint64_t>(std::llround(part * 1e9));
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
      for (unsigned i = 0; i < exponent && link.ticks_per_s <= UINT64_MAX / 10; ++i) {
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

/// Whether the bytes begin as a capture file of tcpdump or Wireshark does, in the classic format or as pcapng.
bool is_capture(std::span<const std::byte> file) {
  const uint32_t magic = first_word(file);
  const uint32_t swapped = __builtin_bswap32(magic);
  return magic == kSectionHeader || magic == kMicroseconds || magic == kNanoseconds || swapped == kMicroseconds ||
         swapped == kNanoseconds;
}

/// The IP datagrams of a capture file, in its order; other frames are left out. Links: Ethernet (also with VLAN tags),
/// raw IP, Linux "any" (both versions), BSD loopback. Throws UsageError naming `path` when the file breaks off in its
/// headers or has another link type; a last packet that breaks off is left out.
std::vector<CapturedDatagram> read_capture(const std::string& path, std::span<const std::byte> file) {
  const uint32_t magic = first_word(file);
  if (magic == kSectionHeader) {
    return read_blocks(path, file);
  }
  return read_classic(path, Fields(file, magic != kMicroseconds && magic != kNanoseconds));
}

using Bytes = std::span<const std::byte>;

constexpr size_t kMaxFileBytes = size_t{1} << 30U;

/// Prints and counts.
struct Listing {
  size_t packets = 0;
  size_t bad = 0;

  void print(const std::string& when, const PacketText& packet) {
    fmt::print("{}{}\n", when, packet.text);
    ++packets;
    bad += packet.is_good ? 0 : 1;
  }
};

void list_capture(const std::string& path, Bytes file, Listing& listing) {
  const auto datagrams = read_capture(path, file);
  const uint64_t begin_ns = datagrams.empty() ? 0 : datagrams.front().time_ns;
  for (const CapturedDatagram& datagram : datagrams) {
    const auto since_us = static_cast<double>(static_cast<int64_t>(datagram.time_ns - begin_ns)) / 1e3;
    for (const PacketText& packet : describe_datagram(datagram.bytes, !datagram.is_cut)) {
      listing.print(fmt::format("{:12.3f} us  ", since_us), packet);
    }
  }
  if (listing.packets == 0) {
    throw UsageError(fmt::format("{}: none of its {} IP datagrams goes to UDP port 4791", path, datagrams.size()));
  }
}

int digit_of(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

std::vector<std::byte> from_hex(const std::string& path, size_t line, std::string_view digits) {
  std::vector<std::byte> bytes;
  if (digits.size() % 2 != 0) {
    throw UsageError(fmt::format("{}: line {}: an odd number of hexadecimal digits ({})", path, line, digits.size()));
  }
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit_of(digits[i]);
    const int low = digit_of(digits[i + 1]);
    if (high < 0 || low < 0) {
      throw UsageError(fmt::format("{}: line {}: \"{}\" is no hexadecimal byte", path, line, digits.substr(i, 2)));
    }
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

/// A frame of any format, as it stands in a line of text.
void list_frame(Bytes frame, Listing& listing) {
  constexpr size_t kEthernet = 14;
  const auto is_ip_at = [&](size_t at) {
    const unsigned version = frame.size() > at ? std::to_integer<unsigned>(frame[at]) >> 4U : 0;
    return version == 4 || version == 6;
  };
  const auto type = frame.size() > kEthernet ? wire::get_be<uint16_t>(frame, 12) : uint16_t{0};
  std::vector<PacketText> packets;
  if ((type == 0x0800 || type == 0x86dd) && is_ip_at(kEthernet)) {
    packets = describe_datagram(frame.subspan(kEthernet), true);
  }
  if (packets.empty() && is_ip_at(0)) {
    packets = describe_datagram(frame, true);
  }
  if (packets.empty()) {
    packets.push_back(describe_frame(frame));
  }
  for (const PacketText& packet : packets) {
    listing.print("", packet);
  }
}

/// One frame a line, its last word; `#` begins a comment.
void list_text(const std::string& path, std::string_view text, Listing& listing) {
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    content = content.substr(0, content.find('#'));
    while (!content.empty() && std::isspace(static_cast<unsigned char>(content.back())) != 0) {
      content.remove_suffix(1);
    }
    if (!content.empty()) {
      const size_t word = content.find_last_of(" \t");
      list_frame(from_hex(path, line, word == std::string_view::npos ? content : content.substr(word + 1)), listing);
    }
  }
}

bool is_printable(std::string_view file) {
  return std::ranges::all_of(file.substr(0, 4096), [](char c) {
    return std::isprint(static_cast<unsigned char>(c)) != 0 || std::isspace(static_cast<unsigned char>(c)) != 0;
  });
}

}  // namespace

int decode(const DecodeOptions& options) {
  const std::string text = cluster::read_file(options.path, kMaxFileBytes);
  const Bytes file = std::as_bytes(std::span(text));
  if (file.empty()) {
    throw UsageError(fmt::format("{}: the file is empty", options.path));
  }
  Listing listing;
  if (is_capture(file)) {
    list_capture(options.path, file, listing);
  } else if (is_printable(text)) {
    list_text(options.path, text, listing);
  } else {
    const auto packets = describe_stream(file);
    if (packets.size() == 1 && !packets.front().is_good && !wire::parse_stream_header(file)) {
      throw UsageError(
          fmt::format("{}: no capture, no text and no frame of a stream; give a file of tcpdump -w, or frames "
                      "as lines of hexadecimal digits",
                      options.path));
    }
    for (const PacketText& packet : packets) {
      listing.print("", packet);
    }
  }
  if (listing.bad != 0) {
    base::say(fmt::format("ringbolt decode: {} of {} are damaged or unknown\n", listing.bad, listing.packets));
  }
  return listing.bad == 0 ? kOk : kFoundProblem;
}

}  // namespace ringbolt::tools
