#include "verify/under_way.h"

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace ringbolt::tools::verify {
namespace {

using testing::HasSubstr;

struct Posted {
  explicit Posted(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      operations.note_posted();
    }
  }
  uint64_t complete(uint32_t id) { return operations.complete(id, tally); }
  UnderWay operations{"queue pair 3", "send"};
  Tally tally;
};

TEST(UnderWay, completes_in_order) {
  Posted all(3);
  for (uint32_t id = 0; id < 3; ++id) {
    EXPECT_EQ(all.complete(id), 1U);
  }
  EXPECT_EQ(all.operations.count(), 0U);
  EXPECT_EQ(all.tally.total(), 0U);
}

TEST(UnderWay, what_completed_already_is_unasked) {
  Posted all(3);
  all.complete(0);
  all.complete(1);
  for (const uint32_t id : {0U, 1U}) {
    EXPECT_EQ(all.complete(id), 0U);
  }
  EXPECT_EQ(all.tally.count(Kind::kUnasked), 2U);
  EXPECT_THAT(all.tally.findings()[1].text, HasSubstr("queue pair 3: send 1 completed again"));
  EXPECT_EQ(all.complete(2), 1U);
}

TEST(UnderWay, what_was_never_posted_is_unasked) {
  Posted all(1);
  EXPECT_EQ(all.complete(1), 0U);
  EXPECT_THAT(all.tally.findings()[0].text, HasSubstr("a completion of no send that was posted (id 0x1)"));
  EXPECT_EQ(all.complete(0), 1U);
  EXPECT_EQ(all.complete(1), 0U);
  EXPECT_EQ(all.tally.count(Kind::kUnasked), 2U);
}

TEST(UnderWay, one_that_overtakes_is_told_once_and_counted_in_its_time) {
  Posted all(4);
  EXPECT_EQ(all.complete(0), 1U);
  EXPECT_EQ(all.complete(2), 0U);
  EXPECT_EQ(all.operations.completed(), 1U);
  EXPECT_EQ(all.complete(2), 0U);
  EXPECT_EQ(all.complete(1), 2U);
  EXPECT_EQ(all.complete(3), 1U);
  EXPECT_EQ(all.tally.count(Kind::kOrder), 1U);
  EXPECT_EQ(all.tally.count(Kind::kUnasked), 1U);
  EXPECT_THAT(all.tally.findings()[0].text, HasSubstr("expected send 1, found 2"));
}

TEST(UnderWay, any_id_is_safe) {
  Posted all(2);
  for (const uint32_t id : {2U, 1000U, 0x7fff'ffffU, 0x8000'0000U, UINT32_MAX}) {
    EXPECT_EQ(all.complete(id), 0U);
  }
  EXPECT_EQ(all.tally.count(Kind::kUnasked), 5U);
}

/// The peer has told all before this end looks for the first time, while a receive queue still holds something.
TEST(Serve, judges_what_came_before_the_peers_words_first) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const base::UniqueFd ours(fds[0]);
  const base::UniqueFd theirs(fds[1]);
  constexpr uint64_t kPatienceNs = 20'000'000'000;
  pair::Peer initiator(pair::Channel(theirs.get(), theirs.get()), "target", kPatienceNs);
  initiator.tell("written", "a round");
  initiator.tell("written", "end");
  pair::Peer peer(pair::Channel(ours.get(), ours.get()), "initiator", kPatienceNs);
  Progress progress(Progress::Style::kNone);
  Watch watch(peer, progress, kPatienceNs);
  std::vector<std::string> seen;
  int left = 2;  // completions
  serve(
      peer, watch, "written", "the next WRITEs",
      [&](const std::string& text) {
        seen.push_back(text);
        left = 1;  // the last of that round was done twice
      },
      [&] {
        if (left == 0) {
          return false;
        }
        --left;
        seen.emplace_back("completion");
        return true;
      });
  EXPECT_EQ(seen, (std::vector<std::string>{"completion", "completion", "a round", "completion"}));
}

}  // namespace
}  // namespace ringbolt::tools::verify
