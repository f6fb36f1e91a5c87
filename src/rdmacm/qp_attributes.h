#pragma once

#include <infiniband/verbs.h>

#include "rdmacm/objects.h"

/// How the connection manager moves queue pairs. Under the station's lock.
namespace ringbolt::rdmacm {

struct QpStep {
  ibv_qp_attr attributes{};
  int mask = 0;
};

/// The attributes of the step to `state` (INIT, RTR, RTS), from what both sides said. Nothing for a step that the
/// identifier has no facts for yet.
std::optional<QpStep> qp_step(const Id& id, ibv_qp_state state);

/// INIT with the real access rights, RTR and RTS of id->qp. 0 or an errno.
int prepare_queue_pair(Id& id);
/// The first state of a queue pair just made: INIT, or, for datagrams, RTS.
int initialize_queue_pair(Id& id, ibv_qp* qp);
/// Ends all that is posted; before, sends that are under way get a moment.
void flush_queue_pair(Id& id);

/// How to address the peer.
ibv_ah_attr address_vector(const Id& id);

}  // namespace ringbolt::rdmacm
