#pragma once

#include "base/mutex.h"
#include "rdmacm/objects.h"

namespace ringbolt::rdmacm {

/// A new identifier that lives on `channel`; null without memory. Under the station's lock, as all here.
Id* new_id(Station& station, Channel* channel, void* context, rdma_port_space ps, ibv_qp_type type);
/// Ends what it does and forgets its undelivered events; delivered ones must be acknowledged before delete_id().
void detach_id(Id& id);
void delete_id(Id* id);

/// The identifier of a request that has not been delivered moves along with its listener.
void move_request(Id& id, Channel& target);

/// Null with errno set when there is no descriptor left.
Channel* new_channel(Station& station);
void release_channel(Channel& channel);

/// Forgets its undelivered events; undelivered requests to it are refused.
void drop_events_of(Id& id);

/// Sets what the program reads of the device that the identifier uses: verbs, pd, port.
void show_device(Id& id);
/// Writes the path record of id.route.
void fill_path(Id& id);

/// Gives an identifier that is not bound the wildcard address, and makes its port known. 0 or an errno.
int prepare_to_listen(Id& id);

/// The lock of the identifier's station; not owned when the station is dead (in a forked child), with errno set.
base::UniqueLock<base::Mutex> lock_of(const Id& id);

/// For synchronous identifiers: waits for the event of the call just made, keeps it in id->event. 0 or -1 with errno.
/// Without effect, and 0, for others.
int await_event(Id& id);

}  // namespace ringbolt::rdmacm
