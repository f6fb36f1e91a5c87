// The C border: what it refuses, and that outputs are written only on success.

#include "processes.h"

namespace ringbolt::stream_test {
namespace {

/// Something at each output that must not change.
struct Untouched {
  size_t n = 77;
  uint32_t events = 77;
  uint64_t count = 77;
  uint16_t port = 77;
  int fd = 77;
  ringbolt_stream* stream = nullptr;
  ringbolt_stream_listener* listener = nullptr;
  ringbolt_stream_reason reason = RINGBOLT_STREAM_REASON_NONE;
};

/// A stream that is being connected to nobody who accepts it.
class Border : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ringbolt_stream_listen(service.get(), "127.0.0.1", 0, nullptr, &made.listener), 0);
    ASSERT_EQ(ringbolt_stream_listener_port(made.listener, &made.port), 0);
    ASSERT_EQ(ringbolt_stream_connect(service.get(), "127.0.0.1", made.port, nullptr, 0, &made.stream), 0);
  }
  void TearDown() override {
    ringbolt_stream_destroy(made.stream);
    ringbolt_stream_listener_destroy(made.listener);
  }
  RuntimeFolder folder;
  StreamService service{"soft"};
  Untouched made;
};

TEST_F(Border, null_handles_are_refused) {
  Untouched out;
  char room[8];
  iovec pieces[2] = {};
  ringbolt_stream_statistics seen{};
  seen.struct_size = sizeof seen;
  EXPECT_EQ(ringbolt_stream_read(nullptr, room, 8, 0, &out.n), EINVAL);
  EXPECT_STREQ(ringbolt_stream_error(), "the stream is NULL");
  EXPECT_EQ(ringbolt_stream_peek(nullptr, 0, pieces), EINVAL);
  EXPECT_EQ(ringbolt_stream_consume(nullptr, 0), EINVAL);
  EXPECT_EQ(ringbolt_stream_write(nullptr, room, 8, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_writev(nullptr, pieces, 1, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_register(nullptr, room, 8), EINVAL);
  EXPECT_EQ(ringbolt_stream_unregister(nullptr, room), EINVAL);
  EXPECT_EQ(ringbolt_stream_write_registered(nullptr, room, 8, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_wait_sent(nullptr, 0), EINVAL);
  EXPECT_EQ(ringbolt_stream_fd(nullptr, &out.fd), EINVAL);
  EXPECT_EQ(ringbolt_stream_want(nullptr, 0), EINVAL);
  EXPECT_EQ(ringbolt_stream_wait(nullptr, 0, 0, &out.events), EINVAL);
  EXPECT_EQ(ringbolt_stream_close(nullptr, 0), EINVAL);
  EXPECT_EQ(ringbolt_stream_ended(nullptr, &out.reason), EINVAL);
  EXPECT_EQ(ringbolt_stream_get_statistics(nullptr, &seen), EINVAL);
  EXPECT_EQ(ringbolt_stream_words(nullptr, room, 8), 0U);
  EXPECT_EQ(ringbolt_stream_accept(nullptr, 0, &out.stream), EINVAL);
  EXPECT_EQ(ringbolt_stream_listener_port(nullptr, &out.port), EINVAL);
  EXPECT_EQ(ringbolt_stream_listener_fd(nullptr, &out.fd), EINVAL);
  EXPECT_EQ(ringbolt_stream_listener_ended(nullptr, RINGBOLT_STREAM_OPEN, &out.count), EINVAL);
  EXPECT_EQ(ringbolt_stream_service_ended(nullptr, RINGBOLT_STREAM_OPEN, &out.count), EINVAL);
  EXPECT_EQ(ringbolt_stream_connect(nullptr, "127.0.0.1", 1, nullptr, 0, &out.stream), EINVAL);
  EXPECT_EQ(ringbolt_stream_listen(nullptr, nullptr, 0, nullptr, &out.listener), EINVAL);
  ringbolt_stream_destroy(nullptr);
  ringbolt_stream_listener_destroy(nullptr);
  ringbolt_stream_service_destroy(nullptr);
  EXPECT_EQ(out.n, 77U);
  EXPECT_EQ(out.fd, 77);
}

TEST_F(Border, null_memory_and_outputs_are_refused) {
  Untouched out;
  char room[8];
  const iovec lacking[2] = {{room, 8}, {nullptr, 1}};
  ringbolt_stream* s = made.stream;
  EXPECT_EQ(ringbolt_stream_read(s, nullptr, 8, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_read(s, room, 8, 0, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_peek(s, 0, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_write(s, nullptr, 8, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_write(s, room, 8, 0, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_writev(s, nullptr, 1, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_writev(s, lacking, 2, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_writev(s, lacking, 1, 0, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_writev(s, lacking, -1, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_writev(s, lacking, 1025, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_register(s, nullptr, 8), EINVAL);
  EXPECT_EQ(ringbolt_stream_register(s, room, 0), EINVAL);
  EXPECT_EQ(ringbolt_stream_unregister(s, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_write_registered(s, nullptr, 8, 0, &out.n), EINVAL);
  EXPECT_EQ(ringbolt_stream_write_registered(s, room, 8, 0, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_write_registered(s, room, 8, 0, &out.n), EINVAL) << "it is not registered";
  EXPECT_EQ(ringbolt_stream_fd(s, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_wait(s, 0, 0, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_wait(s, 64, 0, &out.events), EINVAL);
  EXPECT_EQ(ringbolt_stream_want(s, 64), EINVAL);
  EXPECT_EQ(ringbolt_stream_ended(s, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_get_statistics(s, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_consume(s, 1), EINVAL);
  EXPECT_EQ(ringbolt_stream_accept(made.listener, 0, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_listener_port(made.listener, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_listener_fd(made.listener, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_listener_ended(made.listener, RINGBOLT_STREAM_OPEN, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_listener_ended(made.listener, RINGBOLT_STREAM_REASON_NONE, &out.count), EINVAL);
  EXPECT_EQ(ringbolt_stream_service_ended(service.get(), RINGBOLT_STREAM_OPEN, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_connect(service.get(), nullptr, 1, nullptr, 0, &out.stream), EINVAL);
  EXPECT_EQ(ringbolt_stream_connect(service.get(), "127.0.0.1", 1, nullptr, 0, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_listen(service.get(), nullptr, 0, nullptr, nullptr), EINVAL);
  EXPECT_EQ(ringbolt_stream_service_create(nullptr, nullptr), EINVAL);
  EXPECT_EQ(out.n, 77U);
  EXPECT_EQ(out.events, 77U);
  EXPECT_EQ(out.count, 77U);
}

TEST_F(Border, nothing_is_no_error) {
  size_t n = 77;
  EXPECT_EQ(ringbolt_stream_write(made.stream, nullptr, 0, 0, &n), 0);
  EXPECT_EQ(n, 0U);
  EXPECT_EQ(ringbolt_stream_read(made.stream, nullptr, 0, 0, &n), 0);
  EXPECT_EQ(ringbolt_stream_writev(made.stream, nullptr, 0, 0, &n), 0);
  EXPECT_EQ(ringbolt_stream_consume(made.stream, 0), 0);
  EXPECT_EQ(ringbolt_stream_wait_sent(made.stream, 0), 0);
}

TEST_F(Border, stream_that_is_not_connected_would_block) {
  Untouched out;
  char room[8] = {};
  EXPECT_EQ(ringbolt_stream_read(made.stream, room, 8, 0, &out.n), EAGAIN);
  EXPECT_EQ(ringbolt_stream_write(made.stream, room, 8, 5, &out.n), ETIMEDOUT);
  EXPECT_NE(std::strstr(ringbolt_stream_error(), "127.0.0.1:"), nullptr) << ringbolt_stream_error();
  EXPECT_EQ(ringbolt_stream_wait(made.stream, RINGBOLT_STREAM_CONNECTED, 0, &out.events), 0);
  EXPECT_EQ(out.events, 0U);
  EXPECT_EQ(ringbolt_stream_ended(made.stream, &out.reason), 0);
  EXPECT_EQ(out.reason, RINGBOLT_STREAM_OPEN);
}

TEST_F(Border, options_of_another_version_are_understood_or_refused) {
  struct Newer {
    ringbolt_stream_options known;
    uint64_t unknown;
  } newer{StreamService::stream_options(), 0};
  newer.known.struct_size = sizeof newer;
  Untouched out;
  ASSERT_EQ(ringbolt_stream_connect(service.get(), "127.0.0.1", made.port, &newer.known, 0, &out.stream), 0);
  ringbolt_stream_destroy(out.stream);
  newer.unknown = 1;
  EXPECT_EQ(ringbolt_stream_connect(service.get(), "127.0.0.1", made.port, &newer.known, 0, &out.stream), EINVAL);
  EXPECT_NE(std::strstr(ringbolt_stream_error(), "install a newer one"), nullptr);
  ringbolt_stream_options options{};
  EXPECT_EQ(ringbolt_stream_connect(service.get(), "127.0.0.1", made.port, &options, 0, &out.stream), EINVAL);
  options = StreamService::stream_options();
  options.flags = 2;
  EXPECT_EQ(ringbolt_stream_connect(service.get(), "127.0.0.1", made.port, &options, 0, &out.stream), EINVAL);
  options = StreamService::stream_options();
  options.receive_bytes = 100;
  EXPECT_EQ(ringbolt_stream_connect(service.get(), "127.0.0.1", made.port, &options, 0, &out.stream), EINVAL);
  EXPECT_NE(std::strstr(ringbolt_stream_error(), "receive_bytes of 100"), nullptr) << ringbolt_stream_error();
}

TEST(BorderWithout, library_that_is_not_there_says_why) {
  const RuntimeFolder folder;
  try {
    StreamService service("/nowhere/libibverbs.so.1");
    ADD_FAILURE() << "there is no such library";
  } catch (const StreamError& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/libibverbs.so.1"), std::string::npos) << error.what();
  }
}

TEST(BorderWithout, reasons_have_names_and_words) {
  EXPECT_STREQ(ringbolt_stream_reason_name(RINGBOLT_STREAM_PEER_CLOSED), "peer-closed");
  EXPECT_STREQ(ringbolt_stream_reason_name(RINGBOLT_STREAM_REASON_NONE), "unknown");
  for (int reason = RINGBOLT_STREAM_OPEN; reason <= RINGBOLT_STREAM_NO_RESOURCES; ++reason) {
    EXPECT_GT(std::strlen(ringbolt_stream_reason_words(static_cast<ringbolt_stream_reason>(reason))), 10U);
  }
  EXPECT_GT(ringbolt_stream_version(), 0U);
}

TEST(BorderWithout, words_fit_into_any_room) {
  const RuntimeFolder folder;
  StreamService service("soft");
  ByteStream stream = service.connect("127.0.0.1", 1, 0);
  EXPECT_EQ(stream.wait(RINGBOLT_STREAM_CONNECTED, kSoonMs) & RINGBOLT_STREAM_ENDED, RINGBOLT_STREAM_ENDED);
  const std::string words = stream.words();
  char room[10];
  EXPECT_EQ(ringbolt_stream_words(stream.get(), room, sizeof room), words.size());
  EXPECT_EQ(std::string(room), words.substr(0, 9));
  EXPECT_NE(words.find("127.0.0.1:1"), std::string::npos) << words;
}

}  // namespace
}  // namespace ringbolt::stream_test
