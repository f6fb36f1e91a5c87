#include "doctor/report.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "doctor/gather.h"
#include "heat_map.h"
#include "node_environment.h"
#include "table.h"

namespace ringbolt::tools::doctor {
namespace {

using Json = nlohmann::ordered_json;

const char* state_text(Verdict::State state) {
  constexpr std::array kTexts{"healthy", "found", "unread", "absent"};
  return kTexts.at(static_cast<size_t>(state));
}

const char* by_text(By by) { return by == By::root ? "root" : by == By::user ? "user" : "shell"; }

/// "n1 en2: ", where this machine and the whole need no name.
std::string place_text(const std::string& host, const std::string& rest) {
  return host == kNoHost || host == kThisMachine ? rest : fmt::format("{} {}", host, rest);
}

std::string title_of(const Finding& one) {
  return place_text(one.host, fmt::format("{}: {}", one.object, one.message));
}

size_t count_of(const Diagnosis& diagnosis, Severity severity) {
  return static_cast<size_t>(
      std::ranges::count_if(diagnosis.findings, [&](const Finding& one) { return one.check->severity == severity; }));
}

size_t count_of(const Diagnosis& diagnosis, Verdict::State state) {
  return static_cast<size_t>(std::ranges::count(diagnosis.verdicts, state, &Verdict::state));
}

std::string plural(size_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// "3 machines: 1 error, 2 warnings, 0 notes; of 92 checks 60 healthy, 30 with nothing to judge, 2 could not be made"
std::string summary(const Facts& facts, const Diagnosis& diagnosis) {
  return fmt::format(
      "{}: {}, {}, {}; of {} checks {} healthy, {} with nothing to judge, {} could not be made",
      plural(facts.recording.hosts().size(), "machine"), plural(count_of(diagnosis, Severity::error), "error"),
      plural(count_of(diagnosis, Severity::warning), "warning"), plural(count_of(diagnosis, Severity::note), "note"),
      diagnosis.verdicts.size(), count_of(diagnosis, Verdict::State::healthy),
      count_of(diagnosis, Verdict::State::absent), count_of(diagnosis, Verdict::State::unread));
}

/// What could not be read, with the checks that wanted it.
std::map<std::string, std::string> unread_of(const Diagnosis& diagnosis) {
  std::map<std::string, std::string> found;
  for (const Verdict& verdict : diagnosis.verdicts) {
    for (const std::string& what : verdict.unread) {
      std::string& ids = found[what];
      ids += ids.empty() ? "" : ", ";
      ids += verdict.check->id;
    }
  }
  return found;
}

/// "on n1: sudo ip link set en2 up"
std::string step_text(const Step& step) {
  const bool is_simple = step.command.find_first_of("|>;&") == std::string::npos;
  const std::string command = step.by != By::root ? step.command
                              : is_simple         ? "sudo " + step.command
                                                  : fmt::format("sudo sh -c {}", shell_quoted(step.command));
  const bool is_here = step.host == kNoHost || step.host == kThisMachine;
  return is_here ? command : fmt::format("on {}: {}", step.host, command);
}

/// Recordings come from anywhere: messages and commands quote them.
std::string for_terminal(std::string text) {
  constexpr bool kKeepsLines = true;
  return base::printable(std::move(text), '?', kKeepsLines);
}

/// What a finding says below its title.
struct Part {
  const char* label;
  std::string text;
  bool is_code = false;
};

std::vector<Part> parts_of(const Finding& one) {
  std::vector<Part> parts;
  for (const Evidence& line : one.evidence) {
    parts.push_back({"evidence", place_text(line.host, fmt::format("{}: {}", line.source, line.text)), true});
  }
  parts.push_back({"why", std::string(one.check->why)});
  for (const Step& step : one.mend) {
    parts.push_back({"mend", step_text(step), true});
  }
  if (!one.advice.empty()) {
    parts.push_back({"do", one.advice});
  }
  for (const Step& step : one.undo) {
    parts.push_back({"undo", step_text(step), true});
  }
  return parts;
}

constexpr const char* kStyle =
    ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--line:#ddd;--soft:#666;--error:#b00020;--warning:#8a5a00;"
    "--note:#35609a;--code:#f4f4f4}@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#181a1b;--line:#3a3d3f;"
    "--soft:#999;--error:#ff6b6b;--warning:#e0b050;--note:#7fb2f0;--code:#25282a}}"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 "
    "1em;color:var(--ink);background:var(--paper)}"
    "section{border-left:4px solid var(--line);padding:.1em 1em;margin:1.2em 0}h2{font-size:1em;margin:.4em 0}"
    ".error{border-color:var(--error)}.error h2 b{color:var(--error)}.warning{border-color:var(--warning)}"
    ".warning h2 b{color:var(--warning)}.note{border-color:var(--note)}.note h2 b{color:var(--note)}"
    "code{background:var(--code);padding:.1em .3em;overflow-wrap:anywhere}p{margin:.2em 0}.soft{color:var(--soft)}"
    "td,th{text-align:left;padding:.1em .8em .1em 0;border-bottom:1px solid "
    "var(--line)}table{border-collapse:collapse}";

std::string section_of(const Finding& one, size_t number) {
  const char* severity = severity_text(one.check->severity);
  std::string html = fmt::format("<section class=\"{0}\" id=\"f{1}\"><h2>{1}. <b>{0}</b> {2} {3}</h2>\n", severity,
                                 number, one.check->id, html_escaped(title_of(one)));
  for (const Part& part : parts_of(one)) {
    html += fmt::format("<p><span class=\"soft\">{0}</span> {2}{1}{3}</p>\n", part.label, html_escaped(part.text),
                        part.is_code ? "<code>" : "", part.is_code ? "</code>" : "");
  }
  if (one.follows_from) {
    html += fmt::format("<p class=\"soft\">probably because of <a href=\"#f{0}\">{0}</a></p>\n", *one.follows_from + 1);
  }
  return html + "</section>\n";
}

}  // namespace

// For nlohmann's vectors of them.
static void to_json(Json& json, const Step& one) {
  json = {{"host", one.host}, {"command", one.command}, {"by", by_text(one.by)}};
}
static void to_json(Json& json, const Evidence& one) {
  json = {{"host", one.host}, {"source", one.source}, {"text", one.text}};
}

std::string finding_text(const Finding& one) {
  std::string severity = severity_text(one.check->severity);
  std::ranges::transform(severity, severity.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  std::string text = fmt::format("[{}] {} {}\n", severity, one.check->id, title_of(one));
  for (const Part& part : parts_of(one)) {
    text += fmt::format("   {}: {}\n", part.label, part.text);
  }
  return for_terminal(std::move(text));
}

std::string report_text(const Facts& facts, const Diagnosis& diagnosis) {
  std::string text;
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) {
    const Finding& one = diagnosis.findings[i];
    text += fmt::format("{}. {}", i + 1, finding_text(one));
    text += one.follows_from ? fmt::format("   probably because of {}\n", *one.follows_from + 1) : "";
  }
  for (const auto& [what, ids] : unread_of(diagnosis)) {
    text += fmt::format("could not read {} (for {})\n", what, ids);
  }
  return for_terminal(text + summary(facts, diagnosis) + "\n");
}

std::string report_json(const Facts& facts, const Diagnosis& diagnosis) {
  Json root{{"hosts", facts.recording.hosts()}, {"findings", Json::array()}, {"checks", Json::array()}};
  for (const Finding& one : diagnosis.findings) {
    root["findings"].push_back({{"id", one.check->id},
                                {"severity", severity_text(one.check->severity)},
                                {"host", one.host},
                                {"object", one.object},
                                {"message", one.message},
                                {"why", one.check->why},
                                {"evidence", one.evidence},
                                {"mend", one.mend},
                                {"undo", one.undo},
                                {"advice", one.advice},
                                {"follows_from", one.follows_from ? Json(*one.follows_from) : Json(nullptr)}});
  }
  for (const Verdict& one : diagnosis.verdicts) {
    root["checks"].push_back({{"id", one.check->id}, {"state", state_text(one.state)}, {"unread", one.unread}});
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string report_html(const Facts& facts, const Diagnosis& diagnosis) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Ringbolt doctor</title><style>{}</style></head><body>\n<h1>Ringbolt "
      "doctor</h1>\n"
      "<p>{}</p>\n",
      kStyle, html_escaped(summary(facts, diagnosis)));
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) {
    html += section_of(diagnosis.findings[i], i + 1);
  }
  html += "<h2>All checks</h2>\n<table><tr><th>check</th><th>state</th><th>what would be wrong</th></tr>\n";
  for (const Verdict& one : diagnosis.verdicts) {
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}{}</td></tr>\n", one.check->id, state_text(one.state),
        html_escaped(std::string(one.check->what)),
        one.unread.empty() ? "" : html_escaped(fmt::format(" (could not read {})", fmt::join(one.unread, "; "))));
  }
  return html + "</table>\n</body></html>\n";
}

void print_checks(bool is_json) {
  Table table("checks", {{"ID"}, {"SEVERITY"}, {"PLATFORM"}, {"WHAT"}}, is_json);
  for (const Check* one : all_checks()) {
    table.add(
        {std::string(one->id), severity_text(one->severity), platform_text(one->platform), std::string(one->what)});
  }
  table.print();
}

}  // namespace ringbolt::tools::doctor
