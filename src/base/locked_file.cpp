#include "base/locked_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/file_turn.h"

namespace ringbolt::base {
namespace {

constexpr uint64_t kNanosecondsPerMillisecond = 1'000'000;
constexpr size_t kMaxFileBytes = 1 << 20;

// AT_SYMLINK_NOFOLLOW as in open(): a link in its place is somebody else's file.
bool names_same_file(int directory_fd, const std::string& name, int fd) {
  struct stat by_name {};
  struct stat by_fd {};
  return fstatat(directory_fd, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &by_fd) == 0 &&
         by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

}  // namespace

LockedFile::LockedFile(int directory_fd, std::string name, uint64_t patience_ms)
    : directory_fd_(directory_fd), name_(std::move(name)) {
  const uint64_t deadline_ns = now_ns() + patience_ms * kNanosecondsPerMillisecond;
  // Each round means that a file was removed under us; the deadline bounds them, since past it nothing is waited for.
  while (!lock(deadline_ns) && error_ == 0) {
  }
}

LockedFile::~LockedFile() {
  if (file_.is_open()) {
    end_file_turn(file_.get());  // closing is not enough where a fork has copied the descriptor meanwhile
  }
}

/// False without an error: while we waited, somebody removed the file.
bool LockedFile::lock(uint64_t deadline_ns) {
  UniqueFd file(openat(directory_fd_, name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) {
    error_ = errno;
    return false;
  }
  const uint64_t now = now_ns();
  error_ = take_file_turn(file.get(), now < deadline_ns ? (deadline_ns - now) / kNanosecondsPerMillisecond : 0);
  if (error_ != 0 || !names_same_file(directory_fd_, name_, file.get())) {
    return false;
  }
  file_ = std::move(file);
  return true;
}

std::optional<std::string> LockedFile::read() const {
  std::string text;
  for (;;) {
    constexpr size_t kStep = 4096;
    const size_t at = text.size();
    text.resize(at + kStep);
    const ssize_t length = pread(file_.get(), text.data() + at, kStep, static_cast<off_t>(at));
    // A bound, as another user of the machine may have grown the file.
    if (length < 0 || text.size() > kMaxFileBytes) {
      return std::nullopt;
    }
    text.resize(at + static_cast<size_t>(length));
    if (length == 0) {
      return text;
    }
  }
}

int LockedFile::write(const std::string& text) const {
  // A short count without an errno means that the disk is full.
  errno = 0;
  if (pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return errno != 0 ? errno : ENOSPC;
  }
  return ftruncate(file_.get(), static_cast<off_t>(text.size())) == 0 ? 0 : errno;
}

int LockedFile::remove() const { return unlinkat(directory_fd_, name_.c_str(), 0) == 0 ? 0 : errno; }

}  // namespace ringbolt::base
