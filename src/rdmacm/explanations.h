#pragma once

#include <rdma/rdma_cma.h>

#include <string>

#include "base/explain.h"
#include "rdmacm/objects.h"

/// What RINGBOLT_EXPLAIN says of calls of the connection manager that are refused, and of its events. Not thread-safe:
/// under the manager's lock, as far as they look at an identifier.
namespace ringbolt::rdmacm {

/// "10.0.0.7:7471"; "[fe80::1]:7471"; "nowhere".
std::string text_of(const sockaddr& address);
/// EINVAL: the identifier is not where `call` needs it, "bound to an address".
int wrong_phase(const char* call, const Id& id, const char* needs) RINGBOLT_REQUIRES(manager_lock);
/// EINVAL: so many bytes of private data, and there is room for less.
int too_much_data(const char* call, size_t given, size_t room);
/// Of an event with a status, which the program is about to take.
void explain_event(const Id& id, const rdma_cm_event& event) noexcept RINGBOLT_REQUIRES(manager_lock);

}  // namespace ringbolt::rdmacm
