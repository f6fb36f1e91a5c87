#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "link/udp_order.h"

namespace ringbolt::link {

/// The order file of a folder, locked (flock) from construction to destruction. One file per network namespace, since
/// each has its own port. Not thread-safe.
class UdpOrderLock {
 public:
  /// Waits up to `patience_ms` for other processes. Not held then, or when the file can't be opened: error() says why
  /// (EWOULDBLOCK: somebody else has it).
  UdpOrderLock(int directory_fd, uint64_t network_namespace, uint64_t patience_ms);
  ~UdpOrderLock();
  UdpOrderLock(const UdpOrderLock&) = delete;
  UdpOrderLock& operator=(const UdpOrderLock&) = delete;

  bool is_held() const { return file_.is_open(); }
  int error() const { return error_; }
  const std::string& name() const { return name_; }

  /// What the file says; an empty file is an empty order. Nothing if it is damaged.
  std::optional<UdpOrderFile> read() const;
  /// Writes it, or removes the file when nobody is left. An errno or 0.
  int write(const UdpOrderFile& order);

 private:
  bool try_lock();
  const int directory_fd_;
  std::string name_;
  base::UniqueFd file_;
  int error_ = 0;
};

}  // namespace ringbolt::link
