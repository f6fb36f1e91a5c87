#pragma once

#include <cstdint>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/condition.h"
#include "base/mutex.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

class Process;

/// For RINGBOLT_EXPLAIN: looks four times a second whether the program waits for a completion that can't come, on a
/// thread of its own. What it says, it says once, until something completes again. Not in a forked child: see
/// release().
class IdleWatch {
 public:
  /// `process` must outlive it, and have its notes. Throws std::system_error.
  explicit IdleWatch(Process& process);
  /// Waits for the thread's last look.
  ~IdleWatch();
  IdleWatch(const IdleWatch&) = delete;
  IdleWatch& operator=(const IdleWatch&) = delete;

 private:
  struct SeenPair {
    QueuePairStanding standing;
    uint32_t looks = 0;  ///< in a row that found the same
    bool is_told = false;
    bool is_noted = false;  ///< for the peer
  };
  struct SeenQueue {
    uint64_t empty_polls = 0;
    uint64_t answers = 0;
    uint64_t sleeps = 0;
    uint32_t polling_looks = 0;   ///< in a row in which it was polled in vain, and nothing could complete
    uint32_t sleeping_looks = 0;  ///< likewise slept on
    bool is_told = false;
  };
  struct Attached {
    QueuePair* qp;
    QueuePairStanding standing;
  };

  void run();
  void look();
  void look_at(QueuePair& qp);
  void look_at(CompletionQueue& cq);
  void tell(CompletionQueue& cq, const std::vector<Attached>& users, bool is_polling);

  Process& process_;
  std::map<uint32_t, SeenPair> pairs_;  // by number
  std::unordered_map<const CompletionQueue*, SeenQueue> queues_;
  base::Mutex mutex_;
  base::Condition stop_;
  bool is_stopping_ RINGBOLT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ringbolt::device
