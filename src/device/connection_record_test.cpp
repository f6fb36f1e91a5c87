#include "device/connection_record.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device/orphans.h"

namespace ringbolt::device {
namespace {

constexpr uint64_t kNetwork = 4026531840;
constexpr wire::Address kHere = wire::ipv4_address(10, 77, 0, 1);
constexpr wire::Address kThere = wire::ipv4_address(10, 77, 0, 2);
constexpr uint64_t kMs = 1'000'000;

RecordEntry entry(uint32_t number) {
  return {0x0c000000 + number, 0x14000000 + number, 0x4000 + number, number, kHere, kThere, 8, 64};
}

class ConnectionRecords : public testing::Test {
 protected:
  ConnectionRecords() {
    char pattern[] = "/tmp/rbw-XXXXXX";
    folder = mkdtemp(pattern);
  }
  ~ConnectionRecords() override { std::filesystem::remove_all(folder); }
  std::vector<RecordEntry> of_the_dead(uint64_t network = kNetwork) {
    std::vector<RecordEntry> all;
    for (const OpenRecord& record : records_of_the_dead(folder, network)) {
      all.insert(all.end(), record.entries.begin(), record.entries.end());
    }
    return all;
  }
  /// What a process leaves that is killed with these connections.
  void leave_will_of_killed(uint32_t slot, uint32_t count) {
    const pid_t child = fork();
    if (child == 0) {
      ConnectionRecord record(folder, slot, kNetwork);
      for (uint32_t i = 1; i <= count; ++i) {
        record.put(entry(i));
      }
      kill(getpid(), SIGKILL);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }
  std::string folder;
};

TEST(RecordEntry, comes_back_as_it_was_and_an_empty_place_is_none) {
  const auto bytes = emit(entry(5));
  EXPECT_EQ(parse_record_entry(bytes), entry(5));
  EXPECT_FALSE(parse_record_entry(std::array<std::byte, kRecordEntryBytes>{}));
  for (const size_t at : {8U, 12U}) {  // beyond 24 and 20 bits
    auto wrong = bytes;
    wrong[at] = std::byte{0xff};
    EXPECT_FALSE(parse_record_entry(wrong)) << at;
  }
}

TEST_F(ConnectionRecords, of_the_living_are_not_opened) {
  ConnectionRecord record(folder, 3, kNetwork);
  EXPECT_TRUE(std::filesystem::is_empty(folder));  // nothing to leave yet
  record.put(entry(1));
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  EXPECT_TRUE(of_the_dead().empty());
  record.leave();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(ConnectionRecords, of_the_stopped_are_not_opened) {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    ConnectionRecord record(folder, 3, kNetwork);
    record.put(entry(1));
    [[maybe_unused]] const ssize_t told = write(ready[1], "x", 1);
    raise(SIGSTOP);
    pause();
  }
  char word = 0;
  EXPECT_EQ(read(ready[0], &word, 1), 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(of_the_dead().empty());
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(of_the_dead(), std::vector{entry(1)});
  close(ready[0]);
  close(ready[1]);
}

TEST_F(ConnectionRecords, name_what_stood_when_the_process_was_killed) {
  const pid_t child = fork();
  if (child == 0) {
    ConnectionRecord record(folder, 3, kNetwork);
    for (uint32_t i = 1; i <= 4; ++i) {
      record.put(entry(i));
    }
    record.remove(2);  // an unknown number
    record.remove(entry(2).local_id);
    record.remove(entry(4).local_id);
    record.put(entry(5));
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  auto found = of_the_dead();
  std::ranges::sort(found, {}, &RecordEntry::local_id);
  EXPECT_EQ(found, (std::vector{entry(1), entry(3), entry(5)}));
  EXPECT_TRUE(of_the_dead(kNetwork + 1).empty());  // another namespace's: its addresses are not ours
}

TEST_F(ConnectionRecords, are_opened_by_one_at_a_time) {
  leave_will_of_killed(3, 1);
  auto first = records_of_the_dead(folder, kNetwork);
  EXPECT_EQ(first.size(), 1U);
  EXPECT_TRUE(records_of_the_dead(folder, kNetwork).empty());
  first.clear();  // who does so dies
  first = records_of_the_dead(folder, kNetwork);
  ASSERT_EQ(first.size(), 1U);
  remove(folder, first.front());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(ConnectionRecords, survive_a_child_of_their_owner) {
  ConnectionRecord record(folder, 3, kNetwork);
  record.put(entry(1));
  const pid_t child = fork();
  if (child == 0) {
    record.abandon_after_fork();
    _exit(of_the_dead().empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(of_the_dead().empty());
  record.leave();
}

TEST_F(ConnectionRecords, that_are_none_are_left_alone) {
  std::ofstream(folder + "/7-0.connections") << "nonsense";
  std::ofstream(folder + "/8-0.connections") << std::string(4096, 'x');
  EXPECT_TRUE(of_the_dead().empty());
}

class Execution : public ConnectionRecords {
 protected:
  Orphans::Sent send(const RecordEntry& from, wire::MadIn mad) {
    const auto parsed = wire::parse_cm(mad);
    EXPECT_TRUE(parsed && std::holds_alternative<wire::CmDreq>(parsed->message));
    const auto dreq = std::get<wire::CmDreq>(parsed->message);
    EXPECT_EQ((std::tuple{from.local_id, from.remote_id, from.remote_qpn}),
              (std::tuple{dreq.local_id, dreq.remote_id, dreq.remote_qpn}));
    ++sent;
    return answer;
  }
  /// Lets time go on by itself until nothing is left to do.
  void run_out() {
    while (orphans.next_deadline_ns() != UINT64_MAX) {
      now = std::max(now, orphans.next_deadline_ns());
      orphans.on_timer(now);
    }
  }
  size_t sent = 0;
  Orphans::Sent answer = Orphans::Sent::yes;
  uint64_t now = 1000 * kMs;
  Orphans orphans{folder, kNetwork, [this](const RecordEntry& from, wire::MadIn mad) { return send(from, mad); }};
};

TEST_F(Execution, ends_each_connection_at_once_and_again_until_the_peer_agrees) {
  leave_will_of_killed(3, 50);
  orphans.on_timer(now);
  EXPECT_EQ(sent, 0U);  // nobody suspects anything
  orphans.suspect();
  orphans.on_timer(now);
  EXPECT_EQ(sent, 50U);
  for (uint32_t i = 1; i <= 49; ++i) {
    orphans.on_answer({entry(i).remote_id, entry(i).local_id, {}});
  }
  orphans.on_answer({entry(50).remote_id + 1, entry(50).local_id, {}});  // another connection's
  const uint64_t began = now;
  run_out();
  EXPECT_EQ(sent, 54U);  // five tries
  EXPECT_LE(now - began, 800 * kMs);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Execution, finds_a_lock_that_outlives_its_process_for_a_moment) {
  leave_will_of_killed(3, 1);
  auto held = records_of_the_dead(folder, kNetwork);
  orphans.suspect();
  orphans.on_timer(now);
  EXPECT_EQ(sent, 0U);
  held.clear();
  run_out();
  EXPECT_EQ(sent, 5U);
}

TEST_F(Execution, leaves_to_others_what_it_can_not_send) {
  leave_will_of_killed(3, 2);
  answer = Orphans::Sent::not_from_here;
  orphans.suspect();
  orphans.on_timer(now);
  EXPECT_EQ(sent, 2U);
  EXPECT_EQ(of_the_dead().size(), 2U);
}

TEST_F(Execution, of_an_empty_will_removes_it) {
  leave_will_of_killed(3, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const pid_t child = fork();
  if (child == 0) {
    ConnectionRecord record(folder, 3, kNetwork);
    record.put(entry(1));
    record.remove(entry(1).local_id);
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  orphans.suspect();
  orphans.on_timer(now);
  EXPECT_EQ(sent, 0U);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace ringbolt::device
