#include "cluster/counter_page.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/process_counts.h"

namespace ringbolt::cluster {
namespace {

constexpr uint64_t kBlockBytes = RINGBOLT_COUNTER_BLOCK_BYTES;

class CounterPageTest : public ::testing::Test {
 protected:
  CounterPageTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/rdma_x.counters";
  }
  ~CounterPageTest() override { std::filesystem::remove_all(folder_); }

  uint64_t value(const char* folder, const char* name) const {
    const auto sum = read_counters(path_);
    EXPECT_TRUE(sum.has_value());
    return sum ? ringbolt_counter_value(ringbolt_find_counter(folder, name), &*sum) : UINT64_MAX;
  }

  int error_of_opening() const {
    try {
      CounterPage::open(path_);
      return 0;
    } catch (const base::Error& error) {
      EXPECT_NE(std::string(error.what()).find(path_), std::string::npos);
      return error.errno_value();
    }
  }

  void write_file(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::string folder_;
  std::string path_;
};

// ARM64 kernels may have pages of 16 or 64 KiB, in which several blocks of the file lie; where pages are smaller the same
// mapping works as well.
TEST_F(CounterPageTest, blocks_need_not_begin_a_page) {
  for (const size_t page_bytes : {size_t{16} << 10U, size_t{64} << 10U}) {
    std::filesystem::remove(path_);
    std::vector<std::shared_ptr<CounterPage>> pages;
    constexpr uint64_t kPages = 20;
    for (uint64_t i = 0; i < kPages; ++i) {
      pages.push_back(CounterPage::open(path_, CounterPage::Port::own, page_bytes));
      pages.back()->take().first.add(kLaneXmitPackets, i + 1);
    }
    EXPECT_EQ(value("counters", "port_xmit_packets"), kPages * (kPages + 1) / 2) << page_bytes;
    pages.clear();
    EXPECT_EQ(value("counters", "port_xmit_packets"), kPages * (kPages + 1) / 2) << page_bytes;
    EXPECT_EQ(std::filesystem::file_size(path_), (kPages + 1) * kBlockBytes) << page_bytes;
  }
}

pid_t in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(CounterPageTest, nobody_has_counted_yet) {
  const auto none = read_counters(path_);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().value, ENOENT);
  write_file("");  // made, its head not yet written
  EXPECT_EQ(value("counters", "port_xmit_data"), 0U);
  std::filesystem::remove(path_);
  const auto page = CounterPage::open(path_);
  for (const RingboltCounter& counter : all_counters()) {
    EXPECT_EQ(value(counter.folder, counter.name), 0U) << counter.name;
  }
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(status.st_size, static_cast<off_t>(2 * kBlockBytes));
}

TEST_F(CounterPageTest, lanes_and_shared_words_add_up) {
  const auto page = CounterPage::open(path_);
  CounterCell& one = page->take();
  CounterCell& other = page->take();
  one.first.add(kLaneXmitWords, 1);
  one.second.add(kLaneXmitWords, 10);
  other.first.add(kLaneXmitWords, 100);
  page->add(kSharedXmitWords, 1000);
  one.first.add(kLaneMessages, 3);
  one.second.add(kLaneMessages, 5);
  page->add(kSharedOutOfBuffer);
  EXPECT_EQ(value("counters", "port_xmit_data"), 1111U);
  EXPECT_EQ(value("hw_counters", "rdma_sends"), 3U);
  EXPECT_EQ(value("hw_counters", "rdma_recvs"), 5U);
  EXPECT_EQ(value("hw_counters", "out_of_buffer"), 1U);
  EXPECT_EQ(value("counters", "port_rcv_data"), 0U);
}

TEST_F(CounterPageTest, a_cell_goes_on_where_the_last_owner_stopped) {
  const auto page = CounterPage::open(path_);
  CounterCell* const first = &page->take();
  first->first.add(kLaneXmitPackets, 7);
  page->give_back(*first);
  CounterCell* const second = &page->take();
  EXPECT_EQ(first, second);
  second->first.add(kLaneXmitPackets, 2);
  EXPECT_EQ(value("counters", "port_xmit_packets"), 9U);
}

TEST_F(CounterPageTest, more_cells_than_a_block_has) {
  const auto page = CounterPage::open(path_);
  std::set<CounterCell*> cells;
  for (int i = 0; i < 3 * RINGBOLT_COUNTER_CELLS + 1; ++i) {
    cells.insert(&page->take());
  }
  EXPECT_EQ(cells.size(), 3U * RINGBOLT_COUNTER_CELLS + 1);
  for (CounterCell* cell : cells) {
    cell->second.add(kLaneRcvPackets, 1);
  }
  EXPECT_EQ(value("counters", "port_rcv_packets"), cells.size());
  EXPECT_EQ(std::filesystem::file_size(path_), 5 * kBlockBytes);
}

TEST_F(CounterPageTest, processes_count_at_the_same_time) {
  constexpr int kProcesses = 4;
  constexpr uint64_t kRounds = 20'000;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(in_child([&] {
      const auto page = CounterPage::open(path_);
      CounterCell& cell = page->take();
      for (uint64_t round = 0; round < kRounds; ++round) {
        cell.first.add(kLaneXmitPackets, 1);
        page->add(kSharedResent);
      }
    }));
  }
  uint64_t last = 0;
  for (const pid_t child : children) {
    EXPECT_EQ(status_of(child), 0);
    const uint64_t now = value("counters", "port_xmit_packets");
    EXPECT_GE(now, last);  // and nothing is counted twice or taken back
    last = now;
  }
  EXPECT_EQ(value("counters", "port_xmit_packets"), kProcesses * kRounds);
  EXPECT_EQ(value("hw_counters", "completer_retry_err"), kProcesses * kRounds);
}

TEST_F(CounterPageTest, what_a_killed_process_counted_stays_and_its_block_goes_on) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = in_child([&] {
    const auto page = CounterPage::open(path_);
    page->take().first.add(kLaneXmitPackets, 5);
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
  });
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  {
    const auto beside = CounterPage::open(path_);  // while it lives its block is its own
    beside->take().first.add(kLaneXmitPackets, 10);
  }
  EXPECT_EQ(std::filesystem::file_size(path_), 3 * kBlockBytes);
  ::kill(child, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status_of(child)));
  EXPECT_EQ(value("counters", "port_xmit_packets"), 15U);
  const auto first = CounterPage::open(path_);
  const auto second = CounterPage::open(path_);
  EXPECT_EQ(std::filesystem::file_size(path_), 3 * kBlockBytes);  // both blocks have new owners
  first->take().first.add(kLaneXmitPackets, 100);
  second->take().first.add(kLaneXmitPackets, 1000);
  EXPECT_EQ(value("counters", "port_xmit_packets"), 1115U);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(CounterPageTest, other_files_are_refused_and_left_alone) {
  const std::string wrong(2 * kBlockBytes, 'x');
  const std::string later = std::string("RBCNT2\0\0", 8) + std::string(2 * kBlockBytes - 8, '\0');
  for (const std::string& bytes : {std::string("x"), wrong, later, std::string("RBCNT1\0\0", 8)}) {
    write_file(bytes);
    EXPECT_EQ(error_of_opening(), EINVAL);
    EXPECT_EQ(read_counters(path_).error().value, EINVAL);
    EXPECT_EQ(std::filesystem::file_size(path_), bytes.size());
  }
  std::filesystem::resize_file(path_, uint64_t{RINGBOLT_COUNTER_MAX_BLOCKS} * kBlockBytes + 1);
  EXPECT_EQ(error_of_opening(), EINVAL);
  EXPECT_EQ(read_counters(path_).error().value, EINVAL);
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(error_of_opening(), EINVAL);
  EXPECT_EQ(read_counters(path_).error().value, EINVAL);
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(error_of_opening(), EISDIR);
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/dev/null", path_);
  EXPECT_EQ(error_of_opening(), ELOOP);
  EXPECT_EQ(read_counters(path_).error().value, ELOOP);
}

TEST_F(CounterPageTest, a_file_that_was_cut_short_is_read_as_far_as_it_goes) {
  auto page = CounterPage::open(path_);
  page->add(kSharedResent, 3);
  const auto beside = CounterPage::open(path_);
  beside->add(kSharedResent, 4);
  for (const uint64_t length : {3 * kBlockBytes - 1, 2 * kBlockBytes + 1, 2 * kBlockBytes}) {
    std::filesystem::resize_file(path_, length);
    EXPECT_EQ(value("hw_counters", "completer_retry_err"), 3U) << length;
  }
  std::filesystem::resize_file(path_, kBlockBytes);
  EXPECT_EQ(value("hw_counters", "completer_retry_err"), 0U);
  std::filesystem::resize_file(path_, kBlockBytes - 1);
  EXPECT_EQ(read_counters(path_).error().value, EINVAL);
}

TEST_F(CounterPageTest, who_counts_for_a_peer_counts_and_is_not_named_as_a_user_of_that_port) {
  const auto peers = CounterPage::open(path_, CounterPage::Port::peers);
  peers->take().second.add(kLaneRcvPackets, 5);
  EXPECT_EQ(value("counters", "port_rcv_packets"), 5U);
  EXPECT_TRUE(read_counters_by_process(path_).value().empty());
  const auto own = CounterPage::open(path_);
  own->take().second.add(kLaneRcvPackets, 70);
  const auto counts = read_counters_by_process(path_).value();
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].pid, ::getpid());
  EXPECT_EQ(counts[0].sum.lanes[1][kLaneRcvPackets], 70U);
  EXPECT_EQ(value("counters", "port_rcv_packets"), 75U);
}

TEST_F(CounterPageTest, own_memory_shows_nowhere) {
  const auto page = CounterPage::in_own_memory();
  page->add(kSharedResent);
  for (int i = 0; i < 2 * RINGBOLT_COUNTER_CELLS; ++i) {
    page->take().first.add(kLaneXmitWords, 1);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(CounterNames, are_distinct_and_every_word_shows) {
  std::set<std::string> names;
  std::set<int> shared;
  std::set<int> lane_words;
  for (const RingboltCounter& counter : all_counters()) {
    EXPECT_TRUE(names.insert(std::string(counter.folder) + "/" + counter.name).second) << counter.name;
    EXPECT_EQ(ringbolt_find_counter(counter.folder, counter.name), &counter);
    EXPECT_LT(counter.shared_word, kSharedWords);
    EXPECT_LT(counter.lane_word, RINGBOLT_COUNTER_LANE_WORDS);
    shared.insert(counter.shared_word);
    lane_words.insert(counter.lane_word);
  }
  EXPECT_EQ(shared.size(), kSharedWords + 1U);  // and -1
  EXPECT_EQ(lane_words.size(), RINGBOLT_COUNTER_LANE_WORDS + 1U);
  EXPECT_EQ(ringbolt_find_counter("counters", "rdma_sends"), nullptr);
  EXPECT_EQ(ringbolt_find_counter("counters", ""), nullptr);
}

}  // namespace
}  // namespace ringbolt::cluster
