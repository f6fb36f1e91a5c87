#pragma once

#include <memory>

#include "rdmacm/objects.h"

namespace ringbolt::rdmacm {

/// The event of an identifier that the program will see for `event`. Under the station's lock.
std::unique_ptr<QueuedEvent> make_event(Id& id, const cm::Event& event);
/// CONNECT_REQUEST with a new identifier; null when there is no memory for it.
std::unique_ptr<QueuedEvent> make_request(Station& station, Id& listener, const cm::Event& event);
/// An event of this side alone: addresses and routes.
std::unique_ptr<QueuedEvent> make_local_event(Id& id, rdma_cm_event_type type, int status);

/// What happens when the program takes an event: the identifier shows its results, a connection that waits for it is
/// completed, which may turn the event into another one.
void on_fetch(Station& station, QueuedEvent& event);

}  // namespace ringbolt::rdmacm
