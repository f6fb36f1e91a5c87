#include "link/udp_buffer.h"

#include "base/lock_guard.h"

namespace ringbolt::link {

// Left as it is: clearing 64 KiB that the kernel writes anyway would touch pages that small datagrams never need.
UdpBuffer::UdpBuffer(size_t capacity)
    : capacity_(capacity), data_(std::make_unique_for_overwrite<std::byte[]>(capacity)) {}

UdpBufferRef UdpBufferPool::take(Class& of) {
  const base::LockGuard lock(of.lock);
  if (of.free.empty()) {
    if (of.made == of.limit) {
      return {};
    }
    // Room to take all of them back without allocating.
    of.free.reserve(of.made + 1);
    of.free.emplace_back(new UdpBuffer(of.bytes));
    ++of.made;
  }
  UdpBuffer* buffer = of.free.back().release();
  of.free.pop_back();
  buffer->pool_ = shared_from_this();
  return UdpBufferRef(*buffer);
}

void UdpBufferPool::give_back(UdpBuffer& buffer) {
  const std::shared_ptr<UdpBufferPool> pool = std::move(buffer.pool_);  // may be its last owner
  Class& to = buffer.capacity_ == kLargeBytes ? pool->large_ : pool->small_;
  const base::LockGuard lock(to.lock);
  to.free.emplace_back(&buffer);
}

}  // namespace ringbolt::link
