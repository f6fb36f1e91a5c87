#include "link/udp_buffer.h"

#include <mutex>

#include "base/assert.h"

namespace ringbolt::link {

// Left as it is: clearing 64 KiB that the kernel writes anyway would touch pages that small datagrams never need.
UdpBuffer::UdpBuffer(UdpBufferPool& pool, size_t capacity)
    : capacity_(capacity), pool_(pool), data_(std::make_unique_for_overwrite<std::byte[]>(capacity)) {}

UdpBufferPool::~UdpBufferPool() {
  // A reference that outlives the pool would give its buffer back to nowhere.
  RINGBOLT_ASSERT(large_.free.size() == large_.made);
  RINGBOLT_ASSERT(small_.free.size() == small_.made);
}

UdpBufferRef UdpBufferPool::take(Class& of) {
  const std::lock_guard lock(of.lock);
  if (of.free.empty()) {
    if (of.made == of.limit) {
      return {};
    }
    // Room to take all of them back without allocating.
    of.free.reserve(of.made + 1);
    of.free.emplace_back(new UdpBuffer(*this, of.bytes));
    ++of.made;
  }
  UdpBuffer* buffer = of.free.back().release();
  of.free.pop_back();
  return UdpBufferRef(*buffer);
}

void UdpBufferPool::give_back(UdpBuffer& buffer) {
  Class& to = buffer.capacity_ == large_.bytes ? large_ : small_;
  const std::lock_guard lock(to.lock);
  to.free.emplace_back(&buffer);
}

}  // namespace ringbolt::link
