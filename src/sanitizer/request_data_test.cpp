// What is sent must stay, what is received waits: the bytes of single requests.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "sanitizer/parts_test_support.h"
#include "sanitizer/poison.h"
#include "sanitizer/received_data.h"
#include "sanitizer/sent_data.h"

namespace ringbolt::sanitizer {
namespace {

using testing::Kept;
using testing::Memory;
using testing::request;
using testing::rule_of;
using testing::site;

/// A page that can be taken away.
class Page {
 public:
  Page() : bytes_(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() {
    if (is_mapped_) {
      unmap();
    }
  }
  void unmap() {
    is_mapped_ = false;
    ::munmap(bytes_, size_);
  }
  Piece piece() const { return {reinterpret_cast<uint64_t>(bytes_), 16, 7, 0, {}}; }

 private:
  const size_t size_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const bytes_;
  bool is_mapped_ = true;
};

TEST(KeptMemories, stand_in_for_all_pieces_or_for_none) {
  {
    Memory memory;
    Kept kept;
    auto one = request(1, Use::receive, {memory.piece(0, 8), memory.piece(100, 60)});
    const auto list = kept.take(*one);
    EXPECT_EQ(Kept::registered, 1);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(list[i].addr, reinterpret_cast<uintptr_t>(one->pieces[i].kept.memory));
      EXPECT_EQ(list[i].length, one->pieces[i].length);
      EXPECT_EQ(list[i].lkey, 99U);
    }
    const std::array<std::byte*, 2> before{one->pieces[0].kept.memory, one->pieces[1].kept.memory};
    KeptMemories::give_back(*one);
    KeptMemories::give_back(*one);
    EXPECT_EQ(one->kept, nullptr);
    auto next = request(2, Use::receive, {memory.piece(0, 8)});
    kept.take(*next);
    EXPECT_NE(std::ranges::find(before, next->pieces[0].kept.memory), before.end()) << "used again";
    auto endless = request(3, Use::receive, {memory.piece(0, 8), memory.piece(8, UINT32_MAX)});
    auto own = testing::list_of(*endless);
    EXPECT_FALSE(kept.memories.take(*endless, own.data()));
    EXPECT_EQ(endless->kept, nullptr);
    EXPECT_EQ(endless->pieces[0].kept.memory, nullptr);
    EXPECT_EQ(own[0].addr, endless->pieces[0].address);
    auto empty = request(4, Use::receive);
    EXPECT_FALSE(kept.memories.take(*empty, own.data()));
  }
  EXPECT_EQ(Kept::registered, 0) << "deregistered with it";
}

TEST(KeptMemories, of_one_domain_go_alone_and_a_childs_stay) {
  Memory memory;
  Kept kept;
  ibv_pd pds[2]{};
  for (ibv_pd& pd : pds) {
    auto one = request(1, Use::receive, {memory.piece(0, 8)});
    one->pd = &pd;
    kept.take(*one);
    KeptMemories::give_back(*one);
  }
  EXPECT_EQ(Kept::registered, 2);
  kept.memories.remove(&pds[0]);
  EXPECT_EQ(Kept::registered, 1);
  EXPECT_EQ(kept.memories.find(&pds[0]), nullptr);
  EXPECT_NE(kept.memories.find(&pds[1]), nullptr);
#if !defined(__SANITIZE_ADDRESS__)
  kept.memories.abandon();
  EXPECT_EQ(Kept::registered, 1) << "the parent's";
  Kept::registered = 0;
#endif
}

TEST(SentData, a_changed_byte_is_named) {
  Memory memory;
  Kept kept;
  memory.write(0, "first");
  memory.write(100, "second");
  auto one = request(1, Use::send, {memory.piece(0, 5), memory.piece(100, 6)});
  kept.take(*one);
  note_source(*one, true);
  EXPECT_EQ(std::memcmp(one->pieces[1].kept.memory, "second", 6), 0) << "what the device sends";
  EXPECT_EQ(rule_of(find_changed_source(*one, site(9))), "nothing");
  memory.write(102, "x");
  const auto found = find_changed_source(*one, site(9));
  ASSERT_EQ(rule_of(found), "send-buffer-changed");
  EXPECT_NE(found->numbers.find("byte 2 of 6"), std::string::npos) << found->numbers;
  EXPECT_NE(found->numbers.find("was 0x63 when it was posted, and is 0x78"), std::string::npos) << found->numbers;
  EXPECT_EQ(found->places[1].site.returns[0], 9U);
  memory.write(102, "c");
  EXPECT_EQ(rule_of(find_changed_source(*one, site(9))), "nothing");
}

TEST(SentData, without_a_copy_its_sum_says_so) {
  Memory memory;
  auto summed = request(1, Use::send, {memory.piece(0, 5), memory.piece(100, 6)});
  auto unlooked = request(2, Use::send, {memory.piece(0, 5)});
  note_source(*summed, true);
  note_source(*unlooked, false);
  EXPECT_EQ(rule_of(find_changed_source(*summed, site(9))), "nothing");
  memory.write(4, "x");
  EXPECT_EQ(rule_of(find_changed_source(*summed, site(9))), "send-buffer-changed");
  EXPECT_EQ(rule_of(find_changed_source(*unlooked, site(9))), "nothing") << "nobody wished for it";
  summed->is_given_up = true;
  EXPECT_EQ(rule_of(find_changed_source(*summed, site(9))), "nothing") << "told of already";
}

TEST(SentData, memory_that_goes_is_named_and_not_touched) {
  Page page;
  Kept kept;
  auto one = request(1, Use::send, {page.piece()});
  kept.take(*one);
  note_source(*one, true);
  EXPECT_EQ(find_unmapped(*one), nullptr);
  page.unmap();
  ASSERT_EQ(find_unmapped(*one), &one->pieces[0]);
  EXPECT_EQ(rule_of(find_changed_source(*one, site(9))), "memory-unmapped-in-use");
  std::memset(one->pieces[0].kept.memory, 1, 16);
  EXPECT_EQ(give_up_unmapped(*one, one->pieces[0]).rule, "posted-memory-unmapped");
  EXPECT_EQ(one->pieces[0].kept.memory[15], std::byte{0}) << "what the device sends in its place";
  EXPECT_EQ(rule_of(find_changed_source(*one, site(9))), "nothing");
}

TEST(ReceivedData, wait_behind_poison_and_what_was_there_comes_back_behind_them) {
  Memory memory;
  Kept kept;
  memory.write(0, "0123456789");
  memory.write(100, "abcdefghij");
  auto one = request(3, Use::receive, {memory.piece(0, 10), memory.piece(100, 10)});
  kept.take(*one);
  hold_back(*one, true);
  EXPECT_EQ(first_unpoisoned(one->pieces[0].memory(), 3), std::nullopt);
  EXPECT_EQ(first_unpoisoned(one->pieces[1].memory(), 3), std::nullopt);
  std::memcpy(one->pieces[0].kept.memory, "NEWNEWNEWN", 10);
  std::memcpy(one->pieces[1].kept.memory, "EW", 2);
  EXPECT_EQ(rule_of(place(*one, 12, site(9))), "nothing");
  EXPECT_EQ(memory.text(0, 10), "NEWNEWNEWN");
  EXPECT_EQ(memory.text(100, 10), "EWcdefghij");
}

TEST(ReceivedData, of_no_bytes_change_nothing_and_more_than_fit_end_with_the_memory) {
  Memory memory;
  Kept kept;
  memory.write(0, "0123456789");
  for (const uint64_t length : {uint64_t{0}, uint64_t{10}, UINT64_MAX}) {
    auto one = request(3, Use::receive, {memory.piece(0, 10)});
    kept.take(*one);
    hold_back(*one, true);
    EXPECT_EQ(rule_of(place(*one, length, site(9))), "nothing");
    EXPECT_EQ(memory.text(0, 12), std::string("0123456789\0\0", 12));
  }
}

TEST(ReceivedData, who_writes_there_too_early_is_told_of_once) {
  Memory memory;
  Kept kept;
  auto one = request(3, Use::receive, {memory.piece(0, 10), memory.piece(100, 10)});
  kept.take(*one);
  hold_back(*one, true);
  memory.write(3, "x");
  memory.write(103, "x");
  const auto found = place(*one, 0, site(9));
  ASSERT_EQ(rule_of(found), "receive-buffer-changed");
  EXPECT_NE(found->numbers.find("byte 3 of it"), std::string::npos) << found->numbers;
  EXPECT_TRUE(one->is_given_up);
  EXPECT_EQ(memory.text(3, 1), "x") << "what somebody wrote behind what came stays";
}

TEST(ReceivedData, without_poison_come_all_the_same) {
  Memory memory;
  Kept kept;
  memory.write(0, std::string(60, 'r'));
  auto one = request(3, Use::receive, {memory.piece(0, 60)});
  kept.take(*one);
  hold_back(*one, false);
  EXPECT_EQ(memory.text(0, 60), std::string(60, 'r')) << "peers may write there";
  // Of a datagram the device leaves out the 40 bytes for a routing header (11.4.1.2): they must be as they were.
  EXPECT_EQ(std::memcmp(one->pieces[0].kept.memory, std::string(40, 'r').data(), 40), 0);
  memory.write(50, "peer");
  std::memcpy(one->pieces[0].kept.memory, "new", 3);
  EXPECT_EQ(rule_of(place(*one, 3, site(9))), "nothing");
  EXPECT_EQ(memory.text(0, 4), "newr");
  EXPECT_EQ(memory.text(50, 4), "peer");
}

TEST(ReceivedData, what_fails_leaves_the_memory_as_it_was) {
  Memory memory;
  Kept kept;
  memory.write(0, "0123456789");
  auto one = request(3, Use::receive, {memory.piece(0, 10)});
  kept.take(*one);
  hold_back(*one, true);
  unpoison(*one);
  EXPECT_EQ(memory.text(0, 10), "0123456789");
  EXPECT_TRUE(one->is_given_up && !one->is_poisoned);
  Page page;
  auto gone = request(4, Use::receive, {page.piece()});
  kept.take(*gone);
  hold_back(*gone, true);
  page.unmap();
  EXPECT_EQ(rule_of(place(*gone, 16, site(9))), "memory-unmapped-in-use");
  unpoison(*gone);
  EXPECT_EQ(rule_of(place(*gone, 16, site(9))), "nothing") << "told of already";
}

}  // namespace
}  // namespace ringbolt::sanitizer
