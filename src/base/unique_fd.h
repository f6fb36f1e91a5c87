#pragma once

#include <unistd.h>

#include <utility>

namespace ringbolt::base {

/// The lowest descriptor that is not one of the standard three.
inline constexpr int kFirstOwnFd = 3;

/// What to own of an unusual answer of open() and its kind. A standard descriptor is given up for another number; -1
/// with errno EMFILE when there is none. Of a failed call, -1; that no descriptor is left (EMFILE, ENFILE) is said on
/// standard error, once per process: most calls of verbs have no way to say it, and a connection that fails for it
/// looks like a dead peer. Keeps the errno of a failed call. Thread-safe.
int own_unusual_fd(int fd) noexcept;
/// Says that once, for those whom the kernel tells it otherwise than by errno. Thread-safe.
void say_no_descriptor_is_left(int errno_value) noexcept;

/// Owns one file descriptor, never one of the standard three: in a program that was started with one of them closed,
/// the kernel gives that number to the next file, and what the program then prints would be written into it. Such a
/// descriptor is moved as it is taken; where that fails, nothing is owned and errno says why. Give it a call's answer
/// at once: of -1, errno is looked at. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(owned_of(fd)) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  /// Hands the descriptor over: the caller closes it.
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = -1;
  }
  void reset(int fd) {
    const int owned = owned_of(fd);  // before close() touches errno
    reset();
    fd_ = owned;
  }

 private:
  static int owned_of(int fd) { return fd >= kFirstOwnFd ? fd : own_unusual_fd(fd); }

  int fd_ = -1;
};

}  // namespace ringbolt::base
