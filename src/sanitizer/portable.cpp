#include "sanitizer/portable.h"

#include <algorithm>

#include <fmt/format.h>

#include "profile/catalogue.h"

namespace ringbolt::sanitizer {
namespace {

/// Pages of an Apple machine, whose profile wants regions to begin at one.
constexpr uint64_t kRegionPageBytes = 16384;
constexpr uint32_t kRemoteAccess = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

/// One line for profiles that object in the same words.
class Objections {
 public:
  void add(const profile::Profile& profile, const std::string& why) {
    const auto known = std::ranges::find(all_, why, &Objection::why);
    if (known == all_.end()) {
      all_.push_back({why, profile.name});
    } else if (!known->names.ends_with(profile.name)) {
      known->names += ", " + profile.name;
    }
  }
  std::string words() const {
    std::string text;
    for (const Objection& one : all_) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", one.names, one.why);
    }
    return text;
  }

 private:
  struct Objection {
    std::string why;
    std::string names;
  };
  std::vector<Objection> all_;
};

const char* type_text(ibv_qp_type type) {
  return type == IBV_QPT_RC ? "RC" : type == IBV_QPT_UC ? "UC" : type == IBV_QPT_UD ? "UD" : "other";
}

uint8_t bit_of(ibv_qp_type type) {
  return type == IBV_QPT_RC ? profile::kRc : type == IBV_QPT_UC ? profile::kUc : type == IBV_QPT_UD ? profile::kUd : 0;
}

std::string types_text(uint8_t types) {
  std::string text;
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    text += (types & bit_of(type)) == 0 ? "" : fmt::format("{}{}", text.empty() ? "" : " and ", type_text(type));
  }
  return text;
}

struct OperationText {
  uint8_t bit;
  const char* name;
};
OperationText operation_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return {profile::kWrite, "WRITE"};
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return {profile::kWriteImmediate, "WRITE with immediate data"};
    case IBV_WR_SEND_WITH_IMM:
      return {profile::kSendImmediate, "SEND with immediate data"};
    case IBV_WR_RDMA_READ:
      return {profile::kRead, "READ"};
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return {profile::kAtomic, "atomics"};
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
    case IBV_WR_SEND_WITH_INV:
      return {profile::kInvalidateOrBind, "memory windows and invalidation"};
    default:
      return {profile::kSend, "SEND"};
  }
}

}  // namespace

Portability::Portability() {
  for (const profile::NamedProfile& one : profile::known_profiles()) {
    if (auto parsed = profile::parse_profile(one.name)) {
      profiles_.push_back(std::move(*parsed));
    }
  }
}

std::string Portability::of_queue_pair(const ibv_qp_init_attr& wanted) const {
  Objections all;
  const ibv_qp_cap& cap = wanted.cap;
  for (const profile::Profile& one : profiles_) {
    const profile::Limits& limits = one.limits;
    if ((limits.qp_types & bit_of(wanted.qp_type)) == 0) {
      all.add(one, fmt::format("no {} queue pairs, {} alone", type_text(wanted.qp_type), types_text(limits.qp_types)));
      continue;
    }
    const uint32_t depth = std::max(cap.max_send_wr, cap.max_recv_wr);
    const uint32_t pieces = std::max(cap.max_send_sge, cap.max_recv_sge);
    if (limits.qp_wr != 0 && depth > limits.qp_wr) {
      all.add(one, fmt::format("{} requests a queue at most, not {}", limits.qp_wr, depth));
    }
    if (limits.sge != 0 && pieces > limits.sge) {
      all.add(one, fmt::format("{} pieces a request at most, not {}", limits.sge, pieces));
    }
    if (!limits.has_inline && cap.max_inline_data != 0) {
      all.add(one, fmt::format("no inline data, of {} bytes or any", cap.max_inline_data));
    }
    if (!limits.has_srq && wanted.srq != nullptr) {
      all.add(one, "no shared receive queues");
    }
  }
  return all.words();
}

std::string Portability::of_queue(uint32_t entries, bool has_channel) const {
  Objections all;
  for (const profile::Profile& one : profiles_) {
    if (one.limits.cqe != 0 && entries > one.limits.cqe) {
      all.add(one, fmt::format("{} entries at most, not {}", one.limits.cqe, entries));
    }
    if (has_channel && !one.knobs.has_channels) {
      all.add(one, "no completion channels: poll");
    }
  }
  return all.words();
}

std::string Portability::of_region(uint64_t address, uint64_t iova, uint32_t access) const {
  Objections all;
  for (const profile::Profile& one : profiles_) {
    if (one.knobs.zero_rkey && (iova != address || (access & IBV_ACCESS_ZERO_BASED) != 0)) {
      all.add(one, "regions have their own addresses alone");
    }
    if (one.knobs.wants_aligned_regions && address % kRegionPageBytes != 0) {
      all.add(one, fmt::format("regions begin at multiples of {}, not at {:#x}", kRegionPageBytes, address));
    }
    if ((access & kRemoteAccess & IBV_ACCESS_REMOTE_ATOMIC) != 0 && !one.allows(profile::kAtomic)) {
      all.add(one, "no atomics, which IBV_ACCESS_REMOTE_ATOMIC is for");
    }
    if ((access & IBV_ACCESS_MW_BIND) != 0 && !one.limits.has_windows) {
      all.add(one, "no memory windows, which IBV_ACCESS_MW_BIND is for");
    }
  }
  return all.words();
}

std::string Portability::of_change(const ibv_qp_attr& attributes, int mask) const {
  Objections all;
  const uint32_t deepest =
      std::max((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 ? attributes.max_rd_atomic : uint8_t{0},
               (mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 ? attributes.max_dest_rd_atomic : uint8_t{0});
  for (const profile::Profile& one : profiles_) {
    if (one.limits.read_atomic != 0 && deepest > one.limits.read_atomic) {
      all.add(one, fmt::format("{} READs and atomics under way at most, not {}", one.limits.read_atomic, deepest));
    }
  }
  return all.words();
}

std::string Portability::of_request(ibv_wr_opcode opcode, uint64_t length_bytes) const {
  Objections all;
  const OperationText operation = operation_of(opcode);
  for (const profile::Profile& one : profiles_) {
    if (!one.allows(operation.bit)) {
      all.add(one, fmt::format("no {}", operation.name));
    } else if (one.limits.message_bytes != 0 && length_bytes > one.limits.message_bytes) {
      all.add(one, fmt::format("{} bytes a message at most, not {}", one.limits.message_bytes, length_bytes));
    }
  }
  return all.words();
}

std::string Portability::of_srq() const {
  Objections all;
  for (const profile::Profile& one : profiles_) {
    if (!one.limits.has_srq) {
      all.add(one, "no shared receive queues");
    }
  }
  return all.words();
}

std::string Portability::of_window() const {
  Objections all;
  for (const profile::Profile& one : profiles_) {
    if (!one.limits.has_windows) {
      all.add(one, "no memory windows");
    }
  }
  return all.words();
}

}  // namespace ringbolt::sanitizer
