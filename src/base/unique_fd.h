#pragma once

#include <unistd.h>

#include <utility>

namespace ringbolt::base {

/// The lowest descriptor that is not one of the standard three.
inline constexpr int kFirstOwnFd = 3;

/// `fd`, which the caller gives up, at a number of its own choice from kFirstOwnFd on; -1 with errno EMFILE when none
/// is left, and then `fd` is closed. Thread-safe.
int move_above_standard(int fd) noexcept;

/// Owns one file descriptor, never one of the standard three: in a program that was started with one of them closed,
/// the kernel gives that number to the next file, and what the program then prints would be written into it. Such a
/// descriptor is moved as it is taken; where that fails, nothing is owned and errno says why. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(away_from_standard(fd)) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset(std::exchange(other.fd_, -1));
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = away_from_standard(fd);
  }

 private:
  static int away_from_standard(int fd) { return fd < 0 || fd >= kFirstOwnFd ? fd : move_above_standard(fd); }

  int fd_ = -1;
};

}  // namespace ringbolt::base
