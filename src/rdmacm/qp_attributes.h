#pragma once

#include <infiniband/verbs.h>

#include "rdmacm/objects.h"

/// How the connection manager moves queue pairs.
namespace ringbolt::rdmacm {

struct QpStep {
  ibv_qp_attr attributes{};
  int mask = 0;
};

/// The attributes of the step to `state` (INIT, RTR, RTS), from what both sides said. Nothing for a step that the
/// identifier has no facts for yet. `id.route` is set. P_Key index 0 and port 1 are all there are.
std::optional<QpStep> qp_step(const Id& id, ibv_qp_state state) RINGBOLT_REQUIRES(manager_lock);

/// INIT with the real access rights, RTR and RTS of id->qp. 0 or an errno.
int prepare_queue_pair(Id& id) RINGBOLT_REQUIRES(manager_lock);
/// The first state of a queue pair just made: INIT, or, for datagrams, RTS.
int initialize_queue_pair(Id& id, ibv_qp* qp) RINGBOLT_REQUIRES(manager_lock);
/// Ends all that is posted; before, sends that are under way get a moment. `id` has a queue pair. Fails for one that
/// has ended already, which is no matter.
void flush_queue_pair(Id& id);

/// How to address the peer.
ibv_ah_attr address_vector(const Id& id) RINGBOLT_REQUIRES(manager_lock);

}  // namespace ringbolt::rdmacm
