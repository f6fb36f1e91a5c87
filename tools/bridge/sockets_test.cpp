#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "bridge/sockets.h"
#include "failure.h"

namespace ringbolt::tools::bridge {
namespace {

class UnixListener : public testing::Test {
 protected:
  UnixListener() {
    std::string name = "/tmp/rb-sockets-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~UnixListener() override { std::filesystem::remove_all(folder_); }

  Place place() const { return {Place::Kind::unix_socket, {}, 0, folder_ / "s"}; }
  ListeningSocket listen() const { return ListeningSocket("--listen", place()); }
  std::string refusal() const {
    try {
      listen();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
  std::filesystem::path folder_;
};

TEST_F(UnixListener, file_is_for_its_owner_alone_and_goes_with_it) {
  {
    const ListeningSocket one = listen();
    struct stat seen {};
    ASSERT_EQ(::lstat(place().path.c_str(), &seen), 0);
    EXPECT_EQ(seen.st_mode & 0777U, 0600U);
    EXPECT_TRUE(connect_unix(place().path));
  }
  EXPECT_FALSE(std::filesystem::exists(place().path));
  EXPECT_EQ(connect_unix(place().path).error().value, ENOENT);
}

TEST_F(UnixListener, stale_file_is_replaced_and_a_live_one_is_not) {
  {
    ListeningSocket one = listen();
    std::filesystem::rename(place().path, folder_ / "kept");  // as if its program had been killed
  }
  std::filesystem::rename(folder_ / "kept", place().path);
  EXPECT_EQ(connect_unix(place().path).error().value, ECONNREFUSED);
  const ListeningSocket two = listen();
  EXPECT_TRUE(connect_unix(place().path));
  EXPECT_NE(refusal().find("another program listens there"), std::string::npos);
  EXPECT_TRUE(connect_unix(place().path));
}

TEST_F(UnixListener, other_files_and_those_of_successors_are_left_alone) {
  std::ofstream(place().path) << "precious";
  EXPECT_NE(refusal().find("a file that is no socket is there"), std::string::npos);
  std::filesystem::remove(place().path);
  std::filesystem::create_symlink("/nowhere", place().path);
  EXPECT_NE(refusal().find("a file that is no socket is there"), std::string::npos);
  std::filesystem::remove(place().path);
  {
    const ListeningSocket one = listen();
    std::filesystem::remove(place().path);
    std::ofstream(place().path) << "somebody else's";
  }
  EXPECT_TRUE(std::filesystem::exists(place().path));
}

TEST_F(UnixListener, folder_that_somebody_keeps_locked_is_refused_in_time) {
  const base::UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(folder.get(), LOCK_EX), 0);
  EXPECT_NE(refusal().find("keeps its folder locked"), std::string::npos);
  ASSERT_EQ(::flock(folder.get(), LOCK_UN), 0);
  EXPECT_EQ(refusal(), "");
}

TEST(ConnectedSocket, carries_bytes_and_ends) {
  ListeningSocket listener("--listen", {Place::Kind::tcp, "127.0.0.1", 0, {}});
  ASSERT_NE(listener.place().port, 0);
  SocketOnDescriptor one(std::move(
      *connect_tcp(stream::addresses_of("127.0.0.1", listener.place().port, stream::Deadline::now()).front())));
  stream::Address peer;
  SocketOnDescriptor other(std::move(*listener.accept(peer)));
  EXPECT_EQ(listener.accept(peer).error().value, EAGAIN);
  EXPECT_EQ(one.connected(), 0);
  const std::string text = "two pieces";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(*one.write({bytes.first(3), bytes.subspan(3)}), text.size());
  std::byte room[64];
  EXPECT_EQ(*other.read(room), text.size());
  EXPECT_EQ(other.read(room).error().value, EAGAIN);
  one.shut_down();
  EXPECT_EQ(*other.read(room), 0U);
  EXPECT_FALSE(other.has_gone());
  other.close(true);
  EXPECT_EQ(one.read(room).error().value, ECONNRESET);
}

TEST(Place, texts_are_read_and_written) {
  for (const std::string text : {"tcp:127.0.0.1:6379", "rdma:10.77.0.2:0", "rdma:[fd77::1]:65535", "tcp:localhost:1",
                                 "unix:/run/x.sock", "unix:relative"}) {
    EXPECT_EQ(parse_place("--listen", text).text(), text);
  }
}

TEST(Place, names_are_waited_for_and_numbers_ask_nobody) {
  const base::LookUp knows_node0 = [](const char* host, const char* port, const addrinfo* hints, addrinfo** list) {
    return std::string(host) == "node0" ? ::getaddrinfo("10.0.0.7", port, hints, list) : EAI_NONAME;
  };
  const auto text_of = [&](const Place& place) { return addresses_of(place, knows_node0).front().text(); };
  EXPECT_EQ(text_of({Place::Kind::tcp, "node0", 6379, {}}), "10.0.0.7:6379");
  EXPECT_EQ(text_of({Place::Kind::rdma, "fd77::1", 1, {}}), "[fd77::1]:1");
  EXPECT_THROW(text_of({Place::Kind::tcp, "node1", 1, {}}), base::Error);
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
