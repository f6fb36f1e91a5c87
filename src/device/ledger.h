#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "profile/ledger_book.h"

namespace ringbolt::device {

/// Counts the objects of a device over all processes, in a locked file. Thread-safe.
class Ledger {
 public:
  /// `leaks`: protection domains of processes that die stay counted until `ringbolt reboot`.
  Ledger(std::string path, bool leaks) : path_(std::move(path)), leaks_(leaks) {}

  /// Counts one more for this process. False: there are `limit` already. An errno when the file can't be used.
  base::Result<bool> take(profile::Counted kind, uint32_t limit);
  void give(profile::Counted kind);

 private:
  const std::string path_;
  const bool leaks_;
};

/// One counted object; gives its place back, unless a forked child does so for its parent. Move-only.
class Claim {
 public:
  using Counter = std::shared_ptr<std::atomic<uint32_t>>;

  Claim() = default;
  /// `counter`: of this process, where the object counts as long as it is claimed. `ledger`, if any: of all processes.
  explicit Claim(Counter counter, std::shared_ptr<Ledger> ledger = nullptr, profile::Counted kind = {});
  Claim(Claim&& other) noexcept = default;
  Claim& operator=(Claim&& other) noexcept {
    std::swap(counter_, other.counter_);
    std::swap(ledger_, other.ledger_);
    std::swap(kind_, other.kind_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~Claim();

 private:
  Counter counter_;
  std::shared_ptr<Ledger> ledger_;
  profile::Counted kind_ = profile::Counted::qp;
  pid_t owner_ = 0;
};

}  // namespace ringbolt::device
