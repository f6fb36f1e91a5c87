#include "stream/stream_end.h"

#include <gmock/gmock.h>
#include <netinet/in.h>

#include <cerrno>

#include "stream/end_words.h"

namespace ringbolt::stream {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

Address peer() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(6379);
  address.sin_addr.s_addr = htonl(0x0a000007);
  return Address(reinterpret_cast<const sockaddr&>(address));
}

StreamEnd ended(CloseReason reason) {
  StreamEnd end;
  end.come(reason, "", peer(), "", "");
  return end;
}

TEST(StreamEnd, has_not_come_at_first) {
  const StreamEnd end;
  EXPECT_FALSE(end.has_come());
  EXPECT_EQ(end.error(), 0);
  EXPECT_EQ(end.reason(), CloseReason::none);
  EXPECT_EQ(end.words(), "");
}

TEST(StreamEnd, names_peer_device_reason_and_more) {
  StreamEnd end;
  end.come(CloseReason::peer_lost, "the server", Address(), "rdma_lo", "RNR retry exceeded");
  EXPECT_THAT(end.words(), StartsWith("the server through rdma_lo: peer-lost: the peer does not answer any more"));
  EXPECT_THAT(end.words(), EndsWith(" (RNR retry exceeded)"));
}

TEST(StreamEnd, names_an_address_where_there_is_no_name_and_no_device_where_none_was_found) {
  const StreamEnd end = ended(CloseReason::refused);
  EXPECT_THAT(end.words(), StartsWith("10.0.0.7:6379: refused: nobody listens there"));
  EXPECT_THAT(end.words(), testing::Not(HasSubstr("(")));
}

TEST(StreamEnd, comes_once) {
  StreamEnd end = ended(CloseReason::peer_closed);
  const std::string words = end.words();
  end.come(CloseReason::local, "another", Address(), "", "");
  EXPECT_EQ(end.reason(), CloseReason::peer_closed);
  EXPECT_EQ(end.words(), words);
}

TEST(StreamEnd, by_the_peer_is_the_end_of_reading_and_any_other_an_error) {
  const auto closed = ended(CloseReason::peer_closed).answer_to_read();
  ASSERT_TRUE(closed);
  EXPECT_EQ(*closed, 0U);
  EXPECT_EQ(ended(CloseReason::local).answer_to_read().error().value, ECANCELED);
  EXPECT_EQ(ended(CloseReason::peer_lost).answer_to_read().error().value, ECONNRESET);
}

TEST(StreamEnd, by_either_side_is_ordinary_and_by_a_fault_is_not) {
  EXPECT_TRUE(ended(CloseReason::local).is_ordinary());
  EXPECT_TRUE(ended(CloseReason::peer_closed).is_ordinary());
  for (size_t reason = static_cast<size_t>(CloseReason::bad_command_length); reason < kCloseReasons; ++reason) {
    EXPECT_FALSE(ended(static_cast<CloseReason>(reason)).is_ordinary()) << reason;
  }
}

/// A call that failed for the end never says that it went well.
TEST(StreamEnd, answers_an_errno_for_each_reason) {
  for (size_t reason = static_cast<size_t>(CloseReason::local); reason < kCloseReasons; ++reason) {
    const StreamEnd end = ended(static_cast<CloseReason>(reason));
    EXPECT_TRUE(end.has_come()) << reason;
    EXPECT_NE(end.error(), 0) << reason;
    EXPECT_THAT(end.words(),
                HasSubstr(std::string(name_of(end.reason())) + ": " + std::string(words_of(end.reason()))));
  }
}

}  // namespace
}  // namespace ringbolt::stream
