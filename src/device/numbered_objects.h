#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "base/lock_guard.h"
#include "base/mutex.h"

namespace ringbolt::device {

/// Objects of a process by their numbers: each lives as long as it is in here, or somebody holds what find() gave. Its
/// lock is a leaf: nothing of an object is called under it, and none ends under it. Thread-safe.
template <class Object>
class NumberedObjects {
 public:
  /// Nobody has the number yet. Throws std::bad_alloc.
  void add(uint32_t number, std::shared_ptr<Object> object) RINGBOLT_EXCLUDES(mutex_) {
    const base::LockGuard guard(mutex_);
    const bool is_new = objects_.emplace(number, std::move(object)).second;
    RINGBOLT_ASSERT(is_new);
  }
  /// No effect when it is not there.
  void remove(uint32_t number) RINGBOLT_EXCLUDES(mutex_) {
    typename Objects::node_type removed;  // ends after the lock is given back
    const base::LockGuard guard(mutex_);
    removed = objects_.extract(number);
  }
  /// Null: there is none.
  std::shared_ptr<Object> find(uint32_t number) RINGBOLT_EXCLUDES(mutex_) {
    const base::LockGuard guard(mutex_);
    const auto found = objects_.find(number);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// Calls `use` with one after the other, by their numbers, without allocating: also where memory is short, and in
  /// destructors. No lock is held meanwhile; those that come meanwhile may be left out, those that go may still be
  /// visited, and all others are visited once.
  template <class Use>
  void each(Use use) RINGBOLT_EXCLUDES(mutex_) {
    for (Numbered one = first_from(0); one.object != nullptr; one = first_from(uint64_t{one.number} + 1)) {
      use(*one.object);
    }
  }

 private:
  using Objects = std::map<uint32_t, std::shared_ptr<Object>>;
  struct Numbered {
    uint32_t number = 0;
    std::shared_ptr<Object> object;
  };
  Numbered first_from(uint64_t number) RINGBOLT_EXCLUDES(mutex_) {
    if (number > UINT32_MAX) {
      return {};
    }
    const base::LockGuard guard(mutex_);
    const auto next = objects_.lower_bound(static_cast<uint32_t>(number));
    return next == objects_.end() ? Numbered() : Numbered{next->first, next->second};
  }

  base::Mutex mutex_;
  Objects objects_ RINGBOLT_GUARDED_BY(mutex_);  // in an order, see each()
};

}  // namespace ringbolt::device
