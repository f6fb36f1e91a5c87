#pragma once

#include <optional>

#include "bringup/port_card.h"
#include "verbs/library.h"

namespace ringbolt::bringup {

/// The type of queue pair between two ports: `preferred` (UC or RC) where both have it, else the other one. Nothing:
/// they have none in common. Both ends come to the same. Pure.
inline std::optional<ibv_qp_type> common_type(const Capabilities& a, const Capabilities& b, ibv_qp_type preferred) {
  const bool has_uc = a.has_uc && b.has_uc;
  const bool has_rc = a.has_rc && b.has_rc;
  if (!has_uc && !has_rc) {
    return std::nullopt;
  }
  return has_uc && (preferred == IBV_QPT_UC || !has_rc) ? IBV_QPT_UC : IBV_QPT_RC;
}

}  // namespace ringbolt::bringup
