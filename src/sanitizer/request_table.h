#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sanitizer/remembered.h"
#include "sanitizer/request.h"
#include "sanitizer/spans.h"

namespace ringbolt::sanitizer {

/// The requests that the device has, by the numbers that stand in their `wr_id`, and the memory of this process that
/// they read and write. Owns each from insert() to take_out(). Under the lock of Shadow.
class RequestTable {
 public:
  using Owner = std::unique_ptr<Request>;

  /// Numbers are given out from `first_number` on, and wrap.
  explicit RequestTable(uint32_t first_number) : first_number_(first_number) {}

  /// One that is in use again after 2^32 posts is none of ours by then.
  uint32_t issue() { return first_number_ + issued_++; }
  uint32_t first_number() const { return first_number_; }
  /// How many numbers were given out.
  uint32_t issued() const { return issued_; }

  /// Under its number, which is issued and nobody else's.
  /// Good until take_out().
  Request& insert(Owner request);
  /// Null: there is none.
  Request* find(uint32_t number) const;
  Owner take_out(uint32_t number);

  /// The numbers of those for which `is_wanted(request)`.
  template <class IsWanted>
  std::vector<uint32_t> numbers_of(IsWanted&& is_wanted) const {
    std::vector<uint32_t> numbers;
    for (const auto& [number, request] : requests_) {
      if (is_wanted(*request)) {
        numbers.push_back(number);
      }
    }
    return numbers;
  }
  template <class Visit>
  void each(Visit&& visit) {
    for (auto& [number, request] : requests_) {
      visit(*request);
    }
  }

  /// A request that writes to some of these bytes of ours: a receive, a READ or an atomic. Null: none.
  /// If there are several, any of them.
  Request* writer_of(uint64_t address, uint64_t length_bytes) const;
  /// One that sends some of them, and is not given up.
  Request* reader_of(uint64_t address, uint64_t length_bytes) const;

  /// A completion for it may still be polled: its `wr_id` is the program's.
  void remember(const Request& dropped) { old_ids_.note(dropped.number, dropped.wr_id); }
  /// 0: not known.
  uint64_t old_id(uint32_t number) const { return old_ids_.of(number); }

  /// All are another process'. Numbers go on.
  void clear();

 private:
  Spans& spans_of(const Request& request) { return request.use == Use::send ? sent_from_ : written_to_; }

  const uint32_t first_number_;
  uint32_t issued_ = 0;
  std::unordered_map<uint32_t, Owner> requests_;
  Spans sent_from_;   // what requests under way read here
  Spans written_to_;  // and write
  Remembered<uint64_t> old_ids_;
};

}  // namespace ringbolt::sanitizer
