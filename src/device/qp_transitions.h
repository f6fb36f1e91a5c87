#pragma once

#include <infiniband/verbs.h>

#include "base/explain.h"

namespace ringbolt::device {

/// Whether ibv_modify_qp may take a queue pair of this type from one state to the other with these attributes: all that
/// the step needs and none that it does not know (InfiniBand Architecture Specification 1.4, 11.2.5.2, table 91). Pure.
bool may_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

/// Of a step that it may not take. Pure.
base::Explanation why_not(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

/// "RTR"; "RC". Pure.
const char* name_of(ibv_qp_state state);
const char* name_of(ibv_qp_type type);

}  // namespace ringbolt::device
