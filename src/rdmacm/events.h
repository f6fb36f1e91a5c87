#pragma once

#include <memory>

#include "rdmacm/objects.h"

namespace ringbolt::rdmacm {

/// Whether the program has heard of the end by CONNECT_ERROR, which `event` would tell it once more.
bool is_swallowed(const Id& id, const cm::Event& event) RINGBOLT_REQUIRES(manager_lock);
/// The event of an identifier that the program will see for `event`. Changes the identifier where the event says what
/// the peer has answered. Throws std::bad_alloc.
std::unique_ptr<QueuedEvent> make_event(Id& id, const cm::Event& event) RINGBOLT_REQUIRES(manager_lock);
/// CONNECT_REQUEST with a new identifier. Throws std::bad_alloc, and nothing has changed. The identifier is the
/// program's once it has taken the event; until then it goes with the listener's queue.
std::unique_ptr<QueuedEvent> make_request(ConnectionManager& manager, Id& listener, const cm::Event& event)
    RINGBOLT_REQUIRES(manager_lock);
/// An event of this side alone: addresses and routes.
std::unique_ptr<QueuedEvent> make_local_event(Id& id, rdma_cm_event_type type, int status)
    RINGBOLT_REQUIRES(manager_lock);

/// What happens when the program takes an event: the identifier shows its results, a connection that waits for it is
/// completed, which may turn the event into another one. Before the program sees it, in its own thread. May move a
/// queue pair, which takes microseconds.
void on_fetch(ConnectionManager& manager, QueuedEvent& event) RINGBOLT_REQUIRES(manager_lock);

}  // namespace ringbolt::rdmacm
