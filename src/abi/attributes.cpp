#include "abi/attributes.h"

#include <endian.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "device/limits.h"
#include "link/region_table.h"

namespace ringbolt::abi {
namespace {

constexpr uint32_t kVendorOfSoftware = 0xffffff;  // as the kernel's software device says
// As PortPhysicalState numbers them (InfiniBand Architecture Specification 1.4, 14.2.5.6): 5 LinkUp, 3 Disabled.
constexpr uint8_t kPhysicalLinkUp = 5;
constexpr uint8_t kPhysicalDisabled = 3;

}  // namespace

ibv_device_attr device_attributes(const profile::Profile& like, uint64_t guid, uint32_t port_index) {
  const profile::Limits& limits = like.limits;
  const auto granted = [](uint32_t limit, uint32_t own) { return static_cast<int>(profile::limited(limit, own)); };
  ibv_device_attr all{};
  std::snprintf(all.fw_ver, sizeof all.fw_ver, "ringbolt");
  all.node_guid = all.sys_image_guid = htobe64(profile::shown_guid(like.look, guid, port_index));
  all.max_mr_size = profile::limited(limits.advertised_mr_bytes, UINT64_MAX);
  // A bit for each size from 4 KiB to 2 GiB.
  all.page_size_cap = 0xfffff000;
  all.vendor_id = kVendorOfSoftware;
  all.max_qp = granted(limits.advertised_qp, device::kMaxQueuePairs);
  all.max_qp_wr = granted(limits.qp_wr, device::kMaxQueueDepth);
  all.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID;
  all.max_sge = all.max_sge_rd = granted(limits.sge, device::kMaxSge);
  all.max_cq = granted(limits.cq, device::kMaxObjects);
  all.max_pd = granted(limits.pd, device::kMaxObjects);
  all.max_cqe = granted(limits.cqe, device::kMaxCqe);
  all.max_mr = granted(limits.mr, link::kRegionCount);
  if ((limits.qp_types & profile::kUd) != 0) {
    all.max_ah = static_cast<int>(device::kMaxObjects);
  }
  if (like.allows(profile::kRead)) {
    all.max_qp_rd_atom = all.max_qp_init_rd_atom = granted(limits.read_atomic, device::kMaxReadAtomic);
    all.max_res_rd_atom = all.max_qp_rd_atom * all.max_qp;
  }
  all.atomic_cap = like.allows(profile::kAtomic) ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  if ((limits.qp_types & profile::kRc) != 0) {
    all.device_cap_flags |= IBV_DEVICE_RC_RNR_NAK_GEN;
  }
  if (limits.has_srq) {
    all.device_cap_flags |= IBV_DEVICE_SRQ_RESIZE;
    all.max_srq_sge = static_cast<int>(device::kMaxSge);
    all.max_srq = static_cast<int>(device::kMaxObjects);
    all.max_srq_wr = static_cast<int>(device::kMaxSrqDepth);
  }
  if (limits.has_windows) {
    all.device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    all.max_mw = static_cast<int>(device::kMaxObjects);
  }
  all.max_pkeys = 1;
  all.phys_port_cnt = 1;
  return all;
}

ibv_port_attr port_attributes(const profile::Profile& like, const PortFacts& port) {
  ibv_port_attr all{};
  all.state = port.is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  all.max_mtu = IBV_MTU_4096;
  all.active_mtu = port.mtu;
  all.gid_tbl_len = static_cast<int>(like.look.gid_table_length);
  all.lid = profile::shown_lid(like.look, port.guid);
  all.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  all.max_msg_sz = profile::limited(like.limits.message_bytes, device::kMaxMessageBytes);
  all.pkey_tbl_len = 1;
  all.max_vl_num = 1;
  all.active_width = like.look.width;
  all.active_speed = profile::limited(like.look.speed, speed_code(port.speed_gbps));
  all.phys_state = port.is_up ? kPhysicalLinkUp : kPhysicalDisabled;
  all.link_layer = IBV_LINK_LAYER_ETHERNET;
  return all;
}

uint8_t speed_code(uint32_t gbps) {
  struct Step {
    uint32_t lane_gbps;
    uint8_t code;
  };
  constexpr Step kSteps[] = {{10, 4}, {14, 16}, {25, 32}, {50, 64}};
  const auto* step = std::ranges::find_if(kSteps, [&](const Step& one) { return one.lane_gbps * 4 >= gbps; });
  return step == std::end(kSteps) ? uint8_t{128} : step->code;
}

}  // namespace ringbolt::abi
