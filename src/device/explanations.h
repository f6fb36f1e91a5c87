#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "base/explain.h"
#include "device/port.h"
#include "device/send_queue.h"

/// Why verbs calls are refused, in words. All pure.
namespace ringbolt::device {

/// "fe80::1", "::ffff:10.0.0.7".
std::string text_of(const ibv_gid& gid);
/// "IBV_WR_RDMA_WRITE".
std::string opcode_text(ibv_wr_opcode opcode);

/// A fault has decided it. `what`: with numbers.
base::Explanation why_fault(const std::string& what);
/// Of ibv_modify_qp: an attribute of `mask` that is out of range.
base::Explanation why_attribute_refused(const Port& port, const ibv_qp_attr& attributes, int mask);
/// Likewise: the path to RTR. `gids`: the port's table.
base::Explanation why_path_refused(const Port& port, const std::vector<ibv_gid>& gids, const ibv_ah_attr& path);
/// Of ibv_create_qp.
base::Explanation why_caps_refused(const ibv_qp_cap& wanted);
/// Of ibv_create_cq and ibv_resize_cq. `held`: completions that are there.
base::Explanation why_entries_refused(uint32_t wanted, uint32_t held);
/// Of ibv_post_send. `unfinished`: how many requests the queue holds.
base::Explanation why_send_refused(const ibv_send_wr& wr, ibv_qp_type type, ibv_qp_state state,
                                   const SendQueue::Limits& limits, uint32_t unfinished);
/// Of ibv_post_recv and ibv_post_srq_recv. `posted`: how many the queue of `depth` holds.
base::Explanation why_receive_refused(const ibv_recv_wr& wr, uint32_t posted, uint32_t depth, uint32_t max_sge);
/// Of ibv_reg_mr: flags.
base::Explanation why_access_refused(uint32_t access);
/// Likewise: memory that is not there, or not writable.
base::Explanation why_memory_refused(uint64_t address, uint64_t length, bool is_mapped);

}  // namespace ringbolt::device
