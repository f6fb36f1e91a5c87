// What the program makes and destroys, arms, and sleeps for.

#include <thread>

#include "base/lock_guard.h"
#include "sanitizer/queue_rules.h"
#include "sanitizer/received_data.h"
#include "sanitizer/region_use.h"
#include "sanitizer/shadow.h"

namespace ringbolt::sanitizer {

void Shadow::in_child() {
  requests_.clear();
  poisoned_.clear();
  regions_.clear();
  kept_.abandon();
  queues_.clear();
  remote_.forget();
  looked_up_.clear();
  owned_.forget();
  reports_.in_child();
  // before_fork() has taken it, in the thread that is the child's only one.
  mutex_.unlock();
}

QueuePair* Shadow::find(const ibv_qp* qp) {
  const base::LockGuard guard(mutex_);
  return queues_.find(qp);
}

SharedQueue* Shadow::find(const ibv_srq* srq) {
  const base::LockGuard guard(mutex_);
  return queues_.find(srq);
}

void Shadow::made(ObjectKind kind, const void* object, const base::CallSite& site) {
  const base::LockGuard guard(mutex_);
  owned_.made(kind, object, site);
}

void Shadow::gone(const void* object) {
  const base::LockGuard guard(mutex_);
  owned_.gone(object);
}

void Shadow::busy(const void* object, const base::CallSite& site) {
  const base::LockGuard guard(mutex_);
  owned_.busy(object, site);
}

void Shadow::report_leaks() {
  std::vector<Finding> found;
  {
    const base::LockGuard guard(mutex_);
    found = owned_.leaks();
  }
  tell_all(found);
}

// --- Memory

void Shadow::domain_goes(ibv_pd* pd) {
  const base::LockGuard guard(mutex_);
  // Another thread may just give the program what has waited there: its queue pair may be gone by then, and the domain
  // be free to go. Without a condition, whose state a child of a fork would have from its parent.
  const KeptMemory* kept = kept_.find(pd);
  for (; kept != nullptr && kept->is_used(); kept = kept_.find(pd)) {
    const base::Unlocked unlocked(mutex_);
    std::this_thread::yield();
  }
  if (kept != nullptr &&
      requests_.numbers_of([&](const Request& one) { return one.kept == kept || one.lender == kept; }).empty()) {
    kept_.remove(pd);
  }
}

void Shadow::region_made(const ibv_mr& mr, uint64_t iova, uint32_t access, const base::CallSite& site) {
  const Region region = region_of(mr, iova, access, site);
  tell(portable_.of_region(region.address, region.iova, access, site));
  const base::LockGuard guard(mutex_);
  owned_.made(ObjectKind::mr, &mr, site);
  regions_.add(mr.lkey, region);
  unpoison_exposed(requests_, region);
}

void Shadow::region_goes(const ibv_mr& mr, std::string_view call, const base::CallSite& site) {
  std::vector<Finding> found;
  {
    const base::LockGuard guard(mutex_);
    found = forsake_requests(requests_, queues_, mr, call, site);
    if (call == "ibv_dereg_mr") {
      regions_.remove(mr.lkey);
    } else {
      regions_.hide(mr.lkey);
    }
  }
  tell_all(found);
}

void Shadow::region_changed(const ibv_mr& mr, bool moves, std::optional<uint32_t> access) {
  const base::LockGuard guard(mutex_);
  unpoison_exposed(requests_, regions_.change(mr, moves, access));
}

// --- Queues

void Shadow::queue_made(const ibv_cq& cq, const base::CallSite& site) {
  tell(portable_.of_queue(cq, site));
  const base::LockGuard guard(mutex_);
  owned_.made(ObjectKind::cq, &cq, site);
  queues_.add(cq, site);
}

void Shadow::queue_resized(const ibv_cq& cq) {
  const base::LockGuard guard(mutex_);
  if (CompletionQueue* const known = queues_.find(&cq); known != nullptr) {
    known->resize(static_cast<uint32_t>(cq.cqe));
  }
}

void Shadow::queue_gone(const ibv_cq& cq) {
  const base::LockGuard guard(mutex_);
  owned_.gone(&cq);
  queues_.remove(cq);
}

void Shadow::shared_queue_made(ibv_srq& srq, const base::CallSite& site) {
  tell(portable_.of_srq(site));
  const base::LockGuard guard(mutex_);
  owned_.made(ObjectKind::srq, &srq, site);
  queues_.add(srq);
}

void Shadow::shared_queue_gone(const ibv_srq& srq) {
  const base::LockGuard guard(mutex_);
  owned_.gone(&srq);
  if (const SharedQueue* const known = queues_.find(&srq); known != nullptr) {
    drop_all(requests_.numbers_of([&](const Request& one) { return one.srq == known; }));
    queues_.remove(srq);
  }
}

void Shadow::queue_pair_made(ibv_qp& qp, const ibv_qp_init_attr& wanted, const ibv_qp_cap& granted, Nature nature,
                             const base::CallSite& site) {
  tell(portable_.of_queue_pair(wanted, site));
  const base::LockGuard guard(mutex_);
  owned_.made(ObjectKind::qp, &qp, site);
  QueuePair& pair = queues_.add(qp, wanted, granted);
  pair.keeps = nature.keeps;
  pair.names_refused = nature.names_refused;
  pair.is_on_network = nature.is_on_network;
}

void Shadow::queue_pair_changed(const ibv_qp& qp, const ibv_qp_attr& attributes, int mask, const base::CallSite& site) {
  tell(portable_.of_change(attributes, mask, site));
  if ((mask & IBV_QP_AV) != 0) {
    check_path(qp.context, attributes.ah_attr, site);
  }
  const base::LockGuard guard(mutex_);
  QueuePair* const pair = queues_.find(&qp);
  if (pair == nullptr || (mask & IBV_QP_STATE) == 0) {
    return;
  }
  pair->told = attributes.qp_state;
  if (pair->told == IBV_QPS_RESET) {
    drop_all(requests_.numbers_of([&](const Request& one) { return one.qp == pair; }));
    // A queue pair begins anew (InfiniBand Architecture Specification 1.4, 10.3.1): nothing of before concerns it.
    pair->failed = {};
  } else if (pair->told == IBV_QPS_RTR && (mask & IBV_QP_DEST_QPN) != 0) {
    pair->peer = peer_of(attributes, pair->is_on_network);
  }
}

void Shadow::queue_pair_gone(const ibv_qp& qp) {
  const base::LockGuard guard(mutex_);
  owned_.gone(&qp);
  if (const QueuePair* const pair = queues_.find(&qp); pair != nullptr) {
    drop_all(requests_.numbers_of([&](const Request& one) { return one.qp == pair; }));
    queues_.remove(qp);
  }
}

void Shadow::drop_all(const std::vector<uint32_t>& numbers) {
  for (const uint32_t number : numbers) {
    drop(number);
  }
}

// --- Addresses

void Shadow::looked_up(const ibv_context* context) {
  const base::LockGuard guard(mutex_);
  looked_up_.insert(context);
}

void Shadow::address_handle_made(const ibv_ah& ah, const ibv_ah_attr& attributes, const base::CallSite& site) {
  made(ObjectKind::ah, &ah, site);
  check_path(ah.context, attributes, site);
}

void Shadow::check_path(const ibv_context* context, const ibv_ah_attr& path, const base::CallSite& site) {
  bool is_looked_up = false;
  {
    const base::LockGuard guard(mutex_);
    is_looked_up = looked_up_.contains(context);
  }
  tell(portable_.of_path(path, is_looked_up, site));
}

// --- Events

void Shadow::arming(ibv_cq* cq, const base::CallSite& site) {
  const base::LockGuard guard(mutex_);
  if (CompletionQueue* const queue = queues_.find(cq); queue != nullptr) {
    queue->arm(site, queues_.may_complete_to(*queue));
  }
}

void Shadow::sleeping(const ibv_comp_channel& channel, bool has_event, const base::CallSite& site) {
  if (has_event || !wish_.has(Kind::queues)) {
    return;
  }
  std::vector<std::optional<Finding>> found;
  {
    const base::LockGuard guard(mutex_);
    queues_.each_completion_queue(
        [&](const CompletionQueue& queue) { found.push_back(find_lost_wake_up(queue, channel, site)); });
  }
  for (const auto& one : found) {
    tell(one);
  }
}

void Shadow::unacknowledged(std::string_view call, uint32_t events, const base::CallSite& site) {
  tell(events_unacknowledged(call, events, site));
}

}  // namespace ringbolt::sanitizer
