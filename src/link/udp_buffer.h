#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/adaptive_mutex.h"

namespace ringbolt::link {

class UdpBufferPool;

/// Memory that a received datagram lies in. One datagram may hold many packets (GRO); all of them share the buffer.
/// Owned by its pool; while it is taken, by those who hold a reference. They may read it; who receives into it writes.
class UdpBuffer {
 public:
  std::byte* data() { return data_.get(); }
  size_t capacity() const { return capacity_; }

 private:
  friend class UdpBufferPool;
  friend class UdpBufferRef;
  explicit UdpBuffer(size_t capacity);

  std::atomic<uint32_t> references_{0};
  size_t capacity_;
  std::shared_ptr<UdpBufferPool> pool_;  // while it is taken
  std::unique_ptr<std::byte[]> data_;
};

/// Keeps a buffer, and so the packets in it, from being used again. Copying costs one atomic addition. A reference may
/// be moved to and dropped by any thread; one object is not thread-safe.
class UdpBufferRef {
 public:
  UdpBufferRef() = default;
  explicit UdpBufferRef(UdpBuffer& buffer) : buffer_(&buffer) {
    // Relaxed: the caller holds the buffer, or has just got it from the pool, so that nobody gives it back meanwhile.
    buffer_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  UdpBufferRef(const UdpBufferRef& other) : buffer_(other.buffer_) {
    if (buffer_ != nullptr) {
      buffer_->references_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  UdpBufferRef(UdpBufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  UdpBufferRef& operator=(UdpBufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~UdpBufferRef() { reset(); }

  /// Gives the buffer back; the packets in it are no longer ours.
  void reset();
  bool is_held() const { return buffer_ != nullptr; }
  UdpBuffer* get() const { return buffer_; }

 private:
  UdpBuffer* buffer_ = nullptr;
};

/// Buffers of two sizes, made when needed up to a bound, and used again last in, first out while they are in the cache.
/// Lives as long as its owner or a reference to one of its buffers. Thread-safe.
class UdpBufferPool : public std::enable_shared_from_this<UdpBufferPool> {
 public:
  /// Any UDP datagram fits into a large buffer. What fits into a small one is copied there, so that an acknowledgement
  /// that waits somewhere does not hold 64 KiB.
  static constexpr size_t kLargeBytes = 64 * 1024;
  static constexpr size_t kSmallBytes = 512;
  // 64 MiB and 16 MiB at most, of which the system gives what is used.
  static constexpr size_t kMaxLarge = 1024;
  static constexpr size_t kMaxSmall = 32 * 1024;

  static std::shared_ptr<UdpBufferPool> make() { return std::shared_ptr<UdpBufferPool>(new UdpBufferPool); }
  UdpBufferPool(const UdpBufferPool&) = delete;
  UdpBufferPool& operator=(const UdpBufferPool&) = delete;

  /// Not held when all kMaxLarge (kMaxSmall) buffers are in use.
  /// Throws std::bad_alloc where one has to be made.
  UdpBufferRef take_large() { return take(large_); }
  UdpBufferRef take_small() { return take(small_); }

 private:
  friend class UdpBufferRef;
  UdpBufferPool() = default;
  struct Class {
    size_t bytes;
    size_t limit;
    size_t made RINGBOLT_GUARDED_BY(lock) = 0;
    base::AdaptiveMutex lock{};
    std::vector<std::unique_ptr<UdpBuffer>> free RINGBOLT_GUARDED_BY(lock){};
  };
  UdpBufferRef take(Class& of);
  static void give_back(UdpBuffer& buffer);

  Class large_{kLargeBytes, kMaxLarge};
  Class small_{kSmallBytes, kMaxSmall};
};

inline void UdpBufferRef::reset() {
  // What each holder has read is over before the last one gives the memory away.
  if (buffer_ != nullptr && buffer_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    UdpBufferPool::give_back(*buffer_);
  }
  buffer_ = nullptr;
}

}  // namespace ringbolt::link
