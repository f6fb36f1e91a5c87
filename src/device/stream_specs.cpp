#include "device/stream_specs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <ranges>
#include <string_view>

#include "base/error.h"

namespace ringbolt::device {
namespace {

constexpr const char* kForm = "say NAME[,outage:SECONDS]=STREAM[+STREAM...][;NAME=...]";
constexpr std::string_view kOutage = "outage:";
constexpr uint32_t kMaxOutageS = 86'400;
constexpr size_t kMaxNameBytes = 32;

[[noreturn]] void refuse(const std::string& part, const std::string& remedy) {
  throw base::Error(EINVAL, "read the list of streams", "RINGBOLT_STREAMS=" + part, remedy);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

uint64_t outage_ns_of(const std::string& option, const std::string& text) {
  uint32_t seconds = 0;
  const char* end = option.data() + option.size();
  if (option.starts_with(kOutage)) {
    const auto [stop, error] = std::from_chars(option.data() + kOutage.size(), end, seconds);
    if (error == std::errc() && stop == end && seconds <= kMaxOutageS) {
      return uint64_t{seconds} * 1'000'000'000U;
    }
  }
  refuse(text, "the only option is outage:SECONDS, up to 86400");
}

StreamSpec parse_one(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    refuse(text, kForm);
  }
  const std::vector<std::string> head = split(text.substr(0, equals), ',');
  StreamSpec spec;
  spec.name = head.front();
  spec.rails = rails_of(text.substr(equals + 1));
  for (size_t i = 1; i < head.size(); ++i) {
    spec.outage_ns = outage_ns_of(head[i], text);
  }
  if (!is_name(spec.name)) {
    refuse(text, "a name has up to 32 letters, digits, _ and -");
  }
  return spec;
}

/// FNV-1a.
void mix(uint64_t& hash, std::string_view text) {
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
}

}  // namespace

std::vector<std::string> rails_of(const std::string& text) {
  std::vector<std::string> rails = split(text, '+');
  if (rails.size() > kMaxStreamRails || std::ranges::any_of(rails, &std::string::empty)) {
    refuse(text, "give one to eight streams, with + between them");
  }
  return rails;
}

std::vector<StreamSpec> parse_stream_specs(const std::string& text) {
  std::vector<StreamSpec> specs;
  for (const std::string& part : split(text, ';')) {
    if (part.empty()) {
      continue;
    }
    specs.push_back(parse_one(part));
    const auto same = [&](const StreamSpec& other) { return other.name == specs.back().name; };
    if (std::ranges::count_if(specs, same) > 1) {
      refuse(part, "each name may stand there once");
    }
  }
  if (specs.empty() || specs.size() > kMaxStreamPorts) {
    refuse(text, kForm);
  }
  return specs;
}

uint64_t stream_guid(const StreamSpec& spec) {
  uint64_t hash = 0xcbf29ce484222325U;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  mix(hash, boot);
  mix(hash, spec.name);
  for (const std::string& rail : spec.rails) {
    mix(hash, "+" + rail);  // two ends on one machine: one listens, the other connects
  }
  if (std::ranges::any_of(spec.rails, [](const std::string& rail) { return rail.starts_with("fd:"); })) {
    mix(hash, std::to_string(getpid()));
  }
  // Locally administered and no group address (IEEE 802), so that it is no manufacturer's.
  return (hash & 0xfcffffffffffffffU) | 0x0200000000000000U;
}

}  // namespace ringbolt::device
