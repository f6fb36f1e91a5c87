#include "profile/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "profile/knobs.h"

namespace ringbolt::profile {
namespace {

// As ibv_query_port(3) encodes them: 8 lanes of 10 Gbit/s, 80 Gbit/s for Thunderbolt 5.
constexpr uint8_t kWidth8x = 4;
constexpr uint8_t kSpeed10Gbps = 4;

/// Apple's technote TN3205; docs/profiles.md has the source of each number.
Profile tn3205() {
  Profile mac;
  mac.name = "tn3205";
  mac.limits.qp_types = kUc;
  mac.limits.operations = kSend;
  // 11 are shown, of which 10 can be had.
  mac.limits.advertised_qp = 11;
  mac.limits.usable_qp = 10;
  mac.limits.pd = 11;
  mac.limits.cq = 11;
  mac.limits.mr = 100;
  mac.limits.qp_wr = 4095;
  mac.limits.cqe = 4096;
  mac.limits.sge = 1;
  // 4095 frames of 4 KiB.
  mac.limits.message_bytes = 16'773'120;
  mac.limits.advertised_mr_bytes = 0xfa0000;
  mac.limits.has_inline = mac.limits.has_srq = mac.limits.has_windows = false;
  mac.limits.counts_frames = true;
  mac.look = {kWidth8x, kSpeed10Gbps, true, true, kTransportUnspecified, 32, GidLayout::apple};
  mac.knobs.refuses_late_regions = true;
  mac.knobs.wants_aligned_regions = true;
  mac.knobs.wrap_4_gib = Wrap4Gib::warn;
  mac.knobs.has_channels = false;
  mac.knobs.zero_rkey = true;
  mac.knobs.checks_port_at_pd = true;
  mac.knobs.completes_early = true;
  return mac;
}

/// What docs/profiles.md marks as seen by users, where that differs from the technote.
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
  // 16 MiB.
  usb4.limits.message_bytes = 16U << 20U;
  usb4.limits.has_inline = usb4.limits.has_srq = usb4.limits.has_windows = false;
  return usb4;
}

Profile spark() {
  Profile spark;
  spark.name = "spark";
  // Enough for each address twice.
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

std::string names_of_profiles() {
  std::string names;
  for (const Entry& entry : kProfiles) {
    names += (names.empty() ? "" : ", ") + std::string(entry.text.name);
  }
  return names;
}

}  // namespace

base::Parsed<Profile> parse_profile(std::string_view text) {
  // The text is a program's environment: whatever is longer is a mistake, and would be quoted in full.
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
  // `at` is a comma. One at the end leaves an empty knob, which is refused.
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
  // Made once, by the first caller; later ones only read it.
  static const std::vector<NamedProfile> known = [] {
    std::vector<NamedProfile> all;
    for (const Entry& entry : kProfiles) {
      all.push_back(entry.text);
    }
    return all;
  }();
  return known;
}

}  // namespace ringbolt::profile
