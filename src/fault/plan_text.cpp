#include "fault/plan_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "fault/quantities.h"

namespace ringbolt::fault {
namespace {

constexpr std::array<std::pair<std::string_view, Kind>, 12> kKinds{{{"loss", Kind::loss},
                                                                    {"duplicate", Kind::duplicate},
                                                                    {"reorder", Kind::reorder},
                                                                    {"corrupt", Kind::corrupt},
                                                                    {"truncate", Kind::truncate},
                                                                    {"delay", Kind::delay},
                                                                    {"rtr-errno", Kind::rtr_errno},
                                                                    {"rtr-block", Kind::rtr_block},
                                                                    {"pd-null", Kind::pd_null},
                                                                    {"completion-error", Kind::completion_error},
                                                                    {"completion-late", Kind::completion_late},
                                                                    {"completion-missing", Kind::completion_missing}}};
constexpr std::array<std::pair<std::string_view, int>, 6> kErrors{{{"EINVAL", EINVAL},
                                                                   {"ETIMEDOUT", ETIMEDOUT},
                                                                   {"EBUSY", EBUSY},
                                                                   {"ENODATA", ENODATA},
                                                                   {"EFAULT", EFAULT},
                                                                   {"EOPNOTSUPP", EOPNOTSUPP}}};
constexpr size_t kMaxPortBytes = 64;
constexpr std::string_view kBlanks = " \t\r";

std::string_view name_of(Kind kind) {
  return std::ranges::find(kKinds, kind, [](const auto& entry) { return entry.second; })->first;
}

std::string_view name_of_error(int error) {
  return std::ranges::find(kErrors, error, &std::pair<std::string_view, int>::second)->first;
}

bool is_port_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPortBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

std::string kind_names() {
  std::string names;
  for (const auto& [name, kind] : kKinds) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

/// The words of one fault, taken in order. The first complaint sticks.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) { skip_blanks(); }

  bool is_at_end() const { return rest_.empty(); }
  std::string_view next() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(kBlanks));
    rest_.remove_prefix(word.size());
    skip_blanks();
    return word;
  }

  /// What was read, or else a complaint and nothing of worth.
  template <class T>
  T take(std::string_view key, const std::optional<T>& value, std::string_view wanted) {
    if (value) {
      return *value;
    }
    complain(fmt::format("{} takes {}", key, wanted));
    return T{};
  }
  uint32_t number(std::string_view key, uint32_t least, uint32_t most) {
    const uint64_t value = read_count(next()).value_or(UINT64_MAX);
    if (value < least || value > most) {
      complain(fmt::format("{} takes a number from {} to {}", key, least, most));
      return least;
    }
    return static_cast<uint32_t>(value);
  }
  uint64_t time(std::string_view key, uint64_t most_ns) {
    const uint64_t value_ns = read_time_ns(next()).value_or(UINT64_MAX);
    if (value_ns > most_ns) {
      complain(fmt::format("{} takes a time up to {}, as in 200us or 5ms", key, time_text(most_ns)));
      return 0;
    }
    return value_ns;
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

  void complain(std::string problem) {
    if (problem_.empty()) {
      problem_ = std::move(problem);
    }
  }
  const std::string& problem() const { return problem_; }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size())); }

  std::string_view rest_;
  std::string problem_;
};

void read_kind(Words& words, Rule& rule) {
  const std::string_view word = words.next();
  const auto* found = std::ranges::find(kKinds, word, [](const auto& entry) { return entry.first; });
  if (found == kKinds.end()) {
    words.complain(fmt::format("\"{}\" is no fault; there are {}", word.substr(0, kMaxPortBytes), kind_names()));
    return;
  }
  rule.kind = found->second;
}

/// What only some kinds have. False: `key` is none of these.
bool read_strength(Words& words, std::string_view key, Rule& rule) {
  if (key == "by" && rule.kind == Kind::reorder) {
    rule.overtakers = words.number(key, 1, Rule::kMaxOvertakers);
  } else if (key == "within" && rule.kind == Kind::reorder) {
    rule.within_ns = words.time(key, Rule::kMaxDelayNs);
  } else if (key == "bits" && rule.kind == Kind::corrupt) {
    rule.bits = words.number(key, 1, Rule::kMaxBits);
  } else if (key == "by" && rule.kind == Kind::delay) {
    rule.delay_ns = words.time(key, Rule::kMaxDelayNs);
  } else if (key == "jitter" && rule.kind == Kind::delay) {
    rule.jitter_ns = words.time(key, Rule::kMaxDelayNs);
  } else if (key == "by" && (rule.kind == Kind::rtr_block || rule.kind == Kind::completion_late)) {
    rule.delay_ns = words.time(key, Rule::kMaxBlockNs);
  } else if (key == "errno" && rule.kind == Kind::rtr_errno) {
    const std::string_view word = words.next();
    const auto* found = std::ranges::find(kErrors, word, &std::pair<std::string_view, int>::first);
    rule.error = words.take(key, found == kErrors.end() ? std::nullopt : std::optional(found->second),
                            "EINVAL, ETIMEDOUT, EBUSY, ENODATA, EFAULT or EOPNOTSUPP");
  } else if (key == "status" && rule.kind == Kind::completion_error) {
    rule.status = words.number(key, 1, Rule::kMaxStatus);
  } else {
    return false;
  }
  return true;
}

/// What a kind can't do without. Empty: all is there.
std::string missing_part(const Rule& rule) {
  switch (rule.kind) {
    case Kind::delay:
    case Kind::rtr_block:
    case Kind::completion_late:
      return rule.delay_ns + rule.jitter_ns == 0 ? "takes a time: by 1ms" : "";
    case Kind::rtr_errno:
      return rule.error == 0 ? "takes an error: errno EINVAL" : "";
    case Kind::completion_error:
      return rule.status == 0 ? "takes a status: status 12" : "";
    default:
      return "";
  }
}

/// Which frames it is for. False: `key` is none of these.
bool read_choice(Words& words, std::string_view key, Rule& rule) {
  if (key == "seed") {
    rule.seed = words.take(key, read_count(words.next()), "a number");
  } else if (key == "node") {
    rule.node = words.number(key, 0, UINT32_MAX);
  } else if (key == "cable") {
    rule.cable = words.number(key, 0, UINT32_MAX);
  } else if (key == "port") {
    rule.port = words.next();
    if (!is_port_name(rule.port)) {
      words.complain("port takes the name of a device, as in rdma_en2");
    }
  } else if (key == "direction" && subject_of(rule.kind) == Subject::frame) {
    const std::string_view way = words.next();
    if (way != "send" && way != "receive") {
      words.complain("direction takes send or receive");
    }
    rule.direction = way == "send" ? Direction::send : Direction::receive;
  } else if (key == (subject_of(rule.kind) == Subject::frame ? "frames" : "count")) {
    words.range(key, read_count, rule.first_frame, rule.last_frame);
  } else if (key == "time") {
    words.range(key, read_time_ns, rule.from_ns, rule.until_ns);
  } else {
    return false;
  }
  return true;
}

base::Parsed<Rule> parse_rule(std::string_view text, size_t line) {
  Words words(text);
  Rule rule;
  read_kind(words, rule);
  if (words.problem().empty()) {
    rule.chance = words.take("the fault", read_chance(words.next()), "a chance, as in 1% or 0.01, with up to 9 digits");
  }
  std::vector<std::string_view> seen;
  while (words.problem().empty() && !words.is_at_end()) {
    const std::string_view key = words.next();
    if (std::ranges::find(seen, key) != seen.end()) {
      words.complain(fmt::format("{} is said twice", key));
    } else if (!read_strength(words, key, rule) && !read_choice(words, key, rule)) {
      words.complain(fmt::format("{} does not know \"{}\"", name_of(rule.kind), key.substr(0, kMaxPortBytes)));
    }
    seen.push_back(key);
  }
  if (const std::string missing = missing_part(rule); words.problem().empty() && !missing.empty()) {
    words.complain(fmt::format("{} {}", name_of(rule.kind), missing));
  }
  if (!words.problem().empty()) {
    return base::refuse(line, words.problem());
  }
  return rule;
}

template <class Text>
std::string range_text(uint64_t first, uint64_t last, Text text) {
  return last == UINT64_MAX ? fmt::format("{}-", text(first)) : fmt::format("{}-{}", text(first), text(last));
}

}  // namespace

base::Parsed<Plan> parse_plan(std::string_view text) {
  if (text.size() > kMaxPlanBytes) {
    return base::refuse(0, fmt::format("{} bytes are more than a plan's {}", text.size(), kMaxPlanBytes));
  }
  Plan plan;
  size_t line = 1;
  while (!text.empty()) {
    const size_t end = text.find_first_of("\n;#");
    const std::string_view piece = text.substr(0, end);
    if (piece.find_first_not_of(kBlanks) != std::string_view::npos) {
      auto rule = parse_rule(piece, line);
      if (!rule) {
        return tl::unexpected<base::ParseError>(std::move(rule.error()));
      }
      if (plan.rules.size() == Plan::kMaxRules) {
        return base::refuse(line, fmt::format("more than {} faults", Plan::kMaxRules));
      }
      plan.rules.push_back(std::move(*rule));
    }
    text.remove_prefix(piece.size());
    if (text.starts_with('#')) {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    }
    line += text.starts_with('\n') ? 1U : 0U;
    text.remove_prefix(text.empty() ? 0 : 1);
  }
  return plan;
}

std::string emit_rule(const Rule& rule) {
  const Rule usual;
  const auto count = [](uint64_t value) { return std::to_string(value); };
  std::string text = fmt::format("{} {}", name_of(rule.kind), chance_text(rule.chance));
  const auto add = [&](bool differs, std::string_view key, const std::string& value) {
    if (differs) {
      text += fmt::format(" {} {}", key, value);
    }
  };
  if (rule.kind == Kind::reorder) {
    add(true, "by", count(rule.overtakers));
    add(rule.within_ns != usual.within_ns, "within", time_text(rule.within_ns));
  }
  if (rule.kind == Kind::delay) {
    add(true, "by", time_text(rule.delay_ns));
    add(rule.jitter_ns != 0, "jitter", time_text(rule.jitter_ns));
  }
  add(rule.kind == Kind::rtr_block || rule.kind == Kind::completion_late, "by", time_text(rule.delay_ns));
  add(rule.error != 0, "errno", std::string(name_of_error(rule.error)));
  add(rule.status != 0, "status", count(rule.status));
  add(rule.kind == Kind::corrupt && rule.bits != usual.bits, "bits", count(rule.bits));
  add(rule.seed != usual.seed, "seed", count(rule.seed));
  add(rule.node.has_value(), "node", count(rule.node.value_or(0)));
  add(rule.cable.has_value(), "cable", count(rule.cable.value_or(0)));
  add(!rule.port.empty(), "port", rule.port);
  add(rule.direction.has_value(), "direction", rule.direction == Direction::send ? "send" : "receive");
  add(rule.first_frame != 0 || rule.last_frame != UINT64_MAX,
      subject_of(rule.kind) == Subject::frame ? "frames" : "count",
      range_text(rule.first_frame, rule.last_frame, count));
  add(rule.from_ns != 0 || rule.until_ns != UINT64_MAX, "time", range_text(rule.from_ns, rule.until_ns, time_text));
  return text;
}

std::string emit_plan(const Plan& plan) {
  std::string text;
  for (const Rule& rule : plan.rules) {
    text += emit_rule(rule) + "\n";
  }
  return text;
}

}  // namespace ringbolt::fault
