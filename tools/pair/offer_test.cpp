#include "pair/queue_pair.h"
#include "pair/values.h"

#include <gtest/gtest.h>

namespace ringbolt::tools::pair {
namespace {

TEST(Offer, survives_the_way) {
  Offer offer;
  offer.gid[15] = 7;
  offer.window = 3;
  offer.send_slots = 4;
  offer.send_address = ~uint64_t{0};
  offer.queue_pairs = {{1, 2}, {3, 4}};
  EXPECT_EQ(value_in<Offer>(to_line(offer)), offer);
}

TEST(Offer, nonsense_is_refused) {
  Offer offer;
  offer.window = offer.send_slots = 1;
  const std::string text = to_line(offer);
  EXPECT_TRUE(value_in<Offer>(text));
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(value_in<Offer>(text.substr(0, length))) << length;
  }
  EXPECT_FALSE(value_in<Offer>(text + " 1"));
  EXPECT_FALSE(value_in<Offer>("x" + text));
  offer.window = 0;
  EXPECT_FALSE(value_in<Offer>(to_line(offer)));
}

}  // namespace
}  // namespace ringbolt::tools::pair
