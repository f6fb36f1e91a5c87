#include "sanitizer/reports.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/json_reader.h"

namespace ringbolt::sanitizer {
namespace {

/// The files that findings go to.
class ReportsTest : public ::testing::Test {
 protected:
  ReportsTest() {
    std::string pattern = "/tmp/rb-reports-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("RINGBOLT_SANITIZE_LOG", (folder_ + "/log").c_str(), 1);
    ::setenv("RINGBOLT_SANITIZE_JSON", (folder_ + "/json").c_str(), 1);
  }
  ~ReportsTest() override {
    for (const char* name : {"log", "json", "known"}) {
      ::unlink((folder_ + "/" + name).c_str());
    }
    ::rmdir(folder_.c_str());
    for (const char* name : {"LOG", "JSON", "SUPPRESSIONS"}) {
      ::unsetenv((std::string("RINGBOLT_SANITIZE_") + name).c_str());
    }
  }
  std::string read(const char* name) const {
    std::stringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }
  std::string suppress(const std::string& text) const {
    const std::string path = folder_ + "/known";
    std::ofstream(path) << text;
    ::setenv("RINGBOLT_SANITIZE_SUPPRESSIONS", path.c_str(), 1);
    return path;
  }
  static Finding finding(std::string_view rule, uintptr_t place, Kind kind = Kind::buffers) {
    return {kind, rule, "what", "numbers", {{"posted", {{place, 0, 0}}}}, "fix"};
  }

  std::string folder_;
};

TEST_F(ReportsTest, the_same_rule_at_the_same_places_is_told_once) {
  Reports reports;
  reports.summarize();
  EXPECT_EQ(read("log"), "") << "nothing to tell of";
  for (int i = 0; i < 5; ++i) {
    reports.report(finding("one", 0x1000));
  }
  reports.report(finding("one", 0x1001));
  reports.report(finding("other", 0x1000, Kind::races));
  EXPECT_EQ(reports.count(), 3U);
  reports.summarize();
  const std::string log = read("log");
  EXPECT_NE(
      log.find("3 findings in process " + std::to_string(::getpid()) + ": buffers 2, races 1; 4 more of the same"),
      std::string::npos)
      << log;
  reports.before_fork();
  reports.in_child();  // the parent's findings are the parent's
  EXPECT_EQ(reports.count(), 0U);
  reports.report(finding("one", 0x1000));
  EXPECT_EQ(reports.count(), 1U);
}

TEST_F(ReportsTest, no_thread_is_in_the_middle_of_telling_at_a_fork) {
  for (uintptr_t round = 1; round <= 50; ++round) {
    Reports reports;
    std::atomic<bool> tells{false};
    reports.before_fork();
    std::thread telling([&] {
      tells = true;
      reports.report(finding("one", round));
    });
    while (!tells) {
      std::this_thread::yield();
    }
    reports.in_child();
    telling.join();
    EXPECT_EQ(reports.count(), 1U) << "told before the fork was over, and forgotten";
  }
}

TEST_F(ReportsTest, each_line_of_json_is_one_whatever_the_words_hold) {
  Reports reports;
  Finding hostile = finding("odd", 0x2000);
  hostile.what = "\"quoted\"\n\\ \x01 \xff end";
  errno = EXDEV;
  reports.report(hostile);
  EXPECT_EQ(errno, EXDEV) << "the program looks at it after the call";
  reports.report(finding("plain", 0x2000));
  std::istringstream lines(read("json"));
  std::vector<std::string> rules;
  for (std::string line; std::getline(lines, line);) {
    rules.push_back(base::Json::parse(line).at("rule").get<std::string>());
  }
  EXPECT_EQ(rules, (std::vector<std::string>{"odd", "plain"}));
}

TEST_F(ReportsTest, a_program_that_has_thousands_of_mistakes_is_told_of_no_end) {
  Reports reports;
  for (uintptr_t place = 1; place <= 5000; ++place) {
    reports.report({Kind::queues, "rule", "", "", {{"posted", {{0, place, 0}}}}, ""});
  }
  EXPECT_EQ(reports.count(), 4096U);
}

TEST_F(ReportsTest, what_is_suppressed_is_neither_told_nor_counted) {
  const std::string path = suppress("buffers:one\nnonsense\n");
  ::testing::internal::CaptureStderr();
  Reports reports;
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(words.find(path + ": line 2: \"nonsense\" is not KIND:GLOB"), std::string::npos) << words;
  reports.report(finding("one", 0x3000));
  reports.report(finding("another", 0x3000));
  EXPECT_EQ(reports.count(), 1U);
  EXPECT_EQ(read("json").find("\"one\""), std::string::npos);
}

TEST_F(ReportsTest, files_that_cant_be_had_are_named_and_findings_come_all_the_same) {
  ::setenv("RINGBOLT_SANITIZE_LOG", "/no/such/folder/log", 1);
  ::setenv("RINGBOLT_SANITIZE_SUPPRESSIONS", "/no/such/file", 1);
  ::testing::internal::CaptureStderr();
  Reports reports;
  reports.report(finding("one", 0x4000));
  const std::string words = ::testing::internal::GetCapturedStderr();
  for (const char* part : {"RINGBOLT_SANITIZE_LOG=/no/such/folder/log: open: No such file",
                           "=/no/such/file: read:", "RINGBOLT: buffers: what (one)"}) {
    EXPECT_NE(words.find(part), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace ringbolt::sanitizer
