#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "sanitizer/portable.h"
#include "sanitizer/reports.h"

namespace ringbolt::sanitizer {

/// The findings of Kind::portable: what works here and not on one of the machines that profiles describe. `site`: of
/// the program's call. Nothing is found where nobody wished for them. Pure but for the making. Thread-safe.
class PortableUse {
 public:
  explicit PortableUse(bool is_wished_for);

  std::optional<Finding> of_queue_pair(const ibv_qp_init_attr& wanted, const base::CallSite& site) const;
  std::optional<Finding> of_change(const ibv_qp_attr& attributes, int mask, const base::CallSite& site) const;
  std::optional<Finding> of_queue(const ibv_cq& cq, const base::CallSite& site) const;
  std::optional<Finding> of_srq(const base::CallSite& site) const;
  std::optional<Finding> of_region(uint64_t address, uint64_t iova, uint32_t access, const base::CallSite& site) const;
  /// `length_bytes`: of the message.
  std::optional<Finding> of_request(ibv_wr_opcode opcode, uint64_t length_bytes, const base::CallSite& site) const;
  /// `is_looked_up`: the program has asked for addresses of the port before it used one by its index.
  std::optional<Finding> of_path(const ibv_ah_attr& path, bool is_looked_up, const base::CallSite& site) const;

 private:
  std::optional<Portability> machines_;  // nothing: nobody wished for it
};

}  // namespace ringbolt::sanitizer
