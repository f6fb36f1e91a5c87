#include "sanitizer/request_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "sanitizer/parts_test_support.h"

namespace ringbolt::sanitizer {
namespace {

using testing::Memory;
using testing::request;

TEST(RequestTable, numbers_go_on_and_wrap) {
  constexpr uint32_t kLast = std::numeric_limits<uint32_t>::max();
  RequestTable table(kLast);
  EXPECT_EQ(table.issue(), kLast);
  EXPECT_EQ(table.issue(), 0U);
  EXPECT_EQ(table.issued(), 2U);
  table.clear();
  EXPECT_EQ(table.issue(), 1U) << "completions of another life are no one's of this one";
}

TEST(RequestTable, owns_a_request_until_it_is_taken_out) {
  RequestTable table(0);
  Request& one = table.insert(request(4, Use::send));
  EXPECT_EQ(table.find(4), &one);
  EXPECT_EQ(table.find(5), nullptr);
  const auto out = table.take_out(4);
  EXPECT_EQ(out.get(), &one);
  EXPECT_EQ(table.find(4), nullptr);
  EXPECT_EQ(table.take_out(4), nullptr);
}

TEST(RequestTable, knows_who_writes_and_who_reads_memory_until_they_are_over) {
  Memory memory;
  RequestTable table(0);
  table.insert(request(1, Use::receive, {memory.piece(0, 100), memory.piece(200, 100)}));
  table.insert(request(2, Use::read, {memory.piece(400, 8)}));
  Request& send = table.insert(request(3, Use::send, {memory.piece(600, 100)}));
  const auto at = [&](size_t offset) { return reinterpret_cast<uint64_t>(memory.bytes.data()) + offset; };
  const auto writer = [&](size_t offset, size_t length) {
    const Request* const found = table.writer_of(at(offset), length);
    return found == nullptr ? 0 : found->number;
  };
  EXPECT_EQ(writer(99, 1), 1U);
  EXPECT_EQ(writer(100, 100), 0U) << "between its pieces";
  EXPECT_EQ(writer(199, 2), 1U);
  EXPECT_EQ(writer(300, 108), 2U) << "an answer is written here";
  EXPECT_EQ(writer(600, 100), 0U) << "a send writes nothing";
  EXPECT_EQ(table.reader_of(at(0), 500), nullptr);
  EXPECT_EQ(table.reader_of(at(650), 1), &send);
  send.is_given_up = true;
  EXPECT_EQ(table.reader_of(at(650), 1), nullptr) << "told of already";
  table.take_out(1);
  EXPECT_EQ(writer(0, 300), 0U);
}

TEST(RequestTable, gives_the_numbers_of_some) {
  RequestTable table(0);
  for (const uint32_t number : {1U, 2U, 3U}) {
    table.insert(request(number, number == 2 ? Use::read : Use::send));
  }
  auto numbers = table.numbers_of([](const Request& one) { return one.use == Use::send; });
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers, (std::vector<uint32_t>{1, 3}));
  size_t count = 0;
  table.each([&](Request&) { ++count; });
  EXPECT_EQ(count, 3U);
  table.clear();
  EXPECT_TRUE(table.numbers_of([](const Request&) { return true; }).empty());
}

TEST(RequestTable, remembers_the_programs_number_of_what_was_dropped) {
  RequestTable table(0);
  table.remember(*request(4, Use::receive));
  EXPECT_EQ(table.old_id(4), 1004U);
  EXPECT_EQ(table.old_id(5), 0U);
  table.clear();
  EXPECT_EQ(table.old_id(4), 0U);
}

TEST(Remembered, forgets_all_before_there_are_too_many) {
  Remembered<uint64_t, 3> known;
  EXPECT_TRUE(known.is_empty());
  for (const uint32_t number : {1U, 2U, 3U}) {
    known.note(number, number * 10U);
  }
  EXPECT_EQ(known.of(1), 10U) << "full";
  known.note(4, 40);
  EXPECT_EQ(known.of(1), 0U);
  EXPECT_EQ(known.of(4), 40U);
  known.note(4, 41);
  EXPECT_EQ(known.of(4), 41U);
}

}  // namespace
}  // namespace ringbolt::sanitizer
