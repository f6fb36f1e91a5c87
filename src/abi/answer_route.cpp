#include "abi/answer_route.h"

#include <cstring>

namespace ringbolt::abi {
namespace {

constexpr size_t kIpv4HeaderAt = 20;
constexpr size_t kIpv4SourceAt = 12;
constexpr size_t kIpv4DestinationAt = 16;
// Version 4 and five words: a header without options (RFC 791, 3.1).
constexpr uint8_t kIpv4VersionAndLength = 0x45;
constexpr uint32_t kFlowLabelMask = 0xfffff;
// Of the peer's own limit only what is left of it arrives.
constexpr uint8_t kAnswerHopLimit = 255;

ibv_gid ipv4_mapped(const uint8_t* address) {
  ibv_gid gid = {};
  gid.raw[10] = 0xff;
  gid.raw[11] = 0xff;
  std::memcpy(&gid.raw[12], address, 4);
  return gid;
}

}  // namespace

Route read_route(const ibv_grh& grh) {
  std::array<uint8_t, sizeof(ibv_grh)> bytes = {};
  std::memcpy(bytes.data(), &grh, sizeof(grh));
  // Both are asked: the byte at 20 of a real GRH is one of its addresses, and the first 20 before an IPv4 header are
  // undefined.
  if (bytes[kIpv4HeaderAt] == kIpv4VersionAndLength && (bytes[0] >> 4) != 6) {
    return {ipv4_mapped(&bytes[kIpv4HeaderAt + kIpv4SourceAt]), ipv4_mapped(&bytes[kIpv4HeaderAt + kIpv4DestinationAt]),
            0, bytes[kIpv4HeaderAt + 1]};
  }
  const uint32_t version_class_flow =
      uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
  return {grh.sgid, grh.dgid, version_class_flow & kFlowLabelMask, static_cast<uint8_t>(version_class_flow >> 20)};
}

ibv_ah_attr answer_to(const ibv_wc& wc, uint8_t port_num) {
  ibv_ah_attr answer = {};
  answer.dlid = wc.slid;
  answer.sl = wc.sl;
  answer.src_path_bits = wc.dlid_path_bits;
  answer.port_num = port_num;
  return answer;
}

void add_route(ibv_ah_attr& answer, const Route& route, uint8_t gid_index) {
  answer.is_global = 1;
  answer.grh.dgid = route.source;
  answer.grh.sgid_index = gid_index;
  answer.grh.flow_label = route.flow_label;
  answer.grh.hop_limit = kAnswerHopLimit;
  answer.grh.traffic_class = route.traffic_class;
}

EthernetAddress ethernet_address_of(const ibv_gid& gid) {
  constexpr uint8_t kLocallyAdministered = 0x02;
  const uint8_t* raw = gid.raw;
  // Placed so in an interface identifier that was made from a MAC, with one bit of the first byte turned.
  if (raw[11] == 0xff && raw[12] == 0xfe) {
    const auto first = static_cast<uint8_t>(raw[8] ^ kLocallyAdministered);
    return {first, raw[9], raw[10], raw[13], raw[14], raw[15]};
  }
  return {kLocallyAdministered, 0, raw[12], raw[13], raw[14], raw[15]};
}

}  // namespace ringbolt::abi
