#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::sanitizer {

/// Findings that nobody wants to hear of: lines "KIND:GLOB", where KIND may be "*", and GLOB is matched against the
/// file, the function and the rule of a finding. "#" begins a remark. A value; thread-safe once it is made.
class Suppressions {
 public:
  /// What is wrong with a line is added to `objections`.
  Suppressions(std::string_view text, std::vector<std::string>& objections);
  Suppressions() = default;

  /// `place`: as base::place_of() has it, "client.c:88 in connect_to()".
  bool match(std::string_view kind, std::string_view rule, std::string_view place) const;

 private:
  struct Line {
    std::string kind;
    std::string glob;
  };
  std::vector<Line> lines_;
};

}  // namespace ringbolt::sanitizer
