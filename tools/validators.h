#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "base/nearest.h"

namespace ringbolt::tools {

// What options take. Every option that is a number has one of the first two: CLI11 by itself reads "" as 0, "-1" as the
// greatest number, and "010" as 8. Their descriptions are for the
// help, which takes them apart (cli/words.h).

/// A decimal number from `least` to `most`, without a sign.
class Whole : public CLI::Validator {
 public:
  Whole(uint64_t least, uint64_t most) : Validator(fmt::format("whole {} {}", least, most)) {
    func_ = [least, most](std::string& text) {
      uint64_t value = 0;
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, value);
      if (error != std::errc{} || stop != end || value < least || value > most) {
        return fmt::format("give a whole number from {} to {}, not \"{}\"", least, most, text);
      }
      text = std::to_string(value);  // without zeros in front, which would make it octal
      return std::string();
    };
  }
};

/// A number from `least` to `most`. NaN is neither below nor above, and none.
class Real : public CLI::Validator {
 public:
  Real(double least, double most) : Validator(fmt::format("real {} {}", least, most)) {
    func_ = [least, most](std::string& text) {
      double value = 0;
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, value);
      const bool is_good = error == std::errc{} && stop == end && value >= least && value <= most;
      return is_good ? "" : fmt::format("give a number from {} to {}, not \"{}\"", least, most, text);
    };
  }
};

/// One of these words.
class OneOf : public CLI::Validator {
 public:
  explicit OneOf(const std::vector<std::string>& words) : Validator(fmt::format("one of {}", fmt::join(words, " "))) {
    func_ = [words](std::string& text) {
      if (std::ranges::find(words, text) != words.end()) {
        return std::string();
      }
      const std::string near = base::nearest(text, words);
      return fmt::format("give one of {}, not \"{}\"{}", fmt::join(words, ", "), text,
                         near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
    };
  }
};

/// Of a name or a path whose absence means something else than an empty one.
inline std::string objection_to_empty(const std::string& text) { return text.empty() ? "it is empty" : ""; }

}  // namespace ringbolt::tools
