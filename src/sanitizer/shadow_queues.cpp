// Queues that run over, never drain, or let their program sleep for good.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "base/lock_guard.h"
#include "sanitizer/shadow.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {

void Shadow::report_all(const std::vector<Finding>& found) {
  for (const Finding& one : found) {
    reports_.report(one);
  }
}

void Shadow::after_send(QueuePair& qp, const base::CallSite& site) {
  if (!wish_.has(Kind::queues)) {
    return;
  }
  std::vector<Finding> found;
  {
    const base::LockGuard guard(mutex_);
    check_failure(qp, "sends", site, found);
    if (qp.sends.size() > qp.caps.max_send_wr) {
      check_room(qp, site, found);
    }
    if (qp.send_cq != nullptr) {
      check_entries(*qp.send_cq, 0, qp.qpn, site, found);
    }
  }
  report_all(found);
}

void Shadow::check_room(const QueuePair& qp, const base::CallSite& site, std::vector<Finding>& found) {
  const uint32_t depth = qp.caps.max_send_wr;
  const auto end = qp.sends.begin() + std::min<std::ptrdiff_t>(depth, std::ssize(qp.sends));
  const auto* const requests = &requests_;
  const bool can_drain =
      std::any_of(qp.sends.begin(), end, [&](uint32_t number) { return requests->at(number)->is_signaled; });
  if (!can_drain) {
    found.push_back(
        {Kind::queues,
         "send-queue-never-drains",
         "more is posted to a send queue that is full of requests without a completion",
         fmt::format("queue pair {:#x}: {} requests before this one, max_send_wr is {}, and none has IBV_SEND_SIGNALED",
                     qp.qpn, depth, depth),
         {{"posted", site}},
         "signal one request in every half queue, and poll its completion: it makes room for those before it"});
  } else if (qp.sends.size() > depth) {
    found.push_back(
        {Kind::queues,
         "send-queue-overrun",
         "more sends are under way than the send queue has room for",
         fmt::format("queue pair {:#x}: {} requests without a polled completion behind them, max_send_wr is {}", qp.qpn,
                     qp.sends.size(), depth),
         {{"posted", site}},
         "poll completions before posting more: only these make room, on cards that keep places until then"});
  }
}

void Shadow::send_refused(QueuePair& qp, int error, const base::CallSite& site) {
  std::vector<Finding> found;
  if (error == ENOMEM && wish_.has(Kind::queues)) {
    const base::LockGuard guard(mutex_);
    if (qp.sends.size() == qp.caps.max_send_wr && qp.signaled == 0) {
      check_room(qp, site, found);
    }
  }
  report_all(found);
}

void Shadow::after_receive(QueuePair* qp, SharedQueue* srq, const base::CallSite& site) {
  if (!wish_.has(Kind::queues)) {
    return;
  }
  std::vector<Finding> found;
  {
    const base::LockGuard guard(mutex_);
    if (qp != nullptr) {
      check_failure(*qp, "receives", site, found);
      check_entries(*qp->receive_cq, 0, qp->qpn, site, found);
    }
    for (const auto& [c, one] : queue_pairs_) {
      if (srq != nullptr && one->srq == srq) {
        check_entries(*one->receive_cq, srq->posted, one->qpn, site, found);
      }
    }
  }
  report_all(found);
}

void Shadow::check_entries(const CompletionQueue& cq, uint32_t shared, uint32_t qpn, const base::CallSite& site,
                           std::vector<Finding>& found) {
  if (cq.expected + shared > cq.entries) {
    found.push_back({Kind::queues,
                     "completion-queue-overrun",
                     "a completion queue can overrun",
                     fmt::format("{} requests under way complete to the queue of {} entries that queue pair {:#x} has",
                                 cq.expected + shared, cq.entries, qpn),
                     {{"posted", site}, {"completion queue made", cq.made}},
                     "make it as deep as all queues that complete to it are together, or poll before posting more"});
  }
}

void Shadow::check_failure(const QueuePair& qp, std::string_view call, const base::CallSite& site,
                           std::vector<Finding>& found) {
  if (qp.failed) {
    found.push_back(
        {Kind::queues,
         "posted-after-failure",
         "posting goes on after a completion that says that the queue pair failed",
         fmt::format("{} on queue pair {:#x}: a completion with status {} was polled before", call, qp.qpn,
                     static_cast<int>(qp.failure)),
         {{"posted", site}, {"failed completion polled", qp.failed}},
         "look at wc.status of each completion, and take the queue pair down when it is not IBV_WC_SUCCESS"});
  }
}

void Shadow::arming(ibv_cq* cq, const base::CallSite& site) {
  const base::LockGuard guard(mutex_);
  const auto known = queues_.find(cq);
  if (known == queues_.end()) {
    return;
  }
  CompletionQueue& queue = *known->second;
  queue.armed = site;
  queue.is_armed_late = std::ranges::any_of(queue_pairs_, [&](const auto& entry) {
    const QueuePair& qp = *entry.second;
    const bool can_receive = qp.told == IBV_QPS_RTR || qp.told == IBV_QPS_RTS;
    const bool awaits_receive = qp.receives != 0 || (qp.srq != nullptr && qp.srq->posted != 0);
    return (qp.receive_cq == &queue && can_receive && awaits_receive) ||
           (qp.send_cq == &queue && qp.told == IBV_QPS_RTS && qp.signaled != 0);
  });
}

void Shadow::sleeping(const ibv_comp_channel& channel, bool has_event, const base::CallSite& site) {
  if (has_event || !wish_.has(Kind::queues)) {
    return;
  }
  std::vector<Finding> found;
  {
    const base::LockGuard guard(mutex_);
    for (const auto& [c, queue] : queues_) {
      if (queue->channel == &channel && queue->is_armed_late) {
        found.push_back(
            {Kind::queues,
             "wake-up-lost",
             "the program sleeps after arming a completion queue without a poll in between",
             fmt::format("the queue of {} entries awaited {} completions when it was armed: one that came just "
                         "before that raises no event",
                         queue->entries, queue->expected),
             {{"sleeps", site}, {"armed", queue->armed}},
             "arm first, then poll until the queue is empty, and sleep only then"});
      }
    }
  }
  report_all(found);
}

void Shadow::unacknowledged(std::string_view call, uint32_t events, const base::CallSite& site) {
  if (wish_.has(Kind::queues)) {
    reports_.report({Kind::queues,
                     "events-unacknowledged",
                     "an object is destroyed whose events were not acknowledged",
                     fmt::format("{} has waited a second for {} events to be acknowledged; elsewhere it waits for good",
                                 call, events),
                     {{"destroyed", site}},
                     "call ibv_ack_cq_events or ibv_ack_async_event for each event that was taken"});
  }
}

}  // namespace ringbolt::sanitizer
