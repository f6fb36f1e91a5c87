#include "device/pieces.h"

#include <gtest/gtest.h>

#include <string>

namespace ringbolt::device {
namespace {

class PiecesTest : public testing::Test {
 protected:
  /// Some parts of `memory_`, one after the other.
  void lay(std::initializer_list<std::pair<size_t, size_t>> parts) {
    pieces_.count = 0;
    for (const auto& [offset, length] : parts) {
      pieces_.at[pieces_.count++] = {memory_.data() + offset, length};
    }
  }
  std::string gather(uint32_t offset, uint32_t length) {
    std::string bytes(length + 1, '.');
    pieces_.gather(offset, reinterpret_cast<std::byte*>(bytes.data()), length);
    EXPECT_EQ(bytes.back(), '.');
    bytes.pop_back();
    return bytes;
  }
  void scatter(uint32_t offset, const std::string& bytes) {
    pieces_.scatter(offset, reinterpret_cast<const std::byte*>(bytes.data()), static_cast<uint32_t>(bytes.size()));
  }
  std::string memory_ = "0123456789abcdefghij";
  Pieces pieces_;
};

TEST_F(PiecesTest, have_the_length_of_all) {
  lay({});
  EXPECT_EQ(pieces_.length(), 0U);
  lay({{0, 3}, {10, 0}, {5, 4}});
  EXPECT_EQ(pieces_.length(), 7U);
}

TEST_F(PiecesTest, length_of_all_may_exceed_32_bits) {
  lay({{0, 0xffffffffU}, {0, 2}});
  EXPECT_EQ(pieces_.length(), 0x1'0000'0001U);
}

TEST_F(PiecesTest, first_bytes_end_within_a_part_or_with_it) {
  lay({{0, 3}, {10, 0}, {5, 4}});
  for (uint32_t length = 0; length <= 7; ++length) {
    const Pieces some = pieces_.first(length);
    EXPECT_EQ(some.length(), length);
    for (uint32_t i = 0; i < some.count; ++i) {
      EXPECT_EQ(some.at[i].iov_base, pieces_.at[i].iov_base);
    }
  }
  EXPECT_EQ(pieces_.first(3).count, 1U);
  EXPECT_EQ(pieces_.first(4).count, 3U);
}

TEST_F(PiecesTest, are_gathered_from_any_byte_to_any_other) {
  lay({{0, 3}, {10, 0}, {5, 4}, {18, 2}});
  const std::string whole = "0125678ij";
  for (uint32_t from = 0; from <= whole.size(); ++from) {
    for (uint32_t length = 0; from + length <= whole.size(); ++length) {
      EXPECT_EQ(gather(from, length), whole.substr(from, length)) << from << " " << length;
    }
  }
}

TEST_F(PiecesTest, are_scattered_where_they_lie_and_nowhere_else) {
  for (uint32_t from = 0; from <= 7; ++from) {
    memory_ = std::string(20, '.');
    lay({{2, 3}, {9, 4}});
    scatter(from, std::string("ABCDEFG").substr(from));
    std::string expected(20, '.');
    for (uint32_t i = from; i < 7; ++i) {
      expected[i < 3 ? 2 + i : 9 + i - 3] = static_cast<char>('A' + i);
    }
    EXPECT_EQ(memory_, expected) << from;
  }
}

TEST_F(PiecesTest, end_is_an_end) {
  lay({{0, 2}});
  memory_ = "..xx";
  scatter(1, "ABC");  // more than there is room for
  EXPECT_EQ(memory_.substr(0, 4), ".Axx");
  lay({{0, 2}});
  scatter(5, "ABC");
  EXPECT_EQ(memory_.substr(0, 4), ".Axx");
}

}  // namespace
}  // namespace ringbolt::device
