#include "control.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace ringbolt::bench {
namespace {

std::string to_hex(const std::string& bytes) {
  std::string hex = "x";  // an empty blob is still a word
  for (const char byte : bytes) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return hex;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 1; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

}  // namespace

Control::Control(const std::string& socket_path, unsigned rank) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    throw std::runtime_error(fmt::format("{}: path of the control socket is too long", socket_path));
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0 || connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error(fmt::format("{}: connect: {}", socket_path, std::strerror(errno)));
  }
  answer(fmt::format("hello {}", rank));
}

Control::~Control() { close(fd_); }

std::vector<std::string> Control::exchange(const std::string& blob) {
  answer("blob " + to_hex(blob));
  std::string line;
  if (!read_line(line)) {
    throw std::runtime_error("the driver went away before the workers were connected");
  }
  std::istringstream words(line);
  std::string word;
  words >> word;
  std::vector<std::string> blobs;
  while (words >> word) {
    blobs.push_back(from_hex(word));
  }
  return blobs;
}

bool Control::next(Command& command) {
  std::string line;
  if (!read_line(line) || line == "quit") {
    return false;
  }
  std::istringstream words(line);
  std::string verb;
  std::string touch;
  words >> verb >> command.operation >> command.size_bytes >> command.iterations >> touch;
  command.is_touched = touch == "touch";
  return true;
}

void Control::answer(const std::string& line) {
  const std::string message = line + "\n";
  std::size_t sent = 0;
  while (sent < message.size()) {
    const ssize_t n = send(fd_, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (n < 0) {
      throw std::runtime_error(fmt::format("control socket: send: {}", std::strerror(errno)));
    }
    sent += static_cast<std::size_t>(n);
  }
}

bool Control::read_line(std::string& line) {
  std::size_t end = 0;
  while ((end = pending_.find('\n')) == std::string::npos) {
    char chunk[4096];
    const ssize_t n = read(fd_, chunk, sizeof chunk);
    if (n <= 0) {
      return false;
    }
    pending_.append(chunk, static_cast<std::size_t>(n));
  }
  line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return true;
}

}  // namespace ringbolt::bench
