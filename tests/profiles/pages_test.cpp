// The pages below docs/faults and docs/profiles: there is one for each kind and profile, what they tell people to type can be
// typed, and the tests that they name are there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "fault/plan_text.h"
#include "fault/plan_words.h"
#include "profile/catalogue.h"

namespace ringbolt::profiles {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot(RINGBOLT_ROOT);

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> pages_of(const char* folder) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(kRoot / "docs" / folder)) {
    pages.push_back(entry.path());
  }
  std::ranges::sort(pages);
  return pages;
}

std::vector<fs::path> all_pages() {
  std::vector<fs::path> pages = pages_of("faults");
  const std::vector<fs::path> more = pages_of("profiles");
  pages.insert(pages.end(), more.begin(), more.end());
  for (const char* name : {"docs/faults.md", "docs/profiles.md", "docs/testing.md", "README.md"}) {
    pages.push_back(kRoot / name);
  }
  return pages;
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (unsigned kind = 0; kind <= static_cast<unsigned>(fault::kLastKind); ++kind) {
    names.emplace_back(fault::name_of(static_cast<fault::Kind>(kind)));
  }
  return names;
}

/// Everything that matches, its first group.
std::vector<std::string> found(const std::string& text, const char* pattern) {
  const std::regex what(pattern);
  std::vector<std::string> all;
  for (std::sregex_iterator at(text.begin(), text.end(), what), end; at != end; ++at) {
    all.push_back((*at)[1]);
  }
  return all;
}

/// As the command makes numbers of the names of nodes and cables.
std::string with_numbers(std::string words) {
  words = std::regex_replace(words, std::regex("\\b(cable|with) \\S*-(\\w+:)?\\w+"), "$1 0");
  return std::regex_replace(words, std::regex("\\bnode n(\\d+)"), "node $1");
}

void expect_parses(const std::string& words, const fs::path& page) {
  const auto plan = fault::parse_plan(words);
  EXPECT_TRUE(plan) << page << ": " << words << ": " << (plan ? "" : plan.error().text());
  EXPECT_TRUE(!plan || !plan->rules.empty()) << page << ": " << words;
}

TEST(Pages, there_is_one_for_each_fault_and_an_entry_in_the_table) {
  const std::string table = text_of(kRoot / "docs/faults.md");
  for (const std::string& kind : kinds()) {
    EXPECT_TRUE(text_of(kRoot / "docs/faults" / (kind + ".md")).starts_with("# " + kind + ": ")) << kind;
    EXPECT_NE(table.find("| [`" + kind + "`](faults/" + kind + ".md) |"), std::string::npos) << kind;
  }
}

TEST(Pages, there_are_none_of_faults_that_are_gone) {
  std::vector<std::string> known = kinds();
  known.insert(known.end(), {"cut", "leaks"});  // which commands bring about
  for (const fs::path& page : pages_of("faults")) {
    EXPECT_NE(std::ranges::find(known, page.stem().string()), known.end()) << page;
  }
}

TEST(Pages, there_is_one_for_each_profile_with_its_knobs_and_surprises) {
  const std::string table = text_of(kRoot / "docs/profiles.md");
  for (const profile::NamedProfile& known : profile::known_profiles()) {
    const std::string name(known.name);
    const std::string page = text_of(kRoot / "docs/profiles" / (name + ".md"));
    EXPECT_TRUE(page.starts_with("# " + name + ": ")) << name;
    EXPECT_NE(table.find("(profiles/" + name + ".md)"), std::string::npos) << name;
    for (const char* part : {"how certain", "**Knobs.**", "**What surprises most.**", "**Not imitated**"}) {
      EXPECT_NE(page.find(part), std::string::npos) << name << ": " << part;
    }
  }
  EXPECT_EQ(pages_of("profiles").size(), profile::known_profiles().size());
}

TEST(Pages, faults_that_they_tell_people_to_type_can_be_typed) {
  size_t examples = 0;
  for (const fs::path& page : all_pages()) {
    const std::string text = text_of(page);
    for (const std::string& words : found(text, "\\$ (?:sudo )?ringbolt fault add ([^\\n#]*)")) {
      expect_parses(with_numbers(words), page);
      ++examples;
    }
    // On command lines, and in the matrix of a job.
    for (const std::string& words : found(text, "(?:RINGBOLT_FAULTS=\"|, faults: )([^\",}\\n]*)")) {
      expect_parses(words, page);
      ++examples;
    }
  }
  EXPECT_GT(examples, 60U);
}

TEST(Pages, each_fault_has_a_line_to_type) {
  for (const std::string& kind : kinds()) {
    const std::string text = text_of(kRoot / "docs/faults" / (kind + ".md"));
    EXPECT_FALSE(found(text, ("\\$ ringbolt fault add (" + kind + ")[ \\n]").c_str()).empty()) << kind;
  }
}

TEST(Pages, profiles_that_they_tell_people_to_type_can_be_typed) {
  size_t examples = 0;
  for (const fs::path& page : all_pages()) {
    for (const std::string& words : found(text_of(page), "(?:RINGBOLT_LIKE=|--like |, like: \"?)([a-z][^\\s`}\"]*)")) {
      const auto known = profile::parse_profile(words);
      EXPECT_TRUE(known) << page << ": " << words << ": " << (known ? "" : known.error().text());
      ++examples;
    }
  }
  EXPECT_GT(examples, 15U);
}

/// "`name` and `name` in `path`; `name` in `path`": each name is in the file that follows it.
void expect_tests(const std::string& said, const fs::path& page) {
  std::vector<std::string> names;
  size_t files = 0;
  for (const std::string& word : found(said, "`([^`]+)`")) {
    if (word.find('/') == std::string::npos) {
      names.push_back(word);
      continue;
    }
    ASSERT_TRUE(fs::exists(kRoot / word)) << page << ": " << word;
    ++files;
    const std::string source = fs::is_directory(kRoot / word) ? "" : text_of(kRoot / word);
    for (const std::string& name : names) {  // TEST(Subject, name), def test_name(self), ("name", ...)
      const bool is_there = source.find(", " + name + ")") != std::string::npos ||
                            source.find("def test_" + name + "(") != std::string::npos ||
                            source.find("(\"" + name + "\", ") != std::string::npos;
      EXPECT_TRUE(is_there) << page << ": " << name << " in " << word;
    }
    names.clear();
  }
  EXPECT_NE(files, 0U) << page;
  EXPECT_TRUE(names.empty()) << page << ": " << names.front() << " is in no file";
}

TEST(Pages, name_tests_that_there_are) {
  for (const char* folder : {"faults", "profiles"}) {
    for (const fs::path& page : pages_of(folder)) {
      const std::string text = text_of(page);
      const size_t at = text.rfind("\nTest: ");
      ASSERT_NE(at, std::string::npos) << page;
      expect_tests(text.substr(at), page);
    }
  }
}

TEST(Pages, of_faults_are_short_and_complete) {
  for (const fs::path& page : pages_of("faults")) {
    const std::string text = text_of(page);
    EXPECT_LE(std::ranges::count(text, '\n'), 45) << page;
    for (const char* part : {"\nKnown from: ", "**What a good program does.**", "**Limits.**"}) {
      EXPECT_NE(text.find(part), std::string::npos) << page << ": " << part;
    }
  }
}

}  // namespace
}  // namespace ringbolt::profiles
