#include "host_survey.h"

#include <gtest/gtest.h>

#include "failure.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

TEST(HostLook, comes_back_as_it_was_sent) {
  HostLook look{"0.1.0", {{"en2", true, false, {}}, {"eth0", false, true, {}}}};
  look.interfaces[0].addresses = {cluster::IpAddress::parse("10.0.0.1/30").value(),
                                  cluster::IpAddress::parse("fe80::1/64").value()};
  EXPECT_EQ(parse_look("h", emit_look(look)), look);
  EXPECT_EQ(parse_look("h", "Welcome!\n{} \n" + emit_look(look)), look);
}

TEST(HostLook, refuses_anything_else_and_names_the_host) {
  for (const char* text : {"", "{", "{\"ringbolt\":", "{\"ringbolt\":1}", "{\"ringbolt\":\"1\",\"interfaces\":[7]}",
                           "{\"ringbolt\":\"1\",\"interfaces\":[{\"name\":\"a b\",\"up\":true,\"default_route\":false,"
                           "\"addresses\":[]}]}",
                           "{\"ringbolt\":\"1\",\"interfaces\":[{\"name\":\"a\",\"up\":true,\"default_route\":false,"
                           "\"addresses\":[\"x\"]}]}"}) {
    try {
      parse_look("mac1", text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("mac1: ", 0), 0U) << error.what();
    }
  }
}

TEST(HostLook, finds_this_machine) {
  const HostLook look = look_here();
  EXPECT_EQ(look.version, kVersion);
  for (const cluster::Interface& one : look.interfaces) {
    EXPECT_NE(one.name, "lo");
  }
}

}  // namespace
}  // namespace ringbolt::tools
