#pragma once

#include <atomic>
#include <utility>

namespace ringbolt::abi {

/// How many objects of a context a program holds. ibv_close_device(3) wants them destroyed before; programs that don't
/// have their objects work on, so a context's memory stays while there are any. Thread-safe.
class ObjectCount {
 public:
  /// Of one object, which counts from when it is made until it is destroyed. Move-only; one thread at a time.
  class Place {
   public:
    Place() = default;
    explicit Place(ObjectCount& count) : count_(&count) { count.objects_.fetch_add(1); }
    Place(Place&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      Place taken(std::move(other));
      std::swap(count_, taken.count_);
      return *this;
    }
    ~Place() { leave(); }

    /// The object is destroyed, and its memory is kept.
    void leave() {
      if (ObjectCount* const left = std::exchange(count_, nullptr); left != nullptr) {
        left->objects_.fetch_sub(1);
      }
    }

   private:
    ObjectCount* count_ = nullptr;  // which lives as long as it is not empty; null: counts nowhere
  };

  bool is_empty() const { return objects_.load() == 0; }

 private:
  // Sequentially consistent, and rarely touched: who closes the device sees all that went before.
  std::atomic<int> objects_{0};
};

}  // namespace ringbolt::abi
