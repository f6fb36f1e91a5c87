#include "device/stream_specs.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ringbolt::device {
namespace {

TEST(StreamSpecs, names_and_rails) {
  const std::vector<StreamSpec> wanted{{"left", {"fd:3", "fd:4,5"}}, {"right", {"tcp:[::1]:7777"}}};
  EXPECT_EQ(parse_stream_specs("left=fd:3+fd:4,5;right=tcp:[::1]:7777"), wanted);
  EXPECT_EQ(parse_stream_specs("left=fd:3+fd:4,5;right=tcp:[::1]:7777;"), wanted);
}

TEST(StreamSpecs, refuses_what_it_does_not_understand) {
  for (const char* text : {"", ";", "a", "=fd:3", "a=", "a=fd:3+", "a b=fd:3", "a=fd:3;a=fd:4", "a=1+2+3+4+5+6+7+8+9",
                           "012345678901234567890123456789012=fd:3", "a,=fd:3", "a,outage:=fd:3", "a,outage:x=fd:3",
                           "a,outage:86401=fd:3", "a,outage:1.5=fd:3", "a,what:1=fd:3"}) {
    EXPECT_THROW(parse_stream_specs(text), base::Error) << text;
  }
}

TEST(StreamSpecs, knows_how_long_an_outage_may_last) {
  EXPECT_EQ(parse_stream_specs("a=fd:3").front().outage_ns, 5'000'000'000U);
  const StreamSpec spec = parse_stream_specs("a,outage:0=unix:/x,y").front();
  EXPECT_EQ(spec.name, "a");
  EXPECT_EQ(spec.outage_ns, 0U);
  EXPECT_EQ(spec.rails, std::vector<std::string>{"unix:/x,y"});
  EXPECT_EQ(parse_stream_specs("a,outage:86400=fd:3").front().outage_ns, 86'400'000'000'000U);
}

TEST(StreamSpecs, the_two_ends_have_different_identifiers) {
  const StreamSpec one{"a", {"unix-listen:/s"}};
  const StreamSpec other{"a", {"unix:/s"}};
  EXPECT_EQ(stream_guid(one), stream_guid(one));
  EXPECT_NE(stream_guid(one), stream_guid(other));
  EXPECT_NE(stream_ipv4(stream_guid(one)), stream_ipv4(stream_guid(other)));
}

}  // namespace
}  // namespace ringbolt::device
