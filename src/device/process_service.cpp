// What a process does when its service thread looks.

#include <algorithm>
#include <memory>
#include <vector>

#include "base/asymmetric_fence.h"
#include "base/clock.h"
#include "base/lock_guard.h"
#include "device/context.h"
#include "device/process.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

ServiceFindings Process::serve(uint64_t now_ns, bool looks_at_all) {
  if (Orphans& orphans = management_->orphans(); orphans.next_deadline_ns() <= now_ns) {
    orphans.on_timer(now_ns);
  }
  ServiceFindings found;
  found.changes_by_clock = fabric_->verb_faults.has(fault::Subject::state);
  if (found.changes_by_clock) {
    look_at_ports();
    each_queue_pair([](QueuePair& qp) { qp.look_at_cable(); });
  }
  found.deadline_ns = std::min(management_->orphans().next_deadline_ns(), release_late_events(now_ns));
  const auto look_at = [&](CompletionQueue& queue) {
    const Remains left = queue.serve(now_ns);
    if (left != Remains::nothing) {
      service_.mark(queue.wake_name().index);
    }
    found.remains = std::max(found.remains, left);
  };
  const bool is_on_network = open_network_.load(std::memory_order_acquire) != nullptr;
  if (looks_at_all || found.changes_by_clock || is_on_network) {
    each_completion_queue([&](CompletionQueue& queue) {
      look_at(queue);
      if (is_on_network) {
        found.deadline_ns = std::min(found.deadline_ns, queue.wire_deadline_ns());
      }
    });
  } else {
    service_.take_marked([&](uint32_t number) {
      for (uint32_t index = number; index < link::kWakeQueues; index += link::kMarks) {
        if (const auto queue = completion_queues_.find(index)) {
          look_at(*queue);
        }
      }
    });
  }
  if (fabric_->verb_faults.shuffle() != nullptr && found.remains == Remains::work) [[unlikely]] {
    found.deadline_ns = UINT64_MAX;  // then sends wait by a clock of their own, and are looked at as work is
  }
  return found;
}

/// Those that RINGBOLT_SHUFFLE has come late. When the next one is due.
uint64_t Process::release_late_events(uint64_t now_ns) {
  uint64_t next_ns = UINT64_MAX;
  if (fabric_->verb_faults.shuffle() != nullptr) [[unlikely]] {
    const base::LockGuard guard(contexts_mutex_);
    for (Context* const context : contexts_) {
      next_ns = std::min(next_ns, context->events().release_late(now_ns));
    }
  }
  return next_ns;
}

bool Process::drain_windows() {
  base::heavy_fence();
  const uint64_t now = base::now_ns();
  bool is_used = false;
  each_queue_pair([&](QueuePair& qp) {
    const uint32_t key = qp.windows().draining_key();
    if (key == 0) {
      return;
    }
    bool uses_key = false;
    each_queue_pair([&](QueuePair& other) { uses_key = uses_key || other.lanes().is_accessed(key); });
    if (uses_key && now < qp.windows().drain_until_ns()) {
      is_used = true;
    } else {
      qp.end_drain(key);
    }
  });
  return is_used;
}

void Process::tell_remarks() {
  std::vector<std::shared_ptr<const Port>> ports;  // told without the lock
  {
    const base::LockGuard guard(contexts_mutex_);
    for (const Context* context : contexts_) {
      ports.push_back(context->shared_port());
    }
  }
  for (const auto& port : ports) {
    port->tell_seen();
  }
}

}  // namespace ringbolt::device
