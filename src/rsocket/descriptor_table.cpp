#include "rsocket/descriptor_table.h"

#include <utility>

#include "base/lock_guard.h"

namespace ringbolt::rsocket {

base::Result<int> DescriptorTable::add(std::shared_ptr<Socket> socket) {
  const int descriptor = socket->descriptor();
  const auto index = static_cast<size_t>(descriptor);
  std::shared_ptr<Socket> before;  // of a number that was closed behind our back: it ends without the lock
  const base::LockGuard lock(lock_);
  try {
    if (sockets_.size() <= index) {
      sockets_.resize(index + 1);
    }
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
  before = std::exchange(sockets_[index], std::move(socket));
  return descriptor;
}

std::shared_ptr<Socket> DescriptorTable::find(int descriptor) const {
  const base::SharedLock lock(lock_);
  const auto index = static_cast<size_t>(descriptor);
  return descriptor >= 0 && index < sockets_.size() ? sockets_[index] : nullptr;
}

std::shared_ptr<Socket> DescriptorTable::remove(int descriptor) {
  const base::LockGuard lock(lock_);
  const auto index = static_cast<size_t>(descriptor);
  return descriptor >= 0 && index < sockets_.size() ? std::exchange(sockets_[index], nullptr) : nullptr;
}

/// Never destroyed: threads may still be in a call while the program's statics go away.
DescriptorTable& descriptors() {
  static auto* const table = new DescriptorTable;
  return *table;
}

}  // namespace ringbolt::rsocket
