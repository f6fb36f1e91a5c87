#include "device/ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/process_start.h"
#include "base/unique_fd.h"

namespace ringbolt::device {
namespace {

using profile::LedgerBook;

bool is_alive(const LedgerBook::Owner& owner) { return base::is_same_process(owner.pid, owner.started); }

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
    book.add(getpid(), base::process_start(getpid()), kind);
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
  book.remove(getpid(), base::process_start(getpid()), kind);
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
