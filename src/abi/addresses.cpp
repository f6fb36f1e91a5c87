// Address handles for answers: who sent a message, and from which of our addresses to answer.

#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/c_border.h"

namespace {

// A UD receive buffer starts with 40 bytes of global route header. RoCE v2 over IPv4 puts the 20-byte IPv4 header into
// the last 20 of them (InfiniBand specification, annex 17).
constexpr size_t kIpv4HeaderAt = 20;
constexpr size_t kIpv4SourceAt = 12;
constexpr size_t kIpv4DestinationAt = 16;
constexpr uint8_t kIpv4VersionAndLength = 0x45;
constexpr uint32_t kFlowLabelMask = 0xfffff;
constexpr uint8_t kAnswerHopLimit = 255;

struct Route {
  ibv_gid source;
  ibv_gid destination;
  uint32_t flow_label;
  uint8_t traffic_class;
};

ibv_gid ipv4_mapped(const uint8_t* address) {
  ibv_gid gid = {};
  gid.raw[10] = 0xff;
  gid.raw[11] = 0xff;
  std::memcpy(&gid.raw[12], address, 4);
  return gid;
}

Route read_route(const ibv_grh& grh) {
  std::array<uint8_t, sizeof(ibv_grh)> bytes = {};
  std::memcpy(bytes.data(), &grh, sizeof(grh));
  if (bytes[kIpv4HeaderAt] == kIpv4VersionAndLength && (bytes[0] >> 4) != 6) {
    return {ipv4_mapped(&bytes[kIpv4HeaderAt + kIpv4SourceAt]), ipv4_mapped(&bytes[kIpv4HeaderAt + kIpv4DestinationAt]),
            0, bytes[kIpv4HeaderAt + 1]};
  }
  const uint32_t version_class_flow =
      uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
  return {grh.sgid, grh.dgid, version_class_flow & kFlowLabelMask, static_cast<uint8_t>(version_class_flow >> 20)};
}

/// The index of `gid` in the port's table, or -1 with errno.
int find_gid_index(ibv_context* context, uint8_t port_num, const ibv_gid& gid) {
  ibv_port_attr port = {};
  if (const int error = ibv_query_port(context, port_num, &port); error != 0) {
    errno = error;
    return -1;
  }
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid candidate = {};
    if (ibv_query_gid(context, port_num, index, &candidate) == 0 &&
        std::memcmp(candidate.raw, gid.raw, sizeof(gid.raw)) == 0) {
      return index;
    }
  }
  errno = ENOENT;
  return -1;
}

}  // namespace

extern "C" {

int ibv_init_ah_from_wc(ibv_context* context, uint8_t port_num, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* ah_attr) try {
  ibv_ah_attr answer = {};
  answer.dlid = wc->slid;
  answer.sl = wc->sl;
  answer.src_path_bits = wc->dlid_path_bits;
  answer.port_num = port_num;
  if ((wc->wc_flags & IBV_WC_GRH) != 0) {
    const Route route = read_route(*grh);
    const int index = find_gid_index(context, port_num, route.destination);
    if (index < 0) {
      return -1;
    }
    answer.is_global = 1;
    answer.grh.dgid = route.source;
    answer.grh.sgid_index = static_cast<uint8_t>(index);
    answer.grh.flow_label = route.flow_label;
    answer.grh.hop_limit = kAnswerHopLimit;
    answer.grh.traffic_class = route.traffic_class;
  }
  *ah_attr = answer;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port_num) {
  ibv_ah_attr attr = {};
  if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0) {
    return nullptr;
  }
  return ibv_create_ah(pd, &attr);
}

/// The Ethernet address behind the destination of `attr`. Our links have no Ethernet header: a GID made from a MAC
/// gives that MAC back (RFC 4291, appendix A), any other one a locally administered address made from its last bytes,
/// the same on every call and node. Never a VLAN. Returns 0, or -1 with errno EINVAL without a global route.
int ibv_resolve_eth_l2_from_gid(ibv_context* /*context*/, ibv_ah_attr* attr, uint8_t eth_mac[ETHERNET_LL_SIZE],
                                uint16_t* vid) {
  constexpr uint16_t kNoVlan = 0xffff;
  constexpr uint8_t kLocallyAdministered = 0x02;
  if (attr->is_global == 0) {
    errno = EINVAL;
    return -1;
  }
  const uint8_t* gid = attr->grh.dgid.raw;
  if (gid[11] == 0xff && gid[12] == 0xfe) {
    const uint8_t first = gid[8] ^ kLocallyAdministered;
    const std::array<uint8_t, ETHERNET_LL_SIZE> mac = {first, gid[9], gid[10], gid[13], gid[14], gid[15]};
    std::memcpy(eth_mac, mac.data(), mac.size());
  } else {
    const std::array<uint8_t, ETHERNET_LL_SIZE> mac = {kLocallyAdministered, 0, gid[12], gid[13], gid[14], gid[15]};
    std::memcpy(eth_mac, mac.data(), mac.size());
  }
  *vid = kNoVlan;
  return 0;
}

}  // extern "C"
