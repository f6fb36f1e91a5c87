#include "fault/plan_words.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "fault/quantities.h"

namespace ringbolt::fault {
namespace {

template <class T>
using Named = std::pair<std::string_view, T>;

constexpr std::array kKinds{std::to_array<Named<Kind>>({{"loss", Kind::loss},
                                                        {"duplicate", Kind::duplicate},
                                                        {"reorder", Kind::reorder},
                                                        {"corrupt", Kind::corrupt},
                                                        {"truncate", Kind::truncate},
                                                        {"delay", Kind::delay},
                                                        {"rtr-errno", Kind::rtr_errno},
                                                        {"rtr-block", Kind::rtr_block},
                                                        {"pd-null", Kind::pd_null},
                                                        {"exhaust", Kind::exhaust},
                                                        {"destroy-hang", Kind::destroy_hang},
                                                        {"completion-error", Kind::completion_error},
                                                        {"completion-late", Kind::completion_late},
                                                        {"completion-missing", Kind::completion_missing},
                                                        {"message-loss", Kind::message_loss},
                                                        {"bitflip", Kind::bitflip},
                                                        {"shape", Kind::shape},
                                                        {"rnr", Kind::rnr},
                                                        {"completion-early", Kind::early},
                                                        {"receive-error", Kind::receive_error},
                                                        {"frame-mismatch", Kind::frame_mismatch},
                                                        {"silent-overrun", Kind::silent_overrun},
                                                        {"coalesce", Kind::coalesce},
                                                        {"qp-age", Kind::qp_age},
                                                        {"flap", Kind::flap},
                                                        {"unplug", Kind::unplug},
                                                        {"frozen", Kind::frozen},
                                                        {"cross-cables", Kind::cross_cables},
                                                        {"gid-shuffle", Kind::gid_shuffle},
                                                        {"gid-empty", Kind::gid_empty},
                                                        {"rename-devices", Kind::rename_devices},
                                                        {"query-hang", Kind::query_hang},
                                                        {"gid-change", Kind::gid_change},
                                                        {"call-errno", Kind::call_errno}})};
// So that name_of() finds every kind; that no kind is there twice is for a test.
static_assert(kKinds.size() == static_cast<size_t>(kLastKind) + 1);

// Numbers of this system: a plan goes from machine to machine as text, with the names.
constexpr std::array kErrors{std::to_array<Named<int>>({{"EINVAL", EINVAL},
                                                        {"ETIMEDOUT", ETIMEDOUT},
                                                        {"EBUSY", EBUSY},
                                                        {"ENODATA", ENODATA},
                                                        {"EFAULT", EFAULT},
                                                        {"ENOMEM", ENOMEM},
                                                        {"EOPNOTSUPP", EOPNOTSUPP},
                                                        {"EAGAIN", EAGAIN},
                                                        {"EIO", EIO},
                                                        {"EPERM", EPERM},
                                                        {"ENODEV", ENODEV}})};
constexpr std::array kObjectNames{std::to_array<Named<Object>>(
    {{"qp", Object::qp}, {"pd", Object::pd}, {"cq", Object::cq}, {"mr", Object::mr}, {"dma", Object::dma}})};
static_assert(kObjectNames.size() == kObjects);

constexpr std::array kCallNames{std::to_array<Named<Call>>({{"post-send", Call::post_send},
                                                            {"post-recv", Call::post_recv},
                                                            {"poll-cq", Call::poll_cq},
                                                            {"reg-mr", Call::reg_mr}})};
static_assert(kCallNames.size() == kCalls);

constexpr std::array kUnplugs{std::to_array<Named<Unplug>>(
    {{"hang", Unplug::hang}, {"port-event", Unplug::port_event}, {"flush", Unplug::flush}, {"abort", Unplug::abort}})};

/// A cable between machines that people have: docs/faults.md has the sources.
struct Preset {
  std::string_view name;
  uint64_t rate_mbps;
  uint64_t delay_ns;
  uint64_t jitter_ns;
};
constexpr std::array kPresets{std::to_array<Preset>(
    {{"mac-linux-40g", 10'000, 5'000, 0}, {"mac-mac-80g", 40'000, 4'500, 500}, {"linux-rc-rail", 10'000, 7'500, 500}})};

enum class Quantity : uint8_t { count, time, rate };

// A set of kinds in 64 bits.
constexpr uint64_t bit(Kind kind) { return uint64_t{1} << static_cast<unsigned>(kind); }
template <class... Kinds>
constexpr uint64_t bits(Kinds... kinds) {
  return (bit(kinds) | ...);
}

/// A number that some kinds have.
struct Strength {
  std::string_view key;
  uint64_t kinds;
  Quantity quantity;
  // Several keys write to one member, under names that suit their kinds.
  uint64_t Rule::*member;
  // Both bounds are inclusive, and in the member's unit: ns, Mbit/s or a count. `least` is looked at for counts only.
  uint64_t least;
  uint64_t most;
  // Also when it is the default: a line without it would be incomplete (missing_part()), or read oddly.
  bool is_always_said = false;
};
constexpr uint64_t kDayNs = 86'400'000'000'000;
// 10 Tbit/s: beyond any cable.
constexpr uint64_t kMaxRateMbps = 10'000'000;
constexpr std::array kStrengths{std::to_array<Strength>({
    {"by", bit(Kind::reorder), Quantity::count, &Rule::overtakers, 1, 1024, true},
    {"within", bit(Kind::reorder), Quantity::time, &Rule::within_ns, 0, Rule::kMaxDelayNs},
    {"bits", bits(Kind::corrupt, Kind::bitflip), Quantity::count, &Rule::bits, 1, Rule::kMaxBits},
    {"rate", bit(Kind::shape), Quantity::rate, &Rule::rate_mbps, 1, kMaxRateMbps},
    {"by", bit(Kind::delay), Quantity::time, &Rule::delay_ns, 0, Rule::kMaxDelayNs, true},
    {"by", bits(Kind::shape, Kind::early), Quantity::time, &Rule::delay_ns, 0, Rule::kMaxDelayNs},
    {"by", bits(Kind::rtr_block, Kind::completion_late, Kind::destroy_hang, Kind::query_hang, Kind::flap),
     Quantity::time, &Rule::delay_ns, 0, Rule::kMaxBlockNs, true},
    {"restore", bit(Kind::unplug), Quantity::time, &Rule::delay_ns, 0, kDayNs},
    {"jitter", bits(Kind::delay, Kind::shape), Quantity::time, &Rule::jitter_ns, 0, Rule::kMaxDelayNs},
    // Times 4 KiB: 256 MiB under way at most.
    {"window", bit(Kind::shape), Quantity::count, &Rule::window_frames, 1, 65536},
    // Statuses of enum ibv_wc_status beyond IBV_WC_SUCCESS, up to IBV_WC_TM_RNDV_INCOMPLETE.
    {"status", bits(Kind::completion_error, Kind::receive_error), Quantity::count, &Rule::status, 1, 23},
    {"left", bit(Kind::exhaust), Quantity::count, &Rule::left, 0, UINT64_MAX},
    {"after", bits(Kind::coalesce, Kind::qp_age), Quantity::time, &Rule::after_ns, 0, kDayNs, true},
    {"every", bits(Kind::coalesce, Kind::flap), Quantity::time, &Rule::every_ns, 0, Rule::kMaxBlockNs, true},
    // sgid_index of struct ibv_global_route has 8 bits.
    {"index", bit(Kind::gid_change), Quantity::count, &Rule::index, 0, 255},
    {"by", bit(Kind::gid_change), Quantity::time, &Rule::delay_ns, 0, Rule::kMaxBlockNs},
    {"every", bit(Kind::gid_change), Quantity::time, &Rule::every_ns, 0, Rule::kMaxBlockNs},
})};

/// "10Gbit", "800Mbit".
std::optional<uint64_t> read_rate_mbps(std::string_view text) {
  for (const auto& [unit, mbps] : {Named<uint64_t>{"Gbit", 1000}, Named<uint64_t>{"Mbit", 1}}) {
    if (text.ends_with(unit)) {
      const auto value = read_count(text.substr(0, text.size() - unit.size()));
      return value && *value <= kMaxRateMbps / mbps ? std::optional(*value * mbps) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string rate_text(uint64_t mbps) {
  return mbps % 1000 == 0 ? fmt::format("{}Gbit", mbps / 1000) : fmt::format("{}Mbit", mbps);
}

template <class T, size_t kCount>
const T* find_named(const std::array<T, kCount>& table, std::string_view word) {
  const auto found = std::ranges::find_if(table, [&](const T& entry) {
    if constexpr (requires { entry.name; }) {
      return entry.name == word;
    } else {
      return entry.first == word;
    }
  });
  return found == table.end() ? nullptr : &*found;
}

/// What is no number. False: `key` is none of these.
bool read_word(Words& words, std::string_view key, Rule& rule) {
  const bool has_error = rule.kind == Kind::rtr_errno || rule.kind == Kind::exhaust || rule.kind == Kind::call_errno;
  // pd-null takes none: a program sees a null pointer.
  if (key == "errno" && has_error) {
    const auto* error = find_named(kErrors, words.next());
    rule.error = error == nullptr ? 0 : error->second;
    if (error == nullptr) {
      words.complain(
          "errno takes EINVAL, ETIMEDOUT, EBUSY, ENODATA, EFAULT, ENOMEM, EOPNOTSUPP, EAGAIN, EIO, EPERM or ENODEV");
    }
  } else if (key == "object" && rule.kind == Kind::exhaust) {
    const auto* object = find_named(kObjectNames, words.next());
    rule.object = object == nullptr ? Object::qp : object->second;
    if (object == nullptr) {
      words.complain("object takes qp, pd, cq, mr or dma");
    }
  } else if (key == "call" && rule.kind == Kind::call_errno) {
    const auto* call = find_named(kCallNames, words.next());
    rule.call = call == nullptr ? Call::post_send : call->second;
    if (call == nullptr) {
      words.complain("call takes post-send, post-recv, poll-cq or reg-mr");
    }
  } else if (key == "qp" && rule.kind == Kind::call_errno) {
    rule.queue_pair = static_cast<uint32_t>(words.number(key, 0, UINT32_MAX));
  } else if (key == "mode" && rule.kind == Kind::unplug) {
    const auto* mode = find_named(kUnplugs, words.next());
    rule.unplug = mode == nullptr ? Unplug::hang : mode->second;
    if (mode == nullptr) {
      words.complain("mode takes hang, port-event, flush or abort");
    }
  } else if (key == "with" && rule.kind == Kind::cross_cables) {
    rule.other_cable = words.number(key, 0, UINT32_MAX);
  } else if (key == "preset" && rule.kind == Kind::shape) {
    const Preset* preset = find_named(kPresets, words.next());
    if (preset == nullptr) {
      words.complain("preset takes mac-linux-40g, mac-mac-80g or linux-rc-rail");
      return true;
    }
    // What the line said before is overwritten, what follows overwrites this. The name itself is not kept:
    // emit_rule() writes the numbers.
    rule.rate_mbps = preset->rate_mbps;
    rule.delay_ns = preset->delay_ns;
    rule.jitter_ns = preset->jitter_ns;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<Kind> kind_of(std::string_view word) {
  const auto* found = find_named(kKinds, word);
  return found == nullptr ? std::nullopt : std::optional(found->second);
}

// The table has every kind, or the result would be beyond its end.
std::string_view name_of(Kind kind) { return std::ranges::find(kKinds, kind, &Named<Kind>::second)->first; }

std::string kind_names() {
  std::string names;
  for (const auto& [name, kind] : kKinds) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

bool read_strength(Words& words, std::string_view key, Rule& rule) {
  // A key may be there several times ("by"), for different kinds.
  const auto found = std::ranges::find_if(
      kStrengths, [&](const Strength& one) { return one.key == key && (one.kinds & bit(rule.kind)) != 0; });
  if (found == kStrengths.end()) {
    return read_word(words, key, rule);
  }
  switch (found->quantity) {
    case Quantity::count:
      rule.*found->member = words.number(key, found->least, found->most);
      break;
    case Quantity::time:
      rule.*found->member = words.time(key, found->most);
      break;
    case Quantity::rate:
      rule.*found->member = words.take(key, read_rate_mbps(words.next()), "a rate, as in 10Gbit or 800Mbit");
      break;
  }
  return true;
}

std::string strength_text(const Rule& rule) {
  const Rule usual;
  std::string text;
  if (rule.object) {
    text += fmt::format(" object {}", std::ranges::find(kObjectNames, *rule.object, &Named<Object>::second)->first);
  }
  if (rule.call) {
    text += fmt::format(" call {}", std::ranges::find(kCallNames, *rule.call, &Named<Call>::second)->first);
  }
  if (rule.queue_pair) {
    text += fmt::format(" qp {}", *rule.queue_pair);
  }
  if (rule.unplug) {
    text += fmt::format(" mode {}", std::ranges::find(kUnplugs, *rule.unplug, &Named<Unplug>::second)->first);
  }
  for (const Strength& one : kStrengths) {
    const uint64_t value = rule.*one.member;
    if ((one.kinds & bit(rule.kind)) != 0 && (one.is_always_said || value != usual.*one.member)) {
      text += fmt::format(" {} {}", one.key,
                          one.quantity == Quantity::count  ? std::to_string(value)
                          : one.quantity == Quantity::time ? time_text(value)
                                                           : rate_text(value));
    }
  }
  if (rule.error != 0) {
    text += fmt::format(" errno {}", std::ranges::find(kErrors, rule.error, &Named<int>::second)->first);
  }
  if (rule.other_cable) {
    text += fmt::format(" with {}", *rule.other_cable);
  }
  return text;
}

std::string missing_part(const Rule& rule) {
  switch (rule.kind) {
    case Kind::delay:
    case Kind::rtr_block:
    case Kind::completion_late:
    case Kind::destroy_hang:
    case Kind::query_hang:
      return rule.delay_ns + rule.jitter_ns == 0 ? "takes a time: by 1ms" : "";
    case Kind::rtr_errno:
      return rule.error == 0 ? "takes an error: errno EINVAL" : "";
    case Kind::completion_error:
    case Kind::receive_error:
      return rule.status == 0 ? "takes a status: status 12" : "";
    case Kind::exhaust:
      return rule.object ? "" : "takes what runs out: object qp left 4";
    case Kind::shape:
      return rule.delay_ns + rule.jitter_ns + rule.rate_mbps + rule.window_frames == 0
                 ? "takes rate, by, jitter, window or preset: rate 10Gbit by 5us"
             : rule.window_frames != 0 && rule.delay_ns == 0 ? "takes a time with its window: window 4 by 10us"
                                                             : "";
    case Kind::coalesce:
      return rule.after_ns == 0 || rule.every_ns == 0 ? "takes two times: after 10s every 5s" : "";
    case Kind::qp_age:
      return rule.after_ns == 0 ? "takes a time: after 23min" : "";
    // A cable that is down for the whole period would never come up again.
    case Kind::flap:
      return rule.delay_ns == 0 || rule.every_ns <= rule.delay_ns ? "takes two times: by 200ms every 1s" : "";
    // Without times the address is away for good.
    case Kind::gid_change:
      return rule.every_ns + rule.delay_ns != 0 && (rule.delay_ns == 0 || rule.every_ns <= rule.delay_ns)
                 ? "takes two times, or none: by 200ms every 1s"
                 : "";
    case Kind::call_errno:
      return !rule.call || rule.error == 0                  ? "takes a call and its error: call post-send errno ENOMEM"
             : rule.call == Call::reg_mr && rule.queue_pair ? "knows no queue pair where memory is registered"
                                                            : "";
    case Kind::unplug:
      return rule.unplug ? "" : "takes what becomes of it: mode hang, port-event, flush or abort";
    case Kind::cross_cables:
      return !rule.node || !rule.cable || !rule.other_cable
                 ? "takes a node and its two cables: node 0 cable 0-1 with 0-2"
                 : "";
    default:
      return "";
  }
}

}  // namespace ringbolt::fault
