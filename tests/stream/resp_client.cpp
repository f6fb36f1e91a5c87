// A client of ours for any server that speaks RESP over RDMA streams: values of many sizes, many requests at once, and
// a farewell. Prints what it did; exit status 1 when an answer is wrong.
//
//   stream_resp_client HOST PORT

#include <poll.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <ringbolt/byte_stream.h>

namespace {

constexpr uint64_t kSoonMs = 20'000;

std::string command(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

std::string value_of(size_t size) {
  std::string value(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    value[i] = static_cast<char>((i * 167 + (i >> 8U) * 13 + size) & 0xffU);
  }
  return value;
}

/// Sends and reads at once, for neither end may wait for the other's buffer.
std::string ask(ringbolt::ByteStream& stream, const std::string& question, size_t answer_bytes) {
  std::string answer(answer_bytes, '\0');
  size_t written = 0;
  for (size_t read = 0; written < question.size() || read < answer_bytes;) {
    const bool is_left = written < question.size();
    const uint32_t wanted = RINGBOLT_STREAM_READABLE | (is_left ? uint32_t{RINGBOLT_STREAM_WRITABLE} : 0U);
    if (stream.wait(wanted, kSoonMs) == 0) {
      throw std::runtime_error("no answer in time");
    }
    written += stream.write(question.data() + written, question.size() - written, 0);
    const auto some = stream.read(answer.data() + read, answer_bytes - read, 0);
    if (some && *some == 0 && read < answer_bytes) {
      throw std::runtime_error("the server has closed the stream: " + answer.substr(0, read));
    }
    read += some.value_or(0);
  }
  return answer;
}

void expect(ringbolt::ByteStream& stream, const std::string& question, const std::string& answer) {
  const std::string seen = ask(stream, question, answer.size());
  if (seen != answer) {
    throw std::runtime_error("asked " + question.substr(0, 80) + ", got " + seen.substr(0, 80));
  }
}

void talk(ringbolt::ByteStream& stream) {
  expect(stream, command({"PING"}), "+PONG\r\n");
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{65536}, (size_t{1} << 20U) - 100,
                            size_t{1} << 20U, (size_t{1} << 20U) + 1, size_t{16} << 20U}) {
    const std::string value = value_of(size);
    expect(stream, command({"SET", "value", value}), "+OK\r\n");
    expect(stream, command({"GET", "value"}), "$" + std::to_string(size) + "\r\n" + value + "\r\n");
  }
  std::string questions, answers;
  const std::string value = value_of(1000);
  expect(stream, command({"SET", "small", value}), "+OK\r\n");
  for (int i = 0; i < 5000; ++i) {
    questions += command({"GET", "small"});
    answers += "$1000\r\n" + value + "\r\n";
  }
  expect(stream, questions, answers);
  expect(stream, command({"QUIT"}), "+OK\r\n");
}

/// The server may still be starting.
ringbolt::ByteStream connect(ringbolt::StreamService& service, const char* host, uint16_t port,
                             const ringbolt_stream_options& options) {
  for (int tries = 0;; ++tries) {
    try {
      return service.connect(host, port, kSoonMs, options);
    } catch (const ringbolt::StreamError&) {
      if (tries == 100) {
        throw;
      }
      poll(nullptr, 0, 100);
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: stream_resp_client HOST PORT\n");
    return 2;
  }
  ringbolt::StreamService service;
  for (const uint32_t buffers : {1U, 3U}) {
    for (const uint32_t bytes : {65536U, 1U << 20U, 16U << 20U}) {
      ringbolt_stream_options options = ringbolt::StreamService::stream_options();
      options.receive_bytes = bytes;
      options.receive_buffers = buffers;
      ringbolt::ByteStream stream = connect(service, argv[1], static_cast<uint16_t>(std::stoul(argv[2])), options);
      talk(stream);
      const auto seen = stream.statistics();
      std::printf("%u x %u bytes: %lu sent, %lu received, %lu announcements, %lu stalls\n", buffers, bytes,
                  static_cast<unsigned long>(seen.bytes_sent), static_cast<unsigned long>(seen.bytes_received),
                  static_cast<unsigned long>(seen.announcements_sent), static_cast<unsigned long>(seen.stalls));
    }
  }
  return 0;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "stream_resp_client: %s\n", problem.what());
  return 1;
}
