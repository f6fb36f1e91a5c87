#include "sanitizer_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "cluster/read_file.h"
#include "failure.h"
#include "heat_map.h"

namespace ringbolt::tools {
namespace {

using Json = nlohmann::ordered_json;

bool has_texts(const Json& object, std::initializer_list<const char*> names) {
  return object.is_object() && std::ranges::all_of(names, [&](const char* name) {
           return object.contains(name) && object[name].is_string();
         });
}

/// Line 0 says that it is not known.
bool is_whole_place(const Json& place) {
  const bool has_line =
      has_texts(place, {"done", "file"}) && place.contains("line") && place["line"].is_number_unsigned();
  return has_line && place["line"].get<uint64_t>() <= INT32_MAX;
}

/// What is read below is of that kind, and there: of a constant object that lacks it nothing may be asked.
bool is_finding(const Json& one) {
  return has_texts(one, {"kind", "rule", "what", "numbers", "fix"}) && one.contains("places") &&
         one["places"].is_array() && std::ranges::all_of(one["places"], is_whole_place);
}

std::vector<Json> findings_of(const std::string& lines) {
  std::vector<Json> all;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    Json one = Json::parse(line, nullptr, false);
    if (!one.is_discarded() && is_finding(one)) {
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::string place_text(const Json& place) {
  const int line = place["line"];
  return fmt::format("{} at {}{}", place["done"].get<std::string>(), place["file"].get<std::string>(),
                     line == 0 ? "" : fmt::format(":{}", line));
}

std::string words_of(const Json& finding) {
  std::string text = fmt::format("{}. {}.", finding["what"].get<std::string>(), finding["numbers"].get<std::string>());
  for (const Json& place : finding["places"]) {
    text += fmt::format(" {}.", place_text(place));
  }
  return text + fmt::format(" Fix: {}.", finding["fix"].get<std::string>());
}

Json location_of(const Json& place) {
  Json location{{"physicalLocation", {{"artifactLocation", {{"uri", place["file"]}}}}},
                {"message", {{"text", place["done"]}}}};
  if (place["line"] != 0) {
    location["physicalLocation"]["region"]["startLine"] = place["line"];
  }
  return location;
}

/// XML has no way to say control characters.
std::string escaped(const std::string& text) { return html_escaped(base::printable(text)); }

}  // namespace

std::string sarif_text(const std::string& lines) {
  Json rules = Json::array();
  Json results = Json::array();
  for (const Json& one : findings_of(lines)) {
    const Json rule{
        {"id", one["rule"]}, {"shortDescription", {{"text", one["what"]}}}, {"properties", {{"tags", {one["kind"]}}}}};
    if (std::ranges::none_of(rules, [&](const Json& known) { return known["id"] == one["rule"]; })) {
      rules.push_back(rule);
    }
    Json result{{"ruleId", one["rule"]}, {"level", "error"}, {"message", {{"text", words_of(one)}}}};
    result["locations"] = result["relatedLocations"] = Json::array();
    for (const Json& place : one["places"]) {
      result[result["locations"].empty() ? "locations" : "relatedLocations"].push_back(location_of(place));
    }
    results.push_back(std::move(result));
  }
  const Json driver{{"name", "ringbolt-sanitizer"}, {"rules", std::move(rules)}};
  const Json root{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                  {"version", "2.1.0"},
                  {"runs", {{{"tool", {{"driver", driver}}}, {"results", std::move(results)}}}}};
  return root.dump(2) + "\n";
}

std::string junit_text(const std::string& lines) {
  const std::vector<Json> all = findings_of(lines);
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"ringbolt-sanitizer\" tests=\"{}\" "
      "failures=\"{}\">\n",
      std::max<size_t>(all.size(), 1), all.size());
  for (const Json& one : all) {
    const std::string where = one["places"].empty() ? "" : place_text(one["places"][0]);
    text += fmt::format(
        "  <testcase classname=\"{}\" name=\"{}\">\n    <failure message=\"{}\">{}</failure>\n  </testcase>\n",
        escaped(one["kind"]), escaped(fmt::format("{}, {}", one["rule"].get<std::string>(), where)),
        escaped(one["what"]), escaped(words_of(one)));
  }
  if (all.empty()) {
    text += "  <testcase classname=\"all\" name=\"no findings\"/>\n";
  }
  return text + "</testsuite>\n";
}

std::string json_text(const std::string& lines) { return Json(findings_of(lines)).dump(2) + "\n"; }

size_t foreign_line(const std::string& lines) {
  std::istringstream stream(lines);
  size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (const Json one = Json::parse(line, nullptr, false); !one.is_discarded() && !is_finding(one)) {
      return number;
    }
  }
  return 0;
}

SanitizerReport::SanitizerReport(const std::vector<std::string>& wanted) {
  for (const std::string& one : wanted) {
    const size_t colon = std::min(one.find(':'), one.size());
    const std::string kind = one.substr(0, colon);
    if ((kind != "sarif" && kind != "junit" && kind != "json") || colon + 1 >= one.size()) {
      throw UsageError(fmt::format("--report {}: give sarif:FILE, junit:FILE or json:FILE", one));
    }
    targets_.push_back({kind, std::make_unique<PageFile>(one.substr(colon + 1), "--report " + kind)});
  }
  if (targets_.empty()) {
    return;
  }
  const char* const folder = std::getenv("TMPDIR");
  lines_path_ = fmt::format("{}/ringbolt-findings-XXXXXX", folder == nullptr || *folder != '/' ? "/tmp" : folder);
  const int fd = ::mkostemp(lines_path_.data(), O_CLOEXEC);
  if (fd < 0) {
    throw base::Error(errno, "make a file for findings", lines_path_);
  }
  ::close(fd);
}

SanitizerReport::~SanitizerReport() {
  if (!lines_path_.empty()) {
    ::unlink(lines_path_.c_str());
  }
}

void SanitizerReport::write() {
  if (targets_.empty()) {
    return;
  }
  constexpr size_t kMostFindingsBytes = size_t{64} << 20U;
  const std::string lines = cluster::read_file(lines_path_, kMostFindingsBytes);
  for (const Target& one : targets_) {
    one.file->write(one.kind == "sarif"   ? sarif_text(lines)
                    : one.kind == "junit" ? junit_text(lines)
                                          : json_text(lines));
  }
  if (const size_t number = foreign_line(lines); number != 0) {
    throw FoundProblem(
        fmt::format("line {} of the findings in RINGBOLT_SANITIZE_JSON is none of ours, and in no report: does a "
                    "program of this run "
                    "write there?",
                    number));
  }
}

}  // namespace ringbolt::tools
