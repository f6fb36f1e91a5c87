#include "pair/offer.h"

#include <gtest/gtest.h>

#include "pair/device.h"

namespace ringbolt::tools::pair {
namespace {

TEST(Offer, survives_the_way) {
  Offer offer;
  offer.gid[15] = 7;
  offer.window = 3;
  offer.send_slots = 4;
  offer.send_address = ~uint64_t{0};
  offer.queue_pairs = {{1, 2}, {3, 4}};
  EXPECT_EQ(parse_offer(emit_offer(offer)), offer);
}

TEST(Offer, nonsense_is_refused) {
  Offer offer;
  offer.window = offer.send_slots = 1;
  const std::string text = emit_offer(offer);
  EXPECT_TRUE(parse_offer(text));
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(parse_offer(text.substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_offer(text + " 1"));
  EXPECT_FALSE(parse_offer("x" + text));
  offer.window = 0;
  EXPECT_FALSE(parse_offer(emit_offer(offer)));
}

TEST(Device, codes_of_ports_become_figures) {
  EXPECT_EQ(mtu_code(256), IBV_MTU_256);
  EXPECT_EQ(mtu_code(1500), IBV_MTU_1024);
  EXPECT_EQ(mtu_code(9000), IBV_MTU_4096);
  EXPECT_EQ(rate_of_codes(2, 4), 40);
  EXPECT_EQ(rate_of_codes(1, 1), 2.5);
  EXPECT_EQ(rate_of_codes(2, 64), 200);
  EXPECT_EQ(rate_of_codes(0, 4), 0);
}

}  // namespace
}  // namespace ringbolt::tools::pair
