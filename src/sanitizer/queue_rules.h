#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "sanitizer/queues.h"
#include "sanitizer/reports.h"

/// Queues that run over, never drain, or let their program sleep for good: the findings of Kind::queues. `site`: of the
/// program's call. They read what is under the lock of Shadow, and change nothing.
namespace ringbolt::sanitizer {

/// More sends are under way than the queue has room for, and whether a completion will ever make room. Only a polled
/// completion does (InfiniBand Architecture Specification 1.4, 10.8.5).
/// After the post, which is counted already.
std::optional<Finding> find_send_queue_overrun(const QueuePair& qp, const base::CallSite& site);
/// The device has refused a send with `error`: it is full of requests without a completion.
std::optional<Finding> find_refused_send(const QueuePair& qp, int error, const base::CallSite& site);
/// More may complete to the queue than it has entries. `shared`: receives of a shared queue, which may all go there;
/// `qpn`: of the queue pair that was posted to. `cq` null: it is not known which queue that is.
std::optional<Finding> find_completion_queue_overrun(const CompletionQueue* cq, uint32_t shared, uint32_t qpn,
                                                     const base::CallSite& site);
/// `what`: "sends" or "receives".
std::optional<Finding> find_post_after_failure(const QueuePair& qp, std::string_view what, const base::CallSite& site);
/// The program sleeps at the channel.
std::optional<Finding> find_lost_wake_up(const CompletionQueue& queue, const ibv_comp_channel& channel,
                                         const base::CallSite& site);
/// `call`, a destroy, has waited for the acknowledgement of so many events, in vain.
Finding events_unacknowledged(std::string_view call, uint32_t events, const base::CallSite& site);

}  // namespace ringbolt::sanitizer
