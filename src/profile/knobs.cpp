#include "profile/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace ringbolt::profile {
namespace {

/// Sets a knob; false: no such value.
// May change the profile even when it says false: set_knob()'s caller throws it away then.
using Setter = bool (*)(Profile&, std::string_view);

template <bool Knobs::*Member>
// `off` and `on` are the knob's two words.
bool choose(Profile& profile, std::string_view value, std::string_view off, std::string_view on) {
  profile.knobs.*Member = value == on;
  return value == on || value == off;
}

/// One of some words.
template <class Value, size_t kCount>
bool choose(Value& chosen, std::string_view value, const std::pair<std::string_view, Value> (&words)[kCount]) {
  const auto* found = std::ranges::find(words, value, &std::pair<std::string_view, Value>::first);
  if (found != std::end(words)) {
    chosen = found->second;
  }
  return found != std::end(words);
}

/// All of `text`, in decimal; a number that does not fit is none.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool set_transport(Profile& profile, std::string_view value) {
  // 8 bits; numbers that no header knows are allowed, as a Mac says 100.
  uint8_t number = kTransportUnspecified;
  const bool is_known = value == "unspecified" || read_number(value, number);
  profile.look.transport = number;
  return is_known;
}

// Values are the index of the IPv4 entry, not of the enumeration.
bool set_gids(Profile& profile, std::string_view value) {
  return choose<GidLayout>(profile.look.gids, value,
                           {{"0", GidLayout::plain},
                            {"1", GidLayout::apple},
                            {"2", GidLayout::late},
                            {"3", GidLayout::mlx5},
                            {"empty", GidLayout::empty}});
}

bool set_receive_from(Profile& profile, std::string_view value) {
  return choose<ReceiveFrom>(profile.knobs.receive_from, value,
                             {{"init", ReceiveFrom::init}, {"rtr", ReceiveFrom::rtr}, {"rts", ReceiveFrom::rts}});
}

bool set_wrap(Profile& profile, std::string_view value) {
  return choose<Wrap4Gib>(profile.knobs.wrap_4_gib, value,
                          {{"off", Wrap4Gib::off}, {"warn", Wrap4Gib::warn}, {"corrupt", Wrap4Gib::corrupt}});
}

/// "wait", "drop", "park", or how much is parked at most: "park:SLOTS:BYTES".
bool set_no_receive(Profile& profile, std::string_view value) {
  // Bounds on what one queue pair may make this process hold: 65,536 messages, 1 GiB.
  constexpr uint32_t kMostSlots = 65536;
  constexpr uint32_t kMostBytes = 1U << 30U;
  Knobs& knobs = profile.knobs;
  const size_t colon = value.find(':');
  if (!choose<NoReceive>(knobs.no_receive, value.substr(0, colon),
                         {{"wait", NoReceive::wait}, {"drop", NoReceive::drop}, {"park", NoReceive::park}})) {
    return false;
  }
  if (colon == std::string_view::npos) {
    return true;
  }
  const std::string_view bounds = value.substr(colon + 1);
  const size_t middle = bounds.find(':');
  return knobs.no_receive == NoReceive::park && middle != std::string_view::npos &&
         read_number(bounds.substr(0, middle), knobs.park_slots) && knobs.park_slots <= kMostSlots &&
         read_number(bounds.substr(middle + 1), knobs.park_bytes) && knobs.park_bytes <= kMostBytes;
}

bool set_peer_death(Profile& profile, std::string_view value) {
  return choose<PeerDeath>(
      profile.knobs.peer_death, value,
      {{"requests", PeerDeath::requests}, {"then-fatal", PeerDeath::then_fatal}, {"fatal", PeerDeath::fatal}});
}

bool set_devices(Profile& profile, std::string_view value) {
  profile.look.has_devices = value == "listed";
  return value == "listed" || value == "none";
}

bool set_short_grant(Profile& profile, std::string_view value) {
  // Below kMostGrantFrames of frames.h: something must be left to post.
  constexpr uint32_t kMost = 4000;
  return read_number(value, profile.knobs.short_grant_frames) && profile.knobs.short_grant_frames <= kMost;
}

/// "off", "on", or how long before delivery in microseconds: "200us".
// Microseconds, up to 10 s, kept as ns.
bool set_early(Profile& profile, std::string_view value) {
  // 10 s, as fault::Rule::kMaxDelayNs.
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
// Both texts are for people: `values` stands in the message that refuses a value.
constexpr std::array kKnobs{std::to_array<KnobEntry>({
    {{"errno", "native|darwin", "whose error numbers"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::has_darwin_errno>(p, v, "native", "darwin"); }},
    {{"transport", "unspecified|NUMBER", "transport type of the device; a Mac says 100"}, set_transport},
    {{"devices", "listed|none", "whether programs find any device; Macs with Thunderbolt 4 are said to show none"},
     set_devices},
    {{"gid", "0|1|2|3|empty",
      "index of the IPv4 entry (0: link-local, then IPv4), or an empty table as a bridged port has"},
     set_gids},
    {{"empty-gid", "enodata|einval", "what RTR says with an empty GID table"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::empty_table_is_einval>(p, v, "enodata", "einval"); }},
    {{"type-at", "create|modify", "which call refuses a queue pair type"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::refuses_type_at_modify>(p, v, "create", "modify"); }},
    {{"recv-from", "init|rtr|rts", "the first state in which receives can be posted"}, set_receive_from},
    {{"overrun", "strict|silent", "posts beyond the frame budget: refused, or accepted and broken later"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::overruns_silently>(p, v, "strict", "silent"); }},
    {{"short-grant", "FRAMES", "posting takes so many frames fewer than were granted"}, set_short_grant},
    {{"multi-sge", "refuse|accept", "several pieces: refused, or each becomes a message and a completion of its own"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::splits_pieces>(p, v, "refuse", "accept"); }},
    {{"empty-send", "ok|emsgsize", "sends without a byte"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::refuses_empty_sends>(p, v, "ok", "emsgsize"); }},
    {{"norecv", "wait|drop|park|park:SLOTS:BYTES",
      "a UC SEND that meets no receive; park:16:65536 keeps 16 messages, 64 KiB at most"},
     set_no_receive},
    {{"leak", "process|boot", "whether objects of a dead process come back, or stay until `ringbolt reboot`"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::leaks_until_reboot>(p, v, "process", "boot"); }},
    {{"err-leak", "off|on", "whether regions stay for good once a queue pair was destroyed in the state ERR"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::leaks_after_error>(p, v, "off", "on"); }},
    {{"late-mr", "ok|error", "receives into regions made after the queue pair's RTR"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::refuses_late_regions>(p, v, "ok", "error"); }},
    {{"align", "any|page", "whether regions must begin on a page of 16 KiB"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::wants_aligned_regions>(p, v, "any", "page"); }},
    {{"wrap4g", "off|warn|corrupt", "regions that cross a 4 GiB boundary: received data beyond it lands 4 GiB too low"},
     set_wrap},
    {{"mr-access", "any|remote", "whether regions with local write access alone are refused"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::wants_remote_access>(p, v, "any", "remote"); }},
    {{"mr-memory", "any|mapped", "whether regions on the program's heap or stack are refused"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::wants_mapped_regions>(p, v, "any", "mapped"); }},
    {{"early-cqe", "off|on|TIME", "sends complete before they are delivered; with 200us by so much at least"},
     set_early},
    {{"rate", "free|line", "whether messages leave no faster than the cable's nominal rate"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::holds_line_rate>(p, v, "free", "line"); }},
    {{"peer-death", "requests|then-fatal|fatal",
      "what tells RC that its peer's process died: failed requests, these and then QP_FATAL, or QP_FATAL first"},
     set_peer_death},
    {{"channels", "off|on", "completion channels"},
     [](Profile& p, std::string_view v) { return choose<&Knobs::has_channels>(p, v, "off", "on"); }},
})};

}  // namespace

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

std::vector<KnobText> known_knobs() {
  std::vector<KnobText> all;
  for (const KnobEntry& entry : kKnobs) {
    all.push_back(entry.text);
  }
  return all;
}

}  // namespace ringbolt::profile
