#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace ringbolt::base {

/// A small file that processes share, locked from construction to destruction: in the order in which they ask for it
/// (file_turn.h). Not thread-safe.
class LockedFile {
 public:
  /// Makes the file, with mode 0600, if it is missing; `name` is relative to `directory_fd` (AT_FDCWD: or absolute).
  /// Waits up to `patience_ms` for other processes. Not held then, or when the file can't be opened: error() says why
  /// (EWOULDBLOCK: somebody else has it). `directory_fd` is borrowed, and has to stay open as long as this lives.
  /// Neither throws but for want of memory.
  LockedFile(int directory_fd, std::string name, uint64_t patience_ms);
  ~LockedFile();
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool is_held() const { return file_.is_open(); }
  int error() const { return error_; }
  const std::string& name() const { return name_; }

  /// All of it. Nothing if it can't be read or is longer than 1 MiB.
  // These three only while is_held().
  std::optional<std::string> read() const;
  /// Puts `text` in the place of what was there. An errno or 0. After an error the file may hold a part of either:
  /// readers check what they read.
  int write(const std::string& text) const;
  /// Whoever waits for the lock sees that the file is no longer the one, and makes another. An errno or 0.
  int remove() const;

 private:
  bool lock(uint64_t deadline_ns);
  const int directory_fd_;
  const std::string name_;
  UniqueFd file_;
  int error_ = 0;
};

}  // namespace ringbolt::base
