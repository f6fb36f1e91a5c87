#include "sanitizer/queue_rules.h"

#include <cerrno>

#include <fmt/format.h>

namespace ringbolt::sanitizer {
namespace {

Finding never_drains(const QueuePair& qp, const base::CallSite& site) {
  const uint32_t depth = qp.caps.max_send_wr;
  return {
      Kind::queues,
      "send-queue-never-drains",
      "more is posted to a send queue that is full of requests without a completion",
      fmt::format("queue pair {:#x}: {} requests before this one, max_send_wr is {}, and none has IBV_SEND_SIGNALED",
                  qp.qpn, depth, depth),
      {{"posted", site}},
      "signal one request in every half queue, and poll its completion: it makes room for those before it"};
}

}  // namespace

std::optional<Finding> find_send_queue_overrun(const QueuePair& qp, const base::CallSite& site) {
  const uint32_t depth = qp.caps.max_send_wr;
  if (qp.sends.count() <= depth) {
    return std::nullopt;
  }
  if (!qp.sends.can_drain(depth)) {
    return never_drains(qp, site);
  }
  return Finding{Kind::queues,
                 "send-queue-overrun",
                 "more sends are under way than the send queue has room for",
                 fmt::format("queue pair {:#x}: {} requests without a polled completion behind them, max_send_wr is {}",
                             qp.qpn, qp.sends.count(), depth),
                 {{"posted", site}},
                 "poll completions before posting more: only these make room, on cards that keep places until then"};
}

std::optional<Finding> find_refused_send(const QueuePair& qp, int error, const base::CallSite& site) {
  const bool is_full = error == ENOMEM && qp.sends.count() == qp.caps.max_send_wr;
  return is_full && qp.sends.signaled() == 0 ? std::optional(never_drains(qp, site)) : std::nullopt;
}

std::optional<Finding> find_completion_queue_overrun(const CompletionQueue* cq, uint32_t shared, uint32_t qpn,
                                                     const base::CallSite& site) {
  if (cq == nullptr || cq->has_room_for(shared)) {
    return std::nullopt;
  }
  return Finding{Kind::queues,
                 "completion-queue-overrun",
                 "a completion queue can overrun",
                 fmt::format("{} requests under way complete to the queue of {} entries that queue pair {:#x} has",
                             cq->expected() + shared, cq->entries(), qpn),
                 {{"posted", site}, {"completion queue made", cq->made()}},
                 "make it as deep as all queues that complete to it are together, or poll before posting more"};
}

std::optional<Finding> find_post_after_failure(const QueuePair& qp, std::string_view what, const base::CallSite& site) {
  if (!qp.failed) {
    return std::nullopt;
  }
  return Finding{Kind::queues,
                 "posted-after-failure",
                 "posting goes on after a completion that says that the queue pair failed",
                 fmt::format("{} on queue pair {:#x}: a completion with status {} was polled before", what, qp.qpn,
                             static_cast<int>(qp.failure)),
                 {{"posted", site}, {"failed completion polled", qp.failed}},
                 "look at wc.status of each completion, and take the queue pair down when it is not IBV_WC_SUCCESS"};
}

std::optional<Finding> find_lost_wake_up(const CompletionQueue& queue, const ibv_comp_channel& channel,
                                         const base::CallSite& site) {
  if (!queue.may_miss_event_of(channel)) {
    return std::nullopt;
  }
  return Finding{Kind::queues,
                 "wake-up-lost",
                 "the program sleeps after arming a completion queue without a poll in between",
                 fmt::format("the queue of {} entries awaited {} completions when it was armed: one that came just "
                             "before that raises no event",
                             queue.entries(), queue.expected()),
                 {{"sleeps", site}, {"armed", queue.armed()}},
                 "arm first, then poll until the queue is empty, and sleep only then"};
}

Finding events_unacknowledged(std::string_view call, uint32_t events, const base::CallSite& site) {
  return {
      Kind::queues,
      "events-unacknowledged",
      "an object is destroyed whose events were not acknowledged",
      fmt::format("{} has waited a second for {} events to be acknowledged; elsewhere it waits for good", call, events),
      {{"destroyed", site}},
      "call ibv_ack_cq_events or ibv_ack_async_event for each event that was taken"};
}

}  // namespace ringbolt::sanitizer
