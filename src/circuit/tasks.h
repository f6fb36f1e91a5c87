#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/unique_fd.h"

namespace ringbolt::circuit {

/// What other threads have one thread do, in the order in which they say so. Who puts something in waits for nobody:
/// there is no lock that a thread off its processor may hold. Source: Treiber 1986 (the stack), taken as a whole.
/// Thread-safe, but for take() and wait(), which are the one thread's. Owns the tasks that were put in until they are
/// taken.
class Tasks {
 public:
  using Task = std::function<void()>;

  /// Throws base::Error.
  Tasks();
  /// What has not been taken is dropped.
  ~Tasks();
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  /// Throws std::bad_alloc, and nothing is put in. What was done before it is seen by the task.
  void put(Task task);
  /// Ends a wait, or the next one.
  void wake();
  /// Takes what has been put in by now, the oldest first: run(task) for each, which must not throw. Allocates nothing.
  template <class Run>
  void take(Run&& run) {
    for (Node* node = oldest_first(); node != nullptr;) {
      const std::unique_ptr<Node> taken(std::exchange(node, node->before));
      run(taken->task);
    }
  }
  bool is_empty() const { return newest_.load(std::memory_order_acquire) == nullptr; }
  /// Until something is put in, wake(), or `most_ns`.
  void wait(uint64_t most_ns);

 private:
  struct Node {
    Task task;
    Node* before = nullptr;  ///< the one put in before; once taken, the one to run behind it
  };
  /// All that was put in, which is the caller's.
  Node* oldest_first();
  // The only shared word: put() releases its node by it, take() acquires all. Nobody takes single nodes out, so no
  // node can come back under a writer's comparison (ABA).
  std::atomic<Node*> newest_ = nullptr;
  base::UniqueFd wake_;
};

}  // namespace ringbolt::circuit
