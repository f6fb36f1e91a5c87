#include "device/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/locked_file.h"
#include "base/process_start.h"

namespace ringbolt::device {
namespace {

using profile::LedgerBook;

// Others hold the file for microseconds, unless one was stopped just then.
constexpr uint64_t kPatienceMs = 5000;

bool is_alive(const LedgerBook::Owner& owner) { return base::is_same_process(owner.pid, owner.started); }

/// Nothing where the file can't be read: what others hold stands in it.
std::optional<LedgerBook> read_book(const base::LockedFile& file) {
  const std::optional<std::string> text = file.read();
  if (!text) {
    return std::nullopt;
  }
  if (text->empty()) {
    return LedgerBook();
  }
  auto book = LedgerBook::parse(*text);
  if (!book) {
    std::fprintf(stderr, "ringbolt: %s: %s: counting begins anew\n", file.name().c_str(), book.error().text().c_str());
    return LedgerBook();
  }
  return std::move(*book);
}

int write_book(const base::LockedFile& file, const LedgerBook& book) {
  return book.is_empty() ? file.remove() : file.write(book.emit());
}

}  // namespace

base::Result<bool> Ledger::take(profile::Counted kind, uint32_t limit) {
  const base::LockedFile file(AT_FDCWD, path_, kPatienceMs);
  if (!file.is_held()) {
    std::fprintf(stderr,
                 "ringbolt: %s can't be locked within %llu ms: a process that holds objects was stopped, or the "
                 "folder is not writable; continue or end it\n",
                 path_.c_str(), static_cast<unsigned long long>(kPatienceMs));
    return base::fail(file.error());
  }
  std::optional<LedgerBook> book = read_book(file);
  if (!book) {
    return base::fail(EIO);
  }
  book->bury(is_alive, leaks_);
  const bool has_room = book->total(kind) < limit;
  if (has_room) {
    book->add(getpid(), base::process_start(getpid()), kind);
  }
  if (const int error = write_book(file, *book)) {
    return base::fail(error);
  }
  return has_room;
}

void Ledger::give(profile::Counted kind) {
  const base::LockedFile file(AT_FDCWD, path_, kPatienceMs);
  if (!file.is_held()) {
    return;  // it comes back when this process ends
  }
  if (std::optional<LedgerBook> book = read_book(file)) {
    book->remove(getpid(), base::process_start(getpid()), kind);
    static_cast<void>(write_book(file, *book));
  }
}

Claim::Claim(Counter counter, std::shared_ptr<Ledger> ledger, profile::Counted kind)
    : counter_(std::move(counter)), ledger_(std::move(ledger)), kind_(kind), owner_(getpid()) {
  counter_->fetch_add(1);
}

Claim::~Claim() {
  if (counter_ != nullptr) {
    counter_->fetch_sub(1);
  }
  if (ledger_ != nullptr && owner_ == getpid()) {
    ledger_->give(kind_);
  }
}

}  // namespace ringbolt::device
