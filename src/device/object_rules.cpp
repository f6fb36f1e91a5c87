#include "device/object_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "device/four_gib.h"
#include "device/memory_kind.h"
#include "profile/frames.h"

namespace ringbolt::device {
namespace {

using profile::Rule;

constexpr uint64_t kRegionPageBytes = 16384;
constexpr uint32_t kRemoteAccess = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

const char* type_name(ibv_qp_type type) {
  return type == IBV_QPT_RC ? "RC" : type == IBV_QPT_UC ? "UC" : type == IBV_QPT_UD ? "UD" : "other";
}

}  // namespace

uint8_t type_bit(ibv_qp_type type) {
  return type == IBV_QPT_RC ? profile::kRc : type == IBV_QPT_UC ? profile::kUc : type == IBV_QPT_UD ? profile::kUd : 0;
}

int check_pd(const Port& port) {
  return port.profile.knobs.checks_port_at_pd && !port.is_up()
             ? port.refuse(Rule::pd_port_down, ENOMEM, "a protection domain while the port is down")
             : 0;
}

int check_cq(const Port& port, uint32_t cqe) {
  const uint32_t most = port.profile.limits.cqe;
  return most != 0 && cqe > most
             ? port.refuse(Rule::cqe_limit, EINVAL, fmt::format("a completion queue of {} entries, {} at most", cqe, most))
             : 0;
}

int check_channel(const Port& port) {
  return port.profile.knobs.has_channels ? 0
                                         : port.refuse(Rule::completion_channel, EOPNOTSUPP, "a completion channel");
}

int check_srq(const Port& port) {
  return port.profile.limits.has_srq ? 0 : port.refuse(Rule::srq, EOPNOTSUPP, "a shared receive queue");
}

int check_address_handle(const Port& port) {
  return (port.profile.limits.qp_types & profile::kUd) != 0
             ? 0
             : port.refuse(Rule::address_handle, EOPNOTSUPP, "an address handle");
}

int check_window(const Port& port) {
  return port.profile.limits.has_windows ? 0 : port.refuse(Rule::memory_window, EOPNOTSUPP, "a memory window");
}

int check_region(const Port& port, uint64_t address, uint64_t length, uint64_t iova, uint32_t access) {
  const profile::Knobs& knobs = port.profile.knobs;
  if (knobs.zero_rkey && (iova != address || (access & IBV_ACCESS_ZERO_BASED) != 0)) {
    return port.refuse(Rule::mr_zero_based, EOPNOTSUPP,
                       fmt::format("a region whose addresses begin at {:#x}, not at its own {:#x}",
                                   (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova, address));
  }
  if (knobs.wants_aligned_regions && address % kRegionPageBytes != 0) {
    return port.refuse(Rule::mr_alignment, EINVAL,
                       fmt::format("a region at {:#x}, which is no multiple of {}", address, kRegionPageBytes));
  }
  if (knobs.wants_remote_access && (access & kRemoteAccess) == 0) {
    return port.refuse(Rule::mr_access, EINVAL, "a region without remote access");
  }
  if (knobs.wants_mapped_regions && is_on_heap_or_stack(address, length)) {
    return port.refuse(Rule::mr_memory, EINVAL, fmt::format("a region at {:#x}, on the heap or a stack", address));
  }
  if (knobs.wrap_4_gib != profile::Wrap4Gib::off && crosses_4_gib(address, length)) {
    port.warn(Rule::mr_crosses_4_gib, fmt::format("a region from {:#x} of {} bytes", address, length));
  }
  return 0;
}

int check_qp(const Port& port, ibv_qp_init_attr& wanted) {
  const profile::Limits& limits = port.profile.limits;
  ibv_qp_cap& cap = wanted.cap;
  if ((limits.qp_types & type_bit(wanted.qp_type)) == 0 && !port.profile.knobs.refuses_type_at_modify) {
    return port.refuse(Rule::qp_type, EOPNOTSUPP, fmt::format("a queue pair of type {}", type_name(wanted.qp_type)));
  }
  if (wanted.srq != nullptr && !limits.has_srq) {
    return check_srq(port);
  }
  const uint32_t depth = std::max(cap.max_send_wr, cap.max_recv_wr);
  if (limits.qp_wr != 0 && depth > limits.qp_wr) {
    return port.refuse(Rule::wr_limit, EINVAL, fmt::format("a queue of {} requests, {} at most", depth, limits.qp_wr));
  }
  const uint32_t pieces = std::max(cap.max_send_sge, cap.max_recv_sge);
  if (limits.sge != 0 && pieces > limits.sge && port.profile.knobs.splits_pieces) {
    port.warn(Rule::split_pieces, fmt::format("requests of {} pieces: each becomes a message of its own", pieces));
  } else if (limits.sge != 0 && pieces > limits.sge) {
    return port.refuse(Rule::sge_limit, EINVAL, fmt::format("requests of {} pieces, {} at most", pieces, limits.sge));
  }
  if (!limits.has_inline && cap.max_inline_data != 0) {
    return port.refuse(Rule::inline_data, EINVAL, fmt::format("{} bytes of inline data", cap.max_inline_data));
  }
  if (limits.counts_frames) {
    cap.max_send_wr = profile::granted_frames(cap.max_send_wr);
    cap.max_recv_wr = profile::granted_frames(cap.max_recv_wr);
  }
  return 0;
}

}  // namespace ringbolt::device
