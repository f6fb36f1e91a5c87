#include "perf/hello.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ringbolt::tools::perf {
namespace {

constexpr std::string_view kMagic = "ringbolt perf ";
constexpr std::string_view kVersion = "1";

struct Entry {
  std::string name;
  std::string flag;
  std::string value;
};

std::string phases_text(const Parameters& one) {
  return !one.has_latency ? "bandwidth" : one.has_bandwidth ? "both" : "latency";
}

std::vector<Entry> entries_of(const Parameters& one) {
  return {{"operation", "OP", text_of(one.operation)},
          {"connection", "-c", text_of(one.transport)},
          {"measured", "--lat or --report-both", phases_text(one)},
          {"directions", "-b", one.is_bidirectional ? "both" : "one"},
          {"atomic", "--atomic_type", text_of(one.atomic_kind)},
          {"sizes", "-s or -a", fmt::format("{}", fmt::join(one.sizes, ","))},
          {"queue-pairs", "-q", std::to_string(one.queue_pairs)},
          {"iterations", "-n", std::to_string(one.iterations)},
          {"seconds", "-D", fmt::format("{}", one.duration_s)},
          {"latency-check", "--check", text_of(one.latency_check)},
          {"bandwidth-check", "--check", text_of(one.bandwidth_check)}};
}

/// Of a line "name value".
std::string_view value_in(std::string_view text, const std::string& name) {
  const std::string begin = "\n" + name + " ";
  const size_t at = text.find(begin);
  if (at == std::string_view::npos) {
    return "nothing";
  }
  const std::string_view rest = text.substr(at + begin.size());
  return rest.substr(0, std::min(rest.find('\n'), size_t{200}));
}

/// What came from a peer, fit for a terminal.
std::string printable(std::string_view text) {
  std::string clean(text);
  std::replace_if(
      clean.begin(), clean.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return clean;
}

}  // namespace

std::string emit_hello(const Parameters& mine) {
  std::string text = fmt::format("{}{}\n", kMagic, kVersion);
  for (const Entry& entry : entries_of(mine)) {
    text += fmt::format("{} {}\n", entry.name, entry.value);
  }
  return text;
}

std::string hello_objection(const Parameters& mine, std::string_view theirs) {
  if (theirs.substr(0, kMagic.size()) != kMagic) {
    return "what answers there is not ringbolt perf";
  }
  const std::string_view version = theirs.substr(kMagic.size(), theirs.find('\n') - kMagic.size());
  if (version != kVersion) {
    return fmt::format(
        "the other end speaks version {} of this measurement, this one {}: use the same Ringbolt at both",
        printable(version.substr(0, 20)), kVersion);
  }
  std::string differences;
  for (const Entry& entry : entries_of(mine)) {
    const std::string_view other = value_in(theirs, entry.name);
    if (other != entry.value) {
      differences += fmt::format("{}{} ({}) is {} here and {} at the other end", differences.empty() ? "" : "; ",
                                 entry.name, entry.flag, entry.value, printable(other));
    }
  }
  return differences.empty() ? "" : "both ends need the same parameters: " + differences;
}

}  // namespace ringbolt::tools::perf
