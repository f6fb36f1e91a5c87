#include "profile/ledger_book.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_fields.h"

namespace ringbolt::profile {
namespace {

using base::take_number;
using base::take_until;

constexpr std::string_view kTitle = "ringbolt-ledger 1";
constexpr std::array<std::string_view, kCountedKinds> kWords{"qp", "pd", "cq", "mr"};
// A bound for a damaged file, and for what is written; processes that hold objects are tens.
constexpr size_t kMaxOwners = 4096;

/// "qp 3 pd 1 cq 2 mr 16", in this order and nothing behind it. False: the line is no good, and `counts` is half
/// read.
bool take_counts(std::string_view& line, Counts& counts) {
  for (size_t kind = 0; kind < kCountedKinds; ++kind) {
    if (take_until(line, ' ') != kWords[kind] || !take_number(line, counts[kind])) {
      return false;
    }
  }
  return line.empty();
}

std::string counts_text(const Counts& counts) {
  std::string text;
  for (size_t kind = 0; kind < kCountedKinds; ++kind) {
    text += fmt::format(" {} {}", kWords[kind], counts[kind]);
  }
  return text;
}

}  // namespace

const char* kind_name(Counted kind) {
  constexpr std::array<const char*, kCountedKinds> kNames{"queue pair", "protection domain", "completion queue",
                                                          "memory region"};
  return kNames.at(static_cast<size_t>(kind));
}

uint32_t LedgerBook::total(Counted kind) const {
  const auto place = static_cast<size_t>(kind);
  uint64_t sum = leaked[place];
  for (const Owner& owner : owners) {
    sum += owner.held[place];
  }
  // Summed in 64 bits: the file's numbers are anybody's.
  return static_cast<uint32_t>(std::min<uint64_t>(sum, UINT32_MAX));
}

void LedgerBook::add(pid_t pid, uint64_t started, Counted kind) {
  auto found = std::ranges::find_if(owners, [&](const Owner& o) { return o.pid == pid && o.started == started; });
  if (found == owners.end()) {
    // One more would make a text that nobody reads.
    if (owners.size() >= kMaxOwners) {
      return;
    }
    owners.push_back({pid, started, {}});
    found = owners.end() - 1;
  }
  ++found->held[static_cast<size_t>(kind)];
}

void LedgerBook::remove(pid_t pid, uint64_t started, Counted kind) {
  const auto found = std::ranges::find_if(owners, [&](const Owner& o) { return o.pid == pid && o.started == started; });
  // Not an error: an object made before the ledger was removed by hand comes back here.
  if (found == owners.end() || found->held[static_cast<size_t>(kind)] == 0) {
    return;
  }
  --found->held[static_cast<size_t>(kind)];
  // Owners without objects are not kept, so that the file stays as short as what is held.
  if (found->held == Counts{}) {
    owners.erase(found);
  }
}

void LedgerBook::bury(const std::function<bool(const Owner&)>& is_alive, bool leaks) {
  std::erase_if(owners, [&](const Owner& owner) {
    if (is_alive(owner)) {
      return false;
    }
    if (leaks) {
      leaked[static_cast<size_t>(Counted::pd)] += owner.held[static_cast<size_t>(Counted::pd)];
    }
    return true;
  });
}

std::string LedgerBook::emit() const {
  std::string text = fmt::format("{}\n", kTitle);
  for (const Owner& owner : owners) {
    text += fmt::format("process {} started {}{}\n", owner.pid, owner.started, counts_text(owner.held));
  }
  return text + fmt::format("leaked{}\nend\n", counts_text(leaked));
}

base::Parsed<LedgerBook> LedgerBook::parse(std::string_view text) {
  LedgerBook book;
  size_t number = 1;
  if (take_until(text, '\n') != kTitle) {
    return base::refuse(number, "is no ledger");
  }
  while (!text.empty()) {
    ++number;
    std::string_view line = take_until(text, '\n');
    const std::string_view word = take_until(line, ' ');
    // The mark of a whole file: one that was cut short has none.
    if (word == "end") {
      return book;
    }
    Owner owner;
    const bool is_owner = word == "process" && take_number(line, owner.pid) && take_until(line, ' ') == "started" &&
                          take_number(line, owner.started) && take_counts(line, owner.held);
    if (is_owner && owner.pid > 0 && book.owners.size() < kMaxOwners) {
      book.owners.push_back(owner);
    } else if (word != "leaked" || !take_counts(line, book.leaked)) {
      return base::refuse(number, "is no line of a ledger");
    }
  }
  return base::refuse(number, "the ledger has no end");
}

}  // namespace ringbolt::profile
