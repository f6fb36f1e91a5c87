#include "trace/recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <thread>

#include "base/error.h"
#include "trace/begin.h"
#include "trace/trace_file.h"

namespace ringbolt::trace {
namespace {

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    std::string name = "/tmp/rbtrace-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~RecorderTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Recorder> open(uint64_t bytes = kLeastBytes) const {
    return Recorder::open({folder_ + "/a.trace", bytes, "ring4", "2"});
  }
  std::string bytes() const {
    std::ifstream file(folder_ + "/a.trace", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  TraceFile parse(const std::string& all) const { return parse_trace(std::as_bytes(std::span(all)), "a.trace"); }
  TraceFile parse() const { return parse(bytes()); }

  static Record numbered(uint64_t number) {
    Record record;
    record.kind = Kind::post_send;
    record.object = 0x4001;
    record.wr_id = number;
    record.bytes = static_cast<uint32_t>(number % 1000);
    record.code = 2;
    record.flags = kSignaled;
    return record;
  }

  std::string folder_;
};

TEST_F(RecorderTest, what_is_recorded_is_read_in_order_with_its_time_and_thread) {
  const auto recorder = open();
  const uint64_t before = recorder->time();
  for (uint64_t i = 0; i < 200; ++i) {
    recorder->note(numbered(i));
  }
  const TraceFile file = parse();
  EXPECT_EQ(file.pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(file.cluster, "ring4");
  EXPECT_EQ(file.node, "2");
  EXPECT_FALSE(file.has_ended);
  EXPECT_EQ(file.overwritten, 0U);
  ASSERT_EQ(file.events.size(), 200U);
  for (uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(file.events[i].wr_id, i);
    EXPECT_EQ(file.events[i].bytes, i % 1000);
    EXPECT_GE(file.events[i].ticks, before);
    EXPECT_EQ(file.events[i].thread, file.events[0].thread);
  }
  recorder->note_end();
  EXPECT_TRUE(parse().has_ended);
  EXPECT_EQ(parse().events.size(), 200U);
  recorder->note_going_on();
  EXPECT_FALSE(parse().has_ended);
}

TEST_F(RecorderTest, the_newest_overwrite_the_oldest_and_the_file_keeps_its_size) {
  const auto recorder = open();
  constexpr uint64_t kRoom = kLeastBytes / sizeof(Record);
  constexpr uint64_t kAll = kRoom * 3 + 5;
  constexpr uint64_t kTaken = 15;  // numbers at most that a thread has and uses later, without a record for now
  for (uint64_t i = 0; i < kAll; ++i) {
    recorder->note(numbered(i));
  }
  const TraceFile file = parse();
  EXPECT_EQ(bytes().size(), kHeadBytes + kLeastBytes);
  EXPECT_GE(file.overwritten, kAll - kRoom);
  EXPECT_LE(file.overwritten, kAll - kRoom + kTaken);
  ASSERT_EQ(file.events.size(), kAll - file.overwritten);
  for (size_t i = 0; i < file.events.size(); ++i) {
    EXPECT_EQ(file.events[i].wr_id, file.overwritten + i);
  }
}

TEST_F(RecorderTest, threads_record_side_by_side_and_nothing_is_lost_or_mixed) {
  constexpr size_t kThreads = 4;
  constexpr uint64_t kEach = 5000;
  const auto recorder = open(uint64_t{4} << 20U);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < kEach; ++i) {
          recorder->note(numbered(t * kEach + i));
        }
      });
    }
  }
  const TraceFile file = parse();
  ASSERT_EQ(file.events.size(), kThreads * kEach);
  std::vector<uint64_t> next(kThreads);
  std::vector<uint64_t> thread_of(kThreads);
  for (const Record& one : file.events) {
    const size_t t = one.wr_id / kEach;
    EXPECT_EQ(one.wr_id % kEach, next[t]++);
    thread_of[t] = thread_of[t] == 0 ? one.thread : thread_of[t];
    EXPECT_EQ(one.thread, thread_of[t]);
  }
}

TEST_F(RecorderTest, records_of_threads_in_turns_keep_their_order_in_the_ring) {
  const auto recorder = open();
  constexpr uint64_t kTurns = 300;
  constexpr uint64_t kRoom = kLeastBytes / sizeof(Record);
  std::atomic<uint64_t> turn{0};
  const auto take_turns = [&](uint64_t first) {
    for (uint64_t i = first; i < kTurns; i += 2) {
      for (uint64_t now = turn.load(); now != i; now = turn.load()) {
        turn.wait(now);
      }
      recorder->note(numbered(i));
      turn.store(i + 1);
      turn.notify_all();
    }
  };
  for (uint64_t i = 0; i < 100; ++i) {
    recorder->note(numbered(1000 + i));  // alone: this thread has numbers in store, which are old by the end
  }
  {
    std::jthread other(take_turns, 1);
    take_turns(0);
  }
  const std::string all = bytes();
  std::vector<uint64_t> found;
  for (uint64_t i = 0; i < kRoom; ++i) {  // by their numbers
    std::vector<Record> one;
    read_record(reinterpret_cast<const std::byte*>(all.data()) + kHeadBytes + i * sizeof(Record), i, one);
    if (!one.empty() && one[0].wr_id < kTurns) {
      found.push_back(one[0].wr_id);
    }
  }
  ASSERT_EQ(found.size(), kTurns);
  EXPECT_TRUE(std::ranges::is_sorted(found));
}

TEST_F(RecorderTest, a_writer_that_is_killed_leaves_what_it_has_recorded) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto recorder = open();
    for (uint64_t i = 0;; ++i) {
      recorder->note(numbered(i));
      if (i == 300) {
        (void)!::write(pipe[1], "x", 1);
      }
    }
  }
  char one = 0;
  ASSERT_EQ(::read(pipe[0], &one, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
  const TraceFile file = parse();
  EXPECT_EQ(file.pid, static_cast<uint32_t>(child));
  EXPECT_FALSE(file.has_ended);
  ASSERT_GT(file.events.size(), 300U);
  for (size_t i = 1; i < file.events.size(); ++i) {
    EXPECT_EQ(file.events[i].wr_id, file.events[i - 1].wr_id + 1);
  }
  remove_dead(folder_, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(RecorderTest, files_of_the_living_and_of_strangers_are_not_removed) {
  const auto recorder = open();
  std::ofstream(folder_ + "/b.trace") << "nothing of ours";
  remove_dead(folder_, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/a.trace"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/b.trace"));
}

TEST_F(RecorderTest, bad_bytes_are_left_out_and_end_nobody) {
  {
    const auto recorder = open();
    for (uint64_t i = 0; i < 1000; ++i) {
      recorder->note(numbered(i));
    }
    recorder->note_words(0x4001, true, "a finding");
    recorder->note_place(reinterpret_cast<uint64_t>(&remove_dead));
  }
  const std::string good = bytes();
  EXPECT_EQ(parse(good).events.size(), 1001U);
  EXPECT_EQ(parse(good).words.at(0).text, "a finding");
  EXPECT_EQ(parse(good).places.size(), 1U);
  EXPECT_THROW((void)parse(""), base::Error);
  EXPECT_THROW((void)parse(std::string(good.size(), 'z')), base::Error);
  EXPECT_NO_THROW((void)parse(good.substr(0, kHeadBytes + 5000)));
  const auto with_head = [&](uint64_t ring_records, uint64_t records) {
    std::string lying = good;
    std::memcpy(lying.data() + offsetof(FileHead, ring_records), &ring_records, sizeof ring_records);
    std::memcpy(lying.data() + offsetof(FileHead, records), &records, sizeof records);
    return parse(lying);
  };
  for (const uint64_t records : {uint64_t{1} << 63U, ~uint64_t{0}}) {  // would be read to the end of time
    EXPECT_LE(with_head(uint64_t{1} << 63U, records).events.size(), 1001U);
    EXPECT_LE(with_head(1, records).events.size(), 1U);
    EXPECT_EQ(with_head((uint64_t{1} << 63U) + 1, records).events.size(), 0U) << "no ring";
  }
  EXPECT_EQ(with_head(uint64_t{1} << 63U, 1001).events.size(), 1001U) << "of a file that was cut off";
  std::minstd_rand random(1);
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    for (int i = 0; i < 200; ++i) {  // anywhere but in the magic number
      bad[8 + random() % (bad.size() - 8)] = static_cast<char>(random());
    }
    const TraceFile file = parse(bad);
    EXPECT_LE(file.events.size(), 1001U);
    (void)file.queue_pairs.size();
    for (const Record& one : file.events) {
      EXPECT_LT(static_cast<uint8_t>(one.kind), kKinds);
    }
  }
}

TEST_F(RecorderTest, words_hold_nothing_that_a_terminal_obeys) {
  const auto recorder = open();
  recorder->note_words(1, false,
                       "a\x1b[2J\x7f \xc2\x9b"
                       "2J\n\xc3\x9f \xc2\xa0.");
  EXPECT_EQ(parse().words.at(0).text, "a?[2J? ??2J\n\xc3\x9f \xc2\xa0.") << "letters of UTF-8 stay";
}

TEST_F(RecorderTest, queue_pairs_are_found_again_and_places_of_destroyed_ones_are_used_anew) {
  const auto recorder = open();
  const auto add = [&](uint32_t qpn) {
    QueuePairEntry made{};
    made.qpn.store(qpn);
    made.type = 2;
    made.send_queue = made.receive_queue = 77;
    return recorder->add_queue_pair(made);
  };
  QueuePairEntry* const first = add(0x4001);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(recorder->find(0x4001), first);
  EXPECT_EQ(recorder->find(0x4002), nullptr);
  std::vector<QueuePairEntry*> all;
  for (uint32_t i = 2; i < 600; ++i) {  // more than there are places
    all.push_back(add(0x4000 + i));
  }
  EXPECT_GT(std::ranges::count_if(all, [](const QueuePairEntry* one) { return one != nullptr; }), 500);
  EXPECT_EQ(add(0x9001), nullptr);
  first->is_gone = 1;
  for (QueuePairEntry* one : all) {
    if (one != nullptr) {
      one->is_gone = 1;
    }
  }
  EXPECT_NE(add(0x9001), nullptr);
  EXPECT_EQ(recorder->find(0x9001)->send_queue, 77U);
}

TEST_F(RecorderTest, the_place_of_a_destroyed_queue_pair_is_taken_by_one_thread_alone) {
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kEach = 200;
  const auto recorder = open();
  const auto add = [&](uint32_t qpn) {
    QueuePairEntry made{};
    made.qpn.store(qpn);
    return recorder->add_queue_pair(made);
  };
  for (uint32_t qpn = 1; qpn <= kQueuePairs; ++qpn) {
    if (QueuePairEntry* const one = add(qpn)) {
      one->is_gone = 1;
    }
  }
  std::vector<QueuePairEntry*> taken(size_t{kThreads} * kEach);
  std::atomic<uint32_t> ready{0};
  {
    std::vector<std::jthread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        ++ready;
        while (ready != kThreads) {
          std::this_thread::yield();
        }
        for (uint32_t i = 0; i < kEach; ++i) {  // numbers side by side: of the same places
          taken[size_t{t} * kEach + i] = add(0x10000 + i * kThreads + t);
        }
      });
    }
  }
  std::erase(taken, nullptr);
  EXPECT_GT(taken.size(), kQueuePairs / 2);
  std::ranges::sort(taken);
  EXPECT_EQ(std::ranges::adjacent_find(taken), taken.end()) << "two queue pairs have the same place";
}

TEST_F(RecorderTest, the_last_events_of_a_queue_pair_are_told_in_words) {
  const auto recorder = open();
  QueuePairEntry made{};
  made.qpn.store(0x4001);
  made.send_queue = 5;
  recorder->add_queue_pair(made);
  for (uint64_t i = 0; i < 100; ++i) {
    recorder->note(numbered(i));
    Record other = numbered(i);
    other.object = 0x5001;
    recorder->note(other);
  }
  Record armed;
  armed.kind = Kind::armed;
  armed.object = 5;
  recorder->note(armed);
  const std::vector<std::string> told = recorder->recent(0x4001, 2);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], "post IBV_WR_SEND: wr_id 0x63, 99 bytes, signaled");
  EXPECT_EQ(told[1], "armed");
}

TEST_F(RecorderTest, a_file_that_cannot_be_is_an_error_with_a_remedy) {
  EXPECT_THROW(Recorder::open({"/no/such/folder/a.trace", kLeastBytes}), base::Error);
  EXPECT_THROW(Recorder::open({folder_ + "/huge.trace", uint64_t{1} << 60U}), base::Error);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/huge.trace"));
}

TEST(Wish, is_what_the_variable_says) {
  EXPECT_FALSE(parse_wish("", false).is_on);
  EXPECT_TRUE(parse_wish("", true).is_on);
  EXPECT_FALSE(parse_wish("off", true).is_on);
  EXPECT_TRUE(parse_wish("on", false).is_on);
  EXPECT_EQ(parse_wish("64M", false).bytes, uint64_t{64} << 20U);
  EXPECT_EQ(parse_wish("1G", false).bytes, uint64_t{1} << 30U);
  EXPECT_EQ(parse_wish("/some/folder", false).folder, "/some/folder");
  for (const char* bad : {"1K", "5G", "32K", "64", "M", "64MB", "yes", "99999999999999999999G", "-1M"}) {
    EXPECT_FALSE(parse_wish(bad, true).is_on) << bad;
    EXPECT_NE(parse_wish(bad, true).problem, "") << bad;
  }
}

}  // namespace
}  // namespace ringbolt::trace
