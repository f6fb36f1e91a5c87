#include "bridge/sockets.h"

#include <gtest/gtest.h>

#include <string>

#include "failure.h"

namespace ringbolt::tools::bridge {
namespace {

TEST(Place, texts_are_read_and_written) {
  for (const std::string text : {"tcp:127.0.0.1:6379", "rdma:10.77.0.2:0", "rdma:[fd77::1]:65535", "tcp:localhost:1",
                                 "unix:/run/x.sock", "unix:relative"}) {
    EXPECT_EQ(parse_place("--listen", text).text(), text);
  }
}

TEST(Place, nonsense_is_refused_by_the_option_and_with_what_to_write) {
  for (const std::string& text :
       {std::string(), std::string("6379"), std::string("tcp"), std::string("tcp:"), std::string("tcp:6379"),
        std::string("tcp::6379"), std::string("tcp:[]:1"), std::string("tcp:a:"), std::string("tcp:a:65536"),
        std::string("tcp:a:-1"), std::string("tcp:a:1x"), std::string("rdma:fd77::1:6379"), std::string("unix:"),
        std::string("udp:a:1"), "unix:/" + std::string(200, 'x')}) {
    try {
      parse_place("--listen", text);
      ADD_FAILURE() << text << " was taken";
    } catch (const UsageError& error) {
      const std::string words = error.what();
      EXPECT_NE(words.find("--listen \"" + text + "\""), std::string::npos) << words;
      EXPECT_NE(words.find("write tcp:HOST:PORT"), std::string::npos) << words;
    }
  }
}

}  // namespace
}  // namespace ringbolt::tools::bridge
