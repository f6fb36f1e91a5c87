#include "pair/queue_pair.h"

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

}  // namespace
}  // namespace ringbolt::tools::pair
