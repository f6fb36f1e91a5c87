// The example of a key-value server, over streams and TCP: the same answers, and one client's offence is its own.

#include <arpa/inet.h>
#include <fcntl.h>

#include "processes.h"

namespace ringbolt::stream_test {
namespace {

/// The program, with its ports read from what it prints.
class KeyValueServer {
 public:
  KeyValueServer() {
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0 || (pid_ = fork()) < 0) {
      throw std::runtime_error("no server");
    }
    if (pid_ == 0) {
      dup2(out[1], 1);
      setenv("RINGBOLT_VERBS", "soft", 1);
      execl(KEY_VALUE_SERVER, KEY_VALUE_SERVER, "--bind", "127.0.0.1", "--rdma", "0", "--tcp", "0", nullptr);
      _exit(127);
    }
    close(out[1]);
    std::string text;
    char c = 0;
    while (std::count(text.begin(), text.end(), '\n') < 2 && read(out[0], &c, 1) == 1) {
      text += c;
    }
    close(out[0]);
    if (sscanf(text.c_str(), "rdma %hu tcp %hu", &rdma, &tcp) != 2) {
      throw std::runtime_error("the server said: " + text);
    }
  }
  ~KeyValueServer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  KeyValueServer(const KeyValueServer&) = delete;
  KeyValueServer& operator=(const KeyValueServer&) = delete;

  uint16_t rdma = 0;
  uint16_t tcp = 0;

 private:
  pid_t pid_ = -1;
};

std::string command(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

void expect(ByteStream& stream, const std::string& question, const std::string& answer) {
  write_all(stream, question.data(), question.size());
  std::string seen(answer.size(), '\0');
  ASSERT_TRUE(read_all(stream, seen.data(), seen.size())) << question.substr(0, 60);
  EXPECT_TRUE(seen == answer) << question.substr(0, 60) << " -> " << seen.substr(0, 60);
}

TEST(KeyValue, answers_over_a_stream_and_over_tcp) {
  const RuntimeFolder folder;
  const KeyValueServer server;
  StreamService service("soft");
  ByteStream stream = service.connect("127.0.0.1", server.rdma, kSoonMs);
  expect(stream, command({"PING"}), "+PONG\r\n");
  expect(stream, command({"GET", "a"}), "$-1\r\n");
  expect(stream, command({"set", "a", "one"}), "+OK\r\n");
  expect(stream, command({"NO"}), "-ERR this example knows PING, SET, GET and QUIT\r\n");
  std::string many;
  std::string answers;
  for (int i = 0; i < 1000; ++i) {
    many += command({"GET", "a"});
    answers += "$3\r\none\r\n";
  }
  expect(stream, many, answers);
  for (const size_t size : {size_t{0}, size_t{65536}, size_t{1} << 20U, (size_t{1} << 20U) + 1, size_t{5} << 20U}) {
    const auto bytes = patterned(size, size, 0);
    const std::string value(bytes.begin(), bytes.end());
    expect(stream, command({"SET", "big", value}), "+OK\r\n");
    expect(stream, command({"GET", "big"}), "$" + std::to_string(size) + "\r\n" + value + "\r\n");
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(server.tcp);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(tcp, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const std::string question = command({"GET", "a"});
  ASSERT_EQ(write(tcp, question.data(), question.size()), static_cast<ssize_t>(question.size()));
  char answer[9] = {};
  EXPECT_EQ(recv(tcp, answer, sizeof answer, MSG_WAITALL), 9);
  EXPECT_EQ(std::string(answer, 9), "$3\r\none\r\n");
  close(tcp);
}

TEST(KeyValue, last_answer_arrives_before_the_end) {
  const RuntimeFolder folder;
  const KeyValueServer server;
  StreamService service("soft");
  ByteStream other = service.connect("127.0.0.1", server.rdma, kSoonMs);
  ByteStream stream = service.connect("127.0.0.1", server.rdma, kSoonMs);
  expect(stream, command({"QUIT"}), "+OK\r\n");
  char more = 0;
  EXPECT_EQ(stream.read(&more, 1, kSoonMs), 0U);
  ByteStream hostile = service.connect("127.0.0.1", server.rdma, kSoonMs);
  write_all(hostile, "GET /\r\n", 7);
  EXPECT_EQ(hostile.read(&more, 1, kSoonMs), 0U);
  expect(other, command({"PING"}), "+PONG\r\n");
}

}  // namespace
}  // namespace ringbolt::stream_test
