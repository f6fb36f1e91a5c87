#include "profile/catalogue.h"
#include "profile/knobs.h"

#include <gtest/gtest.h>

#include "profile/frames.h"
#include "profile/rules.h"

namespace ringbolt::profile {
namespace {

TEST(Catalogue, knows_its_own_names) {
  for (const NamedProfile& known : known_profiles()) {
    const auto profile = parse_profile(known.name);
    ASSERT_TRUE(profile) << known.name;
    EXPECT_EQ(profile->name, known.name);
  }
}

TEST(Catalogue, roce_takes_nothing_away) {
  const Profile roce = parse_profile("roce").value();
  EXPECT_TRUE(roce.allows(kAtomic) && roce.allows(kInvalidateOrBind));
  EXPECT_EQ(limited(roce.limits.qp_wr, 16384U), 16384U);
  EXPECT_EQ(roce.look.gids, GidLayout::plain);
}

TEST(Catalogue, every_knob_takes_each_of_its_values) {
  for (const KnobText& knob : known_knobs()) {
    std::string values = knob.values;
    for (size_t at = 0; at <= values.size();) {
      const size_t end = std::min(values.find('|', at), values.size());
      std::string value = values.substr(at, end - at);
      if (value == "park:SLOTS:BYTES") {
        value = "park:16:65536";
      } else if (value == "NUMBER" || value == "FRAMES") {
        value = "100";
      } else if (value == "TIME") {
        value = "200us";
      }
      const std::string text = std::string("apple,") + knob.name + "=" + value;
      EXPECT_TRUE(parse_profile(text)) << text;
      EXPECT_FALSE(parse_profile(text + "x")) << text << "x";
      at = end + 1;
    }
    EXPECT_FALSE(parse_profile(std::string("apple,") + knob.name));
    EXPECT_FALSE(parse_profile(std::string("apple,") + knob.name + "="));
  }
}

TEST(Catalogue, takes_several_knobs_and_the_last_word_of_each) {
  const Profile mac = parse_profile("tn3205,gid=2,errno=darwin,gid=1,short-grant=7").value();
  EXPECT_EQ(mac.look.gids, GidLayout::apple);
  EXPECT_TRUE(mac.knobs.has_darwin_errno);
  EXPECT_EQ(mac.knobs.short_grant_frames, 7U);
}

TEST(Catalogue, says_what_is_wrong_and_what_would_be_right) {
  EXPECT_NE(parse_profile("mac").error().problem.find("tn3205"), std::string::npos);
  EXPECT_NE(parse_profile("apple,leek=boot").error().problem.find("leak"), std::string::npos);
  EXPECT_NE(parse_profile("apple,leak=never").error().problem.find("process|boot"), std::string::npos);
  EXPECT_FALSE(parse_profile(""));
  EXPECT_FALSE(parse_profile(std::string(1000, 'a')));
}

TEST(Frames, counts_begun_frames_and_one_for_nothing) {
  EXPECT_EQ(frames_of(0), 1U);
  EXPECT_EQ(frames_of(1), 1U);
  EXPECT_EQ(frames_of(4096), 1U);
  EXPECT_EQ(frames_of(4097), 2U);
  EXPECT_EQ(frames_of(16'773'120), 4095U);
}

TEST(Rules, have_a_text_each) {
  for (size_t i = 0; i < static_cast<size_t>(Rule::count_); ++i) {
    const RuleText& text = text_of(static_cast<Rule>(i));
    ASSERT_NE(text.name, nullptr) << i;
    EXPECT_GT(std::string(text.why).size(), 10U) << text.name;
    EXPECT_GT(std::string(text.fix).size(), 10U) << text.name;
  }
}

TEST(Rules, translate_numbers_for_darwin_alone) {
  const Profile here = parse_profile("apple").value();
  const Profile mac = parse_profile("apple,errno=darwin").value();
  EXPECT_EQ(number_of(here, EOPNOTSUPP), EOPNOTSUPP);
  EXPECT_EQ(number_of(mac, EOPNOTSUPP), 102);
  EXPECT_EQ(number_of(mac, ETIMEDOUT), 60);
  EXPECT_EQ(number_of(mac, ENODATA), 96);
  EXPECT_EQ(number_of(mac, EBUSY), 16);
  EXPECT_EQ(number_of(mac, 0), 0);
}

TEST(Rules, tell_what_happened_why_and_the_fix) {
  const Profile mac = parse_profile("tn3205,errno=darwin").value();
  EXPECT_EQ(violation_text(mac, Rule::qp_type, "rdma_en2", "a queue pair of type RC", EOPNOTSUPP),
            "ringbolt: like tn3205: rdma_en2: a queue pair of type RC: refused with EOPNOTSUPP, 102 on Darwin\n"
            "  why: the device has no queue pairs of this type\n"
            "  fix: take one that it has: UC is on every such device (docs/profiles.md, qp-type)\n");
}

}  // namespace
}  // namespace ringbolt::profile
