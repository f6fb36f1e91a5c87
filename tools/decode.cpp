#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>

#include "base/say.h"
#include "capture_file.h"
#include "cluster/read_file.h"
#include "commands.h"
#include "failure.h"
#include "packet_text.h"
#include "wire/bytes.h"
#include "wire/stream_frame.h"

namespace ringbolt::tools {
namespace {

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

bool is_text(std::string_view file) {
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
  } else if (is_text(text)) {
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
