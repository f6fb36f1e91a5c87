// What the port's profile says to a queue pair: operations, depths counted in frames, receives that can't work, paths.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "device/gid_table.h"
#include "device/netdev.h"
#include "device/object_rules.h"
#include "device/queue_pair.h"
#include "profile/frames.h"

namespace ringbolt::device {
namespace {

using profile::Rule;

uint8_t operation_bit(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
      return profile::kSend;
    case IBV_WR_SEND_WITH_IMM:
      return profile::kSendImmediate;
    case IBV_WR_RDMA_WRITE:
      return profile::kWrite;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return profile::kWriteImmediate;
    case IBV_WR_RDMA_READ:
      return profile::kRead;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return profile::kAtomic;
    default:
      return profile::kInvalidateOrBind;
  }
}

const char* name_of(uint8_t operation) {
  switch (operation) {
    case profile::kSend:
      return "SEND";
    case profile::kSendImmediate:
      return "SEND with immediate data";
    case profile::kWrite:
      return "WRITE";
    case profile::kWriteImmediate:
      return "WRITE with immediate data";
    case profile::kRead:
      return "READ";
    case profile::kAtomic:
      return "an atomic operation";
    default:
      return "an operation on memory windows or keys";
  }
}

// What the observed driver returns: a negated errno, and the program's pointer is left as it was.
constexpr int kBudgetExceeded = -ENOMEM;

uint64_t length_of(const ibv_sge* pieces, int count) {
  uint64_t length = 0;
  for (int i = 0; i < count; ++i) {
    length += pieces[i].length;
  }
  return length;
}

bool has_state_after(ibv_qp_state state, profile::ReceiveFrom from) {
  const bool is_early = state == IBV_QPS_INIT || (state == IBV_QPS_RTR && from == profile::ReceiveFrom::rts);
  return !is_early || from == profile::ReceiveFrom::init;
}

}  // namespace

/// Of a message or a receive of these pieces, each of which may be one of its own.
uint32_t QueuePair::frames_of_pieces(const ibv_sge* pieces, int count) const {
  if (!splits_pieces_) {
    return profile::frames_of(length_of(pieces, count));
  }
  uint32_t frames = count == 0 ? 1 : 0;
  for (int i = 0; i < count; ++i) {
    frames += profile::frames_of(pieces[i].length);
  }
  return frames;
}

uint32_t QueuePair::postable_frames(uint32_t granted) const {
  return granted - std::min(granted, context_.port().profile.knobs.short_grant_frames);
}

int QueuePair::check_send_rules(const ibv_send_wr& wr) const {
  const Port& port = context_.port();
  const profile::Limits& limits = port.profile.limits;
  const uint8_t operation = operation_bit(wr.opcode);
  if (!port.profile.allows(operation)) {
    return port.refuse(Rule::operation, EOPNOTSUPP, name_of(operation));
  }
  if (!limits.has_inline && (wr.send_flags & IBV_SEND_INLINE) != 0) {
    return port.refuse(Rule::inline_data, EINVAL, "a send with inline data");
  }
  const uint64_t length = length_of(wr.sg_list, wr.num_sge);
  const bool is_send = operation == profile::kSend || operation == profile::kSendImmediate;
  if (port.profile.knobs.refuses_empty_sends && is_send && length == 0) {
    return port.refuse(Rule::empty_send, EMSGSIZE, "a send without a byte");
  }
  if (!limits.counts_frames) {
    return limits.message_bytes != 0 && length > limits.message_bytes
               ? port.refuse(Rule::message_length, EINVAL,
                             fmt::format("a message of {} bytes, {} at most", length, limits.message_bytes))
               : 0;
  }
  if (port.profile.knobs.writes_into_stream && wr.opcode == IBV_WR_RDMA_WRITE) {
    port.warn(Rule::write_into_stream, fmt::format("a WRITE of {} bytes goes into the peer's receive queue", length));
  }
  const uint32_t frames = frames_of_pieces(wr.sg_list, wr.num_sge);
  if (frames > caps_.max_send_wr) {
    port.refuse(Rule::message_length, ENOMEM,
                fmt::format("a message of {} frames into a queue of {}", frames, caps_.max_send_wr));
    return kBudgetExceeded;
  }
  if (send_.frames + frames > postable_frames(caps_.max_send_wr) && !port.profile.knobs.overruns_silently) {
    port.refuse(Rule::frame_budget, ENOMEM,
                fmt::format("a send of {} frames beyond the {} that are queued, of {} granted", frames, send_.frames,
                            caps_.max_send_wr));
    return kBudgetExceeded;
  }
  return 0;
}

int QueuePair::check_receive_rules(const ibv_recv_wr& wr, ibv_qp_state state) {
  const Port& port = context_.port();
  const profile::Limits& limits = port.profile.limits;
  if (!has_state_after(state, port.profile.knobs.receive_from)) {
    return port.refuse(Rule::receive_too_early, EINVAL,
                       fmt::format("a receive in the state {}", state == IBV_QPS_INIT ? "INIT" : "RTR"));
  }
  const bool takes_one = limits.posted_receive_sge != 0 && !splits_pieces_;
  if (takes_one && static_cast<uint32_t>(wr.num_sge) > limits.posted_receive_sge) {
    return port.refuse(Rule::sge_limit, EINVAL,
                       fmt::format("a receive of {} pieces, {} at most", wr.num_sge, limits.posted_receive_sge));
  }
  if (!limits.counts_frames || wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > caps_.max_recv_sge) {
    return 0;  // too many pieces: the queue itself refuses them
  }
  const uint32_t frames = frames_of_pieces(wr.sg_list, wr.num_sge);
  const uint32_t receives = splits_pieces_ ? std::max(1U, static_cast<uint32_t>(wr.num_sge)) : 1;
  if (receive_.frames + frames > postable_frames(caps_.max_recv_wr)) {
    const bool is_silent = port.profile.knobs.overruns_silently ||
                           (faults_.has(fault::Subject::posting) &&
                            faults_.judge(fault::Subject::posting, port).is_refused);
    port.refuse(Rule::frame_budget, is_silent ? 0 : ENOMEM,
                fmt::format("a receive of {} frames beyond the {} that are posted, of {} granted", frames,
                            receive_.frames, caps_.max_recv_wr));
    if (!is_silent) {
      return kBudgetExceeded;
    }
    for (uint32_t i = 0; i < receives; ++i) {
      receive_.overrun.insert(receive_.posted_count + i);
    }
  }
  receive_.frames += frames;
  receive_.posted_count += receives;
  return 0;
}

void QueuePair::take_receive_frames() {
  const uint32_t frames =
      profile::frames_of(length_of(receive_.current.wanted.data(), static_cast<int>(receive_.current.wanted_count)));
  receive_.frames -= std::min(receive_.frames, frames);
  receive_.current.is_overrun = receive_.overrun.erase(receive_.taken_count++) != 0;
}

ibv_wc_status QueuePair::judge_receive(uint32_t total) {
  const Port& port = context_.port();
  if (port.profile.knobs.refuses_late_regions) {
    for (uint32_t i = 0; i < receive_.current.wanted_count; ++i) {
      if (process_.region_ages().is_after(receive_.current.wanted[i].lkey, receive_.regions_at_rtr)) {
        port.warn(Rule::late_mr, "a message for a region that was registered after RTR: local protection error");
        return IBV_WC_LOC_PROT_ERR;
      }
    }
  }
  if (!counts_frames_) {
    return IBV_WC_SUCCESS;
  }
  const uint64_t room = length_of(receive_.current.wanted.data(), static_cast<int>(receive_.current.wanted_count));
  if (receive_.current.is_overrun) {
    return IBV_WC_LOC_LEN_ERR;
  }
  if (profile::frames_of(total) != profile::frames_of(room)) {
    port.warn(Rule::frame_mismatch, fmt::format("a message of {} bytes ({} frames) for a receive of {} ({} frames): "
                                                "local length error",
                                                total, profile::frames_of(total), room, profile::frames_of(room)));
    return IBV_WC_LOC_LEN_ERR;
  }
  return IBV_WC_SUCCESS;
}

int QueuePair::check_step_rules(ibv_qp_state from, ibv_qp_state to, bool is_allowed) const {
  const Port& port = context_.port();
  if ((port.profile.limits.qp_types & type_bit(type_)) == 0) {
    return port.refuse(Rule::qp_type, EOPNOTSUPP, "a queue pair of a type that the device lacks");
  }
  if (!is_allowed && counts_frames_) {
    return port.refuse(Rule::attribute_mask, EINVAL,
                       fmt::format("the attributes given with the step from state {} to {}", static_cast<int>(from),
                                   static_cast<int>(to)));
  }
  return is_allowed ? 0 : EINVAL;
}

int QueuePair::check_path(const ibv_ah_attr& path) const {
  const Port& port = context_.port();
  const ibv_global_route& route = path.grh;
  const auto addresses = port.addresses();
  const std::vector<ibv_gid>& gids = addresses->shown;
  if (gids.empty()) {
    return port.refuse(Rule::empty_gid_table, port.profile.knobs.empty_table_is_einval ? EINVAL : ENODATA,
                       "a path from a port whose GID table is empty");
  }
  if (path.port_num != 1) {
    return EINVAL;
  }
  if (path.is_global == 0 || route.sgid_index >= gids.size() || is_zero(gids[route.sgid_index])) {
    return counts_frames_ ? port.refuse(Rule::gid_index, EINVAL,
                                        path.is_global == 0
                                            ? std::string("a path without GIDs")
                                            : fmt::format("a path from GID index {}", unsigned{route.sgid_index}))
                          : EINVAL;
  }
  if (counts_frames_ && is_zero(route.dgid)) {
    return port.refuse(Rule::gid_index, EINVAL, "a path to the GID of all zeros");
  }
  const ibv_gid& own = gids[route.sgid_index];
  if (!port.reaches(route.dgid) ||
      (counts_frames_ && !port.owns(route.dgid) && is_ipv4(own) != is_ipv4(route.dgid))) {
    return counts_frames_ ? port.refuse(Rule::unreachable, ETIMEDOUT, "a path to a GID that is not at this cable's end")
                          : ETIMEDOUT;
  }
  return port.is_remote(route.dgid) && is_ipv4(route.dgid) != is_ipv4(own) ? EINVAL : 0;
}

}  // namespace ringbolt::device
