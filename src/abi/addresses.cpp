// Address handles for answers: who sent a message, and from which of our addresses to answer.

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "abi/answer_route.h"
#include "base/c_border.h"

namespace {

/// The index of `gid` in the port's table, or -1 with errno.
int find_gid_index(ibv_context* context, uint8_t port_num, const ibv_gid& gid) {
  ibv_port_attr port = {};
  if (const int error = ibv_query_port(context, port_num, &port); error != 0) {
    errno = error;
    return -1;
  }
  // The first one: a table may have one address twice, as RoCE version 1 and 2.
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
  ibv_ah_attr answer = ringbolt::abi::answer_to(*wc, port_num);
  if ((wc->wc_flags & IBV_WC_GRH) != 0) {
    const ringbolt::abi::Route route = ringbolt::abi::read_route(*grh);
    const int index = find_gid_index(context, port_num, route.destination);
    if (index < 0) {
      return -1;
    }
    add_route(answer, route, static_cast<uint8_t>(index));
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

/// Never a VLAN. Returns 0, or -1 with errno EINVAL without a global route.
int ibv_resolve_eth_l2_from_gid(ibv_context* /*context*/, ibv_ah_attr* attr, uint8_t eth_mac[ETHERNET_LL_SIZE],
                                uint16_t* vid) try {
  constexpr uint16_t kNoVlan = 0xffff;
  if (attr->is_global == 0) {
    errno = EINVAL;
    return -1;
  }
  const ringbolt::abi::EthernetAddress mac = ringbolt::abi::ethernet_address_of(attr->grh.dgid);
  std::memcpy(eth_mac, mac.data(), mac.size());
  *vid = kNoVlan;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
