#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "doctor/facts.h"

namespace ringbolt::tools::doctor {

enum class Severity : uint8_t { error, warning, note };
enum class Platform : uint8_t { all, linux, mac };

// Short names for the tables of checks.
inline constexpr Severity kError = Severity::error, kWarning = Severity::warning, kNote = Severity::note;
inline constexpr Platform kAll = Platform::all, kLinux = Platform::linux, kMac = Platform::mac;

const char* severity_text(Severity severity);
const char* platform_text(Platform platform);

/// Who types a command: root, anybody, or nobody but the shell that programs are started from, since it changes that.
enum class By : uint8_t { root, user, shell };

/// A command of a shell on a machine; on kNoHost: where the doctor runs.
struct Step {
  std::string host;
  std::string command;
  By by = By::root;
  friend bool operator==(const Step&, const Step&) = default;
};

/// A line that was read, and from where.
struct Evidence {
  std::string host;
  std::string source;
  std::string text;
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

struct Check;

/// Something that is wrong on a machine, or between machines.
struct Finding {
  const Check* check = nullptr;
  std::string host;
  std::string object;   ///< interface, device, variable, ...
  std::string message;  ///< what is wrong, with the numbers
  std::vector<Evidence> evidence = {};
  std::vector<Step> mend = {};  ///< one after the other
  std::vector<Step> undo = {};
  std::string advice = {};                  ///< what no command can do
  std::optional<size_t> follows_from = {};  ///< the finding, by index, that probably explains it
};

/// What a check judges: a port, a device, or something else of a machine.
struct Place {
  const Host& host;
  std::string object;
  Place(const Netdev& port) : host(*port.host), object(port.name) {}        // NOLINT: both are places
  Place(const Device& device) : host(*device.host), object(device.name) {}  // NOLINT
  Place(const Host& its_host, std::string its_object) : host(its_host), object(std::move(its_object)) {}
};

/// What came of judging one thing. Of a thing that is well nothing is kept: a check shows lines and names commands
/// without asking, and so is one expression. Its texts are fmt's; `mend` and `undo` take the same values.
class Judgement {
 public:
  /// `finding`: null if all is well. Both outlive this.
  Judgement(Finding* finding, const Host& host) : finding_(finding), host_(&host) {}
  explicit operator bool() const { return finding_ != nullptr; }
  Finding* operator->() const { return finding_; }

  const Judgement& seen(const Value& value) const;
  const Judgement& seen(std::string_view source, std::string_view text) const {
    return seen(host_->line_of(source, text));
  }
  const Judgement& gid(const Device& device, const Gid& gid) const;
  const Judgement& variable(std::string_view name) const { return variable(*host_, name); }
  const Judgement& variable(const Host& at, std::string_view name) const;

  template <class... Args>
  const Judgement& step(By by, fmt::format_string<Args...> mend, fmt::format_string<Args...> undo,
                        Args&&... args) const {
    return finding_ == nullptr ? *this : add_step(by, text(mend, args...), text(undo, args...));
  }
  template <class... Args>
  const Judgement& step(fmt::format_string<Args...> mend, fmt::format_string<Args...> undo, Args&&... args) const {
    return step<Args...>(By::root, mend, undo, std::forward<Args>(args)...);
  }
  /// "mtu 9000", as iproute2 and, on a Mac, ifconfig take it.
  const Judgement& set_port(const Netdev& port, const std::string& mend, const std::string& undo) const;
  /// Shows the variable that this is about, and takes it out of the shell; the undoing puts it back.
  const Judgement& unset() const;
  template <class... Args>
  const Judgement& advise(fmt::format_string<Args...> advice, Args&&... args) const {
    return finding_ == nullptr ? *this : add_advice(text(advice, args...));
  }

 private:
  template <class Format, class... Args>
  static std::string text(const Format& format, const Args&... args) {
    return fmt::vformat(format, fmt::make_format_args(args...));
  }
  const Judgement& add_step(By by, std::string mend, std::string undo) const;
  const Judgement& add_advice(std::string advice) const;

  Finding* finding_;
  const Host* host_;
};

/// What a check tells while it looks. Not thread-safe.
class Probe {
 public:
  Probe(const Facts& all, Platform platform) : facts(all), platform_(platform) {}

  const Facts& facts;
  /// There was something to judge: without findings it is healthy.
  void looked(bool is_so = true) { has_looked_ = has_looked_ || is_so; }

  /// What can be told only where something was read: elsewhere there is nothing to judge.
  class Given {
   public:
    Given(Probe& probe, bool can_tell, Value value = {})
        : probe_(probe), can_tell_(can_tell), value_(std::move(value)) {}
    template <class... Args>
    Judgement judge(bool is_wrong, const Place& place, fmt::format_string<Args...> message, Args&&... args) const {
      const bool is_found = can_tell_ && is_wrong;
      return probe_.add(*this, is_found, place,
                        is_found ? fmt::vformat(message, fmt::make_format_args(args...)) : std::string());
    }

   private:
    friend class Probe;
    Probe& probe_;
    bool can_tell_;
    Value value_;
  };
  Given given(bool can_tell) { return {*this, can_tell}; }
  /// The value is the first line of evidence.
  Given given(const Value& value, bool can_tell = true) { return {*this, can_tell && value, value}; }
  template <class... Args>
  Judgement judge(bool is_wrong, const Place& place, fmt::format_string<Args...> message, Args&&... args) {
    return given(true).judge<Args...>(is_wrong, place, message, std::forward<Args>(args)...);
  }
  /// This check has found something there before.
  bool has_found(const Host& host) const;

  /// All hosts, cabled ports, devices or cables of the platform; a cable is, if both its ends are.
  template <class Thing>
  std::vector<const Thing*> all() const {
    auto found = std::get<std::vector<const Thing*>>(facts.judged);
    std::erase_if(found, [&](const Thing* one) { return !is_of_platform(*one); });
    return found;
  }

  bool has_looked() const { return has_looked_; }
  std::deque<Finding>& findings() { return findings_; }

 private:
  Judgement add(const Given& given, bool is_found, const Place& place, std::string message);
  bool is_of_platform(const Host& host) const { return platform_ == kAll || (platform_ == kMac) == host.is_mac; }
  bool is_of_platform(const Link& link) const { return is_of_platform(*link.a->host) && is_of_platform(*link.b->host); }
  bool is_of_platform(const auto& part) const { return is_of_platform(*part.host); }

  Platform platform_;
  bool has_looked_ = false;
  std::deque<Finding> findings_;  // which stay where they are
};

/// A function for each host, port, device or cable of the platform in turn, or one that goes over them itself.
using Look = std::variant<void (*)(Probe&), void (*)(Probe&, const Host&), void (*)(Probe&, const Netdev&),
                          void (*)(Probe&, const Device&), void (*)(Probe&, const Link&)>;

/// One thing that can be wrong: a pure function of what was read.
struct Check {
  std::string_view id;  ///< stable: never given to another
  Severity severity = Severity::error;
  Platform platform = Platform::all;
  std::string_view what;   ///< is wrong, in a few words
  std::string_view why;    ///< it hurts
  std::string_view reads;  ///< sources, separated by ", "; "a|b": one of them is enough
  Look look;
};

// What they read, on either system.
inline constexpr std::string_view kPortSources = "interfaces|ifconfig -a";
inline constexpr std::string_view kAddressSources = "ip -o address|ifconfig -a";
inline constexpr std::string_view kDeviceSources = "devices|ibv_devinfo -v";

// By subject, causes before consequences, also in this order.
std::span<const Check> cluster_checks();
std::span<const Check> cable_checks();
std::span<const Check> mac_checks();
std::span<const Check> hardware_checks();
std::span<const Check> thunderbolt_checks();
std::span<const Check> address_checks();
std::span<const Check> network_checks();
std::span<const Check> gid_checks();
std::span<const Check> limit_checks();
std::span<const Check> software_checks();
std::span<const Check> variable_checks();

/// All of them.
const std::vector<const Check*>& all_checks();

/// What came of a check. Never `healthy` if something that it needs could not be read.
struct Verdict {
  enum class State { healthy, found, unread, absent };
  const Check* check = nullptr;
  State state = State::absent;
  std::vector<std::string> unread = {};
};

struct Diagnosis {
  std::vector<Finding> findings;  ///< those first that explain most: by severity, then causes before consequences
  std::vector<Verdict> verdicts;  ///< of all checks, in their order
};

/// Any recording is safe to judge. Pure. The result refers to checks, which are constants, and not to `facts`; its
/// texts quote what was read, and are not fit for a terminal as they are.
Diagnosis diagnose(const Facts& facts);

// What several checks need.
/// "n1:en2"
std::string end_text(const Netdev& end);
/// "a, b"; "none"
template <class Named>
std::string names_of(const std::vector<Named>& all) {
  std::string names;
  for (const Named& one : all) {
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return names.empty() ? "none" : names;
}
/// Whether "26.1.2" or "6.8.0-50-generic" is older.
bool is_older(std::string_view version, uint64_t major, uint64_t minor);
/// Judges whether a value is the same on all machines that have it; the first one is right.
void judge_alike(Probe& at, const char* object, Value (*value)(const Host&), const char* advice);

}  // namespace ringbolt::tools::doctor
