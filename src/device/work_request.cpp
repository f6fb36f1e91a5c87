#include "device/work_request.h"

#include "base/in_place.h"
#include "device/address_handle.h"

namespace ringbolt::device {
namespace {

void take_operands(const ibv_send_wr& wr, SendRequest& request) {
  switch (wr.opcode) {
    case IBV_WR_SEND_WITH_IMM:
      request.immediate = wr.imm_data;
      break;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      request.immediate = wr.invalidate_rkey;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      request.immediate = wr.imm_data;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
      request.remote_address = wr.wr.rdma.remote_addr;
      request.key = wr.wr.rdma.rkey;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      request.remote_address = wr.wr.atomic.remote_addr;
      request.key = wr.wr.atomic.rkey;
      request.compare_or_add = wr.wr.atomic.compare_add;
      request.swap = wr.wr.atomic.swap;
      break;
    case IBV_WR_BIND_MW:
      request.key = wr.bind_mw.bind_info.mr == nullptr ? 0 : wr.bind_mw.bind_info.mr->lkey;
      request.remote_address = wr.bind_mw.bind_info.addr;
      request.window_length = wr.bind_mw.bind_info.length;
      request.window_access = wr.bind_mw.bind_info.mw_access_flags;
      // Another object's key would be bound in its place: 0 is nobody's.
      request.window_key = ((wr.bind_mw.rkey ^ wr.bind_mw.mw->handle) & ~0xffU) == 0 ? wr.bind_mw.rkey : 0;
      request.is_type2_window = wr.bind_mw.mw->type == IBV_MW_TYPE_2;
      break;
    default:
      break;
  }
}

void take_target(const ibv_send_wr& wr, uint32_t own_qkey, SendRequest& request) {
  const AddressHandle& target = AddressHandle::of(wr.wr.ud.ah);
  request.remote_gid = target.gid;
  request.source_gid = target.source_gid;
  request.source_gid_index = target.source_gid_index;
  request.target_gid_index = target.target_gid_index;
  request.is_loopback = target.is_loopback;
  request.is_remote = target.is_remote;
  request.traffic_class = target.attributes.grh.traffic_class;
  request.remote_qpn = wr.wr.ud.remote_qpn & 0xffffffU;
  // A Q_Key with the high bit set stands for the sender's own.
  request.qkey = (wr.wr.ud.remote_qkey & 0x80000000U) != 0 ? own_qkey : wr.wr.ud.remote_qkey;
}

}  // namespace

SendRequest describe(const ibv_send_wr& wr, ibv_qp_type type, uint32_t own_qkey) {
  SendRequest request;  // NOLINT: see its declaration
  request.opcode = wr.opcode;
  request.immediate = 0;
  request.is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  request.is_fenced = (wr.send_flags & IBV_SEND_FENCE) != 0;
  request.is_solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  request.stays_in_place = (wr.send_flags & base::kStaysInPlace) != 0;
  request.pieces = wr.sg_list;
  request.pieces_count = static_cast<uint32_t>(wr.num_sge);
  request.length = total_length(wr);
  take_operands(wr, request);
  if (type == IBV_QPT_UD) {
    take_target(wr, own_qkey, request);
  }
  return request;
}

}  // namespace ringbolt::device
