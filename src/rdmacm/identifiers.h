#pragma once

#include "base/mutex.h"
#include "rdmacm/objects.h"

namespace ringbolt::rdmacm {

/// A new identifier that lives on `channel`; null without memory. The program's, until delete_id(). It counts among
/// the channel's users.
Id* new_id(ConnectionManager& manager, Channel* channel, void* context, rdma_port_space ps, ibv_qp_type type)
    RINGBOLT_REQUIRES(manager_lock);
/// Ends what it does and forgets its undelivered events; delivered ones must be acknowledged before delete_id().
/// Throws nothing. Afterwards no event of it comes any more.
void detach_id(Id& id) RINGBOLT_REQUIRES(manager_lock);
/// Only after detach_id(). The channel goes too if it was waiting for this.
void delete_id(Id* id) RINGBOLT_REQUIRES(manager_lock);

/// The identifier of a request that has not been delivered moves along with its listener.
void move_request(Id& id, Channel& target) RINGBOLT_REQUIRES(manager_lock);

/// Null with errno set when there is no descriptor left. Without users yet.
Channel* new_channel(ConnectionManager& manager);
/// Once for each user.
void release_channel(Channel& channel) RINGBOLT_REQUIRES(manager_lock);

/// Forgets its undelivered events; undelivered requests to it are refused.
void drop_events_of(Id& id) RINGBOLT_REQUIRES(manager_lock);

/// Sets what the program reads of the device that the identifier uses: verbs, pd, port.
void show_device(Id& id) RINGBOLT_REQUIRES(manager_lock);
/// Writes the path record of id.route.
void fill_path(Id& id) RINGBOLT_REQUIRES(manager_lock);

/// Gives an identifier that is not bound the wildcard address, and makes its port known. 0 or an errno.
int prepare_to_listen(Id& id) RINGBOLT_REQUIRES(manager_lock);

/// False, with errno set, in a forked child: what it has inherited is the parent's, and so is the lock.
bool is_ours(const Id& id);

/// For synchronous identifiers: waits for the event of the call just made, keeps it in id->event. 0 or -1 with errno.
/// Without effect, and 0, for others. Blocks until the event comes; there is no limit but those of the connection
/// manager's own steps.
int await_event(Id& id) RINGBOLT_EXCLUDES(manager_lock);

}  // namespace ringbolt::rdmacm
