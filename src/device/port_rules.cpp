// What a port's profile refuses, and the counting of what it limits.

#include <fmt/format.h>

#include <cstdio>

#include "base/explain.h"
#include "device/expected_refusals.h"
#include "device/explanations.h"
#include "device/port.h"

namespace ringbolt::device {
namespace {

struct CountedRule {
  uint32_t limit;
  profile::Rule rule;
  int error;
};

CountedRule rule_of(const profile::Limits& limits, profile::Counted kind) {
  switch (kind) {
    case profile::Counted::qp:
      return {limits.usable_qp, profile::Rule::qp_limit, EBUSY};
    case profile::Counted::pd:
      return {limits.pd, profile::Rule::pd_limit, ENOMEM};
    case profile::Counted::cq:
      return {limits.cq, profile::Rule::cq_limit, ENOMEM};
    case profile::Counted::mr:
      break;
  }
  return {limits.mr, profile::Rule::mr_limit, ENOMEM};
}

fault::Object object_of(profile::Counted kind) {
  switch (kind) {
    case profile::Counted::qp:
      return fault::Object::qp;
    case profile::Counted::pd:
      return fault::Object::pd;
    case profile::Counted::cq:
      return fault::Object::cq;
    case profile::Counted::mr:
      break;
  }
  return fault::Object::mr;
}

/// In the words of all that is explained; each time, not once.
void explain_rule(const Port& port, profile::Rule rule, int error, const std::string& what) noexcept {
  base::when_explaining([&] {
    const profile::RuleText& text = profile::text_of(rule);
    base::Incident incident;
    incident.call = "call";
    incident.object = port.name;
    incident.detail = "like " + port.profile.name;
    incident.error = error;
    incident.status =
        error == 0 ? "taken, and will go wrong" : "refused with " + profile::name_of_error(port.profile, error);
    incident.posted = base::call_site();
    incident.is_call = true;
    base::explain(incident, {fmt::format("{}; {}", what, text.why),
                             fmt::format("{} (docs/profiles.md, {})", text.fix, text.name)});
  });
}

}  // namespace

int Port::refuse(profile::Rule rule, int error, const std::string& what) const {
  const uint64_t bit = uint64_t{1} << static_cast<unsigned>(rule);
  static_assert(static_cast<unsigned>(profile::Rule::count_) <= 64);
  // One that was asked for leaves the telling to the program's own.
  if (base::is_explaining() && !are_refusals_expected()) {
    explain_rule(*this, rule, error, what);
  } else if (!are_refusals_expected() && (fabric->told_rules.fetch_or(bit) & bit) == 0) {
    std::fputs(profile::violation_text(profile, rule, name, what, error).c_str(), stderr);
  }
  return profile::number_of(profile, error);
}

base::Result<Claim> Port::claim(profile::Counted kind) const {
  const CountedRule counted = rule_of(profile.limits, kind);
  std::atomic<uint32_t>& count = live->counts[static_cast<size_t>(kind)];
  if (VerbFaults& faults = fabric->verb_faults; faults.has(fault::Subject::object)) {
    const fault::Verdict verdict = faults.judge(object_of(kind), *this, count.load());
    if (verdict.is_refused) {
      const int error = verdict.error == 0 ? counted.error : verdict.error;
      return base::fail(profile::number_of(
          profile, base::refused(error, fmt::format("making one more {}", kind_name(kind)),
                                 [&] { return why_fault(fmt::format("{} are there", count.load())); })));
    }
  }
  std::shared_ptr<std::atomic<uint32_t>> counter(live, &count);
  if (counted.limit == 0) {
    return Claim(std::move(counter));
  }
  const auto has_room = ledger->take(kind, counted.limit);
  if (!has_room) {
    return base::fail(has_room.error().value);
  }
  if (!*has_room) {
    return base::fail(
        refuse(counted.rule, counted.error,
               fmt::format("one more {} than the {} that the device has", kind_name(kind), counted.limit)));
  }
  return Claim(std::move(counter), ledger, kind);
}

}  // namespace ringbolt::device
