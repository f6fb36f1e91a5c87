#include "device/ledger.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>

#include "base/unique_fd.h"

namespace ringbolt::device {
namespace {

using profile::LedgerBook;

/// Start time in clock ticks since boot; 0 when the process is gone or can't be looked at.
uint64_t start_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The second field is a name in parentheses that may hold anything; the start is the 22nd.
  constexpr int kFieldsAfterName = 20;
  size_t at = text.rfind(')');
  for (int i = 0; i < kFieldsAfterName && at != std::string::npos; ++i) {
    at = text.find(' ', at + 1);
  }
  uint64_t start = 0;
  if (at != std::string::npos) {
    std::from_chars(text.data() + at + 1, text.data() + text.size(), start);
  }
  return start;
}

bool is_alive(const LedgerBook::Owner& owner) {
  if (kill(owner.pid, 0) != 0 && errno == ESRCH) {
    return false;
  }
  const uint64_t start = start_of(owner.pid);
  return start == 0 || start == owner.started;  // 0: of another user, say
}

/// The file, locked from construction to destruction.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path) : path_(path) {
    constexpr int kAttempts = 16;  // each fails only when somebody removed the file between our open and our flock
    for (int i = 0; i < kAttempts && !file_.is_open(); ++i) {
      base::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      struct stat by_name {};
      struct stat by_fd {};
      if (!file.is_open() || flock(file.get(), LOCK_EX) != 0) {
        return;
      }
      if (stat(path.c_str(), &by_name) == 0 && fstat(file.get(), &by_fd) == 0 && by_name.st_ino == by_fd.st_ino) {
        file_ = std::move(file);
      }
    }
  }
  ~LockedFile() {
    if (file_.is_open()) {
      flock(file_.get(), LOCK_UN);  // a fork may have copied the descriptor
    }
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool is_open() const { return file_.is_open(); }

  LedgerBook read() const {
    std::string text;
    char chunk[4096];
    for (ssize_t got = 0; (got = pread(file_.get(), chunk, sizeof chunk, static_cast<off_t>(text.size()))) > 0;) {
      text.append(chunk, static_cast<size_t>(got));
    }
    if (text.empty()) {
      return {};
    }
    auto book = LedgerBook::parse(text);
    if (!book) {
      std::fprintf(stderr, "ringbolt: %s: %s: counting begins anew\n", path_.c_str(), book.error().text().c_str());
      return {};
    }
    return std::move(*book);
  }

  int write(const LedgerBook& book) const {
    if (book.is_empty()) {
      return unlink(path_.c_str()) == 0 ? 0 : errno;
    }
    const std::string text = book.emit();
    errno = ENOSPC;
    if (pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      return errno;
    }
    return ftruncate(file_.get(), static_cast<off_t>(text.size())) == 0 ? 0 : errno;
  }

 private:
  const std::string& path_;
  base::UniqueFd file_;
};

}  // namespace

base::Result<bool> Ledger::take(profile::Counted kind, uint32_t limit) {
  const LockedFile file(path_);
  if (!file.is_open()) {
    return base::fail(errno == 0 ? EAGAIN : errno);
  }
  LedgerBook book = file.read();
  book.bury(is_alive, leaks_);
  const bool has_room = book.total(kind) < limit;
  if (has_room) {
    book.add(getpid(), start_of(getpid()), kind);
  }
  if (const int error = file.write(book)) {
    return base::fail(error);
  }
  return has_room;
}

void Ledger::give(profile::Counted kind) {
  const LockedFile file(path_);
  if (!file.is_open()) {
    return;
  }
  LedgerBook book = file.read();
  book.remove(getpid(), start_of(getpid()), kind);
  static_cast<void>(file.write(book));
}

Claim::Claim(std::shared_ptr<Ledger> ledger, profile::Counted kind)
    : ledger_(std::move(ledger)), kind_(kind), owner_(getpid()) {}

Claim::~Claim() {
  if (ledger_ != nullptr && owner_ == getpid()) {
    ledger_->give(kind_);
  }
}

}  // namespace ringbolt::device
