#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::tools {

/// What `--fail-if` says, "p99_us>20" or "goodput_gbps<0.9*line_rate_gbps": KEY, then < <= > or >=, then a number, or
/// another KEY, or NUMBER*KEY. A key is a name in the command's JSON, or the end of a path there, "in_place.p99_us".
struct Threshold {
  std::string text;   ///< as it was given
  std::string key;    ///< of the value
  std::string sign;   ///< "<", "<=", ">", ">="
  double factor = 1;  ///< the number itself where `bound` is empty
  std::string bound;  ///< the key of another number of the same object, or of one around it
};

/// Throws UsageError.
/// For the words alone, before minutes of work: whether the JSON has such a key shows only after it.
void check_thresholds(const std::vector<std::string>& texts);
Threshold parse_threshold(const std::string& text);

/// Every value of a measuring command's JSON for which a threshold holds, in words; one that was not measured, too.
/// Throws UsageError for a key that the JSON has not, with those that it has, and for a bound that is a part of the
/// line rate where there is none.
/// `json` is a whole document of a command of ours: what is none throws what the library throws. Thread-safe.
std::vector<std::string> crossed_thresholds(std::string_view json, const std::vector<std::string>& texts);

/// The exit code of a command whose own is `status`: says on standard error what crosses which threshold.
int status_within(int status, const char* command, std::string_view json, const std::vector<std::string>& texts);

}  // namespace ringbolt::tools
