#include "device/peer_notes.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace ringbolt::device {
namespace {

class PeerNotesTest : public testing::Test {
 protected:
  PeerNotesTest() {
    std::string path = "/tmp/rbnotesXXXXXX";
    folder_ = ::mkdtemp(path.data());
  }
  ~PeerNotesTest() override { std::filesystem::remove_all(folder_); }

  bool has_file() const { return std::filesystem::exists(folder_ + "/explanations"); }
  static PeerNotes::Note note_of(uint32_t number, std::string text) {
    PeerNotes::Note note;
    note.kind = PeerNotes::Kind::region_gone;
    note.number = number;
    note.text = std::move(text);
    return note;
  }
  static std::string text_of(const PeerNotes& notes, uint32_t number) {
    const auto found = notes.find([number](const PeerNotes::Note& one) { return one.number == number; });
    return found ? found->text : "nothing";
  }

  std::string folder_;
};

TEST_F(PeerNotesTest, are_found_by_others_the_newest_first) {
  const auto a = PeerNotes::open(folder_);
  const auto b = PeerNotes::open(folder_);
  a->write(note_of(7, "old"));
  b->write(note_of(8, "other"));
  b->write(note_of(7, "new"));
  EXPECT_EQ(text_of(*a, 7), "new");
  EXPECT_EQ(text_of(*b, 8), "other");
  EXPECT_EQ(text_of(*b, 9), "nothing");
  const auto found = a->find([](const PeerNotes::Note& one) { return one.pid == ::getpid(); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, PeerNotes::Kind::region_gone);
  EXPECT_NE(found->time_ns, 0U);
}

TEST_F(PeerNotesTest, cut_what_is_too_long_and_forget_the_oldest) {
  const auto notes = PeerNotes::open(folder_);
  notes->write(note_of(1, std::string(2 * PeerNotes::kTextBytes, 'x')));
  EXPECT_EQ(text_of(*notes, 1), std::string(PeerNotes::kTextBytes - 1, 'x'));
  for (uint32_t i = 0; i < PeerNotes::kNotes; ++i) {
    notes->write(note_of(100 + i, "y"));
  }
  EXPECT_EQ(text_of(*notes, 1), "nothing");
  EXPECT_EQ(text_of(*notes, 100), "y");
}

TEST_F(PeerNotesTest, what_was_written_before_a_count_is_no_news_after_it) {
  const auto a = PeerNotes::open(folder_);
  const auto b = PeerNotes::open(folder_);
  const auto any = [](const PeerNotes::Note&) { return true; };
  EXPECT_EQ(a->count(), 0U);
  EXPECT_FALSE(a->find(any, a->count()));
  b->write(note_of(1, "before"));
  const uint64_t count = a->count();
  EXPECT_EQ(count, 1U);
  EXPECT_FALSE(a->find(any, count));
  EXPECT_TRUE(a->find(any, count - 1));
  b->write(note_of(2, "after"));
  EXPECT_EQ(a->find(any, count)->text, "after");
  EXPECT_FALSE(a->find([](const PeerNotes::Note& one) { return one.number == 1; }, count));
  for (uint32_t i = 0; i < PeerNotes::kNotes; ++i) {
    b->write(note_of(3, "later"));
  }
  EXPECT_EQ(a->find(any, count)->text, "later");  // of those that are overwritten none is found
}

TEST_F(PeerNotesTest, the_last_to_leave_removes_the_file) {
  auto a = PeerNotes::open(folder_);
  auto b = PeerNotes::open(folder_);
  a.reset();
  EXPECT_TRUE(has_file());
  b->leave();
  EXPECT_FALSE(has_file());
  b->write(note_of(3, "still"));
  EXPECT_EQ(text_of(*b, 3), "still");
  EXPECT_EQ(text_of(*PeerNotes::open(folder_), 3), "nothing");
}

TEST_F(PeerNotesTest, need_no_folder_and_touch_no_strange_file) {
  const auto own = PeerNotes::open("/no/such/folder");
  own->write(note_of(1, "own"));
  EXPECT_EQ(text_of(*own, 1), "own");
  std::ofstream(folder_ + "/explanations") << std::string(2'000'000, 'z');
  const auto other = PeerNotes::open(folder_);
  other->write(note_of(1, "other"));
  EXPECT_EQ(text_of(*other, 1), "other");
  EXPECT_EQ(std::ifstream(folder_ + "/explanations").get(), 'z');
}

TEST_F(PeerNotesTest, are_whole_while_many_write) {
  const auto notes = PeerNotes::open(folder_);
  std::vector<std::thread> writers;
  for (uint32_t writer = 1; writer <= 4; ++writer) {
    writers.emplace_back([&notes, writer] {
      for (uint32_t i = 0; i < 2 * PeerNotes::kNotes; ++i) {
        notes->write(note_of(writer, std::string(writer * 50, static_cast<char>('a' + writer))));
      }
    });
  }
  for (uint32_t i = 0; i < 50; ++i) {
    static_cast<void>(notes->find([](const PeerNotes::Note& one) {
      EXPECT_EQ(one.text, std::string(one.number * 50, static_cast<char>('a' + one.number)));
      return false;
    }));
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
}

}  // namespace
}  // namespace ringbolt::device
