#include "wire/lifeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "wire/bytes.h"
#include "wire/cm_message.h"

namespace ringbolt::wire {
namespace {

using Mad = std::array<std::byte, kMadBytes>;

// By the tables of docs/formats/lifeline.md.
Mad golden_offer() {
  constexpr uint8_t kBegin[] = {1,    0x4f, 1, 3,    0,    0,    0,    0,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                0x88, 0,    1, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
                                0,    0,    0, 0,    0,    0,    0,    0x02, 0x52, 0x42, 0x0c, 0,    0,    1,    0x14,
                                0,    0,    2, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x9c, 0x41};
  Mad mad{};
  std::ranges::transform(kBegin, mad.begin(), [](uint8_t byte) { return std::byte{byte}; });
  return mad;
}
constexpr LifelineOffer kOffer{0x0c000001, 0x14000002, 0x1122334455667788, 40001, false};

TEST(LifelineOffer, is_written_and_read_as_documented) {
  Mad mad;
  mad.fill(std::byte{0xff});
  emit(kOffer, mad);
  EXPECT_EQ(mad, golden_offer());
  EXPECT_EQ(parse_lifeline_offer(mad), kOffer);
  LifelineOffer answer = kOffer;
  answer.is_answer = true;
  emit(answer, mad);
  EXPECT_EQ(parse_lifeline_offer(mad), answer);
}

TEST(LifelineOffer, is_no_message_of_the_connection_manager_nor_the_other_way_round) {
  EXPECT_FALSE(parse_cm(golden_offer()));
  Mad mad{};
  emit(CmMad{1, CmDreq{2, 3, 4, {}}}, mad);
  EXPECT_FALSE(parse_lifeline_offer(mad));
}

TEST(LifelineOffer, of_another_class_version_method_attribute_or_vendor_is_none) {
  for (const size_t at : {0U, 1U, 2U, 3U, 17U, 37U, 38U, 39U}) {
    Mad mad = golden_offer();
    mad[at] ^= std::byte{0x40};
    EXPECT_FALSE(parse_lifeline_offer(mad)) << at;
  }
}

TEST(LifelineWord, is_written_and_read_as_documented) {
  const LifelineWord word{LifelineWord::Kind::welcome, 0x0102030405060708, 0x1112131415161718};
  constexpr uint8_t kBytes[] = {'R', 'B', 'L', '1', 0,    0,    0,    2,    1,    2,    3,    4,
                                5,   6,   7,   8,   0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18};
  std::array<std::byte, kLifelineWordBytes> golden;
  std::ranges::transform(kBytes, golden.begin(), [](uint8_t byte) { return std::byte{byte}; });
  EXPECT_EQ(emit(word), golden);
  EXPECT_EQ(parse_lifeline_word(golden), word);
  for (const uint32_t kind : {0U, 4U}) {
    put_be(std::span<std::byte>(golden), 4, kind);
    EXPECT_FALSE(parse_lifeline_word(golden)) << kind;
  }
  golden = emit(word);
  golden[0] = std::byte{'r'};
  EXPECT_FALSE(parse_lifeline_word(golden));
}

}  // namespace
}  // namespace ringbolt::wire
