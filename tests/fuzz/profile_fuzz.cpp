// Any bytes as a profile with knobs, and as a ledger of objects: refused with a reason, or the same when written again.

#include "base/assert.h"
#include "input.h"
#include "profile/catalogue.h"
#include "profile/ledger_book.h"
#include "profile/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  const std::string_view text = fuzz::as_text(data, size);
  if (const auto parsed = profile::parse_profile(text)) {
    RINGBOLT_ASSERT(!parsed->name.empty() && text.starts_with(parsed->name));
    RINGBOLT_ASSERT(profile::number_of(*parsed, 0) == 0);
  } else {
    RINGBOLT_ASSERT(!parsed.error().problem.empty());
  }
  if (auto book = profile::LedgerBook::parse(text)) {
    const auto again = profile::LedgerBook::parse(book->emit());
    RINGBOLT_ASSERT(again && *again == *book);
    const uint32_t before = book->total(profile::Counted::pd);
    book->add(1, 2, profile::Counted::pd);
    RINGBOLT_ASSERT(book->total(profile::Counted::pd) >= before);
    book->bury([](const profile::LedgerBook::Owner&) { return false; }, true);
    RINGBOLT_ASSERT(book->owners.empty());
  }
  return 0;
}
