#include "pair/hello.h"

#include <algorithm>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::pair {
namespace {

constexpr std::string_view kVersion = "1";

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

std::string magic_of(std::string_view command) { return fmt::format("ringbolt {} ", command); }

}  // namespace

std::string emit_hello(std::string_view command, const std::vector<HelloEntry>& mine) {
  std::string text = fmt::format("{}{}\n", magic_of(command), kVersion);
  for (const HelloEntry& entry : mine) {
    text += fmt::format("{} {}\n", entry.name, entry.value);
  }
  return text;
}

std::string hello_objection(std::string_view command, const std::vector<HelloEntry>& mine, std::string_view theirs) {
  const std::string magic = magic_of(command);
  if (theirs.substr(0, magic.size()) != magic) {
    return fmt::format("what answers there is not ringbolt {}", command);
  }
  const std::string_view version = theirs.substr(magic.size(), theirs.find('\n') - magic.size());
  if (version != kVersion) {
    return fmt::format(
        "the other end speaks version {} of this measurement, this one {}: use the same Ringbolt at both",
        printable(version.substr(0, 20)), kVersion);
  }
  std::string differences;
  for (const HelloEntry& entry : mine) {
    const std::string_view other = value_in(theirs, entry.name);
    if (other != entry.value) {
      differences += fmt::format("{}{} ({}) is {} here and {} at the other end", differences.empty() ? "" : "; ",
                                 entry.name, entry.flag, entry.value, printable(other));
    }
  }
  return differences.empty() ? "" : "both ends need the same parameters: " + differences;
}

void agree(std::string_view command, const std::vector<HelloEntry>& mine, Peer& peer) {
  peer.tell("hello", emit_hello(command, mine));
  const std::string objection = hello_objection(command, mine, peer.await("hello", "its parameters"));
  if (!objection.empty()) {
    throw UsageError(fmt::format("{}: {}", peer.name(), objection));
  }
}

}  // namespace ringbolt::tools::pair
