#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace ringbolt::tools::pair
