#include "device/ledger.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::device {
namespace {

using link::testing::Child;
using profile::Counted;

class LedgerTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/rdma_lo.ledger"; }
  bool has_file() const { return std::filesystem::exists(path()); }
  /// -1: it could not be asked.
  static int take(Ledger& ledger, Counted kind, uint32_t limit) {
    const auto taken = ledger.take(kind, limit);
    return taken ? static_cast<int>(*taken) : -1;
  }
  /// A process counts these, and is killed.
  void leave_of_killed(const std::vector<Counted>& kinds, bool leaks) {
    Child child([&] {
      Ledger ledger(path(), leaks);
      for (const Counted kind : kinds) {
        if (take(ledger, kind, 100) != 1) {
          return 1;
        }
      }
      raise(SIGKILL);
      return 0;
    });
    EXPECT_TRUE(WIFSIGNALED(child.wait()));
  }

  link::testing::TempFolder folder_;
};

TEST_F(LedgerTest, gives_out_as_many_as_the_limit_whoever_asks) {
  Ledger one(path(), false);
  Ledger other(path(), false);
  EXPECT_EQ(take(one, Counted::qp, 2), 1);
  EXPECT_EQ(take(other, Counted::qp, 2), 1);
  EXPECT_EQ(take(one, Counted::qp, 2), 0);
  EXPECT_EQ(take(other, Counted::qp, 2), 0);
  one.give(Counted::qp);
  EXPECT_EQ(take(other, Counted::qp, 2), 1);
  EXPECT_EQ(take(one, Counted::qp, 2), 0);
}

TEST_F(LedgerTest, counts_each_kind_by_itself) {
  Ledger ledger(path(), false);
  for (const Counted kind : {Counted::qp, Counted::pd, Counted::cq, Counted::mr}) {
    EXPECT_EQ(take(ledger, kind, 1), 1);
    EXPECT_EQ(take(ledger, kind, 1), 0);
  }
  ledger.give(Counted::cq);
  EXPECT_EQ(take(ledger, Counted::qp, 1), 0);
  EXPECT_EQ(take(ledger, Counted::cq, 1), 1);
}

TEST_F(LedgerTest, file_is_there_while_something_is_counted) {
  Ledger ledger(path(), false);
  EXPECT_EQ(take(ledger, Counted::qp, 0), 0);
  EXPECT_FALSE(has_file());
  EXPECT_EQ(take(ledger, Counted::qp, 1), 1);
  EXPECT_TRUE(has_file());
  ledger.give(Counted::mr);  // there is none: nothing happens
  EXPECT_EQ(take(ledger, Counted::qp, 1), 0);
  ledger.give(Counted::qp);
  EXPECT_FALSE(has_file());
}

TEST_F(LedgerTest, killed_process_holds_nothing) {
  leave_of_killed({Counted::qp, Counted::pd, Counted::pd, Counted::mr}, false);
  EXPECT_TRUE(has_file());
  Ledger ledger(path(), false);
  EXPECT_EQ(take(ledger, Counted::qp, 1), 1);
  EXPECT_EQ(take(ledger, Counted::pd, 1), 1);
}

// docs/faults/leaks.md: of a killed program the protection domains stay, and nothing else.
TEST_F(LedgerTest, killed_process_leaks_its_domains_where_the_machine_does) {
  leave_of_killed({Counted::qp, Counted::pd, Counted::pd, Counted::mr}, true);
  Ledger ledger(path(), true);
  EXPECT_EQ(take(ledger, Counted::pd, 2), 0);
  EXPECT_EQ(take(ledger, Counted::pd, 3), 1);
  EXPECT_EQ(take(ledger, Counted::qp, 1), 1);
  EXPECT_EQ(take(ledger, Counted::mr, 1), 1);
  for (const Counted kind : {Counted::pd, Counted::qp, Counted::mr}) {
    ledger.give(kind);
  }
  EXPECT_TRUE(has_file());
  EXPECT_EQ(take(ledger, Counted::pd, 2), 0);  // whoever comes next finds them leaked still
}

TEST_F(LedgerTest, living_process_keeps_what_it_has) {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const base::UniqueFd reading(ready[0]);
  base::UniqueFd writing(ready[1]);
  Child child([&] {
    Ledger ledger(path(), false);
    const bool took = take(ledger, Counted::qp, 1) == 1;
    [[maybe_unused]] const ssize_t told = write(writing.get(), "x", 1);
    pause();
    return took ? 0 : 1;
  });
  writing.reset();  // the child's is the only one: if it dies too early, the read below ends
  char word = 0;
  ASSERT_EQ(read(reading.get(), &word, 1), 1);
  Ledger ledger(path(), false);
  EXPECT_EQ(take(ledger, Counted::qp, 1), 0);
  child.kill(SIGKILL);
  child.wait();
  EXPECT_EQ(take(ledger, Counted::qp, 1), 1);
}

TEST_F(LedgerTest, file_with_something_else_in_it_is_told_of_and_begun_anew) {
  std::ofstream(path()) << "no ledger at all\n";
  Ledger ledger(path(), false);
  testing::internal::CaptureStderr();
  EXPECT_EQ(take(ledger, Counted::qp, 1), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(path() + ": "), std::string::npos);
  EXPECT_EQ(take(ledger, Counted::qp, 1), 0);
}

TEST_F(LedgerTest, file_that_can_not_be_read_whole_refuses_and_stays) {
  constexpr size_t kTooLong = (1U << 20U) + 1;
  std::ofstream(path()) << std::string(kTooLong, '#');
  Ledger ledger(path(), false);
  const auto refused = ledger.take(Counted::qp, 10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().value, EIO);
  EXPECT_EQ(std::filesystem::file_size(path()), kTooLong);
}

TEST_F(LedgerTest, missing_folder_refuses_with_its_number) {
  Ledger ledger(folder_.path() + "/none/rdma_lo.ledger", false);
  testing::internal::CaptureStderr();
  const auto refused = ledger.take(Counted::qp, 10);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("can't be locked"), std::string::npos);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().value, ENOENT);
  ledger.give(Counted::qp);
}

// --- Claims.

class ClaimTest : public LedgerTest {
 protected:
  uint32_t count() const { return counter_->load(); }
  Claim claim() { return Claim(counter_, ledger_, Counted::qp); }
  bool has_room_for_another() {
    const bool has_room = take(*ledger_, Counted::qp, 1) == 1;
    if (has_room) {
      ledger_->give(Counted::qp);
    }
    return has_room;
  }
  Claim::Counter counter_ = std::make_shared<std::atomic<uint32_t>>(0);
  std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>(path(), false);
};

TEST_F(ClaimTest, gives_back_once_however_often_it_is_moved) {
  ASSERT_EQ(take(*ledger_, Counted::qp, 1), 1);
  {
    Claim first = claim();
    Claim second(std::move(first));
    Claim third;
    third = std::move(second);
    EXPECT_EQ(count(), 1U);
    EXPECT_FALSE(has_room_for_another());
  }
  EXPECT_EQ(count(), 0U);
  EXPECT_TRUE(has_room_for_another());
}

TEST_F(ClaimTest, one_that_takes_the_place_of_another_ends_neither_twice) {
  Claim kept = Claim(counter_);
  {
    Claim other = Claim(counter_);
    kept = std::move(other);
  }
  EXPECT_EQ(count(), 1U);
  kept = Claim();
  EXPECT_EQ(count(), 0U);
}

TEST_F(ClaimTest, forked_child_gives_nothing_back_for_its_parent) {
  ASSERT_EQ(take(*ledger_, Counted::qp, 1), 1);
  Claim one = claim();
  Child child([&] {
    one = Claim();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(has_room_for_another());
  one = Claim();
  EXPECT_TRUE(has_room_for_another());
}

}  // namespace
}  // namespace ringbolt::device
