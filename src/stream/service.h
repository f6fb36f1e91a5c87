#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>

#include "base/condition.h"
#include "stream/close_reason.h"
#include "stream/memory_budget.h"
#include "stream/settings.h"
#include "verbs/connection_manager.h"

namespace ringbolt::stream {

class Stream;

/// How many streams ended, by reason. Thread-safe.
class CloseTally {
 public:
  void add(CloseReason reason) { counts_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed); }
  CloseCounts counts() const;

 private:
  std::array<std::atomic<uint64_t>, kCloseReasons> counts_{};
};

/// The thread that looks after streams while their program does something else: posts receives anew, which keepalives
/// have used up, sends keepalives, notices ends. It sleeps while there are no streams, and takes none of the program's
/// signals. Thread-safe.
/// Streams are not owned: each takes itself off in its destructor.
class Keeper {
 public:
  explicit Keeper(uint32_t interval_ms);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// From now until remove() with its answer, which waits while the stream is looked after.
  /// Never 0. Throws std::bad_alloc.
  uint64_t add(Stream& stream);
  /// When it returns the thread is not in the stream any more. Not under the stream's lock: the thread holds its own
  /// while it tries that one.
  void remove(uint64_t key);

 private:
  void run();
  bool look_after_next(uint64_t& key);

  const uint32_t interval_ms_;
  // Relaxed: a hint, which costs a yield where it is old.
  std::atomic<uint32_t> waiting_{0};  // who opens or closes a stream: the thread lets them in first
  base::Mutex mutex_;
  base::Condition changed_;
  std::map<uint64_t, Stream*> streams_ RINGBOLT_GUARDED_BY(mutex_);
  uint64_t last_key_ RINGBOLT_GUARDED_BY(mutex_) = 0;
  bool stops_ RINGBOLT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// What streams and listeners share: the libraries, the budget, the thread. They keep it alive. A child of fork() can
/// use none of it. Thread-safe.
class Service {
 public:
  /// Loads the libraries and starts the thread. Throws base::Error that says why RDMA can't be used.
  explicit Service(const ServiceSettings& settings);

  const verbs::ConnectionManager& manager() const { return manager_; }
  MemoryBudget& budget() { return budget_; }
  Keeper& keeper() { return keeper_; }
  CloseTally& tally() { return tally_; }

 private:
  verbs::ConnectionManager manager_;
  MemoryBudget budget_;
  CloseTally tally_;
  // The last member: its thread ends before what streams use.
  Keeper keeper_;
};

}  // namespace ringbolt::stream
