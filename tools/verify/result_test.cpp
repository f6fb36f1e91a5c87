#include "verify/result.h"

#include <gtest/gtest.h>

#include "pair/values.h"

namespace ringbolt::tools::verify {
namespace {

TEST(VerifyResult, outcomes_come_back) {
  for (const char* refusal : {"", "the device refuses", "in two\nlines"}) {
    const Outcome one{1, 2, 3, 4, 5, UINT64_MAX, refusal};
    EXPECT_EQ(pair::value_in<Outcome>(to_line(one)), one);
  }
}

TEST(VerifyResult, what_is_no_outcome_is_none) {
  const std::string whole = to_line(Outcome{1, 2, 3, 4, 5, 6, ""});
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(pair::value_in<Outcome>(whole.substr(0, length))) << length;
  }
  EXPECT_FALSE(pair::value_in<Outcome>(whole + "1"));
  for (const char* text : {"null", "[]", "{}", "1 2 3 4 5 6"}) {
    EXPECT_FALSE(pair::value_in<Outcome>(text)) << text;
  }
}

/// A soak runs into the same in each of its turns.
TEST(VerifyResult, what_could_not_be_checked_is_said_once) {
  std::vector<std::string> notes;
  for (const char* text : {"b", "a", "b", "a", "b"}) {
    note_once(notes, text);
  }
  EXPECT_EQ(notes, (std::vector<std::string>{"b", "a"}));
}

TEST(VerifyResult, facts_come_back) {
  const pair::EndFacts facts{"client", "rdma_en2", "/lib/with blanks.so", 40};
  EXPECT_EQ(pair::value_in<pair::EndFacts>(to_line(facts)), facts);
  EXPECT_FALSE(pair::value_in<pair::EndFacts>("40\nrdma_en2"));
}

TEST(VerifyResult, findings_come_back_with_their_counts) {
  Tally tally;
  tally.add(Kind::kLost, "two of them", 2);
  tally.add(Kind::kPeer, "it is gone");
  const auto back = pair::value_in<Tally>(to_line(tally));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->counts(), tally.counts());
  EXPECT_EQ(back->findings(), tally.findings());
  EXPECT_EQ(back->total(), 3U);
}

TEST(VerifyResult, a_finding_of_no_known_kind_is_refused) {
  Tally tally;
  tally.add(static_cast<Kind>(0), "lost");
  std::string text = to_line(tally);
  const size_t at = text.find("\"kind\":0");
  ASSERT_NE(at, std::string::npos);
  EXPECT_FALSE(pair::value_in<Tally>(text.replace(at, 8, "\"kind\":18")));
}

TEST(VerifyResult, of_each_kind_no_more_findings_are_taken_than_are_kept) {
  const std::vector<Finding> six(6, Finding{Kind::kOrder, "late"});
  Tally::Counts counts{};
  counts[static_cast<size_t>(Kind::kOrder)] = 6;
  Tally tally(counts, six);
  EXPECT_EQ(tally.findings().size(), Tally::kMostTexts);
  EXPECT_EQ(tally.total(), 6U);
  tally.add(Kind::kLost, "another kind");
  EXPECT_EQ(tally.findings().size(), Tally::kMostTexts + 1);
}

TEST(VerifyResult, counts_stay_at_the_largest_number) {
  Tally::Counts counts{};
  counts[static_cast<size_t>(Kind::kLost)] = UINT64_MAX;
  counts[static_cast<size_t>(Kind::kOrder)] = 1;
  Tally tally(counts, {});
  EXPECT_EQ(tally.total(), UINT64_MAX) << "0 would be a clean run";
  tally.add(Kind::kLost, "one more");
  EXPECT_EQ(tally.total(), UINT64_MAX);
  EXPECT_EQ(tally.count(Kind::kLost), UINT64_MAX);
  tally.add(Tally(counts, {}));
  EXPECT_EQ(tally.total(), UINT64_MAX);
  EXPECT_EQ(tally.count(Kind::kLost), UINT64_MAX);
  EXPECT_EQ(tally.count(Kind::kOrder), 2U);
}

}  // namespace
}  // namespace ringbolt::tools::verify
