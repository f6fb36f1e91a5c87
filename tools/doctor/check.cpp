#include "doctor/check.h"

#include <algorithm>
#include <iterator>

#include "base/printable.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr size_t kMostEvidenceBytes = 300;

/// What stands before `mark`; takes it and the mark away.
std::string_view take_until(std::string_view& rest, std::string_view mark) {
  const size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + mark.size(), rest.size()));
  return part;
}

/// Of "a|b, c": what is missing on a host. Nothing was asked where the part of look.sh was left out: that is no
/// failure.
void find_unread(const Check& check, const Host& host, std::vector<std::string>& unread) {
  for (std::string_view rest = check.reads; !rest.empty();) {
    std::vector<std::string> failures;
    bool has_one = false;
    for (std::string_view group = take_until(rest, ", "); !group.empty();) {
      const std::string_view source = take_until(group, "|");
      if (const std::string_view problem = host.problem(source); !problem.empty()) {
        failures.push_back(fmt::format("{}: {}: {}", host.name, source, problem));
      } else {
        has_one = has_one || host.was_asked(source);
      }
    }
    if (!has_one) {
      std::ranges::move(failures, std::back_inserter(unread));
    }
  }
}

/// Goes over what a check goes over.
struct Walk {
  Probe& probe;
  void operator()(void (*look)(Probe&)) const { look(probe); }
  template <class Thing>
  void operator()(void (*look)(Probe&, const Thing&)) const {
    for (const Thing* one : probe.all<Thing>()) {
      look(probe, *one);
    }
  }
};

/// What one check says. Nothing that a recording holds may end the command: a check that trips says so.
Verdict verdict_of(const Check& check, const Facts& facts, std::vector<Finding>& findings) {
  Probe probe(facts, check.platform);
  Verdict verdict{&check};
  try {
    std::visit(Walk{probe}, check.look);
  } catch (const std::exception& error) {
    verdict.unread.push_back(fmt::format("what was read made no sense: {}", error.what()));
  }
  for (const Host* host : probe.all<Host>()) {
    find_unread(check, *host, verdict.unread);
  }
  verdict.state = !probe.findings().empty() ? Verdict::State::found
                  : !verdict.unread.empty() ? Verdict::State::unread
                  : probe.has_looked()      ? Verdict::State::healthy
                                            : Verdict::State::absent;
  for (Finding& one : probe.findings()) {
    one.check = &check;
    findings.push_back(std::move(one));
  }
  return verdict;
}

/// Of the same thing on the same machine the first is probably the reason.
void explain(std::vector<Finding>& findings) {
  for (size_t i = 0; i < findings.size(); ++i) {
    for (size_t j = 0; j < i && !findings[i].follows_from; ++j) {
      const bool is_same = findings[i].host == findings[j].host && findings[i].object == findings[j].object;
      if (is_same && findings[i].check != findings[j].check && !findings[j].follows_from) {
        findings[i].follows_from = j;
      }
    }
  }
}

}  // namespace

const char* severity_text(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

const char* platform_text(Platform platform) {
  return platform == Platform::all ? "all" : platform == Platform::linux ? "Linux" : "macOS";
}

const Judgement& Judgement::seen(const Value& value) const {
  if (finding_ != nullptr) {
    const std::string_view shown = value.line.empty() ? value.text : value.line;
    std::string line = base::printable(std::string(trimmed(shown.substr(0, kMostEvidenceBytes))), ' ');
    finding_->evidence.push_back({value.host->name, value.source, std::move(line)});
  }
  return *this;
}

const Judgement& Judgement::gid(const Device& device, const Gid& gid) const {
  return device.host->is_mac
             ? seen("ibv_devinfo -v", fmt::format("{}: GID[{}]: {}", device.name, gid.index, gid.text))
             : seen(fmt::format("{}/gids/{}", device.folder, gid.index), fmt::format("{} {}", gid.text, gid.type));
}

const Judgement& Judgement::variable(const Host& at, std::string_view name) const {
  return seen(at.line_of("environment", fmt::format("{}={}", name, at.variable(name))));
}

const Judgement& Judgement::set_port(const Netdev& port, const std::string& mend, const std::string& undo) const {
  const char* tool = port.host->is_mac ? "ifconfig" : "ip link set";
  return step("{0} {1} {2}", "{0} {1} {3}", tool, port.name, mend, undo);
}

const Judgement& Judgement::unset() const {
  if (finding_ != nullptr) {
    const std::string& name = finding_->object;
    variable(name).step(By::shell, "unset {0}", "export {0}={1}", name,
                        shell_quoted(std::string(host_->variable(name))));
  }
  return *this;
}

const Judgement& Judgement::add_step(By by, std::string mend, std::string undo) const {
  finding_->mend.push_back({finding_->host, std::move(mend), by});
  if (!undo.empty()) {
    finding_->undo.insert(finding_->undo.begin(), {finding_->host, std::move(undo), by});
  }
  return *this;
}

const Judgement& Judgement::add_advice(std::string advice) const {
  finding_->advice = std::move(advice);
  return *this;
}

Judgement Probe::add(const Given& given, bool is_found, const Place& place, std::string message) {
  looked(given.can_tell_);
  if (!is_found) {
    return {nullptr, place.host};
  }
  const Judgement judgement(
      &findings_.emplace_back(Finding{nullptr, place.host.name, place.object, std::move(message)}), place.host);
  return given.value_ ? judgement.seen(given.value_) : judgement;
}

bool Probe::has_found(const Host& host) const {
  return std::ranges::find(findings_, host.name, &Finding::host) != findings_.end();
}

const std::vector<const Check*>& all_checks() {
  static const std::vector<const Check*> all = [] {
    std::vector<const Check*> found;
    for (const auto& part :
         {cluster_checks(), cable_checks(), mac_checks(), hardware_checks(), thunderbolt_checks(), address_checks(),
          network_checks(), gid_checks(), limit_checks(), software_checks(), variable_checks()}) {
      std::ranges::transform(part, std::back_inserter(found), [](const Check& one) { return &one; });
    }
    return found;
  }();
  return all;
}

Diagnosis diagnose(const Facts& facts) {
  Diagnosis diagnosis;
  for (const Check* check : all_checks()) {
    diagnosis.verdicts.push_back(verdict_of(*check, facts, diagnosis.findings));
  }
  std::ranges::stable_sort(diagnosis.findings, {}, [](const Finding& one) { return one.check->severity; });
  explain(diagnosis.findings);
  return diagnosis;
}

std::string end_text(const Netdev& end) { return fmt::format("{}:{}", end.host->name, end.name); }

bool is_older(std::string_view version, uint64_t major, uint64_t minor) {
  const uint64_t own_major = number_of(version);
  const size_t dot = std::min(version.find('.'), version.size());
  const uint64_t own_minor = number_of(version.substr(std::min(dot + 1, version.size())));
  return std::pair(own_major, own_minor) < std::pair(major, minor);
}

void judge_alike(Probe& at, const char* object, Value (*value)(const Host&), const char* advice) {
  const Host* first = nullptr;
  for (const Host* host : at.all<Host>()) {
    const Value own = value(*host);
    if (own && first == nullptr) {
      first = host;
    } else if (own) {
      const Value other = value(*first);
      at.given(own)
          .judge(own.text != other.text, {*host, object}, "{} here, {} on {}", fmt::join(words_of(own.text), " "),
                 fmt::join(words_of(other.text), " "), first->name)
          .seen(other)
          .advise("{}", advice);
    }
  }
}

}  // namespace ringbolt::tools::doctor
