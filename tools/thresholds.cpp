#include "thresholds.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/say.h"
#include "failure.h"

namespace ringbolt::tools {
namespace {

using Document = nlohmann::ordered_json;

/// 0 says that there is none, which no figure would ever be below.
constexpr std::string_view kLineRate = "line_rate_gbps";

bool is_key(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
             std::string_view::npos &&
         std::isalpha(static_cast<unsigned char>(text.front())) != 0;
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // No figure is above or below "nan" or "inf": a threshold of those would never fail.
  const bool is_number = error == std::errc{} && end == text.data() + text.size() && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

bool ends_with_key(const std::string& path, const std::string& key) {
  return path == key || (path.size() > key.size() && path.ends_with(key) && path[path.size() - key.size() - 1] == '.');
}

/// Goes through a document with what is around each value.
class Walk {
 public:
  Walk(const Threshold& threshold, std::vector<std::string>& crossed, std::set<std::string>& keys)
      : threshold_(threshold), crossed_(crossed), keys_(keys) {}

  /// `path` has the names of objects alone, and `place` also the numbers of elements.
  void visit(const Document& value, const std::string& path, const std::string& place) {
    if (value.is_object()) {
      around_.push_back(&value);
      for (const auto& [name, inner] : value.items()) {
        visit(inner, path.empty() ? name : path + "." + name, place.empty() ? name : place + "." + name);
      }
      around_.pop_back();
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) {
        visit(value[i], path, fmt::format("{}[{}]", place, i));
      }
    } else if (value.is_number() || value.is_null()) {
      keys_.insert(path.substr(path.rfind('.') + 1));
      if (ends_with_key(path, threshold_.key)) {
        judge(value, place);
      }
    }
  }
  bool has_found() const { return has_found_; }

 private:
  void judge(const Document& value, const std::string& place) {
    has_found_ = true;
    if (value.is_null()) {
      crossed_.push_back(fmt::format("{} was not measured, and --fail-if {} is asked for", place, threshold_.text));
      return;
    }
    const double measured = value.get<double>();
    const double bound = threshold_.factor * (threshold_.bound.empty() ? 1 : bound_around());
    const std::string& sign = threshold_.sign;
    const bool holds = sign == "<"    ? measured < bound
                       : sign == "<=" ? measured <= bound
                       : sign == ">"  ? measured > bound
                                      : measured >= bound;
    if (holds) {
      crossed_.push_back(
          threshold_.bound.empty()
              ? fmt::format("{} is {:.6g}: --fail-if {}", place, measured, threshold_.text)
              : fmt::format("{} is {:.6g}: --fail-if {} ({:.6g})", place, measured, threshold_.text, bound));
    }
  }

  double bound_around() const {
    for (auto object = around_.rbegin(); object != around_.rend(); ++object) {
      const auto found = (*object)->find(threshold_.bound);
      if (found != (*object)->end() && found->is_number()) {
        if (threshold_.bound == kLineRate && found->get<double>() <= 0) {
          throw UsageError(
              fmt::format("--fail-if {}: there is no line rate to measure by, as between Ringbolt's own ports: say "
                          "which it is with "
                          "--line-rate GBPS",
                          threshold_.text));
        }
        return found->get<double>();
      }
    }
    throw UsageError(
        fmt::format("--fail-if {}: there is no number \"{}\" beside or around \"{}\" here (--json shows what there is)",
                    threshold_.text, threshold_.bound, threshold_.key));
  }

  const Threshold& threshold_;
  std::vector<std::string>& crossed_;
  std::set<std::string>& keys_;
  std::vector<const Document*> around_;
  bool has_found_ = false;
};

}  // namespace

void check_thresholds(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    (void)parse_threshold(text);
  }
}

Threshold parse_threshold(const std::string& text) {
  const std::string words = without_blanks(text);
  const size_t at = words.find_first_of("<>");
  Threshold threshold;
  threshold.text = text;
  if (at != std::string::npos) {
    threshold.key = words.substr(0, at);
    threshold.sign = words.substr(at, at + 1 < words.size() && words[at + 1] == '=' ? 2 : 1);
    std::string bound = words.substr(at + threshold.sign.size());
    const size_t times = bound.find('*');
    const std::optional<double> factor = number_of(bound.substr(0, times));
    if (factor && times == std::string::npos) {
      threshold.factor = *factor;
      bound.clear();
    } else if (factor) {
      threshold.factor = *factor;
      bound.erase(0, times + 1);
    }
    threshold.bound = bound;
    if (is_key(threshold.key) && (is_key(bound) || (bound.empty() && factor && times == std::string::npos))) {
      return threshold;
    }
  }
  throw UsageError(fmt::format(
      "--fail-if \"{}\" is no threshold: write KEY>NUMBER, KEY<KEY or KEY<NUMBER*KEY, with <, <=, > or >= and "
      "keys that --json prints, as in \"p99_us>20\"",
      text));
}

std::vector<std::string> crossed_thresholds(std::string_view json, const std::vector<std::string>& texts) {
  std::vector<std::string> crossed;
  if (texts.empty()) {
    return crossed;
  }
  const Document document = Document::parse(json);
  for (const std::string& text : texts) {
    const Threshold threshold = parse_threshold(text);
    std::set<std::string> keys;
    Walk walk(threshold, crossed, keys);
    walk.visit(document, "", "");
    if (!walk.has_found()) {
      throw UsageError(fmt::format("--fail-if {}: nothing here is called \"{}\"; there are {}", text, threshold.key,
                                   fmt::join(keys, ", ")));
    }
  }
  return crossed;
}

int status_within(int status, const char* command, std::string_view json, const std::vector<std::string>& texts) {
  const std::vector<std::string> crossed = crossed_thresholds(json, texts);
  for (const std::string& one : crossed) {
    base::say(fmt::format("ringbolt {}: {}\n", command, one));
  }
  return status == kOk && !crossed.empty() ? kFoundProblem : status;
}

}  // namespace ringbolt::tools
