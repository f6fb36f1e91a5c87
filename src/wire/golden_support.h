#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wire/bytes.h"
#include "wire/flow.h"
#include "wire/golden_cm.h"
#include "wire/golden_roce.h"
#include "wire/mad.h"

/// Reads the golden packets; for tests.
namespace ringbolt::wire::golden {

using Bytes = std::vector<std::byte>;

/// Hexadecimal digits; everything else is a separator.
inline Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  int high = -1;
  for (const char c : hex) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) {
      continue;
    }
    if (high >= 0) {
      bytes.push_back(static_cast<std::byte>(high * 16 + digit));
    }
    high = high < 0 ? digit : -1;
  }
  return bytes;
}

struct Datagram {
  const char* name = "";
  Bytes bytes;  ///< IP header to ICRC
  Flow flow;
  uint16_t ipv4_id = 0;
  Bytes packet;  ///< BTH to ICRC
};

inline Datagram split(const char* name, const Bytes& bytes) {
  Datagram datagram{.name = name, .bytes = bytes, .flow = {}, .ipv4_id = 0, .packet = {}};
  const std::span<const std::byte> in(bytes);
  const bool is_v4 = std::to_integer<unsigned>(bytes[0]) >> 4 == 4;
  const size_t udp = is_v4 ? 20 : 40;
  if (is_v4) {
    datagram.ipv4_id = get_be<uint16_t>(in, 4);
    const auto at = [&](size_t i) { return std::to_integer<uint8_t>(bytes[i]); };
    datagram.flow.source = ipv4_address(at(12), at(13), at(14), at(15));
    datagram.flow.destination = ipv4_address(at(16), at(17), at(18), at(19));
  } else {
    datagram.flow.source = get_bytes<uint8_t, 16>(in, 8);
    datagram.flow.destination = get_bytes<uint8_t, 16>(in, 24);
  }
  datagram.flow.source_port = get_be<uint16_t>(in, udp);
  datagram.flow.destination_port = get_be<uint16_t>(in, udp + 2);
  datagram.packet.assign(bytes.begin() + static_cast<ptrdiff_t>(udp) + 8, bytes.end());
  return datagram;
}

inline std::vector<Datagram> roce_datagrams() {
  std::vector<Datagram> datagrams;
  for (const Packet& packet : roce_packets()) {
    datagrams.push_back(split(packet.name, from_hex(packet.hex)));
  }
  return datagrams;
}

inline Bytes full_mad(const CmPacket& packet) {
  Bytes mad = from_hex(packet.mad);
  mad.resize(kMadBytes);
  return mad;
}

inline std::vector<Datagram> cm_datagrams() {
  std::vector<Datagram> datagrams;
  for (const CmPacket& packet : cm_packets()) {
    Bytes bytes = from_hex(packet.headers);
    for (const Bytes& part : {full_mad(packet), from_hex(packet.icrc)}) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    datagrams.push_back(split(packet.name, bytes));
  }
  return datagrams;
}

inline std::vector<Datagram> all_datagrams() {
  std::vector<Datagram> all = roce_datagrams();
  for (Datagram& datagram : cm_datagrams()) {
    all.push_back(std::move(datagram));
  }
  return all;
}

}  // namespace ringbolt::wire::golden
