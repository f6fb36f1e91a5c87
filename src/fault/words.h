#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fault/quantities.h"

namespace ringbolt::fault {

inline constexpr std::string_view kBlanks = " \t\r";

/// The words of one fault, taken in order. The first complaint sticks. Not thread-safe. Complaints are words for a
/// person; they name the key, and quote no more than the caller gives them.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) { skip_blanks(); }

  bool is_at_end() const { return rest_.empty(); }
  /// Empty at the end, which number() and the others then complain of. Views are into the constructor's text, which
  /// must outlive them.
  std::string_view next() {
    const std::string_view word = peek();
    rest_.remove_prefix(word.size());
    skip_blanks();
    return word;
  }
  std::string_view peek() const { return rest_.substr(0, rest_.find_first_of(kBlanks)); }

  /// What was read, or else a complaint and nothing of worth.
  template <class T>
  // `wanted` completes "KEY takes ...".
  T take(std::string_view key, const std::optional<T>& value, std::string_view wanted) {
    if (value) {
      return *value;
    }
    complain(fmt::format("{} takes {}", key, wanted));
    return T{};
  }
  /// Bounds are inclusive. After a complaint: `least`, a value that callers may go on with.
  uint64_t number(std::string_view key, uint64_t least, uint64_t most) {
    const std::optional<uint64_t> value = read_count(next());
    if (!value || *value < least || *value > most) {
      complain(fmt::format("{} takes a number from {} to {}", key, least, most));
      return least;
    }
    return *value;
  }
  /// In nanoseconds, 0 to `most_ns`; 0 after a complaint.
  uint64_t time(std::string_view key, uint64_t most_ns) {
    const std::optional<uint64_t> value_ns = read_time_ns(next());
    if (!value_ns || *value_ns > most_ns) {
      complain(fmt::format("{} takes a time up to {}, as in 200us or 5ms", key, time_text(most_ns)));
      return 0;
    }
    return *value_ns;
  }
  /// "A-B" or "A-": both ends, as `read` reads them. `last` stays as it is when left out.
  template <class Read>
  void range(std::string_view key, Read read, uint64_t& first, uint64_t& last) {
    const std::string_view word = next();
    const size_t dash = word.find('-');
    const auto from = dash == std::string_view::npos ? std::nullopt : read(word.substr(0, dash));
    const bool is_open = dash != std::string_view::npos && dash + 1 == word.size();
    const auto to = is_open || dash == std::string_view::npos ? std::nullopt : read(word.substr(dash + 1));
    if (!from || (!is_open && (!to || *to < *from))) {
      complain(fmt::format("{} takes A-B or A-, as in {}", key, key == "time" ? "2s-5s" : "100-199"));
      return;
    }
    first = *from;
    last = to.value_or(last);
  }

  // Further ones are dropped: they mostly follow from the first.
  void complain(std::string problem) {
    if (problem_.empty()) {
      problem_ = std::move(problem);
    }
  }
  // Empty: all is well so far.
  const std::string& problem() const { return problem_; }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size())); }

  std::string_view rest_;
  std::string problem_;
};

}  // namespace ringbolt::fault
