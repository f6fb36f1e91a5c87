#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.h"

namespace ringbolt::tools::doctor {

enum class Severity : uint8_t { error, warning, note };
enum class Platform : uint8_t { all, linux, mac };

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

  // For checks, to say what they have found in one expression.
  Finding& seen(const Host& at, std::string_view source, std::string_view text);
  Finding& file(const Host& at, const std::string& path);
  Finding& step(const Host& at, std::string command, std::string undoing = {}, By by = By::root);
  Finding& advise(std::string text);
};

/// What a check tells while it looks. Not thread-safe.
class Probe {
 public:
  explicit Probe(const Facts& all) : facts(all) {}

  const Facts& facts;
  /// There was something to judge: without findings it is healthy.
  void looked() { has_looked_ = true; }
  Finding& found(const Host& host, std::string object, std::string message);
  /// Something that it needs could not be understood or read.
  void unread(std::string what) { unread_.push_back(std::move(what)); }

  // What checks go over.
  void each_host(const std::function<void(const Host&)>& look);
  void each_cabled(const std::function<void(const Host&, const Netdev&)>& look);
  void each_device(const std::function<void(const Host&, const Device&)>& look);
  void each_link(const std::function<void(const Link&)>& look);

  bool has_looked() const { return has_looked_; }
  std::vector<Finding>& findings() { return findings_; }
  std::vector<std::string>& unread_ones() { return unread_; }
  Platform platform = Platform::all;

 private:
  bool has_looked_ = false;
  std::vector<Finding> findings_;
  std::vector<std::string> unread_;
};

/// One thing that can be wrong: a pure function of what was read. `look` goes over machines of `platform` by the probe.
struct Check {
  std::string_view id;  ///< stable: never given to another
  Severity severity = Severity::error;
  Platform platform = Platform::all;
  std::string_view what;   ///< is wrong, in a few words
  std::string_view why;    ///< it hurts
  std::string_view reads;  ///< sources, separated by ", "; "a|b": one of them is enough
  void (*look)(Probe&);
};

// By subject, causes before consequences, also in this order.
std::span<const Check> cluster_checks();
std::span<const Check> cable_checks();
std::span<const Check> hardware_checks();
std::span<const Check> thunderbolt_checks();
std::span<const Check> mac_checks();
std::span<const Check> link_checks();
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

/// Any recording is safe to judge.
Diagnosis diagnose(const Facts& facts);

// Words that several checks need.
std::string end_text(const Facts& facts, const End& end);

}  // namespace ringbolt::tools::doctor
