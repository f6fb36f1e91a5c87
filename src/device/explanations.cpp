#include "device/explanations.h"

#include <arpa/inet.h>

#include <array>

#include <fmt/format.h>

#include "device/gid_table.h"
#include "device/limits.h"
#include "device/netdev.h"
#include "device/qp_transitions.h"
#include "device/work_request.h"

namespace ringbolt::device {
namespace {

constexpr uint32_t kMost24Bits = 0xffffff;

/// The first slot with an IPv4 address, which is what most programs want; the table's length: there is none.
size_t index_of_ipv4(const std::vector<ibv_gid>& gids) {
  size_t index = 0;
  while (index < gids.size() && !is_ipv4(gids[index])) {
    ++index;
  }
  return index;
}

/// The specification has nothing against the request: what refused it was put there on purpose.
base::Explanation asked_for() {
  return {"the device takes such requests; a fault, or the profile that it plays, refuses this one",
          "look at `ringbolt fault list`, RINGBOLT_FAULTS and RINGBOLT_LIKE"};
}

struct Range {
  int bit;
  const char* member;
  uint64_t given;
  uint64_t least;
  uint64_t most;
};

}  // namespace

std::string text_of(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET6, gid.raw, text.data(), text.size()) == nullptr ? "?" : text.data();
}

base::Explanation why_fault(const std::string& what) {
  return {"a fault refuses it, as it was asked to (" + what + ")",
          "see `ringbolt fault list` and RINGBOLT_FAULTS; `ringbolt fault clear` ends them"};
}

std::string opcode_text(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return "IBV_WR_RDMA_WRITE";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return "IBV_WR_RDMA_WRITE_WITH_IMM";
    case IBV_WR_SEND:
      return "IBV_WR_SEND";
    case IBV_WR_SEND_WITH_IMM:
      return "IBV_WR_SEND_WITH_IMM";
    case IBV_WR_RDMA_READ:
      return "IBV_WR_RDMA_READ";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return "IBV_WR_ATOMIC_CMP_AND_SWP";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return "IBV_WR_ATOMIC_FETCH_AND_ADD";
    case IBV_WR_LOCAL_INV:
      return "IBV_WR_LOCAL_INV";
    case IBV_WR_BIND_MW:
      return "IBV_WR_BIND_MW";
    case IBV_WR_SEND_WITH_INV:
      return "IBV_WR_SEND_WITH_INV";
    default:
      return fmt::format("opcode {}", static_cast<int>(opcode));
  }
}

base::Explanation why_attribute_refused(const Port& port, const ibv_qp_attr& attributes, int mask) {
  const uint32_t read_atomic = profile::limited(port.profile.limits.read_atomic, kMaxReadAtomic);
  const Range ranges[] = {
      {IBV_QP_PORT, "port_num", attributes.port_num, 1, 1},
      {IBV_QP_PKEY_INDEX, "pkey_index", attributes.pkey_index, 0, 0},
      {IBV_QP_PATH_MTU, "path_mtu", attributes.path_mtu, IBV_MTU_256, port.mtu},
      {IBV_QP_DEST_QPN, "dest_qp_num", attributes.dest_qp_num, 0, kMost24Bits},
      {IBV_QP_TIMEOUT, "timeout", attributes.timeout, 0, 31},
      {IBV_QP_RETRY_CNT, "retry_cnt", attributes.retry_cnt, 0, 7},
      {IBV_QP_RNR_RETRY, "rnr_retry", attributes.rnr_retry, 0, 7},
      {IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", attributes.min_rnr_timer, 0, 31},
      {IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attributes.max_rd_atomic, 0, read_atomic},
      {IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attributes.max_dest_rd_atomic, 0, read_atomic},
  };
  for (const Range& one : ranges) {
    if ((mask & one.bit) == 0 || (one.given >= one.least && one.given <= one.most)) {
      continue;
    }
    const std::string bounds =
        one.least == one.most ? fmt::format("{} alone", one.least) : fmt::format("{} to {}", one.least, one.most);
    std::string fix = fmt::format("set {} within that", one.member);
    if (one.bit == IBV_QP_PATH_MTU) {
      fix = "take active_mtu of ibv_query_port; 1 is 256 bytes, 5 is 4096: the number is no count of bytes";
    } else if (one.bit == IBV_QP_PORT) {
      fix = "ports are counted from 1";
    }
    return {fmt::format("{} is {}; {} takes {}", one.member, one.given, port.name, bounds), fix};
  }
  return {"an attribute is out of its range", "compare them with ibv_query_device and ibv_query_port"};
}

base::Explanation why_path_refused(const Port& port, const std::vector<ibv_gid>& gids, const ibv_ah_attr& path) {
  if (path.port_num != 1) {
    return {fmt::format("ah_attr.port_num is {}; {} has port 1 alone", path.port_num, port.name),
            "set ah_attr.port_num to 1"};
  }
  const size_t at = index_of_ipv4(gids);
  const std::string known = at == gids.size()
                                ? fmt::format("{} GIDs", gids.size())
                                : fmt::format("{} GIDs, and {} is at index {}", gids.size(), text_of(gids[at]), at);
  const std::string index_fix = at == gids.size()
                                    ? "look the index up with ibv_query_gid"
                                    : fmt::format("set grh.sgid_index to {}, or look it up with ibv_query_gid", at);
  if (path.is_global == 0) {
    return {fmt::format("ah_attr.is_global is 0: a path by LID, which Ethernet ports as {} don't have", port.name),
            "set is_global to 1, and grh.dgid and grh.sgid_index with it"};
  }
  const uint32_t index = path.grh.sgid_index;
  if (index >= gids.size() || is_zero(gids[index])) {
    return {fmt::format("GID index {} is {}: {} has {}", index, index >= gids.size() ? "beyond the table" : "empty",
                        port.name, known),
            index_fix};
  }
  if (is_zero(path.grh.dgid)) {
    return {"grh.dgid is all zeros: no peer", "copy the peer's GID, as it has told it, into grh.dgid"};
  }
  if (!port.reaches(path.grh.dgid)) {
    std::string ends;
    for (const ibv_gid& gid : port.peer_gids) {
      ends += (ends.empty() ? "" : ", ") + text_of(gid);
    }
    return {ends.empty() ? fmt::format("{} does not reach {}: it has no route there", port.name, text_of(path.grh.dgid))
                         : fmt::format("{} does not reach {}: at the end of its cable are {}", port.name,
                                       text_of(path.grh.dgid), ends),
            "open the device whose cable leads to that peer, or correct the peer's GID"};
  }
  return {fmt::format("the path is from {} to {}, and these are not of one kind", text_of(gids[index]),
                      text_of(path.grh.dgid)),
          "use both ends' IPv4 GIDs (::ffff:a.b.c.d), or both ends' IPv6 ones"};
}

base::Explanation why_caps_refused(const ibv_qp_cap& wanted) {
  const Range ranges[] = {
      {0, "cap.max_send_wr", wanted.max_send_wr, 0, kMaxQueueDepth},
      {0, "cap.max_recv_wr", wanted.max_recv_wr, 0, kMaxQueueDepth},
      {0, "cap.max_send_sge", wanted.max_send_sge, 0, kMaxSge},
      {0, "cap.max_recv_sge", wanted.max_recv_sge, 0, kMaxSge},
      {0, "cap.max_inline_data", wanted.max_inline_data, 0, kMaxInlineBytes},
  };
  for (const Range& one : ranges) {
    if (one.given > one.most) {
      return {fmt::format("{} is {}; the device has {} at most", one.member, one.given, one.most),
              "ask ibv_query_device first, and take less; cards differ in this"};
    }
  }
  return {"the queue pair's sizes are more than the device has", "ask ibv_query_device first"};
}

base::Explanation why_entries_refused(uint32_t wanted, uint32_t held) {
  return wanted < held && wanted != 0
             ? base::Explanation{fmt::format("cqe is {}; the queue holds {}", wanted, held),
                                 "poll first, or give room for these"}
             : base::Explanation{fmt::format("cqe is {}; the device takes 1 to {}", wanted, kMaxCqe),
                                 "give as many entries as may complete before you poll"};
}

base::Explanation why_send_refused(const ibv_send_wr& wr, ibv_qp_type type, ibv_qp_state state,
                                   const SendQueue::Limits& limits, uint32_t unfinished) {
  if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_SQE && state != IBV_QPS_ERR) {
    return {fmt::format("the queue pair is in the state {}; it takes sends from RTS on", name_of(state)),
            "step it to RTS with ibv_modify_qp first"};
  }
  if (unfinished >= limits.requests) {
    return {fmt::format("the send queue is full: {} of {} requests are unfinished", unfinished, limits.requests),
            "poll the send completion queue before posting more; a request without IBV_SEND_SIGNALED makes room only "
            "once a "
            "later signaled one was polled"};
  }
  const Operation& operation = operation_of(wr.opcode);
  if ((operation.types >> type & 1U) == 0) {
    return {fmt::format("{} on a queue pair of type {}, which does not have it", opcode_text(wr.opcode), name_of(type)),
            type == IBV_QPT_UD ? "datagrams are SENDs; take RC for this" : "take RC for this, or another opcode"};
  }
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > limits.pieces) {
    return {fmt::format("num_sge is {}; the queue pair was made with max_send_sge {}", wr.num_sge, limits.pieces),
            "ask for more with cap.max_send_sge, or gather into one buffer"};
  }
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    return {operation.carries_data ? fmt::format("{} bytes inline; the queue pair was made with max_inline_data {}",
                                                 total_length(wr), limits.inline_bytes)
                                   : fmt::format("{} carries no data that could be inline", opcode_text(wr.opcode)),
            "leave IBV_SEND_INLINE out, or ask for more with cap.max_inline_data"};
  }
  if (type == IBV_QPT_UD && wr.wr.ud.ah == nullptr) {
    return {"wr.ud.ah is null: a datagram to nobody", "make an address handle with ibv_create_ah"};
  }
  if (wr.opcode == IBV_WR_BIND_MW && wr.bind_mw.mw == nullptr) {
    return {"bind_mw.mw is null: nothing to bind", "make a memory window with ibv_alloc_mw"};
  }
  return asked_for();
}

base::Explanation why_receive_refused(const ibv_recv_wr& wr, uint32_t posted, uint32_t depth, uint32_t max_sge) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > max_sge) {
    return {fmt::format("num_sge is {}; the queue was made for {}", wr.num_sge, max_sge),
            "ask for more with cap.max_recv_sge, or receive into one buffer"};
  }
  if (posted >= depth) {
    return {fmt::format("the receive queue is full: it holds {}", depth),
            "post as many as were completed, or ask for more with cap.max_recv_wr"};
  }
  return asked_for();
}

base::Explanation why_access_refused(uint32_t access) {
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) {
    return {"IBV_ACCESS_ON_DEMAND: the device has no paging on demand",
            "register without it; nothing is pinned here anyway"};
  }
  const bool writes = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if (writes && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return {fmt::format("access {:#x} lets peers write without IBV_ACCESS_LOCAL_WRITE", access),
            "add IBV_ACCESS_LOCAL_WRITE (InfiniBand specification, 10.6.3)"};
  }
  return {fmt::format("access {:#x} has flags that mean nothing", access), "take IBV_ACCESS_* of <infiniband/verbs.h>"};
}

base::Explanation why_memory_refused(uint64_t address, uint64_t length, bool is_mapped) {
  const std::string where = fmt::format("{} bytes at {:#x}", length, address);
  if (address + length < address) {
    return {where + " go beyond the end of addresses", "correct the length"};
  }
  return is_mapped ? base::Explanation{where + " are read-only for this program",
                                       "register without IBV_ACCESS_LOCAL_WRITE, or use memory that can be written to"}
                   : base::Explanation{where + " are not all mapped in this program",
                                       "register memory that is there: was it freed, or is the length too long?"};
}

}  // namespace ringbolt::device
