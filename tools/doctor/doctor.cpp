// `ringbolt doctor`: reads machines, judges what was read, and mends one thing where it is told to.
#include <algorithm>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "base/nearest.h"
#include "commands.h"
#include "doctor/check.h"
#include "doctor/gather.h"
#include "doctor/look_script.h"
#include "doctor/redact.h"
#include "doctor/report.h"
#include "failure.h"
#include "page_file.h"

namespace ringbolt::tools {
namespace {

using doctor::Diagnosis;
using doctor::Facts;
using doctor::Finding;
using doctor::Step;

void refuse_unknown_check(const std::string& id) {
  std::vector<std::string> ids;
  for (const doctor::Check* one : doctor::all_checks()) {
    if (one->id == id) {
      return;
    }
    ids.emplace_back(one->id);
  }
  const std::string near = base::nearest(id, ids);
  throw UsageError(fmt::format("--apply: there is no check {}{}; `ringbolt doctor --list` has all", id,
                               near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

/// Errors and warnings; notes are no problem.
bool is_problem(const Finding& finding) { return finding.check->severity != doctor::Severity::note; }

bool is_agreed(bool is_yes) {
  if (is_yes) {
    return true;
  }
  fmt::print("Do this? [y/N] ");
  std::fflush(stdout);
  const int first = std::fgetc(stdin);
  for (int c = first; c != '\n' && c != EOF;) {
    c = std::fgetc(stdin);  // to the end of the line, or it would answer the next question
  }
  return first == 'y' || first == 'Y';
}

/// One finding, which is shown first, with its commands. Returns whether it was mended.
bool mend(const doctor::Scope& scope, const Finding& finding, bool is_yes) {
  fmt::print("{}", doctor::finding_text(finding));
  const bool is_shells = std::ranges::find(finding.mend, doctor::By::shell, &Step::by) != finding.mend.end();
  const char* obstacle = finding.mend.empty() ? ": no command mends this"
                         : is_shells ? ": it is for the shell, or the script, that your programs are started from"
                                     : "";
  if (*obstacle != '\0' || !is_agreed(is_yes)) {
    fmt::print("   nothing was done{}\n", obstacle);
    return false;
  }
  for (const Step& step : finding.mend) {
    doctor::carry_out(scope, step);
  }
  fmt::print("   done\n");
  return true;
}

int apply_check(const DoctorOptions& options, const doctor::Scope& scope, const Diagnosis& diagnosis) {
  size_t n_found = 0;
  size_t n_mended = 0;
  for (const Finding& one : diagnosis.findings) {
    if (one.check->id == options.apply) {
      ++n_found;
      n_mended += mend(scope, one, options.is_agreed) ? 1U : 0U;
    }
  }
  if (n_found == 0) {
    fmt::print("{}: nothing of that kind was found\n", options.apply);
  }
  return n_mended == n_found ? kOk : kFoundProblem;
}

doctor::Recording recording_of(const DoctorOptions& options, const doctor::Scope& scope) {
  if (options.from.empty()) {
    return doctor::gather(scope);
  }
  doctor::Recording recording = doctor::load_recording(options.from);
  if (!scope.hosts.empty()) {
    recording.put_all(doctor::plan_in(scope));
  }
  return recording;
}

}  // namespace

int doctor_run(const DoctorOptions& options) {
  if (options.lists) {
    doctor::print_checks(options.is_json);
    return kOk;
  }
  if (options.prints_script) {
    fmt::print("{}", doctor::kLookScript);
    return kOk;
  }
  if (!options.apply.empty()) {
    refuse_unknown_check(options.apply);
  }
  PageFile page(options.html_path);
  PageFile bundle(options.bundle_path, "--bundle");
  const doctor::Scope scope{options.hosts, options.cluster, options.timeout_s};
  doctor::Recording recording = recording_of(options, scope);
  if (!options.bundle_path.empty()) {
    bundle.write(doctor::emit_recording(doctor::redacted(recording)));
  }
  const std::unique_ptr<const Facts> facts = doctor::facts_of(std::move(recording));
  const Diagnosis diagnosis = doctor::diagnose(*facts);
  if (!options.html_path.empty()) {
    page.write(doctor::report_html(*facts, diagnosis));
  }
  if (!options.apply.empty()) {
    return apply_check(options, scope, diagnosis);
  }
  if (options.html_path != "-" && options.bundle_path != "-") {
    fmt::print("{}", options.is_json ? doctor::report_json(*facts, diagnosis) : doctor::report_text(*facts, diagnosis));
  }
  return std::ranges::any_of(diagnosis.findings, is_problem) ? kFoundProblem : kOk;
}

}  // namespace ringbolt::tools
