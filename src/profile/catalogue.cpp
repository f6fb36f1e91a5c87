#include "profile/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace ringbolt::profile {
namespace {

constexpr int kTransportUnspecified = 4;
constexpr uint8_t kWidth8x = 4;
constexpr uint8_t kSpeed10Gbps = 4;

Profile tn3205() {
  Profile mac;
  mac.name = "tn3205";
  mac.limits.qp_types = kUc;
  mac.limits.operations = kSend;
  mac.limits.advertised_qp = 11;
  mac.limits.usable_qp = 10;
  mac.limits.pd = 11;
  mac.limits.cq = 11;
  mac.limits.mr = 100;
  mac.limits.qp_wr = 4095;
  mac.limits.cqe = 4096;
  mac.limits.sge = 1;
  mac.limits.message_bytes = 16'773'120;
  mac.limits.advertised_mr_bytes = 0xfa0000;
  mac.limits.has_inline = mac.limits.has_srq = mac.limits.has_windows = false;
  mac.limits.counts_frames = true;
  mac.look = {kWidth8x, kSpeed10Gbps, true, true, kTransportUnspecified, 32, GidLayout::apple};
  mac.knobs.refuses_late_regions = true;
  mac.knobs.wants_aligned_regions = true;
  mac.knobs.warns_at_4_gib = true;
  mac.knobs.has_channels = false;
  mac.knobs.zero_rkey = true;
  mac.knobs.checks_port_at_pd = true;
  mac.knobs.completes_early = true;
  return mac;
}

Profile apple() {
  Profile mac = tn3205();
  mac.name = "apple";
  mac.limits.operations = kSend | kWrite;
  mac.knobs.writes_into_stream = true;
  mac.knobs.short_grant_frames = 16;
  mac.knobs.holds_line_rate = true;
  mac.knobs.wants_aligned_regions = false;
  return mac;
}

Profile usb4_linux() {
  Profile usb4;
  usb4.name = "usb4-linux";
  usb4.limits.qp_types = kRc | kUc;
  usb4.limits.operations = kSend | kSendImmediate | kWrite | kWriteImmediate | kRead;
  usb4.limits.advertised_qp = usb4.limits.usable_qp = 256;
  usb4.limits.pd = usb4.limits.cq = 256;
  usb4.limits.mr = 1024;
  usb4.limits.qp_wr = 1024;
  usb4.limits.cqe = 4096;
  usb4.limits.sge = 4;
  usb4.limits.posted_receive_sge = 1;
  usb4.limits.read_atomic = 128;
  usb4.limits.message_bytes = 16U << 20U;
  usb4.limits.has_inline = usb4.limits.has_srq = usb4.limits.has_windows = false;
  return usb4;
}

Profile spark() {
  Profile spark;
  spark.name = "spark";
  spark.look.gid_table_length = 16;
  spark.look.gids = GidLayout::mlx5;
  return spark;
}

struct Entry {
  NamedProfile text;
  Profile (*make)();
};
constexpr std::array<Entry, 5> kProfiles{{
    {{"roce", "all that the device has: RC, UC, UD, READ, WRITE, atomics"}, [] { return Profile{}; }},
    {{"tn3205", "a Mac over Thunderbolt 5 as Apple documents it, every limit enforced"}, tn3205},
    {{"apple", "the same as users have observed it, oddities included"}, apple},
    {{"usb4-linux", "the shape of Linux's USB4 driver"}, usb4_linux},
    {{"spark", "a DGX Spark's ConnectX-7: names and GID table of mlx5"}, spark},
}};

/// Sets a knob; false: no such value.
using Setter = bool (*)(Profile&, std::string_view);

template <bool Knobs::*Member>
bool choose(Profile& profile, std::string_view value, std::string_view off, std::string_view on) {
  profile.knobs.*Member = value == on;
  return value == on || value == off;
}

bool set_transport(Profile& profile, std::string_view value) {
  if (value == "unspecified") {
    profile.look.transport = kTransportUnspecified;
    return true;
  }
  uint8_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  profile.look.transport = number;
  return error == std::errc{} && end == value.data() + value.size();
}

bool set_gids(Profile& profile, std::string_view value) {
  constexpr std::pair<std::string_view, GidLayout> kLayouts[] = {
      {"0", GidLayout::plain}, {"1", GidLayout::apple}, {"2", GidLayout::late}, {"3", GidLayout::mlx5},
      {"empty", GidLayout::empty}};
  const auto* found = std::ranges::find(kLayouts, value, &std::pair<std::string_view, GidLayout>::first);
  if (found != std::end(kLayouts)) {
    profile.look.gids = found->second;
  }
  return found != std::end(kLayouts);
}

bool set_receive_from(Profile& profile, std::string_view value) {
  profile.knobs.receive_from = value == "rtr"   ? ReceiveFrom::rtr
                               : value == "rts" ? ReceiveFrom::rts
                                                : ReceiveFrom::init;
  return value == "init" || value == "rtr" || value == "rts";
}

bool set_short_grant(Profile& profile, std::string_view value) {
  constexpr uint32_t kMost = 4000;
  uint32_t frames = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), frames);
  profile.knobs.short_grant_frames = frames;
  return error == std::errc{} && end == value.data() + value.size() && frames <= kMost;
}

/// "off", "on", or how long before delivery in microseconds: "200us".
bool set_early(Profile& profile, std::string_view value) {
  constexpr uint64_t kMostUs = 10'000'000;
  profile.knobs.completes_early = value != "off";
  profile.knobs.early_lead_ns = 0;
  if (value == "off" || value == "on") {
    return true;
  }
  uint64_t us = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), us);
  profile.knobs.early_lead_ns = us * 1000U;
  return error == std::errc{} && us <= kMostUs && std::string_view(end, value.data() + value.size()) == "us";
}

struct KnobEntry {
  KnobText text;
  Setter set;
};
constexpr std::array<KnobEntry, 14> kKnobs{{
    {{"errno", "native|darwin", "whose error numbers"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::has_darwin_errno>(p, v, "native", "darwin"); }},
    {{"transport", "unspecified|NUMBER", "transport type of the device; a Mac says 100"}, set_transport},
    {{"gid", "0|1|2|3|empty", "index of the IPv4 entry (0: link-local, then IPv4), or an empty table as a bridged port has"},
     set_gids},
    {{"empty-gid", "enodata|einval", "what RTR says with an empty GID table"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::empty_table_is_einval>(p, v, "enodata", "einval"); }},
    {{"type-at", "create|modify", "which call refuses a queue pair type"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::refuses_type_at_modify>(p, v, "create", "modify"); }},
    {{"recv-from", "init|rtr|rts", "the first state in which receives can be posted"}, set_receive_from},
    {{"overrun", "strict|silent", "posts beyond the frame budget: refused, or accepted and broken later"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::overruns_silently>(p, v, "strict", "silent"); }},
    {{"short-grant", "FRAMES", "posting takes so many frames fewer than were granted"}, set_short_grant},
    {{"leak", "process|boot", "whether objects of a dead process come back, or stay until `ringbolt reboot`"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::leaks_until_reboot>(p, v, "process", "boot"); }},
    {{"late-mr", "ok|error", "receives into regions made after the queue pair's RTR"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::refuses_late_regions>(p, v, "ok", "error"); }},
    {{"align", "any|page", "whether regions must begin on a page of 16 KiB"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::wants_aligned_regions>(p, v, "any", "page"); }},
    {{"early-cqe", "off|on|TIME", "sends complete before they are delivered; with 200us by so much at least"}, set_early},
    {{"rate", "free|line", "whether messages leave no faster than the cable's nominal rate"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::holds_line_rate>(p, v, "free", "line"); }},
    {{"channels", "off|on", "completion channels"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::has_channels>(p, v, "off", "on"); }},
}};

std::string names_of_profiles() {
  std::string names;
  for (const Entry& entry : kProfiles) {
    names += (names.empty() ? "" : ", ") + std::string(entry.text.name);
  }
  return names;
}

std::optional<std::string> set_knob(Profile& profile, std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto* found = std::ranges::find_if(kKnobs, [name](const KnobEntry& one) { return name == one.text.name; });
  if (found == kKnobs.end()) {
    std::string names;
    for (const KnobEntry& one : kKnobs) {
      names += (names.empty() ? "" : ", ") + std::string(one.text.name);
    }
    return fmt::format("\"{}\" is no knob (they are {})", name, names);
  }
  const std::string_view value = equals == std::string_view::npos ? std::string_view{} : text.substr(equals + 1);
  if (!found->set(profile, value)) {
    return fmt::format("{}=\"{}\": it takes {}", name, value, found->text.values);
  }
  return std::nullopt;
}

}  // namespace

base::Parsed<Profile> parse_profile(std::string_view text) {
  constexpr size_t kMostBytes = 256;
  if (text.size() > kMostBytes) {
    return base::refuse(0, fmt::format("{} bytes are more than {}", text.size(), kMostBytes));
  }
  const std::string_view name = text.substr(0, text.find(','));
  const auto* found = std::ranges::find_if(kProfiles, [name](const Entry& one) { return name == one.text.name; });
  if (found == kProfiles.end()) {
    return base::refuse(0, fmt::format("\"{}\" is no profile (they are {})", name, names_of_profiles()));
  }
  Profile profile = found->make();
  for (size_t at = name.size(); at < text.size();) {
    const size_t end = std::min(text.find(',', at + 1), text.size());
    if (auto problem = set_knob(profile, text.substr(at + 1, end - at - 1))) {
      return base::refuse(0, std::move(*problem));
    }
    at = end;
  }
  return profile;
}

const std::vector<NamedProfile>& known_profiles() {
  static const std::vector<NamedProfile> known = [] {
    std::vector<NamedProfile> all;
    for (const Entry& entry : kProfiles) {
      all.push_back(entry.text);
    }
    return all;
  }();
  return known;
}

std::vector<KnobText> known_knobs() {
  std::vector<KnobText> all;
  for (const KnobEntry& entry : kKnobs) {
    all.push_back(entry.text);
  }
  return all;
}

}  // namespace ringbolt::profile
