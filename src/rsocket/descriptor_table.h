#pragma once

#include <memory>
#include <vector>

#include "base/shared_mutex.h"
#include "rsocket/socket.h"

namespace ringbolt::rsocket {

/// Which numbers are sockets of ours. Thread-safe.
/// Shares sockets with calls under way: one that is taken out ends with the last of them.
class DescriptorTable {
 public:
  /// Returns its number, or ENOMEM.
  /// A number is a descriptor of the kernel, so it can't be somebody else's at the same time.
  base::Result<int> add(std::shared_ptr<Socket> socket);
  /// Null: not one of ours.
  std::shared_ptr<Socket> find(int descriptor) const;
  /// Takes it out, and returns it.
  std::shared_ptr<Socket> remove(int descriptor);

 private:
  mutable base::SharedMutex lock_;
  std::vector<std::shared_ptr<Socket>> sockets_ RINGBOLT_GUARDED_BY(lock_);
};

/// The table of this process: what the calls of the C interface find their sockets in.
DescriptorTable& descriptors();

}  // namespace ringbolt::rsocket
