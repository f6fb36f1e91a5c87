#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "failure.h"
#include "pair/transport.h"

namespace ringbolt::tools::pair {

inline constexpr std::array kTransports{Transport::kRc, Transport::kUc, Transport::kUd};

/// Which of `all` has the text_of() `text`; nullopt: none.
template <class Value, size_t kCount>
std::optional<Value> named(std::string_view text, const std::array<Value, kCount>& all) {
  for (const Value one : all) {
    if (text == text_of(one)) {
      return one;
    }
  }
  return std::nullopt;
}

/// The same for the value of an option; throws UsageError that tells all of them.
template <class Value, size_t kCount>
Value chosen(const std::string& text, std::string_view flag, const std::array<Value, kCount>& all) {
  if (const std::optional<Value> one = named(text, all)) {
    return *one;
  }
  std::string known;
  for (const Value one : all) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text_of(one));
  }
  throw UsageError(fmt::format("{} \"{}\" is none of {}", flag, text, known));
}

/// Throws UsageError where HOST, --nodes, --cluster and -d contradict each other.
void refuse_two_meetings(const PairOptions& options);

/// Port, path and retries that the options ask for.
PortChoice port_choice_of(const PairOptions& options);

/// What a process of --nodes is, for its command line.
struct EndWords {
  std::string device;  ///< "rdma_en2"
  std::string end;     ///< "client"
  std::string peer;    ///< what it calls the other: "node n1"
};

/// The words of a command line that asks one end on a node for what `options` ask for: "perf", "send", "--end",
/// "client"... Begins with all that the two commands have in common. Not thread-safe.
class Words {
 public:
  /// `operation`: the word behind the command.
  Words(std::string command, std::string operation, const PairOptions& options, const EndWords& end);

  /// A flag with its value; no text and no value: neither.
  template <class Number>
  void add(const char* flag, const Number& value) {
    words_.insert(words_.end(), {flag, fmt::format("{}", value)});
  }
  void add(const char* flag, const std::string& text);
  template <class Number>
  void add(const char* flag, const std::optional<Number>& value) {
    if (value) {
      add(flag, *value);
    }
  }
  /// Where 0 means the default.
  void add_unless_0(const char* flag, uint32_t value);
  /// A flag without a value.
  void add_flag(const char* flag, bool is_set);

  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

}  // namespace ringbolt::tools::pair
