#include "device/idle_watch.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/explain.h"
#include "base/lock_guard.h"
#include "base/start_thread.h"
#include "device/completion_queue.h"
#include "device/process.h"

namespace ringbolt::device {
namespace {

constexpr auto kLookPause = std::chrono::milliseconds(250);
constexpr uint32_t kLooks = 5;         // in a row: more than a second
constexpr uint64_t kLeastPolls = 100;  // in a pause, of who does nothing else

bool is_connected(ibv_qp_state state) {
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

}  // namespace

IdleWatch::IdleWatch(Process& process) : process_(process), thread_(base::start_thread([this] { run(); })) {}

IdleWatch::~IdleWatch() {
  {
    const base::LockGuard guard(mutex_);
    is_stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void IdleWatch::run() {
  const base::LockGuard guard(mutex_);
  const auto is_over = [this]() RINGBOLT_REQUIRES(mutex_) { return is_stopping_; };
  while (!stop_.wait_for(mutex_, kLookPause, is_over)) {
    const base::Unlocked unlocked(mutex_);
    base::when_explaining([this] { look(); });
  }
}

void IdleWatch::look() {
  std::map<uint32_t, SeenPair> known;
  std::swap(known, pairs_);
  process_.each_queue_pair([&](QueuePair& qp) {
    if (const auto found = known.find(qp.qpn()); found != known.end()) {
      pairs_.insert(*found);
    }
    look_at(qp);
  });
  std::unordered_map<const CompletionQueue*, SeenQueue> queues;
  std::swap(queues, queues_);
  process_.each_completion_queue([&](CompletionQueue& cq) {
    queues_[&cq] = queues[&cq];
    look_at(cq);
  });
}

void IdleWatch::look_at(QueuePair& qp) {
  SeenPair& seen = pairs_[qp.qpn()];
  const QueuePairStanding now = qp.explainer().standing();
  if (!(seen.standing == now)) {
    seen = {now, 0, false, false};
    return;
  }
  ++seen.looks;
  if (!is_connected(now.state) || !qp.explainer().is_noted()) {
    return;
  }
  if (!std::exchange(seen.is_noted, true) && qp.type() != IBV_QPT_UD) {
    qp.explainer().tell_standing(now);
  }
  if (seen.looks >= kLooks - 1 && now.unfinished != 0 && !seen.is_told && qp.type() == IBV_QPT_RC) {
    seen.is_told = qp.explainer().explain_starvation();
  }
}

void IdleWatch::look_at(CompletionQueue& cq) {
  SeenQueue& seen = queues_[&cq];
  const uint64_t empty_polls = cq.pollers().waits.load(std::memory_order_relaxed);
  const uint64_t answers = cq.pollers().answers.load(std::memory_order_relaxed);
  const Waiters* const sleepers = cq.sleepers();
  const uint64_t sleeps = sleepers == nullptr ? 0 : sleepers->waits.load(std::memory_order_relaxed);
  const bool has_polled = std::exchange(seen.empty_polls, empty_polls) + kLeastPolls <= empty_polls;
  const bool has_answers = std::exchange(seen.answers, answers) != answers;
  const bool sleeps_on = sleepers != nullptr && sleepers->now.load(std::memory_order_relaxed) != 0 &&
                         std::exchange(seen.sleeps, sleeps) == sleeps && cq.is_armed();
  std::vector<Attached> users;
  bool may_complete = false;
  process_.each_queue_pair([&](QueuePair& qp) {
    const CompletionQueues& own = qp.queues();
    const bool sends = own.send.get() == &cq;
    const bool receives = own.receive.get() == &cq;
    if (sends || receives) {
      users.push_back({&qp, qp.explainer().standing()});
      const QueuePairStanding& standing = users.back().standing;
      // One that is not connected yet will be by somebody else's doing, and then be posted to.
      may_complete = may_complete || !is_connected(standing.state) || (sends && standing.unfinished != 0) ||
                     (receives && standing.receives != 0);
    }
  });
  if (users.empty() || may_complete || has_answers) {
    seen.polling_looks = seen.sleeping_looks = 0;
    seen.is_told = false;
    return;
  }
  seen.polling_looks = has_polled ? seen.polling_looks + 1 : 0;
  seen.sleeping_looks = sleeps_on ? seen.sleeping_looks + 1 : 0;
  if (!seen.is_told && std::max(seen.polling_looks, seen.sleeping_looks) >= kLooks) {
    seen.is_told = true;
    tell(cq, users, seen.polling_looks >= kLooks);
  }
}

void IdleWatch::tell(CompletionQueue& cq, const std::vector<Attached>& users, bool is_polling) {
  base::Incident incident;
  incident.call = is_polling ? "ibv_poll_cq" : "ibv_get_cq_event";
  incident.object = fmt::format("the completion queue of queue pair {:#x}", users.front().qp->qpn());
  incident.detail = users.size() == 1 ? "" : fmt::format("and of {} more", users.size() - 1);
  incident.status = "waits for a completion that can't come";
  incident.posted = is_polling ? cq.pollers().last_site() : cq.sleepers()->last_site();
  incident.is_call = true;
  base::Explanation why{
      fmt::format("for more than a second: {}{}", text_of(users.front().standing),
                  users.front().qp->explainer().unsignaled_text()),
      "post a receive before you wait for one; set IBV_SEND_SIGNALED on a send whose completion you await"};
  for (const Attached& user : users) {
    why.peer = why.peer.empty() ? user.qp->explainer().peer_standing() : why.peer;
  }
  base::explain(incident, why);
}

}  // namespace ringbolt::device
