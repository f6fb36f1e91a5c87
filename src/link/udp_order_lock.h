#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/locked_file.h"
#include "link/udp_order.h"

namespace ringbolt::link {

/// The order file of a folder, locked from construction to destruction. One file per network namespace, since each has
/// its own port. Not thread-safe.
/// The lock is the kernel's (flock), so that a process that is killed gives it back; one that is stopped does not.
class UdpOrderLock {
 public:
  /// Waits up to `patience_ms` for other processes. Not held then, or when the file can't be opened: error() says why
  /// (EWOULDBLOCK: somebody else has it).
  UdpOrderLock(int directory_fd, uint64_t network_namespace, uint64_t patience_ms);

  bool is_held() const { return file_.is_held(); }
  int error() const { return file_.error(); }
  const std::string& name() const { return file_.name(); }

  /// What the file says; an empty file is an empty order. Nothing if it is damaged.
  std::optional<UdpOrderFile> read() const;
  /// Writes it, or removes the file when nobody is left. An errno or 0.
  int write(const UdpOrderFile& order) const;

 private:
  base::LockedFile file_;
};

}  // namespace ringbolt::link
