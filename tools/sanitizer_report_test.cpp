#include "sanitizer_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "failure.h"

namespace ringbolt::tools {
namespace {

const std::string kLines =
    R"({"pid":7,"kind":"buffers","rule":"send-buffer-changed","what":"a <b>","numbers":"n & m","fix":"wait","places":[)"
    R"({"done":"posted","file":"a.c","line":12,"function":"f"},{"done":"polled","file":"b+0x1","line":0,"function":""}]})"
    "\n{\"pid\":8,\"kind\":\"bu";

TEST(SanitizerReport, sarif_has_a_rule_and_a_place) {
  const auto root = nlohmann::json::parse(sarif_text(kLines));
  EXPECT_EQ(root["version"], "2.1.0");
  const auto& run = root["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "send-buffer-changed");
  ASSERT_EQ(run["results"].size(), 1U);
  const auto& result = run["results"][0];
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startLine"], 12);
  EXPECT_EQ(result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"], "b+0x1");
  EXPECT_FALSE(result["relatedLocations"][0]["physicalLocation"].contains("region"));
  EXPECT_EQ(result["message"]["text"], "a <b>. n & m. posted at a.c:12. polled at b+0x1. Fix: wait.");
  EXPECT_EQ(nlohmann::json::parse(sarif_text(""))["runs"][0]["results"].size(), 0U);
}

TEST(SanitizerReport, junit_escapes_and_says_that_nothing_was_found) {
  const std::string text = junit_text(kLines);
  EXPECT_NE(text.find(R"(tests="1" failures="1")"), std::string::npos);
  EXPECT_NE(text.find(R"(<failure message="a &lt;b&gt;">a &lt;b&gt;. n &amp; m.)"), std::string::npos);
  EXPECT_NE(junit_text("").find(R"(tests="1" failures="0")"), std::string::npos);
}

TEST(SanitizerReport, json_is_an_array) {
  EXPECT_EQ(nlohmann::json::parse(json_text(kLines)).size(), 1U);
  EXPECT_EQ(json_text(""), "[]\n");
}

TEST(SanitizerReport, json_that_is_no_finding_is_left_out_and_its_line_told) {
  const std::string whole = kLines.substr(0, kLines.find('\n') + 1);
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string line = whole;
    return line.replace(line.find(part), part.size(), other);
  };
  for (const std::string& bad : {std::string("7\n"), std::string("{}\n"), with(R"("done":"posted",)", ""),
                                 with(R"("line":12,)", ""), with(R"("line":12)", R"("line":"12")"),
                                 with(R"("line":12)", R"("line":-1)"), with(R"("line":12)", R"("line":2147483648)"),
                                 with(R"("what":"a <b>")", R"("what":7)"), with(R"("places":[)", R"("places":[[],)")}) {
    EXPECT_EQ(foreign_line(whole + bad + whole), 2U) << bad;
    for (const auto text_of : {sarif_text, junit_text, json_text}) {
      EXPECT_EQ(text_of(whole + bad + whole), text_of(whole + whole)) << bad;
    }
  }
  EXPECT_EQ(foreign_line(whole + R"({"kind":)" + "\n" + whole), 0U);  // a program was killed while it wrote
}

TEST(SanitizerReport, refuses_other_kinds) {
  EXPECT_THROW(SanitizerReport({"html:x"}), UsageError);
  EXPECT_THROW(SanitizerReport({"sarif"}), UsageError);
  EXPECT_THROW(SanitizerReport({"sarif:"}), UsageError);
  EXPECT_TRUE(SanitizerReport({}).lines_path().empty());
}

}  // namespace
}  // namespace ringbolt::tools
