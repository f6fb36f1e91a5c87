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
                           "012345678901234567890123456789012=fd:3"}) {
    EXPECT_THROW(parse_stream_specs(text), base::Error) << text;
  }
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
