#include "doctor/check.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "child_process.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr size_t kMostEvidenceBytes = 300;

bool is_of(Platform platform, const Host& host) {
  return platform == Platform::all || (platform == Platform::mac) == host.is_mac;
}

/// Of "a|b, c": what is missing on a host. Nothing was asked where the part of look.sh was left out: that is no
/// failure.
void find_unread(const Check& check, const Host& host, std::vector<std::string>& unread) {
  for (std::string_view rest = check.reads; !rest.empty();) {
    const size_t end = std::min(rest.find(", "), rest.size());
    std::string_view group = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 2, rest.size()));
    std::vector<std::string> failures;
    bool has_one = false;
    while (!group.empty()) {
      const size_t bar = std::min(group.find('|'), group.size());
      const Reading* reading = host.recording->find(host.name, group.substr(0, bar));
      has_one = has_one || (reading != nullptr && reading->problem.empty());
      if (reading != nullptr && !reading->problem.empty()) {
        failures.push_back(fmt::format("{}: {}: {}", host.name, reading->source, reading->problem));
      }
      group.remove_prefix(std::min(bar + 1, group.size()));
    }
    if (!has_one) {
      std::ranges::move(failures, std::back_inserter(unread));
    }
  }
}

/// What one check says. Nothing that a recording holds may end the command: a check that trips says so.
Verdict verdict_of(const Check& check, const Facts& facts, std::vector<Finding>& findings) {
  Probe probe(facts);
  probe.platform = check.platform;
  Verdict verdict{&check};
  try {
    check.look(probe);
  } catch (const std::exception& error) {
    probe.unread(fmt::format("what was read made no sense: {}", error.what()));
  }
  for (const Host& host : facts.hosts) {
    if (is_of(check.platform, host)) {
      find_unread(check, host, probe.unread_ones());
    }
  }
  for (Finding& one : probe.findings()) {
    one.check = &check;
    findings.push_back(std::move(one));
  }
  verdict.unread = std::move(probe.unread_ones());
  verdict.state = !probe.findings().empty() ? Verdict::State::found
                  : !verdict.unread.empty() ? Verdict::State::unread
                  : probe.has_looked()      ? Verdict::State::healthy
                                            : Verdict::State::absent;
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

Finding& Finding::seen(const Host& at, std::string_view source, std::string_view text) {
  // A terminal gets no control characters of a machine that is looked at.
  std::string line(trimmed(text.substr(0, kMostEvidenceBytes)));
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
  evidence.push_back({at.name, std::string(source), std::move(line)});
  return *this;
}

Finding& Finding::file(const Host& at, const std::string& path) { return seen(at, path, at.file(path)); }

Finding& Finding::step(const Host& at, std::string command, std::string undoing, By by) {
  mend.push_back({at.name, std::move(command), by});
  if (!undoing.empty()) {
    undo.insert(undo.begin(), {at.name, std::move(undoing), by});
  }
  return *this;
}

Finding& Finding::advise(std::string text) {
  advice = std::move(text);
  return *this;
}

Finding& Probe::found(const Host& host, std::string object, std::string message) {
  has_looked_ = true;
  return findings_.emplace_back(Finding{nullptr, host.name, std::move(object), std::move(message)});
}

void Probe::each_host(const std::function<void(const Host&)>& look) {
  for (const Host& host : facts.hosts) {
    if (is_of(platform, host)) {
      look(host);
    }
  }
}

void Probe::each_cabled(const std::function<void(const Host&, const Netdev&)>& look) {
  each_host([&](const Host& host) {
    for (const Netdev& netdev : host.netdevs) {
      if (netdev.is_cabled) {
        look(host, netdev);
      }
    }
  });
}

void Probe::each_device(const std::function<void(const Host&, const Device&)>& look) {
  each_host(
      [&](const Host& host) { std::ranges::for_each(host.devices, [&](const Device& one) { look(host, one); }); });
}

void Probe::each_link(const std::function<void(const Link&)>& look) {
  for (const Link& link : facts.links) {
    if (is_of(platform, facts.host(link.a))) {
      look(link);
    }
  }
}

const std::vector<const Check*>& all_checks() {
  static const std::vector<const Check*> all = [] {
    std::vector<const Check*> found;
    for (const auto& part :
         {cluster_checks(), cable_checks(), mac_checks(), hardware_checks(), thunderbolt_checks(), link_checks(),
          address_checks(), network_checks(), gid_checks(), limit_checks(), software_checks(), variable_checks()}) {
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

std::string end_text(const Facts& facts, const End& end) {
  return fmt::format("{}:{}", facts.host(end).name, facts.netdev(end).name);
}

}  // namespace ringbolt::tools::doctor
