// docs/profiles.md is where the messages send people: it knows every rule and every knob, and what it says is tested.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "profile/catalogue.h"
#include "profile/knobs.h"
#include "profile/rules.h"

namespace ringbolt::profiles {
namespace {

namespace fs = std::filesystem;

const fs::path kTests = fs::path(RINGBOLT_ROOT) / "tests";

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string profiles_page() { return text_of(RINGBOLT_PROFILES_PAGE); }

/// All tests of profiles, one behind the other.
std::string sources_of(const char* folder, const char* suffix) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(kTests / folder)) {
    all += entry.path().extension() == suffix ? text_of(entry.path()) : "";
  }
  return all;
}

/// The last cell of each row of the table of what is refused or different.
std::vector<std::string> tests_of_rows(const std::string& page) {
  std::vector<std::string> cells;
  std::istringstream section(page.substr(page.find("## What is refused")));
  std::string line;
  std::getline(section, line);
  while (std::getline(section, line) && !line.starts_with("## ")) {
    if (line.starts_with("| ") && !line.starts_with("| what | ")) {
      cells.push_back(line.substr(line.rfind('|', line.size() - 2) + 1));
    }
  }
  return cells;
}

/// Whether there is a test of this name, of which dots at the end stand for the rest.
bool is_test(std::string name, const std::string& sources) {
  if (name.starts_with("command.")) {
    return fs::exists(kTests / "command" / (name.substr(name.find('.') + 1) + "_test.py"));
  }
  const size_t dots = name.find("...");
  name = dots == std::string::npos ? name + ")" : name.substr(0, dots);
  return sources.find(", " + name) != std::string::npos;
}

TEST(Page, tells_of_every_rule) {
  const std::string page = profiles_page();
  const std::string meanings = page.substr(page.find("## What the messages mean"));
  for (size_t i = 0; i < static_cast<size_t>(profile::Rule::count_); ++i) {
    const std::string name = profile::text_of(static_cast<profile::Rule>(i)).name;
    EXPECT_NE(meanings.find(name), std::string::npos) << name;
  }
}

TEST(Page, names_a_test_that_there_is_for_every_row) {
  const std::string sources = sources_of("profiles", ".cpp");
  const std::vector<std::string> rows = tests_of_rows(profiles_page());
  EXPECT_GT(rows.size(), 35U);
  const std::regex quoted("`([^`]+)`");
  for (const std::string& row : rows) {
    size_t names = row.find("the same") != std::string::npos ? 1 : 0;
    for (std::sregex_iterator at(row.begin(), row.end(), quoted), end; at != end; ++at, ++names) {
      EXPECT_TRUE(is_test((*at)[1], sources)) << (*at)[1];
    }
    EXPECT_NE(names, 0U) << row;
  }
}

TEST(Page, knows_no_knob_that_no_test_turns) {
  const std::string sources = sources_of("profiles", ".cpp") + sources_of("command", ".py") +
                              sources_of("conformance", ".cpp");
  for (const profile::KnobText& knob : profile::known_knobs()) {
    EXPECT_NE(sources.find(std::string(knob.name) + "="), std::string::npos) << knob.name;
  }
}

TEST(Page, tells_of_every_profile_and_knob) {
  const std::string page = profiles_page();
  for (const profile::NamedProfile& known : profile::known_profiles()) {
    EXPECT_NE(page.find(std::string("| `") + known.name + "` |"), std::string::npos) << known.name;
  }
  for (const profile::KnobText& knob : profile::known_knobs()) {
    EXPECT_NE(page.find(std::string("| `") + knob.name + "` |"), std::string::npos) << knob.name;
  }
}

}  // namespace
}  // namespace ringbolt::profiles
