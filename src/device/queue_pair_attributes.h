#pragma once

#include <infiniband/verbs.h>

#include "device/queue_pair_core.h"

/// What ibv_modify_qp may ask for: by the specification, by what the device can, and by what the profile of the port
/// allows, which tells why it refuses.
namespace ringbolt::device {

/// 0, or the errno for a step that is not allowed (`is_allowed`: by the specification).
int check_step(const QueuePairCore& core, ibv_qp_state from, ibv_qp_state to, int mask, bool is_allowed);

/// Of those that `mask` names: 0, EINVAL for values out of range, or what the path is refused with: ETIMEDOUT when its
/// GID is not at the other end of the cable.
int check_attributes(const QueuePairCore& core, const ibv_qp_attr& attributes, int mask);

/// Copies what `mask` names.
void store_attributes(const ibv_qp_attr& from, int mask, ibv_qp_attr& into);

}  // namespace ringbolt::device
