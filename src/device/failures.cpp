#include "device/failures.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "device/explanations.h"
#include "device/qp_transitions.h"

namespace ringbolt::device {
namespace {

struct NamedBit {
  uint32_t bit;
  const char* name;
};

constexpr NamedBit kAccessNames[] = {
    {IBV_ACCESS_LOCAL_WRITE, "IBV_ACCESS_LOCAL_WRITE"}, {IBV_ACCESS_REMOTE_WRITE, "IBV_ACCESS_REMOTE_WRITE"},
    {IBV_ACCESS_REMOTE_READ, "IBV_ACCESS_REMOTE_READ"}, {IBV_ACCESS_REMOTE_ATOMIC, "IBV_ACCESS_REMOTE_ATOMIC"},
    {IBV_ACCESS_MW_BIND, "IBV_ACCESS_MW_BIND"},         {IBV_ACCESS_ZERO_BASED, "IBV_ACCESS_ZERO_BASED"},
};

/// No region has the key now.
base::Explanation why_unknown(const KeyUse& use, const std::optional<PeerNotes::Note>& gone, bool is_own,
                              bool is_reversed) {
  const std::string key = fmt::format("{} {:#x}", use.name, use.key);
  const std::string whose = use.is_of_peer ? fmt::format("the peer's process {}", use.owner) : "this process";
  if (gone) {
    return {fmt::format("{} is no key of {} any more: {}, {}", key, whose, gone->text, age_text(gone->time_ns)),
            use.is_of_peer ? "have the peer deregister memory only after it knows that you are done with it"
                           : "deregister memory only when every request that uses it has completed"};
  }
  if (use.is_of_peer && is_own) {
    return {fmt::format("{} is a key of this process, and no key of {}", key, whose),
            "send the rkey of the peer's region over, and use that"};
  }
  if (is_reversed) {
    return {
        fmt::format("{} has its bytes in reverse: {} has a region with {:#x}", key, whose, __builtin_bswap32(use.key)),
        "convert with htonl and ntohl at both ends, or at none"};
  }
  return {fmt::format("{} is no key of {}, nor of one of the regions that it deregistered last", key, whose),
          use.is_of_peer ? "send the rkey of the region over unchanged, 32 bits of it"
                         : "take the lkey of the ibv_mr whose memory the request names"};
}

}  // namespace

std::string text_of(ibv_wc_status status) {
  static constexpr const char* kNames[] = {
      "SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
      "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
      "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
      "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
      "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
      "RESP_TIMEOUT_ERR", "GENERAL_ERR"};
  const auto index = static_cast<size_t>(status);
  return index < std::size(kNames) ? std::string("IBV_WC_") + kNames[index] : fmt::format("status {}", index);
}

std::string age_text(uint64_t since_ns) {
  const uint64_t now = base::now_ns();
  const uint64_t us = now < since_ns ? 0 : (now - since_ns) / 1000;
  return us < 1000        ? fmt::format("{} us ago", us)
         : us < 1'000'000 ? fmt::format("{} ms ago", us / 1000)
                          : fmt::format("{}.{} s ago", us / 1'000'000, us / 100'000 % 10);
}

std::string access_text(uint32_t access) {
  std::string text;
  for (const NamedBit& one : kAccessNames) {
    if ((access & one.bit) != 0) {
      text += (text.empty() ? "" : " | ") + std::string(one.name);
    }
  }
  return text.empty() ? "no access" : text;
}

base::Explanation why_key_refused(const KeyUse& use, const std::optional<link::Region>& found,
                                  const std::optional<PeerNotes::Note>& gone, bool is_own, bool is_reversed) {
  if (!found) {
    return why_unknown(use, gone, is_own, is_reversed);
  }
  const link::Region& region = *found;
  const std::string key = fmt::format("{} {:#x}", use.name, use.key);
  const char* const whose = use.is_of_peer ? "the peer's" : "this";
  if (region.pd_key != use.pd_key) {
    return {fmt::format("{} is of another protection domain ({}) than {} queue pair {:#x} ({})", key, region.pd_key,
                        whose, use.qpn, use.pd_key),
            "register the memory in the protection domain of the queue pair that is to reach it"};
  }
  if ((region.access & use.access) != use.access) {
    const std::string missing = access_text(use.access & ~region.access);
    return {fmt::format("the region of {} allows {}, and lacks {}", key, access_text(region.access), missing),
            fmt::format("register it with {}", missing)};
  }
  if (!region.holds(use.address, use.length)) {
    const std::string asked =
        use.address >= region.first
            ? fmt::format("{} bytes from byte {} on were addressed", use.length, use.address - region.first)
            : fmt::format("{} bytes from {:#x} on were addressed", use.length, use.address);
    return {fmt::format("the region of {} is {} bytes at {:#x}; {}", key, region.length, region.first, asked),
            use.address >= region.first && use.address - region.first <= region.length
                ? "stay within the region, or register more"
                : "address it from the start that it was registered with: an address, no offset (or 0, if zero-based)"};
  }
  if (region.bound_qpn != link::kAnyQueuePair && region.bound_qpn != use.qpn) {
    return {fmt::format("{} is a memory window bound to queue pair {:#x}, and {:#x} uses it", key, region.bound_qpn,
                        use.qpn),
            "bind a window of type 2 on the queue pair that the peer is connected to"};
  }
  return {fmt::format("{} allows these {} bytes at {:#x}, and they are not all mapped any more", key, use.length,
                      use.address),
          "deregister memory before it is freed or unmapped"};
}

base::Explanation why_dropped(Drop why, ibv_qp_state state) {
  if (why == Drop::inbox_full) {
    return {"more datagrams wait for it than it has room for",
            "poll its completion queue more often, or send less at once"};
  }
  return {fmt::format("the queue pair is in the state {} ({})", name_of(state), reason_of(why)),
          "step it to RTR before datagrams are sent to it"};
}

std::string source_text(const wire::PacketView& view, const wire::Flow& flow) {
  ibv_gid source{};
  std::ranges::copy(flow.source, source.raw);
  return fmt::format("queue pair {:#x} at {}", view.headers.deth.source_qp, text_of(source));
}

std::string remedy_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_REM_ACCESS_ERR:
      return "compare rkey, address, length and access flags with what the peer has registered";
    case IBV_WC_REM_INV_REQ_ERR:
      return "post longer receives at the peer, and ask for nothing that its qp_access_flags lack";
    case IBV_WC_REM_OP_ERR:
      return "look at the peer's standard error: a receive of its has a bad lkey or bad memory";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "post receives before the peer sends, or set rnr_retry to 7, which waits without end";
    case IBV_WC_RETRY_EXC_ERR:
      return "see whether the peer still runs, and whether dest_qp_num, GID and PSNs of both sides fit each other";
    default:
      return "look at the first completion of this queue pair that is no IBV_WC_WR_FLUSH_ERR";
  }
}

}  // namespace ringbolt::device
