#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace ringbolt::tools {

/// A number from `least` to `most`. Unlike CLI::Range, not NaN, which is neither below nor above.
class RealRange : public CLI::Validator {
 public:
  RealRange(double least, double most) : Validator(fmt::format("FLOAT in [{} - {}]", least, most)) {
    func_ = [least, most](const std::string& text) {
      double value = 0;
      const bool is_good = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
      return is_good ? "" : fmt::format("Value {} not in range {} to {}", text, least, most);
    };
  }
};

/// Of a name or a path whose absence means something else than an empty one.
inline std::string objection_to_empty(const std::string& text) { return text.empty() ? "it is empty" : ""; }

}  // namespace ringbolt::tools
